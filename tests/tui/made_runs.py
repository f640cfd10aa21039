"""Makes runs in a store as the runner would, from seeded figures and an own clock."""

import math
import random
import tempfile
from functools import cache
from pathlib import Path

from benchctl.metrics import Direction
from benchctl.run.planned import PlannedFlow, PlannedRun, PlannedTrial, Settings
from benchctl.run.record import Figure
from benchctl.store.read import Reader
from benchctl.store.record import Recorder, create_run

BEGIN = 1_795_220_712.0
"""Unix time at which a made run begins: 2026-11-21 00:25:12 UTC."""
PROFILE = """title = "Two servers, one and four streams"
[flows.main]
backend = "iperf3"
[flows.ping]
backend = "ping"
[axes]
server = ["paris", "tashkent"]
streams = [1, 4]
[run]
repeats = 2
"""
RATES = {("paris", 1): 94.1e6, ("paris", 4): 371e6, ("tashkent", 1): 5.4e6, ("tashkent", 4): 18.3e6}
RTTS = {"paris": 0.0204, "tashkent": 0.0962}


def plan_flow(name, backend, direction, **parameters):
    """Return a flow as a plan has it."""
    return PlannedFlow(name, backend, "local", "paris", None, Direction(direction), 0.0, parameters)


class MadeRun:
    """One run, written trial by trial, or sample by sample."""

    def __init__(
        self, path, name="20261121-002512-7f3a", seed=7, factor=1.0, repeats=2, duration_s=20.0,
        begin=BEGIN, profile="tour", parameters=(), metrics=(),
    ):  # fmt: skip
        self.path = path
        self.rng = random.Random(seed)
        self.factor = factor
        self.duration_s = duration_s
        self.now = begin
        flows = (
            plan_flow("main", "iperf3", "send", **dict(parameters)),
            plan_flow("ping", "ping", "round-trip"),
        )
        self.points = [
            {"server": server, "streams": streams}
            for _ in range(repeats)
            for server in ("paris", "tashkent")
            for streams in (1, 4)
        ]
        trials = [
            PlannedTrial(i, i // 4 + 1, point, flows, {}, duration_s, duration_s + 15)
            for i, point in enumerate(self.points)
        ]
        values = {"server": ("paris", "tashkent"), "streams": (1, 4)}
        settings = Settings(
            values, "interleaved", (), attempts=3, backoff_s=2.0, pause_s=1.0, metrics=metrics
        )
        title = "Two servers, one and four streams"
        new = PlannedRun(profile, title, 42, settings, trials, PROFILE)
        self.id, _ = create_run(path, new, self.now)
        self.recorder = Recorder(path, self.id)
        self.recorder.update_run(name=name)
        reader = Reader(path)
        self.trials = list(reader.trials(self.id))
        reader.close()
        self.position = -1
        self.flows = {}
        self.sampled_s = 0.0
        self.rates = []

    def begin(self, pid=None):
        """Begin the run."""
        facts = {"hostname": "probe-1", "kernel": "6.1"}
        self.recorder.update_run(
            status="running", started_time=self.now, runner_pid=pid, facts=facts
        )

    def begin_trial(self, attempt=1):
        """Begin the next trial, or another attempt of this one."""
        if attempt == 1:
            self.position += 1
        trial = self.trials[self.position]
        self.began = self.now
        self.sampled_s = 0.0
        self.rates = []
        self.recorder.update_trial(trial.id, status="running", started_time=self.now)
        self.flows = {
            "main": self.begin_flow("main", "iperf3", "send", 5201, attempt),
            "ping": self.begin_flow("ping", "ping", "round-trip", None, attempt),
        }

    def begin_flow(self, name, backend, direction, port, attempt=1):
        """Begin a flow of this trial; returns its id."""
        trial = self.trials[self.position]
        return self.recorder.add_flow(
            trial.id, attempt=attempt, name=name, backend=backend, source="local",
            target="paris", direction=direction, port=port, status="running",
            client=[backend, "paris"], server=[],
            requested={"streams": trial.point["streams"]} if backend == "iperf3" else {},
        )  # fmt: skip

    def measure(self, seconds, step=0.5, extra=()):
        """Let the trial go on: samples of every stream and of ping, every ``step`` seconds."""
        point = self.trials[self.position].point
        streams = point["streams"]
        rate = RATES[point["server"], streams] * self.factor
        rtt = RTTS[point["server"]]
        for _ in range(round(seconds / step)):
            start, end = self.sampled_s, self.sampled_s + step
            total = rate * (1 - math.exp(-end)) * (1 + 0.04 * math.sin(end))
            for stream in range(streams):
                value = total / streams + self.rng.gauss(0, rate / streams / 50)
                self.rates.append(value)
                self.recorder.add_sample(
                    self.flows["main"], "client", stream, "send", start, end, end + 0.002, False,
                    {
                        "throughput_bps": value,
                        "retransmits": float(self.rng.random() < 0.1),
                        "cwnd_bytes": 1448.0 * (10 + round(20 * end) % 40),
                        **{name: self.rng.random() for name in extra},
                    },
                )  # fmt: skip
            lost = float(self.rng.random() < 0.02)
            answer = {"packets_sent": 1.0, "packets_lost": lost}
            if not lost:
                answer["rtt_s"] = rtt + abs(self.rng.gauss(0, rtt / 50)) + 0.002 * streams
            self.recorder.add_sample(
                self.flows["ping"], "client", 0, "round-trip", start, end, end, False, answer
            )
            self.sampled_s = end
            self.now = self.began + end
        self.recorder.flush()

    def end_trial(self, status="ok", error="", hint=""):
        """End the trial, with figures where it is ok."""
        trial = self.trials[self.position]
        streams = trial.point["streams"]
        for name, flow_id in self.flows.items():
            self.recorder.update_flow(
                flow_id, status=status, error=error, hint=hint, started_time=self.began,
                finished_time=self.now, exit_code=0 if status == "ok" else 1,
            )  # fmt: skip
            if status == "ok" and self.rates:
                self.recorder.add_figures(flow_id, self.figures(name, trial.point, streams))
        self.recorder.update_trial(
            trial.id, status=status, error=error, finished_time=self.now, start_skew_s=0.0012,
            fairness_jain=None,
        )  # fmt: skip
        self.now += 1.0

    def figures(self, name, point, streams):
        """Return the final figures of a flow."""
        if name == "main":
            mean = sum(self.rates) / len(self.rates) * streams
            return {
                ("send", "throughput_bps"): Figure(mean, "tool"),
                ("send", "retransmits"): Figure(float(self.rng.randrange(12)), "samples"),
            }
        rtt = RTTS[point["server"]] * self.rng.uniform(1.0, 1.05)
        return {
            ("round-trip", "rtt_s"): Figure(rtt, "samples", {"min": rtt * 0.98, "max": rtt * 1.3}),
            ("round-trip", "loss_ratio"): Figure(0.0, "samples"),
        }

    def note(self, text, level="warning"):
        """Note something about the run now."""
        self.recorder.add_note(text, level, self.now, None, None)
        self.recorder.flush()

    def end(self, status="ok"):
        """End the run."""
        self.recorder.update_run(status=status, finished_time=self.now)

    def close(self):
        """Close the store."""
        self.recorder.close()


@cache
def _bytes_of(make):
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "runs.sqlite")
        make(path)
        return path.read_bytes()


