"""The iperf3 backend of benchctl: TCP and UDP, either direction or both, live intervals."""

from benchctl_iperf3.backend import Iperf3

BACKEND = Iperf3()
