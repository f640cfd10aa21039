"""Units of systemd: for the server and the coordinator, and for a host's agent."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Final

from benchctl.errors import UsageError
from benchctl.visible import visible

SERVER_UNIT: Final = "benchctl-fleet-server.service"
COORDINATOR_UNIT: Final = "benchctl-fleet-coordinator.service"
AGENT_UNIT: Final = "benchctl-agent.service"


def server_unit(program: str, python: str, directory: Path, user: str, *, low_port: bool) -> str:
    """Return the unit of nats-server; a port below 1024 needs a capability."""
    right = "AmbientCapabilities=CAP_NET_BIND_SERVICE\n" if low_port else ""
    return f"""\
[Unit]
Description=Server of a benchctl fleet ({_plain(directory)})
Wants=network-online.target
After=network-online.target

[Service]
User={user}
ExecStart={_words(program, "-c", directory / "nats.conf")}
ExecStartPost={_words(python, "-P", "-m", "benchctl", "fleet", "streams", directory)}
ExecReload=/bin/kill -HUP $MAINPID
Restart=always
RestartSec=1
LimitNOFILE=65536
UMask=0077
NoNewPrivileges=true
{right}
[Install]
WantedBy=multi-user.target
"""


def coordinator_unit(python: str, directory: Path, user: str) -> str:
    """Return the unit of the coordinator."""
    return f"""\
[Unit]
Description=Coordinator of a benchctl fleet ({_plain(directory)})
Wants={SERVER_UNIT}
After={SERVER_UNIT}

[Service]
User={user}
ExecStart={_words(python, "-P", "-m", "benchctl", "fleet", "coordinator", directory)}
Restart=always
RestartSec=1
UMask=0077
NoNewPrivileges=true

[Install]
WantedBy=multi-user.target
"""


def agent_unit(python: str, directory: Path) -> str:
    """Return the user's unit of a host's agent."""
    return f"""\
[Unit]
Description=Agent of a benchctl fleet ({_plain(directory)})

[Service]
ExecStart={_words(python, "-P", "-m", "benchctl", "agent", "run", directory)}
Restart=always
RestartSec=2

[Install]
WantedBy=default.target
"""


def write_units(directory: Path, program: str, python: str, listen: str) -> list[Path]:
    """Write the units of server and coordinator into a fleet's directory; returns their files."""
    user = getpass.getuser()
    low_port = int(listen.rpartition(":")[2]) < 1024
    texts = {
        SERVER_UNIT: server_unit(program, python, directory, user, low_port=low_port),
        COORDINATOR_UNIT: coordinator_unit(python, directory, user),
    }
    units = directory / "units"
    units.mkdir()
    for name, text in texts.items():
        (units / name).write_text(text, encoding="utf-8")
    return [units / name for name in texts]


def _words(*words: object) -> str:
    """Return a command line as systemd reads it (systemd.service(5), COMMAND LINES)."""
    return " ".join(map(_quoted, map(str, words)))


def _quoted(word: str) -> str:
    if any(ord(letter) < 32 for letter in word):
        raise UsageError(f"{word!r}: systemd takes no control character", "use another directory")
    text = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{text}"'


def _plain(directory: Path) -> str:
    return visible(str(directory)).replace("%", "%%")
