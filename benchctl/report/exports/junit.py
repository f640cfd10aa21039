"""The expectations of a run as JUnit XML, for CI systems: one test case for each and each point.

The elements and attributes are those of Ant's reports, which every CI system reads; the schemas of
Ant (windyroad's JUnit.xsd) and of Jenkins accept them. A trial that failed is a test case in error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import localtime, strftime
from xml.sax.saxutils import escape, quoteattr

from benchctl.analysis.runs.outcomes import Answer, Outcome
from benchctl.analysis.runs.summary import at_point
from benchctl.report.report import Report, StoredRun
from benchctl.run.record import Trial
from benchctl.run.status import Status
from benchctl.visible import visible


def export(stored: StoredRun) -> Iterator[str]:
    """Yield the expectations of a run; what is not certain is skipped."""
    yield junit(stored.report)


def junit(report: Report, *, strict: bool = False) -> str:
    """Return the expectations of a run; with ``strict``, all that are not met are failures."""
    run, outcomes = report.run, report.outcomes
    failed = [trial.trial for trial in report.trials if trial.trial.status is not Status.OK]
    failures = sum(outcome.fails(strict=strict) for outcome in outcomes)
    begun = run.started_time or run.created_time
    attributes = {
        "name": run.profile,
        "id": 0,
        "package": run.profile,
        # Local, and without an offset: the schema has no room for it.
        "timestamp": strftime("%Y-%m-%dT%H:%M:%S", localtime(begun)),
        "hostname": str(run.facts.get("hostname", "")) or "localhost",
        "tests": len(outcomes) + len(failed),
        "failures": failures,
        "errors": len(failed),
        "skipped": sum(outcome.answer is not Answer.MET for outcome in outcomes) - failures,
        "time": f"{(run.finished_time or begun) - begun:.3f}",
    }
    known = {"run": run.name, "title": run.title, "status": run.status, "error": run.error}
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        "<testsuites>",
        f"  <testsuite{_attributes(attributes)}>",
        "    <properties>",
        *(f"      <property{_attributes({'name': name, 'value': value})}/>"
          for name, value in known.items()),
        "    </properties>",
        *(_trial_case(run.profile, trial) for trial in failed),
        *(_case(run.profile, outcome, strict=strict) for outcome in outcomes),
        "    <system-out></system-out>",
        "    <system-err></system-err>",
        "  </testsuite>",
        "</testsuites>",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _case(profile: str, outcome: Outcome, *, strict: bool) -> str:
    name = f"{outcome.text}, {outcome.direction}" if outcome.direction else outcome.text
    if outcome.fails(strict=strict):
        return _test(profile, name, "failure", f"{outcome.answer}: {outcome.why}", "expectation")
    # JUnit has no warnings: what counts for nothing is skipped.
    result = "" if outcome.answer is Answer.MET else "skipped"
    return _test(profile, name, result, f"{outcome.answer}: {outcome.why}")


def _trial_case(profile: str, trial: Trial) -> str:
    name = f"trial {trial.position + 1}{at_point(trial.point)}, repeat {trial.repeat}"
    return _test(profile, name, "error", f"{trial.status}: {trial.error}", str(trial.status))


def _test(profile: str, name: str, result: str, message: str, kind: str = "") -> str:
    head = f"    <testcase{_attributes({'name': name, 'classname': profile, 'time': '0'})}"
    if not result:
        return f"{head}/>"
    how = {"message": message, **({"type": kind} if kind else {})}
    text = "" if result == "skipped" else escape(visible(message))
    return f"{head}>\n      <{result}{_attributes(how)}>{text}</{result}>\n    </testcase>"


def _attributes(values: Mapping[str, object]) -> str:
    return "".join(f" {name}={quoteattr(visible(str(value)))}" for name, value in values.items())
