"""The table of what follows an attempt, row by row."""

import pytest

from benchctl.engine.trial.retry import (
    SERVER_BACKOFF_S,
    AttemptEnd,
    NextAttempt,
    Tries,
    next_attempt,
)
from benchctl.run.planned import Settings

SETTINGS = Settings({}, "grouped", (), attempts=3, backoff_s=2.0)


def walk(outcome, tries=None, most=10):
    """Return the waits of attempts that all end in the same way, until the trial ends."""
    tries, waits_s = tries or Tries(), []
    while len(waits_s) < most:
        after = next_attempt(outcome, tries, SETTINGS)
        if after is None:
            break
        waits_s.append(after.wait_s)
        tries = after.tries
    return waits_s


@pytest.mark.parametrize(
    ("outcome", "waits_s"),
    [
        (AttemptEnd.ENDED, []),
        (AttemptEnd.FAILED, [2.0, 4.0]),
        (AttemptEnd.SITE_FAILED, [0.0, 0.0]),
        (AttemptEnd.BUSY, [0.0] * 10),  # its ports end it, not this table
        (AttemptEnd.STARTING, [2.0, 4.0] + [SERVER_BACKOFF_S] * 8),  # its time ends it
    ],
)
def test_each_outcome_waits_as_the_table_says(outcome, waits_s):
    assert walk(outcome) == waits_s


@pytest.mark.parametrize("outcome", [one for one in AttemptEnd if one is not AttemptEnd.ENDED])
def test_attempts_are_numbered_on_and_keep_the_ports_that_were_tried(outcome):
    before = Tries(number=7, ports={"bulk": 2})
    after = next_attempt(outcome, before, SETTINGS)
    assert isinstance(after, NextAttempt)
    assert (after.tries.number, after.tries.ports) == (8, {"bulk": 2})


def test_waits_for_servers_and_other_ports_take_no_attempt():
    tries = Tries()
    for outcome in [AttemptEnd.STARTING] * 5 + [AttemptEnd.BUSY] * 5:
        tries = next_attempt(outcome, tries, SETTINGS).tries
    assert tries.counted == 1
    assert walk(AttemptEnd.FAILED, tries) == [2.0, 4.0]


def test_a_lab_that_fails_takes_an_attempt():
    tries = next_attempt(AttemptEnd.SITE_FAILED, Tries(), SETTINGS).tries
    assert walk(AttemptEnd.FAILED, tries) == [4.0]


def test_a_server_may_be_waited_for_all_day():
    day_of_waits = Tries(waits=20_000)
    assert next_attempt(AttemptEnd.STARTING, day_of_waits, SETTINGS).wait_s == SERVER_BACKOFF_S
