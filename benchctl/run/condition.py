"""A condition on a figure, as profiles write it: ``loss_ratio < 0.1%``, ``rtt_s.p95 <= 50ms``.

The grammar is ``METRIC[.AGGREGATE] COMPARISON VALUE``. The value has the unit of its metric; that
of a count has none. Whether the metric exists is for others to check.
"""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from enum import StrEnum

from benchctl.errors import nearest
from benchctl.units import parse_value, quoted, scale_of, unit_of

AGGREGATES = ("min", "mean", "median", "p95", "max")
"""What a distribution may be reduced to; without one, it is its mean."""

_CONDITION = re.compile(r"\s*(\w+)(?:\.(\w+))?\s*([<>]=?)\s*(\S.*?)\s*", re.A)
_EXAMPLES = '"loss_ratio < 0.1%" or "rtt_s.p95 <= 50ms"'


class Comparison(StrEnum):
    """How a figure is compared with a bound."""

    BELOW = "<"
    AT_MOST = "<="
    ABOVE = ">"
    AT_LEAST = ">="


_OPERATORS = {
    Comparison.BELOW: operator.lt,
    Comparison.AT_MOST: operator.le,
    Comparison.ABOVE: operator.gt,
    Comparison.AT_LEAST: operator.ge,
}


@dataclass(frozen=True, slots=True)
class Condition:
    """A bound on one metric, in its SI unit; ``aggregate`` is empty for the figure itself."""

    metric: str
    comparison: Comparison
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
    metric, aggregate, comparison, written = match.groups()
    if aggregate and aggregate not in AGGREGATES:
        hint = nearest(aggregate, AGGREGATES) or f"known: {', '.join(AGGREGATES)}"
        raise ValueError(f"no aggregate {quoted(aggregate)}; {hint}")
    bound = parse_value(metric, written if unit_of(metric) else _number(written))
    return Condition(metric, Comparison(comparison), bound, aggregate or "")


def _number(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return text
