"""What a host without Python answers, by programs of POSIX: facts, counters, addresses, ports.

Each question is a script for ``sh`` there, and a function here that reads what it prints.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from itertools import islice
from types import ModuleType
from typing import Any

from benchctl.hosts.sent import counters, facts, ports, recorder

_OF_INTERFACES = "/sys/class/net"
_FILES = ("/proc/loadavg", *(f"{facts.PROC_NET}/{path}" for path in facts.SYSCTLS.values()))
_FACTS = (
    "uname -s; uname -r; uname -m; uname -n; "
    f'grep -s "" /dev/null {" ".join(_FILES)} '
    f"{' '.join(f'{_OF_INTERFACES}/*/{name}' for name in ('mtu', 'operstate', 'speed'))}; "
    'grep -s -e "^processor" -e "^model name" /dev/null /proc/cpuinfo; :'
)
# Those of an administrator are not in everybody's PATH.
_ADDRESSES = "PATH=$PATH:/usr/sbin:/sbin; ip addr || ifconfig -a; :"
_LISTENING, _UNCONNECTED = "0A", "07"
_SOCKETS = (
    f'grep -s -e " {_LISTENING} " -e " {_UNCONNECTED} " /dev/null /proc/net/tcp /proc/net/tcp6 '
    "/proc/net/udp /proc/net/udp6 || netstat -an; :"
)
_UPTIME = "/proc/uptime"
_COUNTERS = (
    f'grep -s "" /dev/null {_UPTIME} {" ".join(counters.FILES)}; '
    f'grep -s "^cpu" /dev/null {counters.STAT}; :'
)
_OWN = re.compile(r"inet6? (?:addr: ?)?([0-9A-Fa-f.:]+)")
_OF_LINUX = re.compile(
    rf": [0-9A-F]+:([0-9A-F]{{4}}) [0-9A-F]+:[0-9A-F]{{4}} (?:{_LISTENING}|{_UNCONNECTED}) "
)
_OF_NETSTAT = re.compile(r"^(?:tcp|udp)\S* +\d+ +\d+ +\S*[.:](\d+) ", re.MULTILINE)


def _facts(text: str) -> dict[str, Any]:
    """Return the facts of `facts.collect` that need no system call."""
    system, kernel, machine, hostname, *rest = text.splitlines()
    known = dict[str, str]()
    model, count = "", 0
    for line in rest:
        file, _, value = line.partition(":")
        if file == "/proc/cpuinfo":
            name, _, fact = value.partition(":")
            count += name.startswith("processor")
            model = fact.strip() if name.startswith("model") else model
        else:
            known[file] = " ".join(value.split())
    interfaces: dict[str, dict[str, Any]] = {}
    for file, value in known.items():
        if file.startswith(_OF_INTERFACES):
            device, key = file.split("/")[-2:]
            about = interfaces.setdefault(device, {})
            if key == "operstate":
                about["state"] = value
            elif key == "mtu":
                about["mtu"] = int(value)
            elif int(value) > 0:
                about["speed_bps"] = int(value) * 1_000_000
    load = known.get("/proc/loadavg")
    return {
        "hostname": hostname,
        "system": system,
        "kernel": kernel,
        "machine": machine,
        **({"cpu": {"count": count, "model": model}} if count else {}),
        **({"load_1min": float(load.split()[0])} if load else {}),
        "sysctls": {
            name: known[file]
            for name, path in facts.SYSCTLS.items()
            if (file := f"{facts.PROC_NET}/{path}") in known
        },
        "interfaces": interfaces,
        "clock": {},
    }


def _counters(text: str) -> dict[str, Any]:
    """Return the counters as `counters.read` does; empty on other systems than Linux."""
    files = dict[str, str]()
    for line in text.splitlines():
        file, _, said = line.partition(":")
        files[file] = f"{files.get(file, '')}{said}\n"
    if _UPTIME not in files:
        return {}
    return counters.parsed(files, float(files.pop(_UPTIME).split()[0]))


def _is_own(text: str, address: str) -> bool:
    """Return whether an address is one of the host's; also if nothing there shows them."""
    own = {ip_address(shown) for shown in _OWN.findall(text)}
    return not own or ip_address(address) in own or ip_address(address).is_loopback


def _first_free(text: str, _: str, first: int, count: int, last: int | None = None) -> list[int]:
    """Return the first few ports that no socket of the host has, at any of its addresses."""
    used = {int(port, 16) for port in _OF_LINUX.findall(text)}
    used |= {int(port) for port in _OF_NETSTAT.findall(text)}
    return list(islice((port for port in ports.candidates(first, last) if port not in used), count))


QUESTIONS: Mapping[tuple[ModuleType, str], tuple[str, Callable[..., Any]]] = {
    (facts, "collect"): (_FACTS, _facts),
    (counters, "read"): (_COUNTERS, _counters),
    (ports, "is_own"): (_ADDRESSES, _is_own),
    (ports, "first_free"): (_SOCKETS, _first_free),
    (recorder, "why_not"): (":", lambda _: "it has no Python 3.9 or newer"),
}
"""By the function of a module that is asked for: the script, and what reads its output."""
