"""Rows of both ends become intervals and totals; quantities are read and shown."""

import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simpleperf.simpleperf_harness import FEWER, REPEATABLE

from benchctl_simpleperf.simpleperf.protocol.intervals import (
    IntervalMerger,
    IntervalRow,
    decode_rows,
    encode_rows,
)
from benchctl_simpleperf.simpleperf.protocol.results import check_figures, direction_result
from benchctl_standalone.errors import Problem
from benchctl_standalone.units import parse_rate, parse_seconds, parse_size, scaled


def sender_row(number, stream=0, count=1000, start_s=None):
    start_s = number * 0.1 if start_s is None else start_s
    return IntervalRow(
        stream, number, start_s, number * 0.1 + 0.1, {"bytes_sent": count, "retransmits": 1}
    )


def receiver_row(number, stream=0, count=900):
    return IntervalRow(stream, number, number * 0.1, number * 0.1 + 0.1, {"bytes_received": count})


rows = st.lists(
    st.builds(
        IntervalRow,
        st.integers(0, 7), st.integers(0, 99), st.floats(0, 10), st.floats(10, 20),
        st.dictionaries(st.sampled_from(["a", "b"]), st.integers(0, 9)).map(
            lambda more: {"bytes_sent": 1, **more}
        ),
    ),
    max_size=300,
)  # fmt: skip


@FEWER
@given(rows)
def test_rows_survive_the_wire(sent):
    messages = list(encode_rows(sent))
    assert [row for members in messages for row in decode_rows(members, True, 8)] == sent
    assert all(len(members["rows"]) <= 200 for members in messages)


@pytest.mark.parametrize(
    "members",
    [
        {"fields": ["bytes_sent"], "rows": [[0, 0, 0.0, 0.1]]},
        {"fields": ["bytes_sent"], "rows": [[0, 0, 0.0, 0.1, 1, 2]]},
        {"fields": ["bytes_sent"], "rows": [[8, 0, 0.0, 0.1, 1]]},
        {"fields": ["bytes_sent"], "rows": [[0.5, 0, 0.0, 0.1, 1]]},
        {"fields": ["bytes_sent"], "rows": [[0, -1, 0.0, 0.1, 1]]},
        {"fields": [], "rows": []},
        {"fields": ["bytes_received"], "rows": []},
    ],
)
def test_rows_that_do_not_fit_are_refused(members):
    with pytest.raises(Problem):
        decode_rows(members, True, 8)


def test_an_interval_of_an_older_end_that_ends_before_it_begins_is_left_out():
    members = {"fields": ["bytes_received"], "rows": [[0, 0, 0.03, 0.0, 0], [0, 1, 0.0, 0.1, 7]]}
    assert [row.number for row in decode_rows(members, False, 1)] == [1]


def test_the_receivers_figures_are_the_interval_and_the_senders_join_them():
    merger = IntervalMerger("send", ["here:1"])
    merger.add(True, [sender_row(0)])
    assert merger.take() == []
    merger.add(False, [receiver_row(0)])
    [interval] = merger.take()
    assert interval["throughput_bps"] == pytest.approx(72_000)
    assert interval["sent_bps"] == pytest.approx(80_000)
    assert interval["retransmits"] == 1
    assert (interval["id"], interval["direction"]) == ("here:1", "send")


def test_an_interval_that_one_end_missed_is_told_once_that_end_goes_on():
    merger = IntervalMerger("send", ["here:1"])
    merger.add(True, [sender_row(0), sender_row(1)])
    merger.add(False, [receiver_row(1)])
    first, second = merger.take()
    assert "throughput_bps" not in first
    assert second["throughput_bps"] == pytest.approx(72_000)


def test_intervals_are_told_in_order_with_all_their_streams():
    merger = IntervalMerger("send", ["here:1", "here:2"])
    merger.add(True, [sender_row(n, s) for n in (0, 1) for s in (0, 1)])
    merger.add(False, [receiver_row(0, 0)])
    assert [(i["stream"], i["start_s"]) for i in merger.take()] == [(0, 0.0)]
    merger.add(False, [receiver_row(0, 1), receiver_row(1, 1), receiver_row(1, 0)])
    assert [(i["stream"], i["start_s"]) for i in merger.take()] == [(1, 0.0), (0, 0.1), (1, 0.1)]


