"""Stalls of this machine: how late a process wakes before which nothing else runs.

The bounds are those of a lab's figures (`lab.verify.strain`): beyond them, no emulator in user
space can keep up here. In a virtual machine, its host is the cause; steal time shows it only while
the processors are busy.
"""

from __future__ import annotations

import gc
import os
import time
from multiprocessing import get_context
from pathlib import Path

import table

from benchctl.lab.emulate.emulator import LATE_NS
from benchctl.lab.verify.strain import LATE_MOST_NS, LATE_RATIO

LASTS_S = 60
PERIOD_NS = 2_000_000
PRIORITY = 90


def main() -> None:
    """Print how often and how late a process wakes on each processor."""
    table.head(f"stalls (real-time priority {PRIORITY}, {LASTS_S} s, a sleep every 2 ms)")
    if os.geteuid() != 0:
        print("left out: real-time priority is root's")
        return
    before = _steal_s()
    processors = sorted(os.sched_getaffinity(0))
    with get_context("fork").Pool(len(processors)) as pool:
        late = pool.map(_sleep, processors, chunksize=1)
    shares = [sum(ns > LATE_NS for ns in each) / len(each) for each in late]
    row = "sleeps that end more than 1 ms late, on the worst processor"
    table.row(row, max(shares) * 100, LATE_RATIO * 100, "%")
    table.row("latest end of a sleep", max(map(max, late)) / 1e6, LATE_MOST_NS / 1e6, "ms")
    print(
        f"{'processor time that the host took meanwhile (steal)':<58}{_steal_s() - before:>12.2f} s"
    )


def _sleep(processor: int) -> list[int]:
    """Return how late each sleep ended, in nanoseconds."""
    os.sched_setaffinity(0, {processor})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    gc.disable()
    late = []
    due_ns = time.monotonic_ns()
    end_ns = due_ns + LASTS_S * 1_000_000_000
    while due_ns < end_ns:
        due_ns += PERIOD_NS
        time.sleep(max(0, due_ns - time.monotonic_ns()) / 1e9)
        late.append(time.monotonic_ns() - due_ns)
    return late


def _steal_s() -> float:
    """Return the processor time that the host ran something else, since the boot (proc(5))."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return int(fields[8]) / os.sysconf("SC_CLK_TCK")
