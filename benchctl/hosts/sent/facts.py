"""The facts of a machine: kernel, TCP, buffers, interfaces, clock, processor.

They are recorded with every run, and shown by ``benchctl doctor``. They come from /proc, /sys and
system calls; what a system does not have is left out. Remote hosts run this file, too, with
Python 3.9 and nothing of benchctl.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import platform
import socket
import struct
import sys
from pathlib import Path
from typing import Any

PROC_NET = Path("/proc/sys/net")
SYSCTLS = {
    "tcp_congestion_control": "ipv4/tcp_congestion_control",
    "tcp_available_congestion_control": "ipv4/tcp_available_congestion_control",
    "tcp_rmem": "ipv4/tcp_rmem",
    "tcp_wmem": "ipv4/tcp_wmem",
    "rmem_default": "core/rmem_default",
    "rmem_max": "core/rmem_max",
    "wmem_default": "core/wmem_default",
    "wmem_max": "core/wmem_max",
    "default_qdisc": "core/default_qdisc",
    "disable_ipv6": "ipv6/conf/all/disable_ipv6",
    "tcp_sack": "ipv4/tcp_sack",
    "tcp_timestamps": "ipv4/tcp_timestamps",
    "tcp_window_scaling": "ipv4/tcp_window_scaling",
    "tcp_moderate_rcvbuf": "ipv4/tcp_moderate_rcvbuf",
    "ping_group_range": "ipv4/ping_group_range",
}
# linux/sockios.h and linux/ethtool.h: one ioctl, the legacy query of one offload each.
_SIOCETHTOOL = 0x8946
_OFFLOADS = {
    "rx_checksum": 0x14, "tx_checksum": 0x16, "scatter_gather": 0x18,
    "tcp_segmentation": 0x1E, "generic_segmentation": 0x23, "generic_receive": 0x2B,
}  # fmt: skip
# linux/timex.h
_STA_UNSYNC = 0x0040


def collect() -> dict[str, Any]:
    """Return the facts of this machine as JSON-like data."""
    return {
        "python": platform.python_version(),
        "hostname": socket.gethostname(),
        "system": platform.system(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": {"count": os.cpu_count(), "model": _cpu_model()},
        "load_1min": round(os.getloadavg()[0], 2),
        "sysctls": sysctls(),
        "interfaces": interfaces(),
        "clock": clock(),
    }


def sysctls() -> dict[str, str]:
    """Return the settings of the kernel that shape TCP and UDP."""
    values = {name: _read(PROC_NET / path) for name, path in SYSCTLS.items()}
    return {name: " ".join(text.split()) for name, text in values.items() if text is not None}


def interfaces() -> dict[str, dict[str, Any]]:
    """Return every network device with its MTU, speed, driver and offloads."""
    found: dict[str, dict[str, Any]] = {}
    for _, name in socket.if_nameindex():
        root = Path("/sys/class/net") / name
        driver = root / "device/driver"
        speed = _read(root / "speed")
        known = {
            "mtu": _number(_read(root / "mtu")),
            "state": _read(root / "operstate"),
            "speed_bps": int(speed) * 1_000_000 if speed and int(speed) > 0 else None,
            "driver": driver.resolve().name if driver.exists() else None,
            "offloads": _offloads(name) or None,
        }
        found[name] = {key: value for key, value in known.items() if value is not None}
    return found


def clock() -> dict[str, Any]:
    """Return whether the kernel's clock is synchronized, and its error bounds (adjtimex(2))."""
    if sys.platform != "linux":
        return {}
    # struct timex: modes, offset, freq, maxerror, esterror, status, ...; 208 bytes on 64 bits.
    buffer = ctypes.create_string_buffer(256)
    ctypes.CDLL(None, use_errno=True).adjtimex(buffer)
    _, _, _, max_error_us, estimated_error_us, status = struct.unpack_from("@Illlli", buffer)
    return {
        "synchronized": not status & _STA_UNSYNC,
        "max_error_s": max_error_us / 1e6,
        "estimated_error_s": estimated_error_us / 1e6,
    }


def _offloads(device: str) -> dict[str, bool]:
    if sys.platform != "linux":
        return {}
    found = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for name, command in _OFFLOADS.items():
            # struct ethtool_value { __u32 cmd; __u32 data; }, reached by pointer from struct ifreq.
            value = ctypes.create_string_buffer(struct.pack("@II", command, 0))
            request = struct.pack("@16sP", device.encode(), ctypes.addressof(value))
            try:
                fcntl.ioctl(sock, _SIOCETHTOOL, request)
            except OSError:
                continue  # this driver does not know this offload
            found[name] = bool(struct.unpack_from("@II", value)[1])
    return found


def _cpu_model() -> str:
    for line in (_read(Path("/proc/cpuinfo")) or "").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None


def _number(text: str | None) -> int | None:
    return int(text) if text is not None else None
