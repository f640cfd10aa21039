"""The status of a run at a moment: tiles, the right end of the title, notes, rows of trials.

Pure text from `runview` and `traces`; no widget, no clock.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from benchctl.metrics import Aspect, Direction, of_aspect, title_of
from benchctl.report.lines.spans import WIDTH, Line, Span, state
from benchctl.report.timeline.series import NOW_S, Series
from benchctl.report.timeline.traces import ALL, LineKey, TrialLines
from benchctl.run.record import RecordedFlow, Run
from benchctl.run.status import FAILURES, Status
from benchctl.tui.draw.plot.plot import letter
from benchctl.tui.draw.text.columns import Cells, Column, FreeText
from benchctl.tui.draw.views.tiles import Tile
from benchctl.tui.model.playhead import Playhead
from benchctl.tui.model.runview import DIED, RUNNING, RunView, TrialView
from benchctl.units import format_duration, format_value, unit_of

NOTHING = "-"
NUMBER = re.compile(r"\d[\d.,]*")
# As wide as "94.1 Mbit/s"; others as "99.9 ms" and a little more.
FIGURE_WIDTHS = {"bit/s": 11}
LEAST_FIGURE = 8
# A longer name of a flow is shortened: its letter says which it is.
MOST_HEAD = 12
# Three intervals without a sample are not a coincidence.
SILENT = 3.0
# A tool that reports once a second is not silent after half a second.
LEAST_SILENCE_S = 2.0


def clock(time_s: float) -> str:
    """Format a time as a clock: ``0:12``, ``1:02:10``."""
    minutes, seconds = divmod(int(time_s), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def tiles(view: RunView, traces: TrialLines | None, position: int, time: float) -> list[Tile]:
    """Return the big figures that the trial at ``position`` has, the most important one first."""
    trial = view.trials[position] if position >= 0 else None
    running = trial is not None and trial.status_at(time) == RUNNING and not view.died_at(time)
    until_s = trial.elapsed_s(time) if trial is not None and running else math.inf
    elapsed = clock(view.elapsed_s(time)) if not view.died_at(time) else NOTHING
    left = clock(view.left_s(time)) if view.status_at(time) == RUNNING else NOTHING
    rates = _chosen(view, trial, traces, of_aspect(Aspect.RATE), add_up=True)
    trips = _chosen(view, trial, traces, of_aspect(Aspect.DELAY))
    there_and_back = [trips, _chosen(view, trial, traces, (trips.metric,), back=True)]
    resent = _chosen(view, trial, traces, ("retransmits",), add_up=True)
    losses = _losses(traces, until_s)
    loss = max(losses, default=None)
    now, mean = rates.sum(lambda s: s.recent(until_s, NOW_S)), rates.sum(lambda s: s.mean(until_s))
    ended = bool(trips.lines) and not running

    def trip(delay: _Chosen) -> str:
        """Return the delay of now, or as there is none, of the whole trial: the flow's figure."""
        if ended and traces is not None:
            return _value(delay.metric, traces.mean(delay.keys[0], until_s))
        return delay.sum(lambda s: s.at(until_s))

    many = f"all {rates.of}" if len(rates.lines) > 1 else ""
    rate = many or rates.named("rate" if rates.of else "throughput")
    shown = [
        Tile(rate, now if running else NOTHING, 11),
        Tile("mean" if running else f"{many}, mean" if many else f"mean {rate}", mean, 11),
        *(
            Tile(delay.named(f"{'mean ' * ended}{title_of(delay.metric)}"), trip(delay), 8)
            for delay in there_and_back
            if delay.lines
        ),
        Tile(
            "max loss" if len(losses) > 1 else "loss",
            _value("loss_ratio", loss),
            7,
            "warn" if loss else "strong",
        ),
        Tile(resent.named("resent"), resent.sum(lambda s: s.total(until_s)), 7),
        Tile("left", left, 8),
        Tile("elapsed", elapsed, 8),
    ]
    return [tile for tile in shown if tile.value != NOTHING]


class _Chosen(NamedTuple):
    """The lines that a tile shows: one, or several whose sum it is.

    ``of`` says which of several flows it is, by its letter, and is empty for the only one.
    """

    metric: str
    of: str
    lines: Sequence[Series]
    keys: Sequence[LineKey] = ()

    def named(self, what: str) -> str:
        return f"{what} of {self.of}" if self.of and len(self.lines) == 1 else what

    def sum(self, figure: Callable[[Series], float | None]) -> str:
        there = [value for line in self.lines if (value := figure(line)) is not None]
        return _value(self.metric, math.fsum(there) if there else None)


