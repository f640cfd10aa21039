"""Deleted runs stay in the trash for 30 days, whole, and come back as they were."""

from contextlib import closing

import pytest
from store.store_support import FIVE_MBIT, NOW, measured_run, new_run

from benchctl.errors import StoreError, UsageError
from benchctl.store.bulk import Bulk
from benchctl.store.captures import captures_of
from benchctl.store.copies import trash
from benchctl.store.copies.trash import KEPT_S, deleted_runs, trash_run, undelete_run
from benchctl.store.read import Reader


@pytest.fixture
def store(tmp_path):
    return tmp_path / "runs.sqlite"


def names(store):
    with closing(Reader(store)) as reader:
        return [*reader.names()]


def records(store, name):
    """Return what a run has, without the ids of its rows."""
    with closing(Reader(store)) as reader, closing(Bulk(store)) as bulk:
        run = reader.find(name)
        trials = [(one.position, one.status, one.point) for one in reader.trials(run.id)]
        rows = bulk.flow_rows(run.id, ["throughput_bps"])
        return run.profile, run.status, trials, [row.figures for row in rows]


def with_packets(store):
    name = measured_run(store, {1: FIVE_MBIT}, intervals=3)
    captures = captures_of(store, name)
    captures.mkdir(parents=True)
    (captures / "1.pcap").write_bytes(b"frames")
    return name, captures


def test_a_deleted_run_is_in_the_trash_with_its_packets_and_comes_back_with_them(store):
    name, captures = with_packets(store)
    _, other = new_run(store, now=NOW + 60)
    before = records(store, name)
    trash_run(store, 1, NOW)
    assert (names(store), deleted_runs(store)) == ([other], [(name, NOW)])
    assert not captures.exists()
    assert undelete_run(store, name[:-2]) == name
    assert records(store, name) == before
    assert (captures / "1.pcap").read_bytes() == b"frames"
    assert not store.with_name(f"{store.name}.trash").exists()


def test_the_next_deletion_removes_what_is_older_than_30_days(store):
    first, second, third = (new_run(store, now=NOW + n)[1] for n in range(3))
    trash_run(store, 1, NOW)
    trash_run(store, 2, NOW + KEPT_S)
    assert [one.name for one in deleted_runs(store)] == [second, first]
    trash_run(store, 3, NOW + KEPT_S + 1)
    assert [one.name for one in deleted_runs(store)] == [third, second]


def test_on_a_full_disk_the_run_stays_where_it_is(store, monkeypatch):
    name, captures = with_packets(store)

    def full(*_):
        raise StoreError("the disk is full")

    monkeypatch.setattr(trash, "copy_run", full)
    with pytest.raises(StoreError) as caught:
        trash_run(store, 1, NOW)
    assert "--for-good" in caught.value.hint
    assert (names(store), deleted_runs(store)) == ([name], [])
    assert captures.exists()
    assert not store.with_name(f"{store.name}.trash").exists()


def test_a_run_that_cannot_be_taken_out_of_the_store_leaves_no_copy(store, monkeypatch):
    name, captures = with_packets(store)

    def busy(*_):
        raise StoreError("locked")

    monkeypatch.setattr(trash, "remove_run", busy)
    with pytest.raises(StoreError, match="locked"):
        trash_run(store, 1, NOW)
    assert (names(store), deleted_runs(store)) == ([name], [])
    assert captures.exists()


def test_what_is_in_the_store_again_only_leaves_the_trash(store):
    """A program that brought it back may have died before it was done."""
    name, captures = with_packets(store)
    trash_run(store, 1, NOW)
    kept = trash._folder(store, name)
    copied = {file.name: file.read_bytes() for file in kept.glob("run.sqlite")}
    undelete_run(store, name)
    kept.mkdir(parents=True)
    for file, octets in copied.items():
        (kept / file).write_bytes(octets)
    assert undelete_run(store, name) == name
    assert (names(store), deleted_runs(store)) == ([name], [])
    assert captures.exists()


def test_a_run_that_is_not_in_the_trash_is_an_error(store):
    new_run(store)
    with pytest.raises(UsageError, match="no deleted run"):
        undelete_run(store, "x")
