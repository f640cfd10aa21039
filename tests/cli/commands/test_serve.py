"""``benchctl serve``: servers for others, and nothing of them left behind."""

import json
import re
import signal
import socket
import subprocess
import sys

import pytest
from simpleperf.simpleperf_hosts import two_hosts
from waiting import COMMAND_S, wait_until

from benchctl.engine.serve import may_listen

ONE_CLIENT = """
from benchctl.api import *

class Server(LineParser):
    def line(self, text, channel):
        yield Ready()

class Once(Backend):
    name = "once"
    summary = "its server ends after one client, and knows no other way"
    parameters = Parameters
    capabilities = Capabilities((Direction.SEND,), needs_server=True, default_port=7)
    def probe(self, role): return None
    def read_probe(self, role, exit_code, output): return Tool("")
    def client(self, flow): raise NotImplementedError
    def duration_s(self, params): return 1.0
    def server(self, flow):
        return Command(("sh", "-c", "echo ready; sleep 0.01; echo pid $$; exit 3"), Server())

BACKEND = Once()
"""


@pytest.fixture
def serving(benchctl):
    """Start ``benchctl serve`` on loopback; returns it when it has told what to type."""
    started = []

    def start(*args):
        process = benchctl.start("serve", "--bind", "127.0.0.1", *args)
        started.append(process)
        lines = [process.stdout.readline(), process.stdout.readline()]
        assert " listens on port " in lines[0], process.stderr.read()
        return process, lines

    yield start
    for process in started:
        process.kill()
        process.communicate()


def listens(port):
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


def measure(port, *args):
    argv = [sys.executable, "-m", "benchctl_simpleperf", "-c", "-p", str(port), "-t", "0.1", *args]
    return subprocess.run(argv, capture_output=True, text=True, timeout=COMMAND_S, check=False)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_clients_are_served_one_after_another_until_it_is_told_to_end(serving, port, number):
    process, _ = serving("--tool", f"simpleperf:{port}")
    row = re.compile(r"simpleperf: 127\.0\.0\.1:\d+ ")
    for _ in range(2):
        assert measure(port).returncode == 0
        assert any(row.match(line) for line in process.stderr)
    process.send_signal(number)
    assert not row.search(process.communicate(timeout=COMMAND_S)[1])
    assert process.returncode == 0
    assert not listens(port)


def test_it_says_what_the_other_side_types(serving, port):
    _, lines = serving("--tool", f"simpleperf:{port}")
    assert re.fullmatch(rf"simpleperf \S+ listens on port {port}; .*\n", lines[0])
    assert lines[1] == f"  benchctl quick 127.0.0.1 --backend simpleperf --port {port}\n"


@pytest.mark.netns
def test_what_it_says_works_on_the_other_host(benchctl, tmp_path):
    # There is no default route and no name for either host: only addresses of interfaces.
    with two_hosts(tmp_path) as (server, client):
        for host in (server, client):
            address = host.address.replace("10.77.0.", "2001:db8:77::")
            host.configure(f"address add {address}/64 dev eth0 nodad")
        command = [*server.prefix, *benchctl.words, "serve", "--tool", "simpleperf"]
        serving = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=benchctl.environment,
        )  # fmt: skip
        try:
            printed = [serving.stdout.readline() for _ in range(4)]
            typed = [line.split()[1:] for line in printed if line.startswith("  benchctl ")]
            assert [words[1] for words in typed] == ["10.77.0.1", "2001:db8:77::1"]
            assert printed[-1].startswith("a firewall of this host must let TCP and UDP to port")
            short = ["--duration", "300ms", "--udp", "0", "--no-ping", "-q", "--format", "json"]
            # tests/test_first_minutes.py types the other one.
            done = client.run(*benchctl.words, *typed[1], *short, env=benchctl.environment)
            assert done.returncode == 0, done.stderr
            trials = json.loads(done.stdout)["trials"]
            assert [trial["status"] for trial in trials] == ["ok", "ok"]
        finally:
            serving.terminate()
            serving.communicate(timeout=COMMAND_S)


def test_a_killed_one_leaves_no_server_behind(serving, port):
    process, _ = serving("--tool", f"simpleperf:{port}")
    assert listens(port)
    process.kill()
    process.wait()
    wait_until(lambda: not listens(port))


def test_it_ends_by_itself_after_its_time(benchctl, port):
    done = benchctl("serve", "--bind", "127.0.0.1", "--tool", f"simpleperf:{port}", "--for", "10ms")
    assert done.returncode == 0
    assert not listens(port)


