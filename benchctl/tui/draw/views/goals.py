"""The goals of a run (`benchctl.report.progress.goals`) as a table, and in a few lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchctl.report.lines.spans import Line, Span
from benchctl.report.progress.goals import HEADS, Goal, GoalState, tally_of
from benchctl.tui.draw.text.columns import Cells, Column, widths

_SIGNS = {
    GoalState.MET: ("✓", "good"),
    GoalState.KNOWN: ("✓", "good"),
    GoalState.FOUND: ("✓", "good"),
    GoalState.NOT_MET: ("✗", "bad"),
    GoalState.NOT_KNOWN: ("✗", "warn"),
    GoalState.NOT_FOUND: ("✗", "warn"),
    GoalState.UNDECIDED: ("?", "warn"),
    GoalState.REPEATING: ("▶", "running"),
    GoalState.SEARCHING: ("▶", "running"),
}


def _state(goal: Goal) -> Span:
    glyph, role = _SIGNS[goal.state]
    if goal.state is GoalState.NOT_MET and not goal.fails:
        role = "warn"
    return Span(f"{glyph} {goal.state}", role)


def goal_row(goal: Goal) -> Cells:
    """Return a goal as a row."""
    return [_state(goal), Span(goal.what), Span(goal.trials), Span(goal.figures)]


def goal_columns(goals: Sequence[Goal]) -> list[Column]:
    """Return the columns for some goals."""
    rows = [[span.text for span in goal_row(goal)] for goal in goals]
    state, what, trials, figures = widths(HEADS, rows, [False] * len(HEADS))
    others = [Column(column.head, column.width) for column in (what, trials, figures)]
    return [state, *others]


def goal_tally(goals: Sequence[Goal]) -> Line:
    """Return how many goals are in each state, in a line."""
    return [Span("goals: ", "label"), Span(tally_of(goals)), Span("; l lists them", "dim")]


def goal_notes(goals: Sequence[Goal], point: Mapping[str, Any]) -> list[Line]:
    """Return what is under way at a point, what failed, and how many goals are in each state."""
    under_way = (GoalState.REPEATING, GoalState.SEARCHING)
    lines: list[Line] = []
    at_work = [goal for goal in goals if goal.state in under_way]
    # Of a search, the point of a goal is without the rate that is tried.
    own = [goal for goal in at_work if goal.point.items() <= point.items()]
    for goal in [*own, *at_work][:1]:
        lines.append([_state(goal), Span(f" {goal.trials}, {goal.figures}: {goal.what}")])
    for goal in [goal for goal in goals if goal.state is GoalState.NOT_MET][:1]:
        lines.append([_state(goal), Span(f" {goal.what}: {goal.figures}")])
    if goals:
        lines.append(
            [Span("goals: ", "label"), Span(tally_of(goals)), Span("; l lists them", "dim")]
        )
    return lines
