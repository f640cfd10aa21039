"""The figure of a search: the rate of each try, and what the tries up to it leave open."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from benchctl.analysis.runs.summary import point_key
from benchctl.analysis.search.search import Try
from benchctl.analysis.search.tries import search_key, try_of
from benchctl.metrics import METRICS
from benchctl.report.figures.axes import named_axis, value_axis
from benchctl.report.figures.figure import LineRole, Panel, Picture, PictureLine
from benchctl.report.figures.parts import left_out
from benchctl.report.figures.request import PictureRequest

_NAMES = ("highest rate that passed", "lowest rate that failed")


def searched(request: PictureRequest) -> Picture | None:
    """Return the figure of the first search of a part; None if the run has none."""
    search = request.run.settings.search
    if search is None:
        return None
    groups: dict[object, list[Try]] = {}
    for trial in request.trials:
        groups.setdefault(search_key(search, trial.trial), []).append(try_of(search, trial))
    if not groups:
        return None
    (key, tries), *others = groups.items()
    tries = [attempt for attempt in tries if attempt.passed is not None]
    xs = [float(place) for place in range(len(tries))]
    rates = [attempt.rate_bps for attempt in tries]
    lines = [
        PictureLine(_NAMES[0], 0, xs, _so_far(tries, passed=True, best=max)),
        PictureLine(_NAMES[1], 1, xs, _so_far(tries, passed=False, best=min)),
    ]
    for number, passed in ((0, True), (1, False)):
        ys = [attempt.rate_bps if attempt.passed is passed else math.nan for attempt in tries]
        lines.append(PictureLine("tried", number, xs, ys, role=LineRole.REPORTED))
    lines += _expected(request, key, xs)
    # The bracket is narrow beside its distance from 0.
    y = value_axis(METRICS["throughput_bps"], lines, seen=rates)
    y = replace(y, title=search.axis, from_zero=False)
    notes = left_out(len(groups), len(groups) - len(others), "searches")
    x = named_axis("try", [str(number) for number in range(1, len(tries) + 1)])
    return request.figure(x, [Panel(y, lines)], _NAMES, "", notes)


def _so_far(
    tries: Sequence[Try], *, passed: bool, best: Callable[[Sequence[float]], float]
) -> list[float]:
    """Return the best rate of the tries up to each; NaN before the first one."""
    found: list[float] = []
    ys = []
    for attempt in tries:
        if attempt.passed is passed:
            found.append(attempt.rate_bps)
        ys.append(best(found) if found else math.nan)
    return ys


def _expected(request: PictureRequest, key: object, xs: Sequence[float]) -> list[PictureLine]:
    for search in request.report.found:
        if (point_key(search.point), search.repeat) == key and search.expected_bps is not None:
            ys = [search.expected_bps] * len(xs)
            return [PictureLine("expected", None, xs, ys, role=LineRole.EXPECTED)]
    return []
