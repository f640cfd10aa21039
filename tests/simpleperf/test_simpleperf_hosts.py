"""simpleperf between two hosts: the commands as they are printed, and link-local addresses."""

import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from simpleperf.simpleperf_harness import COMMAND, client_program, server_program
from simpleperf.simpleperf_hosts import two_hosts
from waiting import DEADLINE_S

pytestmark = pytest.mark.netns

PAGE = Path(__file__).parents[2] / "docs" / "simpleperf-protocol.md"


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    with two_hosts(tmp_path_factory.mktemp("hosts")) as both:
        yield both


def printed_commands():
    """Return the page's first commands: the server's, the client's, and the server's by ssh."""
    block = re.search(r"^```\n(.*?)^```$", PAGE.read_text(), re.M | re.S)[1]
    return [line.partition("#")[0].strip() for line in block.splitlines()]


@contextmanager
def shell(host, command, path):
    """Run a line in a shell on a host until the end of the block."""
    process = subprocess.Popen(
        [*host.prefix, "bash", "-c", f"exec {command}" if "|" not in command else command],
        stdout=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "PATH": path, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        yield process
    finally:
        os.killpg(process.pid, 15)
        process.communicate(timeout=DEADLINE_S)


@pytest.mark.parametrize("by_ssh", [False, True], ids=["by hand", "by ssh"])
def test_the_printed_commands_measure_between_two_hosts(hosts, tmp_path, by_ssh):
    server, client = hosts
    serve, measure, send = printed_commands()
    bin_directory = tmp_path / "bin"
    bin_directory.mkdir()
    simpleperf = bin_directory / "simpleperf"
    simpleperf.write_text(f'#!/bin/sh\nexec {" ".join(COMMAND)} "$@"\n')
    ssh = bin_directory / "ssh"
    ssh.write_text(
        f'#!/bin/sh\n[ "$1" = server ] && shift && exec nsenter --target={server.pid} --net "$@"\n'
    )
    for program in (simpleperf, ssh):
        program.chmod(0o755)
    (bin_directory / "python3").symlink_to(sys.executable)
    path = f"{bin_directory}:{os.environ['PATH']}"
    with shell(client if by_ssh else server, send if by_ssh else serve, path) as process:
        assert "listening on 0.0.0.0" in process.stdout.readline()
        done = client.run(
            "bash", "-c", measure.replace("-t 5", "-t 0.5").replace("-i 1", "-i 0.1"),
            env={**os.environ, "PATH": path},
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "bit/s" in done.stdout


@pytest.mark.parametrize("protocol", [(), ("-u",)], ids=["tcp", "udp"])
@pytest.mark.parametrize("direction", [(), ("-R",)], ids=["send", "receive"])
def test_link_local_addresses_measure_and_their_scope_counts(hosts, protocol, direction):
    server, client = hosts
    command = (*server.prefix, *COMMAND)
    with server_program("-b", "::", command=command) as (_, port):
        done = client_program(
            port, "-I", f"{server.link_local}%eth0", "-n", "10KB", *protocol, *direction, "--json",
            command=(*client.prefix, *COMMAND),
        )  # fmt: skip
    assert done.returncode == 0, done.stdout
    [figures] = json.loads(done.stdout)["directions"].values()
    assert figures["bytes_received"] >= 10_000


def test_a_server_stops_sending_to_a_host_that_has_gone_without_a_word(hosts):
    server, client = hosts
    command = (*server.prefix, *COMMAND)
    flags = ("--one-off", "-b", "0.0.0.0", "--idle", "1", "-4")
    with server_program(*flags, command=command) as (serving, port):
        asked = ("-I", server.address, "-p", str(port), "-u", "-R", "-t", "3600", "-i", "0.1")
        measuring = subprocess.Popen(
            [*client.prefix, *COMMAND, "-c", *asked, "--events"], stdout=subprocess.PIPE, text=True
        )
        with measuring:
            try:
                assert any('"interval"' in line for line in measuring.stdout)
                # From now on no frame reaches the client, and no answer comes from it.
                gone = f"neighbour replace {client.address} lladdr 02:00:00:00:00:99 dev eth0"
                server.configure(f"{gone} nud permanent")
                assert serving.wait(DEADLINE_S) == 0
            finally:
                server.run("ip", "neighbour", "del", client.address, "dev", "eth0")
                measuring.kill()
