"""The command ``benchctl``.

``--version`` is answered before anything is imported: scripts ask for it often.
"""

import os
import sys
from contextlib import suppress


def main() -> None:
    """Run the command line and end the process with its exit code."""
    if sys.argv[1:] == ["--version"]:
        from benchctl import __version__

        with suppress(OSError):  # a full disk is reported by the command line, which asks again
            print(f"benchctl {__version__}", flush=True)
            return
    # Else pydantic looks through all installed packages for plugins of its own, at every start.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from benchctl.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
