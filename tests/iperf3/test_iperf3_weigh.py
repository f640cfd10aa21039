"""Figures of iperf3 that its own other figures contradict; each transcript was made on loopback.

The second source is the last line of the server, which measured what arrived.
"""

import pytest
from iperf3.iperf3_support import (
    effective,
    events,
    flow,
    known,
    only,
    parser_of,
    rejected,
    samples,
    summary,
    transcript,
)

from benchctl.analysis.flow.figures import FlowFold
from benchctl.api import Direction, Effective, Summary, Warn, replay
from benchctl_iperf3 import BACKEND
from benchctl_iperf3.table import read_row

# A socket of 8 KiB loses most of what an unbounded sender sends.
UDP = {"protocol": "udp", "duration": "1s", "interval": "500ms", "window": "4K"}
RECEIVE = Direction.RECEIVE


def said_by_the_server(name):
    rows = map(read_row, transcript(f"{name}.server").stdout.decode().splitlines())
    [last] = [row for row in rows if row and row.mark == "receiver"]
    return last


def figures(name, direction="send", **parameters):
    """Return the figures that a flow gets from both ends."""
    fold = FlowFold()
    for role in ("client", "server"):
        told = events(f"{name}.{role}", direction, owns_server=True, **parameters)
        for sample in samples(told):
            fold.add_sample(role, sample)
        for event in only(Summary, told):
            fold.add_summary(event)
    return {metric: figure.value for (_, metric), figure in fold.figures().items() if figure.counts}


def warnings(told):
    return [event.message for event in only(Warn, told)]


@pytest.mark.parametrize("name", ["3.12/udp_omit_loss", "3.21/udp_omit_loss_312_server"])
def test_losses_of_the_omitted_part_are_not_counted(name):
    version = name.partition("/")[0]
    told = events(f"{name}.client", version=version, omit="1s", **UDP)
    own, reason = rejected(told)
    # 144 and 151 % were lost, by what iperf3 prints.
    assert own["loss_ratio"] > 1
    assert not known(told).keys() & {"loss_ratio", "packets_lost"}
    assert "omitted losses" in reason
    last = said_by_the_server(name)
    found = figures(name, version=version, omit="1s", **UDP)
    assert found["packets_lost"] == last.lost
    assert found["packets_received"] == last.packets - last.lost
    assert found["loss_ratio"] == pytest.approx(last.lost / last.packets)


def test_losses_that_both_ends_tell_apart_stand():
    told = events("3.21/udp_omit_loss.client", version="3.21", omit="1s", **UDP)
    last = said_by_the_server("3.21/udp_omit_loss")
    assert summary(told)["packets_lost"] == last.lost
    assert rejected(told) == ({}, "")


def test_losses_that_a_new_client_takes_back_are_counted_by_bytes():
    name = "3.21/udp_loss_312_server"
    assert b'"lost_packets":0' in transcript(f"{name}.client").stdout
    told = events(f"{name}.client", version="3.21", **UDP)
    last = said_by_the_server(name)
    own = known(told)
    assert own["packets_lost"] == last.lost == 33_090
    assert own["packets_received"] == last.packets - last.lost
    assert own["loss_ratio"] == pytest.approx(last.lost / last.packets)
    wrong, reason = rejected(told)
    assert (wrong["packets_lost"], wrong["loss_ratio"]) == (0, 0)
    assert "takes back every loss" in reason


def test_what_an_old_server_sent_is_counted_by_bytes():
    told = events("3.21/udp_receive_312_server.client", "receive", version="3.21", **UDP)
    wrong, reason = rejected(told, RECEIVE)
    rows = map(
        read_row, transcript("3.21/udp_receive_312_server.server").stdout.decode().splitlines()
    )
    [sent] = [row for row in rows if row and row.mark == "sender"]
    assert wrong == {"packets_sent": 0}
    assert known(told, RECEIVE)["packets_sent"] == sent.packets
    assert "counts no datagram" in reason


