import random

import pytest
import scipy
from analysis.flow.probed import delays
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.analysis.clocks.floor import lower_bound_line

REPEATABLE = settings(derandomize=True, deadline=None, max_examples=60)


def programmed(points):
    """Return start and slope of the linear programme of Moon, Skelly and Towsley, by SciPy.

    In microseconds: its constraints hold to 1e-7.
    """
    n = len(points)
    # Maximize n * start + slope * sum of times: the least sum of distances below all delays.
    solved = scipy.optimize.linprog(
        [-n, -sum(at for at, _ in points)],
        A_ub=[[1, at] for at, _ in points],
        b_ub=[delay * 1e6 for _, delay in points],
        bounds=[(None, None), (None, None)],
    )
    assert solved.success
    return solved.x / 1e6


def below(points, start, slope):
    return sum(delay - start - slope * at for at, delay in points)


@REPEATABLE
@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(-100, 100)), min_size=2, max_size=40).filter(
        lambda points: len({at for at, _ in points}) > 1
    )
)
def test_the_line_is_as_good_as_that_of_a_linear_programme(points):
    line = lower_bound_line(points)
    assert all(delay >= line.at(at) - 1e-9 for at, delay in points)
    best = below(points, *programmed(points))
    assert below(points, line.start, line.slope) == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_the_line_of_a_probed_path_is_that_of_a_linear_programme(seed):
    points = delays(seed=seed, offset_s=0.055, drift=1e-3 / 60)
    line = lower_bound_line(points)
    start, slope = programmed(points)
    assert line.start == pytest.approx(start, abs=1e-7)
    assert line.slope == pytest.approx(slope, abs=1e-9)


def test_the_order_of_the_packets_does_not_matter():
    points = delays()
    mixed = random.Random(3).sample(points, len(points))
    assert lower_bound_line(mixed).slope == pytest.approx(lower_bound_line(points).slope, abs=1e-12)
