"""Commands whose stdout or stderr is closed, full, gone, or knows few characters."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from console_font import CP437
from store.store_support import measured_run
from waiting import COMMAND_S

OK = '[flows.main]\nbackend = "toy"\n[axes]\nplan = ["ok"]\n[run]\nrepeats = 2\n'
FULL = Path("/dev/full")
pytestmark = pytest.mark.tool("bash")


def shell(benchctl, text, **environment):
    """Run a line of shell in which ``benchctl`` is the real command."""
    own = f"{shlex.quote(sys.executable)} -m benchctl"
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", text.replace("benchctl", own)],
        cwd=benchctl.directory, env=benchctl.environment | environment,
        capture_output=True, timeout=COMMAND_S, check=False,
    )  # fmt: skip


def measured(benchctl):
    return [line.split()[-1] for line in benchctl("runs").stdout.splitlines()[1:]]


def run_without(benchctl, stderr):
    """Run a profile with something else for stderr; returns its exit code and its stdout."""
    process = benchctl.start("run", benchctl.profile(OK), stderr=stderr)
    stdout, _ = process.communicate(timeout=COMMAND_S)
    return process.returncode, stdout


def test_a_run_that_cannot_say_how_it_goes_measures_all_the_same(benchctl):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as unread, FULL.open("w") as full:
        for stderr in (unread, full):
            code, stdout = run_without(benchctl, stderr)
            assert (code, "9.00 kbit/s" in stdout) == (0, True)
    assert measured(benchctl) == ["ok"] * 2


@pytest.mark.parametrize("closed", ["2>&-", "<&- 2>&-"])
def test_a_run_whose_stderr_is_closed_measures_all_the_same(benchctl, closed):
    told = shell(benchctl, f"benchctl run {benchctl.profile(OK)} {closed}")
    assert (told.returncode, b"9.00 kbit/s" in told.stdout) == (0, True)
    assert measured(benchctl) == ["ok"]


def test_errors_do_not_go_to_stdout_where_stderr_is_closed(benchctl):
    told = shell(benchctl, "benchctl run nothing 2>&-")
    assert (told.returncode, told.stdout) == (2, b"")


every_form = pytest.mark.parametrize("args", ["", "--format json", "--format jsonl", "--events"])


def only_the_text_is_lost(benchctl, code, stderr):
    assert code == 4
    *_, error, hint = stderr.splitlines()
    assert "cannot write" in error
    assert "No space left on device" in error
    assert "the measurements are in the store" in hint
    assert measured(benchctl) == ["ok"]


@every_form
def test_a_full_disk_loses_the_print_and_not_the_run(benchctl, args):
    with FULL.open("w") as full:
        told = benchctl.start("run", benchctl.profile(OK), "-q", *args.split(), stdout=full)
    _, stderr = told.communicate(timeout=COMMAND_S)
    only_the_text_is_lost(benchctl, told.returncode, stderr)


@every_form
def test_a_full_disk_loses_the_file_and_not_the_run(benchctl, args):
    told = benchctl("run", benchctl.profile(OK), "-q", *args.split(), "-o", "/dev/full")
    only_the_text_is_lost(benchctl, told.returncode, told.stderr)


@pytest.mark.parametrize("command", ["runs", "backends", "schema", "run --help"])
def test_every_command_says_that_stdout_is_full(benchctl, command):
    measured_run(benchctl.store, {1: (1e6,)})
    with FULL.open("w") as full:
        told = benchctl.start(*command.split(), stdout=full)
    _, stderr = told.communicate(timeout=COMMAND_S)
    assert (told.returncode, "No space left on device" in stderr.splitlines()[0]) == (4, True)
    assert "Traceback" not in stderr


def test_the_version_says_that_stdout_is_full(benchctl):
    told = shell(benchctl, "benchctl --version > /dev/full")
    first, *_ = told.stderr.decode().splitlines()
    assert (told.returncode, "No space left on device" in first) == (4, True)
    assert b"Traceback" not in told.stderr


def read_one_line(process):
    """Close stdout after its first line; returns the exit code and stderr."""
    with process.stdout as stdout:
        assert stdout.readline().endswith("\n")
    _, stderr = process.communicate(timeout=COMMAND_S)
    return process.returncode, stderr


@pytest.mark.parametrize("form", ["--format jsonl", "--format json", "--samples"])
def test_a_reader_that_has_seen_one_line_ends_an_export_well(benchctl, form):
    # More than a pipe and the buffers of both sides take.
    measured_run(benchctl.store, {1: (1e6,) * 300}, intervals=10)
    assert read_one_line(benchctl.start("export", *form.split())) == (0, "")


def test_a_reader_of_events_that_has_seen_enough_ends_no_run(benchctl):
    run = benchctl.start("run", benchctl.profile(OK), "-q", "--events")
    assert read_one_line(run)[0] == 0
    assert measured(benchctl) == ["ok"]


@pytest.mark.parametrize(("encoding", "cell"), [("iso8859-1", "±"), ("ascii", "+-")])
def test_tables_degrade_to_the_characters_that_there_are(benchctl, encoding, cell):
    benchctl("run", benchctl.profile(OK), "-q")
    told = shell(benchctl, "benchctl export", PYTHONIOENCODING=encoding)
    assert told.returncode == 0
    # A longer cell takes the room of the gap before it, so that its column keeps its right edge.
    assert told.stdout.decode(encoding).splitlines()[:3] == [
        "n      throughput",
        f"-  {'-' * 14}",
        f"2{f'9.00 kbit/s {cell}0':>16}",
    ]


def test_a_text_that_no_encoding_has_is_shown_by_its_codes(benchctl):
    profile = benchctl.profile('title = "Ankara → İzmir"\n' + OK)
    told = shell(benchctl, f"benchctl plan {profile}", PYTHONIOENCODING="ascii")
    assert told.stdout.splitlines()[0] == rb"p  Ankara \u2192 \u0130zmir"
    assert b"\n+ ok       toy" in told.stdout


@pytest.mark.parametrize(
    "command",
    ["run p.toml", "plan p.toml", "show --trials", "show --events", "compare last last", "doctor"],
)
def test_the_linux_console_gets_the_characters_of_its_font(benchctl, command):
    benchctl.profile(OK)
    measured_run(benchctl.store, {1: (1e6,), 2: (2e6,)}, intervals=3)
    benchctl.environment["TERM"] = "linux"
    code, said = benchctl.at_a_terminal(*command.split())
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said.replace("\r", ""))
    assert code == 0, text
    assert not {*text} - CP437
    if command.startswith("plan"):
        assert "\n√ ok       toy" in text


def test_a_file_gets_all_characters_also_from_the_linux_console(benchctl):
    benchctl.environment["TERM"] = "linux"
    assert "\n✓ ok       toy" in benchctl("plan", benchctl.profile(OK)).stdout


def test_screens_on_a_terminal_that_cannot_draw_them_are_refused(benchctl):
    benchctl.environment["TERM"] = "dumb"
    code, said = benchctl.at_a_terminal("tui")
    assert code == 2
    assert "and TERM is dumb" in said
    assert "benchctl run, show and compare work without one" in said


@pytest.mark.parametrize("stream", ["stdin", "stderr"])
def test_screens_without_a_terminal_are_refused(benchctl, stream):
    code, said = benchctl.at_a_terminal("tui", **{stream: subprocess.DEVNULL})
    assert code == 2
    assert ("the screens need a terminal" in said) == (stream == "stdin")


@pytest.mark.tool("script")
@pytest.mark.parametrize("closed", ["<&-", "2>&-"])
def test_screens_whose_terminal_is_closed_are_refused(benchctl, closed):
    told = shell(benchctl, f"script -qec {shlex.quote(f'benchctl tui {closed}')} /dev/null")
    assert told.returncode == 2
    if closed == "<&-":
        assert b"the screens need a terminal" in told.stdout


def test_columns_stay_columns_where_a_character_is_shown_by_several():
    row = "a→b        9.0 M/s ±2     30 us ±4"
    code = (
        "from benchctl.cli.shared import streams; streams.prepare(); "
        f"print({row!a}, '  two…', sep='\\n')"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    shown, indented = told.stdout.splitlines()
    assert shown == r"a\u2192b  9.0 M/s +-2    30 us +-4"
    assert len(shown) == len(row)
    assert indented == "  two..."


def test_a_text_in_codes_moves_no_column_before_it():
    rows = [
        "20261123  one        12  ok",
        "20261124  测量-🚀     2  ok",
        "20261125  é           3  ok",
    ]
    code = (
        f"from benchctl.cli.shared import streams; streams.prepare(); print(*{rows!a}, sep='\\n')"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert told.stdout.splitlines() == [
        "20261123  one        12  ok",
        r"20261124  \u6d4b\u91cf-\U0001f680  2  ok",
        r"20261125  \xe9        3  ok",
    ]
