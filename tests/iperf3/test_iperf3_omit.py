"""The first interval after the omitted part, which iperf3 often merges with the one before it.

Each transcript has the worst case: ``0.25-0.25``, half the rate, the datagrams of two intervals.
The second source is the same end's report of the whole run.
"""

import json

import pytest
from iperf3.iperf3_support import events, flow, parser_of, samples, summary, transcript

from benchctl.api import Direction, replay
from benchctl_iperf3.stream import JsonStream

QUARTERS = {"omit": "1s", "duration": "1s", "interval": "250ms", "rate": "20Mbit"}
UDP = {**QUARTERS, "protocol": "udp"}


def measured(told, direction=Direction.SEND):
    return [s for s in samples(told) if s.direction is direction and not s.omitted]


@pytest.mark.parametrize(
    ("name", "direction", "parameters"),
    [
        ("3.12/tcp_first.client", "send", QUARTERS),
        ("3.12/udp_both_first.client", "both", UDP),
        ("3.12/udp_both_first.server", "both", UDP),
        ("3.21/tcp_first.client", "send", QUARTERS),
        ("3.21/tcp_first.server", "send", QUARTERS),
        ("3.21/udp_first.client", "send", UDP),
    ],
)
def test_no_measured_interval_is_lost_to_the_omitted_part(name, direction, parameters):
    told = events(name, direction, **parameters)
    for way in {sample.direction for sample in samples(told)}:
        rows = measured(told, way)
        assert len(rows) == 4
        first = rows[0]
        assert (first.start_s, first.end_s) == (0.0, pytest.approx(0.25, abs=0.02))
        [rate] = first.metrics.keys() & {"sent_bps", "throughput_bps"}
        [amount] = first.metrics.keys() & {"bytes_sent", "bytes_received"}
        # iperf3 printed 10 Mbit/s of UDP, and 8 of TCP, whose blocks make it 17 or 25.
        assert 16e6 < first.metrics[rate] < 26e6
        assert first.metrics[rate] == pytest.approx(first.metrics[amount] * 8 / first.end_s)


def test_the_bytes_of_all_measured_intervals_are_those_of_the_run():
    for name, parameters in (("3.21/udp_first.client", UDP), ("3.21/tcp_first.client", QUARTERS)):
        told = events(name, **parameters)
        counted = sum(sample.metrics["bytes_sent"] for sample in measured(told))
        assert counted == summary(told)["bytes_sent"]


def test_omitted_datagrams_are_not_counted_among_the_measured():
    told = events("3.21/udp_first.client", **UDP)
    rows = transcript("3.21/udp_first.client").stdout.splitlines()
    printed = [json.loads(row)["data"]["sum"] for row in rows if b'"interval"' in row[:30]]
    assert sum(row["packets"] for row in printed if not row["omitted"]) > 1.2 * 1728
    counted = sum(sample.metrics["packets_sent"] for sample in measured(told))
    assert counted == summary(told)["packets_sent"]


def test_losses_that_may_be_omitted_ones_are_told_of_no_sample():
    told = events("3.12/udp_both_first.client", "both", **UDP)
    [first, second, *_] = measured(told, Direction.RECEIVE)
    assert first.metrics["packets_received"] == first.metrics["bytes_received"] / 1448
    assert not first.metrics.keys() & {"packets_lost", "loss_ratio"}
    assert second.metrics.keys() >= {"packets_lost", "loss_ratio"}


@pytest.mark.parametrize("version", ["3.12", "3.21"])
@pytest.mark.parametrize("role", ["client", "server"])
def test_an_interval_that_does_not_divide_the_omitted_part_has_its_true_rate(version, role):
    # iperf3 printed 15 Mbit/s: 0.3 s of bytes over the 0.1 s before them, too.
    parameters = {**UDP, "interval": "300ms"}
    told = events(f"{version}/udp_omit_uneven.{role}", "receive", **parameters)
    first = measured(told, Direction.RECEIVE)[0]
    assert (first.start_s, first.end_s) == (0.0, pytest.approx(0.3, abs=0.01))
    rate = first.metrics["throughput_bps" if role == "client" else "sent_bps"]
    assert rate == pytest.approx(20e6, rel=0.01)


@pytest.mark.parametrize("version", ["3.12", "3.21"])
def test_an_interval_longer_than_the_omitted_part_does_not_count_its_datagrams(version):
    parameters = {**UDP, "interval": "2s", "duration": "2s"}
    told = events(f"{version}/udp_omit_short.client", "both", **parameters)
    [sent], [received] = measured(told), measured(told, Direction.RECEIVE)
    # iperf3 printed 5179, those of three seconds.
    assert sent.metrics["packets_sent"] == summary(told)["packets_sent"]
    assert received.metrics["packets_received"] == pytest.approx(
        summary(told, Direction.RECEIVE)["packets_received"], rel=0.001
    )


def test_without_an_omitted_part_the_first_interval_is_taken_as_it_is_told():
    row = '{"socket":5,"start":0.2,"end":1.0,"bytes":100,"bits_per_second":1000,"sender":true}'
    start = '{"event":"start","data":{"test_start":{"protocol":"TCP"}}}\n'
    line = f'{{"event":"interval","data":{{"streams":[{row}]}}}}\n'
    [first] = samples(replay(JsonStream(flow()), (start + line).encode()))
    assert (first.start_s, first.metrics["sent_bps"]) == (0.2, 1000)


def test_a_first_interval_that_ends_at_once_divides_nothing_by_zero():
    row = b"[  5]   0.25-0.00   sec   612 KBytes  10031 Kbits/sec            864  \n"
    assert not samples(replay(parser_of("text", protocol="udp", omit="1s"), row + row))[1:]
