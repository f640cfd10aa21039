"""A tool whose server listens on two ports is measured like any other."""

import json
import re
import socket
from pathlib import Path

import pytest
from ports import lend_port
from waiting import COMMAND_S

PLUGIN = Path(__file__).with_name("two_ports.py")
FLOW = '[flows.main]\nbackend = "two_ports"\n'


@pytest.fixture
def two_ports(benchctl):
    """Return the port of the tool, which is free, as the one after it may not be."""
    port = lend_port()
    plugin = benchctl.directory / "two_ports.py"
    plugin.write_text(PLUGIN.read_text().replace("7107", str(port)))
    benchctl.environment["BENCHCTL_PLUGINS"] = str(plugin)
    return port


def ports_in(words):
    return [int(word) for word in words if re.fullmatch(r"\d{4,5}", word)]


def test_a_second_port_that_is_taken_is_left_out_at_both_ends(benchctl, two_ports):
    with socket.socket() as other:
        other.bind(("127.0.0.1", two_ports + 1))
        done = benchctl("run", benchctl.profile(FLOW), "-q", "--format", "json")
    assert done.returncode == 0, done.stderr
    (trial,) = json.loads(done.stdout)["trials"]
    (flow,) = trial["flows"]
    assert flow["metrics"]["throughput_bps"] == 8000
    client, server = ports_in(flow["command"]), ports_in(flow["server_command"])
    assert client == server == [flow["port"], client[1]]
    assert two_ports + 1 not in client


def test_it_keeps_the_contract_and_a_recording_has_both_ports(benchctl, two_ports):
    done = benchctl("backends", "check", "two_ports.py")
    assert done.returncode == 0, done.stdout
    done = benchctl("backends", "record", "two_ports", "--as", "both", "--for", "5s")
    assert done.returncode == 0, done.stderr
    told = json.loads((benchctl.directory / "transcripts/both.client.json").read_text())
    assert ports_in(told["argv"]) == [told["port"], told["second_port"]]


def test_it_is_served_on_its_port_and_the_next_one(benchctl, two_ports):
    port = two_ports
    process = benchctl.start("serve", "--bind", "127.0.0.1", "--tool", f"two_ports:{port}")
    try:
        said = process.stdout.readline()
        assert said == (
            f"two_ports listens on ports {port} and {port + 1}; on the other host type:\n"
        )
        far = f'[servers]\nfar = {{ host = "127.0.0.1", port = {port} }}\n{FLOW}to = "far"\n'
        done = benchctl("run", benchctl.profile(far), "-q")
    finally:
        process.terminate()
        process.communicate(timeout=COMMAND_S)
    assert done.returncode == 0, done.stderr
