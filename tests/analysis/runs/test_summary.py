import pytest

from benchctl.analysis.runs.summary import Measured, reported_of, summarize
from benchctl.run.planned import Reported
from benchctl.run.record import Figure


def measured(value, metric="throughput_bps", flow="main", direction="send", **point):
    return Measured(point, flow, {(direction, metric): Figure(value, "tool")})


def test_repeats_of_a_point_are_brought_together():
    rows = summarize([measured(10, streams=1), measured(99, streams=2), measured(12, streams=1)])
    assert [(row.point, row.spread.n, row.spread.mean) for row in rows] == [
        ({"streams": 1}, 2, 11),
        ({"streams": 2}, 1, 99),
    ]


REPORTED = [
    Reported(None, None, {}, {"fairness_jain": 0.99}),
    Reported("a", None, {"n": 1}, {"rtt_s": 0.1}),
    Reported("a", "send", {}, {"throughput_bps": 1e6}),
]


@pytest.mark.parametrize(
    ("point", "flow", "direction", "figures"),
    [
        ({"n": 1}, "a", "send", {"fairness_jain": 0.99, "rtt_s": 0.1, "throughput_bps": 1e6}),
        ({"n": 2}, "a", "send", {"fairness_jain": 0.99, "throughput_bps": 1e6}),
        ({"n": 1}, "a", "receive", {"fairness_jain": 0.99, "rtt_s": 0.1}),
        ({"n": 1}, "b", "send", {"fairness_jain": 0.99}),
        ({"n": 1}, None, None, {"fairness_jain": 0.99}),
    ],
)
def test_what_was_reported_is_found_by_flow_direction_and_point(point, flow, direction, figures):
    assert reported_of(REPORTED, point, flow, direction) == figures
