"""Statistics of a histogram."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean, quantiles


def spread(counts: Mapping[float, int]) -> dict[str, float]:
    """Return min, mean, median, p95 and max of values with counts.

    Percentiles are those of every distribution (`Fold.DISTRIBUTION`). There must be a value.
    """
    values = [value for value in sorted(counts) for _ in range(counts[value])]
    twentieths = quantiles(values, n=20, method="inclusive") if len(values) > 1 else values * 19
    return {
        "min": values[0],
        "mean": fmean(values),
        "median": twentieths[9],
        "p95": twentieths[18],
        "max": values[-1],
    }
