"""The ports that tests give away belong to nobody else."""

import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from ports import Lender, below_the_kernels, lend_port

OWN = f"benchctl test {os.getpid()}"
KINDS = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}


@pytest.fixture
def three():
    """Ports that are this test's for the session; its own lenders have locks of another name."""
    return [lend_port() for _ in range(3)]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize(
    "address", ["127.0.0.1", "127.0.0.9", "0.0.0.0", pytest.param("::1", marks=pytest.mark.ipv6)]
)
def test_a_port_that_a_program_has_at_any_address_is_not_lent(three, address, kind):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with Lender(three, OWN) as lender, socket.socket(family, kind) as sock:
        sock.bind((address, three[0]))
        if kind == socket.SOCK_STREAM:
            sock.listen()
        assert lender.lend() == three[1]


def test_no_port_is_lent_twice_by_this_process_or_another(three):
    script = f"import ports; print(ports.Lender({three[1:]}, {OWN!r}).lend())"
    with ExitStack() as stack:
        one, two = (stack.enter_context(Lender(three, OWN)) for _ in range(2))
        assert [one.lend(), two.lend()] == three[:2]
        done = subprocess.run(
            [sys.executable, "-c", script], cwd=Path(__file__).parent, capture_output=True,
            text=True, check=True,
        )  # fmt: skip
        assert int(done.stdout) == three[2]
        assert one.lend() == three[2]  # the other process has ended, and its lock with it
    with Lender(three, OWN) as later:
        assert later.lend() == three[0]


def test_no_connection_gets_a_port_that_is_lent():
    assert below_the_kernels("32768\t60999\n") == range(10_000, 32_768, 8)
    assert below_the_kernels("15000\t60999\n") == range(10_000, 15_000, 8)
    assert below_the_kernels("1024\t65535\n") == range(10_000, 32_768, 8)
