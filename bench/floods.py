"""Honest probes that a reflector loses while another source floods it: ``python bench floods``."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Sequence

import table
from owamp import TOOL, serving

FLOOD_PPS, FLOODED_S, FLOODS = 20_000, 6, 9


def main() -> None:
    """One source sends small packets while another measures."""
    table.head(f"owamp: a reflector, while another source sends {FLOOD_PPS:,} packets a second")
    if os.geteuid() == 0:
        _flooded("with a receive buffer of 16 MiB", ())
        _flooded("without privileges", ("setpriv", "--bounding-set=-all"))
    else:
        _flooded("without privileges", ())


def _flooded(what: str, bare: Sequence[str]) -> None:
    lost, sent = 0, 0
    for _ in range(FLOODS):
        with serving(*bare, "--protocol", "stamp") as (_, port):
            flood = threading.Thread(target=_send_flood, args=(port,))
            flood.start()
            command = [*TOOL, "ping", "127.0.0.1", "-p", str(port), "--protocol", "stamp"]
            command += ["-c", "500", "-i", "0.01", "-L", "1", "--json"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            flood.join()
        end = next(one for one in map(json.loads, done.stdout.splitlines())
                   if one["event"] == "end")  # fmt: skip
        lost, sent = lost + end["lost"], sent + end["sent"]
    table.row(f"{what}: of {sent} probes in {FLOODS} runs lost", lost, 0, "")


def _send_flood(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.2", 0))
        sock.connect(("127.0.0.1", port))
        begun, sent = time.monotonic(), 0
        while (passed := time.monotonic() - begun) < FLOODED_S:
            for _ in range(int(passed * FLOOD_PPS) - sent):
                sock.send(bytes(44))
                sent += 1
            time.sleep(0.0005)
