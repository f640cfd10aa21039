"""The ping backend: round-trip time and loss by ICMP echo, with the ping of the system.

`backend` knows the options of iputils and of the BSD family, `parser` what they print, `causes`
what their complaints mean.
"""

from benchctl_ping.backend import Ping

BACKEND = Ping()
