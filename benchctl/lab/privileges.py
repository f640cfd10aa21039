"""What a command on a host of a lab may do, and no more, even when root starts it.

A host is for measuring: it configures its own network, sends what it likes, and serves under any
user and port. What reaches past it is left out: kernel modules, devices, the clock, mounts, other
processes' memory, the machine's log and its end. Root keeps its files, so this is no sandbox for
strangers' programs; it is a fence against slips.
"""

from __future__ import annotations

# See capabilities(7).
_KEPT = (
    "chown", "dac_override", "fowner", "fsetid", "kill", "setgid", "setuid", "setpcap",
    "net_bind_service", "net_broadcast", "net_admin", "net_raw", "ipc_lock", "sys_chroot",
    "sys_nice", "audit_write",
)  # fmt: skip

WITH_FEWER_PRIVILEGES = (
    "setpriv", f"--bounding-set=-all,{','.join(f'+{name}' for name in _KEPT)}", "--"
)  # fmt: skip
"""The words before a command that runs with what a host needs."""
