"""Makes a mesh in a store whose trials run side by side."""

from itertools import permutations

from tui.made_runs import BEGIN

from benchctl.metrics import Direction
from benchctl.run.planned import Parallel, PlannedFlow, PlannedRun, PlannedTrial, Settings
from benchctl.run.record import Figure
from benchctl.store.read import Reader
from benchctl.store.record import Recorder, create_run

DURATION_S = 10.0


class MadeMesh:
    """A run of each pair of some hosts, of which some trials end, fail, or run."""

    def __init__(self, path, hosts, direction="send", repeats=1, parallel=True):
        self.hosts = [f"h{number}" for number in range(1, hosts + 1)]
        pairs = [*permutations(self.hosts, 2)]
        self.direction = Direction(direction)
        values = {"pair": tuple(f"{source}:{target}" for source, target in pairs)}
        settings = Settings(
            values, "interleaved", (), headlines={"iperf3": "throughput_bps"},
            parallel=Parallel(None, at_once=hosts // 2) if parallel else None,
        )  # fmt: skip
        # The order of execution is not that of the profile.
        trials = [
            PlannedTrial(
                position, repeat, {"pair": f"{source}:{target}"},
                (PlannedFlow("bulk", "iperf3", source, target, None, self.direction, 0.0, {}),),
                {}, DURATION_S, DURATION_S + 15,
            )
            for position, (repeat, (source, target)) in enumerate(
                (repeat, pair) for repeat in range(1, repeats + 1) for pair in reversed(pairs)
            )
        ]  # fmt: skip
        self.id, _ = create_run(path, PlannedRun("mesh", "", 1, settings, trials, ""), BEGIN)
        self.recorder = Recorder(path, self.id)
        self.recorder.update_run(name="20261121-002512-7f3a")
        self.recorder.update_run(status="running", started_time=BEGIN, runner_pid=1)
        reader = Reader(path)
        self.trials = {
            (trial.point["pair"], trial.repeat): trial for trial in reader.trials(self.id)
        }
        reader.close()

    def begin(self, pair, repeat=1, at_s=0.0):
        """Begin the trial of a pair, such as ``h1:h2``."""
        trial = self.trials[pair, repeat]
        source, target = pair.split(":")
        self.recorder.update_trial(trial.id, status="running", started_time=BEGIN + at_s)
        flow = self.recorder.add_flow(
            trial.id, attempt=1, name="bulk", backend="iperf3", source=source, target=target,
            direction=self.direction, port=5201, status="running", client=[], server=[],
            requested={},
        )  # fmt: skip
        self.recorder.flush()
        return trial, flow

    def end(self, pair, rate_bps=None, repeat=1, at_s=0.0):
        """Measure the trial of a pair to its end; without a rate, it fails."""
        trial, flow = self.begin(pair, repeat, at_s)
        status, error = ("failed", "the server is busy") if rate_bps is None else ("ok", "")
        end = BEGIN + at_s + DURATION_S
        self.recorder.update_flow(
            flow, status=status, error=error, started_time=BEGIN + at_s, finished_time=end
        )
        if rate_bps is not None:
            figures = {(str(self.direction), "throughput_bps"): Figure(rate_bps, "tool")}
            self.recorder.add_figures(flow, figures)
        self.recorder.update_trial(
            trial.id, status=status, error=error, finished_time=end, start_skew_s=0.0,
            fairness_jain=None,
        )  # fmt: skip
        self.recorder.flush()

    def close(self):
        """Close the store."""
        self.recorder.close()
