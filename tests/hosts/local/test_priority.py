import os
import platform
import re
import subprocess
import sys

import pytest

from benchctl.hosts.local.slices import LONGEST_NS, SHORTEST_NS

KNOWS_SLICES = tuple(map(int, re.findall(r"\d+", platform.release())[:2])) >= (6, 12)

SCRIPT = """
import os, subprocess, sys
from benchctl.hosts.local.priority import at_full_priority, give_way

def shares():
    return [os.nice(0), *(line.split()[-1] for line in open("/proc/thread-self/sched")
                          if line.startswith("se.slice"))]

before = shares()
give_way()
print(*before)
print(*shares())
print(*at_full_priority(shares))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux only")
def test_who_looks_on_gives_way_and_what_it_starts_does_not():
    told = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    before, after, started = (line.split() for line in told.stdout.splitlines())
    assert started == before
    assert int(after[0]) == min(int(before[0]) + 10, 19)  # the kernel gives way no further
    if KNOWS_SLICES and before[1:]:
        assert int(after[1]) == LONGEST_NS


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux only")
def test_an_ordinary_user_gets_short_slices_and_keeps_its_niceness():
    script = (
        "import os, pathlib\nfrom benchctl.hosts.local.slices import SHORTEST_NS, ask_for_slices\n"
        "os.nice(3)\nask_for_slices(SHORTEST_NS, os.nice(0))\nprint(os.nice(0))\n"
        "print(pathlib.Path('/proc/thread-self/sched').read_text())\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    niceness, _, entries = told.stdout.partition("\n")
    assert int(niceness) == min(os.nice(0) + 3, 19)
    if KNOWS_SLICES and "se.slice" in entries:
        assert re.search(rf"^se\.slice\b.* {SHORTEST_NS}$", entries, re.MULTILINE)
