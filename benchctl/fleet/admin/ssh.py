"""Installs and starts an agent on a host over SSH, with the token on its standard input."""

from __future__ import annotations

import base64
import shlex
import subprocess
from typing import Final

from benchctl import __version__
from benchctl.errors import FleetError
from benchctl.fleet.trust.membership import Token

_SCRIPT: Final = """\
set -e
for python in python3.14 python3.13 python3.12 python3.11 python3 none; do
    command -v $python >/dev/null || continue
    $python -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break
done
[ $python != none ] || { echo "this host has no Python 3.11 or newer with venv" >&2; exit 3; }
place=${XDG_DATA_HOME:-$HOME/.local/share}/benchctl-agent
[ -x "$place/bin/python" ] || $python -m venv "$place"
"$place/bin/python" -m pip install --quiet {package} </dev/null
"$place/bin/benchctl" agent join{proxy}
export XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-/run/user/$(id -u)}
if systemctl --user daemon-reload && systemctl --user enable --quiet benchctl-agent.service \\
    && systemctl --user restart benchctl-agent.service; then
    loginctl enable-linger || echo "run as root: loginctl enable-linger $(id -un)" >&2
else
    echo "systemd runs nothing for this user: start benchctl agent run otherwise" >&2
    exit 3
fi
"""


def script(package: str, proxy: str) -> str:
    """Return what the host's shell runs; it reads the token from its standard input."""
    option = f" --proxy {shlex.quote(proxy)}" if proxy else ""
    return _SCRIPT.replace("{package}", shlex.quote(package)).replace("{proxy}", option)


def join_over_ssh(token: Token, address: str, package: str, proxy: str) -> None:
    """Install benchctl on a host, let it join and start its agent. Raises FleetError."""
    package = package or f"benchctl[fleet]=={__version__}"
    # One line without signs that the shell of a login, such as csh, reads in its own way.
    encoded = base64.b64encode(script(package, proxy).encode()).decode()
    command = ["ssh", "--", address, f"sh -c 'eval \"$(echo {encoded} | base64 -d)\"'"]
    try:
        code = subprocess.run(command, input=f"{token.text}\n".encode(), check=False).returncode
    except OSError as error:
        raise FleetError(f"ssh cannot be started: {error.strerror}") from None
    if code:
        raise FleetError(
            f"{address} has not joined (exit code {code})",
            "its messages are above; or run there what benchctl fleet add prints",
        )
