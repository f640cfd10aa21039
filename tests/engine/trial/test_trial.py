from types import SimpleNamespace

import pytest
from engine import virtual
from engine.fakes import EPOCH, GOOD, SERVER, FakeSpawner, Script
from engine.virtual import NETWORK, flow

from benchctl.engine.site.site import Site
from benchctl.hosts.sent import ports
from benchctl.run.planned import LOCAL, Network


def test_a_good_flow_leaves_samples_figures_and_times(measure):
    outcome = measure({"server": SERVER, "client": GOOD})
    assert outcome.status == outcome.trial.status == outcome.last.status == "ok"
    samples = list(outcome.reader.samples(outcome.last.id))
    assert [(s.start_s, s.end_s, s.metrics["throughput_bps"]) for s in samples] == [
        (0, 0.5, 100),
        (0.5, 1, 300),
    ]
    figure = outcome.reader.figures(outcome.last.id)["send", "throughput_bps"]
    assert (figure.value, figure.origin) == (200, "tool")
    # The server was ready after 10 ms; then the client's second 0.
    assert outcome.last.started_time == pytest.approx(EPOCH + 0.01)
    assert outcome.last.exit_code == 0


def test_the_client_starts_only_when_the_server_is_ready(measure):
    outcome = measure({"server": SERVER, "client": GOOD})
    begun = [(at, name.split()[0]) for at, what, name in outcome.log if what == "begin"]
    assert begun == [(0, "server"), (pytest.approx(0.01), "client")]


def test_a_server_that_is_never_ready_fails_the_flow_and_is_ended(measure):
    outcome = measure({"server": Script(ends_s=None), "client": GOOD})
    assert outcome.status == "failed"
    assert "not ready within 10 s" in outcome.last.error
    assert [what for _, what, name in outcome.log if name.startswith("server")][-1] == "SIGINT"


@pytest.mark.parametrize(("label", "grace_s"), [("x", 2.0), ("stays", 0.0)])
def test_a_server_that_stays_is_ended_as_soon_as_its_client_has_ended(measure, label, grace_s):
    outcome = measure({"server": SERVER, "client": GOOD}, flow(label=label))
    assert outcome.status == "ok"
    (ended,) = [at for at, what, name in outcome.log if what == "SIGINT"]
    assert ended == pytest.approx(0.01 + GOOD.ends_s + grace_s, abs=0.01)


def test_a_server_that_fails_says_why(measure):
    outcome = measure({"server": Script([(0, "fail tool port in use")], 0.1, 1), "client": GOOD})
    assert (outcome.status, outcome.last.error) == ("failed", "port in use")


def test_a_busy_peer_moves_on_through_its_ports_then_backs_off(measure):
    busy = Script([(0.1, "fail busy somebody else measures")], 0.1, 1)
    scripts = {"client 9200": [busy, GOOD], "client 9201": [busy], "client 9202": [busy]}
    outcome = measure(scripts, flow(to="public"), attempts=2)
    assert outcome.status == "ok"
    assert [f.port for f in outcome.flows] == [9200, 9201, 9202, 9200]
    assert [f.status for f in outcome.flows] == ["failed"] * 3 + ["ok"]
    assert [f.attempt for f in outcome.flows] == [1, 2, 3, 4]
    begun = [at for at, what, _ in outcome.log if what == "begin"]
    assert begun[1] - begun[0] < 0.2  # the next port at once
    assert 1.5 <= begun[3] - begun[2] - 0.1 <= 2.5  # 2 s, give or take a quarter


def test_a_server_whose_port_was_just_taken_gets_the_next_at_once(measure, monkeypatch):
    monkeypatch.setattr(ports, "_is_free", lambda address, port: True)
    taken = Script([(0, "fail busy the port is in use")], 0.1, 1)
    scripts = {"server 5201": taken, "server 5202": SERVER, "client": GOOD}
    outcome = measure(scripts, site=Site(Network({"local": LOCAL})), attempts=1)
    assert [(f.port, f.status) for f in outcome.flows] == [(5201, "failed"), (5202, "ok")]
    assert outcome.trial.started_time == pytest.approx(EPOCH + 0.11)


def test_attempts_end_when_the_peer_stays_busy(measure):
    busy = Script([(0.1, "fail busy somebody else measures")], 0.1, 1)
    outcome = measure({"client": busy}, flow(to="public"), attempts=2)
    assert outcome.status == "failed"
    assert len(outcome.flows) == 6
    assert outcome.trial.error == "main: somebody else measures"


