"""``benchctl compare`` and ``benchctl baseline``: which runs, side by side, and exit codes."""

import json

import pytest
from store.store_support import FIVE_MBIT as FIVE
from store.store_support import NOW, measured_run


def slower(by):
    return [value * (1 - by) for value in FIVE]


@pytest.fixture
def three(benchctl):
    """Return the names of three runs of a profile: the second as fast, the third 20 % slower."""
    return [
        measured_run(benchctl.store, {1: values, 2: FIVE}, tags=tags, now=NOW + place)
        for place, (values, tags) in enumerate(
            [(FIVE, ["before"]), (FIVE, ["wired"]), (slower(0.2), ["wired"])]
        )
    ]


def verdicts(benchctl, *words):
    result = benchctl("compare", *words, "--json")
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_run_is_named_by_its_tag_its_name_or_as_the_last(benchctl, three):
    (one, other) = verdicts(benchctl, "before", "last")
    assert (one["a"], one["b"], one["verdict"]) == (three[0], three[2], "worse")
    assert (other["point"], other["verdict"]) == ({"n": 2}, "no difference seen")
    assert verdicts(benchctl, three[0][-6:], three[2])[0]["b"] == three[2]


def test_a_tag_of_several_runs_is_rejected_with_their_names(benchctl, three):
    result = benchctl("compare", "before", "wired")
    assert result.returncode == 2
    assert 'the tag "wired" is that of 2 runs\n' in result.stderr
    assert f"such as {three[2]}, {three[1]}" in result.stderr


def test_several_runs_stand_side_by_side_and_share_one_family(benchctl, three):
    result = benchctl("compare", *three)
    lines = result.stdout.splitlines()
    assert [line.split()[:2] for line in lines[:3]] == [
        [letter, name] for letter, name in zip("ABC", three, strict=True)
    ]
    head = next(line for line in lines if line.startswith("n "))
    assert head.split() == ["n", "flow", "metric", "repeats", "A", "B", "B", "-", "A", "change",
                            "verdict", "C", "C", "-", "A", "change", "verdict"]  # fmt: skip
    row = next(line for line in lines if line.startswith("1 "))
    assert row.index("no difference seen") < row.index("-19.0 Mbit/s ±") < row.index("worse")
    assert "among 4 figures" in result.stdout
    compared = verdicts(benchctl, *three)
    assert [(one["b"], one["family"]) for one in compared] == [
        (name, 4) for name in three[1:] for _ in range(2)
    ]


def test_the_largest_effects_come_first_on_request(benchctl, three):
    def points(*options):
        lines = benchctl("compare", three[0], three[2], *options).stdout.splitlines()
        return [line[0] for line in lines if " main " in line]

    assert points() == ["1", "2"]
    assert points("--sort", "effect") == ["1", "2"]
    turned = measured_run(benchctl.store, {1: FIVE, 2: slower(0.2)}, now=NOW + 9)
    lines = benchctl("compare", three[0], turned, "--sort", "effect").stdout.splitlines()
    assert [line[0] for line in lines if " main " in line] == ["2", "1"]


def test_the_repeats_of_either_run_are_shown(benchctl, three):
    fewer = measured_run(benchctl.store, {1: FIVE[:3]}, now=NOW + 9)
    row, lacking = (
        line for line in benchctl("compare", three[0], fewer).stdout.splitlines() if "main" in line
    )
    assert " 5, 3 " in row
    assert " 5, 0 " in lacking
    assert lacking.endswith("only in A")


def test_the_run_that_others_are_compared_with_is_chosen(benchctl, three):
    compared = verdicts(benchctl, three[0], three[1], "--against", "last")
    assert {(one["a"], one["b"]) for one in compared} == {(three[2], name) for name in three[:2]}
    assert verdicts(benchctl, "before", "--against", "last")[0]["verdict"] == "better"


def test_one_run_is_no_comparison(benchctl, three):
    result = benchctl("compare", "last")
    assert result.returncode == 2
    assert "a comparison needs two runs" in result.stderr


def test_what_differs_stands_above_the_table_for_every_run(benchctl, three):
    measured_run(benchctl.store, {1: FIVE}, text="streams = 2", tags=["other"], now=NOW + 9)
    lines = benchctl("compare", three[0], three[1], "other").stdout.splitlines()
    assert "text of the profile  -   -   streams = 2" in lines
    assert "trials               10  10  5" in lines


@pytest.mark.parametrize(
    ("limit", "code"),
    [
        ("throughput_bps worse by 5%", 1),
        ("throughput_bps worse by 25%", 0),
        ("throughput_bps better by 1%", 0),
    ],
)
@pytest.mark.parametrize("more", [[], ["--correction", "bh"], ["--json"]])
def test_the_exit_code_says_whether_a_limit_was_broken(benchctl, three, limit, code, more):
    assert benchctl("compare", *three, "--fail-on", limit, *more).returncode == code


def test_a_limit_is_not_broken_without_a_verdict_and_a_wrong_one_is_rejected(benchctl, three):
    measured_run(benchctl.store, {1: [70e6], 2: FIVE[:1]}, tags=["once"], now=NOW + 9)
    measured_run(benchctl.store, {1: [95e6], 2: FIVE[:1]}, tags=["first"], now=NOW + 10)
    limit = ("--fail-on", "throughput_bps worse by 5%")
    assert benchctl("compare", "first", "once", *limit).returncode == 0
    assert benchctl("compare", "before", "last", "--fail-on", "rtt_s worse by 5%").returncode == 2
    assert benchctl("compare", "before", "last", "--fail-on", "a bit worse").returncode == 2


