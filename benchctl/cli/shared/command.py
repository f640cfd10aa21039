"""Makes typer commands and groups from our functions, with plain help and full descriptions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from inspect import getdoc
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from benchctl.cli.shared.completion import describe
from benchctl.errors import UsageError


class PlainCommand(TyperCommand):
    """A command."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        # typer puts what must be given in braces, which mean a choice elsewhere.
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        name_formats(self)
        super().format_options(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        return describe(super().shell_complete(ctx, incomplete))


def name_formats(command: Any) -> None:
    """Put the names of all formats into the help: to look for those of plugins takes time."""
    for param in command.params:
        if "{formats}" in (getattr(param, "help", None) or ""):
            from benchctl.report.output.formats import names

            param.help = param.help.replace("{formats}", ", ".join(names()))


class PlainGroup(TyperGroup):
    """A command of commands."""

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        return describe(super().shell_complete(ctx, incomplete))


def command_of(found: typer.Typer | Callable[..., None]) -> Any:
    """Return the command, or group, of a function."""
    if isinstance(found, typer.Typer):
        return get_command(found)
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(cls=PlainCommand)(found)
    return get_command(alone)


def help_of(found: typer.Typer | Callable[..., None]) -> str | None:
    """Return the description of a function or a group."""
    return found.info.help if isinstance(found, typer.Typer) else getdoc(found)


def help_without_command(context: typer.Context) -> None:
    """Show a group's help if no command is given."""
    if context.invoked_subcommand is None:
        print(context.get_help(), file=sys.stderr)
        raise typer.Exit(UsageError.exit_code)


def no_options_before(context: typer.Context) -> None:
    """Reject options of a group's own list before a command, which would not apply to it."""
    given = [
        param.opts[0]
        for param in context.command.params
        if param.name and str(context.get_parameter_source(param.name)).endswith("COMMANDLINE")
    ]
    if given:
        what = f"{given[0]} is an option of the list, not of {context.invoked_subcommand}"
        raise UsageError(what, f"see {context.command_path} {context.invoked_subcommand} --help")


def group(
    help: str,  # noqa: A002
    callback: Callable[..., None] = help_without_command,
) -> typer.Typer:
    """Return a group without commands; ``callback`` is what it does if none is given."""
    return typer.Typer(
        cls=PlainGroup,
        help=help,
        callback=callback,
        invoke_without_command=True,
        add_completion=False,
        rich_markup_mode=None,
    )
