"""What differs between runs beside their figures: profile, settings, tools, hosts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from benchctl.report.comparison.comparison import letter
from benchctl.report.pivot import Pivot
from benchctl.report.text.detail import flat
from benchctl.run.record import Facts, Run

# Facts that differ between any two moments.
PASSING = ("load_1min", "clock.max_error_s", "clock.estimated_error_s")
# Of profiles that have little in common, the lines say nothing.
MOST_LINES = 8
# As `Document.text` writes them.
OPTIONS = ("# --set ", "# --only ", "# --repeat ")
_Row = tuple[str, ...]


def differences(*runs: Run, routes: Iterable[_Row] = ()) -> Pivot:
    """Return what differs as rows of text: what, then in each run; no rows if nothing does.

    ``routes`` are rows about what was measured, see `route_differences`.
    """
    rows = (*_profiles(runs), *_settings(runs), *_facts(runs), *routes)
    heads = ("differs", *map(letter, range(len(runs))))
    return Pivot(heads, (False,) * len(heads), rows)


def _profiles(runs: Sequence[Run]) -> Iterator[_Row]:
    yield from _row("profile", [run.profile for run in runs])
    texts = [
        dict.fromkeys(line.strip() for line in run.profile_text.splitlines() if _says(line))
        for run in runs
    ]
    lines = dict.fromkeys(line for text in texts for line in text)
    rows = [
        [line if line in text else "-" for text in texts]
        for line in lines
        if not all(line in text for text in texts)
    ]
    if len(rows) > MOST_LINES:
        own = [sum(row[place] != "-" for row in rows) for place in range(len(runs))]
        yield "text of the profile", f"{own[0]} lines", *(f"{n} other lines" for n in own[1:])
        return
    for place, row in enumerate(rows):
        yield "" if place else "text of the profile", *row


def _says(line: str) -> bool:
    """Return whether a line is no comment; options of the command line stand in comments."""
    text = line.strip()
    return bool(text) and (not text.startswith("#") or text.startswith(OPTIONS))


def _settings(runs: Sequence[Run]) -> Iterator[_Row]:
    for name in ("order", "attempts", "pause_s"):
        yield from _row(name, [getattr(run.settings, name) for run in runs])
    yield from _row("trials", [run.trials for run in runs])
    yield from _row("trials at once", [run.settings.at_once for run in runs])
    for axis in dict.fromkeys(axis for run in runs for axis in run.values):
        if not all(axis in run.values for run in runs):
            texts = [", ".join(map(str, run.values.get(axis, "-"))) for run in runs]
            yield from _row(f"axis {axis}", texts)


def _facts(runs: Sequence[Run]) -> Iterator[_Row]:
    yield from _facts_of([run.facts for run in runs], "")
    for host in runs[0].hosts:
        if all(host in run.hosts for run in runs):
            yield from _facts_of([run.hosts[host] for run in runs], f"{host}: ")


def _facts_of(of_runs: Sequence[Facts], before: str) -> Iterator[_Row]:
    facts = [dict(flat(run)) for run in of_runs]
    for name in facts[0]:
        # Devices come and go with labs, and other tools are there or not.
        if name not in PASSING and all(name in fact for fact in facts):
            yield from _row(f"{before}{name}", [fact[name] for fact in facts])


def _row(name: str, values: Sequence[object]) -> Iterator[_Row]:
    if any(value != values[0] for value in values):
        yield name, *map(str, values)