def test_a_strict_limit_is_broken_unless_such_a_change_is_excluded(benchctl, three):
    limit = ("--fail-on", "throughput_bps worse by 5%", "--strict")
    assert benchctl("compare", three[0], three[1], *limit).returncode == 0
    fewer = measured_run(benchctl.store, {1: [80e6, 110e6, 95e6], 2: FIVE}, now=NOW + 9)
    result = benchctl("compare", three[0], fewer, *limit)
    assert result.returncode == 1
    assert result.stdout.endswith("worse by 5 % cannot be excluded: throughput of main at n=1\n"), (
        result.stdout
    )
    assert benchctl("compare", three[0], fewer, *limit[:2]).returncode == 0
    lacking = measured_run(benchctl.store, {1: FIVE}, now=NOW + 10)
    assert benchctl("compare", three[0], lacking, *limit, "--json").returncode == 1
    assert benchctl("compare", lacking, three[0], *limit).returncode == 0
    result = benchctl("compare", *three, "--strict")
    assert (result.returncode, "--strict needs --fail-on" in result.stderr) == (2, True)


def test_figures_that_are_the_same_within_a_share_are_named(benchctl, three):
    shown = benchctl("compare", three[0], three[2], "--within", "5%").stdout
    assert [line.rpartition("  ")[2] for line in shown.splitlines() if " main " in line] == [
        "worse", "same within 5 %",
    ]  # fmt: skip
    found = verdicts(benchctl, three[0], three[2], "--within", "30%")
    assert [one["same_within"] for one in found] == [0.3, 0.3]
    for wrong in ("5", "0%"):
        assert benchctl("compare", *three, "--within", wrong).returncode == 2


def test_benjamini_hochberg_finds_more_than_holm(benchctl):
    # Four of eight figures differ by a little more than their scatter shows.
    base = {n: [100e6, 101e6, 99e6] for n in range(8)}
    moved = {n: [(100 + shift) * 1e6 for shift in (2.4 * (n < 4) + d for d in (0, 1, -1))]
             for n in range(8)}  # fmt: skip
    names = [measured_run(benchctl.store, one) for one in (base, moved)]
    found = {
        how: [one["verdict"] for one in verdicts(benchctl, *names, "--correction", how)]
        for how in ("holm", "bh")
    }
    assert found["holm"].count("better") < found["bh"].count("better") == 4
    text = benchctl("compare", *names, "--correction", "bh").stdout
    assert "5 % of the verdicts among 8 figures may be false (Benjamini-Hochberg)" in text


# --- the baseline --------------------------------------------------------------------------------


def test_a_baseline_is_kept_shown_and_compared_with(benchctl, three):
    assert benchctl("baseline", "show").stdout.splitlines()[1:] == []
    assert benchctl("baseline", "set", "before").stdout == f"{three[0]}\n"
    shown = benchctl("baseline", "show", "p").stdout.splitlines()
    assert [line.split()[0] for line in shown[1:]] == [three[0]]
    assert "before, baseline" in shown[1]
    assert json.loads(benchctl("baseline", "show", "--json").stdout)["id"] == three[0]
    assert verdicts(benchctl, "baseline", "last")[0]["a"] == three[0]
    assert benchctl("show", "baseline").stdout.startswith(f"run {three[0]}")


def test_another_baseline_takes_the_place_of_an_older_or_a_newer_one(benchctl, three):
    other = measured_run(benchctl.store, {1: FIVE}, profile="q", tags=["baseline"])
    for name in (three[2], three[0], three[1]):
        assert benchctl("baseline", "set", name).returncode == 0
        shown = benchctl("baseline", "show", "--json").stdout.splitlines()
        assert {json.loads(line)["id"] for line in shown} == {name, other}
        assert benchctl("runs", "--tag", "baseline").stdout.count("baseline") == 2


def test_the_baseline_is_that_of_the_profile_of_the_other_runs(benchctl, three):
    other = measured_run(benchctl.store, {1: FIVE}, profile="q", tags=["baseline"])
    without = benchctl("compare", "baseline", three[0])
    assert (without.returncode, "p has no baseline" in without.stderr) == (2, True)
    benchctl("baseline", "set", three[0])
    assert verdicts(benchctl, "baseline", three[1])[0]["a"] == three[0]
    assert verdicts(benchctl, "baseline", other)[0]["a"] == other
    result = benchctl("show", "baseline")
    assert result.returncode == 2
    assert "2 profiles have a baseline: " in result.stderr


def test_a_deleted_baseline_is_none(benchctl, three):
    benchctl("baseline", "set", three[0])
    assert benchctl("runs", "delete", "baseline", "--yes").stdout == f"{three[0]}\n"
    result = benchctl("compare", "baseline", "last")
    assert result.returncode == 2
    assert "p has no baseline\n  set one: benchctl baseline set RUN" in result.stderr
    assert 'no profile "p"' in benchctl("baseline", "show", "p").stderr


def test_the_newest_of_several_tagged_runs_is_the_baseline(benchctl, three):
    for name in three[:2]:
        benchctl("runs", "tag", name, "baseline")
    assert verdicts(benchctl, "baseline", "last")[0]["a"] == three[1]


def test_a_store_that_cannot_be_written_keeps_its_baseline_and_says_so(benchctl, three):
    benchctl("baseline", "set", three[0])
    result = benchctl("baseline", "set", "last", "--store", "/nowhere/runs.sqlite")
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert verdicts(benchctl, "baseline", three[1])[0]["a"] == three[0]
