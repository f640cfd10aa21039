"""What the events of one attempt of a flow come to: its outcome, its figures and its events."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from benchctl.analysis.clocks.clockfit import clock_figures, step_events
from benchctl.analysis.flow.events import events_of
from benchctl.analysis.flow.figures import FlowFold
from benchctl.analysis.flow.held import held, late_words, sentences
from benchctl.analysis.flow.laws import UNKNOWN, Terms
from benchctl.analysis.flow.loaded import Load, loaded_figures
from benchctl.analysis.flow.losses import CountedEnds, loss_figures
from benchctl.analysis.flow.packets import packet_figures
from benchctl.analysis.flow.rising import delay_trend_events
from benchctl.analysis.flow.steady import steady_figures
from benchctl.api import Effective, Event, Failure, FailureKind, Role, Started, TracedRoute
from benchctl.metrics import Aspect, Sample, Summary, of_aspect
from benchctl.run.record import Figures, FlowEvent, RecordedPackets
from benchctl.run.status import Status


@dataclass
class FlowResult:
    """The outcome of one attempt of a flow, as its events tell it; `judge` completes it.

    Times are Unix times.
    """

    fold: FlowFold
    status: Status = Status.PLANNED
    begun: float = 0.0
    """When its gate was opened."""
    second_0: float | None = None
    """The measurement's own start."""
    server_second_0: float | None = None
    """That of what the server sends, by the server's clock."""
    client_ended: float | None = None
    """When the client had ended by itself; None if unknown."""
    ended: float = 0.0
    reason: str = ""
    """Why it was cut short."""
    failures: dict[Role, Failure] = field(default_factory=dict)
    """The first failure of each end."""
    effective: dict[str, Any] = field(default_factory=dict)
    hops: Sequence[Mapping[str, int]] = ()
    captures: Sequence[RecordedPackets] = ()
    exit_code: int | None = None
    stderr: str = ""
    """What the ends wrote to stderr."""
    broken: set[str] = field(default_factory=set)
    """The metrics of its figures that count nowhere."""
    _has_sampled: bool = False
    _is_start_reported: bool = False

    @property
    def failure(self) -> Failure | None:
        """Why the flow failed; the client's reason takes precedence over the server's."""
        return self.failures.get(Role.CLIENT) or self.failures.get(Role.SERVER)

    @property
    def has_ended(self) -> bool:
        """Whether the client has ended by itself."""
        return self.client_ended is not None

    @property
    def has_measured(self) -> bool:
        """Whether the client has reported data, or has ended well."""
        return self._has_sampled or self.status is Status.OK

    @property
    def load(self) -> Load | None:
        """When it carried data, the omitted part apart; None for a probe, and without samples."""
        windows = [self.fold.window_s(name) for name in of_aspect(Aspect.RATE)]
        window = next((window for window in windows if window is not None), None)
        if window is None or self.second_0 is None:
            return None
        began, ended = (self.second_0 + bound_s for bound_s in window)
        return Load(began, ended, max(ended, self.client_ended or ended))

    def fail(self, failure: Failure, role: Role = Role.CLIENT) -> None:
        """Note why the flow failed; the first reason of each end counts."""
        self.failures.setdefault(role, failure)

    def take(self, role: Role, event: Event, arrived: float) -> None:
        """Take the next event of an end, which arrived at a Unix time."""
        match event:
            case Sample():
                self._take_sample(role, event, arrived)
            case Summary():
                self.fold.add_summary(event)
            case TracedRoute():
                self.hops = event.hops
            case Effective():
                self.effective.update(event.settings)
            case Started() if role is Role.SERVER:
                self.server_second_0 = event.epoch_s
            case Started():
                self.second_0 = event.epoch_s
                self._is_start_reported = True
            case Failure():
                self.fail(event, role)
            case _:
                pass  # Warn is a note; Ready concerns only who starts servers

    def _take_sample(self, role: Role, sample: Sample, arrived: float) -> None:
        self._has_sampled |= role is Role.CLIENT
        if role is Role.CLIENT and not self._is_start_reported:
            # A sample cannot arrive before its interval ends: the smallest difference is the
            # closest.
            start = arrived - sample.end_s
            self.second_0 = start if self.second_0 is None else min(self.second_0, start)
        self.fold.add_sample(role, sample)

    def judge(self, now: float, cut_short: Status | None = None, reason: str = "") -> None:
        """Judge the attempt, which has ended now.

        ``cut_short`` is None for a flow that ran its full time, else its status with the reason.
        """
        self.reason, self.ended = reason, now
        if cut_short:
            self.status = cut_short
            return
        if not self.failure and (lack := self.fold.lack):
            self.fail(Failure(FailureKind.TOOL, lack))
        self.status = Status.FAILED if self.failure else Status.OK

    @property
    def error(self) -> str:
        """Why it was cut short, and why it failed, in words."""
        message = self.failure.message if self.failure else ""
        return ": ".join(filter(None, (self.reason, message)))


