"""The commands, and what every one of them shares: errors and exit codes.

Exit codes: 0 done; 1 done, but a trial failed or an expectation was not met; 2 the command line or
the profile is wrong; 3 a tool, peer or plugin that the profile names is not there; 4 internal
error; 130 interrupted, 143 terminated (what was measured is kept).
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from benchctl import __version__
from benchctl.cli import completion, options, streams
from benchctl.cli.backends import backends
from benchctl.cli.compare import compare
from benchctl.cli.doctor import doctor
from benchctl.cli.export import export
from benchctl.cli.lab import lab
from benchctl.cli.options import InOrder
from benchctl.cli.plan import plan
from benchctl.cli.resume import resume
from benchctl.cli.run import run
from benchctl.cli.runs import runs
from benchctl.cli.schema import schema
from benchctl.cli.show import show
from benchctl.cli.store import store
from benchctl.cli.tui import tui
from benchctl.errors import BenchctlError, NoReaderError, StoreDamagedError, surroundings
from benchctl.visible import visible

PLUGINS_VARIABLE = "BENCHCTL_PLUGINS"
COMMANDS = (
    run, plan, tui, runs, show, compare, export, resume, backends, doctor, schema, store, lab
)  # fmt: skip
INTERNAL = 4
INTERRUPTED = 130


def _print_completion(context: click.Context, _: click.Parameter, shell: str | None) -> None:
    if shell is None:
        return
    print(completion.script(context.command, shell))
    context.exit()


class _App(InOrder):
    """All commands. What a damaged store makes of one is no bug."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except StoreDamagedError as error:
            raise options.diagnosis(ctx) or error from error
        except (BenchctlError, click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            if not surroundings(error) and (found := options.diagnosis(ctx)):
                raise found from error
            raise


@click.group(
    cls=_App,
    commands=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, message="benchctl %(version)s", help="Print the version.")
@click.option(
    "--plugin",
    "plugins",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    metavar="FILE",
    help="A Python file that defines a backend as BACKEND; repeatable.",
)
@click.option(
    "--completion",
    type=click.Choice(["bash", "zsh", "fish"]),
    metavar="SHELL",
    is_eager=True,
    expose_value=False,
    callback=_print_completion,
    help="Print the completion script for bash, zsh or fish.",
)
def app(plugins: Sequence[Path]) -> None:
    """Measure networks by profile: throughput, delay, loss; every sample kept."""
    if plugins:
        # Put into the environment, so that the runner's process finds them too.
        before = os.environ.get(PLUGINS_VARIABLE)
        files = [str(file.resolve()) for file in plugins] + ([before] if before else [])
        os.environ[PLUGINS_VARIABLE] = os.pathsep.join(files)


def _look_in_absolute_places() -> None:
    """Let no program be found in the current directory, by us or by what we start.

    An element of PATH that is empty or relative is a place in that directory (POSIX, XBD 8.3), and
    so is a PATH of nothing.
    """
    places = os.environ.get("PATH", "").split(os.pathsep)
    absolute = [place for place in places if Path(place).is_absolute()]
    os.environ["PATH"] = os.pathsep.join(absolute) or os.defpath


def main() -> None:
    """Run the command line; ends the process with its exit code."""
    _look_in_absolute_places()
    streams.prepare()
    code = _end_of(lambda: app.main(prog_name="benchctl", standalone_mode=False))
    # What is still in the buffer may be the first that stdout does not take.
    sys.exit(_end_of(sys.stdout.flush) or code)


def _end_of(step: Callable[[], object]) -> int:
    """Take a step, report what goes wrong, and return the exit code."""
    try:
        code = step()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except NoReaderError as error:
        return error.exit_code
    except BenchctlError as error:
        print(f"benchctl: {visible(error.message)}", file=sys.stderr)
        if error.hint:
            print(f"  {visible(error.hint)}", file=sys.stderr)
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except Exception as error:
        if what := surroundings(error):
            print(f"benchctl: {visible(what)}", file=sys.stderr)
            return INTERNAL
        traceback.print_exc()
        print("benchctl: this is a bug; please report it with the lines above", file=sys.stderr)
        return INTERNAL
    return code if isinstance(code, int) else 0
