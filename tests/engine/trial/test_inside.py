"""The packets of a flow are looked into when it has ended: each end, and both together."""

import asyncio
from types import SimpleNamespace

import pytest
from packets.written import MSS, SACK_PERMITTED, SCALE, ethernet, ipv4, pcap, tcp, udp

from benchctl.api import Demand, Direction
from benchctl.engine.trial.packet_figures import OneWayPackets, analyze_captures, keep_analysis
from benchctl.hosts.clocks import ClockSpan
from benchctl.run.record import ClockReading, RecordedPackets

EPOCH = 1_790_000_000
"""Of the files."""
WAY_S = 0.02
HELLO = {"options": MSS + SCALE + SACK_PERMITTED, "window": 64000}
LOST = {4, 7}
SEGMENTS = 10


def captured(folder, *, beside=(), datagrams=(), far=lambda at_s: at_s):
    """Write the packets of a transfer as both of its ends have them; two segments are lost.

    ``beside`` are ports of larger transfers without loss at the same time; ``datagrams`` are ports
    and ways, to each of which ten are sent, with one answer; the first of each is lost. ``far``
    turns seconds since `EPOCH` into those of the far end's clock.
    """
    ends = {"from": [], "to": []}

    def send(at_s, way, seq, ack, *, lost=False, **more):
        pass_by(at_s, way, ipv4(tcp(way, seq, ack, **more), way, ident=ident()), lost=lost)

    def ident():
        return len(ends["from"]) + len(ends["to"]) + 1

    def pass_by(at_s, way, packet, *, lost):
        frame = ethernet(packet)
        left, came = ("from", "to") if way == 0 else ("to", "from")
        ends[left].append((at_s, frame))
        if not lost:
            ends[came].append((at_s + WAY_S, frame))

    send(0.0, 0, 0, 0, flags=2, **HELLO)
    send(0.02, 1, 0, 1, flags=18, **HELLO)
    send(0.04, 0, 1, 1)
    for n in range(SEGMENTS):
        send(0.04 + n / 1000, 0, 1 + 1000 * n, 1, size=1000, lost=n in LOST)
    for n in sorted(LOST):
        send(0.2 + n / 1000, 0, 1 + 1000 * n, 1, size=1000)
    send(0.3, 1, 1, 1 + 1000 * SEGMENTS)
    for port in beside:
        ports = (41000, port)
        send(0.0, 0, 0, 0, flags=2, ports=ports, **HELLO)
        send(0.02, 1, 0, 1, flags=18, ports=ports, **HELLO)
        for n in range(2 * SEGMENTS):
            send(0.04 + n / 1000, 0, 1 + 1000 * n, 1, size=1000, ports=ports)
        send(0.3, 1, 1, 1 + 2000 * SEGMENTS, ports=ports)
    for port, way in datagrams:
        for n in range(11):
            answers = n == 10
            body = udp(way ^ answers, bytes(8 if answers else 972), ports=(42000 + way, port))
            packet = ipv4(body, way ^ answers, protocol=17, ident=ident())
            pass_by(0.05 + n / 100, way ^ answers, packet, lost=n == 0)
    for end, packets in ends.items():
        packets.sort(key=lambda one: one[0])
        if end == "to":
            packets = [(far(at_s), frame) for at_s, frame in packets]
        (folder / f"{end}.pcap").write_bytes(pcap([(round(t * 1e9), one) for t, one in packets]))
    return [RecordedPackets(end, f"{end}.pcap", len(ends[end]), 0, 0) for end in ends]


def test_both_ends_together_give_each_loss_and_the_delay_of_every_packet(tmp_path):
    found = analyze_captures(captured(tmp_path), tmp_path, one_clock=True, stop=lambda: False)
    near, far = (one.findings[0]["directions"][0] for one in found.captures)
    assert near["retransmissions"]["count"] == far["retransmissions"]["count"] == 2
    assert (near["packets"], far["packets"]) == (14, 12)
    [pair] = found.paired
    there, back = pair["directions"]
    assert (there["left"], there["came"], there["lost"], back["lost"]) == (14, 12, 2, 0)
    assert [one["sequence"] for one in there["losses"]] == [1 + 1000 * n for n in sorted(LOST)]
    assert [one["left_s"] for one in there["losses"]] == pytest.approx([0.044, 0.047])
    assert there["owd_s"]["min"] == pytest.approx(WAY_S)
    assert there["owd_s"]["max"] == pytest.approx(WAY_S)
    crossed = found.crossed["10.0.0.2"]
    figures = {name: one.value for name, one in crossed.figures.items()}
    assert figures == pytest.approx(
        {
            "packets_sent": 14, "packets_received": 12, "packets_lost": 2, "loss_ratio": 1 / 7,
            "packets_duplicated": 0, "packets_reordered": 0, "owd_s": WAY_S,
        }
    )  # fmt: skip


