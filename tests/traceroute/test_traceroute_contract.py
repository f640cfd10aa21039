"""traceroute keeps the contract: mtr and Linux as they were recorded, BSD by its source."""

from contract import BundledContract, said
from traceroute.test_traceroute_text import BSD, BSD_HEADER
from traceroute.test_traceroute_transcripts import TRANSCRIPTS

from benchctl.api import Channel, Tool
from benchctl.testing.transcript import transcripts_in
from benchctl_traceroute import BACKEND

MACOS = Tool("traceroute 1.4a12+Darwin", frozenset({"bsd"}))


RECORDED = {
    **{path.name: told for path, told in transcripts_in(TRANSCRIPTS).items()},
    "bsd": said((Channel.STDERR, BSD_HEADER), (Channel.STDOUT, BSD), tool=MACOS, count=3),
}


class TestTraceroute(BundledContract):
    backend = BACKEND
    transcripts = RECORDED
