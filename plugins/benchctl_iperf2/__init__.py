"""The iperf2 backend of benchctl: TCP and UDP, also to servers that only swallow."""

from benchctl_iperf2.backend import Iperf2

BACKEND = Iperf2()
