"""Rate and round-trip time of each flow by the window in force, with the bounds of its path.

Below the bandwidth-delay product a window bounds the rate, and no queue forms; above it the path
bounds the rate, and what is more only waits in its queue (Kleinrock 1979; Cardwell et al., BBR:
Congestion-Based Congestion Control, ACM Queue 2016, figure 1). The bounds are window / RTT and the
share of the bottleneck that theory expects; the least RTT, and window / share.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from msgspec import Struct

from benchctl.report.figures.axes import WIDE, value_axis
from benchctl.report.figures.figure import Axis, LineRole, Panel, Picture, PictureLine
from benchctl.report.figures.parts import Source, left_out, names_of
from benchctl.report.figures.request import PictureRequest, numbered
from benchctl.report.report import place_of
from benchctl.report.text.limiting import limits_of

# More paths in one figure have bounds that cross all over it.
MOST_PATHS = 3
# Two paths whose bounds differ by less are one.
ALIKE = 0.05
_POINTS = 33


class _Spot(Struct, frozen=True):
    """A flow of a trial: its window in force, its rate and its round-trip times."""

    source: Source
    window_bytes: float
    rate_bps: float
    rtt_s: float
    least_rtt_s: float
    share_bps: float | None
    valid: bool


def plane(request: PictureRequest) -> Picture | None:
    """Return the figure; None if no flow of the part has a window and a round-trip time."""
    spots = sorted(_spots(request), key=lambda spot: place_of(request.run, spot.source.point))
    if not spots:
        return None
    naming = names_of((spot.source for spot in spots), request.axes)
    numbers, count = numbered((naming.key(spot.source), spot.source) for spot in spots)
    rates: list[PictureLine] = []
    rtts: list[PictureLine] = []
    shown = [spot for spot in spots if naming.key(spot.source) in numbers]
    for key, number in numbers.items():
        mine = sorted(
            (spot for spot in shown if naming.key(spot.source) == key),
            key=lambda spot: (spot.window_bytes, spot.rate_bps),
        )
        xs = [spot.window_bytes for spot in mine]
        name = ", ".join(key)
        rates.append(PictureLine(name, number, xs, [spot.rate_bps for spot in mine]))
        rtts.append(PictureLine(name, number, xs, [spot.rtt_s for spot in mine]))
        if doubtful := [spot for spot in mine if not spot.valid]:
            xs = [spot.window_bytes for spot in doubtful]
            for lines, ys in (
                (rates, [spot.rate_bps for spot in doubtful]),
                (rtts, [spot.rtt_s for spot in doubtful]),
            ):
                lines.append(
                    PictureLine(LineRole.INVALID.value, number, xs, ys, role=LineRole.INVALID)
                )
    low = min(spot.window_bytes for spot in shown)
    high = max(spot.window_bytes for spot in shown)
    log = high / low >= WIDE
    x = Axis("window in force", "window_bytes", low, high, log=log, from_zero=not log)
    paths = _paths(shown)
    for least_rtt_s, share_bps in paths[:MOST_PATHS]:
        windows = _windows(low, high, share_bps * least_rtt_s / 8, log=log)
        bound = [min(window * 8 / least_rtt_s, share_bps) for window in windows]
        queued = [max(least_rtt_s, window * 8 / share_bps) for window in windows]
        rates.append(PictureLine("bound", None, windows, bound, role=LineRole.EXPECTED))
        rtts.append(PictureLine("bound", None, windows, queued, role=LineRole.EXPECTED))
    known = request.run.vocabulary.describe
    panels = [
        Panel(value_axis(known("throughput_bps"), rates, x_is_log=log), rates),
        Panel(value_axis(known("tcp_rtt_s"), rtts), rtts),
    ]
    bounded = any(line.role is LineRole.EXPECTED for line in rates)
    notes = [
        "window: the smaller of the congestion window and the peer's, over all streams"
        + "; dashed: window / least RTT up to the share of the path, and the RTT with its queue"
        * bounded,
        *left_out(count, len(numbers), "lines"),
    ]
    if len(paths) > MOST_PATHS:
        notes.append(f"{len(paths) - MOST_PATHS} of {len(paths)} paths have no bounds drawn")
    names = [", ".join(key) for key in numbers]
    return request.figure(x, panels, names, naming.title, notes)


def _spots(request: PictureRequest) -> Iterator[_Spot]:
    for trial in request.trials:
        valid = all(link["kept"] for link in trial.trial.links)
        for flow in trial.flows:
            if not flow.flow.status.counts:
                continue
            for direction, limit in limits_of(flow).items():
                congestion = flow.figures.get((direction, "cwnd_bytes"))
                windows = [limit.window_bytes, congestion.value if congestion else None]
                known = [window for window in windows if window]
                if known and limit.rtt_s:
                    yield _Spot(
                        Source(trial.trial.point, flow.flow.name, direction),
                        limit.streams * min(known), limit.rate_bps, limit.rtt_s,
                        limit.min_rtt_s or limit.rtt_s, limit.share_bps, valid,
                    )  # fmt: skip


def _paths(spots: Sequence[_Spot]) -> list[tuple[float, float]]:
    """Return the least round-trip time and the share of each path that the flows took.

    Flows whose share is alike took one path; the expected share of a window below it is less.
    """
    whole = max((spot.share_bps or 0.0 for spot in spots), default=0.0)
    found: dict[str, list[_Spot]] = {}
    for spot in spots:
        at_window = (spot.window_bytes * 8 / spot.least_rtt_s) * (1 - ALIKE)
        limited = spot.share_bps is None or (spot.share_bps < whole and spot.share_bps > at_window)
        if not limited:
            found.setdefault(f"{spot.share_bps:.1e}", []).append(spot)
    paths = []
    for alike in found.values():
        share_bps = max(spot.share_bps or 0.0 for spot in alike)
        # Of a single path those with a small window say best how long it takes.
        seen = spots if len(found) == 1 else alike
        paths.append((min(spot.least_rtt_s for spot in seen), share_bps))
    return sorted((rtt_s, share) for rtt_s, share in paths if share and math.isfinite(share))


def _windows(low: float, high: float, product: float, *, log: bool) -> list[float]:
    """Return windows to draw bounds at: the bandwidth-delay product, where they bend, is one."""
    low = low if log else 0.0
    ratio = high / low if log else 0.0
    shares = [number / (_POINTS - 1) for number in range(_POINTS)]
    windows = [low * ratio**share if log else high * share for share in shares]
    if low < product < high:
        windows.append(product)
    return sorted(windows)
