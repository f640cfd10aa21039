import subprocess
import sys

import pytest

SCRIPT = """
import os, subprocess, sys
from benchctl.tui.priority import at_full_priority, give_way
before = os.nice(0)
give_way()
child = [sys.executable, "-c", "import os; print(os.nice(0))"]
of_child = at_full_priority(subprocess.run, child, capture_output=True, text=True).stdout
print(os.nice(0) - before, int(of_child) - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux only")
def test_the_screens_give_way_and_what_they_start_does_not():
    told = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    assert told.stdout.split() == ["10", "0"]
