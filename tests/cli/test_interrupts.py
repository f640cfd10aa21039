"""Ctrl-C, once or more, while a command that measures nothing is at work."""

import json
import os
import signal
import subprocess
import sys
from contextlib import closing, suppress
from functools import partial

import pytest
from cli.conftest import TOY
from waiting import COMMAND_S, wait_until

from benchctl.errors import StoreError
from benchctl.store.read import Reader

PROFILE = '[flows.main]\nbackend = "toy"\n'


def is_there(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def pid_of_the_probe(benchctl):
    file = benchctl.directory / "asked"
    return int(wait_until(lambda: file.exists() and file.read_text()))


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("command", ["plan", "run", "doctor"])
def test_ctrl_c_ends_a_command_that_plans_with_one_line(benchctl, command, times):
    toy = benchctl.directory / "toy.py"
    toy.write_text(TOY.read_text().replace("echo toy 1.0", "echo $$ > asked; exec sleep 600"))
    benchctl.environment["BENCHCTL_PLUGINS"] = str(toy)
    words = ("doctor",) if command == "doctor" else (command, benchctl.profile(PROFILE))
    process = benchctl.start(*words)
    probe = pid_of_the_probe(benchctl)
    for _ in range(times):
        process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=COMMAND_S)
    assert (process.returncode, stderr) == (130, "benchctl: interrupted\n")
    wait_until(lambda: not is_there(probe))
    assert not benchctl.store.exists()


@pytest.fixture
def full_pipe():
    """A pipe that takes nothing more until it is read: who writes to it stands still."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writing, b".")
    os.set_blocking(writing, True)
    yield reading, writing
    os.close(reading)


def interrupted_once_recorded(benchctl, full_pipe, number, *words):
    """Send a signal to a command that has recorded a run and stands still before its start.

    Returns its exit code, stdout and stderr.
    """
    reading, writing = full_pipe
    process = benchctl.start(*words, stderr=writing)
    os.close(writing)
    wait_until(lambda: runs(benchctl))
    process.send_signal(number)
    with open(reading, closefd=False) as told:
        stderr = told.read().lstrip(".")
    stdout, _ = process.communicate(timeout=COMMAND_S)
    return process.returncode, stdout, stderr


def runs(benchctl):
    """Return the status of each run, and which trials have begun."""
    with suppress(StoreError), closing(Reader(benchctl.store)) as reader:
        return [(run.status, run.started_time, reader.statuses(run.id)) for run in reader.runs()]
    return []  # the store is not there yet


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "sigterm"]
)
@pytest.mark.parametrize("words", [(), ("--detach",), ("--events", "-o", "events.jsonl")])
def test_a_run_that_is_interrupted_before_its_start_has_ended_and_can_be_resumed(
    benchctl, full_pipe, number, code, words
):
    profile = benchctl.profile(PROFILE)
    ended = interrupted_once_recorded(benchctl, full_pipe, number, "run", profile, *words)
    assert runs(benchctl) == [("interrupted", None, {"planned"})]
    assert ended[0] == code
    assert "benchctl: continue with: benchctl resume 2" in ended[2]
    if words == ("--detach",):
        assert ended[1] == ""
    if words[:1] == ("--events",):
        events = (benchctl.directory / "events.jsonl").read_text().splitlines()
        assert [json.loads(line)["status"] for line in events] == ["interrupted"]
    for command in ("runs", "show"):
        assert "interrupted" in benchctl(command).stdout
    assert benchctl("resume", "-q").returncode == 0


HOLD = """
import signal, sys
from benchctl.interrupts import interrupt_once

interrupt_once()
"""


def python(code):
    return subprocess.run(
        [sys.executable, "-c", HOLD + code],
        capture_output=True,
        text=True,
        timeout=COMMAND_S,
        check=False,
    )


def test_a_second_interrupt_does_not_cut_short_what_the_first_began():
    done = python(
        "try:\n"
        "    signal.raise_signal(signal.SIGINT)\n"
        "except KeyboardInterrupt:\n"
        "    signal.raise_signal(signal.SIGINT)\n"
        "    print('in order')\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "in order\n", "")


def test_an_interrupt_in_a_destructor_is_not_lost():
    done = python(
        "class Left:\n"
        "    def __del__(self):\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "try:\n"
        "    left = Left()\n"
        "    del left\n"
        "    signal.pause()\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")


def test_an_interrupt_that_a_plugin_swallowed_can_be_repeated():
    done = python(
        "import benchctl.interrupts, time\n"
        "benchctl.interrupts._END_S = 0.0\n"
        "try:\n"
        "    signal.raise_signal(signal.SIGINT)\n"
        "except:\n"
        "    pass\n"
        "try:\n"
        "    signal.raise_signal(signal.SIGINT)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")


def test_a_command_that_ignores_interrupts_goes_on_ignoring_them(benchctl):
    ignore = partial(signal.signal, signal.SIGINT, signal.SIG_IGN)
    process = benchctl.start_anew("schema", preexec_fn=ignore)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=COMMAND_S)
    assert process.returncode == 0
