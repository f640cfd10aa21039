"""What the packets of a run's flows say: a few lines for each flow, and everything.

Both are made of what is kept with the flow, so they need no file. Times count from the first packet
at the place where they were seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchctl.analysis.runs.summary import at_point, point_key
from benchctl.report.report import Report
from benchctl.report.text.packets_text import (
    AGAIN,
    COUNTED,
    SPREAD,
    TOOLS,
    Entry,
    clock_doubt,
    connection_text,
    exchanges_text,
    overview,
    pair_text,
    waits_line,
)
from benchctl.run.record import RecordedFlow, RecordedPackets
from benchctl.units import format_count, format_duration, format_rate, format_size
from benchctl.visible import visible

MOST_FLOWS = 4
"""Flows of which a summary says what their packets say: `show --trials` has all."""
_ANSWER_SHARE = 0.01
"""Of the data of the other direction: what has less answers it."""
MOST_SHUTS = 3
"""Zero windows of a flow in a summary."""
MOST_DIRECTIONS = 2
"""Directions of a flow in a summary, where it measures by another protocol than TCP."""
LISTED = 20
"""Those of such a flow in full: one for each stream and direction."""
IN_FULL = 5
"""Connections of a flow that are shown in full: more are read as a list."""


def packet_lines(report: Report) -> Iterator[str]:
    """Yield what the packets of each flow say, of its first repeat at each point."""
    flows: dict[tuple[Any, str], tuple[Mapping[str, Any], RecordedFlow]] = {}
    for trial in report.trials:
        for flow in (each.flow for each in trial.flows):
            words = any(packets.findings or packets.exchanges for packets in flow.captures)
            if flow.status.counts and words:
                flows.setdefault(
                    (point_key(trial.trial.point), flow.name), (trial.trial.point, flow)
                )
    many = len({point for point, _ in flows}) > 1
    first = ", repeat 1" * any(trial.trial.repeat > 1 for trial in report.trials)
    for point, flow in list(flows.values())[:MOST_FLOWS]:
        yield from _flow_lines(flow, f"{at_point(point) if many else ''}{first}")
    if len(flows) > MOST_FLOWS:
        yield f"packets of {len(flows) - MOST_FLOWS:,} more: benchctl show --trials"


def packets_text(flow: RecordedFlow) -> Iterator[str]:
    """Yield everything that the packets of a flow say, as texts of several lines."""
    for packets in flow.captures:
        found = packets.findings
        if found and not _is_first(flow, packets):
            continue
        if packets.host and (found or packets.exchanges):
            yield f"packets at {visible(packets.host)}\n"
        if packets.exchanges:
            yield exchanges_text(packets.exchanges[:LISTED])
        if packets.exchanges and found:
            yield f"{_controlled(packets)}\n"
        if len(found) > 1:
            yield overview(found)
        yield from map(connection_text, found[:IN_FULL])
    if flow.paired:
        of = "the connection that controls it, " * any(
            capture.exchanges for capture in flow.captures
        )
        yield f"{of}packets at both ends\n"
        yield from map(pair_text, flow.paired[:IN_FULL])


def _is_first(flow: RecordedFlow, packets: RecordedPackets) -> bool:
    """Return whether a connection is to be shown with this flow.

    Each direction of a trace that was kept is a flow; both have the findings of the connection.
    """
    if packets.host:
        return True
    directions = packets.findings[0]["directions"]
    return flow.source == next(
        (direction["from"] for direction in directions if direction["unique_bytes"]), flow.source
    )


def _flow_lines(flow: RecordedFlow, where: str) -> Iterator[str]:
    """Yield lines about the largest connection of a flow, as the end that sends its data saw it.

    If it measures by another protocol, that is what they are about.
    """
    if any(packets.exchanges for packets in flow.captures):
        yield from _exchange_lines(flow, where)
        return
    largest = next(packets.findings[0] for packets in flow.captures if packets.findings)
    ends = largest["ends"]
    pair: Entry = next((paired for paired in flow.paired if paired["ends"] == ends), {})
    for number, sender in enumerate(ends):
        seen = _seen_from(flow, largest, sender)
        direction = seen["directions"][number]
        most_bytes = max(each["unique_bytes"] for each in seen["directions"])
        if flow.source in ends:
            is_asked = flow.source == sender
        else:
            is_asked = direction["unique_bytes"] > _ANSWER_SHARE * most_bytes
        if not (direction["waiting_s"] and is_asked):
            continue
        others = max(len(packets.findings) for packets in flow.captures) - 1
        of = f" (the largest of {others + 1:,} connections)" if others else ""
        yield (
            f"packets of {flow.name}{where}, {sender} → {ends[1 - number]}{of}: {_data(direction)}"
        )
        if any(packets.host for packets in flow.captures):  # else it is what limited the flow
            yield f"  {waits_line(direction)}"
        yield from (f"  request: {line}" for line in seen["requests"][:1])
        yield f"  {_path(direction)}"
        yield f"  {_repaired(direction)}"
        if pair:
            yield f"  {_crossing(pair['directions'][number], clock_doubt(pair))}"
        shuts = pair["zero_windows"] if pair else seen["zero_windows"]
        yield from (
            f"  {line}"
            for line in _shuts([shut for shut in shuts if shut["closed_by"] == ends[1 - number]])
        )


def _exchange_lines(flow: RecordedFlow, where: str) -> Iterator[str]:
    """Yield lines about what went each way by another protocol than TCP, at each place."""
    places: dict[tuple[str, str, str], dict[str, Entry]] = {}
    for packets in flow.captures:
        for exchange in packets.exchanges:
            direction = exchange["from"], exchange["to"], exchange["protocol"]
            places.setdefault(direction, {})[packets.host] = exchange
    sizes = {
        direction: max(exchange["bytes"] for exchange in seen.values())
        for direction, seen in places.items()
    }
    most_bytes = max(sizes.values())
    directions = [
        direction for direction, size in sizes.items() if size > _ANSWER_SHARE * most_bytes
    ]
    directions.sort(key=sizes.__getitem__, reverse=True)
    for sender, receiver, protocol in directions[:MOST_DIRECTIONS]:
        of = f" (one of {len(directions):,} directions)" * (len(directions) > MOST_DIRECTIONS)
        seen = places[sender, receiver, protocol]
        words = "; ".join(f"{_exchanged(exchange)} at {host}" for host, exchange in seen.items())
        yield f"packets of {flow.name}{where}, {protocol} {sender} → {receiver}{of}: {words}"
    control = [capture for capture in flow.captures if capture.findings]
    yield from (f"  {_controlled(packets)}" for packets in control[:1])


def _exchanged(direction: Entry) -> str:
    """Return how much went one way by another protocol than TCP, and how long.

    Not how fast: the first datagram may be a greeting, long before the others.
    """
    text = f"{format_count(direction['packets'], 'packet')}, {format_size(direction['bytes'])}"
    return f"{text} in {format_duration(direction['duration_s'])}"


def _controlled(packets: RecordedPackets) -> str:
    """Return which connections control a flow that measures by another protocol than TCP."""
    first, *others = packets.findings
    more = f" and {len(others):,} more" * bool(others)
    counts = (f"{direction['packets']:,}" for direction in first["directions"])
    return f"controlled by TCP {' → '.join(first['ends'])}{more}: {' + '.join(counts)} packets"


def _seen_from(flow: RecordedFlow, largest: Entry, sender: str) -> Entry:
    """Return a connection as the host of its sender saw it, if that was recorded.

    The client of a flow, which opens its connections, runs on the host that it comes from.
    """
    host = flow.source if sender == largest["opened_by"] else flow.target
    found = {
        packets.host: finding
        for packets in flow.captures
        for finding in packets.findings
        if finding["ends"] == largest["ends"]
    }
    return found.get(host, largest)


def _data(direction: Entry) -> str:
    """Return how much data went one way, and how fast."""
    text = (
        f"{format_count(direction['packets'], 'packet')}, {format_size(direction['unique_bytes'])}"
    )
    if not direction["throughput_bps"]:
        return text
    others = (
        f"{format_rate(direction[f'throughput_{tool.lower()}_bps'])} as {tool} has it"
        for tool in TOOLS
    )
    return f"{text} at {format_rate(direction['throughput_bps'])} ({', '.join(others)})"


def _path(direction: Entry) -> str:
    """Return what the sender announced, the round-trip times, and what was in flight."""
    announced = []
    if direction["mss_bytes"] is not None:
        announced.append(f"MSS {direction['mss_bytes']} B")
    if direction["window_scale"] is not None:
        announced.append(f"window scale {direction['window_scale']}")
    for name, held in (
        ("SACK", direction["sack_permitted"]),
        ("timestamps", direction["timestamps"]),
    ):
        if held is not None:
            announced.append(name if held else f"no {name}")
    words = [", ".join(announced)]
    if direction["rtt_s"]:
        words.append(f"RTT {_spread(direction['rtt_s'])}")
    if direction["handshake_rtt_s"] is not None:
        words.append(f"{format_duration(direction['handshake_rtt_s'])} in the handshake")
    if direction["flight_max_bytes"]:
        words.append(f"at most {format_size(direction['flight_max_bytes'])} in flight")
    return "; ".join(filter(None, words))


def _repaired(direction: Entry) -> str:
    """Return what was sent again one way, by cause, and what else tells of losses there."""
    again = direction["retransmissions"]
    text = format_count(again["count"], "retransmission")
    if again["count"]:
        causes = (f"{name} {again[name]:,}" for name in AGAIN if again[name])
        text += f" of {format_size(again['bytes'])} ({', '.join(causes)})"
    counts = (f"{title} {direction[name]:,}" for title, name in COUNTED.items() if direction[name])
    return "; ".join(filter(None, [text, ", ".join(counts)]))


def _crossing(direction: Entry, doubt: str) -> str:
    """Return what became of the packets of one way, by the traces of both ends."""
    words = f"{direction['lost']:,} of {format_count(direction['left'], 'packet')} lost on the way"
    if direction["losses"]:
        words += f", the first at {_at(direction['losses'][0]['left_s'])}"
    if direction["owd_s"]:
        words += f"; one-way delay {_spread(direction['owd_s'])}"
        words += f", {doubt}" if doubt else ""
    return words


def _shuts(shuts: Sequence[Entry]) -> Iterator[str]:
    """Yield zero windows in a line each: of one trace, or as both ends saw them."""
    longest = sorted(shuts, key=lambda shut: -max(map(_lasted_s, _views(shut).values())))
    for shut in longest[:MOST_SHUTS]:
        words = (f"{where} {_shut(view)}".strip() for where, view in _views(shut).items())
        yield f"zero window of {shut['closed_by']}: {'; '.join(words)}"
    if len(shuts) > MOST_SHUTS:
        yield f"and {format_count(len(shuts) - MOST_SHUTS, 'shorter zero window')}"


def _views(shut: Entry) -> Mapping[str, Entry]:
    """Return what was seen of a zero window, by where."""
    if "at_sender" not in shut:
        return {"": shut}
    views = {"at its sender": shut["at_sender"], "at itself": shut["at_receiver"]}
    return {where: view for where, view in views.items() if view}


def _lasted_s(shut: Entry) -> float:
    return math.inf if shut["duration_s"] is None else shut["duration_s"]


def _shut(shut: Entry) -> str:
    if shut["ended_s"] is None:
        words = f"from {_at(shut['began_s'])} to the end of the trace"
    else:
        lasted = format_duration(shut["duration_s"])
        words = f"from {_at(shut['began_s'])} to {_at(shut['ended_s'])} ({lasted})"
    if shut["pause_s"] is not None:
        words += f" in a pause of {format_duration(shut['pause_s'])}"
    words += f", {format_count(shut['acks'], 'ACK')}, {format_count(shut['probes'], 'probe')}"
    if shut["window_full_s"] is not None:
        words += f", full since {_at(shut['window_full_s'])}"
    return words


def _spread(values: Entry) -> str:
    return ", ".join(f"{name} {format_duration(values[name])}" for name in SPREAD)


def _at(time_s: float) -> str:
    return f"{time_s:.3f} s"
