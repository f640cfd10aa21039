"""Packet traces: a million packets of a transfer, beside tshark and tcptrace on the same file.

In CPU time, which other load disturbs least; memory is the most that the process held. The trace is
recorded by dumpcap on the loopback of a network namespace, at a rate that loses no packet. With
``BENCH_TRACE=FILE`` it is another one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import table
from pictures import measured

PACKETS = 1_000_000
SNAPLEN_BYTES = 96
RATE_BYTES_PER_S = 100_000_000
# A seventh of tshark's time, and three times tcptrace's.
OF_TSHARK, OF_TCPTRACE = 1 / 7, 3
MOST_MB = 150
FIELDS = (
    "frame.time_relative", "ip.src", "ip.dst", "tcp.stream", "tcp.len", "tcp.window_size",
    "tcp.analysis.ack_rtt", "tcp.analysis.bytes_in_flight", "tcp.analysis.retransmission",
    "tcp.analysis.fast_retransmission", "tcp.analysis.spurious_retransmission",
    "tcp.analysis.out_of_order", "tcp.analysis.duplicate_ack", "tcp.analysis.zero_window",
    "tcp.analysis.window_full", "tcp.options.sack.count",
)  # fmt: skip

# Frames as on a network: without offloads, 1448 bytes of data each, half as many acknowledgements.
_RECORD = """
set -e
ip link set lo mtu 1500
ip link set lo gso_max_segs 1 gso_max_size 1500 2>/dev/null || true
ip link set lo up
dumpcap -q -P -i lo -s {snaplen} -B 64 -c {packets} -w {path} &
dumpcap=$!
for _ in $(seq 200); do [ -s {path} ] && break; sleep 0.05; done
timeout 120 {python} -c '{transfer}' || true
kill -INT $dumpcap 2>/dev/null || true
wait $dumpcap || true
"""
_TRANSFER = """
import socket, threading
server = socket.create_server(("127.0.0.1", 5201))
def receive():
    peer, _ = server.accept()
    while peer.recv(1 << 16):
        pass
threading.Thread(target=receive, daemon=True).start()
client = socket.create_connection(("127.0.0.1", 5201))
client.setsockopt(socket.SOL_SOCKET, 47, {rate})
for _ in range({size} >> 16):
    client.sendall(bytes(1 << 16))
client.close()
"""


def main() -> None:
    table.head(f"packets: a trace of {PACKETS:,} packets, {SNAPLEN_BYTES} bytes of each")
    with tempfile.TemporaryDirectory() as folder:
        # An installed program is compiled already.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = folder
        given = os.environ.get("BENCH_TRACE")
        path = Path(given) if given else Path(folder, "trace.pcap")
        if not given and not _record(path):
            print("not measured: needs dumpcap and network namespaces")
            return
        try:
            _measure(path, Path(folder, "runs.sqlite"))
        except subprocess.CalledProcessError as error:
            print(_refused(error, path))


def _refused(error: subprocess.CalledProcessError, path: Path) -> str:
    """Return the line for a command that did not read a trace to its end, and has said why."""
    program = Path(error.cmd[0]).name
    return f"not measured: {program} ended with exit code {error.returncode} for {path}"


def _record(path: Path) -> bool:
    """Record a transfer in a namespace; return whether that is possible here."""
    if not shutil.which("dumpcap"):
        return False
    transfer = _TRANSFER.format(rate=RATE_BYTES_PER_S, size=PACKETS * 1448)
    script = _RECORD.format(
        snaplen=SNAPLEN_BYTES, packets=PACKETS, path=path, python=sys.executable, transfer=transfer
    )
    argv = ["unshare", "--user", "--map-root-user", "--net", "bash", "-c", script]
    subprocess.run(argv, capture_output=True, check=False)
    return path.exists() and path.stat().st_size > 24


def _measure(path: Path, store: Path) -> None:
    command = [sys.executable, "-m", "benchctl", "packets", "--json", str(path)]
    argv = [*command, "--no-keep"]
    # An interval of its own, so that it is kept each time.
    keeping = [*command, "--interval", "10ms", "--store", str(store)]
    measured(argv)  # compiles, and reads the file into memory
    measured(keeping)
    ours_s, most_bytes = measured(argv)
    kept_s, kept_bytes = measured(keeping)
    lines = subprocess.run(argv, capture_output=True, check=True).stdout.splitlines()
    packets = json.loads(lines[0])["packets"]
    table.row("packets", packets, PACKETS * 0.9, "", at_least=True)
    table.row("benchctl packets, whole process, CPU time", ours_s, 10, "s")
    table.row("  the most memory", most_bytes / 1e6, MOST_MB, "MB")
    table.row("  more to keep it as a run", kept_s - ours_s, 1, "s")
    table.row("  the most memory then", kept_bytes / 1e6, MOST_MB, "MB")
    fields = [word for name in FIELDS for word in ("-e", name)]
    others = {
        "tshark -T fields": (["tshark", "-r", str(path), "-T", "fields", *fields], OF_TSHARK),
        "tcptrace -l -r": (["tcptrace", "-l", "-r", str(path)], OF_TCPTRACE),
    }
    for name, (command, most) in others.items():
        if not shutil.which(command[0]):
            print(f"not measured: needs {command[0]}")
            continue
        try:
            theirs_s, _ = measured(command)
        except subprocess.CalledProcessError as error:
            print(_refused(error, path))
            continue
        table.row(f"  of the time of {name} ({theirs_s:.3g} s)", ours_s / theirs_s, most, "x")
