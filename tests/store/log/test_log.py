"""What one store writes, another one replays: the same rows, whatever is cut, late or twice."""

import os
import sqlite3
from contextlib import closing

import pytest
from store.store_support import new_run

from benchctl.errors import StoreError
from benchctl.metrics import Direction
from benchctl.run.record import Figure
from benchctl.run.status import Status
from benchctl.store.copies.copy import copy_run
from benchctl.store.copies.parcel import Parcel
from benchctl.store.log.logged import (
    LoggedRecorder,
    forget_sent,
    last_received,
    prepare_log,
    reopen_logged,
    sync,
    unsent,
)
from benchctl.store.log.replay import CopyRecorder, GapError
from benchctl.store.log.writes import ENCODER, FlowRef, SetFlow, decode

END = ("paris", 0, 1, "main", "client")


@pytest.fixture
def stores(tmp_path):
    """The store of a run that is planned, and its copy."""
    store, copy = tmp_path / "runs.sqlite", tmp_path / "copy.sqlite"
    new_run(store)
    prepare_log(store)
    new_run(copy)  # another run, so that ids differ
    copied = copy_run(store, 1, copy_of := tmp_path / "one.sqlite")
    assert copied == 1
    with closing(sqlite3.connect(copy)) as connection:
        connection.execute("UPDATE run SET name = 'other'")
        connection.commit()
    return store, copy, copy_run(copy_of, 1, copy)


def record(store, messages, written=None):
    """Record a trial that is measured, with a second attempt."""
    recorder = LoggedRecorder(
        store, 1, on_logged=lambda *message: messages.append(message),
        on_written=(written if written is not None else []).append,
    )  # fmt: skip
    recorder.update_run(status=Status.RUNNING, started_time=10.0, runner_pid=7)
    for attempt in (1, 2):
        flow = recorder.add_flow(
            1, attempt=attempt, name="main", backend="b", source="a", target="c",
            direction="send", status=Status.PLANNED, client=("x", "y"), server=(), requested={},
        )  # fmt: skip
        recorder.update_trial(1, status=Status.RUNNING, started_time=11.0)
        recorder.update_flow(flow, status=Status.RUNNING)
        for number in range(25):
            recorder.add_sample(
                flow, "client", 0, Direction.SEND, number / 10, (number + 1) / 10, number / 10,
                number == 0, {"throughput_bps": 1e6 * number, "rtt_s": 0.01},
            )  # fmt: skip
        recorder.add_note("late", "warning", 12.0, None, flow)
        recorder.received(END, attempt * 25)
        recorder.flush()
        recorder.add_figures(flow, {("send", "throughput_bps"): Figure("tool", 5e6)})
        recorder.update_flow(flow, status=Status.FAILED, finished_time=13.0, stderr="é\x00")
    recorder.add_note("bye", "info", 12.0, 1, None)
    recorder.received(END, 51)
    recorder.flush()
    return recorder


def name_of(store):
    with closing(sqlite3.connect(store)) as connection:
        return connection.execute("SELECT name FROM run").fetchone()[0]


def content(store, run_id, tmp_path):
    folder = tmp_path / f"{store.stem}-{run_id}"
    folder.mkdir()
    with (
        closing(Parcel(store, run_id, folder)) as parcel,
        closing(sqlite3.connect(parcel.path)) as connection,
    ):
        connection.execute("UPDATE run SET runner_pid = NULL")  # which has no meaning elsewhere
        connection.commit()
        return parcel.sha256(), parcel.counts()


def replay(copy, run_id, messages):
    with closing(CopyRecorder(copy, run_id)) as recorder:
        for _, number, data in messages:
            recorder.replay(number, decode(data))
            assert recorder.flush()


