"""What an agent that stays does about each message, without a network or a process."""

import pytest

from benchctl.api import Direction, Role
from benchctl.engine.trial.ends import EndSpec
from benchctl.fleet.host_messages import (
    AbortEnds,
    CommittedEnd,
    Go,
    GoingEnd,
    Lock,
    Ping,
    Prepare,
    Prepared,
    PreparedAt,
    PreparedEnd,
    StopEnds,
    Unlock,
)
from benchctl.fleet.messages import Done, EndRef, Refused
from benchctl.fleet.resident.states import (
    GATE_S,
    LOCK_S,
    EndEnd,
    EndState,
    Forget,
    LetGo,
    Reply,
    StartEnd,
    States,
    Tell,
)


def end(role="client", flow="bulk", run="r", attempt=1, **spec):
    ref = EndRef(run, 0, attempt, flow, role)
    given = {"deadline_s": 20.0, "duration_s": 1.0, **spec}
    return PreparedEnd(
        ref, EndSpec("fake", "1", "s", Role(role), {}, Direction.SEND, "192.0.2.1", 5201, **given)
    )


class Host:
    def __init__(self):
        self.refuses, self.holder, self.given_back = "", "", 0
        self.states = States(lambda end: self.refuses, self.take, self.give_back)

    def take(self, who):
        if not self.holder:
            self.holder = who
        return "" if self.holder == who else self.holder

    def give_back(self):
        self.holder, self.given_back = "", self.given_back + 1

    def prepared(self, *ends, now_s=0.0, is_up=True):
        """Prepare ends, and let all come up."""
        self.states.message(1, Prepare([*ends]), now_s)
        for one in ends:
            effects = self.states.up(PreparedAt(one.ref, is_up), now_s)
        return effects


def refused(effects):
    (reply,) = effects
    assert isinstance(reply.answer, Refused)
    return reply.answer.why


def test_a_prepare_is_answered_when_all_of_its_ends_are_up():
    host = Host()
    ends = [end("server"), end("client", "other")]
    assert host.states.message(7, Prepare(ends), 0.0) == [StartEnd(one) for one in ends]
    first, second = (PreparedAt(one.ref, is_up=True) for one in ends)
    assert host.states.up(first, 0.1) == []
    assert host.states.up(second, 0.2) == [Reply(7, Prepared([first, second]))]
    assert [host.states.state(one.ref) for one in ends] == [EndState.RUNS, EndState.WAITS]


def test_an_end_that_does_not_come_up_is_answered_and_ended():
    host = Host()
    effects = host.prepared(end(), is_up=False)
    assert effects[0] == EndEnd(end().ref, kill=True)
    assert not effects[1].answer.ends[0].is_up


def test_what_the_owner_refuses_starts_nothing():
    host = Host()
    host.refuses = "not on sundays"
    assert refused(host.states.message(1, Prepare([end()]), 0.0)) == "not on sundays"
    assert (host.states.running, host.holder) == ([], "")


def test_a_go_whose_answer_was_lost_is_no_failure_when_its_end_is_over():
    host = Host()
    host.prepared(end(), end(flow="other"))
    go = Go([GoingEnd(end().ref, 5.0, 5.0)])
    host.states.message(2, go, 4.5)
    host.states.over(end().ref)
    assert host.states.message(3, go, 9.5) == [Tell(3)]
    both = Go([GoingEnd(end(flow=name).ref, 9.9, 9.9) for name in ("bulk", "other")])
    assert host.states.message(4, both, 9.6) == [LetGo(end(flow="other").ref, 9.9), Tell(4)]


def test_an_end_is_prepared_once_even_after_it_has_ended():
    host = Host()
    host.prepared(end())
    other = end(deadline_s=9.0)
    assert "prepared before" in refused(host.states.message(2, Prepare([other]), 0.0))
    host.states.over(end().ref)
    assert "prepared before" in refused(host.states.message(3, Prepare([end()]), 0.0))


def test_a_go_in_time_lets_clients_begin_and_a_late_one_none():
    host = Host()
    ends = [end(), end(flow="other")]
    host.prepared(*ends)
    late = Go([GoingEnd(ends[0].ref, 5.0, 5.0), GoingEnd(ends[1].ref, 4.0, 4.0)])
    assert "other came 0.500 s late" in refused(host.states.message(2, late, 4.5))
    committed = CommittedEnd(end(attempt=7).ref, 3)
    goes = Go([GoingEnd(one.ref, 5.0, 5.0) for one in ends], (committed,))
    assert host.states.message(3, goes, 4.5) == [
        *(LetGo(one.ref, 5.0) for one in ends), Forget(committed), Tell(3),
    ]  # fmt: skip


