"""The plan of a profile as the plan screen draws it.

Planning takes a fifth of a second to import (`python bench tui`, key 1), so only the thread that
plans imports this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from benchctl.engine.checks.machine import HealthFinding, examine
from benchctl.engine.prepare.planning import Planned, planned
from benchctl.engine.prepare.quick_look import look_at
from benchctl.errors import BenchctlError
from benchctl.profile.find import shipped_topologies
from benchctl.report.lines.plan import command_lines, opening_comment, plan_head, start_text
from benchctl.report.lines.spans import Line, Span
from benchctl.toml.source import parse_toml
from benchctl.tui.model.choices import Choices, Settable, choices_of

PLAN, ABOUT, COMMANDS = "Plan", "About", "Commands"
NO_WORDS = "The profile has no description, and does not begin with a comment."


class Drawn(Struct, frozen=True):
    """A drawn plan, or the error."""

    tabs: Mapping[str, Sequence[Line]]
    prepared: Planned | None = None
    choices: Sequence[Settable] = ()
    start: str = ""
    """What a start does, in a line."""

    @property
    def can_run(self) -> bool:
        """Whether everything the plan needs is available."""
        return self.prepared is not None and self.prepared.missing is None


def draw_plan(profile: str, chosen: Choices | None = None) -> Drawn:
    """Plan a profile with what was chosen instead of its values, and draw the plan.

    Checks programs and the machine, sends nothing.
    """
    chosen = chosen or Choices()
    return _drawn(
        lambda: planned(profile, chosen.assignments, None, None, yes=False, lab=chosen.lab)
    )


def draw_quick(host: str) -> Drawn:
    """Plan what ``benchctl quick`` measures to a host, and draw the plan.

    Connects to the host to see which server answers.
    """

    def plan() -> Planned:
        source = parse_toml(look_at(host).text, Path("quick.toml"))
        return planned(source, (), None, None, yes=False)

    # The command has no options for what else could be chosen; `W` writes a profile, which has.
    return replace(_drawn(plan), choices=())


def _drawn(plan: Callable[[], Planned]) -> Drawn:
    try:
        prepared = plan()
    except BenchctlError as error:
        hint: list[Line] = [[Span(f"  {error.hint}")]] if error.hint else []
        return Drawn({PLAN: [[Span(f"✗ {error.message}", "bad")], *hint]})
    findings = [finding for finding in examine(prepared.registry) if _concerns(finding, prepared)]
    document = prepared.plan.document
    comment = opening_comment(document.sources[0].text)
    about = [*document.model.description.strip().splitlines(), *[""] * bool(comment), *comment]
    title, *lines = plan_head(prepared, findings)
    tabs = {
        PLAN: [title, *lines[1:]],
        ABOUT: [title, [], *([Span(line)] for line in about or [NO_WORDS])],
        COMMANDS: command_lines(prepared, short=True),
    }
    choices = choices_of(prepared.plan, [*shipped_topologies()])
    return Drawn(tabs, prepared, choices, start_text(prepared))


def _concerns(finding: HealthFinding, prepared: Planned) -> bool:
    """Return whether a note is relevant to a plan, whose own tools are checked separately."""
    no_lab = prepared.topology is None or prepared.lab_fault is not None
    of_labs = finding.subject.startswith("lab") and no_lab
    of_tools = finding.subject in prepared.registry.candidates
    return finding.level != "ok" and not of_labs and not of_tools