def _chosen(
    view: RunView, trial: TrialView | None, traces: TrialLines | None, metrics: Sequence[str], *,
    add_up: bool = False, back: bool = False,
) -> _Chosen:  # fmt: skip
    """Return the first of the metrics that was measured, of the first flow that has it.

    With ``add_up``, also of the flows that are alike: of the same backend and direction. With
    ``back``, the other direction of that flow, if it has two.
    """
    for metric in metrics if trial is not None and traces is not None else ():
        assert trial is not None
        assert traces is not None
        order = {name: place for place, name in enumerate(trial.flows)}
        keys = [key for key in traces.keys(metric) if key.stream == ALL and key.flow in order]
        if not keys:
            continue
        keys.sort(key=lambda key: (order[key.flow], key.direction != Direction.SEND))
        first = keys[0]
        if back:
            others = (key for key in keys if key.flow == first.flow and key != first)
            first = next(others, first)
            if first == keys[0]:
                break
        alike = [key for key in keys if _kind(trial, key) == _kind(trial, first)]
        shown = alike if add_up else [first]
        both = len([key for key in keys if key.flow == first.flow]) > 1
        of = f"{len(shown)} flows" if len(shown) > 1 else _mark(view, *first[:2], both=both)
        if len(shown) == 1 and both:
            of += f" {first.direction}"
        lines = [line for key in shown if (line := traces.line(key)) is not None]
        return _Chosen(metric, of if len(keys) > 1 else "", lines, shown)
    return _Chosen("", "", ())


def _kind(trial: TrialView, key: LineKey) -> tuple[str, str]:
    return trial.flows[key.flow].flow.backend, key.direction


def _losses(traces: TrialLines | None, until_s: float) -> list[float]:
    """Return the loss of each flow and direction so far."""
    if traces is None:
        return []
    losses = []
    for key in {key._replace(metric="") for name in ("packets_sent", "loss_ratio")
                for key in traces.keys(name) if key.stream == ALL}:  # fmt: skip
        sent, lost, ratio = (
            traces.line(key._replace(metric=name))
            for name in ("packets_sent", "packets_lost", "loss_ratio")
        )
        if sent is not None and (whole := sent.total(until_s)):
            losses.append((lost.total(until_s) if lost is not None else 0.0) / whole)
        elif ratio is not None and (mean := ratio.mean(until_s)) is not None:
            losses.append(mean)
    return losses


def _value(metric: str, value: float | None) -> str:
    return format_value(metric, value) if value is not None else NOTHING


def standing(view: RunView, playhead: Playhead, *, goes_on: bool = True) -> list[Span]:
    """Return the run's status, and what moment is shown, for the right end of the title.

    ``goes_on`` is whether a run that is not known to have ended is still under way.
    """
    time = playhead.time()
    spans = [state(view.shown_status_at(time))]
    number = view.current_at(time) + 1
    most = view.most_trials
    if number and most is not None and not view.status_at(time).has_ended:
        spans.append(Span(f"  trial {number} of at most {most}"))
    elif view.run.settings.parallel is not None and (running := view.running_at(time)):
        spans.append(
            Span(f"  {len(running)} at once, {view.done_at(time)}/{len(view.trials)} ended")
        )
    elif len(view.trials) > 1 and number:
        spans.append(Span(f"  trial {number}/{len(view.trials)}"))
    begin, end = view.run.started_time or time, view.end_time or time
    place = f"{min(time, end) - begin:.1f}/{end - begin:.1f} s"
    if not playhead.live:
        how = "■ end" if playhead.at_end else "❚❚ paused" if playhead.standing else "▶"
        spans.append(Span(f"  {how} x{playhead.speed} {place}", "warn"))
    elif playhead.frozen:
        what = "data goes on" if goes_on else "the run has ended"
        how = f"FROZEN, {what}" if not view.ended else place
        spans.append(Span(f"  ❚❚ {how}", "warn"))
    return spans


def silence(view: RunView, traces: TrialLines | None, trial: TrialView | None, time: float) -> str:
    """Return a note if a running trial has had no samples for a while, else an empty text."""
    if view.died_at(time) or trial is None or traces is None or trial.status_at(time) != RUNNING:
        return ""
    quiet_s = trial.elapsed_s(time) - traces.end_s
    usual_s = traces.shortest_s if math.isfinite(traces.shortest_s) else 0.0
    if traces.end_s == 0 or quiet_s < max(LEAST_SILENCE_S, SILENT * usual_s):
        return ""
    return f"no sample for {format_duration(round(quiet_s, 1))}"


def remarks(view: RunView, time: float, position: int | None = None) -> list[Line]:
    """Return the notes besides figures, the most urgent first, each in one line.

    Why a trial failed is that of ``position``, else of the one that runs.
    """
    lines: list[Line] = []
    resume = f"Resume it, or: benchctl resume {view.run.name}"
    how = Span("" if view.run.person else resume)  # a fleet resumes by itself, or not at all
    left = f"{view.left} of {len(view.trials)} trials are left. "
    match view.status_at(time):
        case Status.DIED:
            lines.append([Span(f"✗ the runner died; {left}", "bad"), how])
        case Status.INTERRUPTED if view.ended:
            lines.append([Span(f"■ the run was stopped; {left}", "warn"), how])
        case Status.PLANNED if view.is_left_alone_at(time):
            lines.append([Span("! no runner has started this run. ", "warn"), how])
    here = view.current_at(time) if position is None else position
    if here >= 0 and (failure := view.failure_at(here, time)):
        lines.append([Span(f"✗ {_failed(failure)}", "bad")])
    elif here >= 0 and (trial := view.trials[here]).status_at(time) in FAILURES:
        why = f"{trial.error}{_hint(trial.failure)}"
        lines.append([Span(f"✗ trial {here + 1} failed: {why}", "bad")])
    if view.run.error:
        lines.append([Span(f"✗ {view.run.error}", "bad")])
    alike: dict[tuple[str, str], list[str]] = {}
    for note in reversed(view.notes_at(time)):
        words = note.text if note.level == "remark" else NUMBER.sub("#", note.text)
        alike.setdefault((note.level, words), []).append(note.text)
    return [*lines, *([_note(level, texts)] for (level, _), texts in alike.items())]