def test_a_tool_that_dies_is_tried_again_and_its_stderr_kept(measure):
    dies = Script([(0.1, "!it hurts")], 0.2, 139)
    outcome = measure({"server": SERVER, "client": [dies, GOOD]}, attempts=2)
    assert [f.status for f in outcome.flows] == ["failed", "ok"]
    assert outcome.flows[0].error == "client ended with code 139: it hurts"
    assert outcome.flows[0].stderr == "it hurts\n"


def test_a_wrong_parameter_is_not_tried_again(measure):
    wrong = Script([(0.1, "fail parameter no such algorithm")], 0.1, 1)
    outcome = measure({"server": SERVER, "client": wrong}, attempts=5)
    assert len(outcome.flows) == 1
    assert outcome.last.hint == "do something"


def test_a_tool_that_hangs_is_ended_at_its_deadline_and_keeps_its_samples(measure):
    hangs = Script([(0.5, "sample 0 0.5 100")], ends_s=None, on_signal=None)
    outcome = measure({"server": SERVER, "client": hangs}, deadline_s=5.0, attempts=1)
    assert outcome.status == outcome.last.status == "timed_out"
    assert outcome.trial.error == "exceeded its deadline of 5 s"
    assert len(outcome.flows) == 1
    assert len(list(outcome.reader.samples(outcome.last.id))) == 1
    signals = [(at, what) for at, what, name in outcome.log if name.startswith("client")][1:]
    assert signals == [(5.0, "SIGINT"), (7.0, "SIGKILL")]


def test_a_peer_that_had_answered_is_tried_again_after_a_deadline(measure):
    hangs, mute = Script([(0.5, "sample 0 0.5 100")], ends_s=None), Script(ends_s=None)
    scripts = {"client": [hangs, mute, GOOD]}
    outcome = measure(scripts, flow(to="public"), deadline_s=5.0, attempts=3)
    assert [f.status for f in outcome.flows] == ["timed_out", "timed_out", "ok"]
    assert outcome.status == "ok"


def test_a_peer_that_never_answered_has_had_its_deadline(measure):
    mute = Script(ends_s=None)
    outcome = measure({"client": [mute, GOOD]}, flow(to="public"), deadline_s=5.0, attempts=3)
    assert [f.status for f in outcome.flows] == ["timed_out"]


def test_what_a_mute_tool_says_at_the_deadline_is_kept_with_its_hint(measure):
    mute = Script(ends_s=None, says_on_signal="fail peer the server said nothing")
    outcome = measure({"client": mute}, flow(to="public"), deadline_s=5.0)
    assert outcome.last.status == "timed_out"
    assert (outcome.last.failure, outcome.last.hint) == ("peer", "do something")
    assert outcome.last.error == ("exceeded its deadline of 5 s: the server said nothing")
    assert outcome.trial.error == "exceeded its deadline of 5 s: main: the server said nothing"


@pytest.mark.parametrize("kind", ["tool", "peer"])
def test_what_a_tool_that_measured_says_to_the_signal_is_no_failure_of_its_own(measure, kind):
    says = f"fail {kind} ended by a signal"
    late = Script([(0.5, "sample 0 0.5 100")], ends_s=None, says_on_signal=says)
    outcome = measure({"client": late}, flow(to="public"), deadline_s=5.0, attempts=1)
    assert (outcome.last.status, outcome.last.failure) == ("timed_out", "")


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("crash", "the plugin's parser failed: RuntimeError: a bug in the plugin"),
        ("total 0", "moved no data"),
        ("set window 5", "ended without any result"),
    ],
)
def test_a_flow_without_a_result_is_failed_whatever_its_exit_code(measure, line, error):
    outcome = measure({"server": SERVER, "client": Script([(0.1, line)], 1.0, 0)})
    assert (outcome.status, outcome.last.error) == ("failed", error)


@pytest.mark.parametrize(("lost", "status"), [(5, "ok"), (4, "failed")])
def test_a_loss_of_everything_is_a_result_where_the_tool_knows_it(measure, lost, status):
    told = ["total 0", "count packets_sent 5", f"count packets_lost {lost}"]
    outcome = measure({"server": SERVER, "client": Script([(0.1, line) for line in told], 1.0, 0)})
    assert outcome.status == status


def test_an_interrupt_keeps_what_was_measured(measure):
    late = Script([(0.5, "sample 0 0.5 100")], 100.0, says_on_signal="total 90")
    outcome = measure(
        {"server": SERVER, "client": late}, during=(3.0, lambda s: s.stop.set()), deadline_s=120
    )
    assert outcome.status == outcome.last.status == "interrupted"
    figure = outcome.reader.figures(outcome.last.id)["send", "throughput_bps"]
    assert (figure.value, figure.origin) == (90, "tool")
    assert outcome.last.error == "interrupted by the user"


