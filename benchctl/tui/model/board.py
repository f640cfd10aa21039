"""The hosts of trials that run side by side: what each does, and what their pairs came to. Pure.

Data go from the first host of a pair to the second, as in `report.figures.maps`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from benchctl.metrics import Direction
from benchctl.run.status import Status
from benchctl.store.bulk import PlannedEnds
from benchctl.tui.model.runview import PLANNED, RUNNING, RunView

BoardPair = tuple[str, str]
"""From where to where data go."""


class PairState(NamedTuple):
    """What became of a pair's trials so far, and the mean of their figures; None before any."""

    status: Status
    mean: float | None = None


class Board:
    """The hosts of a run, in the order of its profile, and the trials of each pair of them."""

    def __init__(self, view: RunView, planned: Sequence[PlannedEnds]) -> None:
        self._view = view
        self.hosts: Sequence[str] = []
        self.metric = ""
        """What the pairs' figures are: the headline of the first flow; empty before any."""
        self.positions: dict[BoardPair, list[int]] = {}
        """The positions of each pair's trials."""
        self._pairs: dict[str, set[BoardPair]] = {}
        """The pairs of a trial's flows, by its point."""
        self._taken = 0
        """How many trials are in `positions`: a run may add some."""
        self._seen: object = None
        self._states: Mapping[BoardPair, PairState] = {}
        ranks = {
            axis: {value: rank for rank, value in enumerate(values)}
            for axis, values in view.run.values.items()
        }

        def rank(ends: PlannedEnds) -> list[int]:
            return [ranks[axis].get(value, 0) for axis, value in json.loads(ends.point).items()]

        for ends in sorted(planned, key=rank):
            directions = [ends.direction]
            if ends.direction is Direction.BOTH:
                directions = [Direction.SEND, Direction.RECEIVE]
            pairs = (_pair(ends.source, ends.target, direction) for direction in directions)
            self._pairs.setdefault(ends.point, set()).update(pairs)
            self.hosts = [*dict.fromkeys([*self.hosts, ends.source, ends.target])]

    @property
    def trials(self) -> int:
        """How many trials are known."""
        return len(self._view.trials)

    def doing_at(self, time: float) -> Mapping[str, str]:
        """Return what each busy host does at a moment: the number of its trial, the other end."""
        doing: dict[str, list[str]] = {}
        for position in self._view.running_at(time):
            for flow in self._view.trials[position].flows.values():
                source, target = flow.flow.source, flow.flow.target
                for host, word, other in ((source, "to", target), (target, "from", source)):
                    doing.setdefault(host, []).append(f"{position + 1} {word} {other}")
        return {
            host: phrases[0] + f" +{len(phrases) - 1}" * (len(phrases) > 1)
            for host, phrases in doing.items()
        }

    def pairs_of(self, position: int) -> set[BoardPair]:
        """Return the pairs of a trial's flows."""
        return self._pairs.get(self._view.trials[position].outline.point, set())

    def trial_at(self, pair: BoardPair, time: float, after: int) -> int | None:
        """Return the trial of a pair to look at: that which runs, else the last that began.

        If that is ``after``, the one before it; of one that did not begin, None.
        """
        view = self._view
        own = [(view.trials[n].status_at(time), n) for n in self.positions.get(pair, ())]
        begun = [(status == RUNNING, n) for status, n in own if status != PLANNED]
        found = [n for _, n in sorted(begun, reverse=True)]
        place = found.index(after) + 1 if after in found else 0
        return found[place % len(found)] if found else None

    def at(self, time: float) -> Mapping[BoardPair, PairState]:
        """Return the state of each pair at a moment."""
        view = self._view
        while self._taken < len(view.trials):
            for pair in self.pairs_of(self._taken):
                self.positions.setdefault(pair, []).append(self._taken)
            self._taken += 1
        running = view.running_at(time)
        seen = (*running, view.done_at(time), view.flows_ended, self._taken)
        if seen != self._seen:
            self._seen = seen
            statuses = [trial.status_at(time) for trial in view.trials]
            self._states = self._states_of(statuses)
        return self._states

    def _states_of(self, statuses: Sequence[Status]) -> Mapping[BoardPair, PairState]:
        figures: dict[BoardPair, list[float]] = {}
        view = self._view
        headed = (view.headlines[flow] for flow in view.flows if flow in view.headlines)
        self.metric = min(next(headed, {""}))
        for trial, status in zip(view.trials, statuses, strict=True):
            for flow in trial.flows.values() if status.has_ended else ():
                for (direction, metric), figure in flow.figures.items():
                    if metric == self.metric:
                        pair = _pair(flow.flow.source, flow.flow.target, direction)
                        figures.setdefault(pair, []).append(figure.value)
        states = {}
        for pair, positions in self.positions.items():
            own = [statuses[position] for position in positions]
            ended = [status for status in own if status.has_ended]
            status = RUNNING if RUNNING in own else ended[-1] if ended else PLANNED
            states[pair] = PairState(status, fmean(figures[pair]) if pair in figures else None)
        return states


def _pair(source: str, target: str, direction: str) -> BoardPair:
    return (target, source) if direction == Direction.RECEIVE else (source, target)
