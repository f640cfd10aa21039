"""The remarks below a table: failures, shares, expectations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from benchctl.analysis.flow.sharing import fair_after_s
from benchctl.analysis.results import NOT_VALID_HERE
from benchctl.analysis.runs.summary import at_point, point_key
from benchctl.analysis.statistics import FEW
from benchctl.metrics import Aspect, of_aspect, title_of
from benchctl.report.pivot import figure_name, with_interval
from benchctl.report.report import Report, is_repeated, is_settled, yet
from benchctl.report.text.captured import packet_lines
from benchctl.report.text.clocks import clock_lines
from benchctl.report.text.counters import counter_lines
from benchctl.report.text.happenings import tally
from benchctl.report.text.lawful import law_lines
from benchctl.report.text.routes import route_lines
from benchctl.report.text.searches import search_remarks
from benchctl.run.record import Trial
from benchctl.run.status import Status
from benchctl.units import format_count, format_duration, format_ratio, format_value
from benchctl.visible import visible


def remarks(report: Report, *, tables: bool = False) -> list[str]:
    """Return the remarks below a table, after an empty line.

    With ``tables``, the run's own error, packets, events and expectations have a place of their
    own, and no remark.
    """
    lines = [*search_remarks(report)]
    if report.run.error and not tables:
        lines.append(f"the run failed: {report.run.error}")
    reasons = {trial.position: why for trial, why in failures(report)}
    for trial in (trial.trial for trial in report.trials):
        name = f"trial {trial.position + 1}{at_point(trial.point, ' ({})')}, repeat {trial.repeat}"
        if (why := reasons.get(trial.position)) is not None:
            lines.append(f"{name}: {trial.status}{f': {why}' if why else ''}")
        broken = dict.fromkeys(link["link"] for link in trial.links if not link["kept"])
        if broken:
            text = f"{NOT_VALID_HERE} on"
            lines.append(f"{name}: {text} {', '.join(broken)}")
    lines += law_lines(report)
    lines += counter_lines(report)
    lines += _sharing(report)
    lines += _estimated(report)
    lines += clock_lines(report)
    lines += route_lines(report)
    if not tables:
        lines += packet_lines(report)
    if not tables and (happened := tally(report)):
        lines.append(f"within the flows: {happened}; benchctl show --events describes them")
    lines += _left_out(report)
    lines += _unknown(report)
    lines += _drifting(report)
    lines += _outliers(report)
    lines += _too_few(report)
    if not tables:
        lines += [outcome.remark for outcome in report.outcomes if not outcome.is_met]
    done, planned = len(report.trials), report.run.trials
    if done < planned:
        lines.append(f"{planned - done} of {planned} trials were not measured{yet(report.run)}")
    return ["", *map(visible, lines)] if lines else []


def failures(report: Report) -> Iterator[tuple[Trial, str]]:
    """Yield the trials that did not end well, each with why, and what helps."""
    hints: set[str] = set()
    for trial, flows in ((trial.trial, trial.flows) for trial in report.trials):
        if trial.status is not Status.OK:
            # Of a hundred failures with one remedy, the first shows it.
            new = dict.fromkeys(flow.flow.hint for flow in flows if flow.flow.hint)
            yield (
                trial,
                "; ".join(
                    filter(None, [trial.error, *(hint for hint in new if hint not in hints)])
                ),
            )
            hints.update(new)


def _sharing(report: Report) -> Iterator[str]:
    """Yield how concurrent flows shared the link, and how uncertain a single trial is."""
    alone = False
    for index in (row for row in report.summary if row.metric == "fairness_jain"):
        trials = [trial.trial for trial in report.trials if trial.trial.point == index.point]
        reported = index.beside.get("reported")
        said = f" (reported {format_value(index.metric, reported)})" if reported else ""
        skew_s = max(trial.start_skew_s or 0.0 for trial in trials)
        fair = _fair(trials)
        line = f"Jain's index {with_interval(index)}{said}{fair}"
        line += f", start skew {format_duration(skew_s)}"
        if index.spread.n > 1:
            line += f" at most; single trials scatter by {_scatter(report, index.point)}"
        alone = alone or index.spread.n == 1
        yield f"{at_point(index.point, '{}: ')}{line}"
    if alone:
        yield "one trial is not enough to show how flows share a link; use --repeat 5"


def _fair(trials: Sequence[Trial]) -> str:
    """Return after what time the trials' flows shared evenly, as far as they did."""
    seen = [fair_after_s(trial.fair_windows) for trial in trials if trial.fair_windows]
    times = [time_s for time_s in seen if time_s is not None]
    if not times:
        return ", at no time fair" if seen else ""
    some = f" in {len(times)} of {len(seen)} trials" if len(times) < len(seen) else ""
    return f", fair after {format_duration(fmean(times))}{some}"


