"""The command ``benchctl``.

``--version`` is answered before anything is imported: scripts ask for it often.
"""

import gc
import os
import sys
from contextlib import suppress


def main() -> None:
    """Run the command line and end the process with its exit code."""
    if sys.argv[1:] == ["--version"]:
        from benchctl import __version__

        with suppress(OSError):  # a full disk is reported by the command line, which checks again
            print(f"benchctl {__version__}", flush=True)
            return
    import signal

    from benchctl.interrupts import interrupt_once

    # Otherwise pydantic searches all installed packages for its plugins, at every start.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        interrupt_once()
        from benchctl.cli.main import main as run

        run()
    except KeyboardInterrupt:
        if sys.stderr is not None:
            print("benchctl: interrupted", file=sys.stderr)
        sys.exit(130)  # as `benchctl.errors.SIGNAL_CODES`, which may not be there yet
    finally:
        # The exit code is known: Python's own end is not to be interrupted any more.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        # Nor to search all that was imported for garbage: an eighth of a short command's time.
        gc.freeze()


if __name__ == "__main__":
    main()
