"""Runs simpleperf, as ``python3 -m ...simpleperf`` or by the path of this file."""

import os
import sys

if not __package__:
    # Run by its path: make the packages importable, after everything that Python itself offers.
    sys.path.append(os.path.abspath(__file__).rsplit("/", 3)[0])
    __package__ = "benchctl_simpleperf.simpleperf"

from benchctl_standalone.oldest import TOO_OLD

if __name__ == "__main__":
    if TOO_OLD:
        sys.exit("simpleperf " + TOO_OLD)
    from .cli import main  # An older Python cannot read it.

    sys.exit(main())