def _left_out(report: Report) -> Iterator[str]:
    """Yield a line if expected rates leave out that links lose packets at random."""
    lossy = {
        (point_key(trial.trial.point), flow.flow.name, direction): theory["loss_left_out_ratio"]
        for trial in report.trials
        for flow in trial.flows
        for direction, theory in flow.flow.expected.items()
        if "loss_left_out_ratio" in theory
    }
    if lossy:
        rates = format_count(len(lossy), "expected rate")
        leaves = "leaves" if len(lossy) == 1 else "leave"
        yield (
            f"{rates} of TCP {leaves} out the random loss of the links (up to"
            f" {format_ratio(max(lossy.values()))}): no model holds for it"
        )


def _estimated(report: Report) -> Iterator[str]:
    """Yield a line if there are figures of responsiveness: people know those of other programs."""
    if any(row.metric == "responsiveness_rpm" for row in report.summary):
        yield (
            "responsiveness is estimated without TLS and HTTP: it is not comparable with"
            " networkQuality's figure"
        )


def _unknown(report: Report) -> Iterator[str]:
    """Yield a line for each figure that the most repeats did not show well enough."""
    until = report.run.settings.until
    for row in report.summary:
        if until is not None and is_settled(report.run, row) is False:
            known = format_ratio((row.spread.half or 0.0) / abs(row.spread.mean or 1.0))
            wanted = format_ratio(until.share)
            name, n = figure_name(row), row.spread.n
            yield f"{name} is known to ±{known} after {n} repeats, not to ±{wanted}"


def _drifting(report: Report) -> Iterator[str]:
    """Yield a line if the order of trials matters to shown figures; it names the clearest."""
    seen = [drift for drift in report.drifts if drift.is_seen]
    if seen:
        clearest = min(seen, key=lambda drift: drift.p)
        others = f", and {len(seen) - 1} more" if len(seen) > 1 else ""
        how = "rises" if clearest.change > 0 else "falls"
        yield (
            f"the order of trials matters: {title_of(clearest.metric)} of {clearest.flow}"
            f" {clearest.direction} {how} by {format_ratio(abs(clearest.change))} over the run"
            f"{others} (p {clearest.p_adjusted:.2g} for all {len(report.drifts)} figures)"
        )


def _outliers(report: Report) -> Iterator[str]:
    """Yield a line if repeats of shown figures are far from the others; it names the farthest."""
    found = [
        (abs(value - row.spread.median) / (row.spread.stdev or 1), value, row)
        for row in report.summary
        if row.metric in report.run.vocabulary.wanted
        for value in row.spread.outliers
    ]
    if found:
        _, value, row = max(found, key=lambda outlier: outlier[0])
        far, median = (format_value(row.metric, figure) for figure in (value, row.spread.median))
        them = "1 repeat is an outlier, and counts" if len(found) == 1 else (
            f"{len(found)} repeats are outliers, and count"
        )  # fmt: skip
        yield (
            f"{them} like all others; the farthest is {far}, {figure_name(row)};"
            f" the median is {median}"
        )


def _too_few(report: Report) -> Iterator[str]:
    """Yield a line if the run repeats its points, but too rarely for dependable intervals."""
    repeated = (row.spread.n for row in report.summary if is_repeated(report.run, row))
    if max(repeated, default=0) == FEW - 1:
        yield f"{FEW - 1} repeats are too few to show how much a figure scatters; use --repeat 5"


def _scatter(report: Report, point: Mapping[str, object]) -> str:
    """Return the standard deviation of a single trial's rate, of the flow with the largest one."""
    for metric in of_aspect(Aspect.RATE):
        rates = [row.spread for row in report.summary if (row.point, row.metric) == (point, metric)]
        if found := [
            rate.stdev / rate.mean for rate in rates if rate.stdev is not None and rate.mean
        ]:
            return format_ratio(max(found))
    return format_ratio(0.0)
