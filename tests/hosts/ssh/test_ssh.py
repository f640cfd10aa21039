"""Why a host cannot be reached is said in one line, with what mends it."""

import asyncio
import os
import signal
import subprocess
import sys

import pytest
from hosts.linked import REACH, linked, started
from needs import OLD_PYTHONS, python_39, python_of
from waiting import DEADLINE_S, until

from benchctl.errors import HostError
from benchctl.hosts.hosts import Hosts
from benchctl.hosts.ssh import login, remote, ssh
from benchctl.hosts.tasks import cancel
from benchctl.run.planned import PATIENCE_S, Host, SshTarget

PARIS = Host("paris", "192.0.2.1", reach=SshTarget("ann@paris"))


def script(directory, name, text):
    path = directory / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def there(tmp_path, monkeypatch):
    """Let ``ssh`` be a script; returns what writes it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    return lambda text: script(folder, "ssh", text)


# What a login shell does with the command that it gets.
RUNS = 'for last; do :; done; exec sh -c "$last"'


def reached(host=PARIS):
    async def main():
        async with Hosts() as hosts:
            return (await hosts.link(host)).about

    return asyncio.run(main())


def test_a_host_is_reached_by_the_ssh_in_the_path(there):
    there(RUNS)
    assert reached()["system"] == sys.platform


def test_what_start_up_files_print_does_not_disturb(there):
    there(f"echo 'Welcome to paris!'; echo motd >&2; {RUNS}")
    assert reached()["system"] == sys.platform


@pytest.mark.parametrize(
    ("said", "message", "hint"),
    [
        ("Host key verification failed.", "its host key is unknown", "ssh ann@paris true"),
        ("@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n"
         "Host key verification failed.",
         "its host key is not the known one", "ssh-keygen -R paris"),
        ("@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n"
         "  ssh-keygen -f \"/home/ann/.ssh/known_hosts\" -R \"[198.51.100.1]:2222\"\n"
         "Host key verification failed.",
         "its host key is not the known one",
         'key: ssh-keygen -f "/home/ann/.ssh/known_hosts" -R "[198.51.100.1]:2222"'),
        ("@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n"
         "Offending ED25519 key in /home/ann/.ssh/known_hosts:3\r\n"
         "Host key for [198.51.100.1]:2222 has changed and you have requested strict checking.\r\n"
         "Host key verification failed.",
         "its host key is not the known one",
         "key: ssh-keygen -f /home/ann/.ssh/known_hosts -R"),
        ("ann@paris: Permission denied (password,keyboard-interactive).",
         "permission denied: it takes no keys", "ControlPath"),
        ("ann@paris: Permission denied (publickey,password).", "permission denied",
         "ssh-copy-id ann@paris"),
        ("ann@paris: Permission denied (publickey).", "permission denied", "ssh-copy-id ann@paris"),
        ("ssh: Could not resolve hostname paris: Name or service not known",
         "its name is unknown", "HostName"),
        ("ssh: connect to host paris port 22: Connection timed out",
         "it does not answer", "firewall"),
        ("ssh: connect to host paris port 22: Connection refused",
         "it refuses connections", "start sshd"),
        ("ssh: connect to host paris port 22: No route to host", "there is no route to it", "ssh"),
        ("sudo: a password is required", "sudo would ask for a password", "NOPASSWD"),
        ("sudo: /usr/bin/sudo must be owned by uid 0 and have the setuid bit set",
         "sudo: /usr/bin/sudo must be owned by uid 0 and have the setuid bit set",
         "see what sudo says: ssh ann@paris sudo -n true"),
        ("Something\x1b[31m new", r"Something\x1b[31m new", "ssh ann@paris true"),
        ("", "ssh ended with code 255", "ssh ann@paris true"),
    ],
)  # fmt: skip
def test_a_failed_login_says_what_mends_it(there, said, message, hint):
    there(f"printf '%s\\n' '{said}' >&2; exit 255")
    with pytest.raises(HostError) as caught:
        reached()
    assert caught.value.message == f"host paris: {message}"
    assert hint in caught.value.hint
    assert "\n" not in caught.value.message + caught.value.hint


def test_a_login_that_sshd_refuses_for_their_number_is_tried_again(there, tmp_path, monkeypatch):
    monkeypatch.setattr(login, "AGAIN_S", 0.001)
    here = tmp_path / "tried"
    refuses = f"[ -e {here}2 ] || {{ [ -e {here} ] && touch {here}2; touch {here}; "
    refuses += (
        "echo 'kex_exchange_identification: Connection closed by remote host' >&2; exit 255; }"
    )
    there(f"{refuses}\n{RUNS}")
    assert reached()["system"] == sys.platform


LOGGED_IN = ssh.LOGGED_IN.decode().strip()


@pytest.mark.parametrize(
    ("does", "printed"),
    [
        (
            rf"printf '{LOGGED_IN}\nWelcome\n\nChoose: \a1) mail\n\n'",
            r"its shell prints: Choose: \x071) mail",
        ),
        (f"printf 'Project? ' >&2; echo '{LOGGED_IN}'", "its shell prints: Project?"),
        (f"echo '{LOGGED_IN}'", "its shell prints nothing"),
    ],
    ids=["a menu", "a question", "silence"],
)  # fmt: skip
def test_a_login_that_runs_no_command_is_told_with_what_it_prints(
    there, does, printed, monkeypatch
):
    """All that is printed is there when the time begins, which a busy machine may need."""
    monkeypatch.setattr(login, "START_S", 0.0)
    there(f"{does}; exec sleep 1000")
    with pytest.raises(HostError) as caught:
        reached()
    what = "host paris: the login works, but runs no command within 0 s"
    assert caught.value.message == f"{what}; {printed}"
    assert "ssh ann@paris true" in caught.value.hint


def test_a_login_has_the_time_that_a_key_in_hardware_needs(there, monkeypatch):
    monkeypatch.setattr(login, "START_S", 0.0)
    there(RUNS)
    assert reached()["system"] == sys.platform


def test_a_login_that_never_comes_ends(there, monkeypatch):
    monkeypatch.setattr(login, "LOGIN_S", 0.3)
    there("exec sleep 1000")
    with pytest.raises(HostError, match="host paris: no login within 0 s"):
        reached()


def test_a_login_that_nobody_waits_for_any_more_ends_at_once(there, tmp_path, monkeypatch):
    monkeypatch.setattr(login, "LOGIN_S", 3600.0)
    pid = tmp_path / "pid"
    there(f"trap '' TERM HUP; echo $$ > {pid}.new; mv {pid}.new {pid}; read _; exec sleep 3600")

    async def main():
        async with Hosts() as hosts:
            opening = asyncio.ensure_future(hosts.link(PARIS))
            await until(pid.exists)
            await cancel(opening)

    asyncio.run(asyncio.wait_for(main(), DEADLINE_S))
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_a_shell_that_ends_without_a_command_is_told_by_what_it_printed(there):
    there(f"echo '{LOGGED_IN}'; echo 'This account is currently not available.'; exit 1")
    with pytest.raises(HostError, match=r"host paris: This account is currently not available\.$"):
        reached()


def test_a_machine_without_ssh_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostError, match="ssh cannot be started: No such file") as caught:
        linked(None, argv=ssh.command(REACH))
    assert "OpenSSH" in caught.value.hint


def only(directory, **programs):
    """Return the environment of a host that has these programs, and those of POSIX."""
    for name, text in programs.items():
        script(directory, name, text)
    return {"PATH": f"{directory}:/nowhere"}


def test_a_host_without_python_says_so(there, tmp_path):
    there(f"PATH={tmp_path}; {RUNS.replace('exec sh', 'exec /bin/sh')}")
    with pytest.raises(HostError, match="host paris: it has no python3") as caught:
        reached()
    assert "3.9" in caught.value.hint


OLD = 'case "$*" in *-V*) echo Python 3.6.15;; esac; exit 1'


def test_a_host_whose_python_is_too_old_says_which_it_is(there, tmp_path):
    script(tmp_path, "python3", OLD)
    there(f"PATH={tmp_path}; {RUNS.replace('exec sh', 'exec /bin/sh')}")
    with pytest.raises(HostError, match=r"host paris: its Python 3\.6\.15 is too old"):
        reached()


@pytest.mark.parametrize("version", OLD_PYTHONS)
def test_a_host_with_an_old_python_says_which_it_is(there, tmp_path, version):
    (tmp_path / "python3").symlink_to(python_of(version))
    there(f"PATH={tmp_path}; {RUNS.replace('exec sh', 'exec /bin/sh')}")
    with pytest.raises(HostError, match=rf"host paris: its Python {version}\.\d+ is too old"):
        reached()


@pytest.mark.skipif(not python_39(), reason="needs Python 3.9: pyenv install 3.9")
def test_a_newer_python_is_looked_for_by_its_name(there, tmp_path):
    script(tmp_path, "python3", OLD)
    (tmp_path / "python3.9").symlink_to(python_39())
    there(f"PATH={tmp_path}; {RUNS.replace('exec sh', 'exec /bin/sh')}")
    assert reached()["python"].startswith("3.9")


def test_no_tool_is_started_as_root_unless_asked():
    assert "sudo" not in ssh.there()
    assert "exec sudo -n $(command -v $p)" in ssh.there(sudo=True)


def test_every_login_shell_reads_the_command_alike():
    """csh expands ``!`` and breaks lines in quotes, and fish reads ``\\``."""
    text = ssh.there(sudo=True)
    assert text.count("'") == 2
    assert not {"!", "\n", "\\", "`"} & set(text)


def test_options_of_a_destination_are_none_of_ssh():
    words = ssh.command(SshTarget("-oProxyCommand=evil"))
    assert words[words.index("-oProxyCommand=evil") - 1] == "--"


@pytest.mark.tool("ssh")
def test_the_real_ssh_takes_all_the_options():
    words = ssh.command(SshTarget("paris.invalid", options=("-F", "none")))
    place = words.index("ssh") + 1
    done = subprocess.run(
        [*words[:place], "-G", *words[place:]], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    told = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    assert told["batchmode"] == "yes"
    assert told["serveraliveinterval"] == "5"
    assert 5 * int(told["serveralivecountmax"]) > PATIENCE_S  # who gives up first says why
    assert told["controlmaster"] == "false"
    assert told["localcommand"] == f"echo {ssh.LOGGED_IN.decode().strip()}"


# --- a connection that breaks -----------------------------------------------------------------


def test_a_command_ends_with_the_reason_when_its_connection_breaks(there, tmp_path):
    there(f"echo $$ > {tmp_path}/pid; {RUNS}")

    async def main():
        async with Hosts() as hosts:
            link = await hosts.link(PARIS)
            lost = hosts.lost(PARIS)
            process, output = await started(link, "sleep", "1000")
            os.kill(int((tmp_path / "pid").read_text()), 9)
            code = await process.wait()
            again = await hosts.link(PARIS)
            return code, output, await lost, again is not link, hosts.lost(PARIS).done()

    code, output, why, is_new, is_lost = asyncio.run(main())
    assert code == 255
    assert why.startswith("host paris: ")
    assert output[-1][1] == f"{why}\n".encode()
    assert (is_new, is_lost) == (True, False)


def test_a_host_that_is_frozen_is_lost(there, tmp_path, monkeypatch):
    monkeypatch.setattr(remote, "PING_S", 0.05)
    there(f"echo $$ > {tmp_path}/pid; {RUNS}")

    async def main():
        async with Hosts() as hosts:
            link = await hosts.link(PARIS)
            pid = int((tmp_path / "pid").read_text())
            os.kill(pid, signal.SIGSTOP)
            link._patience_s = 0.2
            try:
                return await link.ended
            finally:
                os.kill(pid, signal.SIGCONT)

    assert asyncio.run(main()).startswith("host paris: it has been silent for ")


def test_hosts_are_connected_at_the_same_time_but_not_too_many(there):
    there(RUNS)
    many = [Host(f"h{n}", "192.0.2.1", reach=SshTarget(f"h{n}")) for n in range(5)]

    async def main():
        greeted = []

        async def on_connect(host, link):
            greeted.append(host.name)

        async with Hosts(on_connect) as hosts:
            await hosts.connect(many)
            await hosts.connect(many)
            return sorted(greeted)

    assert asyncio.run(main()) == [host.name for host in many]