@pytest.mark.parametrize("state", ["unknown", "starting"])
def test_a_go_for_an_end_that_does_not_wait_is_refused(state):
    host = Host()
    if state == "starting":
        host.states.message(1, Prepare([end()]), 0.0)
    go = Go([GoingEnd(end().ref, 1.0, 1.0)])
    assert "does not wait" in refused(host.states.message(3, go, 0.5))


@pytest.mark.parametrize(("role", "kill"), [("client", True), ("server", False)])
def test_a_stop_kills_what_waits_and_ends_in_order_what_runs(role, kill):
    host = Host()
    host.prepared(end(role))
    effects = host.states.message(2, StopEnds([end(role).ref]), 1.0)
    assert effects == [EndEnd(end(role).ref, kill), Reply(2, Done())]


def test_an_abort_kills_and_unknown_ends_are_no_fault():
    host = Host()
    host.prepared(end("server"))
    effects = host.states.message(2, AbortEnds([end("server").ref, end("client").ref]), 1.0)
    assert effects == [EndEnd(end("server").ref, kill=True), Reply(2, Done())]


def test_a_client_does_not_wait_for_its_go_for_ever():
    host = Host()
    host.prepared(end(), now_s=10.0)
    assert host.states.due(10.0 + GATE_S) == []
    assert host.states.due(10.1 + GATE_S) == [EndEnd(end().ref, kill=True)]


def test_an_end_has_its_deadline_although_nobody_asks():
    host = Host()
    host.prepared(end())
    host.states.message(2, Go([GoingEnd(end().ref, 5.0, 5.0)]), 4.0)
    assert host.states.due(25.0) == []
    assert host.states.due(25.1) == [EndEnd(end().ref, kill=False)]


def test_the_host_is_held_while_it_measures_and_left_after():
    host = Host()
    host.prepared(end())
    assert host.holder == "run r of a fleet"
    host.states.over(end().ref)
    host.states.due(1.0)
    assert host.holder == "run r of a fleet"  # the run may go on
    host.states.due(1.0 + LOCK_S)
    assert host.holder == ""


def test_one_run_at_a_time_holds_the_host():
    host = Host()

    def lock(run):
        (reply,) = host.states.message(1, Lock(run, f"run {run} of ann"), 0.0)
        return reply.answer.value

    assert [lock("a"), lock("a"), lock("b")] == ["", "", "run a of ann"]
    other = Prepare([end(run="b")])
    assert refused(host.states.message(2, other, 0.0)) == "run a of ann measures there now"
    host.states.message(3, Unlock("a"), 0.0)
    assert host.holder == ""
    assert lock("b") == ""


def test_a_host_that_somebody_else_holds_measures_nothing():
    host = Host()
    host.holder = "run x of bob"
    assert "run x of bob" in refused(host.states.message(1, Prepare([end()]), 0.0))


def test_another_agent_of_the_machine_may_hold_it_for_the_same_run():
    states = States(lambda end: "", lambda who: "run r of ann", lambda: None)
    assert states.message(1, Lock("s", "run s of bob"), 0.0) == [Reply(1, Done("run r of ann"))]
    assert states.message(2, Lock("r", "run r of ann"), 0.0) == [Reply(2, Done(""))]
    plan = end()
    assert states.message(3, Prepare([plan]), 0.0) == [StartEnd(plan)]


def test_what_comes_again_because_its_answer_was_lost_is_answered_and_done_once():
    host, plan = Host(), end()
    assert host.states.message(1, Prepare([plan]), 0.0) == [StartEnd(plan)]
    assert host.states.message(2, Prepare([plan]), 0.0) == []
    at = PreparedAt(plan.ref, is_up=True)
    answers = [Reply(1, Prepared([at])), Reply(2, Prepared([at]))]
    assert host.states.up(at, 0.0) == answers
    assert host.states.message(3, Prepare([plan]), 0.0) == [Reply(3, Prepared([at]))]
    go = Go([GoingEnd(plan.ref, 1.0, 1.0)])
    assert host.states.message(4, go, 0.5) == [LetGo(plan.ref, 1.0), Tell(4)]
    assert host.states.message(5, go, 2.0) == [Tell(5)]


def test_a_ping_is_answered_at_once_with_how_the_host_is():
    committed = CommittedEnd(end().ref, 7)
    told = Host().states.message(1, Ping((committed,)), 17.5)
    assert told == [Forget(committed), Tell(1)]


def test_a_plan_that_comes_after_its_abort_starts_nothing():
    host = Host()
    host.states.message(1, AbortEnds([end().ref]), 0.0)
    assert "prepared before" in refused(host.states.message(2, Prepare([end()]), 0.0))