def test_connections_of_other_flows_between_the_same_hosts_are_left_out(tmp_path):
    captures = captured(tmp_path, beside=[5202])

    def look(port):
        return analyze_captures(captures, tmp_path, port=port, one_clock=True, stop=lambda: False)

    every, own = look(None), look(5201)
    assert (len(every.captures[0].findings), len(every.paired)) == (2, 2)
    assert (len(own.captures[0].findings), len(own.paired)) == (1, 1)
    # Its number is that in the file, where a figure of it looks.
    assert own.captures[0].findings[0]["ends"] == ("10.0.0.1:40000", "10.0.0.2:5201")
    assert own.captures[0].findings[0]["number"] == every.captures[0].findings[1]["number"]
    assert own.crossed["10.0.0.2"].figures["packets_sent"].value == 14
    assert {one.stream for one in own.windows} == {0}
    # A tool whose connections have other ports than it says has all of them.
    assert len(look(9).captures[0].findings) == 2


def exchanged(packets):
    """Return what each end of a flow recorded of other protocols: protocol, ends, packets."""
    keys = ("protocol", "from", "to", "packets")
    return [tuple(one[key] for key in keys) for one in packets.exchanges]


@pytest.mark.parametrize("ways", [(0,), (1,), (0, 1)], ids=["send", "receive", "both"])
def test_a_flow_of_datagrams_has_them_beside_the_connection_that_controls_it(tmp_path, ways):
    """Those to the port of its server, and from it; a flow of TCP has none."""
    captures = captured(tmp_path, datagrams=[(5300, 0), *((5201, way) for way in ways)])

    def look(port, protocol="udp"):
        found = analyze_captures(
            captures, tmp_path, port=port, protocol=protocol, one_clock=True, stop=lambda: False
        )
        return found.captures

    for packets in look(5201):
        ends = [(f"10.0.0.1:{42000 + way}", "10.0.0.2:5201") for way in ways]
        sent = [
            ("UDP", *(pair[::-1] if way else pair)) for way, pair in zip(ways, ends, strict=True)
        ]
        # Who sends loses nothing to himself.
        seen = [10 if (packets.host == "from") is (way == 0) else 9 for way in ways]
        told = exchanged(packets)
        assert sorted(told[: len(ways)]) == sorted(
            (*one, n) for one, n in zip(sent, seen, strict=True)
        )
        assert sorted(told[len(ways) :]) == sorted(
            (name, to, sender, 1) for name, sender, to in sent
        )
        assert len(packets.findings) == 1
    assert all(one.exchanges == () for one in look(5201, "tcp"))
    # A tool whose datagrams have other ports than it says has all of them.
    assert len(look(9)[0].exchanges) == 2 + 2 * len(ways)


def test_a_flow_whose_server_has_no_port_has_what_is_of_its_protocol(tmp_path):
    captures = captured(tmp_path, datagrams=[(5201, 0)])
    echo = ethernet(ipv4(bytes([8, 0, 0, 0, 0, 1, 0, 1]), protocol=1))
    with (tmp_path / "from.pcap").open("ab") as file:
        file.write(pcap([(EPOCH * 10**9, echo)])[24:])  # behind the head of the file
    found = analyze_captures(
        captures, tmp_path, protocol="icmp", one_clock=True, stop=lambda: False
    )
    assert exchanged(found.captures[0]) == [("ICMP", "10.0.0.1", "10.0.0.2", 1)]
    assert (found.captures[0].findings, found.paired) == ((), [])


def test_fragments_of_datagrams_have_no_port_and_are_the_flow_s(tmp_path):
    frames = [
        ethernet(ipv4(udp(0, bytes(1000)), 0, protocol=17, ident=1, fragment=0x2000)),
        ethernet(ipv4(bytes(500), 0, protocol=17, ident=1, fragment=126)),
        ethernet(ipv4(udp(0, bytes(100)), 0, protocol=17, ident=2)),
    ]
    (tmp_path / "f.pcap").write_bytes(pcap([(EPOCH * 10**9, frame) for frame in frames]))
    captures = [RecordedPackets("from", "f.pcap", 3, 0, 0)]
    found = analyze_captures(
        captures, tmp_path, port=5201, protocol="udp", one_clock=True, stop=lambda: False
    )
    assert exchanged(found.captures[0]) == [
        ("UDP fragments", "10.0.0.1", "10.0.0.2", 2),
        ("UDP", "10.0.0.1:40000", "10.0.0.2:5201", 1),
    ]


def test_one_end_alone_has_its_findings_and_nothing_of_both(tmp_path):
    found = analyze_captures(captured(tmp_path)[:1], tmp_path, one_clock=True, stop=lambda: False)
    assert len(found.captures[0].findings) == 1
    assert (found.paired, found.crossed) == ([], {})


def test_with_two_clocks_there_is_no_figure_of_delays(tmp_path):
    found = analyze_captures(captured(tmp_path), tmp_path, one_clock=False, stop=lambda: False)
    assert found.paired[0]["one_clock"] is False
    assert found.crossed == {}


AHEAD_S, DRIFT = 3600.25, 4e-4


