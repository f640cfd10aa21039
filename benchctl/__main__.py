"""The command ``benchctl``.

``--version`` is answered before anything is imported: scripts ask for it often.
"""

import sys


def main() -> None:
    """Run the command line and end the process with its exit code."""
    if sys.argv[1:] == ["--version"]:
        from benchctl import __version__

        print(f"benchctl {__version__}")
        return
    from benchctl.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
