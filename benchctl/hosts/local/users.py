"""The names of a machine's users."""

from __future__ import annotations

import pwd
from functools import cache


@cache
def user_name(number: int) -> str:
    """Return a user's name, or the number if there is none, as in many containers.

    It stays the same as long as the process runs.
    """
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:  # also without a free descriptor to look it up
        return f"user {number}"
