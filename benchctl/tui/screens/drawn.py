"""The plan of a profile as the plan screen draws it.

Planning takes a fifth of a second to import (`python bench tui`, key 1), so only the thread that
plans imports this.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from benchctl.engine.health import HealthFinding, examine
from benchctl.engine.planning import Planned, planned
from benchctl.engine.preflight import first_missing
from benchctl.errors import BenchctlError
from benchctl.tui.draw.plantext import plan_lines
from benchctl.tui.draw.spans import Line, Span


class Drawn(Struct, frozen=True):
    """A drawn plan, or the error."""

    lines: Sequence[Line]
    prepared: Planned | None = None

    @property
    def can_run(self) -> bool:
        """Whether everything the plan needs is available."""
        return self.prepared is not None and first_missing(self.prepared.tools) is None


def draw_plan(profile: str) -> Drawn:
    """Plan a profile and draw it; checks programs and the machine, sends nothing."""
    try:
        prepared = planned(profile, None, None, None, yes=False)
    except BenchctlError as error:
        hint: list[Line] = [[Span(f"  {error.hint}")]] if error.hint else []
        return Drawn([[Span(f"✗ {error.message}", "bad")], *hint])
    findings = [one for one in examine(prepared.registry) if _concerns(one, prepared)]
    title, *lines = plan_lines(prepared, findings)
    about = prepared.plan.document.model.description.strip().splitlines()
    return Drawn([title, *([Span(line, "dim")] for line in about), *lines], prepared)


def _concerns(finding: HealthFinding, prepared: Planned) -> bool:
    """Return whether a note is relevant to a plan, whose own tools are checked separately."""
    of_labs = finding.subject.startswith("lab") and prepared.topology is None
    of_tools = finding.subject in prepared.registry.candidates
    return finding.level != "ok" and not of_labs and not of_tools
