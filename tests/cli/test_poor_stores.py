"""``compare``, ``trend`` and ``baseline`` where there is little: no run, no figure, one repeat."""

import json
import sqlite3
import sys
from contextlib import closing

import pytest
from store.store_support import FIVE_MBIT, NOW, measured_run, new_run

from benchctl.cli.main import app
from benchctl.errors import BenchctlError, StoreError, UsageError


@pytest.fixture
def store(tmp_path):
    return tmp_path / "runs.sqlite"


@pytest.fixture
def ask(store, capsys):
    """Return a function that runs a command in this process; returns what it prints."""

    def ask(*words):
        app.main([*words, "--store", str(store)], prog_name="benchctl", standalone_mode=False)
        return capsys.readouterr().out

    return ask


def entries(ask, *words):
    return [json.loads(line) for line in ask(*words, "--json").splitlines()]


@pytest.mark.parametrize(
    "words", [("compare", "last", "baseline"), ("trend", "p"), ("baseline", "set")], ids=" ".join
)
def test_a_store_that_is_not_there_or_empty_is_named(ask, store, words):
    with pytest.raises(StoreError, match="no runs"):
        ask(*words)
    run = measured_run(store, {1: FIVE_MBIT})
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("DELETE FROM run")
    with pytest.raises(UsageError):
        ask(*words)
    assert run


@pytest.mark.parametrize("words", [("runs",), ("show",), ("run", "quickstart")], ids=" ".join)
def test_a_directory_is_no_store(ask, store, words):
    store.mkdir()
    with pytest.raises(StoreError, match="this is a directory") as told:
        ask(*words)
    assert told.value.hint == f"name a file in it: --store {store / 'runs.sqlite'}"
    assert [*store.iterdir()] == []


def test_a_store_without_a_baseline_shows_an_empty_list(ask, store):
    measured_run(store, {1: FIVE_MBIT})
    assert len(ask("baseline", "show").splitlines()) == 1
    assert entries(ask, "baseline", "show") == []


def test_runs_of_other_profiles_share_no_figure_and_have_no_verdict(ask, store):
    first = measured_run(store, {1: FIVE_MBIT})
    second = measured_run(store, {7: FIVE_MBIT}, profile="q")
    assert {one["verdict"] for one in entries(ask, "compare", first, second)} == {"too little data"}
    assert "profile" in ask("compare", first, second)
    assert ask("trend", "q").count(second) == 1
    assert first not in ask("trend", "q")


def test_runs_whose_trials_all_failed_have_nothing_to_compare(ask, store):
    failed = measured_run(store, {1: [None, None]})
    measured = measured_run(store, {1: FIVE_MBIT}, now=NOW + 1)
    assert entries(ask, "compare", failed, failed) == []
    assert "nothing was measured\n" in ask("compare", failed, failed)
    _, planned = new_run(store)
    assert "nothing was measured yet\n" in ask("compare", failed, planned)
    (one,) = entries(ask, "compare", failed, measured)
    assert (one["mean_a"], one["n_b"], one["verdict"]) == (None, 5, "too little data")
    assert [one["run"] for one in entries(ask, "trend", "p")] == [measured]
    assert ask("baseline", "set", failed) == f"{failed}\n"
    assert entries(ask, "compare", "baseline", measured)[0]["mean_a"] is None


def test_one_repeat_of_each_run_has_a_difference_and_no_verdict(ask, store):
    names = [measured_run(store, {1: [value]}, now=NOW + value) for value in (90, 100)]
    (one,) = entries(ask, "compare", *names)
    assert (one["difference"], one["ci95_low"], one["verdict"]) == (10, None, "too little data")
    assert "too little data" in ask("compare", *names, "--fail-on", "throughput_bps worse by 1%")


def test_a_metric_that_no_run_has_is_named_with_those_that_are_there(ask, store):
    run = measured_run(store, {1: FIVE_MBIT})
    with pytest.raises(UsageError, match='no metric "rtt_s" was measured') as told:
        ask("trend", "p", "--metric", "rtt_s")
    assert told.value.hint == "measured are: throughput_bps"
    with pytest.raises(UsageError, match='no metric "rtt_s" was compared'):
        ask("compare", run, run, "--fail-on", "rtt_s worse by 5%")
    # It has no percentiles.
    assert "nothing was measured" in ask("trend", "p", "--metric", "throughput_bps.p95")


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), "nan", b"\0"])
def test_a_figure_that_is_no_number_is_damage_and_no_verdict(ask, store, value):
    names = [measured_run(store, {1: FIVE_MBIT}, now=NOW + place) for place in (0, 1)]
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("UPDATE figure SET value = ? WHERE flow_id = 2", (value,))
    for words in (("compare", *names), ("trend", "p")):
        with pytest.raises(BenchctlError, match="flow 2: a figure"):
            ask(*words)


def test_none_of_them_needs_a_library_for_numbers(ask, store, monkeypatch):
    names = [measured_run(store, {1: FIVE_MBIT}, now=NOW + place) for place in range(20)]
    for library in ("numpy", "scipy", "pandas"):
        monkeypatch.setitem(sys.modules, library, None)
    assert len(entries(ask, "compare", *names[:2])) == 1
    assert len(entries(ask, "trend", "p")) == 20
    assert ask("baseline", "set") == f"{names[-1]}\n"