def test_what_an_old_client_takes_for_sent_is_counted_by_bytes():
    # Of a link of 1 Mbit/s whose queue was full when the omitted part ended.
    parameters = {"protocol": "udp", "rate": "1.5Mbit", "omit": "2s", "duration": "6s"}
    rows = [
        "[  5]   0.00-6.00   sec  1.08 MBytes  1501 Kbits/sec  0.000 ms  0/857 (0%)  sender",
        "[  5]   0.00-6.00   sec   713 KBytes   973 Kbits/sec  4.100 ms  274/778 (35%)  receiver",
    ]
    parser = parser_of("text", "receive", **parameters)
    told = replay(parser, "\n".join(rows).encode())
    own = known(told, RECEIVE)
    assert own["packets_sent"] == pytest.approx(1.08 * 2**20 / 1448, abs=1)
    assert rejected(told, RECEIVE)[0] == {"packets_sent": 857}
    assert own["loss_ratio"] == pytest.approx(274 / 778)


def test_where_nothing_was_lost_nothing_is_doubted():
    # The server's omitted part ended 10 ms after the client's, to which its datagrams are counted.
    rows = [
        "[  5]   0.00-1.00   sec  2.38 MBytes  20001 Kbits/sec  0.000 ms  0/1726 (0%)  sender",
        "[  5]   0.00-1.00   sec  2.35 MBytes  19750 Kbits/sec  0.010 ms  0/1727 (0%)  receiver",
    ]
    parser = parser_of("text", "send", protocol="udp", rate="20Mbit", omit="1s", duration="1s")
    told = replay(parser, "\n".join(rows).encode())
    assert not warnings(told)
    own = summary(told)
    assert (own["packets_lost"], own["loss_ratio"]) == (0, 0)
    assert "packets_received" not in own


STEADY = {"protocol": "udp", "rate": "20Mbit", "duration": "2s"}


@pytest.mark.parametrize(
    ("name", "printed"),
    [("3.12/udp_receive_37_server", 20.346e6), ("3.21/udp_receive_39_server", 20.432e6)],
)
def test_nothing_arrives_faster_than_it_was_sent(name, printed):
    told = events(f"{name}.client", "receive", version=name.partition("/")[0], **STEADY)
    own = known(told, RECEIVE)
    assert rejected(told, RECEIVE)[0]["throughput_bps"] == pytest.approx(printed, rel=1e-4)
    assert own["throughput_bps"] == pytest.approx(
        20e6 * own["bytes_received"] / own["bytes_sent"], rel=1e-3
    )


def test_the_40_ms_that_a_known_server_waits_are_not_in_its_rate():
    found = figures("3.9/udp_send", version="3.9", **STEADY)
    assert found["throughput_bps"] == pytest.approx(20e6, rel=5e-3)
    assert said_by_the_server("3.9/udp_send").rate_bps < 19.7e6


def test_the_40_ms_that_another_server_may_have_waited_are_told_and_left_in():
    told = events("3.12/udp_send_39_server.client", **STEADY)
    assert summary(told)["throughput_bps"] == 19.647e6
    [warning] = warnings(told)
    assert warning.startswith("throughput_bps may be up to 2.0% too low")
    assert "40 ms" in warning


def rows_of_both_ends(waited_s, middle_kbit=20000):
    """Return what two ends print of 4 s at 20 Mbit/s if the server's count begins too early."""
    first = round(middle_kbit * (1 - waited_s))
    whole_s = 4 + waited_s
    whole = round((first + middle_kbit * 3 + middle_kbit * waited_s) / whole_s)
    tail = "0.010 ms  0/1726 (0%)"
    spans = [("0.00-1.00", first), *((f"{at}.00-{at + 1}.00", middle_kbit) for at in (1, 2, 3))]
    return {
        "client": [
            "[  5]   0.00-4.00   sec  9.54 MBytes  20000 Kbits/sec  0.000 ms  0/6906 (0%)  sender",
            f"[  5]   0.00-{whole_s:.2f}   sec  9.54 MBytes  {whole} Kbits/sec  {tail}  receiver",
        ],
        "server": [
            *(f"[  5]   {at}   sec  2.38 MBytes  {rate} Kbits/sec  {tail}" for at, rate in spans),
            f"[  5]   0.00-{whole_s:.2f}   sec  9.54 MBytes  {whole} Kbits/sec  {tail}  receiver",
        ],
    }  # fmt: skip


