"""These tests need a clock that other work on the machine does not disturb: that of the guest.

On a kernel of its own (`python tests/guest`), where BENCHCTL_GUEST is set; elsewhere they are not
collected. The order of frames has something to show where there are several processors.
"""

import os

collect_ignore_glob = [] if os.environ.get("BENCHCTL_GUEST") else ["test_*.py"]
if os.cpu_count() == 1:
    collect_ignore_glob.append("test_order.py")
