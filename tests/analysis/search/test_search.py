"""A search finds the capacity of any simulated link in few tries, or says what it does not know."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from benchctl.analysis.search.search import (
    SearchFinding,
    SearchOutcome,
    Try,
    finding,
    most_needed,
    next_rate,
)
from benchctl.run.condition import parse_condition
from benchctl.run.planned import Search
from benchctl.units import parse_rate, write_rate

LOSS = 0.001
TRY_S = 5.0


def search(
    low: float = 1e6, high: float = 1e9, precision: float = 0.01, most: int = 20, confirm: int = 2
) -> Search:
    condition = parse_condition("loss_ratio < 0.1%")
    return Search("rate", {"main": "rate"}, low, high, condition, precision, confirm, most)


def link(capacity_bps: float, queue_s: float = 0.0, *, tells: bool = True) -> Callable[..., Try]:
    """Return what tries of 5 s show of a link whose queue takes so long to send."""

    def tried(rate_bps: float) -> Try:
        excess = (rate_bps - capacity_bps) * TRY_S - queue_s * capacity_bps
        loss = max(0.0, excess) / (rate_bps * TRY_S)
        carried = min(rate_bps, capacity_bps * (1 + queue_s / TRY_S))
        return Try(rate_bps, loss < LOSS, carried if tells else None)

    return tried


def searched(wanted: Search, tried: Callable[[float], Try]) -> tuple[SearchFinding, list[Try]]:
    tries: list[Try] = []
    while (rate := next_rate(wanted, tries)) is not None:
        assert wanted.low_bps <= rate <= wanted.high_bps
        assert len(tries) < wanted.most
        tries.append(tried(rate))
    return finding(wanted, tries), tries


rates = st.floats(math.log(1.1e6), math.log(0.9e9)).map(math.exp)
queues_s = st.floats(0, 0.04)


@given(rates, queues_s)
def test_a_link_is_found_within_the_precision_and_what_its_queue_and_the_bound_hide(
    capacity_bps: float, queue_s: float
) -> None:
    found, tries = searched(search(), link(capacity_bps, queue_s))
    assert found.outcome is SearchOutcome.FOUND
    assert found.confirmed
    hidden = (1 + queue_s / TRY_S) / (1 - LOSS)
    assert capacity_bps / 1.01 <= found.passing_bps < capacity_bps * hidden * 1.0001
    assert found.passing_bps < found.failing_bps <= found.passing_bps * 1.01 * (1 + 1e-9)
    assert len(tries) <= 13


@given(rates, queues_s, st.sampled_from([0.001, 0.01, 0.05]), st.integers(1, 4))
def test_without_any_estimate_bisection_finds_it_in_the_tries_that_it_needs(
    capacity_bps: float, queue_s: float, precision: float, confirm: int
) -> None:
    wanted = search(precision=precision, confirm=confirm)
    wanted = search(precision=precision, confirm=confirm, most=most_needed(wanted))
    found, _ = searched(wanted, link(capacity_bps, queue_s, tells=False))
    assert found.outcome is SearchOutcome.FOUND
    assert found.confirmed


@given(rates, st.floats(0.1, 10.0), st.integers(0, 5))
def test_wrong_estimates_cost_no_more_than_the_tries_that_are_there(
    capacity_bps: float, wrong: float, spare: int
) -> None:
    def misled(rate_bps: float) -> Try:
        return Try(rate_bps, rate_bps <= capacity_bps, capacity_bps * wrong)

    found, _ = searched(search(most=most_needed(search()) + spare), misled)
    assert found.confirmed
    assert capacity_bps / 1.01 <= found.passing_bps <= capacity_bps


@given(st.floats(0.005, 0.5), st.integers(0, 2**32), st.integers(13, 40))
def test_noise_near_the_edge_never_takes_more_tries_nor_moves_the_result_beyond_the_noise(
    noise: float, seed: int, most: int
) -> None:
    draw = random.Random(seed)
    capacity_bps = 29.15e6

    def noisy(rate_bps: float) -> Try:
        near = abs(rate_bps / capacity_bps - 1) < 0.02
        passed = rate_bps <= capacity_bps
        passed ^= near and draw.random() < noise
        return Try(rate_bps, passed, min(rate_bps, capacity_bps))

    found, tries = searched(search(most=most), noisy)
    assert len(tries) <= most
    if found.confirmed:
        assert 0.97 <= found.passing_bps / capacity_bps <= 1.0201


def test_one_burst_of_loss_far_below_the_edge_does_not_end_the_search_there() -> None:
    calls = 0

    def bursty(rate_bps: float) -> Try:
        nonlocal calls
        calls += 1
        return link(400e6)(rate_bps) if calls > 1 else Try(rate_bps, False, None, "loss 3 %")

    found, _ = searched(search(), bursty)
    assert found.confirmed
    assert found.passing_bps == pytest.approx(400e6, rel=0.011)


def bursty_searches(share: float, count: int) -> tuple[float, float, float]:
    """Return the mean tries, and which shares were confirmed, and confirmed but wrong.

    Of searches for 812 Mbit/s in which bursts lose 2 % of a share of the tries. Wrong is farther
    off than twice the precision.
    """
    number = confirmed = wrong = 0
    for seed in range(count):
        draw = random.Random(seed)

        def tried(rate_bps: float, draw: random.Random = draw) -> Try:
            carried = min(rate_bps * (0.98 if draw.random() < share else 1), 812e6)
            return Try(rate_bps, carried > rate_bps * (1 - LOSS), carried)

        found, tries = searched(search(), tried)
        number += len(tries)
        confirmed += found.confirmed
        wrong += found.confirmed and abs((found.passing_bps or 0) / 812e6 - 1) > 0.02
    return number / count, confirmed / count, wrong / count


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2])
def test_bursts_of_loss_confirm_no_rate_far_below_the_edge(share: float) -> None:
    calm, _, _ = bursty_searches(0.0, 1)
    tries, confirmed, wrong = bursty_searches(share, 600)
    assert tries <= 2 * calm
    assert confirmed >= 0.85
    assert wrong <= 0.005


def test_without_bursts_one_try_more_shows_that_there_are_none() -> None:
    assert bursty_searches(0.0, 1) == (7, 1, 0)


def test_failures_below_a_rate_that_passes_are_not_the_rates_own() -> None:
    failed = [Try(rate, False, rate * 0.98) for rate in (31.62e6, 31.62e6)]
    tries = [*failed, *(Try(rate, True, rate) for rate in (30.85e6, 31.38e6, 31.38e6))]
    assert finding(search(), tries).failing_bps == 31.62e6
    assert next_rate(search(), tries) == 31.97e6
    assert finding(search(), [*tries, Try(31.97e6, True, 31.97e6)]).failing_bps is None


@given(rates, queues_s, st.integers(0, 12))
def test_a_search_that_is_resumed_anywhere_goes_on_as_if_it_never_stopped(
    capacity_bps: float, queue_s: float, stop: int
) -> None:
    _, tries = searched(search(), link(capacity_bps, queue_s))
    following = tries[stop].rate_bps if stop < len(tries) else None
    assert next_rate(search(), tries[:stop]) == following or stop > len(tries)


@pytest.mark.parametrize(
    ("capacity_bps", "outcome"), [(5e9, SearchOutcome.AT_LEAST), (0.5e6, SearchOutcome.BELOW)]
)
def test_a_range_that_passes_or_fails_as_a_whole_is_said_to(
    capacity_bps: float, outcome: SearchOutcome
) -> None:
    found, tries = searched(search(), link(capacity_bps))
    assert (found.outcome, found.confirmed) == (outcome, True)
    assert len(tries) == (3 if outcome is SearchOutcome.AT_LEAST else 4)
    assert (found.passing_bps is None) is (outcome is SearchOutcome.BELOW)
    assert (found.failing_bps is None) is (outcome is SearchOutcome.AT_LEAST)


def test_two_tries_in_a_row_that_measure_nothing_end_the_search_with_their_reason() -> None:
    found, tries = searched(search(), lambda rate: Try(rate, None, None, "connection refused"))
    assert [one.rate_bps for one in tries] == [31.62e6] * 2
    assert (found.outcome, found.confirmed, found.why) == (
        SearchOutcome.OPEN, False, "connection refused",
    )  # fmt: skip


def test_a_sender_that_cannot_keep_up_ends_the_search_but_confirms_nothing() -> None:
    def slow(rate_bps: float) -> Try:
        if rate_bps <= 600e6:
            return Try(rate_bps, True, rate_bps)
        return Try(rate_bps, False, rate_bps, "only 600 Mbit/s were sent", doubtful=True)

    found, _ = searched(search(), slow)
    assert found.outcome is SearchOutcome.FOUND
    assert found.passing_bps == pytest.approx(600e6, rel=0.011)
    assert not found.confirmed
    assert found.why == "only 600 Mbit/s were sent"


def test_a_single_doubtful_try_is_tried_again_and_does_not_count() -> None:
    doubts: list[float] = []

    def shaky(rate_bps: float) -> Try:
        if rate_bps not in doubts:
            doubts.append(rate_bps)
            return Try(rate_bps, False, None, "the lab did not keep up", doubtful=True)
        return link(29.15e6)(rate_bps)

    found, _ = searched(search(), shaky)
    assert found.confirmed
    assert found.passing_bps == pytest.approx(29.15e6, rel=0.011)


def test_doubtful_tries_beside_a_sure_one_are_repeated_until_sure_ones_confirm() -> None:
    given = 0

    def busy(rate_bps: float) -> Try:
        nonlocal given
        given += 1
        return replace(link(29.15e6)(rate_bps), doubtful=given % 3 == 0)

    found, tries = searched(search(), busy)
    assert found.confirmed
    assert found.passing_bps == pytest.approx(29.15e6, rel=0.011)
    assert len(tries) <= 13


def test_the_tries_are_few_where_overload_shows_the_capacity() -> None:
    counts: Sequence[int] = [len(searched(search(), link(c, 0.04))[1]) for c in (29.15e6, 19.44e6)]
    assert max(counts) <= 7


@given(st.floats(1.0, 1e13))
def test_a_rate_is_written_as_it_is_read(rate_bps: float) -> None:
    assert parse_rate(write_rate(rate_bps)) == rate_bps


@pytest.mark.parametrize(
    ("rate_bps", "text"), [(29.15e6, "29.15Mbit"), (1e9, "1Gbit"), (64_000, "64kbit"), (5, "5bit")]
)
def test_a_rate_is_written_in_the_largest_unit(rate_bps: float, text: str) -> None:
    assert write_rate(rate_bps) == text
