"""The hosts of a run as lines: connections and clocks of remote ones, facts of all. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchctl.report.lines.spans import Line, Span
from benchctl.report.text.detail import flat
from benchctl.run.planned import LOCAL
from benchctl.run.record import ClockReading, Run
from benchctl.run.status import Status
from benchctl.units import format_duration


def host_lines(
    run: Run, clocks: Mapping[str, ClockReading], *, only_lost: bool = False
) -> list[Line]:
    """Return a line for each host that SSH reaches, those that are lost first.

    While the run is measured with the connection and its clock now, else with its clock as it was
    in a trial, of which ``clocks`` are.
    """
    names = [*run.connections, *(name for name in clocks if name not in run.connections)]
    width = max(map(len, names), default=0)
    found = []
    for name in names:
        known, clock = run.connections.get(name), clocks.get(name)
        state = Span("  ")
        if known is not None and run.status is Status.RUNNING:
            state = Span("✗ " if known.lost else "● ", "bad" if known.lost else "good")
            clock = known.clock
            if known.lost:
                why = known.lost.removeprefix(f"host {name}: ")
                found.append((0, [state, Span(f"{name:<{width}}  lost: {why}", "bad")]))
                continue
        if clock is not None and not only_lost:
            line = [state, Span(f"{name:<{width}}  "), Span(clock_line(clock), "dim")]
            found.append((1, line))
    return [line for _, line in sorted(found, key=lambda ranked_line: ranked_line[0])]


def clock_line(clock: ClockReading) -> str:
    """Return how far a clock is ahead of ours, and how long a round trip takes."""
    offset = format_duration(abs(clock.offset_s))
    where = "ahead" if clock.offset_s >= 0 else "behind"
    error, trip = format_duration(clock.error_s), format_duration(clock.rtt_s)
    return f"clock {offset} {where}, \N{PLUS-MINUS SIGN}{error}; round trip {trip}"


def fact_lines(run: Run) -> Iterator[Line]:
    """Yield the facts of every host of a run, this machine first."""
    for name, facts in {LOCAL.name: run.facts, **run.hosts}.items():
        yield [Span(name, "strong")]
        known = run.connections.get(name)
        if known is not None and known.clock is not None:
            yield [Span("  "), Span(clock_line(known.clock))]
        for fact, value in flat(facts):
            yield [Span(f"  {fact} = ", "label"), Span(str(value))]
        if not facts:
            yield [Span("  nothing is known", "dim")]
