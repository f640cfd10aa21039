"""Trials in virtual time, on scripts instead of programs."""

from contextlib import closing

from engine.fakes import (
    EPOCH,
    ChoosyBackend,
    EarlyBackend,
    FakeBackend,
    FakeSpawner,
    ProbedBackend,
    run_virtual,
)

from benchctl.api import Direction
from benchctl.backends import Registry
from benchctl.engine.checks.tools import Toolbox
from benchctl.engine.site.context import RunContext, Signals
from benchctl.engine.site.site import Site
from benchctl.engine.trial.trial import TrialRunner
from benchctl.plan.bound import bind_trial
from benchctl.plugins import Candidate
from benchctl.run.planned import (
    ExternalServer,
    Host,
    Network,
    PlannedFlow,
    PlannedRun,
    PlannedTrial,
    Settings,
)
from benchctl.store.read import Reader
from benchctl.store.record import Recorder, create_run

REGISTRY = Registry(
    {
        "fake": Candidate("fake", "tests", FakeBackend),
        "early": Candidate("early", "tests", EarlyBackend),
        "choosy": Candidate("choosy", "tests", ChoosyBackend),
        "probed": Candidate("probed", "tests", ProbedBackend),
    }
)
# No other program has a port here, whatever this machine runs.
OURS = Host("local", "127.0.0.1", shares_ports=False)
NETWORK = Network({"local": OURS}, {"public": ExternalServer("203.0.113.1", (9200, 9202))})


def flow(name="main", to="local", label="x", delay_s=0.0, backend="fake", direction="send", **more):
    return PlannedFlow(
        name,
        backend,
        "local",
        to,
        None,
        Direction(direction),
        delay_s,
        {"duration": "1s", "label": label, **more},
    )


def trial(*flows, deadline_s=16.0):
    return PlannedTrial(0, 1, {}, flows or (flow(),), {}, 1.0, deadline_s)


class Outcome:
    """What a trial left in the store, and what was done to its processes."""

    def __init__(self, status, spawner, reader, row):
        self.status, self.log, self.commands = status, spawner.log, spawner.started
        self.processes = spawner.processes
        self.reader, self.trial = reader, row
        self.flows = reader.flows(row.id, all_attempts=True)

    @property
    def last(self):
        return self.flows[-1]

    def signals(self, word):
        """Return the signals, with their times, to processes whose command has this word."""
        return [
            (at, what) for at, what, name in self.log if word in name.split() and what != "begin"
        ]


def run_trial(
    store,
    scripts,
    *flows,
    attempts=1,
    during=None,
    deadline_s=16.0,
    site=None,
    start_s=0.0,
    server_wait_s=0.0,
):
    """Run one trial in a new store; ``during`` is (seconds, what is then done to the signals)."""
    settings = Settings({}, "", (), attempts, 2.0, server_wait_s=server_wait_s)
    planned = PlannedRun("p", "", 1, settings, [trial()], "")
    run_id, _ = create_run(store, planned, EPOCH)
    spawner = FakeSpawner(scripts, start_s)
    signals = Signals()

    async def main(loop):
        with closing(Recorder(store, run_id)) as recorder, closing(Reader(store)) as reader:
            context = RunContext(
                reader.run(run_id), recorder, reader, spawner, site or Site(NETWORK), signals,
                lambda: EPOCH + loop.time(),
            )  # fmt: skip
            runner = TrialRunner(context, Toolbox(spawner))
            if during is not None:
                loop.call_later(during[0], during[1], signals)
            return await runner.run(1, bind_trial(trial(*flows, deadline_s=deadline_s), REGISTRY))

    status = run_virtual(main)
    reader = Reader(store)
    return Outcome(status, spawner, reader, next(reader.trials(run_id)))
