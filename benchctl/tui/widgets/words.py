"""Completes the last word of a line from known words."""

from __future__ import annotations

import re
from collections.abc import Iterable

from textual.suggester import Suggester


class Words(Suggester):
    """Suggests the first known word that begins with the last one; right or end accepts it."""

    def __init__(self, words: Iterable[str] = ()) -> None:
        super().__init__(use_cache=False)
        self.known: Iterable[str] = words

    async def get_suggestion(self, value: str) -> str | None:
        begun = re.split(r"[\s,]", value)[-1]
        fold = begun.casefold()
        word = min(
            (known_word for known_word in self.known if known_word.casefold().startswith(fold)),
            default="",
        )
        if not begun or not word or word.casefold() == fold:
            return None
        return value + word[len(begun) :]
