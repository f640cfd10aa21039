"""A run whose flow has a packet trace at each end."""

import json
import sqlite3
from contextlib import closing

from packets.slow import slow
from report.pictured_run import pictured_run


def traced_run(store, data=None, **how):
    """Write a run of two repeats; the trace of its first flow at host b has every cause of waiting.

    ``data`` are the bytes of the traces by their host.
    """
    data = data or {"a": slow(), "b": slow()}
    name = pictured_run(store, values={}, repeats=2, **how)
    folder = store.with_name(f"{store.name}.packets") / name
    folder.mkdir(parents=True)
    captures = []
    for host, trace in data.items():
        file = folder / f"main-{host}-1.pcapng"
        file.write_bytes(trace)
        entry = {"host": host, "file": str(file.relative_to(store.parent)), "packets": 465}
        captures.append({**entry, "dropped": 0, "left_out": 0})
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("UPDATE flow SET captures = ?", [json.dumps(captures)])
    return name
