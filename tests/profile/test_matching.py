"""Which trials run side by side: all, never beyond a limit, repeats apart, near the bound."""

import heapq
import itertools
import random
from collections import Counter, defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.plan.matching import Matching, OpenTrial, coloured, first_batch, least_s
from benchctl.run.planned import Host, Network, Parallel, SshTarget, Uplink


def network(count):
    return Network({f"h{n}": Host(f"h{n}", "", reach=SshTarget(f"h{n}")) for n in range(count)})


def mesh(count, share=1.0, seed=1):
    draw = random.Random(seed)
    pairs = itertools.permutations(range(count), 2)
    return [frozenset({f"h{a}", f"h{b}"}) for a, b in pairs if draw.random() < share]


def candidates(points, repeats, seed=7):
    """Return the trials of an interleaved run, in the order of their plan."""
    order = coloured(points, seed)
    found = itertools.product(range(repeats), order)
    return [OpenTrial(n, points[point], point) for n, (_, point) in enumerate(found)]


def measure(matching, trials, lasts_s):
    """Run all trials; returns (start, trial) of each, and the end of all, in seconds."""
    for one in trials:
        matching.add(one)
    now, ends, starts = 0.0, [], []
    while matching.open or ends:
        while (one := matching.start()) is not None:
            starts.append((now, one))
            heapq.heappush(ends, (now + lasts_s[one.position], one.position))
        assert ends, "open trials, and none starts though nothing runs"
        now, position = heapq.heappop(ends)
        matching.ended(position)
    return starts, now


