"""Series of samples and of runs: steps, falls and returns, steadiness, drift, fairness, search."""

from __future__ import annotations

import io
import math
import random
from contextlib import redirect_stdout
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from statistics import fmean, median

import table

from benchctl.analysis.flow.events import find_events
from benchctl.analysis.flow.regular import Regular
from benchctl.analysis.flow.sharing import fair_after_s, fair_windows
from benchctl.analysis.flow.steady import steady_from
from benchctl.analysis.runs.drift import SIGNIFICANT, drifts_of, trend
from benchctl.analysis.search.search import Try, bisections, finding, next_rate
from benchctl.analysis.steps import find_steps
from benchctl.run.condition import parse_condition
from benchctl.run.planned import Search
from benchctl.run.record import Happening

SERIES = 400
PHIS = (0, 0.3, 0.6, 0.9)
PHIS_OF_RATES = (0, 0.3, 0.6, 0.8)


def main() -> None:
    _events()
    _slow_starts()
    _falls()
    _steady()
    _drift()
    _fairness()
    _searches()
    _bursts()


def autoregression(rng: random.Random, phi: float, n: int = 600) -> list[float]:
    """Return AR(1) noise of marginal deviation 1."""
    value, values = rng.gauss(0, 1), []
    for _ in range(n):
        values.append(value)
        value = phi * value + rng.gauss(0, math.sqrt(1 - phi * phi))
    return values


def _events() -> None:
    table.head(f"steps in {SERIES} series of 600 samples, AR(1), marginal deviation 1")
    for phi in PHIS:
        rng = random.Random(600)
        found = 0
        for _ in range(SERIES):
            at = rng.randrange(60, 540)
            noise = autoregression(rng, phi)
            steps = find_steps([value + 5 * (i >= at) for i, value in enumerate(noise)])
            found += any(abs(step.at - at) <= 2 for step in steps)
        table.row(f"phi {phi}: 5 deviations, found within 2 samples", found / SERIES * 100, 95, "%",
                  at_least=True)  # fmt: skip
        false = sum(bool(find_steps(autoregression(rng, phi))) for _ in range(SERIES))
        table.row(f"phi {phi}: flat, with a false step", false / SERIES * 100, 1, "%")


def _slow_starts() -> None:
    table.head(f"flows with slow start of up to 4 s, noise of 1 to 5 %, {10 * SERIES} of each kind")
    for n, step_s, least in ((30, 1.0, 80), (60, 1.0, 95), (300, 0.1, 95)):
        rng = random.Random(n)
        found = shown = 0
        for _ in range(10 * SERIES):
            samples = round(rng.randrange(5) / step_s)
            low = rng.uniform(0.02, 0.6)
            start = [low ** (1 - at / samples) for at in range(samples)] or [0.3, 0.8]
            share = rng.choice((0.01, 0.02, 0.035, 0.05))
            phi = rng.choice(PHIS_OF_RATES)
            noise = [1 + share * value for value in autoregression(rng, phi, n)]
            flat = [9e7 * value * level for value, level in zip(noise, start, strict=False)]
            flat += [9e7 * value for value in noise[len(start) :]]
            shown += any(find_events(Regular(0.0, step_s, flat)))
            at = rng.randrange(len(start) + 10, n - 9)
            left = 1 - max(5 * share, 0.15)
            fallen = [value * (left if place >= at else 1) for place, value in enumerate(flat)]
            found += any(
                one.kind is Happening.DROP and abs(one.at_s / step_s - at) < 2.5
                for one in find_events(Regular(0.0, step_s, fallen))
            )
        name = f"{n} samples of {step_s} s"
        table.row(f"{name}: drop by 5 deviations", found / SERIES * 10, least, "%", at_least=True)
        table.row(f"{name}: flat, with an event", shown / SERIES * 10, 1, "%")


