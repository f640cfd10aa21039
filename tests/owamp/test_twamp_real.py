"""Both of our ends against twping and twampd, where these are on the PATH."""

import os
import socket
import subprocess

import pytest
from owamp.two_way_harness import of, ping, serving
from waiting import wait_until

KEY = b"a passphrase".hex()
FEW = ("-c", "5", "-i", "0.01")
MODES = {"open": "O", "authenticated": "A", "encrypted": "E"}


@pytest.fixture(params=MODES)
def mode(request):
    if request.param != "open":
        pytest.importorskip("cryptography", reason="needs cryptography: pip install cryptography")
    return request.param


@pytest.fixture
def twampd(tmp_path, port):
    """The port of a twampd that serves alice and everybody."""
    for name in ("conf", "data", "var"):
        (tmp_path / name).mkdir()
    (tmp_path / "conf/twamp-server.conf").touch()
    (tmp_path / "conf/twamp-server.pfs").write_text(f"alice\t{KEY}\n")
    command = ["twampd", "-Z", "-c", "conf", "-d", "data", "-R", "var", "-S", f"127.0.0.1:{port}"]
    if not os.geteuid():
        command.append("-f")  # It refuses to run as root otherwise.
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(command, cwd=tmp_path, stderr=log, stdout=log) as server,
    ):
        try:
            wait_until(lambda: listens(port), (tmp_path / "log").read_text)
            yield port
        finally:
            server.terminate()


def listens(port):
    with socket.socket() as sock:
        return not sock.connect_ex(("127.0.0.1", port))


@pytest.mark.tool("twampd")
def test_our_client_measures_against_twampd(tmp_path, mode, twampd):
    key = tmp_path / "key"
    key.write_bytes(bytes.fromhex(KEY))
    protected = () if mode == "open" else ("--mode", mode, "--user", "alice", "--key-file", key)
    code, events = ping("127.0.0.1", twampd, "twamp", *protected, *FEW, "-L", "20")
    assert code == 0
    back = of(events, "reflected")
    assert [(each["seq"], each["reflector_seq"]) for each in back] == [(n, n) for n in range(5)]
    for each in back:
        assert (each["ttl"], each["reflector_ttl"]) == (255, 255)
        # Its times are cut off to microseconds.
        assert each["sent_ns"] < each["reflector_received_ns"] + 1000
        assert each["reflector_sent_ns"] < each["received_ns"]
    assert of(events, "end")[0]["lost"] == 0


@pytest.mark.tool("twping")
def test_twping_measures_against_our_server(tmp_path, mode):
    users, key = tmp_path / "users", tmp_path / "key"
    users.write_bytes(b"alice a passphrase\n")
    key.write_text(f"alice\t{KEY}\n")
    theirs = () if mode == "open" else ("-u", "alice", "-k", str(key))
    ours = () if mode == "open" else ("--users", users)
    with serving("twamp", *ours) as port:
        command = ["twping", *FEW, "-L", "2", "-R", "-A", MODES[mode], *theirs]
        done = subprocess.run(
            [*command, f"127.0.0.1:{port}"], capture_output=True, text=True, check=True
        )
    rows = [line.split() for line in done.stdout.splitlines()]
    assert [(row[0], row[8], row[7], row[15]) for row in rows] == [
        (str(seq), str(seq), "255", "255") for seq in range(5)
    ]
    for row in rows:
        sent, received, answered, back = (int(row[at]) for at in (1, 4, 9, 12))
        microsecond = (1 << 32) // 10**6 + 1  # Their times are cut off to it.
        assert sent < received + microsecond
        assert received < answered < back + microsecond
