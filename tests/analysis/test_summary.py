import pytest

from benchctl.analysis.figures import Figure
from benchctl.analysis.summary import Measured, judge, summarize


def measured(value, metric="throughput_bps", flow="main", direction="send", **point):
    return Measured(point, flow, {(direction, metric): Figure(value, "tool")})


def test_repeats_of_a_point_are_brought_together():
    rows = summarize([measured(10, streams=1), measured(99, streams=2), measured(12, streams=1)])
    assert [(row.point, row.spread.n, row.spread.mean) for row in rows] == [
        ({"streams": 1}, 2, 11),
        ({"streams": 2}, 1, 99),
    ]


@pytest.mark.parametrize(
    ("wanted", "met"),
    [
        ({"at_least": 5}, [True, True]),
        ({"at_least": 50}, [False, True]),
        ({"at_most": 50}, [True, False]),
        ({"at_least": 5, "where": {"streams": 2}}, [True]),
        ({"at_least": 5, "flow": "other"}, [False]),
        ({"at_least": 5, "metric": "rtt_s"}, [False]),
    ],
)
def test_expectations_are_held_against_the_mean(wanted, met):
    rows = summarize([measured(11, streams=1), measured(99, streams=2)])
    verdicts = judge([{"metric": "throughput_bps", **wanted}], rows)
    assert [verdict.met for verdict in verdicts] == met
