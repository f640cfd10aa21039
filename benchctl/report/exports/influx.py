"""Every sample in InfluxDB's line protocol: one point for each interval of each stream.

The tags say which flow it is; the fields are its metrics in SI base units; the time is that of the
interval's end, in nanoseconds. Samples of a flow that never began have no time and are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchctl.report.report import StoredRun
from benchctl.visible import visible

_ESCAPED = str.maketrans({",": r"\,", "=": r"\=", " ": r"\ "})


def export(stored: StoredRun) -> Iterator[str]:
    """Yield every sample of a run in this form. Raises StoreError."""
    reader, run = stored.reader, stored.run
    for trial in reader.trials(run.id):
        flows = {flow.id: flow for flow in reader.flows(trial.id, all_attempts=True)}
        heads = {
            flow.id: _tags({
                "run": run.name, "profile": run.profile, "trial": trial.position,
                "repeat": trial.repeat, "flow": flow.name, "attempt": flow.attempt,
                **{f"axis_{axis}": value for axis, value in trial.point.items()},
            })
            for flow in flows.values()
        }  # fmt: skip
        for sample in reader.samples_of_trial(trial.id):
            begun = flows[sample.flow_id].started_time
            if begun is None or not sample.metrics:
                continue
            tags = {"told_by": sample.role, "stream": sample.stream, "direction": sample.direction,
                    "omitted": str(sample.omitted).lower()}  # fmt: skip
            fields = ",".join(
                f"{_escaped(name)}={value!r}" for name, value in sample.metrics.items()
            )
            time_ns = round((begun + sample.end_s) * 1e9)
            yield f"benchctl{heads[sample.flow_id]}{_tags(tags)} {fields} {time_ns}\n"


def _tags(tags: dict[str, object]) -> str:
    """Return tags as text; an empty one has no place in a line."""
    escaped = {_escaped(name): _escaped(str(value)) for name, value in tags.items()}
    return "".join(f",{name}={value}" for name, value in escaped.items() if value)


def _escaped(text: str) -> str:
    # A backslash at the end would escape the comma after it.
    return visible(text).replace("\n", " ").rstrip("\\").translate(_ESCAPED)
