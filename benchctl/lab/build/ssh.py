"""OpenSSH inside a lab: its hosts reach those that serve, by name, with a key of the lab's own.

The keys and settings are in memory, at /etc/ssh of the lab alone, and end with it.

Whoever logs in is an ordinary user, without the capabilities of the lab's own commands. A server
of root separates its privileges by groups and by another user, which the user namespace of a lab
without root does not have ("setgroups: Operation not permitted"). One of an ordinary user does not
(main in sshd.c, ``privsep_chroot``). So each runs in a user namespace where it is one, in any lab.
"""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path

from benchctl.lab.build.devices import BuildError, program_path
from benchctl.lab.syscalls import MS_NODEV, MS_NOEXEC, MS_NOSUID, mount
from benchctl.lab.topology.ssh_service import PLACE, SERVER_SETTINGS

USER = "benchctl"
"""Who logs in. The name has to be in /etc/passwd."""
_ID = 1000
USERS = Path("/etc/passwd")
_KEY, _HOST_KEY, _KNOWN = PLACE / "lab_key", PLACE / "lab_host_key", PLACE / "ssh_known_hosts"
_CLIENT = PLACE / "ssh_config"

AS_USER = ("unshare", "--user", f"--map-user={_ID}", f"--map-group={_ID}", "--")
"""The words before a command that runs as the user who logs in."""


def users_file(text: str) -> str:
    """Return a machine's /etc/passwd with the user who logs in."""
    # First: the user's number may be that of somebody else, too.
    return f"{USER}:x:{_ID}:{_ID}::/:/bin/sh\n{text}"


def mount_keys() -> None:
    """Make keys and settings in this mount namespace. Raises BuildError or OSError."""
    keygen = program_path("ssh-keygen")
    if keygen is None or not PLACE.is_dir():
        raise BuildError("no OpenSSH here: install openssh-server and openssh-client")
    mount("lab", str(PLACE), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=755")
    # What somebody has configured is for other hosts of the same names. ssh(1) takes the home
    # directory from the list of users.
    own = Path("~root/.ssh").expanduser()
    with suppress(FileNotFoundError, PermissionError):  # then ssh reads nothing there either
        mount("lab", str(own), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=700")
    for key in (_KEY, _HOST_KEY):
        made = subprocess.run(
            [keygen, "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", key],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if made.returncode:
            raise BuildError(f"ssh-keygen: {made.stderr.strip()}")
    _KNOWN.write_text(f"* {_HOST_KEY.with_suffix('.pub').read_text()}")
    _CLIENT.write_text(f"User {USER}\nIdentityFile {_KEY}\nGlobalKnownHostsFile {_KNOWN}\n")
    # StrictModes: the machine's root is nobody in the user namespace, and owns /etc.
    SERVER_SETTINGS.write_text(
        f"HostKey {_HOST_KEY}\nAuthorizedKeysFile {_KEY}.pub\nStrictModes no\nUsePAM no\n"
        "PidFile none\n"
    )
