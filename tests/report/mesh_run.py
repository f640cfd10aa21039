"""A stored run of a mesh of three hosts."""

from contextlib import closing
from itertools import permutations, product

from benchctl.metrics import Direction
from benchctl.run.planned import PlannedFlow, PlannedRun, PlannedTrial, Settings
from benchctl.run.record import Figure
from benchctl.store.read import Reader
from benchctl.store.record import Recorder, create_run


def mesh_run(
    store,
    direction=Direction.SEND,
    times=lambda number: 1.0,
    repeats=1,
    *,
    now=1e9,
    hosts="abc",
    away=(),
    settings=(),
    tags=(),
):
    """Write a run in which pair n carries n Mbit/s, or ``times`` that; returns its name.

    ``away`` are hosts whose trials fail; ``settings`` are more of those of the run.
    """  # fmt: skip
    pairs = [*permutations(hosts, 2)]
    planned = [
        PlannedTrial(
            place, repeat, {"pair": f"{source}:{to}"},
            (PlannedFlow("main", "iperf3", source, to, None, direction, 0.0, {}),), {}, 1.0, 9.0,
        )
        for place, (repeat, (source, to)) in enumerate(product(range(1, repeats + 1), pairs))
    ]  # fmt: skip
    values = {"pair": tuple(f"{a}:{b}" for a, b in pairs)}
    settings = Settings(values, "sequential", **{"expect": (), **dict(settings)})
    plan = PlannedRun("mesh", "A mesh", 7, settings, planned, "")
    run_id, name = create_run(store, plan, now, tags=tags)
    with closing(Recorder(store, run_id)) as recorder, closing(Reader(store)) as reader:
        recorder.update_run(status="running", started_time=now)
        for place, trial in enumerate(reader.trials(run_id)):
            number, (flow,) = place % len(pairs) + 1, trial.flows
            if {flow.source, flow.to} & {*away}:
                recorder.update_trial(trial.id, status="running")
                why = f"host {', '.join(away)} is away"
                recorder.update_trial(trial.id, status="failed", error=why, finished_time=now + 1)
                continue
            flow_id = recorder.add_flow(
                trial.id, attempt=1, name="main", backend="iperf3", source=flow.source,
                target=flow.to, direction=direction, status="ok", client=[], server=[],
                requested={},
            )  # fmt: skip
            rate = number * 1e6 * times(number) * (1 + place // len(pairs) / 1000)
            figure = Figure(rate, "tool")
            recorder.add_figures(flow_id, {(direction.value, "throughput_bps"): figure})
            recorder.update_trial(trial.id, status="running")
            recorder.update_trial(trial.id, status="ok", started_time=now, finished_time=now + 1)
        recorder.update_run(status="failed" if away else "ok", finished_time=now + 9)
    return name
