"""docs/hosts.md: from two servers to the first table, as it is printed, with hosts of a lab."""

import os
import re
import shlex
import sys
from pathlib import Path

import pytest
from docs.documents import blocks_of, commands_of, pattern_of, shape_of, text_of, write_files
from remote_lab import remote_lab

from benchctl.hosts.ssh import ssh

DOCUMENT = "hosts.md"
# Runs are shorter here; the commands are those of the page.
SHORT = ('duration = "2s"', 'duration = "500ms"')
SERVERS = """
[hosts]
here = {}
paris = { services = [{ ssh = 22 }] }
tokyo = { services = [{ ssh = 22 }] }

[routers]
internet = {}

[links]
desk = { between = ["here", "internet"] }
paris = { between = ["paris", "internet"], delay = "5ms", rate = "50Mbit", queue = 100 }
tokyo = { between = ["tokyo", "internet"], delay = "25ms", rate = "20Mbit", queue = 100 }
"""


@pytest.mark.netns
@pytest.mark.tool("ssh", "sshd", "ping")
def test_two_servers_become_a_table_as_it_is_printed(tmp_path):
    write_files(DOCUMENT, tmp_path)
    profile = tmp_path / "hosts.toml"
    assert profile.read_text().count(SHORT[0]) == 2
    profile.write_text(profile.read_text().replace(*SHORT))
    programs = Path(sys.executable).parent
    environment = {
        **os.environ, "BENCHCTL_STORE": "runs.sqlite", "COLUMNS": "100",
        "PATH": os.pathsep.join([str(programs), os.environ["PATH"]]),
    }  # fmt: skip
    with remote_lab(tmp_path, SERVERS) as lab:
        for block in blocks_of(DOCUMENT, "console"):
            for command, expected in commands_of(block):
                script = f"cd {shlex.quote(str(tmp_path))} && exec {command} 2>&1"
                output = lab.run("sh", "-c", script, env=environment).stdout
                assert re.fullmatch(pattern_of(expected), shape_of(output)), (
                    f"$ {command}\n{output}"
                )


def test_each_message_is_one_that_is_printed():
    files = (
        Path(ssh.__file__).with_name(f"{name}.py") for name in ("ssh", "login", "remote", "shell")
    )
    said = "".join(file.read_text() for file in files)
    messages = re.findall(r"^\| `host paris: ([^`]+)`", text_of(DOCUMENT), flags=re.M)
    assert len(messages) == 15
    for message in messages:
        assert re.sub(r" (for|within) \d+ s| before .*|….*", "", message) in said
