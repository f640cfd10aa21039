"""A packet trace for people: made of the entries of `benchctl.packets.findings`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from benchctl.packets.findings import MOST_LOSSES
from benchctl.report.pivot import align
from benchctl.units import (
    UNKNOWN,
    format_count,
    format_duration,
    format_rate,
    format_size,
    format_time,
)
from benchctl.visible import visible

Entry: TypeAlias = Mapping[str, Any]
ARROWS = ("→", "←")
_WAITED_FOR = {
    "window": "the receiver's window",
    "timeout": "retransmission timeouts",
    "network": "the network",
    "unexplained": "what is not seen to be the network (paced, a full send buffer, or a control"
    " like BBR)",
    "unknown": "the network or the receiver's window, whose scale is not in the trace",
}
COUNTED = {
    "out of order": "out_of_order",
    "doubled by the network": "duplicated",
    "duplicate ACKs": "duplicate_acks",
    "triple duplicate ACKs": "triple_duplicate_acks",
    "ACKs with SACK blocks": "sack_acks",
    "SACK blocks": "sack_blocks",
    "D-SACK blocks": "dsack_blocks",
    "window full": "window_full",
    "keep-alives": "keep_alives",
}
_CROSSED = {
    "left": "left",
    "came": "came",
    "lost": "lost",
    "doubled": "doubled",
    "overtaken": "overtaken",
    "came without being seen to leave": "unseen",
    "left while the other was not recorded": "unknown",
}
MOST_LINES = 20
"""Losses that are listed of a connection: more are read by nobody."""
SPREAD = ("min", "mean", "p95", "max")
AGAIN = ("fast", "timeout", "probe", "other", "spurious")
TOOLS = ("tcptrace", "Wireshark")
_NAMED = {
    **_WAITED_FOR,
    "application": "nothing to send",
    "unexplained": "not seen to be the network",
    "unknown": "the network or the receiver's window",
}


def head_lines(trace: Entry) -> Iterator[str]:
    """Yield what is said of the file."""
    yield (
        f"{trace['file']}: {trace['format']}, {format_count(trace['packets'], 'packet')},"
        f" {format_size(trace['bytes'])} in {format_duration(trace['duration_s'])}"
        + (f" from {format_time(trace['began_time'])}" if trace["began_time"] is not None else "")
        + f"; {format_count(trace['connections'], 'TCP connection')}"
    )
    if trace["dropped"] is not None:
        yield f"the recorder dropped {format_count(trace['dropped'], 'packet')}"
    if trace["one_way"]:
        of = format_count(trace["connections"], "connection")
        yield f"of {trace['one_way']:,} of {of}, the trace has one direction only"
    if trace["tunnels"]:
        parts = (f"{count:,} in {what}" for what, count in trace["tunnels"].items())
        yield f"read inside tunnels: {', '.join(parts)}"
    if trace["unread"]:
        parts = (f"{count:,} {what}" for what, count in trace["unread"].items())
        yield f"neither TCP nor counted below: {', '.join(parts)}"
    if trace["backwards"]:
        backwards = format_count(trace["backwards"], "packet")
        yield f"{backwards} earlier than one before them in the file"


def overview(connections: Sequence[Entry]) -> str:
    """Return a table with a line for each connection."""
    heads = (
        "",
        "first end",
        "second end",
        "began",
        "lasted",
        *ARROWS,
        "throughput",
        "sent again",
        "ending",
    )
    rows = [
        (
            str(connection["number"]), *connection["ends"], format_duration(connection["began_s"]),
            format_duration(connection["duration_s"]),
            *(format_size(each["unique_bytes"]) for each in connection["directions"]),
            format_rate(_greater_bps(connection)),
            f"{sum(each['retransmissions']['count'] for each in connection['directions']):,}",
            connection["ending"],
        )
        for connection in connections
    ]  # fmt: skip
    return align(heads, rows, (True, False, False, *[True] * 6, False))


def connection_text(entry: Entry) -> str:
    """Return everything about one connection."""
    lines = [
        f"{entry['number']}  {entry['ends'][0]} → {entry['ends'][1]}, {_opened(entry)};"
        f" {format_duration(entry['duration_s'])}, {_ending(entry)}"
    ]
    lines += [f"   request: {visible(line)}" for line in entry["requests"]]
    if entry.get("one_way"):
        lines.append(
            "   only one direction is in the trace: round trips, what was in flight, and what the"
            " sender waited for are unknown"
        )
    else:
        lines += [f"   {line}" for line in (_place(entry), *_unknown_scales(entry)) if line]
    directions = entry["directions"]
    rows = [(name, *cells) for name, cells in _rows(directions) if set(cells) != {UNKNOWN}]
    lines += ["", *_indented(align(("", *ARROWS), rows, (False, True, True)))]
    for arrow, direction in zip(ARROWS, directions, strict=True):
        if direction["waiting_s"]:
            lines += ["", *(f"   {line}" for line in waits_lines(arrow, direction))]
    if entry["zero_windows"]:
        lines += ["", *_indented(_zero_windows(entry))]
    return "\n".join(lines) + "\n"


def waits_lines(arrow: str, direction: Entry) -> Iterator[str]:
    """Yield what a sender waited for, in a sentence, and then what shows it."""
    yield f"{arrow} {waits_line(direction)}"
    for cause, share in sorted(direction["waits"].items(), key=lambda wait: -wait[1]["total_s"]):
        yield (
            f"  {_NAMED[cause]}: {format_count(share['count'], 'time')}, the longest"
            f" {format_duration(share['longest_s'])} from {_at(share['longest_at_s'])}"
        )


def waits_line(direction: Entry) -> str:
    """Return what a sender waited for, in a sentence."""
    waited = waited_text({cause: share["total_s"] for cause, share in direction["waits"].items()})
    return f"Of {format_duration(direction['waiting_s'])}, {direction['from']} {waited}."


def waited_text(waits_s: Mapping[str, float]) -> str:
    """Return what a sender waited for, by cause, without who and of how long."""
    said = [
        f"{format_duration(waits_s[cause])} for {what}"
        for cause, what in _WAITED_FOR.items()
        if cause in waits_s
    ]
    parts = [f"waited {_listed(said)}"] * bool(said)
    if "application" in waits_s:
        parts.append(f"had nothing to send for {format_duration(waits_s['application'])}")
    return ", and ".join(parts)


def clock_doubt(entry: Entry) -> str:
    """Return what the clocks of both ends do to the delays of a pair; empty if it is one clock."""
    if entry["one_clock"]:
        return ""
    error_s = entry.get("clock_error_s")
    if error_s is None:
        return "with the offset of the two clocks"
    return f"\N{PLUS-MINUS SIGN}{format_duration(error_s)} by the two clocks"


def pair_text(entry: Entry) -> str:
    """Return what the traces of both ends of a connection say together."""
    directions = entry["directions"]
    rows = [(name, *cells) for name, cells in _crossing_rows(directions) if set(cells) != {UNKNOWN}]
    lines = [
        f"{' and '.join(map(str, entry['numbers']))}  {entry['ends'][0]} → {entry['ends'][1]}",
        "", *_indented(align(("", *ARROWS), rows, (False, True, True))),
    ]  # fmt: skip
    if doubt := clock_doubt(entry):
        remark = "" if entry.get("clock_error_s") else ": only their differences are true"
        lines.append(f"   delays are {doubt}{remark}")
    lost = [
        (arrow, loss)
        for arrow, direction in zip(ARROWS, directions, strict=True)
        for loss in direction["losses"]
    ]
    if lost:
        cells = [
            (arrow, _at(loss["left_s"]), f"{loss['sequence']:,}", format_size(loss["bytes"]))
            for arrow, loss in lost[:MOST_LINES]
        ]
        titles = ("lost", "left", "sequence", "data")
        lines += ["", *_indented(align(titles, cells, (False, True, True, True)))]
    left_out = sum(direction["lost"] for direction in directions) - len(lost[:MOST_LINES])
    if left_out:
        lines.append(f"   and {left_out:,} more: the JSON has {MOST_LOSSES:,} of each direction")
    if entry["zero_windows"]:
        shown = [
            (
                shut["closed_by"],
                *(
                    _at(seen and seen[name])
                    if name == "began_s"
                    else format_duration(seen and seen[name])
                    for seen in (shut["at_sender"], shut["at_receiver"])
                    for name in ("began_s", "duration_s", "pause_s")
                ),
            )
            for shut in entry["zero_windows"]
        ]
        heads = (
            "zero window of",
            *("at sender", "length", "pause"),
            *("at itself", "length", "pause"),
        )
        lines += ["", *_indented(align(heads, shown, (False, *[True] * 6)))]
    return "\n".join(lines) + "\n"


def _crossing_rows(directions: Sequence[Entry]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name, key in _CROSSED.items():
        yield name, tuple(_some(direction[key]) for direction in directions)
    for name in SPREAD:
        yield (
            f"one-way delay {name}",
            tuple(
                format_duration((direction["owd_s"] or {}).get(name)) for direction in directions
            ),
        )


def exchanges_text(exchanges: Sequence[Entry]) -> str:
    """Return the traffic of other protocols as a table."""
    heads = ("protocol", "from", "to", "packets", "bytes", "rate")
    rows = [
        (
            exchange["protocol"], exchange["from"], exchange["to"], f"{exchange['packets']:,}",
            format_size(exchange["bytes"]), format_rate(exchange["rate_bps"] or None),
        )
        for exchange in exchanges
    ]  # fmt: skip
    return align(heads, rows, (False, False, False, True, True, True))


def _rows(directions: Sequence[Entry]) -> Iterator[tuple[str, tuple[str, ...]]]:
    def row(name: str, cell: Any) -> tuple[str, tuple[str, ...]]:
        return name, tuple(cell(direction) for direction in directions)

    yield row("packets", lambda each: f"{each['packets']:,}")
    yield row("data", lambda each: format_size(each["unique_bytes"] or None))
    yield row("throughput", lambda each: format_rate(each["throughput_bps"] or None))
    for tool in TOOLS:
        name = f"throughput_{tool.lower()}_bps"
        yield row(
            f"  as {tool} has it",
            lambda each, name=name: format_rate((each["throughput_bps"] and each[name]) or None),
        )
    yield row("segment size (MSS)", lambda each: _plain(each["mss_bytes"], " B"))
    yield row("window scale", _scale)
    yield row("SACK", lambda each: _yes(each["sack_permitted"]))
    yield row("timestamps", lambda each: _yes(each["timestamps"]))
    yield row("initial window", lambda each: _segments(each["initial_window_segments"]))
    yield row("RTT of the handshake", lambda each: format_duration(each["handshake_rtt_s"]))
    for name in SPREAD:
        yield row(
            f"RTT {name}",
            lambda each, name=name: format_duration((each["rtt_s"] or {}).get(name)),
        )
    yield row("RTT samples", lambda each: _some((each["rtt_s"] or {}).get("samples", 0)))
    yield row("retransmissions", lambda each: _some(each["retransmissions"]["count"]))
    yield row("  data", lambda each: format_size(each["retransmissions"]["bytes"] or None))
    for name in AGAIN:
        yield row(f"  {name}", lambda each, name=name: _some(each["retransmissions"][name]))
    for title, name in COUNTED.items():
        yield row(title, lambda each, name=name: _some(each[name] or 0))
    yield row("most in flight", lambda each: format_size(each["flight_max_bytes"]))
    yield row("receiver's window, least", lambda each: format_size(each["window_min_bytes"]))
    yield row("receiver's window, most", lambda each: format_size(each["window_max_bytes"]))
    yield row("passed over, never seen", lambda each: format_size(each["absent_bytes"] or None))
    yield row("missing in the trace", lambda each: format_size(each["unseen_bytes"] or None))


def _opened(entry: Entry) -> str:
    if entry["opened_by"] is None:
        return "began before the trace"
    return f"opened by {entry['opened_by']}"


def _ending(entry: Entry) -> str:
    by = f" by {entry['reset_by']}" if entry["reset_by"] else ""
    return f"{entry['ending']}{by}"


def _place(entry: Entry) -> str:
    """Say where in the path the trace was taken, by the halves of the handshake's round trip."""
    parts = [direction["handshake_rtt_s"] for direction in entry["directions"]]
    if not any(direction["rtt_s"] for direction in entry["directions"]):
        return ""
    if None in parts:
        return (
            "without a handshake that was answered at once, where the trace was taken is unknown:"
            " RTT is that between it and the receiver"
        )
    whole = sum(parts)
    far = [
        f"{format_duration(part)} to {name}"
        for part, name in zip(reversed(parts), entry["ends"], strict=True)
    ]
    return f"RTT of {format_duration(whole)}, from the place of the trace {' and '.join(far)}"


