"""Limits for automatic checks: ``throughput_bps worse by 5%``."""

from __future__ import annotations

import re
from collections.abc import Collection

from msgspec import Struct

from benchctl.analysis.runs.compare import Comparison, Verdict
from benchctl.analysis.runs.equivalence import is_no_worse, is_same_within
from benchctl.errors import UsageError, nearest
from benchctl.units import format_ratio, parse_ratio, quoted

_LIMIT = re.compile(r"\s*(\S+)\s+(better|worse|different)\s+by\s+(\S+)\s*")
EXAMPLE = 'for example: --fail-on "throughput_bps worse by 5%"'


class ChangeLimit(Struct, frozen=True):
    """A metric may not change in this way, by this share or more.

    Of a ratio, ``share`` are percentage points.
    """

    metric: str
    verdict: Verdict
    share: float

    def broken_by(self, comparison: Comparison) -> bool:
        """Return whether a comparison shows such a change, or a larger one."""
        if (
            comparison.metric != self.metric
            or comparison.verdict is not self.verdict
            or not comparison.valid
        ):
            return False
        change = (
            comparison.difference if comparison.metric.endswith("_ratio") else comparison.relative
        )
        return change is None or abs(change) >= self.share

    def may_be_broken_by(self, comparison: Comparison, better: str) -> bool:
        """Return whether the repeats do not exclude such a change; ``better`` is the metric's.

        A figure that is only in the second run has not changed.
        """
        if comparison.metric != self.metric or not comparison.a:
            return False
        if self.verdict is Verdict.DIFFERENT:
            return not is_same_within(comparison, self.share)
        if self.verdict is Verdict.BETTER:
            better = {"higher": "lower", "lower": "higher"}.get(better, "")
        return not is_no_worse(comparison, self.share, better)

    def __str__(self) -> str:
        points = self.metric.endswith("_ratio")
        share = format_ratio(self.share).replace("%", "pp" if points else "%")
        return f"{self.verdict} by {share}"


def parse_limit(text: str, known: Collection[str] | None = None) -> ChangeLimit:
    """Parse a limit, on one of the ``known`` metrics if these were compared. Raises UsageError."""
    match = _LIMIT.fullmatch(text)
    if match is None:
        raise UsageError(f"--fail-on {quoted(text)}: expected METRIC worse by SHARE", EXAMPLE)
    metric, verdict, share = match.groups()
    if known is not None and metric not in known:
        raise UsageError(
            f"--fail-on: no metric {quoted(metric)} was compared", nearest(metric, known) or EXAMPLE
        )
    try:
        return ChangeLimit(metric, Verdict(verdict), parse_ratio(share))
    except ValueError as error:
        raise UsageError(f"--fail-on {quoted(text)}: {error}", EXAMPLE) from None
