import platform
import re
import subprocess
import sys

import pytest

SCRIPT = """
import os, subprocess, sys
from benchctl.hosts.priority import at_full_priority, give_way

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
    version = tuple(map(int, re.findall(r"\d+", platform.release())[:2]))
    if version >= (6, 12) and before[1:]:
        assert int(after[1]) == 100_000_000
