"""The privileges of a command on a host of a lab, which are limited even for root.

A host can configure its own network, send anything, and serve under any user and port. Everything
beyond is removed: kernel modules, devices, the clock, mounts, other processes' memory, the
machine's log and its shutdown. Root keeps access to its files, so this protects against mistakes;
it is not a sandbox for untrusted programs.
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