def _failed(flow: RecordedFlow) -> str:
    return f"attempt {flow.attempt} failed: {flow.name}: {flow.error}{_hint(flow)}"


def _hint(flow: RecordedFlow | None) -> str:
    return f"; {flow.hint}" if flow is not None and flow.hint else ""


def _note(level: str, texts: Sequence[str]) -> Span:
    """Write notes that are alike but for their numbers, the newest first, as one."""
    glyph, role = {"warning": ("!", "warn"), "remark": ("✎", "strong")}.get(level, ("i", "dim"))
    count = f" {len(texts)}x" * (len(texts) > 1) + ", the last" * (len({*texts}) > 1)
    return Span(f"{glyph} {level}{count}: {texts[0]}", role)


def trial_columns(view: RunView) -> list[Column]:
    """Return the columns of the list of trials: state, number, axes, repeat, the flows' figures."""
    about = [Column("", 1), Column("#", len(str(len(view.trials))), right=True)]
    about += [
        Column(axis, max(len(axis), *map(len, _shown_values(view.run, axis))))
        for axis in view.run.varying
    ]
    if view.trials[-1].outline.repeat > 1:
        about.append(Column("rep", 3, right=True))
    columns = [replace(column, fixed=True) for column in about]
    for flow, direction in _figures(view):
        head = _head(view, flow, direction)
        metrics = view.headlines[flow]
        width = max(FIGURE_WIDTHS.get(unit_of(metric), LEAST_FIGURE) for metric in metrics)
        columns.append(Column(head, max(width, min(len(head), MOST_HEAD)), right=True))
    return columns if view.headlines else [*columns, Column("", WIDTH)]


def _shown_values(run: Run, axis: str) -> list[str]:
    """Return the values of an axis; of a searched one a value as long as they get."""
    if run.settings.search is not None and axis == run.settings.search.axis:
        return ["29.15Mbit"]
    return [str(value) for value in run.values[axis]]


def _figures(view: RunView) -> list[tuple[str, str]]:
    """Return the flows of the list, in the order of the run.

    A flow that a trial measured both ways has both directions, others an empty one: that of the
    trial.
    """
    flows = sorted(view.headlines, key=view.flows.index)
    return [
        (flow, direction) for flow in flows for direction in sorted(view.both_ways.get(flow, [""]))
    ]


def _head(view: RunView, flow: str, direction: str) -> str:
    """Return the letter and the name of a flow, as in the plots."""
    mark = _mark(view, flow, direction, both=bool(direction))
    return f"{mark} {flow} {direction}".strip()


def _mark(view: RunView, flow: str, direction: str, *, both: bool) -> str:
    """Return the letter of a flow; of one that has ``both`` directions, as the plots mark them."""
    mark = letter(view.flows.index(flow))
    return mark.upper() if both and direction == Direction.RECEIVE else mark


def trial_row(view: RunView, index: int, time: float) -> Cells:
    """Return one row of the list of trials: its figures, or its state and the reason."""
    trial = view.trials[index]
    status = trial.status if view.run.origin else trial.status_at(time)
    if status == RUNNING and view.died_at(time):
        status = DIED
    point = trial.point
    shown = state(status)
    cells = [Span(shown.text[0], shown.role), Span(str(index + 1))]
    cells += [Span(str(point.get(axis, NOTHING))) for axis in view.run.varying]
    if view.trials[-1].outline.repeat > 1:
        cells.append(Span(str(trial.outline.repeat)))
    if status is Status.OK:
        return [*cells, *(_figure(view, trial, *place) for place in _figures(view))]
    failure = None if status.has_ended else view.failure_at(index, time)
    if failure is not None:
        return [*cells, FreeText(_failed(failure), "warn")]
    reason = f": {trial.error}" if trial.error and status.has_ended else ""
    return [*cells, FreeText(f"{shown.text[2:]}{reason}", shown.role)]


def _figure(view: RunView, trial: TrialView, flow: str, direction: str) -> Span:
    """Return the headline of a flow in a trial, which may have another direction in each."""
    report = trial.flows.get(flow)
    figures = report.figures if report is not None else {}
    there = {name: figure for (of, name), figure in figures.items() if direction in ("", of)}
    metric = view.vocabulary.headline(report.flow.backend, there) if report is not None else None
    return Span(format_value(metric, there[metric].value) if metric else NOTHING)
