"""Every command reports a damaged store in one line, and what is readable is saved."""

import random
import sqlite3
from contextlib import closing

import pytest
from store.store_support import NOW, add_flow, add_sample, figures, new_run

from benchctl.cli.main import app
from benchctl.errors import BenchctlError, UsageError
from benchctl.store.copies.salvage import check, diagnose, salvage
from benchctl.store.read import Reader
from benchctl.store.record import Recorder

COMMANDS = (
    ["runs"], ["show"], ["show", "--trials"], ["show", "--facts"], ["export", "--format", "json"],
    ["export", "--format", "jsonl"], ["export", "--samples"], ["compare", "A", "B"],
    ["trend", "p"], ["baseline", "show"], ["store", "check"],
)  # fmt: skip


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "runs.sqlite"
    for name in ("A", "B"):
        run_id, _ = new_run(path, trials=4)
        with closing(Recorder(path, run_id)) as recorder, closing(Reader(path)) as reader:
            recorder.update_run(status="running", name=name, started_time=NOW, facts={"tools": {}})
            for trial in list(reader.trials(run_id)):
                flow = add_flow(recorder, trial.id, status="ok", effective={"streams": 1})
                for number in range(30):
                    add_sample(recorder, flow, number / 10)
                recorder.add_figures(flow, figures(trial.id))
                recorder.add_note("a word", "info", NOW, trial.id, flow)
                recorder.update_trial(trial.id, status="running", started_time=NOW)
                recorder.update_trial(trial.id, status="ok", finished_time=NOW)
            recorder.update_run(status="ok")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode = DELETE")
    return path


def outcome(args, store, capsys):
    """Run a command in this process; returns its error, or None. Anything else is a traceback."""
    try:
        app.main([*args, "--store", str(store)], prog_name="benchctl", standalone_mode=False)
    except BenchctlError as error:
        return error
    except SystemExit:
        assert args == ["store", "check"]
    finally:
        capsys.readouterr()
    return None


def test_random_damage_gives_one_line_and_never_a_traceback(store, tmp_path, capsys):
    whole = store.read_bytes()
    told = 0
    for seed in range(20):
        rng = random.Random(seed)
        data = bytearray(whole)
        for _ in range(rng.choice([1, 1, 2, 8, 30])):
            data[rng.randrange(len(data))] = rng.randrange(256)
        store.write_bytes(data)
        for args in COMMANDS:
            error = outcome(args, store, capsys)
            told += error is not None
            assert "\n" not in getattr(error, "message", "")
        copy = tmp_path / f"{seed}.sqlite"
        if outcome(["store", "salvage", str(copy)], store, capsys) is None:
            assert check(copy).problems == []
            for args in (["runs"], ["export", "--format", "json"]):
                assert isinstance(outcome(args, copy, capsys), UsageError | None)
    assert told > 20, "the damage is seen"


def change(store, statement):
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute(statement)


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("UPDATE run SET settings = '{' WHERE name = 'A'", "run 1: settings"),
        ("UPDATE run SET settings = replace(settings, 'values', 'valves') WHERE id = 1",
         "run 1: settings"),
        ("UPDATE run SET started_time = 1e300 WHERE id = 1", "run 1: started_time"),
        ("UPDATE run SET status = 'oj' WHERE id = 1", "run 1: status"),
        ("UPDATE trial SET point = 3 WHERE id = 1", "trial 1: point"),
        ("UPDATE flow SET client = '[1]' WHERE id = 1", "flow 1: client[0]"),
        ("UPDATE figure SET value = 'much' WHERE flow_id = 1", "flow 1: a figure"),
        ("UPDATE sample SET data = x'00' WHERE id = 1", "sample 1"),
        ("UPDATE series SET metrics = '[' WHERE id = 1", "series 1"),
    ],
)  # fmt: skip
def test_what_cannot_have_been_written_is_named_and_the_rest_is_counted(store, statement, what):
    change(store, statement)
    error = diagnose(store)
    assert error.message == f"store {store}: damaged: {what}"
    assert error.hint.startswith("what could be read: ")
    assert "benchctl store salvage FILE" in error.hint


def test_a_store_that_is_whole_has_nothing_to_say(store):
    assert diagnose(store) is None
    assert check(store).text() == "2 runs, 8 trials, 8 flows, 240 samples"


def test_a_damaged_run_does_not_hide_the_others(store, capsys):
    change(store, "UPDATE run SET tags = '{' WHERE name = 'A'")
    for options, first in (([], ["run"]), (["--json"], [])):
        with pytest.raises(BenchctlError, match="damaged: run 1: tags") as caught:
            app.main(["runs", *options, "--store", str(store)], standalone_mode=False)
        lines = capsys.readouterr().out.replace('{"id": "B", ', "B ").splitlines()
        assert [line.split()[0] for line in lines] == [*first, "B"]
    assert "1 run, 4 trials, 4 flows, 120 samples" in caught.value.hint
    with closing(Reader(store)) as reader:
        assert reader.find("B").id == 2


def test_a_list_of_runs_needs_only_what_it_shows(store, capsys):
    change(store, "UPDATE run SET settings = '{' WHERE name = 'A'")
    app.main(["runs", "--store", str(store)], standalone_mode=False)
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["run", "B", "A"]
    with pytest.raises(BenchctlError, match="damaged: run 1: settings"):
        app.main(["runs", "--json", "--store", str(store)], standalone_mode=False)
    assert capsys.readouterr().out.startswith('{"id": "B"')


def test_what_is_saved_is_a_store_like_any_other(store, tmp_path):
    change(store, "UPDATE run SET settings = '{' WHERE name = 'A'")
    change(store, "UPDATE sample SET data = x'00' WHERE id = 121")
    found = salvage(store, tmp_path / "saved.sqlite")
    assert found.text() == "1 run, 4 trials, 4 flows, 119 samples"
    with closing(Reader(tmp_path / "saved.sqlite")) as reader:
        (run,) = reader.runs()
        assert (run.name, [t.status for t in reader.trials(run.id)]) == ("B", ["ok"] * 4)
        assert len(list(reader.samples_of_trial(5))) == 29
        assert reader.figures(5) == figures(5)
    with pytest.raises(UsageError, match="already exists"):
        salvage(store, tmp_path / "saved.sqlite")


def test_rows_behind_a_page_that_cannot_be_read_are_found(store):
    with closing(sqlite3.connect(store)) as connection:
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'sample'"
        (root,) = connection.execute(query).fetchone()
    data = bytearray(store.read_bytes())
    root = data[(root - 1) * size : root * size]
    assert root[0] == 5, "the table has several pages (sqlite.org/fileformat2.html, 1.6)"
    cell = int.from_bytes(root[12:14], "big")
    leaf = int.from_bytes(root[cell : cell + 4], "big")
    data[(leaf - 1) * size : leaf * size] = bytes(size)
    store.write_bytes(data)
    found = check(store)
    assert 0 < found.readable["sample"] < 240
    assert found.readable["flow"] == 8
