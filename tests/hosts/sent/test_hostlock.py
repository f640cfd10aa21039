"""One run at a time has a host, also where the system has no abstract names."""

import os
import stat
from pathlib import Path

import pytest
from waiting import DEADLINE_S

from benchctl.hosts.sent import hostlock
from benchctl.hosts.sent.hostlock import HostLock


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    monkeypatch.setattr(hostlock, "ANSWER_S", DEADLINE_S)


@pytest.fixture(params=["linux", "darwin"])
def lock(request, monkeypatch, tmp_path):
    """Return what makes locks of one name, as on this system."""
    if request.param == "linux" and hostlock.sys.platform != "linux":
        pytest.skip("no abstract names here")
    monkeypatch.setattr(hostlock.sys, "platform", request.param)

    def made():
        one = HostLock(f"benchctl-test-{os.getpid()}-{request.param}")
        one._path = str(tmp_path / "lock")
        return one

    return made


def test_the_second_is_told_who_has_it_until_it_is_given_back(lock):
    first, second = lock(), lock()
    assert first.take("run one") == ""
    assert first.take("run one") == ""
    assert second.take("run two") == "run one"
    first.give_back()
    assert second.take("run two") == ""
    assert first.take("run one") == "run two"
    second.give_back()


def test_those_who_share_it_keep_all_others_out_until_the_last_has_given_it_back(lock):
    here, too, there = lock(), lock(), lock()
    assert here.take("run one", shared=True) == ""
    assert too.take("run two", shared=True) == ""
    assert there.take("run three") in ("run one", "run two")
    here.give_back()
    assert there.take("run three") == "run two"
    too.give_back()
    assert there.take("run three") == ""
    there.give_back()


def test_who_has_it_alone_keeps_those_out_who_would_share_it(lock):
    here, there = lock(), lock()
    assert there.take("run one") == ""
    assert here.take("run two", shared=True) == "run one"
    there.give_back()
    assert here.take("run two", shared=True) == ""
    here.give_back()


@pytest.mark.parametrize("shared", [True, False])
def test_a_run_that_reaches_its_own_machine_is_not_in_its_own_way(lock, shared):
    first, second = lock(), lock()
    assert first.take("run one", shared=shared) == ""
    assert second.take("run one", shared=not shared) in ("", "run one")
    second.give_back()
    first.give_back()


def test_a_lock_of_a_longer_name_is_another(lock):
    other = lock()
    other._name += "-more"
    other._path += "-more"
    assert other.take("run one", shared=True) == ""
    one = lock()
    assert one.take("run two") == ""
    one.give_back()
    other.give_back()


def test_the_next_has_it_as_soon_as_it_is_given_back(lock):
    for _ in range(200):
        one = lock()
        assert one.take("run") == ""
        one.give_back()


def test_nothing_stays_when_it_is_given_back(lock, tmp_path):
    one = lock()
    one.take("run")
    one.give_back()
    one.give_back()
    assert not list(tmp_path.iterdir())


def test_the_file_may_be_taken_by_every_user_after_its_owner_was_killed(tmp_path):
    lock = HostLock("unused")
    lock._path = str(tmp_path / "lock")
    before = os.umask(0o077)
    try:
        assert lock._flock("run") == ""
    finally:
        os.umask(before)
    assert stat.S_IMODE(Path(lock._path).stat().st_mode) == 0o666
    lock.give_back()


def test_a_file_that_was_removed_while_it_was_opened_is_not_taken(tmp_path, monkeypatch):
    first, second = HostLock("unused"), HostLock("unused")
    first._path = second._path = str(tmp_path / "lock")
    assert first._flock("run one") == ""
    real, calls = hostlock.fcntl.flock, []

    def slow(file, how):
        if not calls:
            calls.append(1)
            first.give_back()  # which removes the file that is open here
        real(file, how)

    monkeypatch.setattr(hostlock.fcntl, "flock", slow)
    assert second._flock("run two") == ""
    assert Path(second._path).read_text() == "run two"
    second.give_back()


def test_who_gives_back_what_another_wanted_leaves_it_to_that_one_first(lock, monkeypatch):
    monkeypatch.setattr(hostlock, "LEAVE_S", DEADLINE_S)
    first, second = lock(), lock()
    assert first.take("run one") == ""
    assert second.take("run two") == "run one"
    first.give_back()
    if hostlock.sys.platform == "linux":  # elsewhere, who has it is not told of others
        assert first.take("run one") == "another run, whose turn it is"
    assert second.take("run two") == ""
    second.give_back()
    monkeypatch.setattr(hostlock, "LEAVE_S", 0.0)
