"""Both of our ends against the real owping and owampd, where these are on the PATH."""

import json
import os
import socket
import subprocess
import sys

import pytest
from owamp.owamp_harness import TOOL, client_program, server_program
from waiting import DEADLINE_S, wait_until

# Without -S, which would hide the library that the secure modes need.
COMMAND = (sys.executable, "-I", str(TOOL))
PASSPHRASE = b"correct horse"
MODES = {"open": "O", "authenticated": "A", "encrypted": "E"}
FEW = ("-c", "10", "-i", "0.01")


@pytest.fixture
def secrets(tmp_path):
    """Write the one user's passphrase as each program wants it."""
    for name, text in {
        "passphrase": PASSPHRASE.decode(),
        "users": f"ann {PASSPHRASE.decode()}\n",
        "theirs": f"ann\t{PASSPHRASE.hex()}\n",
    }.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o600)
    return tmp_path


@pytest.fixture
def owampd(secrets, port):
    """Return a function that runs owampd at an address, until the test is over."""
    servers = []

    def start(host):
        for name in ("conf", "data", "var"):
            (secrets / name).mkdir()
        (secrets / "conf/owamp-server.conf").touch()
        (secrets / "conf/owamp-server.limits").write_text(
            "limit root with disk=0, bandwidth=0\nassign default root\n"
        )
        (secrets / "theirs").rename(secrets / "conf/owamp-server.pfs")
        where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        # A relative path of its data would be a broken link in there.
        data = str(secrets / "data")
        command = ["owampd", "-Z", "-c", "conf", "-d", data, "-R", "var", "-S", where]
        if not os.geteuid():
            command.append("-f")  # It refuses to run as root otherwise.
        with (secrets / "log").open("wb") as log:
            servers.append(subprocess.Popen(command, cwd=secrets, stdout=log, stderr=log))
        wait_until(lambda: listens(host, port), (secrets / "log").read_text)
        return port

    yield start
    for server in servers:
        server.terminate()
        server.wait(DEADLINE_S)


def listens(host, port):
    try:
        socket.create_connection((host, port)).close()
    except ConnectionRefusedError:
        return False
    return True


@pytest.mark.tool("owampd")
@pytest.mark.parametrize(
    ("mode", "host"),
    [
        *((mode, "127.0.0.1") for mode in MODES),
        pytest.param("open", "::1", marks=pytest.mark.ipv6),
    ],
)
def test_our_client_measures_both_ways_against_owampd(secrets, owampd, mode, host):
    port = owampd(host)
    key = secrets / "passphrase"
    protected = () if mode == "open" else ("--mode", mode, "--user", "ann", "--key-file", str(key))
    done = client_program(port, *FEW, "-L", "2", "--json", *protected, command=COMMAND, host=host)
    assert done.returncode == 0, done.stderr + done.stdout
    events = [json.loads(line) for line in done.stdout.splitlines()]
    for direction in ("send", "receive"):
        own = [event for event in events if event.get("direction") == direction]
        packets = [event for event in own if event["event"] == "packet"]
        assert [packet["seq"] for packet in packets] == list(range(10))
        for packet in packets:
            # owampd's times are cut off to microseconds.
            assert -1000 < packet["received_ns"] - packet["sent_ns"] < 2 * 10**9
        (end,) = (event for event in own if event["event"] == "end")
        assert (end["sent"], end["received"], end["lost"]) == (10, 10, 0)
    assert {event["ttl"] for event in events if event["event"] == "packet"} == {255}


@pytest.mark.tool("owping")
@pytest.mark.parametrize("mode", MODES)
def test_owping_measures_both_ways_against_our_server(secrets, mode):
    theirs = () if mode == "open" else ("-u", "ann", "-k", str(secrets / "theirs"))
    ours = () if mode == "open" else ("--users", str(secrets / "users"))
    with server_program(*ours, command=COMMAND) as (_, port):
        done = subprocess.run(
            ["owping", *FEW, "-L", "2", "-R", "-A", MODES[mode], *theirs, f"127.0.0.1:{port}"],
            capture_output=True, text=True, check=True, timeout=DEADLINE_S,
        )  # fmt: skip
    rows = [line.split() for line in done.stdout.splitlines() if line[:1].isdigit()]
    # Both directions, one after the other: sequence number, times in units of 2^-32 s, TTL.
    assert [(int(row[0]), row[-1]) for row in rows] == [(seq, "255") for seq in range(10)] * 2
    microsecond = (1 << 32) // 10**6 + 1
    for row in rows:
        assert -microsecond < int(row[4]) - int(row[1]) < 2 << 32


@pytest.mark.tool("owping")
@pytest.mark.parametrize("direction", ["-t", "-f"])
def test_owping_measures_one_way_against_our_server(direction):
    with server_program(command=COMMAND) as (_, port):
        done = subprocess.run(
            ["owping", *FEW, "-L", "2", "-R", direction, f"127.0.0.1:{port}"],
            capture_output=True, text=True, check=True, timeout=DEADLINE_S,
        )  # fmt: skip
    rows = [line.split() for line in done.stdout.splitlines() if line[:1].isdigit()]
    assert [(int(row[0]), row[-1]) for row in rows] == [(seq, "255") for seq in range(10)]