def _falls() -> None:
    """Print how often a level is found that falls and returns, as a regression that is mended."""
    table.head(f"runs of a profile: {SERIES} trends that fall by 10 deviations and return")
    for length in (20, 40, 80):
        for around in (20, length):
            found = sum(_found_both(random.Random(seed), length, around) for seed in range(SERIES))
            name = f"lower for {length} runs, {around} before and after, both found"
            table.row(name, found / SERIES * 100, 95, "%", at_least=True)
    for n in (40, 80):
        for phi in PHIS[:3]:
            rng = random.Random(n)
            false = sum(bool(find_steps(autoregression(rng, phi, n))) for _ in range(SERIES))
            table.row(
                f"{n} runs, phi {phi}: flat, with a false change", false / SERIES * 100, 5, "%"
            )


def _found_both(rng: random.Random, length: int, around: int) -> bool:
    ends = (around, around + length)
    noise = autoregression(rng, 0.3, 2 * around + length)
    steps = find_steps([value - 10 * (ends[0] <= i < ends[1]) for i, value in enumerate(noise)])
    return len(steps) == 2 and all(
        abs(step.at - end) <= 2 for step, end in zip(steps, ends, strict=True)
    )


def _steady() -> None:
    table.head(f"steady state (MSER-5): {SERIES} slow starts of 6 s in 300 s, AR(1) of 0.6, 2 %")
    rng = random.Random(5)
    series = [_slow_start(rng) for _ in range(SERIES)]
    cuts = [steady_from(values) for values in series]
    known = [(values, cut) for values, cut in zip(series, cuts, strict=True) if cut is not None]
    table.row("a steady part is found", len(known) / SERIES * 100, 95, "%", at_least=True)
    off = [abs(fmean(values[cut:]) - 100) for values, cut in known]
    whole = [abs(fmean(values) - 100) for values in series]
    table.row("error of its mean; bound: of the whole flow's", fmean(off), fmean(whole), "%")
    if find_spec("pymser") is not None:
        equilibrate = import_module("pymser").equilibrate
        with redirect_stdout(io.StringIO()):  # its warnings
            theirs = [
                equilibrate(one, LLM=False, batch_size=5, ADF_test=False, print_results=False)["t0"]
                for one, _ in known
            ]
        # It cuts in the second half as well, where the cut says that nothing was steady.
        both = [(cut, at) for (_, cut), at in zip(known, theirs, strict=True) if at <= 150]
        apart = fmean(abs(cut - at) > 5 for cut, at in both) * 100
        name = f"pymser's cut, where in the first half ({len(both)}): farther than a batch"
        table.row(name, apart, 1, "%")


def _slow_start(rng: random.Random) -> list[float]:
    noise = autoregression(rng, 0.6, 300)
    return [100 * (1 - math.exp(-at / 6)) + 2 * value for at, value in enumerate(noise)]


def _drift() -> None:
    table.head(f"drift over a run: 4 points x 5 repeats, {5 * SERIES:,} runs")
    rng = random.Random(7)
    flat = [_run(rng, 0.0) for _ in range(5 * SERIES)]
    tested = [found for run in flat if (found := trend(run)) is not None]
    false = fmean(p < SIGNIFICANT for p, _ in tested)
    table.row("no drift: one seen, for one figure", false * 100, 5, "%")
    tables = [[((f"flow {n}", "send", "rate"), run) for n, run in enumerate(flat[at : at + 20])]
              for at in range(0, len(flat), 20)]  # fmt: skip
    false = fmean(any(one.is_seen for one in drifts_of(figures)) for figures in tables)
    table.row("no drift: any seen, of 20 figures together", false * 100, 5, "%")
    moved = [trend(_run(rng, 0.1)) for _ in range(SERIES)]
    seen = fmean(found is not None and found[0] < SIGNIFICANT for found in moved)
    table.row("10 % over the run, scatter 2 %: seen", seen * 100, 95, "%", at_least=True)
    if find_spec("pymannkendall") is not None:
        peer = import_module("pymannkendall").seasonal_test
        off = max(
            abs(found[0] - peer([value for _, value in sorted(chain(*run))], 4).p)
            for run in flat[:SERIES]
            if (found := trend(run)) is not None
        )
        table.row("p of pymannkendall's seasonal test: farthest from ours", off, 1e-9, "")


