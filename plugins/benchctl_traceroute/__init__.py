"""The traceroute backend: routers on the way, their answers, and the destination's round-trip time.

`backend` has the options of mtr and of two families of traceroute, `mtr` and `text` read their
output, `trace` makes events of the probes, and `causes` maps error messages to failures.
"""

from benchctl_traceroute.backend import Traceroute

BACKEND = Traceroute()
