"""Conditions as profiles write them: on a figure, on its bound, on the events within a flow.

- a figure is ``METRIC[.AGGREGATE]``: ``throughput_bps``, ``rtt_s.p95``;
- a condition is ``FIGURE COMPARISON VALUE``: ``loss_ratio < 0.1%``, ``rtt_s.p95 <= 50ms``. The
  value has the unit of its metric; that of a count has none;
- a bound is ``VALUE`` or ``[FACTOR *] REFERENCE``: ``50Mbit``, ``0.9 * expected``, ``baseline``;
- events are ``[no] KIND, …``: ``no drop``, ``no stall, recovery``, ``no event``.

Whether a metric exists is for others to check.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Collection
from enum import StrEnum

from msgspec import Struct

from benchctl.errors import nearest
from benchctl.units import parse_value, quoted, scale_of, unit_of

AGGREGATES = ("min", "mean", "median", "p95", "max")
"""What a distribution may be reduced to; without one, it is its mean."""

REFERENCES = ("asked", "expected", "reported", "baseline")
"""What a figure may be compared with: the values beside it, and the same figure of the baseline."""
ANY_EVENT = "event"

_FIGURE = re.compile(r"(\w+)(?:\.(\w+))?", re.A)
_CONDITION = re.compile(r"\s*([\w.]+)\s*([<>]=?)\s*(\S.*?)\s*", re.A)
_RELATIVE = re.compile(r"\s*(?:(\d*\.?\d+)\s*\*\s*)?([A-Za-z_]+)\s*", re.A)
_EXAMPLES = '"loss_ratio < 0.1%" or "rtt_s.p95 <= 50ms"'


class Comparator(StrEnum):
    """How a figure is compared with a bound."""

    BELOW = "<"
    AT_MOST = "<="
    ABOVE = ">"
    AT_LEAST = ">="


_OPERATORS = {
    Comparator.BELOW: operator.lt,
    Comparator.AT_MOST: operator.le,
    Comparator.ABOVE: operator.gt,
    Comparator.AT_LEAST: operator.ge,
}


class Condition(Struct, frozen=True):
    """A bound on one metric, in its SI unit; ``aggregate`` is empty for the figure itself."""

    metric: str
    comparison: Comparator
    bound: float
    aggregate: str = ""

    def holds(self, value: float) -> bool:
        """Return whether a figure meets the bound."""
        return bool(_OPERATORS[self.comparison](value, self.bound))

    def __str__(self) -> str:
        name = f"{self.metric}.{self.aggregate}" if self.aggregate else self.metric
        factor, unit = scale_of(self.metric, self.bound)
        return f"{name} {self.comparison} {self.bound / factor:.12g} {unit}".rstrip()


def parse_condition(text: object) -> Condition:
    """Parse a condition. Raises ValueError."""
    match = _CONDITION.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"{quoted(text)} is not a condition; write it as in {_EXAMPLES}")
    figure, comparison, written = match.groups()
    metric, aggregate = parse_figure(figure)
    bound = parse_value(metric, written if unit_of(metric) else _number(written))
    return Condition(metric, Comparator(comparison), bound, aggregate)


def parse_figure(text: str) -> tuple[str, str]:
    """Return the metric and the aggregate of a figure; the latter may be empty.

    Raises ValueError.
    """
    match = _FIGURE.fullmatch(text)
    if match is None:
        raise ValueError(f'{quoted(text)} is not a figure; write it as in "rtt_s" or "rtt_s.p95"')
    metric, aggregate = match.groups()
    if aggregate and aggregate not in AGGREGATES:
        raise ValueError(f"no aggregate {quoted(aggregate)}; {_like(aggregate, AGGREGATES)}")
    return metric, aggregate or ""


class Relative(Struct, frozen=True):
    """A bound that is a multiple of a reference, one of `REFERENCES`; ``plus`` is added to it."""

    factor: float
    of: str
    plus: float = 0.0

    def __str__(self) -> str:
        text = self.of if self.factor == 1 else f"{self.factor:.12g} * {self.of}"
        return f"{text} {self.plus:+.12g}" if self.plus else text


def parse_bound(metric: str, written: object) -> float | Relative:
    """Parse the bound of a metric: in its SI unit, or relative. Raises ValueError."""
    match = _RELATIVE.fullmatch(written) if isinstance(written, str) else None
    if match is not None:
        factor, of = match.groups()
        if of in REFERENCES:
            return Relative(float(factor or 1), of)
        if factor is not None:
            raise ValueError(f"no reference {quoted(of)}; {_like(of, REFERENCES)}")
    return parse_value(metric, written)


class EventRule(Struct, frozen=True):
    """A kind of event that has to occur in every repeat, or in none.

    ``kind`` is one of `Happening`, or `ANY_EVENT` for all.
    """

    kind: str
    wanted: bool

    def __str__(self) -> str:
        return self.kind if self.wanted else f"no {self.kind}"


def parse_events(text: str, kinds: Collection[str]) -> tuple[EventRule, ...]:
    """Parse rules on events of some kinds: ``no drop, no stall``. Raises ValueError."""
    rules = []
    for part in text.split(","):
        words = part.split()
        wanted = words[:1] != ["no"]
        kind = " ".join(words if wanted else words[1:])
        if kind not in (*kinds, ANY_EVENT):
            raise ValueError(f"no event {quoted(kind)}; {_like(kind, (*kinds, ANY_EVENT))}")
        rules.append(EventRule(kind, wanted))
    return tuple(rules)


def _like(text: str, known: Collection[str]) -> str:
    return nearest(text, known) or f"known: {', '.join(known)}"


def _number(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return text
