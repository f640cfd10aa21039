"""A report with one of everything that has to be shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace

from benchctl.analysis.results import FlowReport, TrialReport
from benchctl.analysis.runs.outcomes import Answer, Outcome
from benchctl.analysis.runs.summary import SummaryRow
from benchctl.analysis.statistics import Spread
from benchctl.report.report import Report
from benchctl.run.planned import Reported, Settings, Severity
from benchctl.run.record import Note, RecordedFlow, Run, Trial
from benchctl.run.status import Status


def row(
    point, metric, mean, *, flow="bulk", direction="send", n=3, half=None, stdev=None, **beside
):
    low, high = (None, None) if half is None else (mean - half, mean + half)
    spread = Spread(n, mean, stdev, low, high, mean, mean, mean)
    return SummaryRow(point, flow, direction, metric, [mean] * n, spread, beside)


def flow(name, status=Status.OK, expected=None, error="", hint=""):
    direction = "round-trip" if name == "ping" else "send"
    return FlowReport(
        RecordedFlow(
            id=0, trial_id=0, attempt=1, name=name, backend="iperf3", source="local",
            target="paris", direction=direction, port=5201, status=status, failure="",
            error=error, hint=hint, client=["iperf3", "-c", "paris"], server=[], requested={},
            effective={}, expected={direction: expected or {}}, started_time=None,
            finished_time=None, exit_code=0, stderr="",
        ),
        {},
    )  # fmt: skip


def trial(position, repeat, point, started_time, flows, status=Status.OK, **more):
    return TrialReport(
        Trial(
            id=0, run_id=0, position=position, repeat=repeat, point=point, flows=[], lab={},
            duration_s=20.0, deadline_s=30.0, status=status, started_time=started_time,
            **{
                "error": "", "finished_time": None, "start_skew_s": None, "fairness_jain": None,
                **more,
            },
        ),
        flows,
    )  # fmt: skip


@dataclass
class Stored:
    """What exports and pages take, without a store."""

    report: Report
    notes: Sequence[Note] = ()

    @property
    def run(self):
        return self.report.run

    @property
    def reader(self):
        return SimpleNamespace(notes=lambda run_id: [*self.notes], baselines=dict)


ONE, TWO = {"streams": 1, "to": "paris"}, {"streams": 2, "to": "paris"}
EXPECTED = {"throughput_bps": 95e6, "rtt_s": 0.02}
BEGIN = 1795221912.0

RUN = Run(
    id=1, name="20261121-004512-7f3a", profile="sample", title="Streams | to Paris",
    created_time=BEGIN, started_time=BEGIN, finished_time=BEGIN + 60, status=Status.FAILED,
    error="", seed=7, trials=4, profile_text="",
    profile_sha256="0" * 64, facts={}, runner_pid=None, tags=(),
    settings=Settings(
        {"streams": [1, 2], "to": ["paris"]}, "interleaved", (),
        reported=(
            Reported("bulk", None, {"streams": 1}, {"throughput_bps": 93.4e6}),
            Reported(None, None, {"streams": 1}, {"fairness_jain": 0.993}),
        ),
    ),
)  # fmt: skip
TRIALS = (
    trial(
        0, 1, ONE, BEGIN, [flow("bulk", expected=EXPECTED), flow("ping", expected=EXPECTED)],
        start_skew_s=0.0012, fairness_jain=0.99981,
    ),
    trial(
        1, 1, TWO, BEGIN + 20, [
            flow("bulk", Status.FAILED, error="connection refused", hint="is the server running?"),
            flow("ping"),
        ],
        Status.FAILED, error="bulk: connection refused",
    ),
    trial(
        2, 2, TWO, BEGIN + 40, [flow("bulk", expected=EXPECTED), flow("ping", expected=EXPECTED)],
        links=[{"link": "far", "kept": False}],
    ),
)  # fmt: skip
PING = {"flow": "ping", "direction": "round-trip"}
SUMMARY = (
    row(ONE, "throughput_bps", 94.123e6, half=0.31e6, expected=95e6, reported=93.4e6),
    row(ONE, "retransmits", 3.5, half=1.2),
    row(ONE, "rtt_s", 0.02041, half=0.0002, expected=0.02, **PING),
    row(ONE, "loss_ratio", 0.0125, n=1, **PING),
    row(TWO, "throughput_bps", 99.96e6, n=1, expected=95e6),
    row(TWO, "rtt_s", 0.0000004, n=1, expected=0.02, **PING),
    row(ONE, "fairness_jain", 0.99981, flow="", direction="", n=1, reported=0.993),
)
REPORT = Report(
    RUN, TRIALS, SUMMARY,
    [
        Outcome(
            "throughput_bps of bulk at streams=1", False, Answer.NOT_MET, Severity.ERROR,
            "94.1 Mbit/s ±0.31, at least 95.0 Mbit/s", ONE, "bulk", "send", "throughput_bps",
        ),
        Outcome(
            "rtt_s of ping at streams=1", True, Answer.MET, Severity.ERROR,
            "20.4 ms ±0.20, at most 30.0 ms", ONE, "ping", "round-trip", "rtt_s",
        ),
        Outcome(
            "rtt_s.p95 of ping at streams=1", False, Answer.UNDECIDED, Severity.WARNING,
            "30.1 ms ±0.20, at most 30.0 ms", ONE, "ping", "round-trip", "rtt_s.p95",
        ),
    ],
)  # fmt: skip
