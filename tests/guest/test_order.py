"""No frame overtakes another where several processors handle them."""

import pytest
from guest.measuring import pair, transfer

from benchctl.lab.topology.model import Emulator

pytestmark = pytest.mark.netns

LINKS = [
    'delay = "5ms"',
    'rate = "400Mbit", delay = "0.1ms", queue = 500',
    'rate = "50Mbit", delay = "5ms", queue = 200',
]


@pytest.mark.parametrize("text", LINKS)
def test_four_streams_find_no_reordering(text):
    with pair(Emulator.KERNEL, text) as lab:
        found = transfer(lab, 4, "cubic", streams=4)
        assert found.reordered == 0
        assert found.received_bps > 2e6
