"""Writes one attempt of a flow: samples and notes as they come, its result at the end."""

from __future__ import annotations

from collections.abc import Callable

from benchctl.analysis.flow_result import FlowResult, FlowSurroundings, figures_of, happenings_of
from benchctl.api import Event, Role, Warn
from benchctl.metrics import Sample
from benchctl.run.record import TracedHop
from benchctl.store.record import Recorder


class FlowRecording:
    """Passes the events of an attempt of a flow to its result, and to the store."""

    def __init__(
        self,
        flow_id: int,
        result: FlowResult,
        recorder: Recorder,
        wall_clock: Callable[[], float],
        name: str = "",
    ) -> None:
        """``name`` stands before its notes: ``trial 3, bulk``."""
        self.flow_id = flow_id
        self.result = result
        self._recorder = recorder
        self._wall = wall_clock
        self._name = name
        self._common_start = 0.0

    def begin(self, common_start: float) -> None:
        """Note the start of the flow. ``common_start`` is the trial's second 0, in Unix time."""
        self._common_start = common_start
        self.result.begun = self._wall()

    def take(self, role: Role, event: Event, arrived: float | None = None) -> None:
        """Take the next event of an end, which arrived at a Unix time; None is now."""
        arrived = arrived or self._wall()
        self.result.take(role, event, arrived)
        match event:
            case Sample():
                self._recorder.add_sample(
                    self.flow_id, role, event.stream, event.direction, event.start_s, event.end_s,
                    arrived - self._common_start, event.omitted, event.metrics,
                )  # fmt: skip
            case Warn():
                self.note(event.message)
            case _:
                pass

    def note(self, text: str) -> None:
        """Note something about the flow."""
        text = f"{self._name}: {text}" if self._name else text
        self._recorder.add_note(text, "warning", self._wall(), None, self.flow_id)

    def write(self, known: FlowSurroundings) -> None:
        """Write the flow's result. To be called when nothing of the trial runs any more."""
        result = self.result
        figures, said = figures_of(result, known)
        for text in said:
            self.note(text)
        result.broken = {name for (_, name), figure in figures.items() if not figure.counts}
        self._recorder.add_figures(self.flow_id, figures)
        events = happenings_of(result, with_trends=known.with_trends)
        self._recorder.add_events(self.flow_id, list(events))
        failure = result.failure
        self._recorder.update_flow(
            self.flow_id,
            held=True,
            status=result.status,
            failure=str(failure.kind) if failure else "",
            error=result.error,
            hint=failure.hint if failure else "",
            effective=result.effective,
            route=[
                TracedHop(dict(addresses), result.fold.of_stream(number))
                for number, addresses in enumerate(result.hops, 1)
            ],
            captures=result.captures,
            started_time=result.second_0 or result.begun or None,
            finished_time=result.ended,
            exit_code=result.exit_code,
            stderr=result.stderr,
        )
