"""Whatever a plugin, a tool or the machine does wrong fails the flow, and nothing more."""

import asyncio

import pytest
from engine.fakes import GOOD, SERVER, Script
from engine.virtual import NETWORK, flow

from benchctl.engine.site.site import Site
from benchctl.errors import LabError
from benchctl.lab.emulate.messages import DirectionCounters
from benchctl.lab.verify.strain import Carried
from benchctl.run.planned import Host, Network


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("nan", "ValueError: throughput_bps is nan"),
        ("backwards", "ValueError: a sample ends at 0.5 s, and begins at 1"),
        ("inf", "ValueError: max is inf"),
        ("when", "ValueError: epoch_s is inf"),
        ("text", "TypeError: must be real number, not str"),
        ("object", "TypeError: Object of type object is not JSON serializable"),
    ],
)
def test_an_event_that_no_store_can_keep_is_the_plugins_failure(measure, what, why):
    tells = Script([(0.2, "sample 0 0.2 100"), (0.5, f"tell {what}"), (0.7, "total 9")], 1)
    outcome = measure({"server": SERVER, "client": tells})
    assert outcome.last.status == "failed"
    assert outcome.last.error == f"the plugin's parser failed: {why}"
    assert outcome.last.hint == "report it to the author of the plugin"
    # What came before counts; what came after cannot be understood.
    assert len(list(outcome.reader.samples(outcome.last.id))) == 1
    assert outcome.reader.figures(outcome.last.id)["send", "throughput_bps"].value == 100


def test_a_flow_that_the_tool_here_cannot_do_is_failed_and_not_tried_again(measure):
    outcome = measure({"server": SERVER}, flow(label="old", backend="choosy"), attempts=5)
    assert (outcome.status, outcome.trial.error) == (
        "failed", "main: version 1 here cannot do this",
    )  # fmt: skip
    assert [f.failure for f in outcome.flows] == ["parameter"]
    assert outcome.last.client == ()
    assert outcome.last.server == ("server", "old", "5201")


def test_a_server_that_the_tool_here_cannot_be_fails_the_flow_before_any_command(measure):
    outcome = measure({}, flow(label="lame", backend="choosy"))
    assert (outcome.status, outcome.last.error) == ("failed", "version 1 here cannot serve")
    assert outcome.commands == []


@pytest.mark.parametrize(
    ("label", "why"),
    [
        ("bug", "the plugin failed to build a command: KeyError: 'label'"),
        ("exit", "the plugin failed to build a command: SystemExit: 3"),
        ("ours", "of benchctl's own errors"),
    ],
)
def test_a_backend_with_a_bug_fails_its_flow_and_ends_the_others(measure, label, why):
    outcome = measure(
        {"server": SERVER, "client": GOOD}, flow("a"), flow("b", label=label, backend="choosy")
    )
    assert {f.name: f.status for f in outcome.flows} == {"a": "interrupted", "b": "failed"}
    assert outcome.trial.error == f"b: {why}"
    assert all(process.has_ended for process in outcome.processes)


@pytest.mark.parametrize("end", ["server", "client"])
def test_a_command_that_cannot_be_started_is_a_failed_attempt(measure, end):
    refused = OSError(12, "Cannot allocate memory")
    scripts = {"server": SERVER, "client": GOOD} | {end: [refused, SERVER, GOOD]}
    if end == "client":
        scripts[end] = [refused, GOOD]
    outcome = measure(scripts, attempts=2)
    assert [f.status for f in outcome.flows] == ["failed", "ok"]
    assert outcome.flows[0].error == f"{end} cannot be started: Cannot allocate memory"
    assert all(process.has_ended for process in outcome.processes)


def test_a_server_that_dies_before_it_is_ready_says_how_at_once(measure):
    dies = Script([(0.1, "!address in use")], 0.2, 1)
    outcome = measure({"server": dies, "client": GOOD})
    assert outcome.last.error == "the server server ended with code 1: address in use"
    assert outcome.last.stderr == "address in use\n"
    assert outcome.trial.finished_time - outcome.trial.started_time == pytest.approx(0.2)


