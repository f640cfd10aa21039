"""The rows of a run in the tables of an archive: its figures, flows and hosts."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any

from msgspec import Struct

from benchctl.metrics import Direction
from benchctl.run.planned import PlannedFlow
from benchctl.run.record import HostCounters, RecordedFlow, Run, Trial
from benchctl.store.read import Reader

# All ids are made in it (RFC 9562, 6.6).
_NAMESPACE = uuid.UUID("6f0b9f0e-6f1c-5d0a-9a3b-1f5b8e0f3c55")
_SPREAD = ("min", "median", "p95", "max")


class FigureSubject(Struct, frozen=True):
    """A metric of a flow at a point, whose data go from ``source`` to ``target``.

    ``point`` is JSON.
    """

    profile: str
    flow: str
    backend: str
    source: str
    target: str
    direction: str
    point: str
    metric: str

    @property
    def key(self) -> uuid.UUID:
        """The same for equal subjects."""
        return uuid.uuid5(_NAMESPACE, json.dumps(["subject", *(
            getattr(self, name) for name in self.__struct_fields__
        )]))  # fmt: skip


def identity(run: Run) -> uuid.UUID:
    """Return the id of a run, which it keeps when it is resumed, tagged or copied."""
    identifying = ["run", run.name, repr(run.created_time), run.profile_sha256, run.seed]
    return uuid.uuid5(_NAMESPACE, json.dumps(identifying))


def month_of(run: Run) -> date:
    """Return the first day of the month in which a run was made (UTC)."""
    return datetime.fromtimestamp(run.created_time, UTC).date().replace(day=1)


def moment(time: float | None) -> datetime | None:
    """Return a Unix time of a record, which may be shown, as PostgreSQL takes it."""
    return None if time is None else datetime.fromtimestamp(time, UTC)


def plain(text: str) -> str:
    """Return a text without what PostgreSQL has no place for: NUL, and halves of characters."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()


def as_json(values: Mapping[str, Any]) -> str:
    """Return values by name as JSON that PostgreSQL takes, the same text for equal values."""
    cleaned = {
        plain(name): plain(value) if isinstance(value, str) else value
        for name, value in values.items()
    }
    return json.dumps(cleaned, sort_keys=True)


class RunRows(Struct, frozen=True):
    """The rows of a run, without its id."""

    figures: list[tuple[FigureSubject, tuple[Any, ...]]]
    flows: list[tuple[Any, ...]]
    hosts: list[tuple[Any, ...]]
    places: dict[int, tuple[Any, ...]]
    """The columns that the samples of an attempt share, by the id of its flow."""


def rows_of(reader: Reader, run: Run) -> RunRows:
    """Return the rows of a run. Raises StoreError."""
    found = RunRows([], [], [], {})
    for trial in reader.trials(run.id):
        planned = {flow.name: flow for flow in trial.flows}
        time = trial.started_time or trial.finished_time or run.created_time
        attempts = reader.flows(trial.id, all_attempts=True)
        last = attempts[-1].attempt if attempts else 0
        for flow in attempts:
            ends = _ends(planned, flow)
            found.places[flow.id] = (
                moment(flow.started_time), trial.position + 1, plain(flow.name), flow.attempt, *ends
            )  # fmt: skip
            if flow.attempt == last:
                began = moment(flow.started_time or time)
                found.flows.append((began, *_flow(trial, flow, ends)))
                if flow.status.counts:
                    for subject, values in _figures(reader, run, trial, flow, ends):
                        found.figures.append((subject, (began, *values)))
        if not attempts and trial.status.has_ended:
            found.flows.extend((moment(time), *row) for row in _never_begun(trial))
        for host in sorted({*trial.counters, *trial.clocks}):
            found.hosts.append((moment(time), *_host(trial, host)))
    return found


def _ends(planned: Mapping[str, PlannedFlow], flow: RecordedFlow) -> tuple[str, str]:
    """Return the hosts of a flow by the names that the profile has for them."""
    known = planned.get(flow.name)
    return plain(flow.source), plain(flow.target if known is None else known.to)


def _flow(trial: Trial, flow: RecordedFlow, ends: tuple[str, str]) -> tuple[Any, ...]:
    return (
        trial.position + 1, trial.repeat, as_json(trial.point), plain(flow.name),
        plain(flow.backend), *ends, plain(flow.direction), flow.attempt, str(flow.status),
        plain(flow.failure), plain(flow.error or trial.error),
    )  # fmt: skip


def _never_begun(trial: Trial) -> Iterator[tuple[Any, ...]]:
    """Yield the flows of a trial that ended before any of them began."""
    for flow in trial.flows:
        yield (
            trial.position + 1, trial.repeat, as_json(trial.point), plain(flow.name),
            plain(flow.backend), plain(flow.source), plain(flow.to), str(flow.direction), 0,
            str(trial.status), "", plain(trial.error),
        )  # fmt: skip


def _figures(
    reader: Reader, run: Run, trial: Trial, flow: RecordedFlow, ends: tuple[str, str]
) -> Iterator[tuple[FigureSubject, tuple[Any, ...]]]:
    kept = all(link["kept"] for link in trial.links)
    for (direction, metric), figure in sorted(reader.figures(flow.id).items()):
        source, target = reversed(ends) if direction == Direction.RECEIVE else ends
        subject = FigureSubject(
            plain(run.profile), plain(flow.name), plain(flow.backend), source, target,
            plain(direction), as_json(trial.point), plain(metric),
        )  # fmt: skip
        spread = [figure.spread.get(name) for name in _SPREAD]
        valid = kept and figure.counts
        yield subject, (trial.position + 1, trial.repeat, valid, figure.value, *spread)


def _host(trial: Trial, host: str) -> tuple[Any, ...]:
    counted = trial.counters.get(host, HostCounters(0.0))
    clock, cpu = trial.clocks.get(host), counted.cpu
    interfaces = counted.interfaces.values()
    sums = [
        sum(getattr(interface, name) for interface in interfaces) if interfaces else None
        for name in ("rx_errors", "rx_dropped", "tx_errors", "tx_dropped")
    ]
    busy: tuple[float | None, ...] = (None,) * 4
    if cpu is not None:
        busy = (cpu.busy_ratio, cpu.busiest_ratio, cpu.softirq_ratio, cpu.steal_ratio)
    return (
        trial.position + 1, plain(host), *busy, *sums,
        None if clock is None else clock.offset_s, None if clock is None else clock.error_s,
        plain(counted.unread), as_json({name: n for name, n in counted.counts.items() if n}),
    )  # fmt: skip
