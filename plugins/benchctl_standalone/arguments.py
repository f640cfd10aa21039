"""Kinds of arguments of a command line, for argparse."""

from __future__ import annotations

import argparse
import re
from typing import Callable

from .addresses import Network, parse_network

# RFC 2474 (class selectors), 2597 (AF), 3246 (EF), 5865 (VA), 8622 (LE).
DSCP_NAMES = {
    **{f"cs{number}": 8 * number for number in range(8)},
    **{f"af{c}{drop}": 8 * c + 2 * drop for c in range(1, 5) for drop in range(1, 4)},
    "ef": 46,
    "va": 44,
    "le": 1,
}


def quantity(parse: Callable[[str], float], least: float = 0.0) -> Callable[[str], float]:
    """A quantity of at least so much, as a function reads it that raises ValueError."""

    def convert(text: str) -> float:
        try:
            value = parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        if value < least:
            raise argparse.ArgumentTypeError(f"{text!r} is less than {least:g}")
        return value

    return convert


def whole(least: int, most: int) -> Callable[[str], int]:
    """A whole number of a range, both ends included."""

    def convert(text: str) -> int:
        if not re.fullmatch("[0-9]{1,9}", text) or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from {least} to {most}")
        return int(text)

    return convert


def dscp(text: str) -> int:
    """A DSCP: its number, or one of its names."""
    return DSCP_NAMES[text.lower()] if text.lower() in DSCP_NAMES else whole(0, 63)(text)


def network(text: str) -> Network:
    """A network, or one address."""
    try:
        return parse_network(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
