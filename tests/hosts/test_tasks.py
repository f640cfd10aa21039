import asyncio
import signal

import pytest

from benchctl.hosts.tasks import run_to_end


def interrupt():
    signal.raise_signal(signal.SIGINT)


def test_a_result_is_returned_and_the_handler_is_as_before():
    before = signal.getsignal(signal.SIGINT)

    async def main():
        return 7

    assert run_to_end(main()) == 7
    assert signal.getsignal(signal.SIGINT) is before


def test_an_error_is_raised():
    async def main():
        raise LookupError("none")

    with pytest.raises(LookupError, match="none"):
        run_to_end(main())


@pytest.mark.parametrize("more", [0, 1, 2])
def test_what_an_interrupt_cancels_ends_in_order_however_many_follow(more):
    happened = []

    async def main():
        try:
            interrupt()
            await asyncio.Event().wait()
        finally:
            for _ in range(more):
                interrupt()
                await asyncio.sleep(0)
            happened.append("ended")

    with pytest.raises(KeyboardInterrupt):
        run_to_end(main())
    assert happened == ["ended"]


def test_an_interrupt_that_came_too_late_to_cancel_anything_is_not_lost():
    async def main():
        interrupt()
        return 7

    with pytest.raises(KeyboardInterrupt):
        run_to_end(main())


def test_an_interrupt_that_is_ignored_stays_so():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:

        async def main():
            interrupt()
            return 7

        assert run_to_end(main()) == 7
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_has_no_signals():
    async def main():
        return 7

    async def in_a_thread():
        return await asyncio.to_thread(run_to_end, main())

    assert asyncio.run(in_a_thread()) == 7
