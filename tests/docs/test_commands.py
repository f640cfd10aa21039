"""docs/commands.md against the real command line; and every command that any document names."""

import re
import shlex
from functools import cache

import pytest
from docs.documents import DOCS, blocks_of, section, table, text_of, write_files

from benchctl.cli.commands.backends.listing import Usability
from benchctl.cli.main import app
from benchctl.settings import NAMES, UserSettings
from benchctl.tui.preferences import preferences_of

DOCUMENT = "commands.md"
HELP = {"-h", "--help"}
GROUPS = {
    "benchctl agent",
    "benchctl archive",
    "benchctl baseline",
    "benchctl fleet",
    "benchctl lab",
    "benchctl schedule",
    "benchctl store",
}
LISTS = {"benchctl backends", "benchctl runs"}
"""Groups that do something without a command, too."""


def inner_of(command):
    """Return the commands of a group, by their names; of any other command, none."""
    context = command.make_context("", [], resilient_parsing=True)
    names = command.list_commands(context) if hasattr(command, "list_commands") else ()
    return {name: command.resolve_command(context, [name])[1] for name in names}


def below(name, command):
    """Yield a command and all below it, each with its whole name."""
    yield name, command
    for word, inner in inner_of(command).items():
        yield from below(f"{name} {word}", inner)


@cache
def commands():
    """Return every command by its whole name: only tests that use them load them all."""
    return dict(below("benchctl", app))


def own_section(name):
    """Return what is said of one command, without its subcommands."""
    heading = "##" if name.count(" ") < 2 else "###"
    return section(DOCUMENT, f"{heading} {name}").partition("\n### ")[0]


def test_every_command_has_an_example():
    for name in commands().keys() - GROUPS:
        example = re.search(r"^```(?:console|sh)\n(.*?)^```", own_section(name), flags=re.M | re.S)
        assert f"{name} " in example[1].replace("\n", " ")


def test_every_status_of_a_backend_is_described():
    assert [row[0] for row in table(own_section("benchctl backends"))] == [*Usability]


def test_what_is_shown_is_what_is_printed(tmp_path, shell_in):
    write_files(DOCUMENT, tmp_path)
    shell = shell_in(tmp_path)
    for block in blocks_of(DOCUMENT, "console"):
        shell.check(block)
    assert (tmp_path / "profile.schema.json").read_text().startswith("{")


def test_the_settings_that_are_shown_are_all_that_there_are(tmp_path):
    write_files(DOCUMENT, tmp_path)
    shown = UserSettings(tmp_path / "settings.toml")
    preferences_of(shown)
    assert {name for name in NAMES if shown.find(name).origin != "default"} == set(NAMES)


def sentences():
    """Yield every command line of benchctl in any document: in sessions, scripts and texts."""
    pages = sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))
    for page in ["../README.md", *pages]:
        lines = re.findall(r"`(benchctl [^`…]+)`", text_of(page))
        for block in blocks_of(page, "console", "sh", ""):
            found = re.findall(r"^(?:\$ |.*\| )?(benchctl [a-z-].+)", block.text, flags=re.M)
            lines += [re.split(r"[|&>]|  +#", line)[0] for line in found]
        for line in lines:
            yield page, " ".join(line.split())


@pytest.mark.parametrize(("document", "line"), sorted(set(sentences())))
def test_no_document_names_a_command_or_option_that_is_not_there(document, line):
    words = shlex.split(line.partition(" -- ")[0])
    path, words = words[0], words[1:]
    while words:
        word, *words = words
        if word.startswith("-") and word != "-":
            options = commands()[path].params
            option = next((param for param in options if word in param.opts), None)
            assert option or word in HELP, f"{document}: {line}"
            words = words if option is None or option.is_flag else words[1:]
        elif path in {"benchctl", *GROUPS, *LISTS} and not word.strip("[]").isupper():
            path = f"{path} {word}"
            assert path in commands(), f"{document}: {line}"
