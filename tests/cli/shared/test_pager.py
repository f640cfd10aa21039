"""A pager shows the output where one is asked for, and nowhere else."""

import subprocess

import pytest


@pytest.fixture
def on_terminal(benchctl):
    """Run a command whose output is a terminal; returns its exit code and what that shows."""
    return lambda *args: benchctl.at_a_terminal(*args, stdin=subprocess.DEVNULL)


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
