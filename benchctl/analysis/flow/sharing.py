"""How evenly concurrent flows share over time, and after what time they first do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchctl.analysis.statistics import fairness_jain
from benchctl.run.record import FairWindow

# Long enough to hold a few congestion epochs of each flow, and enough to see it change.
WINDOWS = 20
# Two flows are delta-fair at shares of (1 + delta) / 2 and (1 - delta) / 2 (RFC 5166, section 2.3,
# after Bansal, Balakrishnan, Floyd and Shenker, SIGCOMM 2001, with this delta).
DELTA = 0.1
FAIR = 1 / (1 + DELTA * DELTA)
"""Jain's index of two flows with such shares; it stands for the same unevenness of any number."""


def fair_windows(rates: Iterable[Sequence[float]], length_s: float) -> list[FairWindow]:
    """Return Jain's index in windows of one length; ``rates`` are those of each flow in them."""
    indexes = [fairness_jain(window) for window in zip(*rates, strict=True)]
    return [
        FairWindow(length_s * at, length_s * (at + 1), jain)
        for at, jain in enumerate(indexes)
        if jain is not None
    ]


def fair_after_s(windows: Sequence[FairWindow]) -> float | None:
    """Return the end of the first window in which the flows share evenly; None if none is."""
    return next((window.end_s for window in windows if window.jain >= FAIR), None)
