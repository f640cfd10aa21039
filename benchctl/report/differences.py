"""What differs between two runs beside their figures: profile, settings, tools, hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchctl.report.pivot import Pivot
from benchctl.run.record import Run

# Facts that differ between any two moments.
PASSING = ("load_1min", "clock.max_error_s", "clock.estimated_error_s")
# Of two profiles that have little in common, the lines say nothing.
MOST_LINES = 8


def differences(a: Run, b: Run) -> Pivot:
    """Return what differs as rows of text: what, in A, in B; no rows if nothing does."""
    rows = [*_profiles(a, b), *_settings(a, b), *_facts(a, b)]
    return Pivot(("differs", "A", "B"), (False, False, False), tuple(rows))


def _profiles(a: Run, b: Run) -> Iterator[tuple[str, str, str]]:
    if a.profile != b.profile:
        yield "profile", a.profile, b.profile
    lines = [
        dict.fromkeys(line.strip() for line in run.profile_text.splitlines() if _says(line))
        for run in (a, b)
    ]
    only = [[line for line in mine if line not in other] for mine, other in (lines, lines[::-1])]
    if len(only[0]) + len(only[1]) > MOST_LINES:
        yield "text of the profile", f"{len(only[0])} lines", f"{len(only[1])} other lines"
        return
    rows = [(line, "-") for line in only[0]] + [("-", line) for line in only[1]]
    for place, row in enumerate(rows):
        yield "" if place else "text of the profile", *row


def _says(line: str) -> bool:
    """Return whether a line is no comment; values of ``--set`` stand in comments."""
    text = line.strip()
    return bool(text) and (not text.startswith("#") or text.startswith("# --set"))


def _settings(a: Run, b: Run) -> Iterator[tuple[str, str, str]]:
    for name in ("order", "attempts", "pause_s"):
        yield from _row(name, getattr(a.settings, name), getattr(b.settings, name))
    yield from _row("trials", a.trials, b.trials)


def _facts(a: Run, b: Run) -> Iterator[tuple[str, str, str]]:
    mine, others = dict(_flat(a.facts)), dict(_flat(b.facts))
    for name in mine:
        # Devices come and go with labs, and other tools are there or not.
        if name in others and name not in PASSING:
            yield from _row(name, mine[name], others[name])


def _row(name: str, a: object, b: object) -> Iterator[tuple[str, str, str]]:
    if a != b:
        yield name, str(a), str(b)


def _flat(facts: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, object]]:
    for name, value in facts.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value