def test_a_trial_can_be_skipped_while_it_waits_to_try_again(measure):
    busy = Script([(0.1, "fail busy somebody else measures")], 0.1, 1)
    outcome = measure(
        {"client": busy}, flow(to="public"), attempts=9, during=(1.0, lambda s: s.skip.set())
    )
    assert outcome.trial.status == "skipped"


def test_flows_of_a_trial_begin_together_when_all_are_ready(measure):
    slow = Script([(0.3, "ready")], ends_s=None)
    outcome = measure(
        {"server a": SERVER, "server b": slow, "client": GOOD}, flow("a", label="a"),
        flow("b", label="b"),
    )  # fmt: skip
    begun = {name.split()[1]: at for at, what, name in outcome.log if name.startswith("client")}
    assert outcome.status == "ok"
    assert begun["a"] == begun["b"] == pytest.approx(0.8)
    assert outcome.trial.start_skew_s == pytest.approx(0.0)
    assert outcome.trial.fairness_jain == pytest.approx(1.0)
    assert [w.jain for w in outcome.trial.fair_windows] == pytest.approx([1.0, 1.0])
    assert [w.end_s for w in outcome.trial.fair_windows] == pytest.approx([0.5, 1.0])
    assert {f.port for f in outcome.flows} != {outcome.last.port}  # a port for each server


def test_a_delayed_flow_begins_later_and_is_no_skew(measure):
    outcome = measure({"server": SERVER, "client": GOOD}, flow("a"), flow("b", delay_s=2.0))
    begun = [at for at, what, name in outcome.log if name.startswith("client") and what == "begin"]
    assert begun == [pytest.approx(0.51), pytest.approx(2.51)]
    assert outcome.trial.start_skew_s == pytest.approx(0.0)
    assert outcome.trial.fairness_jain is None  # they share no time
    assert outcome.trial.fair_windows == ()


@pytest.mark.parametrize(("goes_on_s", "omit_s"), [(0.0, 0), (3.0, 0), (0.0, 1)])
def test_round_trip_times_under_load_stand_beside_those_of_the_idle_path(
    measure, goes_on_s, omit_s
):
    """A client that has more in its sockets at the end of its time ends later."""
    ends_s = 9.0 + goes_on_s
    load = Script([(0, "started 2.5"), *[(n, f"sample {n} {n + 1} 100") for n in range(9)]], ends_s)
    begins = 2 - omit_s  # what it omits is a load, too
    probes = [(n, f"probe {n} {0.2 if begins <= n < 2 + ends_s else 0.05}") for n in range(20)]
    probing = Script([(0, "started 0.5"), *probes], 20.0)
    outcome = measure(
        {"server": SERVER, "client load": load, "client probe": probing},
        flow("load", label="load", delay_s=2.0, omit=f"{omit_s}s"), flow("probe", label="probe"),
        deadline_s=60.0,
    )  # fmt: skip
    assert outcome.status == "ok"
    load, probe = (outcome.reader.figures(one.id) for one in outcome.flows)
    assert probe["round-trip", "rtt_idle_s"].value == pytest.approx(0.05)
    assert probe["round-trip", "rtt_under_load_s"].value == pytest.approx(0.2)
    assert probe["round-trip", "rtt_increase_s"].value == pytest.approx(0.15)
    assert not [metric for _, metric in load if metric.startswith("rtt")]


def test_the_steady_part_of_a_flow_is_beside_its_whole(measure):
    rates = [10] * 15 + [100, 101, 99] * 15
    script = Script([(0, f"sample {n} {n + 1} {rate}") for n, rate in enumerate(rates)], 60.0)
    outcome = measure({"server": SERVER, "client": script}, deadline_s=90.0)
    figures = outcome.reader.figures(outcome.last.id)
    assert figures["send", "throughput_bps"].value == pytest.approx(77.5)
    assert figures["send", "steady_throughput_bps"].value == pytest.approx(100)
    assert figures["send", "steady_from_s"].value == pytest.approx(15)


def test_a_tool_that_waits_itself_is_told_the_start_and_begun_before_it(measure):
    outcome = measure(
        {"server": SERVER, "client": GOOD, "early": GOOD}, flow("a"), flow("b", backend="early")
    )
    begun = {name.split()[0]: at for at, what, name in outcome.log if what == "begin"}
    assert begun["early"] == pytest.approx(0.01)
    assert begun["client"] == pytest.approx(0.51)
    assert any(f"at={EPOCH + 0.51}" in command for command in outcome.commands)


def test_the_start_is_the_later_the_more_tools_wait_for_it(measure):
    outcome = measure(
        {"server": SERVER, "early": GOOD}, *(flow(n, label=n, backend="early") for n in "abc")
    )
    clients = [command for command in outcome.commands if command[0] == "early"]
    assert {told for *_, told in clients} == {f"at={EPOCH + 1.5}"}


