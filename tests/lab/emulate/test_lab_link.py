"""The link model keeps its rules whatever arrives, and whenever somebody looks."""

import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from benchctl.lab.emulate.link import NEVER_NS, Change, OneWay, SettingsSchedule
from benchctl.lab.topology.model import LinkSettings

S = 1_000_000_000
MS = 1_000_000

rates = st.floats(1e3, 1e10)
settings = st.builds(
    LinkSettings,
    rate_bps=st.one_of(rates, st.just(math.inf)),
    delay_s=st.floats(0, 0.2),
    loss_ratio=st.sampled_from([0.0, 0.0, 0.02, 0.5, 1.0]),
    queue_packets=st.integers(1, 20),
)
sizes = st.integers(60, 1514)
arrivals = st.lists(
    st.tuples(st.one_of(st.just(0), st.integers(0, 20 * MS)), sizes), min_size=1, max_size=80
)


def drive(way, arrivals, looks=(), changes=()):
    """Feed frames with gaps between them; return (arrived, size) and the deliveries in order.

    Between arrivals the model is looked at whenever it says something is due, as the emulator
    does, and at extra moments.
    """
    now_ns, came, got = 0, [], []
    moments = sorted(looks)
    changes = sorted(changes, key=lambda change: change[0])

    def look_until(limit_ns):
        while (next_ns := min([way.next_ns(), *moments[:1]])) <= limit_ns:
            if moments and next_ns == moments[0]:
                moments.pop(0)
            got.extend((next_ns, frame) for _, frame in way.due(next_ns))

    for number, (gap_ns, size) in enumerate(arrivals):
        now_ns += gap_ns
        while changes and changes[0][0] <= now_ns:
            at_ns, change = changes.pop(0)
            look_until(at_ns)
            way.change(change, at_ns)
        look_until(now_ns)
        came.append((now_ns, size))
        way.arrive(now_ns, size, number)
    look_until(NEVER_NS - 1)
    return came, got


@given(settings, arrivals, st.lists(st.integers(0, S), max_size=10))
def test_every_frame_is_accounted_for(settings, arrivals, looks):
    way = OneWay(settings, "seed")
    _, got = drive(way, arrivals, looks)
    counters = way.counters
    assert counters.arrived == len(arrivals)
    assert counters.delivered == len(got)
    assert counters.arrived == counters.delivered + counters.dropped + counters.lost
    assert way.queued == way.flying == 0
    assert way.next_ns() == NEVER_NS


@given(settings, arrivals)
def test_frames_keep_their_order_without_jitter(settings, arrivals):
    _, got = drive(OneWay(settings, "seed"), arrivals)
    assert [frame for _, frame in got] == sorted(frame for _, frame in got)


@given(settings, arrivals)
def test_no_frame_arrives_before_its_delay_and_its_transmission(settings, arrivals):
    came, got = drive(OneWay(settings, "seed"), arrivals)
    for at_ns, frame in got:
        arrived_ns, size = came[frame]
        promise_ns = settings.delay_s * 1e9 + size * 8e9 / settings.rate_bps
        assert at_ns - arrived_ns >= promise_ns - 1e-6 * promise_ns


@given(settings.filter(lambda settings: math.isfinite(settings.rate_bps)), arrivals)
def test_no_window_of_time_sees_more_than_the_rate(settings, arrivals):
    came, got = drive(OneWay(settings, "seed"), arrivals)
    for first, (start_ns, _) in enumerate(got):
        bits = 0
        for end_ns, frame in got[first + 1 :]:
            bits += came[frame][1] * 8
            assert bits <= settings.rate_bps * (end_ns - start_ns) / 1e9 * (1 + 1e-9)


@given(settings, arrivals, st.integers(0, 79))
def test_the_queue_is_never_longer_than_its_limit(settings, arrivals, stop):
    way = OneWay(settings, "seed")
    now_ns = 0
    for number, (gap_ns, size) in enumerate(arrivals[: stop + 1]):
        now_ns += gap_ns
        way.arrive(now_ns, size, number)
        assert way.queued <= settings.queue_packets
    assert way.counters.queue_max <= settings.queue_packets


@given(settings, arrivals, st.lists(st.integers(0, S), max_size=10))
def test_when_somebody_looks_changes_nothing(settings, arrivals, looks):
    _, often = drive(OneWay(settings, "seed"), arrivals, looks)
    _, seldom = drive(OneWay(settings, "seed"), arrivals)
    assert often == seldom


@given(settings, arrivals)
def test_jitter_stays_within_its_bounds(settings, arrivals):
    jittery = replace(settings, jitter_s=settings.delay_s / 2, loss_ratio=0.0)
    _, got = drive(OneWay(jittery, "seed"), arrivals)
    _, steady = drive(OneWay(replace(jittery, jitter_s=0.0), "seed"), arrivals)
    promised_ns = {frame: at_ns for at_ns, frame in steady}
    for at_ns, frame in got:
        assert abs(at_ns - promised_ns[frame]) <= jittery.jitter_s * 1e9 + 2


