"""The command ``simpleowamp``, and ``python -m benchctl_owamp``."""

import sys

from benchctl_owamp.simpleowamp.cli import main

if __name__ == "__main__":
    sys.exit(main())
