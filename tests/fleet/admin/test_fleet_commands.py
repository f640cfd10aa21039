"""The commands of a fleet, as an administrator and a host's owner type them."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from fleet.fleet_support import need_server
from ports import lend_port
from waiting import wait_until

from benchctl.fleet.admin.directory import FleetDirectory
from benchctl.fleet.admin.server import DEFAULT_PORT
from benchctl.hosts.sent.ports import candidates

BENCHCTL = [sys.executable, "-P", "-m", "benchctl"]


@pytest.fixture
def run(fork_server):
    def run(*words, cwd, stdin="", code=0):
        done = fork_server.run(["benchctl", *words], cwd, dict(os.environ), stdin=stdin)
        assert done.returncode == code, done.stderr
        return done

    return run


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
def made(tmp_path, run):
    need_server()
    run("fleet", "init", "lab", "--listen", f"127.0.0.1:{lend_port()}", cwd=tmp_path)
    return tmp_path


def test_a_trial_s_server_has_a_port_that_no_connection_is_given(tmp_path, run):
    need_server()
    done = run("fleet", "init", "lab", cwd=tmp_path)
    port = int(re.search(r"^fleet lab at 127\.0\.0\.1:(\d+)$", done.stderr, re.M)[1])
    assert port in candidates(DEFAULT_PORT)


def children(process):
    found = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(process.pid)], capture_output=True, text=True
    )
    return [line.split(None, 1) for line in found.stdout.splitlines()]


def test_from_nothing_to_a_host_that_has_joined(made, run):
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
        assert hosts.splitlines()[2].split()[:3] == ["paris", "never", "seen"]
        shown = run("fleet", "hosts", "--directory", "lab", "--json", cwd=made).stdout
        assert json.loads(shown)["name"] == "paris"
        run("fleet", "invite", "alice", "--role", "view", "--directory", "lab", cwd=made)
        seen = run("fleet", "hosts", "--fleet", "alice.fleet", cwd=made).stdout
        assert seen.startswith("host")
        run("fleet", "remove", "alice", "--directory", "lab", cwd=made)
        refused = run("fleet", "hosts", "--fleet", "alice.fleet", cwd=made, code=4)
        assert "does not know this key" in refused.stderr
        pids = [int(pid) for pid, _ in children(up)]
        assert len(pids) == 2
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


FAKES = {
    "ssh": 'for last; do :; done; exec sh -c "$last"',  # logs in to this machine
    "systemctl": 'echo "systemctl $*" >> "$CALLS"',
    "loginctl": 'echo "loginctl $*" >> "$CALLS"',
}


def host_over_ssh(path):
    """The environment of a host that ssh reaches: where benchctl is installed already."""
    programs, place = path / "fakes", path / "home" / ".local" / "share" / "benchctl-agent" / "bin"
    for folder in (programs, place):
        folder.mkdir(parents=True)
    texts = {programs / name: text for name, text in FAKES.items()}
    texts[place / "python"] = 'echo "python $*" >> "$CALLS"'  # pip needs no network here
    texts[place / "benchctl"] = f'exec {" ".join(BENCHCTL)} "$@"'
    for file, text in texts.items():
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)
    return {
        "HOME": str(path / "home"), "CALLS": str(path / "calls"), "XDG_RUNTIME_DIR": "/nowhere",
        "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
    }  # fmt: skip


def test_over_ssh_all_is_done_on_the_host(made, run, monkeypatch):
    with fleet_up(made):
        for name, value in host_over_ssh(made).items():
            monkeypatch.setenv(name, value)
        for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
            monkeypatch.delenv(name, raising=False)
        done = run(
            "fleet", "add", "paris", "--over-ssh", "ops@paris", "--directory", "lab", cwd=made
        )
    assert "paris has joined the fleet lab" in done.stdout
    calls = (made / "calls").read_text().splitlines()
    assert calls[0].startswith("python -m pip install --quiet benchctl[fleet]==")
    assert calls[1:] == [
        "systemctl --user daemon-reload",
        "systemctl --user enable --quiet benchctl-agent.service",
        "systemctl --user restart benchctl-agent.service",
        "loginctl enable-linger",
    ]
    config = made / "home" / ".config"
    assert (config / "benchctl" / "agent" / "host.fleet").stat().st_mode & 0o777 == 0o600
    assert (config / "systemd" / "user" / "benchctl-agent.service").exists()


def test_a_host_that_ssh_does_not_reach_is_said(made, run, monkeypatch):
    (made / "ssh").write_text("#!/bin/sh\nexit 255\n")
    (made / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{made}:{os.environ['PATH']}")
    done = run("fleet", "add", "a", "--over-ssh", "b", "--directory", "lab", cwd=made, code=4)
    assert "b has not joined (exit code 255)" in done.stderr


def test_the_first_commands_of_the_page_lead_to_a_host(tmp_path, run):
    """All but those that install, log in elsewhere or need systemd, for which there is a trial."""
    need_server()
    block = (Path(__file__).parents[3] / "docs" / "fleet.md").read_text().split("```sh\n")[1]
    lines = [line.split() for line in block.partition("```")[0].splitlines()]
    assert len(lines) <= 10
    typed = [words[1:] for words in lines if words[0] == "benchctl" and "--over-ssh" not in words]
    (init,) = [words for words in typed if words[:2] == ["fleet", "init"]]
    init[init.index("--address") + 1] = f"127.0.0.1:{lend_port()}"
    run(*init, "--listen", init[-1], cwd=tmp_path)
    with fleet_up(tmp_path):
        for words in typed[1:]:
            done = run(*words, cwd=tmp_path / "lab")
            if words[:2] == ["fleet", "add"]:
                run("agent", "join", "--directory", "host", "--units", "units", cwd=tmp_path,
                    stdin=done.stdout)  # fmt: skip
    assert typed[-1] == ["fleet", "hosts"]
    assert done.stdout.splitlines()[2].split()[:2] == ["oslo", "never"]


def test_how_much_a_person_may_use_is_given_changed_and_shown(tmp_path, run, monkeypatch):
    FleetDirectory.make(tmp_path / "lab", "lab", "127.0.0.1:1", "127.0.0.1:1", time.time())
    monkeypatch.setenv("BENCHCTL_FLEET_DIR", "lab")

    def typed(*words, code=0):
        return run("fleet", *words, cwd=tmp_path, code=code)

    typed("invite", "alice", "--role", "run", "--hosts", "10")
    member = (tmp_path / "alice.fleet").read_bytes()
    changed = typed("limit", "alice", "--trials", "5", "--day-bytes", "1GiB")
    assert changed.stdout == (
        "alice may use 10 hosts, measure 5 trials at once, and send 1.00 GiB a day\n"
    )
    assert (tmp_path / "alice.fleet").read_bytes() == member
    assert typed("people").stdout.splitlines()[2:] == [
        "admin   admin     64      32     9.09 TiB",
        "alice   run       10       5     1.00 GiB",
    ]
    assert json.loads(typed("people", "--json").stdout.splitlines()[1]) == {
        "person": "alice", "role": "run", "hosts_at_once": 10, "trials_at_once": 5,
        "bytes_a_day": 2**30,
    }  # fmt: skip
    for words, why in (
        (["alice"], "give --hosts, --trials or --day-bytes"),
        (["alice", "--day-bytes", "1"], '"1": no unit'),
        (["alice", "--day-bytes", "99999TB"], "99999TB is too large"),
        (["bob", "--hosts", "1"], "this fleet has no person bob"),
    ):
        assert why in typed("limit", *words, code=2).stderr


def test_what_dies_is_started_again(made, fork_server):
    with fleet_up(made) as up:
        (server,) = [int(pid) for pid, words in children(up) if "nats-server" in words]
        os.kill(server, signal.SIGKILL)
        assert up.stderr.readline() == "The server has died, and is started again.\n"
        (other,) = [int(pid) for pid, words in children(up) if "nats-server" in words] or [server]
        while other == server:
            (other,) = [int(p) for p, words in children(up) if "nats-server" in words] or [server]
        # The coordinator connects again by itself; until then nobody answers.
        queue = ["benchctl", "fleet", "queue", "--directory", "lab"]
        wait_until(lambda: not fork_server.run(queue, made, dict(os.environ)).returncode)


def test_a_port_that_is_taken_is_said(made, run):
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
