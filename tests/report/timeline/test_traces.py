import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.api import Fold, Metric
from benchctl.metrics import Vocabulary
from benchctl.report.timeline.traces import LineKey, TimeWindow, TrialLines
from benchctl.store.bulk import SeriesSource


def source(stream=0, metrics=("throughput_bps",), streams=1, role="client", delay_s=0.0, flow="f"):
    return SeriesSource(flow, "iperf3", role, stream, "send", metrics, delay_s, streams)


def row(series, end_s, *values, length_s=1.0):
    return (series, end_s - length_s, end_s, struct.pack(f"<{len(values)}d", *values))


def traces(window=TimeWindow(0.0, 100.0), split=()):  # noqa: B008
    return TrialLines(window, split, Vocabulary())


def means(line, seconds=10):
    return [column and column.mean for column in line.columns(0.5, seconds + 0.5, seconds)]


def test_rates_of_streams_are_added_for_each_interval():
    lines = traces()
    rows = [row(1, 1.0, 10.0), row(2, 1.01, 5.0), row(1, 2.0, 20.0), row(2, 2.01, 7.0)]
    lines.add({1: source(0, streams=2), 2: source(1, streams=2)}, rows)
    assert means(lines.line(LineKey("f", "send", "throughput_bps")), 3) == [15.0, 27.0, None]


def test_samples_of_a_stream_that_tell_different_metrics_are_one_line():
    lines = traces()
    both = {1: source(), 2: source(metrics=("throughput_bps", "rtt_s"))}
    rows = [row(1 + n % 2, n + 1.0, float(n), *([0.1] * (n % 2))) for n in range(4)]
    lines.add(both, rows)
    assert means(lines.line(LineKey("f", "send", "throughput_bps")), 4) == [0.0, 1.0, 2.0, 3.0]


@given(st.lists(st.integers(0, 3), max_size=40), st.integers(1, 5))
def test_sums_do_not_depend_on_how_samples_are_batched(order, cut):
    """Streams may be ahead of each other by an interval, and batches end anywhere."""
    told = dict.fromkeys(range(4), 0)
    rows = []
    for stream in [*order, *(s for _ in range(50) for s in range(4))]:
        if told[stream] - min(told.values()) < 2:
            told[stream] += 1
            rows.append(row(stream, float(told[stream]), 10.0**stream))
    sources = {stream: source(stream, streams=4) for stream in range(4)}
    lines = traces()
    for begin in range(0, len(rows), cut):
        lines.add(sources, rows[begin : begin + cut])
    complete = min(told.values())
    shown = means(lines.line(LineKey("f", "send", "throughput_bps")), complete)
    assert shown == [1111.0] * complete


def test_a_metric_of_single_streams_has_a_line_for_each_and_none_of_the_flow():
    lines = traces()
    names = ("hop_rtt_s",)
    lines.add({1: source(1, names), 2: source(2, names)}, [row(1, 1.0, 0.1), row(2, 1.0, 0.3)])
    assert lines.keys("hop_rtt_s") == [LineKey("f", "send", "hop_rtt_s", hop) for hop in (1, 2)]
    assert [means(lines.line(key), 1) for key in lines.keys("hop_rtt_s")] == [[0.1], [0.3]]


def test_the_first_interval_waits_for_the_streams_that_were_asked_for():
    lines = traces()
    lines.add({1: source(0, streams=2)}, [row(1, 1.0, 10.0)])
    line = lines.line(LineKey("f", "send", "throughput_bps"))
    assert line.mean() is None
    lines.add({1: source(0, streams=2), 2: source(1, streams=2)}, [row(2, 1.0, 5.0)])
    assert line.last == 15.0


def test_a_stream_that_tells_no_more_holds_the_others_up_for_two_intervals_only():
    lines = traces()
    sources = {1: source(0, streams=2), 2: source(1, streams=2)}
    lines.add(sources, [row(1, 1.0, 10.0), row(2, 1.0, 5.0)])
    lines.add(sources, [row(1, float(n), 10.0) for n in range(2, 7)])
    line = lines.line(LineKey("f", "send", "throughput_bps"))
    assert means(line, 6) == [15.0, 10.0, 10.0, 10.0, None, None]
    lines.flush()
    assert means(line, 6) == [15.0, 10.0, 10.0, 10.0, 10.0, 10.0]


