"""Fairness over time, and when flows are fair for the first time."""

import pytest

from benchctl.analysis.flow.sharing import FAIR, fair_after_s, fair_windows
from benchctl.analysis.statistics import fairness_jain
from benchctl.run.record import FairWindow


def test_every_window_has_its_index():
    windows = fair_windows([[90, 70, 50], [10, 30, 50]], 2.0)
    assert [(w.start_s, w.end_s) for w in windows] == [(0, 2), (2, 4), (4, 6)]
    assert [w.jain for w in windows] == pytest.approx([10000 / 16400, 10000 / 11600, 1.0])


def test_a_window_in_which_nothing_moved_has_none():
    assert [w.start_s for w in fair_windows([[0, 1], [0, 1]], 1.0)] == [1]


def test_two_flows_are_fair_from_the_shares_that_the_rfc_names_on():
    delta = 0.1
    assert fairness_jain([(1 + delta) / 2, (1 - delta) / 2]) == pytest.approx(FAIR)


def test_flows_are_fair_at_the_end_of_the_first_fair_window():
    windows = [FairWindow(0, 1, 0.6), FairWindow(1, 2, 0.995), FairWindow(2, 3, 0.7)]
    assert fair_after_s(windows) == 2
    assert fair_after_s(windows[:1]) is None
    assert fair_after_s([]) is None
