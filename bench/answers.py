"""Statistics: how often intervals hold, events are found, and verdicts are wrong, by simulation.

Every simulation has a fixed seed. Peers (SciPy, pymannkendall, pymser) stand beside our figures
where they are installed. The last figures are of whole processes on a large stored run.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from statistics import fmean

import answers_series
import answers_stored
import table

from benchctl.analysis.runs.compare import Comparison, compare
from benchctl.analysis.runs.families import holm
from benchctl.analysis.runs.stopping import is_known_to
from benchctl.analysis.runs.summary import SummaryRow
from benchctl.analysis.statistics import spread
from benchctl.metrics import Vocabulary

EXPERIMENTS = 10_000
TABLES = 1_000
FIGURES = 54


def main() -> None:
    _intervals()
    _verdicts()
    answers_series.main()
    answers_stored.main()


def _intervals() -> None:
    table.head(f"95 % intervals of {EXPERIMENTS:,} experiments: how often they hold the truth")
    for n in (2, 3, 5, 10, 20):
        rng = random.Random(n)
        runs = [spread([rng.gauss(100, 5) for _ in range(n)]) for _ in range(EXPERIMENTS)]
        held = fmean(_holds(one.ci95_low, one.ci95_high) for one in runs)
        table.row(f"mean of {n}: {held * 100:.1f} %, off 95 %", abs(held - 0.95) * 100, 1, "%")
        if n >= 6:
            held = fmean(_holds(one.median_low, one.median_high) for one in runs)
            table.row(f"median of {n}", held * 100, 94, "%", at_least=True)
    for variation in (0.01, 0.05, 0.2):
        rng = random.Random(20)
        runs = [spread(_until(rng, variation)) for _ in range(EXPERIMENTS)]
        held = fmean(_holds(one.ci95_low, one.ci95_high) for one in runs)
        n = fmean(one.n for one in runs)
        what = (
            f"until 2 %, variation {variation:.0%}, {n:.1f} repeats: {held * 100:.1f} %, off 95 %"
        )
        table.row(what, abs(held - 0.95) * 100, 2, "%")


def _holds(low: float | None, high: float | None) -> bool:
    return low is not None and high is not None and low <= 100 <= high


def _until(rng: random.Random, variation: float) -> list[float]:
    values = [rng.gauss(100, 100 * variation) for _ in range(3)]
    while len(values) < 20 and not is_known_to(values, 0.02, 20):
        values.append(rng.gauss(100, 100 * variation))
    return values


def _verdicts() -> None:
    table.head(f"compare: {FIGURES} figures, {TABLES:,} pairs of runs")
    for n in (2, 3, 5):
        rng = random.Random(n)
        false = sum(any(_seen(_compared(rng, (n, n)))) for _ in range(TABLES))
        table.row(f"n = {n}, all equal: any false verdict", false / TABLES * 100, 6, "%")
    for name, draw in (
        ("lognormal, variation 53 %", _lognormal),
        ("ratios, most of them 0", _ratio),
    ):
        for counts in ((3, 3), (5, 5), (2, 5)):
            rng = random.Random(sum(counts))
            false = sum(any(_seen(_compared(rng, counts, draw=draw))) for _ in range(TABLES))
            what = f"n = {counts[0]} and {counts[1]}, {name}: any false verdict"
            table.row(what, false / TABLES * 100, 6, "%")
    for n, share in ((2, 0.05), (2, 0.1), (2, 0.15), (3, 0.15)):
        rng = random.Random(n)
        draw = partial(_disturbed, share)
        false = sum(any(_seen(_compared(rng, (n, n), draw=draw))) for _ in range(TABLES))
        what = f"n = {n}, {share:.0%} of trials at half rate: any false verdict"
        table.row(what, false / TABLES * 100, 5, "%")
    # The bounds of the second are what is named if no chance of disturbed repeats is included.
    for outliers, bounds in ((0, (78, 99, 89)), (1, (60, 99, 85))):
        for (n, change), least in zip(((2, 20), (3, 20), (5, 10)), bounds, strict=True):
            rng = random.Random(n)
            draw = partial(_disturbed, 0)
            tables = (_compared(rng, (n, n), change, draw, outliers) for _ in range(TABLES))
            found = fmean(_seen(one)[0] for one in tables)
            what = f"n = {n}, variation 3 %, one changed by {change} %: it is named"
            beside = f"; {outliers} trial at half rate" * outliers
            table.row(what + beside, found * 100, least, "%", at_least=True)
    for n, shift in ((5, 6), (3, 12), (2, 12)):
        rng = random.Random(6)
        pairs = [_compared(rng, (n, n), shift) for _ in range(TABLES // 4)]
        named = fmean(_seen(pair)[0] for pair in pairs) * 100
        what = f"n = {n}, one shifted by {shift} deviations: it is named"
        if n == 5:
            table.row(what, named, 90, "%", at_least=True)
        if find_spec("scipy") is not None:
            table.row(f"{what}; bound: by SciPy's Welch, Holm", named,
                      fmean(map(_named_by_welch, pairs)) * 100, "%", at_least=True)  # fmt: skip


def _seen(compared: Sequence[Comparison]) -> list[bool]:
    return [one.verdict.is_certain for one in compared]


def _named_by_welch(compared: Sequence[Comparison]) -> bool:
    """Return whether Welch's test of each figure alone, and Holm's correction, name the first."""
    welch = import_module("scipy.stats").ttest_ind
    return holm([float(welch(one.a, one.b, equal_var=False).pvalue) for one in compared])[0] < 0.05


def _normal(rng: random.Random) -> float:
    return rng.gauss(100, 1)


def _disturbed(share: float, rng: random.Random) -> float:
    """Return the rate of a trial on a machine that others use, too."""
    return rng.gauss(100, 3) * (0.5 if rng.random() < share else 1)


def _lognormal(rng: random.Random) -> float:
    return 100 * math.exp(rng.gauss(0, 0.5))


def _ratio(rng: random.Random) -> float:
    """Return the loss of a flow: mostly none."""
    return rng.random() * 0.01 if rng.random() < 0.2 else 0.0


def _compared(
    rng: random.Random,
    counts: tuple[int, int],
    shift: float = 0.0,
    draw: Callable[[random.Random], float] = _normal,
    outliers: int = 0,
) -> list[Comparison]:
    """Compare two runs, whose first figures are apart; the first trials of the last are at half."""
    runs = []
    for n, moved in zip(counts, (0.0, shift), strict=True):
        rows = []
        for place in range(FIGURES):
            values = [draw(rng) + moved * (place == 0) for _ in range(n)]
            if place == FIGURES - 1 and not runs:
                values[:outliers] = [value / 2 for value in values[:outliers]]
            point = {"place": place}
            rows.append(SummaryRow(point, "main", "send", "throughput_bps", values, spread(values)))
        runs.append(rows)
    return compare(*runs, Vocabulary())
