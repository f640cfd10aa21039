"""A store that another program holds: what is measured waits, in order, and nothing is lost."""

import sqlite3
import time
from contextlib import closing

import pytest
from store.store_support import NOW, add_flow, add_sample, figures, new_run
from waiting import DEADLINE_S

from benchctl.errors import StoreBusyError
from benchctl.store import database, record
from benchctl.store.read import Reader
from benchctl.store.record import Recorder


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def store(tmp_path):
    return tmp_path / "runs.sqlite"


@pytest.fixture
def held(store):
    """A new store with a run, and a connection of another program that holds it."""
    new_run(store, trials=2)
    with closing(sqlite3.connect(store, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield other


def test_a_whole_trial_waits_in_memory_and_is_written_as_if_nothing_had_been(store, held):
    clock = Clock()
    with closing(Recorder(store, 1, clock)) as recorder:
        recorder.update_run(status="running", facts={"kernel": "6"})
        flows = [add_flow(recorder, attempt=attempt) for attempt in (1, 2)]
        assert len(set(flows)) == 2
        for number, flow in enumerate(flows):
            for turn in range(3):
                add_sample(recorder, flow, turn / 10, {"throughput_bps": float(turn)})
            recorder.add_note(f"note {number}", "warning", NOW, 1, flow)
            recorder.add_figures(flow, figures(number))
            recorder.update_flow(flow, status="ok", port=5201 + number)
        assert not recorder.flush()
        clock.now += 30
        held.execute("ROLLBACK")
        assert recorder.flush()
        late = add_flow(recorder, 2)
        add_sample(recorder, late)
        add_sample(recorder, flows[0], 9.0)  # what is known by its number stays known
        assert recorder.flush()
    with closing(Reader(store)) as reader:
        assert (reader.run(1).status, reader.run(1).facts) == ("died", {"kernel": "6"})
        one, two = reader.flows(1, all_attempts=True)
        assert [(f.attempt, f.status, f.port) for f in (one, two)] == [
            (1, "ok", 5201), (2, "ok", 5202),
        ]  # fmt: skip
        assert [s.start_s for s in reader.samples(one.id)] == [0.0, 0.1, 0.2, 9.0]
        assert [s.start_s for s in reader.samples(two.id)] == [0.0, 0.1, 0.2]
        assert reader.figures(two.id) == figures(1)
        assert [(n.text, n.flow_id) for n in reader.notes(1)] == [
            ("note 0", one.id),
            ("note 1", two.id),
            (
                "another program locked the store for 30.0 s; what was measured waited in memory;"
                " nothing is lost",
                None,
            ),
        ]
        assert [flow.id for flow in reader.flows(2)] == [late]


def test_nobody_waits_while_something_is_measured(store, held, monkeypatch):
    # Who waits for the lock waits for so long, since nobody releases it meanwhile.
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", DEADLINE_S)
    with closing(Recorder(store, 1)) as recorder:
        begun = time.monotonic()
        recorder.update_run(status="running")
        add_flow(recorder)
        assert time.monotonic() - begun < DEADLINE_S
        held.execute("ROLLBACK")


def test_two_who_meet_for_a_moment_leave_no_note(store, held):
    with closing(Recorder(store, 1, Clock())) as recorder:
        recorder.update_run(status="running")
        held.execute("ROLLBACK")
    with closing(Reader(store)) as reader:
        assert reader.run(1).status == "died", "it said that it runs, and nobody measures it"
        assert reader.notes(1) == []


def test_more_than_memory_should_hold_is_an_error(store, held, monkeypatch):
    monkeypatch.setattr(record, "MOST_WAITING", 10)
    recorder = Recorder(store, 1)
    flow = add_flow(recorder)
    for _ in range(10):
        add_sample(recorder, flow)
    assert not recorder.flush()
    add_sample(recorder, flow)
    with pytest.raises(StoreBusyError, match="locked"):
        recorder.flush()
    held.execute("ROLLBACK")
    recorder.close()
    with closing(Reader(store)) as reader:
        assert len(list(reader.samples_of_trial(1))) == 11


def test_an_end_that_cannot_be_written_is_an_error_after_a_wait(store, held, monkeypatch):
    monkeypatch.setattr(record, "SETTLING_S", 0.05)
    recorder = Recorder(store, 1)
    recorder.update_run(status="ok")
    with pytest.raises(StoreBusyError, match="locked"):
        recorder.close()


def test_a_name_that_is_taken_is_drawn_again(store, monkeypatch):
    drawn = iter(["aaaaaa", "aaaaaa", "aaaaaa", "bbbbbb"])
    monkeypatch.setattr(record.secrets, "token_hex", lambda _: next(drawn))
    names = [new_run(store)[1], new_run(store)[1]]
    assert [name[-6:] for name in names] == ["aaaaaa", "bbbbbb"]