def test_a_server_that_ends_badly_beside_a_good_client_is_told_of(measure):
    dies = Script([(0.01, "ready"), (1.2, "!no room for the log")], 1.3, 1)
    outcome = measure({"server": dies, "client": GOOD})
    assert outcome.status == "ok"
    (note,) = outcome.reader.notes(1)
    assert note.text == "trial 1, main: the server server ended with code 1: no room for the log"


def test_a_tool_that_tells_its_failure_and_hangs_is_ended_long_before_its_deadline(measure):
    hangs = Script([(1.0, "fail peer the server went away")], ends_s=None)
    outcome = measure({"server": SERVER, "client": hangs}, deadline_s=600)
    assert (outcome.status, outcome.last.failure) == ("failed", "peer")
    assert outcome.signals("client") == [(pytest.approx(3.01), "SIGINT")]


def test_a_server_that_fails_in_the_middle_ends_a_client_that_waits_for_it(measure):
    dies = Script([(0.01, "ready"), (1.0, "fail tool out of memory")], 1.1, 1)
    hangs = Script([(0.5, "sample 0 0.5 100")], ends_s=None)
    outcome = measure({"server": dies, "client": hangs}, deadline_s=600)
    assert (outcome.status, outcome.last.error) == ("failed", "out of memory")
    assert outcome.signals("client") == [(pytest.approx(3.0), "SIGINT")]


def test_a_failure_ends_a_trial_while_a_delayed_flow_still_waits(measure):
    dies = Script([], 0.2, 1)
    outcome = measure(
        {"server": SERVER, "client a": dies, "client b": GOOD}, flow("a", label="a"),
        flow("b", label="b", delay_s=60.0), deadline_s=120,
    )  # fmt: skip
    assert outcome.status == "failed"
    assert outcome.trial.finished_time - outcome.trial.started_time < 5
    assert not [what for _, what, name in outcome.log if what == "begin" and "client b" in name]


def test_the_error_of_a_trial_is_the_failure_and_not_what_another_says_when_stopped(measure):
    dies = Script([(0.2, "!it hurts")], 0.2, 1)
    stopped = Script([(0.1, "sample 0 0.1 100")], 100.0, on_signal=130,
                     says_on_signal="fail tool stopped by a signal")  # fmt: skip
    outcome = measure(
        {"server": SERVER, "client a": stopped, "client b": dies}, flow("a", label="a"),
        flow("b", label="b"), deadline_s=120,
    )  # fmt: skip
    assert outcome.trial.error == "b: client ended with code 1: it hurts"
    a, b = outcome.flows
    assert (a.status, a.failure) == ("interrupted", "")
    assert a.error == "ended because another flow of its trial failed"
    assert (b.status, b.failure) == ("failed", "tool")


def test_a_wrong_parameter_in_a_flow_that_was_only_stopped_does_not_forbid_a_try(measure):
    dies = Script([], 0.2, 1)
    stopped = Script([], 100.0, on_signal=1, says_on_signal="fail parameter odd signal")
    outcome = measure(
        {"server": SERVER, "client a": [stopped, GOOD], "client b": [dies, GOOD]},
        flow("a", label="a"), flow("b", label="b"), deadline_s=120, attempts=2,
    )  # fmt: skip
    assert outcome.status == "ok"


def test_servers_that_are_slow_to_be_ready_do_not_use_up_the_clients_lead(measure):
    slow = Script([(5.0, "ready")], ends_s=None)
    outcome = measure(
        {"server": slow, "early": GOOD, "client": GOOD}, flow("a"), flow("b", backend="early")
    )
    starts = {command[-1] for command in outcome.commands if command[0] == "early"}
    begun = {name.split()[0]: at for at, what, name in outcome.log if what == "begin"}
    assert begun["early"] == pytest.approx(5.0)
    assert begun["client"] == pytest.approx(5.5)
    assert starts == {"at=1000005.5"}
    assert outcome.trial.started_time == 1000005.5


