"""Who measures a run is signalled as the kernel names them."""

from contextlib import closing
from signal import SIGINT, SIGUSR1
from unittest.mock import Mock

import pytest

from benchctl.engine.runner.launch import free_host, left_to_resume, skip_trial, stop
from benchctl.errors import StoreError, UsageError
from benchctl.run.planned import PlannedRun, Settings
from benchctl.store import locks
from benchctl.store.locks import Liveness
from benchctl.store.log.logged import prepare_log
from benchctl.store.read import Reader
from benchctl.store.record import RunRequest, create_run


@pytest.fixture
def store(tmp_path):
    return tmp_path / "runs.sqlite"


def test_whom_the_lock_names_is_signalled_and_nobody_where_it_names_none(store, monkeypatch):
    sent = []
    monkeypatch.setattr("os.kill", lambda pid, number: sent.append((pid, number)))
    assert not stop(store, 1)
    monkeypatch.setattr(Liveness, "runner_pid", lambda self, run_id: 4711 + run_id)
    assert (stop(store, 1), skip_trial(store, 1)) == (True, True)
    assert sent == [(4712, SIGINT), (4712, SIGUSR1)]


def test_a_signal_that_does_not_arrive_is_no_bug(store, monkeypatch):
    monkeypatch.setattr(Liveness, "runner_pid", lambda self, run_id: 4711)
    monkeypatch.setattr("os.kill", Mock(side_effect=ProcessLookupError))
    assert not stop(store, 1)
    monkeypatch.setattr("os.kill", Mock(side_effect=PermissionError))
    with pytest.raises(StoreError, match="this run belongs to another user"):
        stop(store, 1)


def test_of_two_that_would_run_alone_the_second_looks_when_the_first_has_begun(store, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "benchctl.engine.runner.launch.other_stores", lambda own: seen.append(own) or []
    )
    with free_host(store), monkeypatch.context() as impatient:
        impatient.setattr(locks, "_MOST_TRIES", 1)
        with pytest.raises(UsageError, match="another run is being started"), free_host(store):
            pass
    assert seen == [store]
    with free_host(store):
        pass


def test_a_host_that_is_not_free_is_left_to_others(store, monkeypatch):
    monkeypatch.setattr("benchctl.engine.runner.launch.other_stores", lambda own: ["/other"])
    for _ in range(2):
        with pytest.raises(UsageError, match="a run of store /other"), free_host(store):
            pass


def test_a_run_of_a_fleet_is_not_resumed_here(store):
    asked = RunRequest("alice", "alice 1", 0.0)
    run = PlannedRun("p", "", 1, Settings({}, "sequential", ()), (), "")
    prepare_log(store)
    create_run(store, run, 0.0, asked=asked)
    with closing(Reader(store)) as reader, pytest.raises(UsageError, match="by a fleet"):
        left_to_resume(reader, reader.run(1), trust=True)
