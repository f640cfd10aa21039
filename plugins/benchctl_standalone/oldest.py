"""Says whether this Python is too old for the tools; every Python since 2.7 can read this."""

import sys

OLDEST = (3, 9)
TOO_OLD = ""
"""What to say after the tool's name, if this Python is too old."""
if sys.version_info < OLDEST:
    least, this = (".".join(map(str, version[:2])) for version in (OLDEST, sys.version_info))
    TOO_OLD = "needs Python " + least + " or newer, and this is Python " + this
