"""The ``ssh`` commands that start the agent on a host, or plain shells, and what failures mean.

OpenSSH's own client honours what people have configured: names, jump hosts, keys, Kerberos. It
decides on keys alone, and never asks: what it would ask for is an error that says how to mend it.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping

from benchctl.errors import HostError
from benchctl.run.planned import SshTarget
from benchctl.visible import visible

LOGGED_IN = b"benchctl: logged in\n"
"""What comes first once ``ssh`` has logged in; not over a master that a person has opened."""
# What a NAT on the way forgets last.
_ALIVE_S = 5
# The connection belongs to one run, so it leaves nothing behind; a master that a person has opened
# is used, since it may have needed a password. What a person forwards would be in use twice.
_OPTIONS: Mapping[str, str] = {
    "BatchMode": "yes",
    "ConnectTimeout": "10",
    "ServerAliveInterval": f"{_ALIVE_S}",
    "ControlMaster": "no",
    "ControlPersist": "no",
    "ClearAllForwardings": "yes",
    "ForwardAgent": "no",
    "ForwardX11": "no",
    # Every shell understands it, and none expands it.
    "PermitLocalCommand": "yes",
    "LocalCommand": f"echo {LOGGED_IN.decode().strip()}",
    "RemoteCommand": "none",
    "RequestTTY": "no",
    "LogLevel": "ERROR",
}
OLDEST = (3, 9)
_LEAST = ".".join(map(str, OLDEST))
INSTALL = f"install Python {_LEAST} or newer there; it may be in the PATH as python{_LEAST}"
_NEWER = tuple(f"python3.{minor}" for minor in range(20, OLDEST[1] - 1, -1))
# Where systems keep one that is not in the PATH of a command without a terminal.
_ASIDE = ("/usr/libexec/platform-python", "/usr/local/bin/python3", "/opt/homebrew/bin/python3")
# -I and -S leave out site-packages and the environment, and start faster.
BOOT = "import sys; i=sys.stdin.buffer; exec(i.read(int(i.readline())))"
_FOUND_NONE = 97
# A script on one line of stdin, so that no list of processes shows what is in it. Signals go to
# the process group that it leads; an SSH server that starts none needs setsid.
_PLAIN = (
    'kill -0 -$$ 2>/dev/null || exec setsid /bin/sh -c "$0" "$0"; IFS= read -r line; eval "$line"'
)


class NoPythonError(HostError):
    """A host has no Python that is new enough for the agent."""


def command(reach: SshTarget) -> tuple[str, ...]:
    """Return the command that reads the length and the text of the agent, and becomes it."""
    return _command(reach, there(reach.sudo))


def plain(reach: SshTarget, socket: str) -> tuple[str, ...]:
    """Return the command of a shell that runs one line of its input, and lets others in.

    Those of `session` use its connection, by a ``socket``.
    """
    return _command(reach, plain_there(), ControlMaster="yes", ControlPath=socket)


def session(reach: SshTarget, socket: str, *, as_root: bool = False) -> tuple[str, ...]:
    """Return the command of another such shell on the connection that has a ``socket``."""
    there = plain_there(as_root and reach.sudo)
    # Without a session there it would open a connection of its own, past the one that is watched.
    return _command(reach, there, ControlPath=socket, ProxyCommand="false")


def _command(reach: SshTarget, there: str, **more: str) -> tuple[str, ...]:
    # It gives up after us, who say why.
    alive = f"{math.ceil(reach.patience_s / _ALIVE_S) + 1}"
    known = {**_OPTIONS, "ServerAliveCountMax": alive, **more}
    options = [word for name, value in known.items() for word in ("-o", f"{name}={value}")]
    # A destination is no option, whatever it begins with.
    return *reach.over, "ssh", *options, *reach.options, "--", reach.destination, there


def there(sudo: bool = False) -> str:
    """Return what the host's login shell gets, whichever it is: one line, without ``'`` and ``!``.

    csh and fish read it as sh does.
    """
    new_enough = f"import sys; sys.exit(sys.version_info < {OLDEST})"
    as_root = "sudo -n " * sudo
    script = (
        f"for p in python3 {' '.join((*_NEWER, *_ASIDE))}; do "
        f'$p -I -S -c "{new_enough}" </dev/null >/dev/null 2>&1 && '
        # sudo removes it from the environment, and looks for programs in a path of its own.
        f'exec {as_root}$(command -v $p) -I -S -c "{BOOT}" $SSH_CONNECTION; done; '
        f"echo benchctl: $(python3 -V 2>&1) >&2; exit {_FOUND_NONE}"
    )
    return f"exec /bin/sh -c '{script}'"


def plain_there(sudo: bool = False) -> str:
    """Return what the login shell of a host without Python gets, as `there`."""
    return f"exec {'sudo -n ' * sudo}/bin/sh -c '{_PLAIN}' '{_PLAIN}'"


_KINDS = (
    (r"REMOTE HOST IDENTIFICATION HAS CHANGED",
     "its host key is not the known one",
     "if it was installed again, remove the old key: {remove}"),
    (r"Host key verification failed|No \S+ host key is known",
     "its host key is unknown",
     "connect once and compare the key: {ssh}"),
    (r"Permission denied \((?!.*publickey)",
     "permission denied: it takes no keys",
     "let its sshd take keys (PubkeyAuthentication), or log in once yourself by ControlMaster and "
     "ControlPath in ~/.ssh/config"),
    (r"Permission denied|Too many authentication failures",
     "permission denied",
     "install your key there: ssh-copy-id {name}; or unlock it: ssh-add"),
    (r"sudo: .*password is required|sudo: .*not allowed|not in the sudoers",
     "sudo would ask for a password",
     "allow it without one there (NOPASSWD in visudo), or set sudo = false"),
    (r"sudo: .*must have a tty",
     "sudo wants a terminal",
     "remove requiretty there, for this user at least: visudo"),
    (r"sudo: (command )?not found",
     "it has no sudo",
     "install it there, or set sudo = false"),
    (r"Could not resolve hostname",
     "its name is unknown",
     "give it a HostName in ~/.ssh/config, or correct ssh"),
    (r"Connection timed out|Operation timed out|timed out during banner",
     "it does not answer",
     "see whether it runs and a firewall lets SSH through: {ssh}"),
    (r"Connection refused", "it refuses connections", "start sshd there, or give its port: {ssh}"),
    (r"No route to host|Network is unreachable", "there is no route to it", "{ssh}"),
)  # fmt: skip
# Debian's ssh prints the command, and every other what it is made of (sshconnect.c).
_REMOVES = re.compile(r"^\s*(ssh-keygen -f .* -R .*?)\s*$", re.MULTILINE)
_OFFENDING = re.compile(r"^Offending .*key in (.+):\d+\s*$", re.MULTILINE)
_CHANGED = re.compile(r"^Host key for (\S+) has changed", re.MULTILINE)
_BUSY = re.compile(r"kex_exchange_identification|Connection (closed|reset) by|MaxStartups")


def is_busy(said: str) -> bool:
    """Return whether a login was refused because others log in: MaxStartups of sshd_config(5)."""
    return bool(_BUSY.search(said))


def last_line(said: str) -> str:
    """Return the last line that is not empty, for people; empty if there is none."""
    lines = [visible(line.strip()) for line in said.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def stuck(host: str, reach: SshTarget, said: str, limit: str) -> HostError:
    """Return that a login works, and nothing starts; ``said`` is what came from there.

    ``limit`` says what it had to start in: "within 15 s".
    """
    printed = last_line(said)
    its_words = f"its shell prints: {printed}" if printed else "its shell prints nothing"
    what = f"the login works, but runs no command {limit}; {its_words}"
    hint = f"see what waits there, as a start-up file or a menu of the server: {_by_hand(reach)}"
    return HostError(f"host {host}: {what}", hint)


def failure(host: str, reach: SshTarget, said: str, code: int | None) -> HostError:
    """Return why no agent started, by what ``ssh`` or the shell there wrote to stderr."""
    ssh = _by_hand(reach)
    words = {"ssh": ssh, "name": shlex.quote(reach.destination)}
    host_name = words["name"].rpartition("@")[2]
    words["remove"] = _remover(said) or f"ssh-keygen -R {host_name}"
    if code == _FOUND_NONE:
        found = re.search(r"Python (3\.\S+)", said)
        what = f"its Python {found[1]} is too old" if found else "it has no python3"
        return NoPythonError(f"host {host}: {visible(what)}", INSTALL)
    for pattern, what, hint in _KINDS:
        if re.search(pattern, said):
            return HostError(f"host {host}: {what}", hint.format(**words))
    what = last_line(said) or f"ssh ended with code {code}"
    says = "sudo" if what.startswith("sudo: ") else "ssh"
    by_hand = _by_hand(reach, "sudo -n true") if says == "sudo" else ssh
    return HostError(f"host {host}: {what}", f"see what {says} says: {by_hand}")


def _remover(said: str) -> str:
    """Return the command that removes a known key; ssh knows the file, the real name and port."""
    if printed := _REMOVES.search(said):
        return visible(printed[1])
    file, host = _OFFENDING.search(said), _CHANGED.search(said)
    return (
        visible(shlex.join(("ssh-keygen", "-f", file[1], "-R", host[1]))) if file and host else ""
    )


def _by_hand(reach: SshTarget, there: str = "true") -> str:
    """Return the command by which people see the same."""
    words = *reach.over, "ssh", *reach.options, reach.destination, *there.split()
    return shlex.join(words)
