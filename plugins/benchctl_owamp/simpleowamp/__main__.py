"""Runs simpleowamp, as ``python3 -m ...simpleowamp`` or by the path of this file."""

import sys

if not __package__:
    # Run by its path: make the packages importable, after everything that Python itself offers.
    sys.path.append(__file__.rsplit("/", 3)[0])
    __package__ = "benchctl_owamp.simpleowamp"

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