changes = st.lists(
    st.tuples(
        st.integers(0, S // 2),
        st.builds(
            Change,
            over_ns=st.sampled_from([0, 0, 100 * MS]),
            rate_bps=st.one_of(st.none(), rates),
            delay_s=st.one_of(st.none(), st.floats(0, 0.2)),
            loss_ratio=st.sampled_from([None, 0.0, 0.5]),
            queue_packets=st.one_of(st.none(), st.integers(1, 20)),
        ),
    ),
    max_size=5,
)


@given(settings, arrivals, changes)
def test_order_and_conservation_survive_changes(settings, arrivals, changes):
    way = OneWay(settings, "seed")
    _, got = drive(way, arrivals, changes=changes)
    assert [frame for _, frame in got] == sorted(frame for _, frame in got)
    assert way.counters.arrived == len(got) + way.counters.dropped + way.counters.lost


def test_a_busy_link_sends_back_to_back_and_drops_what_finds_the_queue_full():
    way = OneWay(LinkSettings(rate_bps=8e6, delay_s=0.01, queue_packets=2), "seed")
    for number in range(4):
        way.arrive(0, 1000, number)
    assert way.counters.dropped == 1
    assert [way.due(way.next_ns()) for _ in range(3)] == [
        [(11 * MS, 0)], [(12 * MS, 1)], [(13 * MS, 2)],
    ]  # fmt: skip


def test_loss_is_the_same_for_the_same_seed_and_near_its_promise():
    def survivors(seed):
        way = OneWay(LinkSettings(loss_ratio=0.02), seed)
        _, got = drive(way, [(0, 100)] * 20_000)
        return [frame for _, frame in got]

    assert survivors("a") == survivors("a") != survivors("b")
    # The binomial 99 % interval of 2 % of 20,000 is 400 +- 51.
    assert abs(20_000 - len(survivors("a")) - 400) <= 51


def test_a_new_rate_holds_for_the_frames_that_wait():
    way = OneWay(LinkSettings(rate_bps=8e6), "seed")
    for number in range(3):
        way.arrive(0, 1000, number)
    way.change(Change(rate_bps=8e5), 0)
    assert [way.due(way.next_ns()) for _ in range(3)] == [
        [(1 * MS, 0)], [(11 * MS, 1)], [(21 * MS, 2)],
    ]  # fmt: skip


def test_a_shorter_delay_lets_no_frame_overtake():
    way = OneWay(LinkSettings(delay_s=0.1), "seed")
    way.arrive(0, 100, "early")
    way.change(Change(delay_s=0.001), 1 * MS)
    way.arrive(2 * MS, 100, "late")
    assert way.due(99 * MS) == []
    assert way.due(100 * MS) == [(100 * MS, "early"), (100 * MS, "late")]


def values(course, moments_s):
    seen = []
    for at_s in moments_s:
        course.advance(int(at_s * S))
        seen.append((course.settings.rate_bps, course.settings.delay_s))
    return seen


def test_a_ramp_moves_linearly_and_a_later_change_of_the_same_value_cuts_it_short():
    course = SettingsSchedule(LinkSettings(rate_bps=10e6, delay_s=0.25))
    course.add(Change(at_ns=1 * S, over_ns=2 * S, rate_bps=2e6, delay_s=0.75), now_ns=0)
    course.add(Change(at_ns=5 * S, over_ns=1 * S, rate_bps=4e6), now_ns=0)
    course.add(Change(at_ns=int(5.5 * S), rate_bps=9e6), now_ns=0)
    assert values(course, [0, 1, 2, 3, 5, 5.25, 5.5, 6]) == [
        (10e6, 0.25), (10e6, 0.25), (6e6, 0.5), (2e6, 0.75), (2e6, 0.75), (2.5e6, 0.75),
        (9e6, 0.75), (9e6, 0.75),
    ]  # fmt: skip
    assert course.next_ns == NEVER_NS


def test_values_move_on_their_own_when_another_changes():
    course = SettingsSchedule(LinkSettings(rate_bps=8e6, delay_s=0.0))
    course.add(Change(at_ns=0, over_ns=4 * S, rate_bps=4e6), now_ns=0)
    course.add(Change(at_ns=0, over_ns=2 * S, delay_s=0.5), now_ns=0)
    course.add(Change(at_ns=3 * S, queue_packets=7), now_ns=0)
    assert values(course, [1, 2, 3, 4]) == [(7e6, 0.25), (6e6, 0.5), (5e6, 0.5), (4e6, 0.5)]
    assert course.settings.queue_packets == 7


def test_a_ramp_to_or_from_no_limit_is_a_step_at_its_end():
    course = SettingsSchedule(LinkSettings(delay_s=0.0))
    course.add(Change(at_ns=0, over_ns=2 * S, rate_bps=1e6), now_ns=0)
    assert values(course, [1, 2]) == [(math.inf, 0.0), (1e6, 0.0)]
