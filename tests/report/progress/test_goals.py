"""The goals of a run name each figure once, and say how many trials there may be."""

from msgspec.structs import replace
from report.sample_report import ONE, RUN, TRIALS, row

from benchctl.report.progress.goals import bounds_of_trials, goals_of, has_goals, tally_of
from benchctl.report.report import report_of
from benchctl.run.condition import parse_condition
from benchctl.run.planned import Search, Until

UNTIL = replace(RUN, settings=replace(RUN.settings, until=Until("throughput_bps", 0.02, 3, 9)))
SEARCH = replace(
    RUN,
    settings=replace(
        RUN.settings,
        search=Search(
            "rate", {"main": "rate"}, 1e6, 1e9, parse_condition("loss_ratio < 1%"), 0.1, 1, 20
        ),
    ),
)


def test_both_directions_of_a_flow_are_told_apart():
    there, back = (row(ONE, "throughput_bps", 9e7, direction=way) for way in ("send", "receive"))
    report = replace(report_of(UNTIL, TRIALS[:1]), summary=[there, back])
    assert [goal.what for goal in goals_of(report)] == [
        "throughput of bulk at streams=1, to=paris (send)",
        "throughput of bulk at streams=1, to=paris (receive)",
    ]
    alone = replace(report, summary=[there])
    assert [goal.what for goal in goals_of(alone)] == ["throughput of bulk at streams=1, to=paris"]


def test_a_run_without_goals_has_none():
    assert not has_goals(RUN)
    assert goals_of(report_of(RUN, TRIALS)) == []
    assert tally_of([]) == ""
    assert bounds_of_trials(RUN, [("a", 1)]) is None


def test_the_fewest_and_most_trials_are_those_of_each_point_and_of_each_search():
    planned = [("a", 1), ("b", 1), ("a", 2), ("b", 2), ("a", 2)]
    assert bounds_of_trials(UNTIL, planned) == (2 * 3, 2 * 9)
    assert bounds_of_trials(SEARCH, planned) == (4, 4 * 20)


def test_an_interval_wider_than_the_figure_has_no_figure_of_its_own():
    wide = row(ONE, "throughput_bps", 9e7)
    wide = replace(wide, values=(8e7, 10e7))
    (goal,) = goals_of(replace(report_of(UNTIL, TRIALS[:1]), summary=[wide]))
    assert goal.figures == "over ±200 % now, ±2 % wanted"
