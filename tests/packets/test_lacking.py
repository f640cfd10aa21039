"""What a trace lacks is unknown: it is neither guessed nor taken for nothing."""

import pytest
from packets.written import SACK_PERMITTED, SCALE, ethernet, ipv4, pcap, tcp

from benchctl.packets.findings import connection_entry
from benchctl.packets.trace import read_trace
from benchctl.report.text.packets_text import connection_text

SIZE, WINDOW = 1024, 10 * 1024
RTT_NS = 50_000_000
TIMESTAMPS = b"\x08\x0a" + bytes(8)
LINUX = b"\x02\x04\x04\x0c" + SACK_PERMITTED + TIMESTAMPS + b"\x01" + SCALE
MSS = b"\x02\x04\x04\x00"
UNSCALED = MSS + SACK_PERMITTED
SYN, SYN_ACK = 0, 1


def limited(options=LINUX, *, without=(), rounds=60):
    """Return the packets of a sender that a window of ten segments limits, taken at the sender."""
    scale = 7 if SCALE in options else 0
    opened = [
        (0, tcp(0, 99, 0, 2, 64000, options=options)),
        (RTT_NS, tcp(1, 499, 100, 18, 64000, options=options)),
        (RTT_NS, tcp(0, 100, 500)),
    ]
    packets = [one for number, one in enumerate(opened) if number not in without]
    for n in range(rounds):
        sent_ns, start = (n + 1) * RTT_NS, 100 + n * WINDOW
        packets += [(sent_ns + 10 * k, tcp(0, start + k * SIZE, 500, size=SIZE)) for k in range(10)]
        packets.append((sent_ns + RTT_NS - 1000, tcp(1, 500, start + WINDOW, 16, WINDOW >> scale)))
    return [(at_ns, ethernet(ipv4(one, one[:2] == b"\x14\x51"))) for at_ns, one in packets]


@pytest.fixture
def found(tmp_path):
    def read_it(packets, **how):
        path = tmp_path / "trace.pcap"
        path.write_bytes(pcap(packets, **how))
        (connection,) = read_trace(path).connections
        return connection_entry(1, connection)

    return read_it


def ways(entry):
    """Return the direction of the data, and the other."""
    return sorted(entry["directions"], key=lambda way: -way["unique_bytes"])


def totals(entry):
    return {cause: one["total_s"] for cause, one in ways(entry)[0]["waits"].items()}


WHOLE_S = 59 * RTT_NS / 1e9


@pytest.mark.parametrize("options", [LINUX, UNSCALED])
@pytest.mark.parametrize("without", [(), (SYN,)])
def test_the_answer_to_a_syn_has_the_scale_of_its_own_windows(found, options, without):
    entry = found(limited(options, without=without))
    assert totals(entry)["window"] == pytest.approx(WHOLE_S, rel=0.02)
    assert ways(entry)[0]["window_min_bytes"] == WINDOW
    assert ways(entry)[0]["window_full"] >= 59


@pytest.mark.parametrize(
    ("how", "without"),
    [({"snaplen": 66}, ()), ({"snaplen": 68}, ()), ({}, (SYN_ACK,)), ({}, (SYN, SYN_ACK))],
    ids=["66 bytes", "68 bytes", "no SYN-ACK", "neither"],
)
def test_a_window_whose_scale_was_not_captured_is_unknown(found, how, without):
    entry = found(limited(without=without), **how)
    way, answers = ways(entry)
    # The first window may be that of the SYN, which has no scale.
    assert totals(entry)["unknown"] == pytest.approx(WHOLE_S, rel=0.05)
    assert "window" not in totals(entry)
    assert totals(entry).get("network", 0) <= 1.1 * RTT_NS / 1e9
    assert (answers["window_scale"], answers["window_scaling"], way["window_full"]) == (None,) * 3
    text = connection_text(entry)
    assert "the network or the receiver's window, whose scale is not in the trace" in text
    assert "the windows of 10.0.0.2:5201 have an unknown scale" in text


def test_a_syn_without_a_scale_says_that_there_is_none(found):
    entry = found(limited(UNSCALED, without=(SYN_ACK,)))
    assert totals(entry)["window"] == pytest.approx(WHOLE_S, rel=0.05)


@pytest.mark.parametrize("kept", [0, 1], ids=["data", "answers"])
def test_a_trace_of_one_direction_says_so_and_what_it_does_not_know(found, kept, tmp_path):
    packets = limited()
    again = [(at_ns + 400 * 10**6, frame) for at_ns, frame in packets[-11:-6]]
    both = [*packets, *again]
    one_way = [one for one in both if (one[1][34:36] == b"\x14\x51") is bool(kept)]
    entry, whole = found(one_way), found(both)
    assert (entry["one_way"], whole["one_way"], entry["ending"]) == (True, False, whole["ending"])
    way = ways(entry)[0]
    assert (way["waiting_s"], way["waits"], way["flight_max_bytes"]) == (None, {}, None)
    assert way["retransmissions"] == {
        **way["retransmissions"], "fast": 0, "timeout": 0, "probe": 0, "spurious": 0,
    }  # fmt: skip
    assert way["retransmissions"]["count"] == (0 if kept else 5)
    assert "only one direction is in the trace" in connection_text(entry)
    path = tmp_path / "alone.pcap"
    path.write_bytes(pcap([(0, ethernet(ipv4(tcp(0, 99, 0, 2))))] * 3))
    assert not read_trace(path).connections[0].one_way


@pytest.mark.parametrize(("snaplen", "said"), [(58, None), (60, True), (200, True)])
def test_options_that_were_cut_off_are_unknown(found, snaplen, said):
    entry = found(limited(), snaplen=snaplen)
    assert [way["sack_permitted"] for way in entry["directions"]] == [said, said]
    assert [way["timestamps"] for way in entry["directions"]] == [
        None if snaplen < 61 else True
    ] * 2
    entry = found(limited(MSS), snaplen=snaplen)
    assert [way["sack_permitted"] for way in entry["directions"]] == [False, False]
