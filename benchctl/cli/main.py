"""The commands, and what every one of them shares: errors and exit codes.

Exit codes:

- 0: done
- 1: done, but a trial failed or an expectation was not met
- 2: the command line or the profile is wrong
- 3: a tool, peer or plugin that the profile names is not there
- 4: the store or a result cannot be read or written, or benchctl has a fault
- 130, 143: interrupted, terminated; what was measured is kept
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, MutableMapping
from importlib import import_module
from keyword import iskeyword
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.main import get_command

from benchctl import __version__
from benchctl.cli.shared import completion, streams
from benchctl.cli.shared.command import (
    PlainCommand,
    PlainGroup,
    command_of,
    help_of,
    help_without_command,
)
from benchctl.errors import SIGNAL_CODES, BenchctlError, NoReaderError, UsageError, surroundings
from benchctl.visible import visible

_INTERRUPTED = SIGNAL_CODES[signal.SIGINT]

COMMANDS = (
    "run", "quick", "init", "plan", "check", "tui", "runs", "show", "compare", "baseline", "trend",
    "schedule", "archive", "plot", "report", "import", "export", "packets", "resume", "again",
    "serve", "fleet", "agent", "backends", "doctor", "schema", "settings", "store", "lab", "help",
)  # fmt: skip


def load(name: str) -> Any:
    """Import the function, or the group, of a command."""
    if iskeyword(name):
        name += "_"
    return getattr(import_module(f"benchctl.cli.commands.{name}"), name)


class _Commands(PlainGroup):
    """All commands. Each is a function or a group of its name, in a module of its name."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        # typer lists these, and knows by them what a wrong name may mean.
        self.commands: MutableMapping[str, Any] = dict.fromkeys(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the list entry of a command: building the options of all takes too long."""
        return (
            PlainCommand(cmd_name, help=help_of(load(cmd_name))) if cmd_name in COMMANDS else None
        )

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, found, rest = super().resolve_command(ctx, args)
        return name, command_of(load(args[0])) if found else None, rest


def _prepare(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="With --version: what of Python and extras is there.")
    ] = False,
    plugins: Annotated[
        list[Path],
        typer.Option(
            "--plugin",
            exists=True,
            dir_okay=False,
            metavar="FILE",
            default_factory=list,
            show_default=False,
            help="A Python file that defines BACKEND, EXPORTER or IMPORTER; repeatable.",
            autocompletion=completion.files,
        ),
    ],
    shell: Annotated[
        Literal["bash", "zsh", "fish"] | None,
        typer.Option(
            "--completion",
            metavar="SHELL",
            help="Print the completion script for bash, zsh or fish.",
        ),
    ] = None,
) -> None:
    if version or shell:
        print(f"benchctl {__version__}" if shell is None else completion.SCRIPTS[shell])
        if version and verbose:
            from benchctl.cli.shared.versions import version_lines

            print(*version_lines(), sep="\n")
        raise typer.Exit
    if verbose:
        raise UsageError("--verbose belongs to --version, or to a command")
    help_without_command(context)
    if plugins:
        from benchctl.plugins import use_files

        use_files(plugins)


app = get_command(
    typer.Typer(
        cls=_Commands,
        help="Run network benchmarks from TOML profiles and store every sample.",
        callback=_prepare,
        invoke_without_command=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        add_completion=False,
        rich_markup_mode=None,
    )
)


def _look_in_absolute_places() -> None:
    """Prevent programs in the current directory from being found, here and in child processes.

    An empty or relative element of PATH is a place in that directory (POSIX, XBD 8.3), and so is an
    empty PATH.
    """
    places = os.environ.get("PATH", "").split(os.pathsep)
    absolute = [place for place in places if Path(place).is_absolute()]
    os.environ["PATH"] = os.pathsep.join(absolute) or os.defpath


def _agree_on_colour() -> None:
    """Say what CLICOLOR says by the variables that Rich and Textual know.

    See bixense.com/clicolors, no-color.org and force-color.org; NO_COLOR goes before all others.
    """
    if os.environ.get("CLICOLOR_FORCE", "0") not in ("", "0"):
        os.environ.setdefault("FORCE_COLOR", "1")
    elif os.environ.get("CLICOLOR") == "0" and not os.environ.get("FORCE_COLOR"):
        os.environ.setdefault("NO_COLOR", "1")


def main() -> None:
    """Run the command line; ends the process with its exit code."""
    _look_in_absolute_places()
    _agree_on_colour()
    streams.prepare()
    completion.prepare()
    code = _end_of(_command)
    # The text in the buffer may be the first that stdout rejects.
    sys.exit(_end_of(sys.stdout.flush) or code)


def _command() -> object:
    code = app.main(prog_name="benchctl", standalone_mode=False)
    if code == _INTERRUPTED:  # which typer makes of it, without a word
        raise KeyboardInterrupt
    return code


def _end_of(step: Callable[[], object]) -> int:
    """Run a step, report its error, and return the exit code."""
    try:
        code = step()
    except SystemExit as end:
        code = end.code
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        hint = f"see {context.command_path} --help" if context else ""
        return _report(error.format_message(), hint, error.exit_code)
    except NoReaderError as error:
        code = error.exit_code
    except BenchctlError as error:
        return _report(error.message, error.hint, error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return _report("interrupted", "", _INTERRUPTED)
    except Exception as error:
        if what := surroundings(error):
            return _report(what, "", BenchctlError.exit_code)
        import traceback

        traceback.print_exc()
        bug = "this is a bug; please report it with the lines above"
        return _report(bug, "", BenchctlError.exit_code)
    return code if isinstance(code, int) else 0


def _report(message: str, hint: str, exit_code: int) -> int:
    print(f"benchctl: {visible(message)}", file=sys.stderr)
    if hint:
        print(f"  {visible(hint)}", file=sys.stderr)
    return exit_code
