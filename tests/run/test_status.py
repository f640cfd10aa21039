"""One table decides which state may follow which, and what each state means."""

import pytest

from benchctl.run.status import FAILURES, TRANSITIONS, Status


def test_every_state_has_its_row_in_the_table():
    assert set(TRANSITIONS) == set(Status)


def test_nothing_becomes_what_is_never_stored():
    assert not any(state.may_become(Status.DIED) for state in Status)


@pytest.mark.parametrize("state", Status)
def test_only_what_is_unfinished_goes_on_to_an_end(state):
    ends = {Status.OK, Status.FAILED, Status.TIMED_OUT, Status.INTERRUPTED, Status.SKIPPED}
    assert state.has_ended == (not TRANSITIONS[state] & ends)


@pytest.mark.parametrize("state", sorted(set(Status) - {*FAILURES, Status.DIED}))
def test_a_trial_is_open_as_long_as_a_runner_may_take_it_up(state):
    assert state.is_open == (state is Status.PLANNED or state.may_become(Status.PLANNED))


def test_figures_count_of_what_had_its_time():
    assert [state for state in Status if state.counts] == [Status.OK, Status.TIMED_OUT]
