"""echotime: times UDP datagrams on their way to an echo server and back.

The tool of the example in docs/plugins.md, and of what ``benchctl backends new`` writes. It knows
nothing of benchctl: ``python -P -m benchctl.testing.echotime --help``.
"""

from __future__ import annotations

import argparse
import socket
import sys
import time

# An answer that takes longer counts as lost: longer than any path on earth.
PATIENCE_S = 1.0


def serve(sock: socket.socket) -> None:
    """Send every datagram back, up to an empty one: the client's goodbye."""
    address, port = sock.getsockname()[:2]
    print(f"listening on {address} port {port}", flush=True)
    while True:
        datagram, client = sock.recvfrom(65535)
        sock.sendto(datagram, client)
        if not datagram:
            return


def measure(sock: socket.socket, count: int, interval_s: float, length: int) -> None:
    """Send datagrams at their times, each after the answer to the one before; print each fate."""
    sock.settimeout(PATIENCE_S)
    print(f"sending {count} datagrams of {length} bytes from {time.time():.6f}")
    sent = received = 0
    zero_s = time.monotonic()
    try:
        for number in range(count):
            time.sleep(max(0.0, zero_s + number * interval_s - time.monotonic()))
            at_s = time.monotonic() - zero_s
            sock.send(number.to_bytes(8, "big").ljust(length, b"\0"))
            sent += 1
            rtt_s = _answer(sock, number, zero_s + at_s)
            received += rtt_s is not None
            fate = "lost" if rtt_s is None else f"rtt {rtt_s:.6f}"
            print(f"{number} at {at_s:.6f} {fate}", flush=True)
    except KeyboardInterrupt:
        pass  # the totals so far follow
    print(f"{sent} sent, {received} received")
    sock.send(b"")


def _answer(sock: socket.socket, number: int, sent_s: float) -> float | None:
    while True:
        try:
            datagram = sock.recv(65535)
        except TimeoutError:
            return None
        if datagram[:8] == number.to_bytes(8, "big"):
            return time.monotonic() - sent_s


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="echotime", description=__doc__.partition("\n")[0])
    parser.add_argument("--version", action="version", version="echotime 1.0")
    parser.add_argument("address")
    parser.add_argument("port", type=int)
    parser.add_argument("--serve", action="store_true", help="be the server, for one client")
    parser.add_argument("--bind", metavar="ADDRESS", help="source address of the client")
    parser.add_argument("--count", type=int, default=10, help="datagrams to send")
    parser.add_argument("--interval", type=float, default=0.1, help="seconds between two")
    parser.add_argument("--length", type=int, default=64, help="bytes in each")
    options = parser.parse_args()
    try:
        found = socket.getaddrinfo(options.address, options.port, type=socket.SOCK_DGRAM)
        family, kind, _, _, where = found[0]
        with socket.socket(family, kind) as sock:
            if options.serve:
                sock.bind(where)
                serve(sock)
                return
            if options.bind:
                sock.bind((options.bind, 0))
            sock.connect(where)
            measure(sock, options.count, options.interval, options.length)
    except OSError as error:
        sys.exit(f"echotime: {error.strerror}")


if __name__ == "__main__":
    main()
