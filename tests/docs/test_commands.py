"""docs/commands.md against the real command line; and every command that any document names."""

import re
import shlex

import pytest
from docs.documents import DOCS, blocks_of, section, table, text_of, write_files

from benchctl.cli.commands.backends.listing import Usability
from benchctl.cli.main import app
from benchctl.settings import NAMES, UserSettings
from benchctl.tui.preferences import preferences_of

DOCUMENT = "commands.md"
HELP = {"-h", "--help"}
GROUPS = {"benchctl baseline", "benchctl lab", "benchctl store"}
LISTS = {"benchctl backends", "benchctl runs"}
"""Groups that do something without a command, too."""


def inner_of(command):
    """Return the commands of a group, by their names; of any other command, none."""
    context = command.make_context("", [], resilient_parsing=True)
    names = command.list_commands(context) if hasattr(command, "list_commands") else ()
    return {name: command.resolve_command(context, [name])[1] for name in names}


def commands(name="benchctl", command=app):
    """Yield every command with its whole name."""
    yield name, command
    for word, inner in inner_of(command).items():
        yield from commands(f"{name} {word}", inner)


COMMANDS = dict(commands())


def options_of(command):
    options = [param for param in command.params if param.param_type_name == "option"]
    return {name for option in options for name in option.opts} | HELP


def own_section(name):
    """Return what is said of one command, without its subcommands."""
    heading = "##" if name.count(" ") < 2 else "###"
    return section(DOCUMENT, f"{heading} {name}").partition("\n### ")[0]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_described_and_none_is_invented(name):
    items = re.findall(r"^- (`-.*?)(?=: )", own_section(name), flags=re.M | re.S)
    told = {
        word
        for item in items
        for quoted in re.findall(r"`([^`]+)`", item)
        for word in quoted.split()
        if word.startswith("-")
    }
    assert told == options_of(COMMANDS[name]) - HELP


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in GROUPS])
def test_the_synopsis_names_every_argument(name):
    synopsis = re.search(r"^`(.+)`$", own_section(name), flags=re.M)[1]
    command = COMMANDS[name]
    words = [name]
    if options_of(command) - HELP:
        words.append("[OPTIONS]")
    for param in command.params:
        if param.param_type_name == "argument":
            shown = re.sub("[^A-Z|]", "", param.metavar or "") + ("…" if param.nargs == -1 else "")
            words.append(shown if param.required else f"[{shown}]")
    if name == "benchctl":
        words.append("COMMAND")
    assert synopsis == " ".join(words)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in GROUPS])
def test_every_command_has_an_example(name):
    example = re.search(r"^```(?:console|sh)\n(.*?)^```", own_section(name), flags=re.M | re.S)
    assert f"{name} " in example[1].replace("\n", " ")


def test_every_status_of_a_backend_is_described():
    assert [row[0] for row in table(own_section("benchctl backends"))] == [*Usability]


def test_every_value_that_an_option_takes_has_its_name():
    for name, command in COMMANDS.items():
        for param in command.params:
            if param.param_type_name == "option" and not param.is_flag:
                assert f"{param.opts[-1]} {param.metavar}" in text_of(DOCUMENT), name


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
    for page in ["../README.md", *sorted(path.name for path in DOCS.glob("*.md"))]:
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
            options = COMMANDS[path].params
            option = next((param for param in options if word in param.opts), None)
            assert option or word in HELP, f"{document}: {line}"
            words = words if option is None or option.is_flag else words[1:]
        elif path in {"benchctl", *GROUPS, *LISTS} and not word.strip("[]").isupper():
            path = f"{path} {word}"
            assert path in COMMANDS, f"{document}: {line}"
