"""Stores what a host measured for an attempt that nobody waits for any more.

Its samples stay with that attempt, which a note marks as late; the attempt's result stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from benchctl.errors import GoneError, StoreError
from benchctl.fleet.driven.arrivals import Arrivals
from benchctl.fleet.host_messages import OfEnd
from benchctl.metrics import Sample
from benchctl.run.record import RecordedFlow
from benchctl.store.log.logged import EndKey, LoggedRecorder
from benchctl.store.read import Reader


class LateEvents:
    """Takes the messages of ends that are not heard by a run.

    ``recorder`` is that of a run that is measured; for others one is opened by ``open_recorder``.
    """

    def __init__(
        self,
        store: Path,
        recorder: Callable[[str], LoggedRecorder | None],
        open_recorder: Callable[[str, int], LoggedRecorder],
        wall: Callable[[], float],
    ) -> None:
        self._store, self._wall = store, wall
        self._recorder, self._open_recorder = recorder, open_recorder
        self._announced: set[int] = set()
        self._arrivals: dict[tuple[str, EndKey], Arrivals] = {}
        """Of the ends, by run, of which messages wait for one before them."""

    def take(self, end: EndKey, message: OfEnd, stored: int) -> bool:
        """Store the samples of a message when its turn comes; False if there is no such attempt.

        ``stored`` is the number of the last message of the end that is in the store.
        """
        ref = message.ref
        try:
            with closing(Reader(self._store)) as reader:
                run_id = reader.names().get(ref.run)
                if run_id is None or (flow := _flow(reader, run_id, message)) is None:
                    return False
        except GoneError:
            return False
        key = ref.run, end
        arrivals = self._arrivals.setdefault(key, Arrivals(stored))
        arrivals.last = max(arrivals.last, stored)
        if due := list(arrivals.take(message)):
            if (recorder := self._recorder(ref.run)) is not None:
                self._write(recorder, flow, end, due)
            else:
                with closing(self._open_recorder(ref.run, run_id)) as recorder:
                    self._write(recorder, flow, end, due)
        if not arrivals.wait:
            del self._arrivals[key]
        return True

    def _write(
        self, recorder: LoggedRecorder, flow: RecordedFlow, end: EndKey, due: Sequence[OfEnd]
    ) -> None:
        ref = due[-1].ref
        samples = 0
        for heard in (heard for message in due for heard in message.events):
            try:
                event = heard.event
            except (TypeError, ValueError):
                continue
            if isinstance(event, Sample):
                samples += 1
                begun = flow.started_time or heard.arrived_s
                recorder.add_sample(
                    flow.id, ref.role, event.stream, event.direction, event.start_s, event.end_s,
                    heard.arrived_s - begun, event.omitted, event.metrics,
                )  # fmt: skip
        if samples and flow.id not in self._announced:
            self._announced.add(flow.id)
            text = f"trial {ref.trial + 1}, {ref.flow}: samples of attempt {ref.attempt} came late"
            recorder.add_note(
                f"{text}, and are not in its figures", "info", self._wall(), None, flow.id
            )
        recorder.received(end, due[-1].number)
        recorder.flush()


def _flow(reader: Reader, run_id: int, message: OfEnd) -> RecordedFlow | None:
    ref = message.ref
    try:
        trial = next(reader.trials(run_id, ref.trial), None)
        if trial is None or trial.position != ref.trial:
            return None
        flows = reader.flows(trial.id, all_attempts=True)
    except StoreError:
        return None
    found = (flow for flow in flows if (flow.attempt, flow.name) == (ref.attempt, ref.flow))
    return next(found, None)
