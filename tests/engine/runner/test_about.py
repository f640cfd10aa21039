"""What a run records of its hosts and of the connections to them."""

import asyncio
from types import SimpleNamespace

from hosts.linked import linked

from benchctl.engine.runner.host_facts import HostFacts
from benchctl.run.planned import Host, SshTarget

FAR = Host("far", "192.0.2.10", reach=SshTarget("far"))


def test_a_connection_is_recorded_with_its_clock_and_why_it_was_lost():
    written, facts = [], {}
    recorder = SimpleNamespace(
        update_run=lambda **columns: written.append(columns), update_host=facts.__setitem__
    )

    async def main(link):
        about = HostFacts(recorder)
        await about.on_connect(FAR, link)
        first = written[-1]["connections"]["far"]
        await link.timed()
        link._break("it is gone")
        await asyncio.sleep(0)  # what is to be done at its end is done
        return first, written[-1]["connections"]["far"]

    first, last = linked(main)
    assert (first.lost, last.lost) == ("", "host far: it is gone")
    assert first.since_time == last.since_time
    assert abs(last.clock.offset_s) <= last.clock.error_s
    assert facts["far"]["system"]


def test_a_connection_that_is_needed_no_more_is_not_lost():
    written, facts = [], {}
    recorder = SimpleNamespace(
        update_run=lambda **columns: written.append(columns), update_host=facts.__setitem__
    )

    async def main(link):
        await HostFacts(recorder).on_connect(FAR, link)
        await link.close()
        await asyncio.sleep(0)

    linked(main)
    assert written[-1]["connections"]["far"].lost == ""
