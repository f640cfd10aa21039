"""ping keeps the contract: iputils as it was recorded, and BSD in the format of its source."""

from contract import BundledContract, kept, recorded, said
from ping.ping_samples import BSD, NAMES, SAMPLES

from benchctl.api import Channel, Tool
from benchctl_ping import BACKEND

IPUTILS = Tool("20221126", frozenset({"iputils"}))
MACOS = Tool("macOS", frozenset({"bsd", "device"}))


TRANSCRIPTS = {
    **kept("ping"),
    **{name: recorded(SAMPLES / name, tool=IPUTILS, count=1000) for name in NAMES},
    "bsd": said((Channel.STDOUT, BSD), tool=MACOS, count=3, interval="1s"),
}


class TestPing(BundledContract):
    backend = BACKEND
    transcripts = TRANSCRIPTS
