"""The routes that flows traced: in one line, hop by hop, and whether repeats took the same.

A hop without an answer is a router that is silent. It may be any, so it makes no route another one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchctl.analysis.runs.summary import at_point, point_key
from benchctl.report.pivot import Pivot
from benchctl.report.report import Report
from benchctl.run.record import RecordedFlow, TracedHop
from benchctl.run.status import Status
from benchctl.units import format_value, without_unit

_Route = tuple[TracedHop, ...]
_Ways = dict[tuple[str, Any], tuple[Mapping[str, Any], list[tuple[_Route, list[int]]]]]
"""By flow and point: the point, and its different routes, each with its repeats."""
SILENT = "*"
# One of 700 hops is named by chance.
SURE = 3.0
_SPREAD = ("min", "median", "p95", "max")


def route_text(route: Sequence[TracedHop]) -> str:
    """Return a route in one line: ``10.0.0.2 > * > 10.0.1.1 or 10.0.2.1 > 10.0.3.2``."""
    return " > ".join(" or ".join(hop.addresses) or SILENT for hop in route)


def is_same(a: Sequence[TracedHop], b: Sequence[TracedHop]) -> bool:
    """Return whether two routes may be one: as long, and at each hop some common address."""
    return len(a) == len(b) and all(
        not hop.addresses or not other.addresses or hop.addresses.keys() & other.addresses.keys()
        for hop, other in zip(a, b, strict=True)
    )


def together(a: Sequence[TracedHop], b: Sequence[TracedHop]) -> _Route:
    """Return the addresses of two routes that are as long, without figures."""
    return tuple(
        TracedHop({**(Counter(hop.addresses) + Counter(other.addresses))})
        for hop, other in zip(a, b, strict=True)
    )


def route_lines(report: Report) -> Iterator[str]:
    """Yield the route of each flow that traced one, at points that differ, and where it changed."""
    by_flow: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for (flow, _), (point, routes) in _ways(report).items():
        by_flow.setdefault(flow, {}).setdefault(_in_words(routes), []).append(point)
    for flow, texts in by_flow.items():
        for text, points in texts.items():
            for point in points if len(texts) > 1 else points[:1]:
                yield f"route of {flow}{at_point(point) if len(texts) > 1 else ''}: {text}"
    for flow in by_flow:
        yield from _silence(report, flow)


def _in_words(routes: Sequence[tuple[_Route, list[int]]]) -> str:
    if len(routes) == 1:
        return route_text(routes[0][0])
    parts = [
        f"{route_text(route)} (repeat{'s' * (len(repeats) > 1)} {', '.join(map(str, repeats))})"
        for route, repeats in routes
    ]
    return f"changed between repeats: {'; '.join(parts)}"


def _ways(report: Report) -> _Ways:
    found: _Ways = {}
    for trial, flow in _traced(report):
        key = (flow.name, point_key(trial.point))
        _, routes = found.setdefault(key, (trial.point, []))
        for place, (route, repeats) in enumerate(routes):
            if is_same(route, flow.route):
                routes[place] = (together(route, flow.route), [*repeats, trial.repeat])
                break
        else:
            routes.append((flow.route, [trial.repeat]))
    return found


def _traced(report: Report) -> Iterator[tuple[Any, RecordedFlow]]:
    """Yield the flows that traced a route to its end, each with its trial."""
    for trial in report.trials:
        for flow in trial.flows:
            if flow.flow.route and flow.flow.status is Status.OK:
                yield trial.trial, flow.flow


def _silence(report: Report, name: str) -> Iterator[str]:
    """Yield a line if routers left more unanswered than the end of the path: that is no loss."""
    quiet: dict[str, None] = {}
    for _, flow in _traced(report):
        if flow.name != name:
            continue
        *routers, end = flow.route
        for number, hop in enumerate(routers, 1):
            if _is_more_silent(hop, end):
                quiet[f"{number} ({' or '.join(hop.addresses) or 'silent'})"] = None
    if quiet:
        hops = f"hop{'s' * (len(quiet) > 1)} {', '.join(quiet)}"
        yield (
            f"{hops} of {name} left probes unanswered that the path did not lose: routers limit"
            " their answers"
        )


def _is_more_silent(hop: TracedHop, end: TracedHop) -> bool:
    """Return whether a hop left more unanswered than the end, by more than chance makes of it.

    The two shares differ by three standard errors of their difference if both are the same.
    """
    counts = [
        (traced.figures["hop_unanswered"].value, traced.figures["hop_probes"].value)
        for traced in (hop, end)
        if {"hop_unanswered", "hop_probes"} <= traced.figures.keys()
    ]
    if len(counts) < 2:
        return False
    (quiet, probes), (lost, sent) = counts
    share = (quiet + lost) / (probes + sent)
    error = math.sqrt(share * (1 - share) * (1 / probes + 1 / sent))
    return quiet / probes - lost / sent > SURE * error


def hop_table(route: Sequence[TracedHop]) -> Pivot:
    """Return a route hop by hop: the addresses, and the figures of its probes."""
    metrics = {name: figure for hop in route for name, figure in hop.figures.items()}
    heads = ["hop", "address"]
    for name, figure in metrics.items():
        # A count and its ratio differ in their units only.
        title = name if without_unit(name) in metrics else without_unit(name)
        heads.append(title + (f" {_SPREAD[0]}" if figure.spread else ""))
        heads += _SPREAD[1:] if figure.spread else ()
    rows = []
    for number, hop in enumerate(route, 1):
        row = [str(number), _addresses(hop)]
        for name, like in metrics.items():
            own = hop.figures.get(name)
            if like.spread:
                spread = own.spread if own else {}
                row += [format_value(name, spread[s]) if s in spread else "-" for s in _SPREAD]
            else:
                row.append("-" if own is None else format_value(name, own.value))
        rows.append(tuple(row))
    return Pivot(tuple(heads), tuple(place != 1 for place in range(len(heads))), tuple(rows))


def _addresses(hop: TracedHop) -> str:
    if len(hop.addresses) < 2:
        return "".join(hop.addresses) or SILENT
    return ", ".join(f"{address} ({count})" for address, count in hop.addresses.items())


def route_differences(*reports: Report) -> Iterator[tuple[str, ...]]:
    """Yield a row for each flow and point whose runs took other routes: what, then in each run."""
    found = [_ways(report) for report in reports]
    for key in dict.fromkeys(key for in_run in found for key in in_run):
        taken = [in_run[key][1] if key in in_run else [] for in_run in found]
        routes = [[route for route, _ in own] for own in taken]
        if all(
            any(is_same(a, b) for b in routes[0]) for route in routes[1:] for a in route
        ) and all(routes):
            continue
        point = next(in_run[key][0] for in_run in found if key in in_run)
        name = f"route of {key[0]}{at_point(point)}"
        yield name, *(_in_words(own) if own else "-" for own in taken)
