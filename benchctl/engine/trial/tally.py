"""Counts up what the events of one attempt of a flow come to, and writes it.

Samples and notes go to the store as they come, figures are folded, and at the end the outcome is
judged. The events are those of a running tool (`flow`), or of a file that a tool
wrote before (`benchctl.imports`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
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
from benchctl.api import Effective, Event, Failure, FailureKind, Role, Started, TracedRoute, Warn
from benchctl.metrics import Aspect, Sample, Summary, of_aspect
from benchctl.run.record import RecordedPackets, TracedHop
from benchctl.run.status import Status
from benchctl.store.record import Recorder


class Tally:
    """The events of one attempt of a flow; it ends with `judge` and `write`."""

    def __init__(
        self, flow_id: int, fold: FlowFold, recorder: Recorder, wall_clock: Callable[[], float]
    ) -> None:
        self.flow_id = flow_id
        self.fold = fold
        self.status = Status.PLANNED
        self.second_0: float | None = None
        """Unix time of the measurement's own start."""
        self.server_second_0: float | None = None
        """That of what the server sends, by the server's clock."""
        self.client_ended: float | None = None
        """When the client had ended by itself, in Unix time; None if unknown."""
        self.broken: set[str] = set()
        """The metrics of its figures that count nowhere."""
        self._recorder = recorder
        self._wall = wall_clock
        self._failures: dict[Role, Failure] = {}
        self._common_start = self._begun = 0.0
        self._told_start = self._sampled = False
        self._effective: dict[str, Any] = {}
        self._hops: Sequence[Mapping[str, int]] = ()
        self.captures: Sequence[RecordedPackets] = ()
        self._reason, self._ended = "", 0.0
        self._exit_code: int | None = None

    @property
    def failure(self) -> Failure | None:
        """Why the flow failed; the client's reason takes precedence over the server's."""
        return self._failures.get(Role.CLIENT) or self._failures.get(Role.SERVER)

    @property
    def has_measured(self) -> bool:
        """Whether the client has reported data, or has ended well."""
        return self._sampled or self.status is Status.OK

    @property
    def load(self) -> Load | None:
        """When it carried data, the omitted part apart; None for a probe, and without samples."""
        windows = [self.fold.window_s(name) for name in of_aspect(Aspect.RATE)]
        window = next((one for one in windows if one is not None), None)
        if window is None or self.second_0 is None:
            return None
        began, ended = (self.second_0 + bound_s for bound_s in window)
        return Load(began, ended, max(ended, self.client_ended or ended))

    def fail(self, failure: Failure, role: Role = Role.CLIENT) -> None:
        """Note why the flow failed; the first reason of each end counts."""
        self._failures.setdefault(role, failure)

    def begin(self, common_start: float) -> None:
        """Note the start of the flow. ``common_start`` is the trial's second 0, in Unix time."""
        self._common_start = common_start
        self._begun = self._wall()

    def take(self, role: Role, event: Event, arrived: float | None = None) -> None:
        """Take the next event of an end, which arrived at a Unix time; None is now."""
        match event:
            case Sample():
                self._take_sample(role, event, arrived or self._wall())
            case Summary():
                self.fold.add_summary(event)
            case TracedRoute():
                self._hops = event.hops
            case Effective():
                self._effective.update(event.settings)
            case Started() if role is Role.SERVER:
                self.server_second_0 = event.epoch_s
            case Started():
                self.second_0 = event.epoch_s
                self._told_start = True
            case Warn():
                self.note(event.message)
            case Failure():
                self.fail(event, role)
            case _:
                pass  # Ready: only who starts servers waits for it

    def _take_sample(self, role: Role, sample: Sample, now: float) -> None:
        self._sampled |= role is Role.CLIENT
        if role is Role.CLIENT and not self._told_start:
            # A sample cannot arrive before its interval ends: the smallest difference is the
            # closest.
            start = now - sample.end_s
            self.second_0 = start if self.second_0 is None else min(self.second_0, start)
        self.fold.add_sample(role, sample)
        self._recorder.add_sample(
            self.flow_id, role, sample.stream, sample.direction, sample.start_s, sample.end_s,
            now - self._common_start, sample.omitted, sample.metrics,
        )  # fmt: skip

    def note(self, text: str) -> None:
        """Note something about the flow."""
        self._recorder.add_note(text, "warning", self._wall(), None, self.flow_id)

    def judge(self, cut_short: Status | None = None, reason: str = "") -> None:
        """Judge the attempt, which has ended now.

        ``cut_short`` is None for a flow that ran its full time, else its status with the reason.
        """
        self._reason, self._ended = reason, self._wall()
        if cut_short:
            self.status = cut_short
            return
        if not self.failure and (lack := self.fold.lack):
            self.fail(Failure(FailureKind.TOOL, lack))
        self.status = Status.FAILED if self.failure else Status.OK

    def write(
        self,
        loads: Sequence[Load],
        expected: Mapping[str, Mapping[str, float]] = MappingProxyType({}),
        ends: Mapping[str, CountedEnds] = MappingProxyType({}),
        *,
        terms: Terms = UNKNOWN,
        one_clock: bool = False,
        rises: bool = False,
    ) -> None:
        """Write the flow's result; ``loads`` are when the flows of the trial carried data.

        ``expected`` is what theory expects of it in a lab, by direction and metric; ``ends`` are
        what its hosts counted, by direction; ``terms`` are what the laws need to know;
        ``one_clock`` says that both ends are on one machine.
        With ``rises``, its events include delays that rise, the sign of overload for a search.
        To be called when nothing of the trial runs any more: a long flow takes tens of
        milliseconds.
        """
        failure = self.failure
        terms = replace(terms, lasted_s=self.fold.lasted_s)
        loaded = loaded_figures(self.fold, self.second_0, loads) if self.second_0 else {}
        figures = {
            **held(self.fold.figures(), terms, self.fold.others()),
            **packet_figures(self.fold),
            **clock_figures(self.fold, expected, one_clock=one_clock),
            **steady_figures(self.fold),
            **loaded,
            **loss_figures(self.fold, ends),
        }
        apart = self.fold.disagreements() if self.status is Status.OK else {}
        unmarked = (text for key, text in apart.items() if figures[key].broken is None)
        for text in (*sentences(figures), *filter(None, (late_words(terms),)), *unmarked):
            self.note(text)
        self.broken = {name for (_, name), figure in figures.items() if not figure.counts}
        self._recorder.add_figures(self.flow_id, figures)
        found = [*events_of(self.fold), *step_events(self.fold)]
        found += delay_trend_events(self.fold) if rises else ()
        self._recorder.add_events(self.flow_id, found)
        self._recorder.update_flow(
            self.flow_id,
            held=True,
            status=self.status,
            failure=str(failure.kind) if failure else "",
            error=": ".join(filter(None, (self._reason, failure.message if failure else ""))),
            hint=failure.hint if failure else "",
            effective=self._effective,
            route=[
                TracedHop(dict(addresses), self.fold.of_stream(number))
                for number, addresses in enumerate(self._hops, 1)
            ],
            captures=self.captures,
            started_time=self.second_0 or self._begun or None,
            finished_time=self._ended,
            exit_code=self._exit_code,
            stderr=self.stderr,
        )

    @property
    def stderr(self) -> str:
        """What the ends wrote to stderr."""
        return ""


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
