"""The examples of the documents, in pieces that tests can run.

The first word after a fence is the language, the second the file that the block is, or is part of:
blocks of one file are joined. ``console`` blocks are sessions: a line that begins with ``$`` is a
command, the others are its output.
"""

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

from waiting import COMMAND_S

# The port that a document's example takes; its test takes a free one.
EXAMPLE_PORT = "18088"
DOCS = Path(__file__).parents[2] / "docs"

_FENCE = re.compile(r"^( *)```(\S*)(?: (\S+))?\n(.*?)^\1```$", re.M | re.S)
# Names of runs, and times of day.
_BY_THE_CLOCK = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}|\d{4}-\d\d-\d\dT[\d:.]+")
# A busy machine adds lines that say so: of what stood still, stepped, scattered or was lost, too.
# So does a run beside another, which may take a port before the server that it was free for.
BUSY = re.compile(
    "the emulator did not keep up on|another run is being measured here|, not the network"
    "|^within the flows: |^the order of trials matters: |outliers?, and counts? like all others"
    r"|attempt \d+, .*Address already in use|^loss of .*: known in steps of "
)
# With its unit, after a name, or alone; and what has no letter at all.
_FIGURE = re.compile(r"[\d.]+[a-z]+|[a-z]+=[\d.]+|[^A-Za-z…$]*")
_UNITS = {
    "B", "KiB", "MiB", "GiB", "s", "ms", "us", "ns", "bit/s", "kbit/s", "Mbit/s", "Gbit/s",
}  # fmt: skip


@dataclass(frozen=True)
class Block:
    language: str
    file: str
    text: str
    line: int


def text_of(document):
    return (DOCS / document).read_text(encoding="utf-8")


def blocks_of(document, *languages):
    """Return the blocks of some languages, in the order of the document."""
    text = text_of(document)
    blocks = [
        Block(match[2], match[3] or "", dedent(match[4]), text.count("\n", 0, match.start()) + 1)
        for match in _FENCE.finditer(text)
    ]
    return [block for block in blocks if block.language in languages]


def write_files(document, directory):
    """Write every file of a document; returns their names."""
    texts = {}
    for block in blocks_of(document, "python", "toml"):
        if block.file:
            before = texts.get(block.file)
            texts[block.file] = block.text if before is None else f"{before}\n\n{block.text}"
    for name, text in texts.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text, encoding="utf-8")
    return list(texts)


def section(document, heading):
    """Return a section's text, up to the next heading of the same or a higher level."""
    level = heading.index(" ")
    inside, fenced, lines = False, False, []
    for line in text_of(document).splitlines(keepends=True):
        fenced ^= line.startswith("```")
        if not fenced and re.match(rf"#{{1,{level}}} ", line):
            inside = line.rstrip() == heading
        elif inside:
            lines.append(line)
    assert lines, f"{document} has no section {heading}"
    return "".join(lines)


def table(text):
    """Return the rows of the first table, as lists of cells, the head left out."""
    lines = text[text.index("\n|") + 1 :].partition("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def names_in(rows, column=0):
    """Return what stands in back quotes in a column."""
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row[column])]


class Shell:
    """A directory in which the sessions of a document are run, with a store of its own."""

    def __init__(self, directory, server, port):
        self.directory = directory
        self._server = server
        self._port = str(port)
        self._environment = {
            **os.environ,
            "BENCHCTL_STORE": "runs.sqlite",
            "COLUMNS": "100",
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        }

    def run(self, commands):
        """Run commands one after the other; returns what each of them printed, and its code."""
        results = []
        code = 0
        for command in commands:
            command = command.replace(EXAMPLE_PORT, self._port)
            if command.startswith("cd "):
                self.directory /= command.removeprefix("cd ")
                results.append(("", 0))
                continue
            if command.startswith("benchctl ") and not set(command) & set("|&;<>$()`"):
                argv = shlex.split(command)
                done = self._server.run(argv, self.directory, self._environment, merged=True)
            else:
                done = self._run_in_bash(f"(exit {code}); {command}")
            code = done.returncode
            results.append((done.stdout, code))
        return results

    def _run_in_bash(self, script):
        return subprocess.run(
            ["bash", "-c", script], cwd=self.directory, env=self._environment, timeout=COMMAND_S,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def check(self, block):
        """Run a session and compare what is printed with what stands there."""
        session = commands_of(block)
        printed = self.run([command for command, _ in session])
        for (command, expected), (output, _) in zip(session, printed, strict=True):
            where = f"line {block.line}: $ {command}\n{output}"
            if expected:
                assert re.fullmatch(pattern_of(expected), shape_of(output)), where
            assert "Traceback" not in output, where
        return printed


def commands_of(block):
    """Return the commands of a session, each with the lines that it prints."""
    session = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            session.append((line[2:], []))
        elif line.startswith("> "):  # a command's next line, as a shell shows it
            command, lines = session.pop()
            session.append((f"{command}\n{line[2:]}", lines))
        else:
            session[-1][1].append(line)
    return session


def shape_of(output):
    """Return what of an output stays the same from run to run: the words of its lines."""
    told = [line for line in output.splitlines() if not BUSY.search(line)]
    lines = [" ".join(_words(line)) for line in told]
    return "".join(f"{line}\n" for line in lines if line)


def pattern_of(lines):
    """Return what an output's shape must match; ``…`` stands for anything, or for any lines."""
    pattern = ""
    for line in lines:
        if line.strip() == "…":
            pattern += r"(?:.*\n)*"
        elif words := _words(line):
            pattern += ".*".join(map(re.escape, " ".join(words).split("…"))) + "\n"
    return pattern


def _words(line):
    """Return the words of a line: no figures, no units, and nothing that is named by the clock."""
    found = []
    for word in _BY_THE_CLOCK.sub("TIME", line).split():
        plain = word.strip("─[]()±,;:")
        if plain not in _UNITS and not _FIGURE.fullmatch(plain):
            found.append(plain)
    return found


def filled(document, marker, lines, write):
    """Compare what stands between two marks with lines; with ``write``, put them there."""
    begin, end = f"<!-- {marker} -->\n", f"<!-- end of {marker} -->"
    head, _, rest = text_of(document).partition(begin)
    old, _, tail = rest.partition(end)
    assert tail, f"{document} has no part {marker}"
    new = "\n".join(lines) + "\n"
    if write:
        (DOCS / document).write_text(f"{head}{begin}{new}{end}{tail}", encoding="utf-8")
        old = new
    assert old == new, f"write it with: pytest {os.environ['PYTEST_CURRENT_TEST']} --update-golden"
