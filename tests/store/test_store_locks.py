"""Locks that end with their process: which runners are alive, and which has the turn."""

import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from store.store_support import new_run
from waiting import DEADLINE_S

from benchctl.errors import StoreError
from benchctl.store.locks import Liveness

HOLDER = """
import sys
from pathlib import Path
from benchctl.store.locks import Liveness
with Liveness(Path(sys.argv[1])).hold(int(sys.argv[2])) as turn:
    for line in sys.stdin:
        print(turn.take() if line == "take\\n" else turn.give_back(), flush=True)
"""


class Holder:
    """A process that holds the lock of a run, and takes the turn when told to."""

    def __init__(self, store, run_id):
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(store), str(run_id)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.ask("give back")  # it holds its lock when it answers

    def ask(self, what):
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def kill(self):
        """Kill it, and wait until the kernel has taken it away."""
        watch = os.pidfd_open(self.process.pid) if hasattr(os, "pidfd_open") else None
        self.process.send_signal(signal.SIGKILL)
        if watch is not None:
            assert select.select([watch], [], [], DEADLINE_S)[0]
            os.close(watch)
        self.process.wait()

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture
def store(tmp_path):
    return tmp_path / "runs.sqlite"


@pytest.fixture
def holder(store):
    holders = []

    def hold(run_id=1):
        holders.append(Holder(store, run_id))
        return holders[-1]

    yield hold
    for one in holders:
        one.close()


def test_nobody_is_alive_before_anyone_was(store):
    new_run(store)
    assert not Liveness(store).is_alive(1)
    assert not store.with_name(store.name + "-alive").exists()


def test_a_run_is_alive_as_long_as_its_runner_and_no_other_run_is(store, holder):
    runner = holder(2)
    assert [Liveness(store).is_alive(n) for n in (1, 2, 3)] == [False, True, False]
    runner.close()
    assert not Liveness(store).is_alive(2)


def test_the_kernel_names_the_runner_and_nobody_who_only_asks(store, holder):
    assert Liveness(store).runner_pid(2) is None
    runner = holder(2)
    assert [Liveness(store).runner_pid(n) for n in (1, 2, 3)] == [None, runner.process.pid, None]
    runner.close()
    asking = holder(5)  # it has the file open
    assert Liveness(store).runner_pid(2) is None
    assert Liveness(store).runner_pid(5) == asking.process.pid


@pytest.mark.skipif(not hasattr(fcntl, "F_OFD_SETLK"), reason="Linux has such locks")
def test_a_lock_that_no_process_has_names_none(store):
    # kill(2) takes 0 and -1 for all processes that it can reach.
    with store.with_name(store.name + "-alive").open("w") as file:
        lock = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 1, 1, 0)
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, lock)
        assert Liveness(store).is_alive(1)
        assert Liveness(store).runner_pid(1) is None


def test_a_killed_runner_is_not_alive(store, holder):
    runner = holder(1)
    runner.ask("take")
    runner.kill()
    assert not Liveness(store).is_alive(1)
    with Liveness(store).hold(1) as turn:  # and what it held can be had
        assert turn.take()


def test_two_runners_of_one_run_cannot_be(store, holder):
    holder(1)
    with pytest.raises(StoreError, match="in progress"), Liveness(store).hold(1):
        pass
    with Liveness(store).hold(2):
        pass


def test_to_ask_harms_neither_the_runner_nor_others_who_ask(store, holder):
    holder(1)
    others = [Liveness(store) for _ in range(3)]
    assert all(other.is_alive(1) for other in others for _ in range(10))


ASKER = """
import fcntl, sys
with open(sys.argv[1]) as file:
    fcntl.lockf(file, fcntl.LOCK_SH, 1, 1)
    print(flush=True)
    sys.stdin.readline()
"""


@pytest.mark.parametrize("met", [3, 1000])
def test_a_runner_begins_although_somebody_asks_at_that_moment(store, monkeypatch, met):
    # Asking holds the lock for an instant: here until the runner has met it so often, as it does
    # where the one who asks has to wait for a processor.
    Path(f"{store}-alive").touch()
    asking = subprocess.Popen(
        [sys.executable, "-c", ASKER, f"{store}-alive"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    asking.stdout.readline()
    tries = []

    def wait_and_let_go(seconds):
        tries.append(seconds)
        if len(tries) == met:
            asking.communicate(b"\n")

    monkeypatch.setattr("benchctl.store.locks.time.sleep", wait_and_let_go)
    with Liveness(store).hold(1):
        assert len(tries) == met


def test_one_runner_has_the_turn_and_the_next_gets_it_when_it_is_given_back(store, holder):
    one, two = holder(1), holder(2)
    assert one.ask("take") == "True"
    assert two.ask("take") == "False"
    one.ask("give back")
    assert two.ask("take") == "True"
    assert one.ask("take") == "False"


def test_a_turn_given_back_leaves_the_run_alive(store, holder):
    runner = holder(1)
    runner.ask("take")
    runner.ask("give back")
    assert Liveness(store).is_alive(1)


def test_the_turn_of_a_killed_runner_is_free(store, holder):
    one, two = holder(1), holder(2)
    one.ask("take")
    one.kill()
    assert two.ask("take") == "True"


def test_a_lock_that_cannot_be_made_is_a_store_error(tmp_path):
    with (
        pytest.raises(StoreError, match="No such file or directory"),
        Liveness(tmp_path / "gone" / "runs.sqlite").hold(1),
    ):
        pass


TOGETHER = """
import sys
from contextlib import ExitStack
from pathlib import Path
from benchctl.store.locks import Liveness
liveness = Liveness(Path(sys.argv[1]), together=True)
holds = {number: ExitStack() for number in (1, 2, 3)}
turns = {number: hold.enter_context(liveness.hold(number)) for number, hold in holds.items()}
for line in sys.stdin:
    what, number = line.split()
    done = {"end": holds[int(number)].close, "take": turns[int(number)].take}[what]()
    print(done, [liveness.is_alive(one) for one in holds], flush=True)
"""


@pytest.mark.skipif(not hasattr(fcntl, "F_OFD_SETLK"), reason="this system has no such locks")
def test_of_three_runs_of_one_process_one_ends_one_is_stopped_and_the_third_is_alive(store):
    def ask(what):
        process.stdin.write(what + "\n")
        process.stdin.flush()
        return process.stdout.readline().strip()

    def alive():
        return [Liveness(store).is_alive(number) for number in (1, 2, 3)]

    process = subprocess.Popen(
        [sys.executable, "-c", TOGETHER, str(store)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert ask("take 1") == "True [True, True, True]"
        assert ask("take 3") == "False [True, True, True]", "one of them has the turn"
        assert alive() == [True, True, True]
        assert Liveness(store).runner_pid(3) is None, "no signal is for one of them"
        with pytest.raises(StoreError, match="in progress"), Liveness(store).hold(3):
            pass
        assert ask("end 1") == "None [False, True, True]"
        assert alive() == [False, True, True]
        assert ask("end 2") == "None [False, False, True]"
        assert alive() == [False, False, True]
    finally:
        process.kill()
        process.communicate()
    assert alive() == [False, False, False]