def _copy(make, path):
    """Put a new store at a path, as ``make`` makes it: that takes long, and is done once."""
    assert not path.exists()
    path.write_bytes(_bytes_of(make))


def three_runs(path):
    """Make a store of three runs: two of a profile, and one of another."""
    _copy(_make_three_runs, path)


def _make_three_runs(path):
    whole_run(path)
    whole_run(path, name="20261121-012512-9bd2", seed=8, factor=1.12, begin=BEGIN + 3600)
    whole_run(path, name="20261121-022512-11aa", seed=9, begin=BEGIN + 7200, profile="other")


def whole_run(path, **options):
    """Add a run whose sixth trial failed and that has a warning and a remark."""
    if options or path.exists():
        make_whole_run(path, **options)
    else:
        _copy(make_whole_run, path)


def make_whole_run(path, **options):
    """Make the same in any case; returns it."""
    made = MadeRun(path, **options)
    made.begin()
    for position in range(len(made.trials)):
        made.begin_trial()
        if position == 5:
            made.measure(4.0)
            made.note("main: the server closed the connection")
            made.end_trial("failed", "main: the server is busy", "try again later")
            continue
        made.measure(made.duration_s)
        made.end_trial()
        if position == 2:
            made.note("moved the aerial", "remark")
    made.end("failed")
    made.close()
    return made
