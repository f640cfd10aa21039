"""Titles, labels and a tool's complaints are shown, whatever is in them; no reader obeys them."""

import csv
import io
import json
import re
import sqlite3
import subprocess
from contextlib import closing
from html.parser import HTMLParser
from xml.etree import ElementTree

import pyarrow.parquet
import pytest
from cli.conftest import TOY, Benchctl
from markdown_it import MarkdownIt
from PIL import Image
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from report.exports.test_exports_of_samples import split

from benchctl.report.figures.figure import PictureKind

# With all that no parser of XML takes, and all that some reader takes for an end of a line.
STRANGE = "".join(map(chr, (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, 0xFFFE, 0xFFFF)))
EVIL = f"\x1b]0;PWNED\x07\x1b[2J\x9b31m\u202elive\r[red]m[/red]\nforged: ok{STRANGE}"
IN_TOML = "".join(c if 0x20 <= ord(c) < 0x7F else f"\\u{ord(c):04x}" for c in EVIL)
PROFILE = f"""
title = "{IN_TOML}"
description = "{IN_TOML}"
[flows.main]
backend = "toy"
[axes.kind]
values = [{{ label = "fine{IN_TOML}", plan = "ok" }}, {{ label = "bad{IN_TOML}", plan = "fail" }}]
[run]
attempts = 1
"""
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|^forged", re.MULTILINE)


def set_up(benchctl):
    """Let a tool say evil things, in a profile of evil names."""
    plugin = benchctl.directory / "toy.py"
    evil = "".join(f"\\\\{byte:03o}" for byte in EVIL.encode())
    plugin.write_text(TOY.read_text().replace("echo no luck today", f"printf '{evil}\\\\n'"))
    benchctl.environment["BENCHCTL_PLUGINS"] = str(plugin)
    benchctl.profile(PROFILE, "foreign\x1b[2J.toml")
    return benchctl


@pytest.fixture
def foreign(benchctl):
    return set_up(benchctl)


@pytest.fixture(scope="module")
def measured(tmp_path_factory, fork_server):
    """The same with a run, which no test changes."""
    benchctl = set_up(Benchctl(tmp_path_factory.mktemp("foreign"), server=fork_server))
    benchctl("run", "-q", "foreign\x1b[2J.toml")
    return benchctl


def assert_shown(text):
    assert OBEYED.findall(text) == []
    assert "PWNED" in text


def test_what_commands_print_is_shown_and_not_obeyed(foreign):
    assert_shown(foreign("plan", "foreign\x1b[2J.toml").stdout)
    run = foreign("run", "foreign\x1b[2J.toml")
    assert run.returncode == 1
    assert_shown(run.stdout)
    assert_shown(run.stderr)
    for command in (
        ("show",), ("show", "--trials"), ("show", "--profile"),
        ("export", "--format", "md"), ("export", "--format", "csv"), ("export", "--samples"),
        ("export", "--format", "json"), ("export", "--format", "jsonl"),
    ):  # fmt: skip
        result = foreign(*command)
        assert result.returncode == 0, result.stderr
        assert_shown(result.stdout)
    for command in (("runs",), ("compare", "last", "last")):
        assert OBEYED.findall(foreign(*command).stdout) == []


def test_a_file_of_results_is_shown_and_not_obeyed(foreign):
    foreign("run", "-q", "foreign\x1b[2J.toml", "-o", "table.md")
    assert_shown((foreign.directory / "table.md").read_text())


def read_html(text):
    HTMLParser().feed(text)
    assert text.startswith("<!DOCTYPE html>")


PARSERS = {
    "svg": ElementTree.fromstring,
    "junit": ElementTree.fromstring,
    "html": read_html,
    "csv": lambda text: assert_even([*csv.reader(io.StringIO(text), strict=True)]),
    "spreadsheet": lambda text: assert_even([*csv.reader(io.StringIO(text), strict=True)]),
    "json": json.loads,
    "jsonl": lambda text: [json.loads(line) for line in text.split("\n") if line],
}


