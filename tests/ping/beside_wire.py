"""Pings loopback and prints, as JSON, each round trip as reported and as a packet socket saw it.

Runs in a network namespace of its own: ``python beside_wire.py COMMAND… ADDRESS``.
"""

import json
import re
import socket
import struct
import subprocess
import sys

SO_TIMESTAMPNS = 35
TIMESPEC = struct.Struct("@ll")
ETH_P_ALL, ETH_P_IP = 3, 0x0800
OUTGOING = 4
"""PACKET_OUTGOING of linux/if_packet.h: on loopback, each packet is seen once so."""
REPLY, REQUEST = 0, 8
LINE = re.compile(r"icmp_seq=(\d+) .*time=([\d.]+) ms")


def main():
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM) as wire:
        wire.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        wire.bind(("lo", ETH_P_ALL))
        done = subprocess.run(sys.argv[1:], capture_output=True, text=True, check=True)
        wire.setblocking(False)
        seen_ns = dict(packets(wire))
    trips = []
    for number, reported_ms in LINE.findall(done.stdout):
        wire_ns = seen_ns[int(number), REPLY] - seen_ns[int(number), REQUEST]
        trips.append({"reported_s": float(reported_ms) / 1e3, "wire_s": wire_ns / 1e9})
    print(json.dumps(trips))


def packets(wire):
    """Yield what of the ICMP messages waits in the socket: number and type, and when it passed."""
    while True:
        try:
            data, ancillary, _, (_, protocol, kind, _, _) = wire.recvmsg(2048, 256)
        except BlockingIOError:
            return
        head = (data[0] & 15) * 4
        if (protocol, kind) == (ETH_P_IP, OUTGOING) and data[9] == socket.IPPROTO_ICMP:
            message, _, _, _, number = struct.unpack_from("!BBHHH", data, head)
            seconds, rest_ns = TIMESPEC.unpack(ancillary[0][2])
            yield (number, message), seconds * 10**9 + rest_ns


main()
