"""owping keeps the contract: summaries of both directions, and the packets of one."""

import pytest
from contract import BundledContract, recorded
from owping.owping_samples import SAMPLES

from benchctl.api import Direction, Tool
from benchctl_owping import BACKEND


def of(path):
    words = path.with_suffix(".cmd").read_text().split()
    way = Direction.BOTH
    if "-R" in words:
        way = Direction.RECEIVE if "-f" in words else Direction.SEND
    return recorded(path, tool=Tool("5.2.3-1"), direction=way, count=300)


TRANSCRIPTS = {path.stem: of(path.with_suffix("")) for path in sorted(SAMPLES.glob("*.cmd"))}


class TestOwping(BundledContract):
    backend = BACKEND
    transcripts = TRANSCRIPTS

    @pytest.mark.tool("owping", "owampd")
    def test_no_process_stays(self, port):
        super().test_no_process_stays(port)