def test_clients_that_are_slow_to_reach_their_gates_start_with_the_others(measure):
    outcome = measure({"server": SERVER, "client": GOOD}, flow("a"), flow("b"), start_s=3.0)
    begun = [at for at, what, name in outcome.log if what == "begin" and "client" in name]
    # Servers and clients take their 3 s each, and the word to begin has half a second.
    assert begun == pytest.approx([6.51, 6.51])
    assert outcome.trial.started_time == pytest.approx(1000006.51)


def test_a_client_that_waits_for_the_start_is_started_when_others_are_at_their_gates(measure):
    outcome = measure(
        {"server": SERVER, "early": GOOD, "client": GOOD}, flow("a"), flow("b", backend="early"),
        start_s=0.4,
    )  # fmt: skip
    starts = {command[-1] for command in outcome.commands if command[0] == "early"}
    begun = {name.split()[0]: at for at, what, name in outcome.log if what == "begin"}
    assert begun["client"] == pytest.approx(1.31)
    assert starts == {f"at={outcome.trial.started_time}"}
    assert begun["early"] == pytest.approx(1.21)


def test_a_lone_client_waits_for_the_start_if_the_network_changes_after_it(measure):
    class Changing(Site):
        def expected(self, trial):
            return {flow.plan.name: {"send": {"rtt_s": 0.1}} for flow in trial.flows}

        def begin(self, common_start):
            self.begun = common_start

    site = Changing(NETWORK, changes=True)
    outcome = measure({"server": SERVER, "early": GOOD}, flow(backend="early"), site=site)
    (start,) = {command[-1] for command in outcome.commands if command[0] == "early"}
    # Half a second to start, and five round trips to connect.
    assert site.begun - outcome.flows[0].started_time == pytest.approx(1.0)
    assert start == f"at={site.begun}"


class Shifting(Site):
    """A site that is another one for every attempt, as a lab that changes during a trial."""

    def __init__(self):
        super().__init__(NETWORK)
        self.prepared = []

    async def prepare(self, trial):
        self.prepared.append(trial)
        host = Host("local", f"127.0.0.{len(self.prepared)}", shares_ports=False)
        return Network({"local": host})


def test_every_attempt_has_a_site_made_ready_for_it(measure):
    dies = Script([], 0.2, 1)
    outcome = measure({"server": SERVER, "client": [dies, dies, GOOD]}, attempts=3, site=Shifting())
    assert outcome.status == "ok"
    assert [command[2] for command in outcome.commands if command[0] == "client"] == [
        "127.0.0.1", "127.0.0.2", "127.0.0.3",
    ]  # fmt: skip


class Falling(Site):
    """A site that falls with the first attempt; ``when`` says who notices."""

    def __init__(self, when):
        super().__init__(NETWORK)
        self.built, self.when = 0, when

    async def prepare(self, trial):
        self.built += 1
        if self.built == 1 and self.when == "prepared":
            raise LabError("cannot measure from a to b: nsenter: Permission denied")
        return NETWORK

    def begin(self, common_start):
        if self.built == 1 and self.when == "begun":
            raise LabError("the lab failed: out of memory")

    async def failure_reason(self):
        return "the lab failed: out of memory" if self.built == 1 else ""


@pytest.mark.parametrize("when", ["prepared", "begun", "measured"])
def test_a_lab_that_falls_costs_one_attempt_and_no_more(measure, when):
    dies = Script([(0.1, "!nsenter: Permission denied")], 0.2, code=1)
    clients = [dies, GOOD] if when == "measured" else GOOD
    outcome = measure({"server": SERVER, "client": clients}, attempts=2, site=Falling(when))
    assert outcome.status == "ok"


