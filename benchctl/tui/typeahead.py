"""Keys that arrive together: each waits until the one before it has taken effect.

Textual gives a key to the widget that has the focus when the key arrives. A slow line brings
several at once: of ``/`` and ``quick``, ``q`` would quit, as the line for words does not have the
focus yet. Behind a key that opens a page, the next ones wait until the page has what they act on:
of ``4`` and ``d``, ``d`` would find no run to delete.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from textual.app import App
from textual.events import Key, Paste
from textual.message_pump import MessagePump

from benchctl.tui.timers import once

Typed = Key | Paste

# A key, what its list says of it, the page that is asked for, that page, its widgets, their focus:
# each is a message that follows from the one before.
ROUNDS = 6
# Something is wrong with a key that takes longer, or its page is slow; those behind it go on.
LONGEST_S = 2.0


class KeyQueue:
    """The keys that have arrived, and the one that is taking effect."""

    def __init__(
        self,
        app: App[None],
        give: Callable[[Typed], Awaitable[None]],
        unready: Callable[[], object | None],
    ) -> None:
        """Hand each key to ``give``, within the app's own task.

        ``unready`` returns the page that is shown, if its keys have nothing to act on yet.
        """
        self._app = app
        self._give = give
        self._unready = unready
        self._before: object | None = None
        """The page that was shown and not ready before the key in hand."""
        self._holds = False
        """Whether the key in hand waits for its page."""
        self._typed: deque[Typed] = deque()

    @property
    def waits(self) -> bool:
        """Whether a key has not taken effect yet."""
        return bool(self._typed)

    async def take(self, typed: Typed) -> None:
        """Hand on a key at once, or after those before it."""
        self._typed.append(typed)
        if len(self._typed) == 1:
            await self._hand_on()

    async def go_on(self) -> None:
        """Go on with the key that waits for its page: a page has become ready."""
        if self._holds:
            self._holds = False
            await self._follow(self._typed[0], (), ROUNDS)

    async def _hand_on(self) -> None:
        typed = self._typed[0]
        self._before = self._unready()
        once(self._app, LONGEST_S / 2, partial(self._lose_patience, typed))
        await self._give(typed)
        await self._follow(typed, (), ROUNDS)

    async def _follow(self, typed: Typed, path: Sequence[MessagePump], rounds: int) -> None:
        """Go the way of a message, from the focus up to the app, behind all that is on it."""
        for place, pump in enumerate(path, start=1):
            if pump.call_later(self._follow, typed, path[place:], rounds):
                return
        if rounds:
            start = self._app.focused or self._app.screen
            await self._follow(typed, start.ancestors_with_self, rounds - 1)
        elif self._is_in_hand(typed) and self._unready() not in (None, self._before):
            self._holds = True
        else:
            await self._done(typed)

    def _lose_patience(self, typed: Typed) -> None:
        """Give a key up after the same time again: the program may just have stood still."""
        if self._is_in_hand(typed):
            once(self._app, LONGEST_S / 2, partial(self._done, typed))

    async def _done(self, typed: Typed) -> None:
        if self._is_in_hand(typed):
            self._holds = False
            self._typed.popleft()
            if self._typed:
                await self._hand_on()

    def _is_in_hand(self, typed: Typed) -> bool:
        return bool(self._typed) and self._typed[0] is typed