LONG = {**STEADY, "duration": "4s"}


def test_the_round_trip_that_a_known_server_counts_before_the_first_datagram_is_not_in_its_rate():
    fold = FlowFold()
    for role, rows in rows_of_both_ends(waited_s=0.2).items():
        told = replay(parser_of(f"text.{role}", owns_server=True, **LONG), "\n".join(rows).encode())
        for event in only(Summary, told):
            fold.add_summary(event)
        assert not warnings(told)
    found = fold.figures()["send", "throughput_bps"]
    assert found.value == pytest.approx(20e6, rel=1e-3)
    assert found.rejected == pytest.approx(19.05e6, rel=1e-3)
    assert "a round trip" in found.broken.words


def test_the_round_trip_that_another_server_counts_before_the_first_datagram_is_told():
    rows = rows_of_both_ends(waited_s=0.2)["client"]
    told = replay(parser_of("text", "send", **LONG), "\n".join(rows).encode())
    assert summary(told)["throughput_bps"] == pytest.approx(19.05e6, rel=1e-3)
    [warning] = warnings(told)
    assert warning.startswith("throughput_bps may be up to 4.8% too low")
    assert "a round trip" in warning


def test_a_transfer_within_one_interval_has_no_rate():
    told = events("3.21/bytes.client", version="3.21", bytes="10M")
    own = known(told)
    assert own["bytes_received"] == 10 * 2**20
    assert not own.keys() & {"throughput_bps", "sent_bps"}
    wrong, reason = rejected(told)
    assert wrong["throughput_bps"] < 1e9
    assert "only at the end of an interval" in reason
    [sample] = samples(told)
    assert sample.metrics.keys() >= {"bytes_sent"}
    assert "sent_bps" not in sample.metrics


def test_the_rate_of_a_transfer_is_that_of_the_intervals_before_its_last():
    parameters = {"version": "3.21", "bytes": "1500M", "streams": 2}
    rows = samples(events("3.21/bytes_P2.client", **parameters))
    *before, _, _ = rows  # two streams
    assert ["sent_bps" in sample.metrics for sample in rows] == [True] * len(before) + [False] * 2
    found = figures("3.21/bytes_P2", **parameters)
    assert found["sent_bps"] == pytest.approx(
        sum(sample.metrics["bytes_sent"] for sample in before) * 8 / before[-1].end_s, rel=1e-3
    )
    assert "throughput_bps" not in found


def test_a_short_interval_is_asked_for_where_the_run_ends_only_with_one():
    def interval(**parameters):
        argv = BACKEND.client(flow(**parameters)).argv
        return argv[argv.index("-i") + 1]

    assert interval(version="3.21", bytes="10M") == "0.1"
    assert interval(version="3.12", bytes="10M") == "1"
    assert interval(version="3.21", bytes="10M", rate="1Mbit") == "1"
    assert interval(version="3.21", duration="10s") == "1"


def test_the_segment_size_of_the_control_connection_is_not_told_as_that_of_the_data():
    assert b'"tcp_mss_default":32768' in transcript("3.21/bytes.client").stdout
    told = events("3.21/bytes.client", version="3.21", bytes="10M")
    assert "mss_bytes" not in effective(told, Effective)
    assert b"TCP MSS: 32768 (default)" in transcript("3.12/tcp_first.client").stdout
    told = only(Effective, events("3.12/tcp_first.client", omit="1s", interval="250ms"))
    assert {event.settings.get("mss_bytes") for event in told} <= {None, 65483}


def test_rounded_amounts_are_read_as_whole_bytes():
    row = read_row("[  5]   0.00-1.00   sec  2.38 MBytes  19965 Kbits/sec    0   87.7 KBytes")
    assert (row.bytes, row.cwnd_bytes) == (2495611, 89805)


def test_bytes_are_whole():
    for name, version in (("3.12/udp_omit_loss", "3.12"), ("3.9/udp_send", "3.9")):
        for end in ("client", "server"):
            for sample in samples(events(f"{name}.{end}", version=version, omit="1s", **UDP)):
                for metric in sample.metrics.keys() & {"bytes_sent", "bytes_received"}:
                    assert sample.metrics[metric].is_integer()