def clock(offset_s, error_s, *, began_s=-1.0, ended_s=9.0, drift=0.0):
    """A clock as it was known before and after the flow."""

    def reading(at_s):
        return ClockReading(offset_s + drift * at_s, error_s, 2 * error_s)

    return ClockSpan(EPOCH + began_s, reading(began_s), EPOCH + ended_s, reading(ended_s))


def test_with_two_clocks_that_are_known_delays_are_true_within_their_error(tmp_path):
    """A packet that leaves at our 0.3 s comes by a clock that gained 0.12 ms since the first."""
    captures = captured(tmp_path, far=lambda at_s: at_s + AHEAD_S + DRIFT * at_s)
    clocks = {"from": clock(0.0, 0.001), "to": clock(AHEAD_S, 0.002, drift=DRIFT)}
    found = analyze_captures(captures, tmp_path, one_clock=False, stop=lambda: False, clocks=clocks)
    [pair] = found.paired
    assert (pair["one_clock"], pair["clock_error_s"]) == (False, 0.003)
    there, back = pair["directions"]
    assert (there["lost"], back["lost"], there["unseen"], there["overtaken"]) == (2, 0, 0, 0)
    for way in (there, back):  # of files in microseconds
        assert way["owd_s"]["min"] == pytest.approx(WAY_S, abs=5e-6)
        assert way["owd_s"]["max"] == pytest.approx(WAY_S, abs=5e-6)
    near, far = found.captures
    assert far.began_time - near.began_time == pytest.approx(WAY_S, abs=5e-6)
    left = found.crossed["10.0.0.1"].left
    assert left[0] - near.began_time == pytest.approx(0.02, abs=5e-6)
    assert max(one.end for one in found.windows) < EPOCH + 1


def test_a_clock_that_was_set_meanwhile_tells_no_delays(tmp_path):
    clocks = {"from": clock(0.0, 0.001), "to": None}
    captures = captured(tmp_path)
    found = analyze_captures(captures, tmp_path, one_clock=False, stop=lambda: False, clocks=clocks)
    assert found.paired[0]["clock_error_s"] is None
    assert found.crossed == {}


def test_a_file_that_is_gone_costs_its_own_findings_only(tmp_path):
    captures = captured(tmp_path)
    (tmp_path / captures[1].file).unlink()
    found = analyze_captures(captures, tmp_path, one_clock=True, stop=lambda: False)
    assert [len(one.findings) for one in found.captures] == [1, 0]
    assert found.paired == []


def test_who_stops_a_run_waits_for_no_file(tmp_path):
    captures = captured(tmp_path)
    assert analyze_captures(captures, tmp_path, one_clock=True, stop=lambda: True) is None


@pytest.mark.parametrize(("protocol", "lost"), [("tcp", [2.0]), ("udp", [])])
def test_only_a_flow_of_tcp_has_the_figures_of_its_connections(tmp_path, protocol, lost):
    """The tool of another one controls it over TCP, and reports the figures of its packets."""
    figures = {}
    recorder = SimpleNamespace(
        path=tmp_path / "runs.sqlite",
        update_flow=lambda *_, **__: None,
        add_sample=lambda *_: None,
        add_figures=lambda _, some: figures.update(some),
    )
    bound = SimpleNamespace(
        plan=SimpleNamespace(source="from", direction=Direction.SEND),
        demand=Demand(protocol=protocol),
        address_in=lambda _: "10.0.0.2",
    )
    flow = SimpleNamespace(
        setup=SimpleNamespace(flow=bound, port=None, one_clock=True, network=None),
        recording=SimpleNamespace(flow_id=1),
        result=SimpleNamespace(captures=captured(tmp_path), second_0=EPOCH),
    )
    asyncio.run(keep_analysis(flow, recorder, asyncio.Event()))
    counts = [one.value for (_, name), one in figures.items() if name == "packets_lost"]
    assert counts == lost


def test_the_series_has_what_left_in_each_interval():
    left = [1000.0 + n * 0.25 for n in range(5)]
    crossed = OneWayPackets(left, [0.1, 0.2, 0.3, 0.4, 0.5], 0, 0, 0)
    series = list(crossed.series(999.0))
    assert [start_s for start_s, _, _ in series] == pytest.approx([1, 1.25, 1.5, 1.75, 2])
    assert [owd_s for *_, owd_s in series] == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert list(OneWayPackets([], [], 1, 0, 0).series(0.0)) == []
    assert "owd_s" not in OneWayPackets([], [], 1, 0, 0).figures


def test_the_streams_of_each_end_have_their_windows(tmp_path):
    found = analyze_captures(captured(tmp_path), tmp_path, one_clock=True, stop=lambda: False)
    sent = [one for one in found.windows if (one.host, one.to) == ("from", "10.0.0.2")]
    assert {one.stream for one in sent} == {0}
    assert max(one.metrics["flight_bytes"] for one in sent) == 1000 * SEGMENTS
    assert not [one for one in found.windows if one.to == "10.0.0.1"]  # which got no data