def _unknown_scales(entry: Entry) -> Iterator[str]:
    """Say whose windows are of unknown size, and why."""
    for direction, answers in zip(entry["directions"], reversed(entry["directions"]), strict=True):
        if direction["window_full"] is None:
            lacks = answers if answers["window_scaling"] is None else direction
            yield (
                f"the windows of {answers['from']} have an unknown scale: the SYN of"
                f" {lacks['from']} is not in the trace, or was cut"
            )


def _zero_windows(entry: Entry) -> str:
    heads = (
        "zero window of",
        "from",
        "to",
        "length",
        "ACKs",
        "probes",
        "full before",
        "stopped reading",
        "pause",
    )
    rows = [
        (
            shut["closed_by"], _at(shut["began_s"]), _at(shut["ended_s"]),
            format_duration(shut["duration_s"]), str(shut["acks"]), str(shut["probes"]),
            _at(shut["window_full_s"]), _at(shut["unread_s"]), format_duration(shut["pause_s"]),
        )
        for shut in entry["zero_windows"]
    ]  # fmt: skip
    return align(heads, rows, (False, *[True] * 8))


def _indented(text: str) -> list[str]:
    return [f"   {line}".rstrip() for line in text.splitlines()]


def _listed(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _at(time_s: float | None) -> str:
    return UNKNOWN if time_s is None else f"{time_s:.3f} s"


def _some(count: int) -> str:
    return f"{count:,}" if count else UNKNOWN


def _plain(value: int | None, unit: str = "") -> str:
    return UNKNOWN if value is None else f"{value}{unit}"


def _scale(direction: Entry) -> str:
    """Return the scale that an end announced."""
    if direction["window_scale"] is None:
        return _yes(direction.get("window_scaling"))
    return _plain(direction["window_scale"])


def _segments(count: int | None) -> str:
    return UNKNOWN if count is None else format_count(count, "segment")


def _yes(value: bool | None) -> str:
    return UNKNOWN if value is None else "yes" if value else "no"


def _greater_bps(connection: Entry) -> float | None:
    """Return the throughput of the direction with more of it; None if nothing was sent."""
    return max(each["throughput_bps"] or 0.0 for each in connection["directions"]) or None