@dataclass(frozen=True)
class FlowSurroundings:
    """What is known of a flow beside its own events."""

    loads: Sequence[Load] = ()
    """When the flows of its trial carried data."""
    expected: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """What theory expects of it in a lab, by direction and metric."""
    ends: Mapping[str, CountedEnds] = field(default_factory=dict)
    """What its hosts counted, by direction."""
    terms: Terms = UNKNOWN
    """What the laws need to know."""
    one_clock: bool = False
    """Whether both ends are on one machine."""
    with_trends: bool = False
    """Whether its events include delays that rise, the sign of overload for a search."""


def figures_of(result: FlowResult, known: FlowSurroundings) -> tuple[Figures, list[str]]:
    """Return the figures of a flow that has ended, and what is to be said of them.

    A long flow takes tens of milliseconds.
    """
    fold = result.fold
    terms = replace(known.terms, lasted_s=fold.lasted_s)
    figures = {
        **held(fold.figures(), terms, fold.others()),
        **packet_figures(fold),
        **clock_figures(fold, known.expected, one_clock=known.one_clock),
        **steady_figures(fold),
        **(loaded_figures(fold, result.second_0, known.loads) if result.second_0 else {}),
        **loss_figures(fold, known.ends),
    }
    apart = fold.disagreements() if result.status is Status.OK else {}
    unmarked = (text for key, text in apart.items() if figures[key].broken is None)
    said = [*sentences(figures), *filter(None, (late_words(terms),)), *unmarked]
    return figures, said


def happenings_of(result: FlowResult, *, with_trends: bool) -> Iterator[FlowEvent]:
    """Yield the events within a flow; ``with_trends`` as in `FlowSurroundings`."""
    yield from events_of(result.fold)
    yield from step_events(result.fold)
    if with_trends:
        yield from delay_trend_events(result.fold)


def check(event: Event) -> Event:
    """Return an event of a plugin unchanged.

    Raises ValueError or TypeError if it cannot be stored: JSON and statistics have no NaN and no
    infinity, and time does not run backwards.
    """
    match event:
        case Sample():
            _check_numbers({"start_s": event.start_s, "end_s": event.end_s, **event.metrics})
            if event.end_s < event.start_s:
                raise ValueError(f"a sample ends at {event.end_s} s, and begins at {event.start_s}")
        case Summary():
            for name, value in event.metrics.items():
                _check_numbers(value if isinstance(value, Mapping) else {name: value})
            _check_numbers(event.instead)
            _check_numbers(event.resolution)
        case Started():
            _check_numbers({"epoch_s": event.epoch_s})
        case TracedRoute():
            _check_numbers({name: n for hop in event.hops for name, n in hop.items()})
        case Effective():
            json.dumps(dict(event.settings), allow_nan=False)
        case _:
            pass
    return event


def _check_numbers(values: Mapping[str, float]) -> None:
    for name, value in values.items():
        if not math.isfinite(value):
            raise ValueError(f"{name} is {value}")
