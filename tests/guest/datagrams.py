"""Sends and receives numbered datagrams with their times, to measure a link at its ends.

``send ADDRESS COUNT PAYLOAD GAP_S [BATCH]`` sends from its start on, with BATCH datagrams at once
if given (UDP_SEGMENT). It ends with its stdin: the kernel does not interrupt the end of a process,
which would delay frames that are on their way. ``receive QUIET_S`` prints ``ready``. After so long
without a datagram it prints a JSON list of (number, sent, received, bytes of the Ethernet frame),
in seconds of the monotonic clock. The time of receipt is the kernel's.
"""

import json
import socket
import struct
import sys
import time

PORT = 7000
HEADERS_BYTES = 14 + 20 + 8
UDP_SEGMENT = 103  # linux/udp.h
SO_RCVBUFFORCE, SO_TIMESTAMPNS = 33, 35  # asm-generic/socket.h


def send(address, count, payload, gap_s, batch=1):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        if batch > 1:
            sock.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, payload)
        sock.connect((address, PORT))
        start_s = time.monotonic()
        for number in range(0, count, batch):
            if (left_s := start_s + number * gap_s - time.monotonic()) > 0:
                time.sleep(left_s)
            now_s = time.monotonic()
            parts = range(number, number + batch)
            sock.send(b"".join(struct.pack("qd", i, now_s).ljust(payload, b".") for i in parts))


def receive(quiet_s):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 26)
        except PermissionError:  # An ordinary user gets what net.core.rmem_max permits.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 26)
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        sock.bind(("", PORT))
        offset_s = time.time() - time.monotonic()
        sock.settimeout(quiet_s + 2)
        print("ready", flush=True)
        rows = []
        try:
            while True:
                data, ancillary, *_ = sock.recvmsg(2048, 64)
                seconds, nanoseconds = struct.unpack("ll", ancillary[0][2])
                number, sent_s = struct.unpack_from("qd", data)
                received_s = seconds - offset_s + nanoseconds / 1e9
                rows.append((number, sent_s, received_s, len(data) + HEADERS_BYTES))
                sock.settimeout(quiet_s)
        except TimeoutError:
            print(json.dumps(rows))


if __name__ == "__main__":
    verb, *words = sys.argv[1:]
    if verb == "send":
        address, count, payload, gap_s, *batch = words
        send(address, int(count), int(payload), float(gap_s), *map(int, batch))
        sys.stdin.read()
    else:
        receive(float(words[0]))
