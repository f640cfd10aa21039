"""The window with the packets of a trial: the figure of `benchctl plot`, for a part of the time."""

import pytest
from packets.slow import slow
from tui.driving import drive, open_page, press, shown, until

from benchctl.imports.packets import keep_trace
from benchctl.packets.trace import read_trace
from benchctl.tui.screens.windows.packets import PacketView


@pytest.fixture
def kept(store, tmp_path):
    """Return a store with the run of a trace, whose download has something of everything."""
    path = tmp_path / "slow.pcap"
    path.write_bytes(slow())
    keep_trace(read_trace(path, lambda _, connection: connection.record()), store)
    return store


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_the_packets_of_a_trial_are_drawn_and_zoomed(kept, size):
    async def script(pilot):
        async def read(*keys):
            await press(pilot, *keys)
            await until(pilot, lambda: pilot.app.screen.settled)
            await pilot.pause()
            return shown(pilot)

        whole = await read("P")
        assert "sequence number" in whole
        assert "marked: " in whole
        assert "from=10.0.0.2:80" in whole
        zoomed = await read("plus")
        assert zoomed != whole
        assert await read("right") != zoomed
        assert await read("0") == whole
        assert "in flight" in await read("m")
        assert "RTT" in await read("m")
        await read("m", "m")
        assert shown(pilot) == whole
        await press(pilot, "p")
        assert "10.0.0.1" in shown(pilot)
        assert "from=10.0.0.1:50112" in await read("down", "enter")
        await press(pilot, "escape")
        assert "sequence number" not in shown(pilot)

    drive(kept, open_page(kept, "summary", 1), script, size=size)


def test_a_trace_that_is_gone_is_said_in_words(kept, tmp_path):
    (tmp_path / "slow.pcap").unlink()

    async def script(pilot):
        await press(pilot, "P")
        await until(pilot, lambda: "the run has no copy" in shown(pilot))

    drive(kept, open_page(kept, "summary", 1), script)


def test_a_part_of_the_time_is_zoomed_and_moved_within_the_whole():
    whole = PacketView()
    assert whole.zoomed(2) == whole
    half = whole.zoomed(0.5)
    assert (half.low, half.high) == (0.25, 0.75)
    assert (half.moved(1).low, half.moved(1).high) == (0.5, 1.0)
    assert half.moved(-9).low == 0.0
    assert half.moved(9).zoomed(2) == whole
    small = whole
    for _ in range(60):
        small = small.zoomed(0.5)
    assert small.high > small.low
