"""Statistics of a set of values: those of a histogram, and OWAMP's own percentile."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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


def pdv_p95_p50_s(delays_s: Sequence[float], sent: int) -> float | None:
    """Return the 95th minus the 50th percentile of sorted delays, as OWAMP computes them.

    A lost packet counts as infinitely late: the shares are of the packets sent, and with more than
    5 % lost there is no 95th percentile (None). Source: CalculateJitter in owamp's stats.c.
    """
    high, middle = (math.ceil(share * sent) - 1 for share in (0.95, 0.5))
    if high >= len(delays_s):
        return None
    return delays_s[high] - delays_s[middle]
