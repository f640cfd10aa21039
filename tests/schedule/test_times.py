"""When schedules are due: time zones, summer time, jitter."""

from datetime import datetime
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.schedule.times import DAY_S, Recurrence

PARIS = ZoneInfo("Europe/Paris")
HOUR_S = 3600.0
SINCE = datetime(2026, 1, 1, 12, tzinfo=PARIS).timestamp()


def at(text):
    return datetime.fromisoformat(text).replace(tzinfo=PARIS).timestamp()


def times(rule, after, count):
    found = (datetime.fromtimestamp(due, PARIS) for due in islice(rule.due_after(at(after)), count))
    return " ".join(one.strftime("%d %H:%M%z")[:-2] for one in found)


def of_the_clock(every_s, hour):
    return Recurrence(every_s, SINCE, hour * HOUR_S, "Europe/Paris")


@pytest.mark.parametrize(
    ("rule", "after", "due"),
    [
        # The clock is put forward at 2 on 29 March, and back at 3 on 25 October.
        (of_the_clock(6 * HOUR_S, 8), "2026-03-28T19:00", "28 20:00+01 29 03:00+02 29 08:00+02"),
        (of_the_clock(6 * HOUR_S, 8), "2026-10-24T19:00", "24 20:00+02 25 02:00+02 25 08:00+01"),
        (of_the_clock(HOUR_S, 0), "2026-03-29T00:30", "29 01:00+01 29 03:00+02 29 04:00+02"),
        (of_the_clock(HOUR_S, 0), "2026-10-25T01:30", "25 02:00+02 25 02:00+01 25 03:00+01"),
        (of_the_clock(DAY_S, 2.5), "2026-03-28T12:00", "29 03:30+02 30 02:30+02 31 02:30+02"),
        (of_the_clock(DAY_S, 2.5), "2026-10-24T12:00", "25 02:30+02 26 02:30+01 27 02:30+01"),
        (of_the_clock(2 * DAY_S, 9), "2026-03-27T12:00", "28 09:00+01 30 09:00+02 01 09:00+02"),
        # Without a time of the day, hours are hours.
        (Recurrence(6 * HOUR_S, SINCE), "2026-03-28T23:00", "29 00:00+01 29 07:00+02 29 13:00+02"),
    ],
)
def test_summer_time_changes_no_time_of_the_day_and_skips_none(rule, after, due):
    assert times(rule, after, 3) == due


@given(
    st.sampled_from([60.0, 900.0, HOUR_S, 6 * HOUR_S, 12 * HOUR_S, DAY_S, 3 * DAY_S]),
    st.integers(0, 86399),
    st.booleans(),
    st.floats(0, 400 * DAY_S),
)
def test_due_times_have_their_distances(every_s, clock, timed, later):
    rule = Recurrence(every_s, SINCE, float(clock) if timed else None, "Europe/Paris", 0.0, "x")
    due = [*islice(rule.due_after(SINCE + later), 12)]
    assert all(one > SINCE + later for one in due)
    for one, two in pairwise(due):
        # A change of the clock takes or gives an hour.
        assert min(every_s, every_s - HOUR_S if every_s > HOUR_S else 1.0) <= two - one
        assert two - one <= every_s + HOUR_S


@given(st.floats(0, 30 * DAY_S), st.floats(0, 0.99))
def test_jitter_delays_each_by_its_own_time_which_stays(later, share):
    plain = Recurrence(HOUR_S, SINCE)
    rule = Recurrence(HOUR_S, SINCE, jitter_s=share * HOUR_S, seed="nightly")
    due = rule.due_between(SINCE, SINCE + later)
    assert due == rule.due_between(SINCE, SINCE + later)
    exact = plain.due_between(SINCE, SINCE + later)
    assert len(exact) - 1 <= len(due) <= len(exact)
    for one, whole in zip(due, exact, strict=False):
        assert whole <= one <= whole + share * HOUR_S


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        (Recurrence(5.0, SINCE), "the least interval is 10 s"),
        (Recurrence(7 * HOUR_S, SINCE, 0.0), "a part of one"),
        (Recurrence(HOUR_S, SINCE, jitter_s=HOUR_S), "the jitter is not less"),
    ],
)
def test_a_rule_that_cannot_be_kept_says_why(rule, why):
    with pytest.raises(ValueError, match=why):
        rule.check()
