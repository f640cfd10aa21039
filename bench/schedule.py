"""What a schedule tells of a mesh over months, simulated: ``python bench schedule``.

60 hosts, each pair one trial each six hours, for 90 days. Each path has a level, a cycle of a day
of up to 10 %, and noise of 3 %; 5 % of the trials are disturbed and run at half the rate. On some
days, one path loses a fifth of its rate for good.
"""

from __future__ import annotations

import math
import random
import time
from statistics import median
from types import SimpleNamespace

import table
from msgspec.structs import replace

from benchctl.analysis.runs.summary import SummaryRow
from benchctl.analysis.statistics import spread
from benchctl.metrics import Vocabulary
from benchctl.schedule.judge import MOST_RUNS, news_of_levels

HOSTS, DAYS, RUNS_A_DAY = 60, 90, 4
PAIRS = HOSTS * (HOSTS - 1)
BEGIN = 1_795_219_200.0
"""2026-11-21, in Unix time."""
# From then on there are enough runs to judge, one path changes each tenth day.
FIRST_DROP, DROP_DAYS = 20, 10


def main() -> None:
    rng = random.Random(60)
    paths = [(rng.uniform(5e8, 1e9), rng.uniform(0, 0.1), rng.uniform(0, 2 * math.pi))
             for _ in range(PAIRS)]  # fmt: skip
    points = [{"pair": f"h{n // (HOSTS - 1)} h{n % (HOSTS - 1)}"} for n in range(PAIRS)]
    drops = {
        rng.randrange(PAIRS): day * RUNS_A_DAY for day in range(FIRST_DROP, DAYS - 2, DROP_DAYS)
    }
    runs, tables, told = [], [], []
    found: dict[int, int] = {}
    false, times_s = 0, []
    for number in range(DAYS * RUNS_A_DAY):
        began = BEGIN + number * 86_400 / RUNS_A_DAY + rng.uniform(0, 600)
        rows = []
        for pair, (level, cycle, phase) in enumerate(paths):
            value = level * (1 + cycle * math.sin(2 * math.pi * began / 86_400 + phase))
            value *= rng.gauss(1, 0.03) * (0.5 if rng.random() < 0.05 else 1)
            value *= 0.8 if number >= drops.get(pair, math.inf) else 1
            rows.append(
                SummaryRow(points[pair], "main", "send", "throughput_bps", [value], spread([value]))
            )
        runs.append(SimpleNamespace(name=f"r{number}", started_time=began, vocabulary=Vocabulary()))
        tables.append(rows)
        begun_s = time.process_time()
        news = list(news_of_levels(runs[-MOST_RUNS:], tables[-MOST_RUNS:], told))  # type: ignore[arg-type]
        times_s.append(time.process_time() - begun_s)
        told += [replace(one, time=began) for one in news]
        for event in news:
            pairs = [points.index(figure["point"]) for figure in event.figures]
            real = [pair for pair in pairs if number >= drops.get(pair, math.inf)]
            for pair in real:
                found.setdefault(pair, number - drops[pair] + 1)
            false += not real
    table.head(f"a mesh of {HOSTS} hosts over {DAYS} days, {RUNS_A_DAY} runs a day, 5 % disturbed")
    table.row("false events a week", false / (DAYS / 7), 1, "", at_least=False)
    in_a_day = sum(found.get(pair, math.inf) <= RUNS_A_DAY for pair in drops)
    table.row(f"of {len(drops)} real drops of 20 %, found within a day", in_a_day, len(drops), "",
              at_least=True)  # fmt: skip
    print(
        f"judging a run: median {median(times_s):.1f} s of a processor, most {max(times_s):.1f} s"
    )
