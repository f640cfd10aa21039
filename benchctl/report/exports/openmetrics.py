"""The summary as OpenMetrics 1.0 text, as Prometheus reads it.

Each metric is a gauge: the mean over the repeats of a point. Others have the interval of the mean,
and the 95th percentile of a distribution. Names and labels are the same from run
to run, and lines have no timestamps. So node_exporter's textfile collector and the Pushgateway take
the file of a nightly run as the next values of the same series.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from benchctl.analysis.runs.outcomes import Answer
from benchctl.analysis.runs.summary import SummaryRow
from benchctl.report.report import Report, StoredRun
from benchctl.units import without_unit
from benchctl.visible import visible

Samples = Sequence[tuple[Mapping[str, object], float]]

# The names that Prometheus recommends (prometheus.io/docs/practices/naming).
_UNITS = {"s": "seconds", "bps": "bits_per_second"}
_NOT_IN_NAMES = re.compile("[^a-zA-Z0-9_]")
_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def export(stored: StoredRun) -> Iterator[str]:
    """Yield the summary of a run in this form. Raises StoreError."""
    report = stored.report
    run, profile = report.run, {"profile": report.run.profile}
    yield from _family("run_info", "the run", [({**profile, "run": run.name}, 1)])
    if run.finished_time is not None:
        about = "when the run ended, in Unix time"
        yield from _family("run_finished_seconds", about, [(profile, run.finished_time)], "seconds")
    trials = Counter(str(trial.trial.status) for trial in report.trials)
    statuses: Samples = [({**profile, "status": status}, n) for status, n in sorted(trials.items())]
    yield from _family("trials", "trials by their status", statuses)
    met: Samples = [
        ({**profile, "expectation": outcome.text}, int(outcome.is_met))
        for outcome in report.outcomes
        if outcome.answer is not Answer.UNDECIDED
    ]
    about = "1 if an expectation of the profile was met, 0 if not; none if it is undecided"
    yield from _family("expectation_met", about, met)
    labelled = [(row, {**profile, **_labels(row)}) for row in report.summary]
    for metric in dict.fromkeys(row.metric for row in report.summary):
        stem = without_unit(metric)
        unit = metric[len(stem) + 1 :]
        unit = _UNITS.get(unit, unit)
        about = run.vocabulary.describe(metric).description
        for suffix, what, samples in _statistics(report, metric, profile):
            name = "_".join(filter(None, (stem, suffix, unit)))
            yield from _family(name, f"{about}; {what}", samples, unit)
    repeats: Samples = [
        ({**labels, "metric": row.metric}, row.spread.n) for row, labels in labelled
    ]
    yield from _family("repeats", "the repeats that a mean is over", repeats)
    yield "# EOF\n"


def _statistics(
    report: Report, metric: str, profile: Mapping[str, object]
) -> Iterator[tuple[str, str, Samples]]:
    """Yield what is told of a metric: the end of its name, in words, and the values."""
    rows = [(row, {**profile, **_labels(row)}) for row in report.rows_of(metric)]
    yield "", "the mean over repeats", [(labels, row.spread.mean) for row, labels in rows]
    for end, called in (("low", "lower"), ("high", "upper")):
        bounds = [(labels, getattr(row.spread, f"ci95_{end}")) for row, labels in rows]
        yield (
            f"ci95_{end}",
            f"the {called} end of the 95 % interval of the mean",
            [(labels, value) for labels, value in bounds if value is not None],
        )
    yield (
        "p95",
        "the mean over repeats of the 95th percentile",
        [({**profile, **_labels(row)}, row.spread.mean) for row in report.rows_of(metric, "p95")],
    )


def _labels(row: SummaryRow) -> dict[str, object]:
    axes = {f"axis_{_NOT_IN_NAMES.sub('_', axis)}": value for axis, value in row.point.items()}
    return {"flow": row.flow, "direction": row.direction, **axes}


def _family(name: str, about: str, samples: Samples, unit: str = "") -> Iterator[str]:
    if not samples:
        return
    name = f"benchctl_{_NOT_IN_NAMES.sub('_', name)}"
    yield f"# TYPE {name} gauge\n"
    if unit:
        yield f"# UNIT {name} {unit}\n"
    yield f"# HELP {name} {_quoted(about)}\n"
    for labels, value in samples:
        pairs = ",".join(f'{key}="{_quoted(str(text))}"' for key, text in labels.items())
        yield f"{name}{{{pairs}}} {value!r}\n"


def _quoted(text: str) -> str:
    return visible(text).translate(_ESCAPED)
