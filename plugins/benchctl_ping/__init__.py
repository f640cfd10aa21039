"""The ping backend: round-trip time and loss by ICMP echo, with the ping of the system.

`backend` has the options of iputils and of the BSD family, `parser` reads their output, and
`causes` maps error messages to failures.
"""

from benchctl_ping.backend import Ping

BACKEND = Ping()
