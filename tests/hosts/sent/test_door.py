"""One end opens a port, the other tries it, by the oldest Python and by ours."""

import json
import subprocess
import sys
from contextlib import contextmanager

import pytest
from needs import PYTHONS
from ports import lend_port
from waiting import COMMAND_S

from benchctl.hosts.sent import port_check as door

CLOSED = "Connection refused"


def words(python, *further):
    return [python, "-I", "-S", door.__file__, *map(str, further)]


@contextmanager
def opened(python, *places):
    process = subprocess.Popen(words(python, "listen", *places), stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline().decode().strip() == door.LISTENING
        yield
    finally:
        process.kill()
        process.communicate()


def knocked(python, *places):
    done = subprocess.run(
        words(python, "knock", *places), capture_output=True, check=True, timeout=COMMAND_S
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_an_open_port_and_a_closed_one_are_told_apart(python, address):
    port, closed = lend_port(), lend_port()
    with opened(python, address, port):
        first, second = knocked(python, address, port, address, closed)
    assert (first["tcp"], first["udp"], first.get("mtu_holds", True)) == ("", "", True)
    assert second == {"tcp": CLOSED, "udp": CLOSED}


@pytest.mark.parametrize("python", PYTHONS)
def test_several_ports_are_open_at_the_same_time(python):
    ports = [lend_port() for _ in range(3)]
    places = [word for port in ports for word in ("127.0.0.1", port)]
    with opened(python, *places[:4]):
        found = knocked(python, *places)
    assert [one["tcp"] or one["udp"] for one in found] == ["", "", CLOSED]


def test_a_port_that_is_taken_is_an_error_in_one_line(port):
    with opened(sys.executable, "127.0.0.1", port):
        done = subprocess.run(
            words(sys.executable, "listen", "127.0.0.1", port), capture_output=True, text=True,
            check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "Address already in use\n")