@pytest.mark.parametrize("attempts", [1, 2])
def test_a_lab_that_falls_while_a_tool_is_probed_is_no_missing_tool(measure, attempts):
    gone = Script([(0.0, "!nsenter: cannot open /proc/7/ns/net")], 0.1, code=1)
    probes = [gone, *[Script()] * 2]
    scripts = {"sh": probes, "server": SERVER, "client": GOOD}
    outcome = measure(scripts, flow(backend="probed"), attempts=attempts, site=Falling("probed"))
    error = "the lab failed: out of memory" if attempts == 1 else ""
    assert (outcome.status, outcome.trial.error) == ("failed" if error else "ok", error)


def test_what_a_flow_failed_of_is_the_lab_that_fell(measure):
    dies = Script([(0.1, "!nsenter: Permission denied")], 0.2, code=1)
    outcome = measure({"server": SERVER, "client": dies}, site=Falling("measured"))
    assert (outcome.status, outcome.last.failure) == ("failed", "peer")
    assert outcome.last.error == "the lab failed: out of memory"
    assert outcome.trial.error == "main: the lab failed: out of memory"
    assert "nsenter" in outcome.last.stderr


@pytest.mark.parametrize("when", ["prepared", "begun"])
def test_a_lab_that_falls_with_the_last_attempt_fails_its_trial_and_not_the_run(measure, when):
    outcome = measure({"server": SERVER, "client": GOOD}, site=Falling(when))
    assert (outcome.status, outcome.trial.error) == ("failed", "the lab failed: out of memory")
    assert outcome.trial.finished_time is not None


def test_a_lab_that_cannot_be_built_is_the_error_of_more_than_a_trial(measure):
    site = Falling("prepared")
    site.failure_reason = Site(NETWORK).failure_reason
    with pytest.raises(LabError, match="nsenter"):
        measure({"server": SERVER, "client": GOOD}, site=site)


class Strained(Site):
    """A site whose emulator loses one frame in the first attempt and is well in the second."""

    missed = 2

    async def prepare(self, trial):
        self.missed -= 1
        return NETWORK

    async def carried(self, trial):
        zeros = dict.fromkeys(DirectionCounters.__dataclass_fields__, 0)
        return [Carried("far", "r", "b", DirectionCounters(**zeros | {"missed": self.missed}))]


def test_a_trial_keeps_what_its_links_carried_and_warns_of_what_figures_cannot_bear(measure):
    outcome = measure({"server": SERVER, "client": GOOD}, site=Strained(NETWORK))
    assert outcome.status == "ok"
    (link,) = outcome.trial.links
    assert (link["link"], link["missed"], link["kept"]) == ("far", 1, False)
    (note,) = outcome.reader.notes(1)
    assert (note.level, note.trial_id) == ("warning", outcome.trial.id)
    assert note.text == "trial 1: link far, r to b: 1 frame lost by the emulator"


def test_the_last_attempt_says_what_the_links_carried(measure):
    dies = Script([], 0.2, 1)
    outcome = measure(
        {"server": SERVER, "client": [dies, GOOD]}, attempts=2, site=Strained(NETWORK)
    )
    assert [link["kept"] for link in outcome.trial.links] == [True]


class ValueHistogram(Site):
    """A site that remembers when its links were counted."""

    async def carried(self, trial):
        self.counted_s = asyncio.get_running_loop().time()
        return []


def test_links_are_counted_when_every_end_of_the_flows_has_ended(measure):
    site = ValueHistogram(NETWORK)
    stubborn = Script([(0.01, "ready")], ends_s=None, on_signal=None)
    outcome = measure({"server": stubborn, "client": GOOD}, site=site)
    asked_s, killed_s = (at_s for at_s, _ in outcome.signals("server"))
    assert asked_s < killed_s <= site.counted_s
