"""The final figures of a measurement, from the figures of both ends; pure.

The receiver's figures are the result. The sender adds what only it knows: what it sent, and TCP's
own figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchctl_standalone.errors import Problem

from .intervals import check_names, rate_bps, rate_names

# Figures without a sum over streams: values are averaged, and distributions cannot be combined. The
# rest are counts.
_DISTRIBUTION = "packet_gap_s"
_VALUES = ("jitter_rfc3550_s", "pdv_p95_p50_s")


def check_figures(figures: Mapping[str, Any], sends: bool, streams: int, protocol: str) -> None:
    """Check that a peer's figures can be combined with our own. Raises Problem."""
    if len(figures["streams"]) != streams:
        raise Problem("peer", f"figures of {len(figures['streams'])} streams instead of {streams}")
    for stream in figures["streams"]:
        check_names(stream, sends)
        if protocol == "udp" and ("packets_sent" if sends else "packets_lost") not in stream:
            raise Problem("peer", "figures of UDP without its packets")
        for name, value in stream.items():
            if isinstance(value, Mapping) != (name == _DISTRIBUTION):
                raise Problem("peer", f"{name} is not what it should be")


def direction_result(
    sender: Mapping[str, Any], receiver: Mapping[str, Any], names: Sequence[str]
) -> dict[str, Any]:
    """Return the result of one direction from both ends' figures."""
    sent_s = sender["duration_s"]
    # A receiver without data has measured no time.
    received_s = receiver["duration_s"] or sent_s

    def rates(figures: Mapping[str, Any]) -> dict[str, float]:
        return {
            "throughput_bps": rate_bps(figures["bytes_received"], received_s),
            "sent_bps": rate_bps(figures["bytes_sent"], sent_s),
            "end_s": received_s,
            **_loss(figures),
        }

    streams = []
    for stream, (sent, received) in enumerate(zip(sender["streams"], receiver["streams"])):
        figures = {**sent, **received}
        streams.append({"stream": stream, "id": names[stream], **rates(figures), **figures})
    whole = _sums((*sender["streams"], *receiver["streams"]))
    effective = {**receiver["effective"], **sender["effective"]}
    return {**rates(whole), **whole, "effective": effective, "streams": streams}


def one_sided_result(
    figures: Mapping[str, Any], sends: bool, names: Sequence[str]
) -> dict[str, Any]:
    """Return the result of one direction from one end's figures, as a server shows it."""
    rate, count = rate_names(sends)
    duration_s = figures["duration_s"]

    def with_rate(own: Mapping[str, Any]) -> dict[str, Any]:
        return {rate: rate_bps(own[count], duration_s), "end_s": duration_s, **own}

    streams = [
        {"stream": stream, "id": names[stream], **with_rate(own)}
        for stream, own in enumerate(figures["streams"])
    ]
    whole = with_rate(_sums(figures["streams"]))
    return {**whole, "effective": figures["effective"], "streams": streams}


def _sums(streams: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Add up the counts of streams, and average the values."""
    found: dict[str, list[Any]] = {}
    for stream in streams:
        for name, value in stream.items():
            found.setdefault(name, []).append(value)
    whole: dict[str, Any] = {}
    for name, values in found.items():
        if name in _VALUES:
            whole[name] = sum(values) / len(values)
        elif name != _DISTRIBUTION:
            whole[name] = sum(values)
        elif len(values) == 1:
            whole[name] = values[0]
    return whole


def _loss(figures: Mapping[str, Any]) -> dict[str, float]:
    if not figures.get("packets_sent"):
        return {}
    return {"loss_ratio": figures["packets_lost"] / figures["packets_sent"]}
