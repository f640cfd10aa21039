"""The commands, and what every one of them shares: errors and exit codes.

Exit codes: 0 done; 1 done, but a trial failed or an expectation was not met; 2 the command line or
the profile is wrong; 3 a tool, peer or plugin that the profile names is not there; 4 internal
error; 130 interrupted, 143 terminated (what was measured is kept).
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from typing import Annotated

import typer

from benchctl import __version__
from benchctl.cli import (
    backends,
    compare,
    doctor,
    export,
    lab,
    plan,
    resume,
    run,
    runs,
    schema,
    show,
    tui,
)
from benchctl.errors import BenchctlError

PLUGINS_VARIABLE = "BENCHCTL_PLUGINS"
INTERNAL = 4
INTERRUPTED = 130

app = typer.Typer(
    name="benchctl",
    help="Measure networks by profile: throughput, delay, loss; every sample kept.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help, at a third of the time
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    plugins: Annotated[
        list[Path] | None,
        typer.Option(
            "--plugin",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="A Python file that offers a backend as BACKEND.",
        ),
    ] = None,
) -> None:
    if plugins:
        # Put into the environment, so that the runner's process finds them too.
        before = os.environ.get(PLUGINS_VARIABLE)
        files = [str(file.resolve()) for file in plugins] + ([before] if before else [])
        os.environ[PLUGINS_VARIABLE] = os.pathsep.join(files)
    if version:
        print(f"benchctl {__version__}")
        raise typer.Exit


for command in (
    run.run, plan.plan, tui.tui, runs.runs, show.show, compare.compare, export.export,
    resume.resume, backends.backends, doctor.doctor, schema.schema,
):  # fmt: skip
    app.command()(command)
app.add_typer(lab.app, name="lab")


def main() -> None:
    """Run the command line; ends the process with its exit code."""
    if sys.stdout is None:
        # The shell closed it (>&-): whoever started us wants no result.
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115
    try:
        app()
    except BenchctlError as error:
        print(f"benchctl: {error.message}", file=sys.stderr)
        if error.hint:
            print(f"  {error.hint}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception:
        traceback.print_exc()
        print("benchctl: this is a bug; please report it with the lines above", file=sys.stderr)
        sys.exit(INTERNAL)
    finally:
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            # The reader has seen enough, and Python would complain again at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
