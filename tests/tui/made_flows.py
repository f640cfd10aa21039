"""Makes a run of one trial whose flows have a rate that was asked for."""

from tui.made_runs import BEGIN, plan_flow

from benchctl.run.planned import PlannedRun, PlannedTrial, Settings
from benchctl.run.record import Figure
from benchctl.store.read import Reader
from benchctl.store.record import Recorder, create_run

RATES = {"voice": 0.1e6, "video": 4.2e6, "backup": 12.3e6}
DURATION_S = 10.0


def made_flows(path, *, ended, rates=RATES):
    """Make the run; one that has not ``ended`` is in the middle of its trial. Returns its id."""
    flows = [plan_flow(name, "iperf3", "send", rate=rate) for name, rate in rates.items()]
    settings = Settings({}, "interleaved", (), headlines={"iperf3": "throughput_bps"})
    trials = [PlannedTrial(0, 1, {}, tuple(flows), {}, DURATION_S, DURATION_S + 15)]
    run_id, _ = create_run(path, PlannedRun("flows", "", 1, settings, trials, ""), BEGIN)
    recorder = Recorder(path, run_id)
    recorder.update_run(name="20261121-002512-7f3a")
    recorder.update_run(status="running", started_time=BEGIN, runner_pid=1)
    reader = Reader(path)
    (trial,) = reader.trials(run_id)
    reader.close()
    recorder.update_trial(trial.id, status="running", started_time=BEGIN)
    lasted_s = DURATION_S if ended else DURATION_S / 2
    for name, rate in rates.items():
        flow = recorder.add_flow(
            trial.id, attempt=1, name=name, backend="iperf3", source="local", target="paris",
            direction="send", port=5201, status="running", client=[], server=[],
            requested={"rate": rate}, effective={"rate": rate},
        )  # fmt: skip
        for second in range(int(lasted_s)):
            recorder.add_sample(
                flow, "client", 0, "send", second, second + 1, second + 1.0, False,
                {"throughput_bps": rate},
            )  # fmt: skip
        if ended:
            recorder.update_flow(
                flow, status="ok", started_time=BEGIN, finished_time=BEGIN + lasted_s, exit_code=0
            )
            recorder.add_figures(flow, {("send", "throughput_bps"): Figure(rate, "tool")})
    if ended:
        recorder.update_trial(
            trial.id, status="ok", error="", finished_time=BEGIN + lasted_s, start_skew_s=0.0,
            fairness_jain=None,
        )  # fmt: skip
        recorder.update_run(status="ok", finished_time=BEGIN + lasted_s)
    recorder.close()
    return run_id
