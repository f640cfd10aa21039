"""``benchctl trend``: one figure over the runs of a profile, and when its level changed."""

import csv
import json
import random
from types import SimpleNamespace

import pytest
from store.store_support import NOW, measured_run

from benchctl.analysis.runs.summary import SummaryRow
from benchctl.analysis.runs.trend import Trend
from benchctl.analysis.statistics import spread
from benchctl.report.trend import trend_table

DAY_S = 86400


def nightly(store, levels, *, profile="p", **facts):
    """Write a run of two points for each level of the first; returns their names."""
    rng = random.Random(14)
    return [
        measured_run(
            store,
            {1: [rng.gauss(level, 5e5) for _ in range(3)], 2: [rng.gauss(5e7, 5e5)] * 3},
            profile=profile,
            now=NOW + night * DAY_S,
            facts={name: values[night] for name, values in facts.items()},
        )
        for night, level in enumerate(levels)
    ]


@pytest.fixture
def slower(benchctl):
    """Return the names of 30 runs; from the 21st on the first point has 80 Mbit/s, not 95."""
    kernels = ["6.1"] * 20 + ["6.12"] * 10
    return nightly(benchctl.store, [95e6] * 20 + [80e6] * 10, kernel=kernels)


def test_a_change_is_found_at_its_run_with_what_else_differs(benchctl, slower):
    result = benchctl("trend", "p", "--metric", "throughput_bps")
    assert result.returncode == 0, result.stderr
    rows = [line for line in result.stdout.splitlines() if line[:2] in ("1 ", "2 ")]
    assert len(rows) == 60
    (changed,) = [row for row in rows if "worse" in row]
    assert slower[20] in changed
    assert "±" in changed
    assert f" Mbit/s with run {slower[20]}; confidence 99.9 % or more\n" in result.stdout
    assert "\n  differs: kernel: 6.1 -> 6.12\n" in result.stdout


def test_the_figures_are_those_of_each_run_as_json_and_csv(benchctl, slower):
    entries = [json.loads(line) for line in benchctl("trend", "p", "--json").stdout.splitlines()]
    assert [one["run"] for one in entries if one["point"] == {"n": 1}] == slower
    (changed,) = [one for one in entries if one["change"]]
    assert (changed["run"], changed["change"]["verdict"]) == (slower[20], "worse")
    rows = list(csv.DictReader(benchctl("trend", "p", "--csv").stdout.splitlines()))
    assert [(row["run"], float(row["mean"]), row["n"]) for row in rows] == [
        (one["run"], one["mean"], "3") for one in entries
    ]
    assert [row["verdict"] for row in rows if row["verdict"]] == ["worse"]
    summary = json.loads(benchctl("export", slower[0], "--format", "json").stdout)["summary"]
    assert entries[0]["mean"] == summary[0]["mean"]


@pytest.mark.parametrize(
    ("limit", "code"),
    [("throughput_bps worse by 5%", 1), ("throughput_bps worse by 50%", 0),
     ("throughput_bps better by 5%", 0)],
)  # fmt: skip
def test_the_newest_change_breaks_a_limit(benchctl, slower, limit, code):
    assert benchctl("trend", "p", "--fail-on", limit).returncode == code


def test_a_regression_that_was_mended_breaks_none(benchctl):
    nightly(benchctl.store, [95e6] * 20 + [80e6] * 20 + [95e6] * 20)
    result = benchctl("trend", "p", "--fail-on", "throughput_bps worse by 5%")
    assert (result.returncode, result.stdout.count(" worse")) == (0, 1)


def test_runs_that_scatter_alike_show_no_change(benchctl):
    nightly(benchctl.store, [95e6] * 40)
    assert "went from" not in benchctl("trend", "p").stdout


def test_one_run_is_shown_and_too_few_for_changes(benchctl):
    (name,) = nightly(benchctl.store, [95e6])
    result = benchctl("trend", "p", "--fail-on", "throughput_bps worse by 1%")
    assert result.returncode == 0
    assert name in result.stdout
    assert "changes are looked for from 20 runs on; there are 1\n" in result.stdout


def test_failed_trials_are_no_figures_and_their_runs_stay(benchctl):
    measured_run(benchctl.store, {1: [None, 95e6], 2: [None]}, now=NOW)
    measured_run(benchctl.store, {1: [None]}, now=NOW + DAY_S)
    entries = [json.loads(line) for line in benchctl("trend", "p", "--json").stdout.splitlines()]
    assert [(one["point"], one["n"], one["mean"]) for one in entries] == [({"n": 1}, 1, 95e6)]
    measured_run(benchctl.store, {1: [None]}, profile="none")
    result = benchctl("trend", "none")
    assert (result.returncode, "nothing was measured" in result.stdout) == (0, True)


def test_what_is_not_there_is_rejected(benchctl, slower):
    for words, message in (
        (["q"], 'no profile "q"\n  profiles are: p'),
        (["p", "--metric", "throughput"], 'no metric "throughput" was measured'),
        (["p", "--metric", "rtt_s.p59"], 'no aggregate "p59"'),
        (["p", "--since", "2030-01-01"], "no run of p has ended"),
        (["p", "--fail-on", "rtt_s worse by 5%"], 'no metric "rtt_s" was compared'),
        (["p", "--json", "--csv"], "exclude each other"),
    ):
        result = benchctl("trend", *words)
        assert result.returncode == 2, words
        assert message in result.stderr


def test_a_store_without_runs_says_so(benchctl):
    result = benchctl("trend", "p")
    assert (result.returncode, "there are no runs yet" in result.stderr) == (2, True)


def test_a_profile_is_named_by_a_part_or_by_its_file_and_runs_by_their_time(benchctl):
    names = nightly(benchctl.store, [95e6] * 3, profile="atlas")
    assert names[0] in benchctl("trend", "atl").stdout
    shown = benchctl("trend", "here/atlas.toml", "--since", "2026-11-22").stdout
    assert [name in shown for name in names] == [False, True, True]


def test_an_axis_named_as_a_column_has_another_name_there():
    rows = [SummaryRow({"flow": name}, name, "send", "rtt_s", [1], spread([1.0])) for name in "ab"]
    trends = [Trend({0: row}, []) for row in rows]
    run = SimpleNamespace(name="r", started_time=0.0, created_time=0.0)
    assert trend_table([run], trends).heads[:3] == ("flow", "of flow", "run")