def test_a_copy_has_the_same_rows(stores, tmp_path):
    store, copy, copied = stores
    messages = []
    record(store, messages).close()
    reopen_logged(store, 1, lambda *message: messages.append(message))
    assert [number for _, number, _ in messages] == list(range(1, len(messages) + 1))
    replay(copy, copied, messages)
    own, theirs = content(store, 1, tmp_path), content(copy, copied, tmp_path)
    assert own == theirs
    assert own[1][1] == 50, "samples"


def test_repeats_change_nothing_and_a_gap_is_an_error(stores, tmp_path):
    store, copy, copied = stores
    messages = []
    record(store, messages).close()
    replay(copy, copied, [messages[0]] * 2)
    with pytest.raises(GapError, match="message 2"):
        replay(copy, copied, messages[2:])
    replay(copy, copied, messages)  # from the first again, by another process
    assert content(store, 1, tmp_path) == content(copy, copied, tmp_path)


def test_a_copy_that_is_made_in_the_middle_goes_on_from_there(stores, tmp_path):
    store = stores[0]
    messages = []
    recorder = record(store, messages)
    late = tmp_path / "late.sqlite"
    copied = copy_run(store, 1, late)
    recorder.update_run(status=Status.OK, finished_time=20.0)
    recorder.close()
    replay(late, copied, messages)
    assert content(store, 1, tmp_path) == content(late, copied, tmp_path)


def test_what_was_not_sent_is_kept_with_what_it_says(stores):
    store, _, _ = stores
    messages = []
    record(store, messages).close()
    left = unsent(store)
    assert [(run, number, data) for run, _, number, data in left] == messages
    forget_sent(store, {1: 1})
    assert next(number for _, _, number, _ in unsent(store)) == 2


def test_the_last_event_of_an_end_is_written_with_what_it_left(stores):
    store, _, _ = stores
    written = []
    recorder = record(store, [], written)
    assert written == [{END: 25}, {END: 50}, {END: 51}]
    assert last_received(store, name_of(store)) == {END: 51}
    recorder.received(END, 52)  # which leaves nothing else
    recorder.flush()
    assert last_received(store, name_of(store)) == {END: 52}
    recorder.close()


def test_while_the_store_is_locked_nothing_is_said_to_be_there(stores):
    store, _, _ = stores
    messages, written = [], []
    recorder = record(store, messages, written)
    before = len(messages)
    with closing(sqlite3.connect(store, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        recorder.update_run(error="x")
        recorder.received(END, 60)
        assert not recorder.flush()
        assert (len(messages), len(written)) == (before, 3)
        other.execute("ROLLBACK")
    assert recorder.flush()
    assert written[3:] == [{END: 60}]
    assert len(messages) == before + 1
    recorder.close()


@pytest.mark.parametrize(
    "write",
    [
        SetFlow(FlowRef(0, 9, "main"), {"status": "ok"}),
        SetFlow(FlowRef(7, 1, "main"), {"status": "ok"}),
        SetFlow(FlowRef(0, 1, "main"), {"id": 1}),
    ],
)
def test_what_does_not_fit_is_an_error_and_leaves_nothing(stores, write):
    store, copy, copied = stores
    messages = []
    record(store, messages).close()
    replay(copy, copied, messages[:3])
    with pytest.raises(StoreError, match="does not fit"):
        replay(copy, copied, [(1, 4, ENCODER.encode([write]))])


def test_what_was_synced_stays_through_a_power_cut(stores, tmp_path, monkeypatch):
    store, *_ = stores
    cut = tmp_path / "cut"
    cut.mkdir()

    def synced(descriptor):  # the rest of the disk is as it may be
        (path,) = (
            one for one in tmp_path.iterdir() if one.stat().st_ino == os.fstat(descriptor).st_ino
        )
        (cut / path.name).write_bytes(path.read_bytes())

    with closing(record(store, [])):
        (cut / store.name).write_bytes(store.read_bytes())
        monkeypatch.setattr(os, "fsync", synced)
        sync(store)
    assert last_received(cut / store.name, name_of(store)) == {END: 51}
    sync(store)  # whose log is gone with the last connection
