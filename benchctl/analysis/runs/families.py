"""Corrects the verdicts of many comparisons: a table of 54 figures has 54 chances to be wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

Correction = Callable[[Sequence[float]], list[float]]
"""Takes the p-values of a family, each for its figure alone; returns those for the whole."""


def holm(alone: Sequence[float]) -> list[float]:
    """Correct p-values so that a family has any false verdict with the chance of one.

    Holm, Scandinavian Journal of Statistics 6 (1979). Holds however the figures depend on another.
    """
    n = len(alone)
    order = sorted(range(n), key=alone.__getitem__)
    stepped = accumulate((min(1.0, alone[at] * (n - rank)) for rank, at in enumerate(order)), max)
    return _in_place(order, list(stepped))


def benjamini_hochberg(alone: Sequence[float]) -> list[float]:
    """Correct p-values so that of the verdicts of a family only this share is false.

    Benjamini and Hochberg, Journal of the Royal Statistical Society B 57 (1995). Finds more than
    Holm; holds if figures are independent, or rise and fall together.
    """
    n = len(alone)
    order = sorted(range(n), key=alone.__getitem__, reverse=True)
    stepped = accumulate(
        (min(1.0, alone[at] * n / (n - rank)) for rank, at in enumerate(order)), min
    )
    return _in_place(order, list(stepped))


def _in_place(order: Sequence[int], values: Sequence[float]) -> list[float]:
    return [value for _, value in sorted(zip(order, values, strict=True))]


CORRECTIONS: dict[str, Correction] = {"holm": holm, "bh": benjamini_hochberg}
"""By the name on the command line."""
