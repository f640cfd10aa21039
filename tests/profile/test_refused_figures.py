"""Errors of what a profile expects and what others reported: each in full, with its line."""

import pytest

MEASURED = """\
[flows.main]
backend = "stream"
duration = "5s"

[flows.beside]
backend = "echo"
count = 10

[axes]
streams = [1, 2, 4]
"""
"""Lines are counted on from here: what a test adds begins at 11."""

# Each case: what is added; the message; the hint.
ADDED = {
    "expect: no bound": (
        "[[expect]]\nmetric = 'rtt_s'",
        "11: expect[0]: give at_least, at_most, or both; or within, or not_worse_than", "",
    ),
    "expect: an unknown metric": (
        "[[expect]]\nmetric = 'throughput'\nat_least = '1Mbit'",
        '12: expect[0].metric: no metric "throughput"', 'did you mean "throughput_bps"?',
    ),
    "expect: the metric of another flow's backend": (
        "[[expect]]\nmetric = 'stalls'\nflow = 'beside'\nat_most = 0",
        '12: expect[0].metric: no metric "stalls"', "such as throughput_bps, rtt_s or loss_ratio",
    ),
    "expect: an unknown flow": (
        "[[expect]]\nmetric = 'rtt_s'\nflow = 'mian'\nat_most = '1s'",
        '13: expect[0].flow: no flow "mian"', 'did you mean "main"?',
    ),
    "expect: nothing": ("[[expect]]", "11: expect[0]: give a metric, or events", ""),
    "expect: an unknown statistic": (
        "[[expect]]\nmetric = 'rtt_s.p59'\nat_most = '1s'",
        '12: expect[0].metric: no aggregate "p59"; did you mean "p95"?', "",
    ),
    "expect: a statistic of a single figure": (
        "[[expect]]\nmetric = 'throughput_bps.p95'\nat_least = '1Mbit'",
        "12: expect[0].metric: throughput_bps is one figure, not a distribution", "leave out .p95",
    ),
    "expect: an unknown reference": (
        "[[expect]]\nmetric = 'rtt_s'\nat_most = '2 * expcted'",
        '13: expect[0].at_most: no reference "expcted"; did you mean "expected"?', "",
    ),
    "expect: an unknown reference of within": (
        "[[expect]]\nmetric = 'rtt_s'\nwithin = '10%'\nof = 'theory'",
        '14: expect[0].of: "theory" is not one of asked, expected, reported, baseline', "",
    ),
    "expect: within without a unit": (
        "[[expect]]\nmetric = 'rtt_s'\nwithin = 0.1",
        '13: expect[0].within: 0.1 has no unit; write a ratio as in "2%"', "",
    ),
    "expect: a reference without within": (
        "[[expect]]\nmetric = 'rtt_s'\nat_most = '1s'\nof = 'expected'",
        "11: expect[0]: of needs within or not_worse_than", "",
    ),
    "expect: not_worse_than beside a bound": (
        "[[expect]]\nmetric = 'rtt_s'\nat_most = '1s'\nnot_worse_than = '5%'",
        "11: expect[0]: not_worse_than excludes at_least, at_most and within", "",
    ),
    "expect: not_worse_than of a metric without a worse": (
        "[[expect]]\nmetric = 'cwnd_bytes'\nnot_worse_than = '5%'",
        "13: expect[0].not_worse_than: neither higher nor lower cwnd_bytes is worse", "take within",
    ),
    "expect: within beside a bound": (
        "[[expect]]\nmetric = 'rtt_s'\nat_most = '1s'\nwithin = '10%'",
        "11: expect[0]: within excludes at_least and at_most", "",
    ),
    "expect: events of a metric": (
        "[[expect]]\nmetric = 'rtt_s'\nevents = 'no drop'",
        "11: expect[0]: events exclude metric, bounds, within and not_worse_than", "",
    ),
    "expect: an unknown event": (
        "[[expect]]\nevents = 'no drp'",
        '12: expect[0].events: no event "drp"; did you mean "drop"?', "",
    ),
    "expect: fairness of one flow": (
        "[[expect]]\nmetric = 'fairness_jain'\nflow = 'main'\nat_least = 1",
        '12: expect[0].metric: no metric "fairness_jain"',
        "such as throughput_bps, rtt_s or loss_ratio",
    ),
    "expect: an unknown severity": (
        "[[expect]]\nmetric = 'rtt_s'\nat_most = '1s'\nseverity = 'note'",
        '14: expect[0].severity: "note" is not one of error, warning', "",
    ),
    "expect: a wrong unit": (
        "[[expect]]\nmetric = 'rtt_s'\nat_most = '1m'",
        '13: expect[0].at_most: "1m" could be minutes or milliseconds; write "min" or "ms"', "",
    ),
    "expect: a unit where none is": (
        "[[expect]]\nmetric = 'stalls'\nat_most = '1s'",
        '13: expect[0].at_most: "1s" is not a number', "",
    ),
    "expect: an unknown point": (
        "[[expect]]\nmetric = 'rtt_s'\nat_most = '1s'\nwhere = {streams = 9}",
        "14: expect[0].where.streams: 9 is not a value of this axis", "values are: 1, 2, 4",
    ),
    "reported: no figure": (
        "[[reported]]\nflow = 'main'",
        '11: reported[0]: give a figure, such as throughput_bps = "14.4Mbit"', "",
    ),
    "reported: an unknown metric": (
        "[[reported]]\nthroughput = '1Mbit'",
        '12: reported[0].throughput: no metric "throughput"', 'did you mean "throughput_bps"?',
    ),
    "reported: the fairness of one flow": (
        "[[reported]]\nflow = 'main'\nfairness_jain = 0.99",
        '13: reported[0].fairness_jain: no metric "fairness_jain"',
        "such as throughput_bps, rtt_s or loss_ratio",
    ),
    "reported: an unknown flow": (
        "[[reported]]\nflow = 'mian'\nrtt_s = '1s'",
        '12: reported[0].flow: no flow "mian"', 'did you mean "main"?',
    ),
    "reported: a unit where none is": (
        "[[reported]]\nstalls = '1s'", '12: reported[0].stalls: "1s" is not a number', "",
    ),
    "reported: a table": (
        "[[reported]]\nrtt_s = {mean = '1s'}",
        "12: reported[0].rtt_s: must be a string, a number, true or false", "",
    ),
    "reported: an unknown point": (
        "[[reported]]\nrtt_s = '1s'\nwhere = {streams = 9}",
        "13: reported[0].where.streams: 9 is not a value of this axis", "values are: 1, 2, 4",
    ),
    "expect: bounds that nothing meets": (
        "[[expect]]\nmetric = 'rtt_s'\nat_most = '1s'\nat_least = '2s'",
        "11: expect[0]: at_least is greater than at_most", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ADDED)
def test_figures_that_no_flow_has_are_told_so(refusal, case):
    added, message, hint = ADDED[case]
    error = refusal(MEASURED + added)
    assert error.message == f"p.toml:{message}"
    assert error.hint == hint
    assert error.kind == "ProfileError"
