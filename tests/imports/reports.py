"""Files of other tools: samples that were recorded, and reports of iperf3 in any variant."""

import json
from contextlib import closing
from pathlib import Path

from benchctl.imports.kinds import find_kinds
from benchctl.imports.session import ImportRequest, import_paths
from benchctl.report.report import StoredRun
from benchctl.store.read import Reader

SAMPLES = Path(__file__).with_name("samples")
BEGUN = 1_700_000_000
"""2023-11-14 22:13:20 UTC."""


def report(*, streams=1, rate_bps=8e6, seconds=3, at=BEGUN, host="paris", reverse=False, **start):
    """Return a report of iperf3's ``-J`` as data; ``rate_bps`` is that of all streams together."""
    each = rate_bps / streams
    sockets = range(5, 5 + 2 * streams, 2)
    intervals = [
        {
            "streams": [
                {
                    "socket": socket, "start": n, "end": n + 1, "seconds": 1, "bytes": each / 8,
                    "bits_per_second": each, "omitted": False, "sender": not reverse,
                    **({} if reverse else {"retransmits": 1, "snd_cwnd": 14480, "rtt": 2000}),
                }
                for socket in sockets
            ],
        }
        for n in range(seconds)
    ]  # fmt: skip
    total = {
        "start": 0, "end": seconds, "seconds": seconds, "bytes": rate_bps * seconds / 8,
        "bits_per_second": rate_bps,
    }  # fmt: skip
    return {
        "start": {
            "connected": [
                {"socket": socket, "local_host": "10.0.0.1", "local_port": 40000 + socket,
                 "remote_host": "10.0.0.2", "remote_port": 5201}
                for socket in sockets
            ],
            "version": "iperf 3.12",
            "system_info": "Linux lab-1 6.1.0-9-amd64 #1 SMP PREEMPT_DYNAMIC x86_64",
            "timestamp": {"time": "", "timesecs": at},
            "connecting_to": {"host": host, "port": 5201},
            "cookie": f"cookie-{at}-{host}-{streams}-{rate_bps}-{reverse}",
            "sock_bufsize": 0,
            "test_start": {
                "protocol": "TCP", "num_streams": streams, "blksize": 131072, "omit": 0,
                "duration": seconds, "bytes": 0, "blocks": 0, "reverse": int(reverse), "tos": 0,
                "target_bitrate": 0,
            },
            **start,
        },
        "intervals": intervals,
        "end": {
            "streams": [],
            "sum_sent": {**total, "retransmits": 3, "sender": True},
            "sum_received": {**total, "sender": True},
            "cpu_utilization_percent": {"host_total": 10.0, "remote_total": 20.0},
            "sender_tcp_congestion": "cubic",
            "receiver_tcp_congestion": "cubic",
        },
    }  # fmt: skip


def write(path, *reports):
    """Write reports into a file, one after the other."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(one, indent="\t") + "\n" for one in reports))
    return path


def imported(store, *paths, **options):
    """Import files; returns the results, one for each run, and the files that were left."""
    request = ImportRequest(store, find_kinds().known, **options)
    found = [*import_paths(paths, request)]
    runs = [one for one in found if hasattr(one, "axes")]
    return runs, [one for one in found if one not in runs]


def only(store, *paths, **options):
    """Import files that are one run and of which none is left; returns it as JSON-like data."""
    (run,), left = imported(store, *paths, **options)
    assert left == []
    return document(store, run.name)


def document(store, name="last"):
    """Return a run as its JSON export has it, with its notes."""
    from benchctl.report.exports.entries import report_entry

    with closing(Reader(store)) as reader:
        run = reader.find(name)
        notes = [note.text for note in reader.notes(run.id)]
        data = json.loads(json.dumps(report_entry(StoredRun(reader, run).report)))
    return {**data, "notes": notes}
