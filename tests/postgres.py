"""A PostgreSQL server in one directory, unprivileged, on a socket in it."""

import os
import pwd
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import psycopg
from needs import program


@contextmanager
def running(settings=()):
    """Run a server; yields a function that makes an empty database, and returns its URL.

    The server refuses root, so root starts it as nobody. It ends with the thread that started it.
    """
    with tempfile.TemporaryDirectory(prefix="benchctl-postgres-") as folder:
        folder = Path(folder)
        data, log = folder / "data", folder / "log"
        user = []
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
            user = [
                "setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups",
            ]  # fmt: skip
        quick = ["fsync=off", "synchronous_commit=off", "full_page_writes=off"]
        options = [
            "listen_addresses=", f"unix_socket_directories={folder}", "timezone=UTC",
            "max_connections=30", *(settings or quick),
        ]  # fmt: skip
        # Where everybody may be.
        quiet = {"stdout": subprocess.DEVNULL, "cwd": "/", "env": {"PATH": os.environ["PATH"]}}
        subprocess.run(
            [*user, program("initdb"), "--pgdata", data, "--username=owner", "--auth=trust",
             "--encoding=UTF8", "--locale=C", "--no-sync"],
            check=True, **quiet,
        )  # fmt: skip
        argv = [*user]
        if sys.platform == "linux":
            argv += ["setpriv", "--pdeathsig", "INT"]
        argv += [program("postgres"), "-D", data]
        with log.open("w") as file:
            server = subprocess.Popen(
                [*argv, *(word for one in options for word in ("-c", one))],
                stderr=file, **quiet,
            )  # fmt: skip
        try:
            _wait(server, folder, log)
            number = 0

            def make():
                nonlocal number
                number += 1
                with psycopg.connect(_url(folder, "postgres"), autocommit=True) as connection:
                    connection.execute(f"CREATE DATABASE archive{number}")
                return _url(folder, f"archive{number}")

            yield make
        finally:
            server.send_signal(2)
            server.wait(30)


def _url(folder, database):
    return f"postgresql://owner@/{database}?host={folder}"


def _wait(server, folder, log):
    deadline = time.monotonic() + 60
    while True:
        if server.poll() is not None or time.monotonic() > deadline:
            raise AssertionError(log.read_text())
        try:
            psycopg.connect(_url(folder, "postgres")).close()
        except psycopg.OperationalError:
            time.sleep(0.02)
        else:
            return
