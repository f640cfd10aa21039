"""The man pages are the help, and can be read with and without man."""

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from benchctl.cli.commands.man import ManPage, Section, page_of, plain, roff
from benchctl.cli.main import COMMANDS, app, load
from benchctl.cli.shared.command import command_of

MAN = Path(__file__).parents[3] / "man"
NAMES = ("benchctl", *(f"benchctl-{name}" for name in COMMANDS))


def command_named(name):
    return app if name == "benchctl" else command_of(load(name.removeprefix("benchctl-")))


@cache
def page(name):
    """Return the page of a command, whose module is loaded for it."""
    return page_of(name.replace("-", " ", 1), command_named(name), COMMANDS)


@pytest.mark.parametrize("name", NAMES)
def test_the_pages_that_are_installed_are_the_help(name, request):
    path = MAN / f"{name}.1"
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(roff(page(name)), encoding="utf-8")
    assert path.read_text(encoding="utf-8") == roff(page(name))


def test_no_page_is_of_a_command_that_is_gone():
    assert {path.stem for path in MAN.glob("benchctl*")} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.tool("groff")
def test_man_has_nothing_to_complain_of(name):
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-z"], input=roff(page(name)), capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""


def test_what_roff_would_obey_is_shown():
    odd = ManPage("x", "y", (Section("Odd", (".de Evil", "'x", r"C:\new --flag")),))
    assert roff(odd).splitlines()[4:] == [
        r"\&.de Evil", ".PP", r"\&'x", ".PP", r"C:\enew \-\-flag",
    ]  # fmt: skip


def inner_of(name, command):
    """Yield a command and those within it, with their whole names."""
    context = command.make_context("", [], resilient_parsing=True)
    yield name, command
    if name != "benchctl" and hasattr(command, "list_commands"):
        for word in command.list_commands(context):
            yield from inner_of(f"{name} {word}", command.resolve_command(context, [word])[1])


@pytest.mark.parametrize("name", NAMES)
def test_every_option_and_argument_is_described(name):
    """The documents show tasks: options stand in the help alone, so it has them all."""
    text = " ".join(plain(page(name)).split())
    letters = text.replace(" ", "")  # lines also end at hyphens
    for whole, inner in inner_of(name.replace("-", " ", 1), command_named(name)):
        assert f"{whole} " in f"{text} ", whole
        for param in inner.params:
            assert param.help, (whole, param.name)
            for told in param.help.split("{formats}"):  # filled in when it is shown
                assert told.replace(" ", "") in letters, (whole, param.name)
            if param.param_type_name == "argument":
                assert re.sub("[^A-Z|]", "", param.metavar) in text, (whole, param.name)
            elif param.is_flag:
                assert ", ".join(sorted(param.opts, key=len)) in text, (whole, param.name)
            else:
                assert f"{param.opts[-1]} {param.metavar}" in text, (whole, param.name)


def test_a_page_has_every_option_and_subcommand():
    text = plain(page("benchctl-lab"))
    assert "benchctl lab exec [OPTIONS] TOPOLOGY HOST COMMAND..." in text
    assert text.count("--emulator NAME") == 3
    assert "--set KEY=VALUE" in plain(page("benchctl-run"))
    assert all(len(line) <= 80 for line in plain(page("benchctl-run")).splitlines())


def test_help_shows_the_page_of_a_topic(benchctl):
    done = benchctl("help", "run")
    assert (done.returncode, done.stdout) == (0, plain(page("benchctl-run")))
    assert re.search(r"^COMMANDS\n    run\n", benchctl("help").stdout, flags=re.M)


def test_help_about_nothing_that_there_is_names_the_nearest(benchctl):
    done = benchctl("help", "rnu")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == 'benchctl: no help about "rnu"\n  did you mean "run"?\n'