def _run(rng: random.Random, drift: float) -> list[list[tuple[int, float]]]:
    """Return the trials of each point, interleaved, with a drift relative to its level."""
    return [
        [
            (at, 10.0**point * (1 + drift * at / 19) * rng.gauss(1, 0.02))
            for at in range(point, 20, 4)
        ]
        for point in range(4)
    ]


def _fairness() -> None:
    table.head("fairness: two flows whose shares converge, 20 windows, time constants of 1 to 8 s")
    worst = 0.0
    for tau_s in (1.0, 2.0, 4.0, 6.0, 8.0):
        shares = [0.5 + 0.5 * math.exp(-(at + 0.5) / tau_s) for at in range(20)]
        windows = fair_windows([shares, [1 - share for share in shares]], 1.0)
        # Fair from shares of 0.55 on: 0.5 exp(-t / tau) = 0.05.
        worst = max(worst, abs((fair_after_s(windows) or math.inf) - tau_s * math.log(10)))
    # A window is fair if its middle is: its end is a window and a half later at most.
    table.row("time until they are fair, off theory", worst, 1.5, "s")


def _searches() -> None:
    count = 1000
    table.head(f"search: {count:,} links of 1.1 to 900 Mbit/s, queues up to 40 ms, precision 1 %")
    condition = parse_condition("loss_ratio < 0.1%")
    wanted = Search("rate", {"main": "rate"}, 1e6, 1e9, condition, 0.01, 2, 20)
    rng = random.Random(2544)
    tries, off, confirmed = [], [], 0
    for _ in range(count):
        capacity_bps = math.exp(rng.uniform(math.log(1.1e6), math.log(0.9e9)))
        queue_s = rng.uniform(0, 0.04)
        seen: list[Try] = []
        while (rate := next_rate(wanted, seen)) is not None:
            seen.append(_tried(rate, capacity_bps, queue_s))
        found = finding(wanted, seen)
        tries.append(len(seen))
        confirmed += found.confirmed
        # What the queue holds, and the loss that is allowed, pass as well.
        hidden = (1 + queue_s / 5) / (1 - 0.001)
        off.append(max(1 - found.passing_bps / capacity_bps,
                       found.passing_bps / capacity_bps / hidden - 1))  # fmt: skip
    table.row("found and confirmed", confirmed / count * 100, 100, "%", at_least=True)
    table.row("farthest from what passes", max(off) * 100, 1, "%")
    table.row("most tries", max(tries), 13, "")
    plain = bisections(1e6, 1e9, 0.01) + 3
    table.row("tries, median; bound: bisection with confirmation", median(tries), plain, "")


def _bursts() -> None:
    count = 4000
    table.head(f"search: {count:,} times 812 Mbit/s, bursts lose 2 % of a share of the tries")
    wanted = Search(
        "rate", {"main": "rate"}, 1e6, 1e9, parse_condition("loss_ratio < 0.1%"), 0.01, 2, 20
    )
    calm = 7
    for share in (0.0, 0.05, 0.1, 0.2):
        rng = random.Random(812)
        tries = wrong = 0
        for _ in range(count):
            seen: list[Try] = []
            while (rate := next_rate(wanted, seen)) is not None:
                carried_bps = min(rate * (0.98 if rng.random() < share else 1), 812e6)
                seen.append(Try(rate, carried_bps > rate * 0.999, carried_bps))
            found = finding(wanted, seen)
            tries += len(seen)
            wrong += found.confirmed and abs((found.passing_bps or 0) / 812e6 - 1) > 0.02
        table.row(f"{share:.0%}: confirmed, but off by 2 %", wrong / count * 100, 0.5, "%")
        table.row(f"{share:.0%}: tries, mean", tries / count, calm * (2 if share else 1), "")


def _tried(rate_bps: float, capacity_bps: float, queue_s: float) -> Try:
    """Return what a try of 5 s shows of a link whose queue takes so long to send."""
    excess = max(0.0, (rate_bps - capacity_bps) * 5 - queue_s * capacity_bps)
    carried_bps = min(rate_bps, capacity_bps * (1 + queue_s / 5))
    return Try(rate_bps, excess / (rate_bps * 5) < 0.001, carried_bps)
