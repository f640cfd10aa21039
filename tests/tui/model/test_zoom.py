import math

from hypothesis import given
from hypothesis import strategies as st

from benchctl.report.timeline.series import CAPACITY
from benchctl.report.timeline.traces import TimeWindow
from benchctl.tui.model.zoom import View, Zoom, window_for

WHOLE = TimeWindow(0.0, 600.0)


@given(st.integers(0, 12), st.floats(1.0, 1e5), st.floats(0.0, 1.0))
def test_the_moment_shown_is_within_what_is_seen(steps, span_s, share):
    zoom = Zoom().changed(steps, span_s)
    moment_s = share * span_s
    view = zoom.view(span_s, moment_s, math.inf)
    assert -1e-9 <= view.from_s <= moment_s + 1e-9
    assert moment_s - 1e-6 * span_s <= view.to_s <= span_s * (1 + 1e-9)


def test_zoom_stays_within_what_makes_sense():
    assert Zoom().changed(-3, 60.0) == Zoom(0)
    assert Zoom().changed(99, 60.0) == Zoom(6)
    assert Zoom(6).changed(-99, 60.0) == Zoom(0)
    assert Zoom().changed(1, 0.1) == Zoom(0)


def test_a_live_view_moves_in_steps_and_not_with_every_sample():
    zoom = Zoom(3)
    views = {zoom.view(600.0, moment, math.inf) for moment in range(300, 375)}
    assert len(views) <= 10


def test_the_whole_trial_serves_while_its_buckets_are_fine_enough():
    assert window_for(View(0.0, 600.0), 200, 0.1, WHOLE, WHOLE) is WHOLE
    # A sample a second: nothing finer can be had, however far one zooms in.
    assert window_for(View(10.0, 20.0), 200, 1.0, WHOLE, WHOLE) is WHOLE
    assert window_for(View(10.0, 20.0), 200, math.inf, WHOLE, WHOLE) is not WHOLE


@given(st.floats(0.0, 590.0), st.floats(1.0, 10.0), st.integers(50, 400))
def test_a_window_covers_the_view_with_fine_buckets_and_serves_again(begin, width, dots):
    view = View(begin, begin + width)
    window = window_for(view, dots, 0.01, WHOLE, WHOLE)
    assert window.from_s <= view.from_s
    assert view.to_s <= window.to_s
    assert window.span_s / CAPACITY <= max(width / dots, 0.01)
    again = View(begin + width * 0.4, begin + width * 1.4)
    assert window_for(again, dots, 0.01, WHOLE, window) is window
