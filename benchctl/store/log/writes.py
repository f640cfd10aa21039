"""What a recorder writes of a run, as messages.

A message names trials by position, and flows by trial, attempt and name, since ids differ from
store to store. It has values of a table's columns, and no SQL.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

# A message of a broker has at most 1 MB; a sample of ten metrics takes 120 bytes.
MOST_SAMPLES = 4000

_Word = Annotated[str, Meta(max_length=256)]
_Count = Annotated[int, Meta(ge=0, lt=2**53)]
_Text = Annotated[str, Meta(max_length=1 << 24)]
ColumnValue = _Text | int | float | bool | None
Columns = Annotated[dict[_Word, ColumnValue], Meta(max_length=64)]


class FlowRef(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One attempt of a flow: the position of its trial, the attempt, its name."""

    position: _Count
    attempt: _Count
    name: _Word


class Write(Struct, frozen=True, forbid_unknown_fields=True, tag_field="is"):
    """One call of a recorder."""


class SetRun(Write, frozen=True, tag="run"):
    """`Recorder.update_run`."""

    columns: Columns


class SetTrial(Write, frozen=True, tag="trial"):
    """`Recorder.update_trial`."""

    position: _Count
    columns: Columns


class SetFlow(Write, frozen=True, tag="flow"):
    """`Recorder.update_flow`."""

    flow: FlowRef
    columns: Columns


class AddTrial(Write, frozen=True, tag="new trial"):
    """`Recorder.add_trial`: the columns of the plan."""

    columns: Columns


class AddFlow(Write, frozen=True, tag="new flow"):
    """`Recorder.add_flow`."""

    flow: FlowRef
    columns: Columns


class AddNote(Write, frozen=True, tag="note"):
    """`Recorder.add_note`."""

    text: _Text
    level: _Word
    time: float
    position: _Count | None
    flow: FlowRef | None


class AddFigures(Write, frozen=True, tag="figures"):
    """`Recorder.add_figures`: direction, metric, and the columns of each figure."""

    flow: FlowRef
    rows: Annotated[list[list[ColumnValue]], Meta(max_length=10_000)]


class AddEvents(Write, frozen=True, tag="events"):
    """`Recorder.add_events`: the columns of each event."""

    flow: FlowRef
    rows: Annotated[list[list[ColumnValue]], Meta(max_length=100_000)]


class AddSamples(Write, frozen=True, tag="samples"):
    """Samples of one series: start, end and arrival in seconds, omitted, packed values."""

    flow: FlowRef
    role: _Word
    stream: _Count
    direction: _Word
    metrics: Annotated[tuple[_Word, ...], Meta(max_length=256)]
    rows: Annotated[
        list[tuple[float, float, float, bool, Annotated[bytes, Meta(max_length=4096)]]],
        Meta(max_length=MOST_SAMPLES),
    ]


class Reopen(Write, frozen=True, tag="reopen"):
    """`benchctl.store.record.reopen_trials`."""

    failed: bool
    kept: Annotated[tuple[_Count, ...], Meta(max_length=100_000)] = ()


AnyWrite = (
    SetRun
    | SetTrial
    | SetFlow
    | AddTrial
    | AddFlow
    | AddNote
    | AddFigures
    | AddEvents
    | AddSamples
    | Reopen
)
ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[AnyWrite])


def decode(data: bytes) -> list[AnyWrite]:
    """Return the writes of a message. Raises ValueError for what no recorder writes."""
    return _DECODER.decode(data)