def run(hosts, points, repeats, lasts_s, seed=7):
    trials = candidates(points, repeats, seed)
    limits, net = Parallel(None), network(hosts)
    lasts_s = [lasts_s(one) for one in trials]
    starts, took_s = measure(Matching(limits, net, len(points), spreads=True), trials, lasts_s)
    return starts, took_s, least_s(limits, net, zip(trials, lasts_s, strict=True), hosts // 2)


def evenly(draw):
    """Trials of 2 s whose start takes 50 to 200 ms."""
    return lambda _: 2 + draw.uniform(0.05, 0.2)


def mixed(draw):
    """A quarter of the trials takes five times as long."""
    return lambda _: draw.choice((2, 2, 2, 10)) + draw.uniform(0.05, 0.2)


@pytest.mark.parametrize("lasting", [evenly, mixed])
@pytest.mark.parametrize(
    ("hosts", "share", "repeats"),
    [(20, 1, 3), (40, 1, 1), (19, 1, 3), (20, 0.2, 3), (60, 0.05, 3), (8, 1, 4)],
)
def test_the_time_is_near_the_bound(hosts, share, repeats, lasting):
    _, took_s, least = run(hosts, mesh(hosts, share), repeats, lasting(random.Random(3)))
    assert least <= took_s < 1.2 * least


def test_a_full_mesh_is_bound_by_half_its_hosts():
    trials = [(one, 2.0) for one in candidates(mesh(20), 3)]
    batch = first_batch(Parallel(None), network(20), [one for one, _ in trials])
    assert len(batch) == 10
    assert least_s(Parallel(None), network(20), trials, 10) == 3 * 380 * 2.0 / 10


@pytest.mark.parametrize("lasting", [evenly, mixed])
def test_repeats_of_a_point_are_spread_over_time(lasting):
    starts, took_s, _ = run(20, mesh(20), 3, lasting(random.Random(3)))
    of_point = defaultdict(list)
    for at, one in starts:
        of_point[one.point].append(at)
    gaps = [b - a for times in of_point.values() for a, b in itertools.pairwise(times)]
    # A third of the time is as far apart as they could be.
    assert min(gaps) > took_s / 3 / 6


@st.composite
def networks(draw):
    """Hosts, sites, limits and trials between them, some with one host or three."""
    count = draw(st.integers(2, 7))
    names = [f"h{n}" for n in range(count)]
    site = st.tuples(st.lists(st.sampled_from(names), min_size=1), st.integers(1, 3))
    sites = draw(st.lists(site, max_size=2))
    limits = Parallel(
        draw(st.none() | st.integers(1, 4)),
        draw(st.integers(1, 3)),
        tuple(Uplink(f"s{n}", tuple(hosts), most) for n, (hosts, most) in enumerate(sites)),
        draw(st.none() | st.floats(1, 50)),
    )
    trial = st.tuples(
        st.frozensets(st.sampled_from(names), min_size=1, max_size=3),
        st.frozensets(st.sampled_from(["core", "edge"]), max_size=1),
        st.integers(0, 5),
        st.floats(0, 20),
        st.floats(0.1, 10),
    )
    drawn = draw(st.lists(trial, min_size=1, max_size=40))
    trials = [
        OpenTrial(n, hosts, point, links, rate)
        for n, (hosts, links, point, rate, _) in enumerate(drawn)
    ]
    return network(count), limits, trials, [lasts_s for *_, lasts_s in drawn]


@given(networks(), st.booleans())
def test_every_trial_runs_once_and_never_beyond_a_limit(drawn, spreads):
    net, limits, trials, lasts_s = drawn
    matching = Matching(limits, net, 6, spreads=spreads)
    starts, _ = measure(matching, trials, lasts_s)
    assert sorted(one.position for _, one in starts) == list(range(len(trials)))
    for at, _ in starts:
        beside = [one for began, one in starts if began <= at < began + lasts_s[one.position]]
        assert len(beside) <= (limits.most or len(beside))
        at_hosts = Counter(host for one in beside for host in one.hosts)
        assert max(at_hosts.values()) <= limits.per_host
        links = Counter(link for one in beside for link in one.links)
        assert max(links.values(), default=0) <= 1
        for site in limits.sites:
            inner = set(site.hosts)
            crossing = [one for one in beside if one.hosts & inner and one.hosts - inner]
            assert len(crossing) <= site.most
        rate_bps = sum(one.rate_bps for one in beside)
        most_bps = limits.most_rate_bps
        assert most_bps is None or len(beside) == 1 or rate_bps <= most_bps * (1 + 1e-9)


@given(st.randoms(use_true_random=False))
def test_a_trial_that_others_overtook_for_a_repeat_is_next_at_its_hosts(draw):
    """One long pair keeps its hosts apart: the others of a host may not starve it."""
    points = mesh(6)
    lasts = {point: draw.uniform(0.5, 5) for point in range(len(points))}
    starts, *_ = run(6, points, 4, lambda one: lasts[one.point])
    overtaken = [number - one.position for number, (_, one) in enumerate(starts)]
    assert max(overtaken) <= 2 * len(points)


@given(st.lists(st.frozensets(st.sampled_from("abcdefgh"), min_size=2, max_size=2)), st.integers())
def test_a_colouring_has_each_point_once_and_no_more_colours_than_twice_the_degree(points, seed):
    order = coloured(points, seed)
    assert sorted(order) == list(range(len(points)))
    rounds, busy = 1 if points else 0, set()
    for number in order:  # a new round where hosts meet again: at least one for each colour
        if points[number] & busy:
            rounds, busy = rounds + 1, set()
        busy |= points[number]
    degree = max(Counter(host for point in points for host in point).values(), default=0)
    assert rounds <= max(2 * degree - 1, 0)


def test_what_runs_again_keeps_its_place_and_does_not_wait_for_others_to_start():
    trials = [OpenTrial(n, frozenset({f"h{n}", "h9"}), 0) for n in range(3)]
    matching = Matching(Parallel(None), network(10), 40, spreads=True)
    for one in trials:
        matching.add(one)
    assert matching.start() == trials[0]
    assert matching.start() is None
    matching.ended(0, again=True)
    assert [one.position for one in matching.open] == [0, 1, 2]
    assert matching.start(lambda one: one.position != 0) == trials[1]
    matching.ended(1)
    assert matching.start() == trials[0]
