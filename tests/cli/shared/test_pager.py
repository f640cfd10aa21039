"""A pager shows the output where one is asked for, and nowhere else."""

import os
import pty
import subprocess

import pytest


@pytest.fixture
def on_terminal(benchctl):
    """Run a command whose stdout is a terminal; returns what that shows."""

    def run(*args):
        ours, theirs = pty.openpty()
        with os.fdopen(theirs, "wb") as terminal:
            process = subprocess.Popen(
                [*benchctl.words, *args], stdin=subprocess.DEVNULL, stdout=terminal,
                stderr=terminal, cwd=benchctl.directory, env=benchctl.environment,
            )  # fmt: skip
        shown = b""
        try:
            while chunk := os.read(ours, 4096):
                shown += chunk
        except OSError:  # the other end is closed
            pass
        os.close(ours)
        return process.wait(), shown.decode().replace("\r\n", "\n")

    return run


@pytest.fixture
def marking(benchctl):
    """A pager that marks each line."""
    benchctl.environment["PAGER"] = "sed s/^/paged:/"


PLAN = ("plan", "quickstart", "--only", "streams=1")


def test_a_terminal_shows_the_output_in_the_pager_only_on_request(benchctl, on_terminal, marking):
    code, shown = on_terminal(*PLAN, "--pager")
    assert code == 0
    assert all(line.startswith("paged:") for line in shown.splitlines())
    assert "paged:" not in on_terminal(*PLAN)[1]


def test_a_file_gets_the_output_itself(benchctl, marking):
    done = benchctl(*PLAN, "--pager")
    assert done.stdout
    assert "paged:" not in done.stdout


def test_a_pager_that_is_left_early_is_no_error(benchctl, on_terminal):
    benchctl.environment["PAGER"] = "head -n 1"
    code, shown = on_terminal(*PLAN, "--all", "--pager")
    assert (code, len(shown.splitlines())) == (0, 1)


def test_an_error_is_shown_after_the_pager_has_started_too(benchctl, on_terminal, marking):
    code, shown = on_terminal("plan", "none.toml", "--pager")
    assert code == 2
    assert "benchctl: " in shown