def test_the_omitted_part_is_marked():
    merger = IntervalMerger("send", ["here:1"])
    merger.add(False, [IntervalRow(0, 0, -0.5, 0.0001, {"bytes_received": 1})])
    assert merger.take(everything=True)[0]["omitted"]


def udp_sides(lost):
    sender = {"duration_s": 1.0, "effective": {"pacing": "timer"},
              "streams": [{"bytes_sent": 1000, "packets_sent": 100}] * 2}  # fmt: skip
    receiver = {
        "duration_s": 0.5,
        "effective": {"udp_gro": False},
        "streams": [
            {
                "bytes_received": 500,
                "packets_lost": each,
                "jitter_rfc3550_s": 0.001 * position,
                "pdv_p95_p50_s": 0.01 * position,
            }
            for position, each in enumerate(lost, 1)
        ],
    }
    return sender, receiver


def test_a_direction_is_the_sum_of_its_streams_and_each_rate_over_its_ends_time():
    whole = direction_result(*udp_sides([10, 30]), ["a:1", "a:2"])
    assert whole["throughput_bps"] == 1000 * 8 / 0.5
    assert whole["sent_bps"] == 2000 * 8 / 1.0
    assert whole["loss_ratio"] == 0.2
    assert [stream["loss_ratio"] for stream in whole["streams"]] == [0.1, 0.3]
    assert whole["jitter_rfc3550_s"] == pytest.approx(0.0015)
    assert whole["pdv_p95_p50_s"] == pytest.approx(0.015)
    assert whole["effective"] == {"pacing": "timer", "udp_gro": False}


def test_a_receiver_that_got_nothing_measured_nothing_and_not_infinity():
    sender, receiver = udp_sides([100, 100])
    receiver["duration_s"] = 0.0
    for stream in receiver["streams"]:
        stream["bytes_received"] = 0
    assert direction_result(sender, receiver, ["a:1", "a:2"])["throughput_bps"] == 0.0


@pytest.mark.parametrize(
    "streams",
    [
        [],
        [{"bytes_received": 1}],
        [{"bytes_sent": 1, "packets_lost": 0}] * 2,
        [{"bytes_received": 1, "packets_lost": 0, "packet_gap_s": 3}] * 2,
        [{"bytes_received": {"min": 1}, "packets_lost": 0}] * 2,
    ],
)
def test_a_peers_figures_that_cannot_be_put_together_are_refused(streams):
    with pytest.raises(Problem):
        check_figures({"streams": streams}, False, 2, "udp")


def test_sizes_are_those_of_the_first_simpleperf_and_of_iperf3():
    assert [parse_size(text) for text in ("10B", "1KB", "1MB", "2K", "1M", "1KiB", "1448")] == [
        10, 1000, 10**6, 2048, 2**20, 1024, 1448,
    ]  # fmt: skip


def test_rates_and_times_are_read():
    assert parse_rate("100M") == parse_rate("100Mbit") == parse_rate("0.1Gbit/s") == 1e8
    assert parse_rate("unlimited") == parse_rate("0") == math.inf
    assert (parse_seconds("250ms"), parse_seconds("2"), parse_seconds("5min")) == (0.25, 2, 300)


@REPEATABLE
@given(st.text(max_size=12), st.sampled_from([parse_size, parse_rate, parse_seconds]))
def test_any_text_is_a_quantity_or_a_value_error(text, parse):
    with suppress(ValueError):
        assert parse(text) >= 0


def test_values_are_shown_with_three_digits():
    shown = [scaled(value, "B") for value in (0, 999, 999.6, 1234, 99_990, 1.5e9, 4e12)]
    assert shown == ["0 B", "999 B", "1.00 kB", "1.23 kB", "100 kB", "1.50 GB", "4.00 TB"]
