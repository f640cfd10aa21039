import pytest

from benchctl.tui.model.playhead import SPEEDS, Playhead


class Clock:
    def __init__(self, time=1000.0):
        self.time = time

    def __call__(self):
        return self.time


@pytest.fixture
def clock():
    return Clock()


def test_live_it_is_the_clocks_time(clock):
    head = Playhead(clock)
    clock.time += 5
    assert head.live
    assert head.time() == 1005.0
    assert not head.standing


def test_frozen_it_stands_and_then_shows_now_again(clock):
    head = Playhead(clock)
    head.toggle()
    clock.time += 5
    assert head.standing
    assert head.time() == 1000.0
    head.toggle()
    assert head.time() == 1005.0


def test_a_replay_begins_at_the_beginning_and_stops_at_the_end(clock):
    head = Playhead(clock, 100.0, 160.0)
    clock.time += 30
    assert head.time() == 130.0
    clock.time += 40
    assert head.time() == 160.0
    assert head.at_end
    assert head.standing


@pytest.mark.parametrize("speed", SPEEDS)
def test_a_replay_keeps_its_pace_at_every_speed(clock, speed):
    head = Playhead(clock, 0.0, 600.0)
    head.change_speed(SPEEDS.index(speed))
    for _ in range(40):  # ticks that come a little late change nothing
        clock.time += 0.2501
        head.time()
    assert head.time() == pytest.approx(min(600.0, 40 * 0.2501 * speed))


def test_speed_has_a_least_and_a_greatest(clock):
    head = Playhead(clock, 0.0, 600.0)
    head.change_speed(-1)
    assert head.speed == 1
    head.change_speed(100)
    assert head.speed == 64


def test_a_change_of_speed_does_not_jump(clock):
    head = Playhead(clock, 0.0, 600.0)
    clock.time += 10
    head.change_speed(2)
    assert head.time() == 10.0


def test_seeking_stays_within_the_run_and_paused_where_it_was_paused(clock):
    head = Playhead(clock, 100.0, 160.0)
    head.seek(90.0)
    assert head.time() == 100.0
    head.seek(1000.0)
    assert head.time() == 160.0
    head.seek(120.0)
    clock.time += 1
    assert head.time() == 121.0
    head.toggle()
    head.seek(150.0)
    clock.time += 1
    assert head.time() == 150.0


def test_a_paused_replay_goes_on_from_where_it_stood(clock):
    head = Playhead(clock, 100.0, 160.0)
    head.toggle()
    clock.time += 30
    head.toggle()
    clock.time += 2
    assert head.time() == 102.0


def test_a_replay_that_is_over_begins_again(clock):
    head = Playhead(clock, 100.0, 160.0)
    clock.time += 100
    head.toggle()
    clock.time += 5
    assert head.time() == 105.0


def test_a_live_run_can_be_gone_through_up_to_the_moment_it_was_frozen(clock):
    head = Playhead(clock)
    head.keep_within(900.0, None)
    head.move(-5)
    assert head.frozen
    assert head.time() == 995.0
    clock.time += 60
    for seconds, time in ((30, 1000.0), (-500, 900.0), (5, 905.0)):
        head.move(seconds)
        assert head.time() == time
    head.toggle()
    assert head.time() == 1060.0


def test_going_back_in_a_live_run_that_has_ended_begins_at_its_end(clock):
    head = Playhead(clock)
    head.keep_within(900.0, 960.0)
    for seconds, time in ((-5, 955.0), (30, 960.0), (-30, 930.0)):
        head.move(seconds)
        assert head.time() == time
    head.keep_within(900.0, None)  # it was resumed
    head.toggle()
    assert head.time() == 1000.0
