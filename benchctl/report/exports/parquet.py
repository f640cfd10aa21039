"""Every sample as an Apache Parquet file: a row for each interval of each stream.

A metric is a column, in SI base units; it is null where a stream does not report it. ``time`` is
the end of the interval. pyarrow is the extra ``benchctl[parquet]``.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import closing
from importlib.util import find_spec
from typing import Any

from benchctl.errors import MissingError
from benchctl.report.report import StoredRun
from benchctl.run.planned import Scalar
from benchctl.run.record import RecordedFlow, Run, Trial
from benchctl.store.bulk import Bulk, SeriesColumns

# Readers skip whole groups of rows, and each costs some kilobytes of the file's index.
_GROUP_ROWS = 200_000


def check() -> None:
    """Raise MissingError without pyarrow."""
    if find_spec("pyarrow") is None:
        raise MissingError(
            "Parquet needs pyarrow, which is not installed", 'pip install "benchctl[parquet]"'
        )


def export(stored: StoredRun) -> Iterator[bytes]:
    """Yield the file in pieces. Raises StoreError, and MissingError without pyarrow."""
    check()
    import pyarrow as pa
    from pyarrow import parquet

    reader, run = stored.reader, stored.run
    sink = _Sink()
    with closing(Bulk(reader.path)) as bulk:
        schema = _schema(pa, run, bulk.metrics(run.id))
        floats = [field.name for field in schema if pa.types.is_floating(field.type)]
        others = [name for name in schema.names if name not in floats]
        with parquet.ParquetWriter(
            sink,
            schema,
            compression="zstd",
            use_byte_stream_split=floats,
            use_dictionary=others,
            store_schema=False,  # readers take texts for texts, however they were in memory here
        ) as writer:
            waiting = []
            for trial in reader.trials(run.id):
                flows = reader.flows(trial.id, all_attempts=True)
                shared = {flow.id: _shared(run, trial, flow) for flow in flows}
                for column in bulk.columns(shared):
                    waiting.append(_table(pa, schema, shared[column.flow_id], column))
                    if sum(table.num_rows for table in waiting) >= _GROUP_ROWS:
                        writer.write_table(pa.concat_tables(waiting).unify_dictionaries())
                        waiting = []
                        yield sink.take()
            if waiting:
                writer.write_table(pa.concat_tables(waiting).unify_dictionaries())
    yield sink.take()


def _schema(pa: Any, run: Run, metrics: list[str]) -> Any:
    text = _text(pa)
    fixed = {
        "run": text, "trial": pa.int32(), "repeat": pa.int32(),
        **{f"axis_{axis}": _type(pa, values) for axis, values in run.values.items()},
        "flow": text, "attempt": pa.int32(), "told_by": text, "stream": pa.int32(),
        "direction": text, "time": pa.timestamp("us", tz="UTC"), "start_s": pa.float64(),
        "end_s": pa.float64(), "omitted": pa.bool_(),
    }  # fmt: skip
    return pa.schema({**fixed, **dict.fromkeys(metrics, pa.float64())})


def _text(pa: Any) -> Any:
    """Return the type of texts that are mostly alike: a number for each, and a table of them."""
    return pa.dictionary(pa.int32(), pa.string())


def _type(pa: Any, values: Sequence[Scalar]) -> Any:
    kinds = {type(value) for value in values}
    if kinds <= {bool}:
        return pa.bool_()
    if kinds <= {int}:
        return pa.int64()
    return pa.float64() if kinds <= {int, float} else _text(pa)


def _shared(run: Run, trial: Trial, flow: RecordedFlow) -> dict[str, Any]:
    """Return what is the same for every sample of an attempt of a flow."""
    return {
        "run": run.name, "trial": trial.position, "repeat": trial.repeat,
        **{f"axis_{axis}": value for axis, value in trial.point.items()},
        "flow": flow.name, "attempt": flow.attempt, "begun": flow.started_time,
    }  # fmt: skip


def _table(pa: Any, schema: Any, shared: dict[str, Any], series: SeriesColumns) -> Any:
    """Return the rows of a series."""
    from pyarrow import compute

    length = len(series.starts_s)

    def packed(values: Any, kind: Any) -> Any:
        return pa.Array.from_buffers(kind, length, [None, pa.py_buffer(values)])

    end_s = packed(series.ends_s, pa.float64())
    columns = {
        "start_s": packed(series.starts_s, pa.float64()),
        "end_s": end_s,
        "omitted": packed(series.omitted, pa.uint8()).cast(pa.bool_()),
        **{metric: packed(values, pa.float64()) for metric, values in series.values.items()},
    }
    if shared["begun"] is not None:
        times_us = compute.round(compute.multiply(compute.add(end_s, shared["begun"]), 1e6))
        columns["time"] = times_us.cast(pa.int64()).cast(schema.field("time").type)
    same = {
        **shared,
        "told_by": series.role,
        "stream": series.stream,
        "direction": series.direction,
    }
    for name, kind in zip(schema.names, schema.types, strict=True):
        if name not in columns:
            value = same.get(name)
            if pa.types.is_dictionary(kind):
                texts = pa.array([] if value is None else [str(value)], pa.string())
                places = pa.scalar(None if value is None else 0, kind.index_type)
                columns[name] = pa.DictionaryArray.from_arrays(pa.repeat(places, length), texts)
            else:
                columns[name] = pa.repeat(pa.scalar(value, kind), length)
    return pa.table([columns[name] for name in schema.names], schema=schema)


class _Sink(io.RawIOBase):
    """A file that is only written; what was written since the last time can be taken."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._length = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._length

    def write(self, data: Any) -> int:
        self._pieces.append(bytes(data))
        self._length += len(self._pieces[-1])
        return len(self._pieces[-1])

    def take(self) -> bytes:
        taken, self._pieces = b"".join(self._pieces), []
        return taken
