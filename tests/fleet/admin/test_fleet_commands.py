"""The commands of a fleet, as an administrator and a host's owner type them."""

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from fleet.fleet_support import need_server

BENCHCTL = [sys.executable, "-P", "-m", "benchctl"]


def run(*words, cwd, stdin="", code=0):
    done = subprocess.run(
        [*BENCHCTL, *words], cwd=cwd, input=stdin, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == code, done.stderr
    return done


@contextmanager
def fleet_up(path):
    """A fleet that is up: its directory, the process of `fleet up`, and what it says."""
    up = subprocess.Popen(
        [*BENCHCTL, "fleet", "up", "lab"], cwd=path, stderr=subprocess.PIPE, text=True
    )
    try:
        for line in up.stderr:
            if line == "ready\n":
                break
        yield up
    finally:
        up.send_signal(signal.SIGINT)
        up.stderr.close()
        up.wait(30)


@pytest.fixture
def made(tmp_path):
    need_server()
    run("fleet", "init", "lab", cwd=tmp_path)
    return tmp_path


def children(process):
    found = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(process.pid)], capture_output=True, text=True
    )
    return [line.split(None, 1) for line in found.stdout.splitlines()]


def test_from_nothing_to_a_host_that_has_joined(made):
    with fleet_up(made) as up:
        added = run("fleet", "add", "paris", "--directory", "lab", cwd=made)
        assert "benchctl agent join" in added.stderr
        joined = run(
            "agent", "join", "--directory", "host", "--units", "units", cwd=made,
            stdin=added.stdout,
        )  # fmt: skip
        assert joined.stdout == "paris has joined the fleet lab\n"
        assert "loginctl enable-linger" in joined.stderr
        assert (
            f'"agent" "run" "{made}/host"'
            in (made / "units" / "benchctl-agent.service").read_text()
        )
        hosts = run("fleet", "hosts", "--directory", "lab", cwd=made).stdout
        assert hosts.splitlines()[1].split()[:3] == ["paris", "never", "seen"]
        shown = run("fleet", "hosts", "--directory", "lab", "--json", cwd=made).stdout
        assert json.loads(shown)["name"] == "paris"
        run("fleet", "invite", "alice", "--role", "view", "--directory", "lab", cwd=made)
        seen = run("fleet", "hosts", "--fleet", "alice.fleet", cwd=made).stdout
        assert seen.startswith("HOST")
        run("fleet", "remove", "alice", "--directory", "lab", cwd=made)
        refused = run("fleet", "hosts", "--fleet", "alice.fleet", cwd=made, code=4)
        assert "does not know this key" in refused.stderr
        pids = [int(pid) for pid, _ in children(up)]
        assert len(pids) == 2
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def test_what_dies_is_started_again(made):
    with fleet_up(made) as up:
        (server,) = [int(pid) for pid, words in children(up) if "nats-server" in words]
        os.kill(server, signal.SIGKILL)
        assert up.stderr.readline() == "The server has died, and is started again.\n"
        (other,) = [int(pid) for pid, words in children(up) if "nats-server" in words] or [server]
        while other == server:
            (other,) = [int(p) for p, words in children(up) if "nats-server" in words] or [server]
        run("fleet", "queue", "--directory", "lab", cwd=made)


def test_a_port_that_is_taken_is_said(made):
    with fleet_up(made):
        other = run("fleet", "up", "lab", cwd=made, code=4)
    assert "nats-server has ended" in other.stderr
    assert "address already in use" in other.stderr


def test_without_the_extra_it_is_said_what_to_install(tmp_path):
    for package in ("cryptography", "nats"):
        (tmp_path / package).mkdir(exist_ok=True)
        (tmp_path / package / "__init__.py").write_text("raise ImportError")
    done = subprocess.run(
        [sys.executable, "-m", "benchctl", "fleet", "remove", "x"], cwd=tmp_path,
        capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 3
    assert 'pip install "benchctl[fleet]"' in done.stderr


def test_no_command_but_a_fleet_s_imports_what_only_a_fleet_needs(tmp_path):
    code = (
        "import sys; from benchctl.cli.main import app\n"
        "try: app(['runs', '--store', 'none.sqlite'], standalone_mode=False)\n"
        "except BaseException: pass\n"
        "print([m for m in ('nats', 'cryptography', 'benchctl.fleet.trust') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
