"""In and out: old measurements become a run, and a large run becomes files for other programs.

In CPU time, which other load disturbs least; memory is the most that the process held. The values
have the resolution of real ones: whole bytes, segments and microseconds.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import table
from pictures import measured

from benchctl.run.planned import PlannedRun, PlannedTrial, Settings
from benchctl.store.record import Recorder, create_run

FILES, FILE_SECONDS, FILE_STREAMS = 1000, 10, 4
TRIALS, SECONDS, STREAMS, A_SECOND = 25, 1000, 8, 10
MSS = 1448
# A format of a stranger's plugin: the simplest one with every sample.
PLUGIN = """
import json
from benchctl.api import Exporter

class Lines(Exporter):
    name, about, endings = "lines", "every sample as a line of JSON", ()

    def export(self, run):
        for sample in run.samples():
            yield json.dumps(sample) + "\\n"

EXPORTER = Lines()
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        # An installed program is compiled already.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = folder
        _imports(Path(folder))
        _exports(Path(folder))


def _imports(folder: Path) -> None:
    rng = random.Random(1)
    old = folder / "old"
    old.mkdir()
    for number in range(FILES):
        (old / f"{number}.json").write_text(json.dumps(_report(rng, number), indent="\t"))
    table.head(f"import of {FILES} files of iperf3, {FILE_SECONDS} s x {FILE_STREAMS} streams")
    argv = ["import", str(old), "--store", str(folder / "imported.sqlite")]
    cpu_s, most_bytes = measured([sys.executable, "-m", "benchctl", *argv])
    table.row("benchctl import, whole process, CPU time", cpu_s, 10, "s")
    table.row("  the most memory", most_bytes / 1e6, 200, "MB")


def _exports(folder: Path) -> None:
    store = folder / "runs.sqlite"
    samples = TRIALS * SECONDS * STREAMS * A_SECOND
    _fill(store)
    table.head(f"exports of {samples:,} samples of 4 metrics, {TRIALS} trials")
    plugin = folder / "lines.py"
    plugin.write_text(PLUGIN)
    for form in ("parquet", "influx", "sqlite", "lines"):
        file = folder / f"run.{form}"
        argv = ["--plugin", str(plugin), "export", "--store", str(store)]
        argv += ["--format", form, "-o", str(file)]
        command = [sys.executable, "-m", "benchctl", *argv]
        # The first compiles; the others take half a minute, of which that is nothing.
        runs = [measured(command) for _ in range(1 + 3 * (form == "parquet"))][-3:]
        cpu_s, most_bytes = map(statistics.median, zip(*runs, strict=True))
        size = file.stat().st_size / samples
        if form == "parquet":
            table.row(f"benchctl export --format {form}, CPU time", cpu_s, 3, "s")
            table.row("  the most memory", most_bytes / 1e6, 500, "MB")
            table.row("  bytes a sample", size, 20, "B")
        else:
            print(f"{f'benchctl export --format {form}, CPU time':<58}{cpu_s:>12.3g} s")
            print(f"{'  bytes a sample':<58}{size:>12.3g} B")
        if form == "lines":  # by a plugin
            table.row("  the most memory", most_bytes / 1e6, 200, "MB")


def _fill(store: Path) -> None:
    rng = random.Random(1)
    settings = Settings({"point": tuple(range(TRIALS))}, "interleaved", ())
    planned = [PlannedTrial(n, 1, {"point": n}, (), {}, SECONDS, SECONDS) for n in range(TRIALS)]
    run_id, _ = create_run(store, PlannedRun("bench", "", 1, settings, planned, ""), 0.0)
    with closing(Recorder(store, run_id)) as recorder:
        for number in range(TRIALS):
            flow_id = recorder.add_flow(
                number + 1, attempt=1, name="main", backend="bench", source="local",
                target="local", direction="send", status="ok", client=[], server=[],
                requested={"streams": STREAMS}, started_time=1.7e9 + number * SECONDS,
            )  # fmt: skip
            for tenth in range(SECONDS * A_SECOND):
                begin_s, end_s = tenth / A_SECOND, (tenth + 1) / A_SECOND
                for stream in range(STREAMS):
                    metrics = {
                        "throughput_bps": MSS * round(rng.gauss(863, 80)) * 8 / (end_s - begin_s),
                        "tcp_rtt_s": round(rng.gauss(100_000, 5000)) / 1e6,
                        "cwnd_bytes": float(MSS * round(rng.gauss(700, 70))),
                        "retransmits": float(rng.random() < 0.01),
                    }
                    recorder.add_sample(flow_id, "client", stream, "send", begin_s, end_s, end_s,
                                        False, metrics)  # fmt: skip
                if tenth % 1000 == 0:
                    recorder.flush()


def _report(rng: random.Random, number: int) -> dict[str, Any]:
    """Return a report as iperf3 3.12 writes it with ``-J``."""
    sockets = range(5, 5 + 2 * FILE_STREAMS, 2)

    def interval(socket: int, second: int) -> dict[str, Any]:
        amount = MSS * round(rng.gauss(8000, 500))
        return {
            "socket": socket, "start": second, "end": second + 1, "seconds": 1.0, "bytes": amount,
            "bits_per_second": amount * 8.0, "retransmits": 0, "snd_cwnd": MSS * 700,
            "snd_wnd": 1347584, "rtt": 20_000, "rttvar": 47, "pmtu": 1500, "omitted": False,
            "sender": True,
        }  # fmt: skip

    intervals = [
        {"streams": [interval(socket, second) for socket in sockets], "sum": interval(0, second)}
        for second in range(FILE_SECONDS)
    ]
    amount = sum(row["bytes"] for one in intervals for row in one["streams"])
    whole = {
        "start": 0, "end": FILE_SECONDS, "seconds": FILE_SECONDS, "bytes": amount,
        "bits_per_second": amount * 8 / FILE_SECONDS, "retransmits": 0, "sender": True,
    }  # fmt: skip
    return {
        "start": {
            "connected": [
                {"socket": socket, "local_host": "10.0.0.1", "local_port": 40000 + socket,
                 "remote_host": "10.0.0.2", "remote_port": 5201} for socket in sockets
            ],
            "version": "iperf 3.12", "system_info": "Linux lab 6.1.0 #1 SMP x86_64",
            "timestamp": {"time": "", "timesecs": 1_700_000_000 + 20 * number},
            "connecting_to": {"host": "paris", "port": 5201}, "cookie": f"cookie{number}",
            "sock_bufsize": 65536 << number % 8,
            "test_start": {
                "protocol": "TCP", "num_streams": FILE_STREAMS, "blksize": 131072, "omit": 0,
                "duration": FILE_SECONDS, "bytes": 0, "blocks": 0, "reverse": 0, "tos": 0,
                "target_bitrate": 0,
            },
        },
        "intervals": intervals,
        "end": {
            "streams": [], "sum_sent": whole, "sum_received": whole,
            "cpu_utilization_percent": {"host_total": 10.0, "remote_total": 20.0},
            "sender_tcp_congestion": "cubic", "receiver_tcp_congestion": "cubic",
        },
    }  # fmt: skip


if __name__ == "__main__":
    main()