def test_only_clients_of_the_allowed_networks_are_served(serving, port):
    serving("--tool", f"simpleperf:{port}", "--allow", "192.0.2.0/24")
    assert measure(port).returncode != 0


@pytest.mark.tool("iperf3")
def test_a_tool_that_cannot_restrict_its_clients_is_not_served_as_if_it_could(benchctl):
    done = benchctl("serve", "--tool", "iperf3", "--allow", "192.0.2.0/24")
    assert (done.returncode, done.stdout) == (2, "")
    assert "iperf3 cannot restrict its clients" in done.stderr


@pytest.mark.tool("iperf3")
def test_iperf3_serves_more_than_one_client(serving, port):
    process, _ = serving("--tool", f"iperf3:{port}")
    argv = ["iperf3", "-c", "127.0.0.1", "-p", str(port), "-n", "1K"]
    for _ in range(2):  # after its first client, it is busy for a moment
        wait_until(lambda: subprocess.run(argv, capture_output=True, check=False).returncode == 0)
    process.terminate()
    _, stderr = process.communicate(timeout=COMMAND_S)
    assert stderr.count("iperf3: Accepted connection from 127.0.0.1") >= 2


def test_a_port_in_use_is_told_at_once(benchctl, port):
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", port))
        sock.listen()
        done = benchctl("serve", "--bind", "127.0.0.1", "--tool", f"simpleperf:{port}")
    assert (done.returncode, done.stdout) == (3, "")
    why = f"cannot listen on 127.0.0.1:{port}: Address already in use"
    assert done.stderr == f"benchctl: simpleperf does not listen: {why}\n"


def test_of_all_tools_one_whose_port_is_taken_is_left_out(benchctl):
    here = "127.0.0.73"
    with socket.create_server((here, 8088)):
        done = benchctl("serve", "--bind", here, "--for", "10ms")
    assert done.returncode == 0, done.stderr
    why = "port 8088 is taken, perhaps by a server of simpleperf"
    assert f"benchctl: simpleperf is left out, because {why}\n" in done.stderr
    assert "owamp" in done.stdout
    assert "simpleperf" not in done.stdout


MUTE = ONE_CLIENT.replace("echo ready", "touch begun").replace("sleep 0.01", "sleep 600")


def test_one_that_is_told_to_end_before_its_server_listens_ends_without_a_word(benchctl):
    plugin = benchctl.directory / "once.py"
    plugin.write_text(MUTE)
    benchctl.environment["BENCHCTL_PLUGINS"] = str(plugin)
    process = benchctl.start("serve", "--bind", "127.0.0.1", "--tool", "once")
    wait_until((benchctl.directory / "begun").exists)
    process.terminate()
    assert process.communicate(timeout=COMMAND_S) == ("", "")
    assert process.returncode == 0


def test_a_server_that_ends_is_started_again(benchctl, serving):
    plugin = benchctl.directory / "once.py"
    plugin.write_text(ONE_CLIENT)
    benchctl.environment["BENCHCTL_PLUGINS"] = str(plugin)
    process, _ = serving("--tool", "once")
    seen = {}
    for line in process.stderr:
        seen.setdefault(line.partition(" pid ")[2] or line, None)
        if len([one for one in seen if one.strip().isdecimal()]) == 2:
            break
    assert "once: ended with code 3, and is started again\n" in seen


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--tool", "ping"], "ping has no server that benchctl can start"),
        (["--tool", "none"], 'no backend "none"'),
        (["--tool", "simpleperf:99999"], "99999 is not a port"),
        (["--allow", "192.0.2.1/24"], "--allow: 192.0.2.1/24 has host bits set"),
        (["--for", "5m"], "--for: "),
        (["--bind", "192.0.2.99"], "--bind 192.0.2.99: this host has no such address"),
    ],
)
def test_what_cannot_be_served_is_an_error_before_anything_listens(benchctl, args, said):
    done = benchctl("serve", *args)
    assert (done.returncode in (2, 3), done.stdout) == (True, "")
    assert said in done.stderr


def test_only_a_port_that_needs_root_cannot_be_listened_on(monkeypatch):
    def bind(sock, address):
        if address[1] < 1024:
            raise PermissionError

    assert may_listen(8861)
    monkeypatch.setattr(socket.socket, "bind", bind, raising=False)
    assert not may_listen(861)
