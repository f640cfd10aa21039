"""``benchctl import`` of another store: every run as it is there, once."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from imports.reports import imported, report, write
from packets.slow import slow
from report.whole import whole
from store.store_support import NOW, add_flow, add_sample, figures, measured_run, new_run

from benchctl.errors import StoreDamagedError
from benchctl.packets.findings import connection_entry
from benchctl.packets.trace import read_trace
from benchctl.report.report import StoredRun
from benchctl.run.record import FlowEvent, Happening, RecordedPackets
from benchctl.store.read import Reader
from benchctl.store.record import Recorder

OLD = Path(__file__).parents[1] / "store" / "version-0.1.0.db"


def exported(store, name, form):
    with closing(Reader(store)) as reader:
        return whole(form, StoredRun(reader, reader.find(name)))


@pytest.fixture
def stores(tmp_path):
    """Two stores: one with a run that has one of everything, and one with other runs."""
    one, other = tmp_path / "one.sqlite", tmp_path / "other.sqlite"
    for n in range(3):
        measured_run(other, {1: (1e6 + n, 2e6)}, now=NOW - 100 + n)
    trace = tmp_path / "slow.pcap"
    trace.write_bytes(slow())
    name = measured_run(one, {1: (95e6, 96e6), 2: (None,)}, tags=("old",), facts={"kernel": "6.1"})
    with closing(Recorder(one, 1)) as recorder:
        flow_id = add_flow(recorder, 2, attempt=2)
        for n in range(5):
            add_sample(recorder, flow_id, n / 10, {"throughput_bps": n + 1 / 3, "tcp_rtt_s": 1e-7})
        recorder.add_figures(flow_id, figures())
        found = [connection_entry(1, read_trace(trace).connections[0])]
        packets = RecordedPackets("h1", "one.sqlite.packets/a", 7, 0, 0, NOW, tuple(found))
        recorder.update_flow(flow_id, captures=[packets])
        recorder.add_events(
            flow_id, [FlowEvent("send", "throughput_bps", Happening.DROP, 1.0, None, 2.0, 1.0)]
        )
        recorder.add_note("it rained", "remark", NOW, None, None)
        recorder.add_note("of a flow", "warning", NOW, 2, flow_id)
    return one, other, name


@pytest.mark.parametrize("form", ["json", "jsonl", "samples", "influx", "csv", "parquet"])
def test_a_run_is_the_same_in_the_other_store(stores, form):
    one, other, name = stores
    before = exported(one, name, form)
    ((run,), left) = imported(other, one)
    assert (run.name, run.trials, run.failed, left) == (name, 3, 1, [])
    assert exported(other, name, form) == before
    with closing(Reader(other)) as reader:
        assert len(reader.runs()) == 4
        assert [note.text for note in reader.notes(4)] == ["it rained", "of a flow"]


def test_the_file_of_an_export_comes_back_as_it_was(stores, tmp_path):
    one, _, name = stores
    (tmp_path / "run.sqlite").write_bytes(exported(one, name, "sqlite"))
    third = tmp_path / "third.sqlite"
    imported(third, tmp_path / "run.sqlite")
    assert json.loads(exported(third, name, "json")) == json.loads(exported(one, name, "json"))


def test_an_imported_run_keeps_its_origin_through_a_store(tmp_path):
    one, other = tmp_path / "one.sqlite", tmp_path / "other.sqlite"
    path = write(tmp_path / "a.json", report())
    ((run,), _) = imported(one, path)
    imported(other, one)
    assert exported(other, run.name, "json") == exported(one, run.name, "json")
    assert [left.why for left in imported(other, path)[1]] == [f"is there already: {run.name}"]


@pytest.mark.parametrize("name", ["../victim", "..", ".", "/victim", ".hidden", "a\0b", ""])
def test_no_name_of_a_run_in_a_store_of_others_leads_out_of_our_folders(tmp_path, stores, name):
    one, other, _ = stores
    victim = tmp_path / "victim" / "file"
    victim.parent.mkdir()
    victim.write_text("precious")
    (tmp_path / "one.sqlite.packets").mkdir()
    with closing(sqlite3.connect(one)) as connection, connection:
        connection.execute("UPDATE run SET name = ?", [name])
    runs, (left,) = imported(other, one)
    assert (runs, left.why) == ([], "cannot be read as a store: run 1: name")
    with closing(Reader(one)) as reader, pytest.raises(StoreDamagedError, match="run 1: name"):
        reader.find(name)
    assert victim.exists()


def test_a_run_that_is_there_is_not_imported_again(stores):
    one, other, name = stores
    imported(other, one)
    runs, (left,) = imported(other, one)
    assert runs == []
    assert (left.file, left.why, left.is_fault) == (f"{one} {name}", "is there already", False)


def test_of_two_imports_of_a_store_at_once_one_brings_its_runs(stores, monkeypatch):
    one, other, name = stores
    imported(other, one)
    monkeypatch.setattr(Reader, "names", lambda self: {})  # it looked before the other had ended
    runs, (left,) = imported(other, one)
    assert runs == []
    assert (left.file, left.why, left.is_fault) == (f"{one} {name}", "is there already", False)


def test_tags_are_added_to_those_that_a_run_has(stores):
    one, other, _ = stores
    imported(other, one, tags=("imported",))
    with closing(Reader(other)) as reader:
        assert reader.run(4).tags == ("old", "imported")


def test_a_store_of_an_earlier_program_is_imported(tmp_path):
    runs, left = imported(tmp_path / "new.sqlite", OLD)
    assert runs
    assert left == []
    new = tmp_path / "new.sqlite"
    for run in runs:
        assert exported(new, run.name, "json") == exported(OLD, run.name, "json")


def test_a_store_that_is_damaged_or_of_others_ends_in_a_line(stores, tmp_path):
    one, other, _ = stores
    (tmp_path / "cut.sqlite").write_bytes(one.read_bytes()[:10_000])
    with closing(sqlite3.connect(tmp_path / "foreign.sqlite")) as foreign:
        foreign.execute("CREATE TABLE bookmarks (url)")
        foreign.commit()
    runs, left = imported(other, tmp_path / "cut.sqlite", tmp_path / "foreign.sqlite")
    assert runs == []
    assert [one.why.startswith("cannot be read as a store: ") for one in left] == [True, True]


def test_a_view_that_has_no_end_is_not_asked(stores, tmp_path):
    one, other, _ = stores
    with closing(sqlite3.connect(one)) as hostile:
        hostile.executescript(
            "DROP TABLE note; CREATE VIEW note AS WITH RECURSIVE n(x) AS"
            " (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS id, 1 AS run_id FROM n;"
        )
    runs, (left,) = imported(other, one)
    assert runs == []
    assert "note is no table" in left.why


def test_a_run_that_is_being_measured_stays_where_it_is(tmp_path, monkeypatch):
    one, other = tmp_path / "one.sqlite", tmp_path / "other.sqlite"
    _, name = new_run(one)
    monkeypatch.setattr(Reader, "is_alive", lambda self, run: True)  # a process sees no own lock
    runs, (left,) = imported(other, one)
    assert runs == []
    assert (left.file, left.why) == (f"{one} {name}", "is being measured")