def assert_even(rows):
    assert len({len(row) for row in rows}) == 1


def read_markdown(path):
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(path.read_text())
    assert not [token for token in tokens if token.type == "html_block"]
    heads = sum(token.type == "th_open" for token in tokens)
    rows = sum(token.type == "tr_open" for token in tokens)
    cells = sum(token.type == "td_open" for token in tokens)
    assert heads
    assert cells == heads * (rows - 1)


def read_pdf(path):
    """Find the objects of a file by its table of them (ISO 32000, 7.5.4)."""
    data = path.read_bytes()
    table = data[int(data.rpartition(b"startxref")[2].split()[0]) :].partition(b"trailer")[0]
    places = re.findall(rb"^(\d{10}) \d{5} n", table, re.MULTILINE)
    assert len(places) > 5
    assert all(re.match(rb"\d+ 0 obj", data[int(place) :]) for place in places)


def read_sqlite(path):
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def read_influx(path):
    lines = path.read_text().splitlines()
    assert lines
    for line in lines:
        split(line)


FILES = {
    "md": read_markdown,
    "openmetrics": lambda path: [*text_string_to_metric_families(path.read_text())],
    "influx": read_influx,
    "parquet": lambda path: pyarrow.parquet.read_table(path).validate(full=True),
    "sqlite": read_sqlite,
    "png": lambda path: Image.open(path).load(),
    "pdf": read_pdf,
}


@pytest.mark.parametrize("form", FILES)
def test_a_file_of_other_forms_is_read_whatever_names_and_tools_say(measured, form):
    path = measured.directory / f"file.{form}"
    words = ("plot",) if form in ("png", "pdf") else ("export", "--format", form)
    result = measured(*words, "-o", path.name)
    assert result.returncode == 0, result.stderr
    FILES[form](path)


@pytest.mark.parametrize("kind", PictureKind)
def test_a_picture_of_any_kind_is_well_formed_whatever_names_say(measured, kind):
    measured("plot", "--kind", kind, "-o", f"{kind}.svg")
    for file in measured.directory.glob(f"{kind}*.svg"):
        text = file.read_bytes().decode()
        assert OBEYED.findall(text) == []
        ElementTree.fromstring(text)


def test_an_error_that_quotes_a_file_is_one_line(foreign):
    foreign.profile("titel = 1", "two\nlines\x1b[2J.toml")
    error = foreign("plan", "two\nlines\x1b[2J.toml").stderr
    assert r"two\nlines\x1b[2J.toml:1: " in error
    assert OBEYED.findall(error) == []


def test_a_terminal_gets_no_control_characters_but_those_of_the_progress(foreign):
    foreign.environment["TERM"] = "xterm"
    _, said = foreign.at_a_terminal("run", "foreign\x1b[2J.toml", stdout=subprocess.DEVNULL)
    text = re.sub("\x1b\\[[0-9;]*m", "", said)
    assert r"\x1b]0;PWNED\x07" in text
    assert "[red]m[/red]" in text
    for obeyed in ("\x1b]0;", "\x07", "\x1b[2J", "\x9b", "\u202e"):
        assert obeyed not in text


@pytest.mark.parametrize(
    "screen",
    [
        ("foreign\x1b[2J.toml",),
        ("--screen", "summary", "last"),
        ("--replay", "last"),
        ("--screen", "history"),
    ],
)
def test_a_picture_of_a_screen_is_shown_and_well_formed(measured, screen):
    for name in ("screen.svg", "screen.txt"):
        result = measured("tui", *screen, "--screenshot", name, "--size", "200x60")
        assert result.returncode == 0, result.stderr
        text = (measured.directory / name).read_text()
        assert OBEYED.findall(text) == []
    ElementTree.fromstring((measured.directory / "screen.svg").read_text())
