"""What is said below the table of a comparison."""

from msgspec.structs import replace
from report.sample_report import ONE, REPORT, RUN, SUMMARY

from benchctl.analysis.compare import Comparison, Verdict
from benchctl.report.comparison import compare_reports, explanation, interval, signed


def one(metric="throughput_bps", verdict=Verdict.SAME, **more):
    return Comparison(
        {"streams": 2}, "main", "send", metric, (1.0,), (2.0,), 1.0, 0.5, 1.5, verdict,
        **{"family": 8, **more},
    )  # fmt: skip


def test_what_verdicts_hold_for_is_said():
    assert explanation([one()]) == [
        "any false verdict among 8 figures has a chance of 5 % (Holm); an interval is of its figure"
        " alone"
    ]
    assert "5 % of the verdicts among 8 figures may be false" in explanation([one()], "bh")[0]
    assert explanation([one(family=0, verdict=Verdict.FEW)]) == []


def test_both_families_are_named_if_both_are_shown():
    (line,) = explanation([one(), one("packets_sent", family=200)])
    assert "among 8 and, apart from them, 200 figures" in line


def test_borrowed_variances_are_counted():
    assert explanation([one(borrows=True), one()])[1].startswith("1 of 2 figures borrow")


def test_the_figure_that_needs_the_fewest_repeats_is_named():
    lines = explanation([one(repeats_needed=40), one("rtt_s", repeats_needed=7)])
    assert lines[1] == (
        "of the figures without a verdict, RTT of main at streams=2 may differ most: 7 repeats of"
        " each run would show it with a chance of 80 %"
    )


def test_differences_of_ratios_are_in_percentage_points():
    loss = Comparison(
        {}, "main", "send", "loss_ratio", (0.0,), (0.02,), 0.02, 0.01, 0.03, Verdict.WORSE
    )
    assert signed("loss_ratio", 0.02) == "+2 pp"
    assert interval(loss) == "+1 … +3 pp"
    assert signed("throughput_bps", 2e6) == "+2.00 Mbit/s"


BARE = replace(
    REPORT,
    run=replace(RUN, settings=replace(RUN.settings, values={})),
    summary=[replace(row, point={}) for row in SUMMARY if row.point == ONE],
)
"""A run without axes, such as one that was imported."""


def test_a_run_without_axes_is_compared_with_one_point_of_another():
    of_one_point = replace(REPORT, summary=[row for row in SUMMARY if row.point == ONE])
    for a, b in ((BARE, of_one_point), (of_one_point, BARE)):
        (compared,) = compare_reports(a, b)
        assert [(one.point, bool(one.a), bool(one.b)) for one in compared] == [
            ({}, True, True) for _ in BARE.summary
        ]


def test_an_axis_that_tells_figures_apart_is_never_left_out():
    (compared,) = compare_reports(BARE, REPORT)
    assert not any(one.a and one.b for one in compared)
