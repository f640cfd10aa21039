"""Ends tasks of the event loop that nobody waits for any more."""

from __future__ import annotations

import asyncio
from typing import Any


async def cancel(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks, and wait until they have ended.

    Whatever they raise is dropped. asyncio would print the exceptions of tasks that are only
    cancelled, as those that nobody retrieved.
    """
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
