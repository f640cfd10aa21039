"""README.md: every command in it runs, but for those that need the world or many minutes."""

import re

import pytest
from docs.documents import Block, blocks_of

DOCUMENT = "../README.md"
NOT_RUN = {
    "benchctl run public-servers": "minutes, on servers of others or in a lab",
    "benchctl run portfolio/": "minutes",
    "benchctl again": "as long as the run before; tests/cli/commands/test_again.py holds it",
    "benchctl lab check portfolio": "docs/lab.md has one, with what it prints",
    "benchctl quick vm.example.org": "a host of others; docs/commands.md measures this one",
    "benchctl tui": "it needs a terminal",
    "make ": "they run these tests",
    "pipx ": "CI installs by the other way that is shown",
    "python3 -m venv": "CI installs so",
    "~/benchctl/bin/": "CI installs so",
}
"""What is not run here, by how it begins, and why."""
SESSION = "$ benchctl run quickstart\n"


def commands():
    """Return all commands, as they are printed, less the comments."""
    lines = [line for block in blocks_of(DOCUMENT, "") for line in block.text.splitlines()]
    shown = [line.removeprefix("$ ").partition("  #")[0].rstrip() for line in lines]
    return [one for one in shown if re.match(r"(benchctl|simpleperf|make|pipx|python3|~/)\b", one)]


def test_what_is_not_run_is_still_in_the_document():
    for beginning in NOT_RUN:
        assert any(one.startswith(beginning) for one in commands()), beginning


@pytest.mark.netns
@pytest.mark.tool("ping", "iperf3")
def test_the_quickstart_is_as_shown_and_each_command_does_what_it_is_for(tmp_path, shell_in):
    shell = shell_in(tmp_path)
    (text,) = (block.text for block in blocks_of(DOCUMENT, "") if block.text.startswith(SESSION))
    shell.check(Block("console", "", re.sub(r"/home/ada/\S*/", "", text), 0))
    ((names, _),) = shell.run(["benchctl runs"])
    name = names.splitlines()[1].split()[0]
    for command in commands():
        if not command.startswith((*NOT_RUN, SESSION[2:-1])):
            ((output, code),) = shell.run([command.replace("RUN", name)])
            assert code == 0, (command, output)