def test_a_flow_that_fails_ends_the_others_of_its_trial(measure):
    dies = Script([], 0.2, 1)
    lasts = Script([(0.5, "sample 0 0.5 100")], 100.0)
    outcome = measure(
        {"server": SERVER, "client a": dies, "client b": lasts}, flow("a", label="a"),
        flow("b", label="b"), deadline_s=120,
    )  # fmt: skip
    assert outcome.status == "failed"
    assert {f.name: f.status for f in outcome.flows} == {"a": "failed", "b": "interrupted"}
    assert outcome.last.error == "ended because another flow of its trial failed"


def test_what_was_in_force_and_warnings_are_kept(measure):
    tells = Script(
        [(0.1, "set window_bytes 425984"), (0.1, "warn mind the gap"), (1, "total 5")], 1
    )
    outcome = measure({"server": SERVER, "client": tells})
    assert outcome.last.effective == {"window_bytes": "425984"}
    assert outcome.last.requested == {"duration": 1.0, "label": "x", "omit": 0.0}
    assert [note.text for note in outcome.reader.notes(1)] == ["trial 1, main: mind the gap"]


def test_a_tool_whose_total_contradicts_its_intervals_is_noted(measure):
    lies = Script([(0.5, "sample 0 1 100"), (1, "total 200")], 1.1)
    outcome = measure({"server": SERVER, "client": lies})
    assert outcome.status == "ok"
    (note,) = outcome.reader.notes(1)
    assert note.text == (
        "trial 1, main: throughput_bps (send) cannot be: 200 bit/s, and 100 bit/s in its own"
        " intervals; in its place: throughput_bps 100 of the samples, not 200"
    )
    figure = outcome.reader.figures(outcome.last.id)["send", "throughput_bps"]
    assert (figure.value, figure.origin, figure.rejected) == (100, "samples", 200)


class _Promising(Site):
    """A network whose paths take 80 ms one way."""

    def expected(self, trial):
        flows = [flow.plan for flow in trial.flows]
        return {flow.name: {str(flow.direction): {"owd_s": 0.08}} for flow in flows}


def _begun(second_0, *lines):
    """A client that tells its second 0, and what it saw."""
    text = [f"started {second_0}", *lines, "sample 0 1 100", "total 100"]
    return Script([(0.1, line) for line in text], 1.0)


@pytest.mark.parametrize(
    ("site", "server_says", "client_says", "skew_s"),
    [
        # Of one clock with us, and knows when it sent.
        (_Promising(NETWORK), ["started 5.1"], [], 0.1),
        (_Promising(NETWORK), [], [], 0.12),
        # Half the least round trip, where the path is unknown.
        (Site(NETWORK), [], ["rtt receive 0.14", "rtt receive 0.18"], 0.13),
        (Site(NETWORK), [], [], 0.2),
    ],
)
def test_the_skew_of_a_receiving_flow_is_that_of_its_senders_first_data(
    measure, site, server_says, client_says, skew_s
):
    server = Script([*SERVER.lines, *((0.5, line) for line in server_says)], None)
    outcome = measure(
        {
            "server send": SERVER,
            "server receive": server,
            "client send": _begun(5.0),
            "client receive": _begun(5.2, *client_says),
        },
        flow("a", label="send"),
        flow("b", label="receive", direction="receive"),
        site=site,
    )
    assert outcome.trial.start_skew_s == pytest.approx(skew_s)


def test_what_a_flow_omits_at_its_start_is_no_skew(measure):
    outcome = measure(
        {"server": SERVER, "client short": _begun(5.0), "client long": _begun(7.0)},
        flow("a", label="short"),
        flow("b", label="long", omit="2s"),
    )
    assert outcome.trial.start_skew_s == pytest.approx(0.0)


def test_events_are_looked_for_when_no_program_runs_any_more(measure, monkeypatch):
    running = []

    def look(fold):
        running.append([process.has_ended for process in outcome_of.processes])
        return []

    class Kept(FakeSpawner):
        def __init__(self, *args):
            super().__init__(*args)
            outcome_of.processes = self.processes

    outcome_of = SimpleNamespace()
    monkeypatch.setattr(virtual, "FakeSpawner", Kept)
    monkeypatch.setattr("benchctl.analysis.flow_result.events_of", look)
    scripts = {"server a": SERVER, "client a": GOOD, "server b": SERVER, "client b": GOOD}
    slow = Script([(0, "ready")], ends_s=1.9)  # ends by itself after all clients
    scripts |= {"server b": slow}
    outcome = measure(scripts, flow("a", label="a"), flow("b", label="b"))
    assert outcome.status == "ok"
    assert running == [[True] * 4] * 2
