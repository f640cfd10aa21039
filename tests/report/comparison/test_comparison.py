"""What is said below the table of a comparison."""

from msgspec.structs import replace
from report.sample_report import ONE, REPORT, RUN, SUMMARY

from benchctl.analysis.runs.compare import Comparison, Verdict
from benchctl.report.comparison.comparison import (
    arranged,
    compare_reports,
    comparison_table,
    explanation,
    full_verdict,
    interval,
    signed,
    verdict_text,
)


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


def test_ratios_have_no_change_in_per_cent_beside_their_points():
    loss = replace(one("loss_ratio"), a=(0.01,), b=(0.02,), difference=0.01)
    rate = one()
    table = comparison_table([loss, rate])
    place = table.heads.index("change")
    assert [row[place] for row in table.rows] == ["", "+100 %"]
    assert table.rows[0][table.heads.index("difference")] == "+1 pp"


def test_a_figure_that_one_run_lacks_is_only_in_the_other():
    nothing = {"difference": None, "low": None, "high": None}
    assert verdict_text(replace(one(verdict=Verdict.FEW), a=(), **nothing)) == "only in B"
    assert verdict_text(replace(one(verdict=Verdict.FEW), b=(), **nothing)) == "only in A"
    assert verdict_text(replace(one(verdict=Verdict.FEW), a=(), **nothing), "D") == "only in D"
    assert verdict_text(one(verdict=Verdict.BETTER)) == "better"


def test_a_verdict_that_is_not_certain_says_why():
    two = replace(one(verdict=Verdict.APART), a=(1.0, 1.1), b=(2.0, 2.1))
    assert full_verdict(two) == "apart, but not certain among 8 figures with 2 repeats"
    uneven = replace(two, family=1, b=(1.0,))
    assert full_verdict(uneven) == "apart, but not certain with 1 and 2 repeats"
    varying = one(verdict=Verdict.VARYING, disturbed=0.1)
    assert full_verdict(varying) == "too few repeats for figures that vary like these"
    assert "about 10 % of the trials may be disturbed" in explanation([varying, one()])[1]
    assert comparison_table([varying]).rows[0][-1] == full_verdict(varying)


def test_the_main_metrics_come_first_and_what_throughput_says_is_left_out():
    names = ("sent_bps", "retransmits", "rtt_s", "throughput_bps", "cwnd_bytes")
    shown = arranged([one(name) for name in names], RUN)
    assert [each.metric for each in shown] == ["throughput_bps", "rtt_s", "retransmits"]
    every = arranged([one(name) for name in names], RUN, every=True)
    assert [each.metric for each in every][:3] == ["throughput_bps", "sent_bps", "rtt_s"]
    assert len(every) == 5
    # Where nothing says what arrived, the sender's count stands for it.
    assert [each.metric for each in arranged([one("sent_bps")], RUN)] == ["sent_bps"]


def test_the_largest_effects_come_first_on_request():
    effects = (0.5, None, -3.0, 2.0)
    shown = arranged([one(effect=effect) for effect in effects], RUN, by_effect=True)
    assert [each.effect for each in shown] == [-3.0, 2.0, 0.5, None]


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
