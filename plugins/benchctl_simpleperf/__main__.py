"""The command ``simpleperf``, and ``python -m benchctl_simpleperf``."""

import sys

from benchctl_simpleperf.simpleperf.cli import main

if __name__ == "__main__":
    sys.exit(main())