def test_delays_of_streams_are_their_median_and_span_from_least_to_greatest():
    lines = traces()
    metrics = ("tcp_rtt_s",)
    streams = dict(enumerate((0.02, 0.09, 0.03, 0.04)))
    lines.add(
        {stream: source(stream, metrics, streams=4) for stream in streams},
        [row(stream, 1.0, value) for stream, value in streams.items()],
    )
    (column,) = lines.line(LineKey("f", "send", "tcp_rtt_s")).columns(0.0, 2.0, 1)
    assert (column.low, column.high) == (0.02, 0.09)
    assert column.mean == pytest.approx(0.035)
    assert lines.medians("tcp_rtt_s") == {LineKey("f", "send", "tcp_rtt_s"): 4}
    assert lines.medians("throughput_bps") == {}


def test_a_median_is_of_the_streams_that_report():
    lines = traces()
    metrics = ("tcp_rtt_s",)
    sources = {stream: source(stream, metrics, streams=3) for stream in range(3)}
    told = [(0, 1.0), (1, 2.0), (2, 9.0)]
    lines.add(sources, [row(stream, 1.0, value) for stream, value in told])
    lines.add(sources, [row(stream, 2.0, value) for stream, value in told[:2]])
    lines.flush()
    assert means(lines.line(LineKey("f", "send", "tcp_rtt_s")), 2) == [2.0, 1.5]


def test_one_stream_has_no_median():
    lines = traces()
    lines.add({1: source(0, ("tcp_rtt_s",))}, [row(1, 1.0, 0.02)])
    assert lines.line(LineKey("f", "send", "tcp_rtt_s")).last == 0.02
    assert lines.medians("tcp_rtt_s") == {}


def test_a_metric_that_no_one_knows_is_kept_as_it_is():
    lines = traces()
    lines.add({1: source(0, ("frobs",))}, [row(1, 1.0, 3.0)])
    assert lines.meanings["frobs"] == Metric("frobs", "", Fold.DISTRIBUTION)
    assert lines.line(LineKey("f", "send", "frobs")).last == 3.0


def test_split_flows_have_a_line_for_each_stream():
    lines = traces(split={"f"})
    lines.add({1: source(0, streams=2), 2: source(1, streams=2), 3: source(0, flow="g")},
              [row(1, 1.0, 10.0), row(2, 1.0, 5.0), row(3, 1.0, 1.0)])  # fmt: skip
    keys = lines.keys("throughput_bps")
    assert [(key.flow, key.stream) for key in keys] == [("f", -1), ("f", 0), ("f", 1), ("g", -1)]
    assert [lines.line(key).last for key in keys] == [15.0, 10.0, 5.0, 1.0]
    assert lines.streams == {("f", 0), ("f", 1), ("g", 0)}


def test_where_both_ends_tell_the_client_counts():
    lines = traces()
    lines.add({1: source(role="server"), 2: source(role="client")},
              [row(1, 1.0, 9.0), row(2, 1.0, 10.0)])  # fmt: skip
    assert lines.line(LineKey("f", "send", "throughput_bps")).last == 10.0
    assert lines.line(LineKey("f", "receive", "throughput_bps")) is None


def test_values_that_are_no_numbers_are_left_out():
    lines = traces()
    lines.add({1: source()}, [row(1, 1.0, math.nan), row(1, 2.0, 4.0), row(1, 3.0, math.inf)])
    lines.flush()
    assert lines.line(LineKey("f", "send", "throughput_bps")).mean() == 4.0


def test_a_window_leaves_out_what_is_outside_it():
    lines = traces(TimeWindow(2.0, 2.0, 4.0))
    lines.add({1: source()}, [row(1, float(n), float(n)) for n in range(1, 7)])
    assert lines.line(LineKey("f", "send", "throughput_bps")).bounds(0.0, 10.0) == (2.0, 3.0)
    assert lines.end_s == 6.0


def test_a_flow_that_starts_later_stands_later():
    lines = traces()
    lines.add({1: source(delay_s=5.0)}, [row(1, 1.0, 10.0)])
    assert lines.line(LineKey("f", "send", "throughput_bps")).last_s == 6.0
    assert lines.end_s == 6.0
    assert lines.shortest_s == 1.0
