"""What came out of a run, as one paragraph: the same words end a run and open whatever shows it.

First what was measured, the main figure with its interval, and what changed against the baseline.
Then the other figures, what limited the flows, and what is not valid.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from benchctl.analysis.flow.limiting import Limiter
from benchctl.analysis.results import NOT_KEPT_UP
from benchctl.analysis.runs.compare import Comparison, of_tables
from benchctl.analysis.runs.outcomes import Answer
from benchctl.analysis.runs.summary import SummaryRow, point_key
from benchctl.metrics import title_of
from benchctl.report.comparison.comparison import (
    beside_baseline,
    compare_reports,
    relative,
    signed,
    verdicts,
    vocabulary_of,
)
from benchctl.report.pivot import figure_name, with_interval
from benchctl.report.report import Report, read_report, without_figures, yet
from benchctl.report.text.happenings import tally
from benchctl.report.text.limiting import limits, reason
from benchctl.report.text.searches import rate_text
from benchctl.run.status import Status
from benchctl.store.read import Reader
from benchctl.units import format_count, format_value

# So many values of a metric are read in a sentence; of more, the least and the greatest.
MOST_VALUES = 3
# What people ask for beside the headline figures of the tools.
ASKED = (
    "throughput_bps", "responsiveness_rpm", "rtt_s", "rtt_idle_s", "rtt_under_load_s",
    "rtt_increase_s", "owd_s", "loss_ratio", "jitter_rfc3550_s",
)  # fmt: skip


def read_answer(reader: Reader, report: Report, *, brief: bool = False) -> list[str]:
    """Return the sentences of `answer`, with the baseline of the run's profile, if it has one.

    Raises StoreError.
    """
    run = report.run
    number = reader.baselines().get(run.profile, run.id)
    baseline = read_report(reader, reader.run(number)) if number != run.id else None
    return answer(report, baseline, brief=brief)


def answer(report: Report, baseline: Report | None = None, *, brief: bool = False) -> list[str]:
    """Return what came out of a run, as sentences; a ``brief`` one names limits without reasons."""
    if not report.trials:
        why = f"The run failed: {report.run.error}." if report.run.error else ""
        return [f"{_capitalized(without_figures(report))}.", *filter(None, [why])]
    figures, limited = [*_figures(report)], [*_limited(report, brief=brief)]
    first = len(figures) if report.run.settings.search is not None else 1
    said = [_measured(report), *figures[:first]]
    if baseline is not None:
        said += _changed(report, baseline)
    # A word is read before other figures, reasons after them.
    said += [*limited, *figures[first:]] if brief else [*figures[first:], *limited]
    said += _not_valid(report)
    if report.outcomes:
        answers = Counter(outcome.answer for outcome in report.outcomes)
        answered = ", ".join(
            f"{answers[each_answer]} {each_answer}"
            for each_answer in Answer
            if answers[each_answer]
        )
        said.append(f"Expectations: {answered}.")
    if happened := tally(report):
        said.append(f"Within the flows: {happened}.")
    return said


def _measured(report: Report) -> str:
    statuses = Counter(trial.trial.status for trial in report.trials)
    planned, ok = report.run.trials, statuses.pop(Status.OK, 0)
    parts = [f"{count} {status}" for status, count in statuses.items()]
    if (missing := planned - len(report.trials)) > 0:
        parts.append(f"{missing} not measured{yet(report.run)}")
    said = f"{ok} of {format_count(planned, 'trial')} measured"
    said += f", {', '.join(parts)}." if parts else "."
    errors = Counter(trial.trial.error for trial in report.trials if trial.trial.error)
    for why, count in errors.most_common(1):
        rest = "" if len(errors) == 1 else f" ({count} of {errors.total()})"
        said += f" What failed: {why}{rest}."
    if report.run.error:
        said += f" The run failed: {report.run.error}."
    return said


def _figures(report: Report) -> Iterator[str]:
    """Yield a sentence for each main metric."""
    run = report.run
    if run.settings.search is not None:
        for search in report.found[:MOST_VALUES]:
            at, rate = _values(search.point.values()), rate_text(run.settings.search, search)
            yield f"Highest {run.settings.search.axis}{at}: {rate}."
        return
    wanted = dict.fromkeys([*run.vocabulary.headlines.values(), *ASKED])
    found: dict[str, list[SummaryRow]] = {}
    for row in report.summary:
        if row.metric in wanted and row.flow:
            found.setdefault(row.metric, []).append(row)
    # What phases tell apart is not told again as one.
    phases = {(point_key(row.point), row.flow) for row in found.get("rtt_under_load_s", ())}
    found["rtt_s"] = [
        row for row in found.get("rtt_s", ()) if (point_key(row.point), row.flow) not in phases
    ]
    axes = [
        axis for axis in run.varying
        if len({str(row.point.get(axis)) for row in report.summary if row.flow}) > 1
    ]  # fmt: skip
    for metric in wanted:
        if rows := found.get(metric):
            yield f"{_capitalized(title_of(metric))}: {_in_words(axes, rows)}."


def _capitalized(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}"


def _in_words(axes: Sequence[str], rows: Sequence[SummaryRow]) -> str:
    """Write the figures of one metric: all of a few, or the least and the greatest."""
    values = {_value(row, format_value(row.metric, row.spread.mean)) for row in rows}
    if len(values) == 1 and len(rows) > MOST_VALUES:
        return f"{values.pop()} ({len(rows)} times)"
    named = [f"{_value(row, with_interval(row))}{where}" for row, where in _places(axes, rows)]
    if len(rows) <= MOST_VALUES:
        return ", ".join(named)
    by_mean = sorted(range(len(rows)), key=lambda at: rows[at].spread.mean)
    return f"from {named[by_mean[0]]} to {named[by_mean[-1]]}"


def _value(row: SummaryRow, text: str) -> str:
    # A round trip that is shorter under load is chance, or a processor that no longer sleeps.
    is_none = row.metric == "rtt_increase_s" and row.spread.mean <= 0
    return "none" if is_none else text


def _places(axes: Sequence[str], rows: Sequence[SummaryRow]) -> Iterator[tuple[SummaryRow, str]]:
    """Yield each figure with its values of the axes, and what else tells it from the others."""
    flows = len({row.flow for row in rows}) > 1
    directions = len({(*map(str, row.point.items()), row.flow) for row in rows}) < len(rows)
    for row in rows:
        words = [str(row.point.get(axis, "-")) for axis in axes]
        if len(axes) > 1:
            words = [f"{axis}={word}" for axis, word in zip(axes, words, strict=True)]
        words += [row.flow] * flows + [row.direction] * directions
        yield row, _values(words)


def _values(values: Iterable[object]) -> str:
    text = " ".join(map(str, values))
    return f" ({text})" if text else ""


def _limited(report: Report, *, brief: bool) -> Iterator[str]:
    """Yield what limited the flows: each of a few, or how often which reason."""
    known = [limit for limit in limits(report) if limit.limit.by is not Limiter.UNKNOWN]
    if len(known) <= MOST_VALUES:
        named: dict[Limiter, list[str]] = {}
        several = len({limit.flow for limit in known}) > 1
        for limit in known:
            point = [str(limit.point[axis]) for axis in report.run.varying if axis in limit.point]
            where = " ".join([*point, limit.flow, limit.direction])
            if brief:
                words = [*point, limit.flow] if several or not point else point
                named.setdefault(limit.limit.by, []).append(" ".join(words))
            else:
                yield f"Limit of {where}: {limit.limit.by}; {reason(limit.limit)}."
        if named:
            each = [f"{by} ({', '.join(dict.fromkeys(own))})" for by, own in named.items()]
            yield f"Limited by: {', '.join(each)}."
        return
    counts = Counter(limit.limit.by for limit in known)
    reasons = ", ".join(f"{by} {count}" for by, count in counts.most_common())
    yield f"Limits, by flow, direction and point: {reasons}."


def _not_valid(report: Report) -> Iterator[str]:
    late = sum(not all(link["kept"] for link in trial.trial.links) for trial in report.trials)
    if late:
        which = "1 trial is" if late == 1 else f"{late} trials are"
        yield f"{which} not valid, because {NOT_KEPT_UP}."
    if report.broken:
        broken = sum(row.spread.n for row in report.broken)
        count = (
            "1 figure cannot be and does" if broken == 1 else f"{broken} figures cannot be and do"
        )
        yield f"{count} not count."


def _changed(report: Report, baseline: Report) -> list[str]:
    """Return the verdicts against the baseline, and the largest change that is certain."""
    (compared,) = compare_reports(baseline, report)
    shown = [
        table for table in of_tables(compared, vocabulary_of([report.run, baseline.run]))
        if table.a and table.b and table.valid
    ]  # fmt: skip
    name = baseline.run.name
    if not shown:
        return [f"No figure can be compared with the baseline {name}."]
    said = f"{_capitalized(beside_baseline(shown))} {name}: {verdicts(shown)}"
    certain = [comparison for comparison in shown if comparison.verdict.is_certain]
    if certain:
        most = max(certain, key=lambda comparison: abs(comparison.effect or 0.0))
        said += f"; most of all {figure_name(most)}, {_by(most)}"
    return [f"{said}."]


def _by(comparison: Comparison) -> str:
    return relative(comparison) or signed(comparison.metric, comparison.difference)
