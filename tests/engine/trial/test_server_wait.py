"""A server of others that is still starting is waited for, and no other failure."""

from itertools import pairwise

import pytest
from engine.fakes import GOOD, SERVER, Script
from engine.virtual import flow

SILENT = Script([(0.1, "fail unreachable no answer")], 1)


def test_a_server_that_starts_late_costs_no_attempt(measure):
    outcome = measure(
        {"client": [SILENT] * 6 + [GOOD]}, flow(to="public"), attempts=1, server_wait_s=60.0
    )
    assert outcome.status == "ok"
    assert [f.status for f in outcome.flows] == ["failed"] * 6 + ["ok"]
    begins = [at for at, what, _ in outcome.log if what == "begin"]
    pauses_s = [b - a for a, b in pairwise(begins)]
    # A second of its own, and the back-off of 2 s, then at most 5 s, with its jitter.
    assert 2.5 <= pauses_s[0] <= 3.5
    assert max(pauses_s) <= 7.25


def test_the_wait_ends_and_then_attempts_count_as_ever(measure):
    outcome = measure({"client": SILENT}, flow(to="public"), attempts=2, server_wait_s=20.0)
    assert outcome.status == "failed"
    times = [f.finished_time - outcome.flows[0].finished_time for f in outcome.flows]
    assert times[-3] < 20 < times[-1] < 40


@pytest.mark.parametrize("kind", ["refused", "tool", "peer"])
def test_another_failure_is_not_waited_out(measure, kind):
    fails = Script([(0.1, f"fail {kind} no")], 1)
    outcome = measure({"client": fails}, flow(to="public"), attempts=1, server_wait_s=60.0)
    assert (outcome.status, len(outcome.flows)) == ("failed", 1)


def test_our_own_server_is_not_waited_for(measure):
    outcome = measure({"server": SERVER, "client": SILENT}, attempts=1, server_wait_s=60.0)
    assert (outcome.status, len(outcome.flows)) == ("failed", 1)


def test_a_server_beside_one_that_answers_is_waited_for(measure):
    flows = flow("a", to="public", label="a"), flow("b", to="public", label="b", backend="early")
    scripts = {"client a": [SILENT, GOOD], "early b": GOOD}
    outcome = measure(scripts, *flows, attempts=1, server_wait_s=60.0)
    assert outcome.status == "ok"
