"""Schedules start runs when they are due, and say what was missed: with a clock of the test."""

import json
import sys
from contextlib import closing

import pytest
from schedule.scheduled import HOUR_S, Scheduled

from benchctl.interrupts import Asked
from benchctl.schedule.book import Book, Overlap, What
from benchctl.schedule.loop import GRACE_S, Scheduler
from benchctl.store.manage import set_baseline
from benchctl.store.read import Reader


@pytest.fixture
def scheduled(tmp_path):
    return Scheduled(tmp_path / "runs.sqlite")


RAN = [("started", 0), ("run", 0)]


def test_a_run_starts_when_it_is_due(scheduled):
    scheduled.add(options=("--set", "duration=1s"))
    scheduled.wait(HOUR_S - 1)
    assert scheduled.log() == []
    scheduled.wait(2 * HOUR_S + 100)
    assert scheduled.log() == RAN * 3
    (argv, *_) = scheduled.machine.argv
    assert argv[3:8] == ["benchctl", "run", "/p.toml", "--set", "duration=1s"]
    run = scheduled.book.entries()[1]
    assert run.run in scheduled.said[1]
    assert run.code == 0


def test_what_was_due_while_the_machine_slept_is_said_and_not_measured(scheduled):
    scheduled.add()
    scheduled.wait(HOUR_S + 100)
    scheduled.machine.suspend(5 * HOUR_S)
    scheduled.wait(HOUR_S)
    assert scheduled.log() == [*RAN, ("missed", 5), *RAN]
    assert "5 due times" in scheduled.said[2]


def test_what_was_due_while_no_scheduler_ran_is_said_but_for_a_short_restart(scheduled):
    scheduled.add()
    scheduled.machine.sleep(3 * HOUR_S + GRACE_S / 2)
    scheduled.start()
    scheduled.wait(100)
    assert scheduled.log() == [("missed", 2), *RAN]


@pytest.mark.parametrize(
    ("overlap", "log"),
    [
        (Overlap.SKIP, [*RAN, ("skipped", 2), *RAN]),
        (Overlap.QUEUE, [*RAN, ("skipped", 1), *RAN]),
    ],
)
def test_a_run_that_takes_longer_than_the_interval(scheduled, overlap, log):
    scheduled.add(overlap=overlap)
    scheduled.machine.lasts_s = 2.5 * HOUR_S
    scheduled.wait(HOUR_S + 10)
    scheduled.machine.lasts_s = 60.0
    scheduled.wait(30 if overlap is Overlap.QUEUE else 0.6 * HOUR_S)
    assert scheduled.log() == log


def test_schedules_that_are_due_together_run_one_after_the_other(scheduled):
    scheduled.add("a")
    scheduled.add("b", overlap=Overlap.QUEUE)
    scheduled.machine.lasts_s = 600.0
    scheduled.wait(HOUR_S + 1300)
    assert scheduled.log() == RAN * 2
    assert [one.schedule for one in scheduled.book.entries()] == ["a", "a", "b", "b"]


def test_a_scheduler_that_died_in_a_run_does_not_start_it_again(scheduled):
    class DiedError(Exception):
        pass

    def die(argv):
        raise DiedError

    scheduled.add()
    scheduled.machine.call, call = die, scheduled.machine.call
    scheduled.start()
    with pytest.raises(DiedError):
        scheduled.wait(HOUR_S + 60)
    scheduled.machine.call = call
    scheduled.start()
    scheduled.wait(HOUR_S + 60)
    assert scheduled.log() == [("started", 0), *RAN]


def test_a_profile_that_cannot_be_planned_is_told_of_once(scheduled, tmp_path):
    told = tmp_path / "told"
    scheduled.add(notify=f"cat >> {told}")
    scheduled.machine.code = 2
    scheduled.wait(2.5 * HOUR_S)
    assert scheduled.log() == [*RAN, ("failing", 0), *RAN]
    (event,) = map(json.loads, told.read_text().splitlines())
    assert event["what"] == "failing"
    assert event["schedule"] == "nightly"
    assert event["text"] == "benchctl: p.toml:3: no such key"
    scheduled.machine.code = 0
    scheduled.wait(HOUR_S)
    assert scheduled.log()[-1] == ("recovered", 0)


def test_a_notification_that_fails_is_in_the_log(scheduled):
    scheduled.add(notify="exit 7")
    scheduled.machine.repeats = {1: [None]}
    scheduled.machine.code = 1
    scheduled.wait(HOUR_S + 60)
    (problem,) = [one for one in scheduled.book.entries() if one.what is What.PROBLEM]
    assert problem.text == "notify exit 7: exit code 7"


def test_old_runs_go_to_the_trash_but_no_baseline(scheduled):
    scheduled.add(keep_s=2.5 * HOUR_S)
    scheduled.wait(HOUR_S + 60)
    with closing(Reader(scheduled.book.store)) as reader:
        set_baseline(scheduled.book.store, reader.find("last"))
    scheduled.wait(5 * HOUR_S)
    with closing(Reader(scheduled.book.store)) as reader:
        ages = sorted(round((scheduled.machine.now - one.created_time) / HOUR_S)
                      for one in reader.outlines())  # fmt: skip
    assert ages == [0, 1, 2, 5]


def test_a_signal_ends_the_run_in_progress(tmp_path):
    """The command says that it began; it is interrupted as by Ctrl-C."""
    asked = Asked()
    scheduler = Scheduler(Book(tmp_path / "runs.sqlite"), lambda _: None, asked)
    program = (
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGINT, lambda *_: sys.exit(9))\n"
        "os.kill(os.getppid(), signal.SIGTERM)\n"
        "time.sleep(600)"
    )
    with asked.listening():
        code, said = scheduler._run([sys.executable, "-c", program])
    assert (code, said) == (9, "")
