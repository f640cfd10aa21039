"""Ports that nothing else takes, for tests that give a number away before a program listens there.

A port of the kernel's choice (bind to port 0) is anyone's again once it is closed: the kernel gives
it to the next connection. These lie below the range from which it gives ports to connections.
"""

import errno
import socket
import sys
from contextlib import ExitStack
from functools import cache
from pathlib import Path

# Below are the default ports of tools, which runs use that name none.
_FIRST = 10_000
SPARE = 7
"""Ports from one that is lent to the next: streams and who looks for a free one count up."""
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
# The first port of that range by default: Linux 32768, others 49152.
_DEFAULT_RANGE = "32768 60999"
_ADDRESSES = {socket.AF_INET: "0.0.0.0", socket.AF_INET6: "::"}
_NO_IPV6 = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)


def below_the_kernels(text):
    """Return the ports to lend, by the text of ip_local_port_range."""
    low = int(text.split()[0])
    # Where the kernel gives away all of them, only the other rules hold.
    return range(_FIRST, low if low > _FIRST else int(_DEFAULT_RANGE.split()[0]), SPARE + 1)


class Lender:
    """Lends ports, each of them once; a context manager.

    A port is free for TCP and UDP at every address. A lock on it, which the kernel keeps and which
    ends with this process, excludes other test processes, whoever started them.
    """

    def __init__(self, ports=None, locks="benchctl test port"):
        """``locks`` is the name of the locks: lenders of another name are not excluded."""
        if ports is None:
            ports = below_the_kernels(_RANGE.read_text() if _RANGE.exists() else _DEFAULT_RANGE)
        self._ports, self._name = iter(ports), locks
        self._locks = ExitStack()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._locks.close()

    def lend(self):
        """Return the next port that is free and that no other lender has."""
        return next(port for port in self._ports if self._lock(port) and _is_free(port))

    def _lock(self, port):
        lock = self._locks.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        try:
            # A name of Linux's own, which belongs to the network namespace as the ports do.
            lock.bind(f"\0{self._name} {port}")
        except OSError:
            return not sys.platform.startswith("linux")
        return True


@cache
def _lender():
    return Lender()


def lend_port():
    """Return a port that nothing else takes while this process lives, nor ``SPARE`` after it."""
    return _lender().lend()


def _is_free(port):
    with ExitStack() as stack:
        for family, address in _ADDRESSES.items():
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                try:
                    sock = stack.enter_context(socket.socket(family, kind))
                    if family == socket.AF_INET6:
                        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                    sock.bind((address, port))
                except OSError as error:
                    if family == socket.AF_INET6 and error.errno in _NO_IPV6:
                        continue
                    return False
    return True
