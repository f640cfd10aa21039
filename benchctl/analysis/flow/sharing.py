"""How evenly concurrent flows share over time, and after what time they first do."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from benchctl.analysis.flow.figures import FlowFold
from benchctl.analysis.statistics import fairness_jain
from benchctl.metrics import Aspect, of_aspect
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


@dataclass(frozen=True, slots=True)
class Shares:
    """The time that the flows of a trial share, in Unix time, and their rates in it."""

    metric: str
    flows: Sequence[tuple[FlowFold, float]]
    """Those that measured it, each with its second 0."""
    begin: float
    end: float

    @classmethod
    def of(
        cls, flows: Iterable[tuple[FlowFold, float | None]], broken: Container[str] = ()
    ) -> Shares | None:
        """Return the shares of flows, each with its second 0; None if it is unknown.

        None if fewer than two flows measured a rate, or none at the same time. A rate that is
        among the ``broken`` metrics has no share.
        """
        begun = [(fold, second_0) for fold, second_0 in flows if second_0]
        for name in of_aspect(Aspect.RATE):
            windows = [(fold, second_0, fold.window_s(name)) for fold, second_0 in begun]
            shares = [
                (fold, begin, window) for fold, begin, window in windows if window is not None
            ]
            if name in broken:
                return None
            if len(shares) > 1:
                begin = max(second_0 + window[0] for _, second_0, window in shares)
                end = min(second_0 + window[1] for _, second_0, window in shares)
                parts = [(fold, second_0) for fold, second_0, _ in shares]
                return cls(name, parts, begin, end) if end > begin else None
        return None

    @property
    def jain(self) -> float | None:
        """Jain's index over the whole time."""
        return fairness_jain([rate for (rate,) in self._rates(1)])

    @property
    def windows(self) -> list[FairWindow]:
        """Jain's index over time, in windows no shorter than any sample."""
        longest_s = max(fold.longest_s(self.metric) for fold, _ in self.flows)
        count = min(WINDOWS, int((self.end - self.begin) / longest_s + 1e-6)) if longest_s else 0
        return fair_windows(self._rates(count), (self.end - self.begin) / count) if count else []

    def _rates(self, count: int) -> list[list[float]]:
        """Return the mean rates of each flow in equal windows of the time."""
        step_s = (self.end - self.begin) / count
        return [
            fold.in_windows(self.metric, self.begin - second_0, step_s, count)
            for fold, second_0 in self.flows
        ]
