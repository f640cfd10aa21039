"""The options of iperf3 that a profile may pass on as they are, and those that it may not.

An option is left out that has a parameter (two values would contradict each other), that changes
the output (which the parsers read), that makes iperf3 another end, or that names a file: a profile
may come from somebody else, and iperf3 writes what it receives into ``--file``.
"""

from __future__ import annotations

import re

_PARAMETER_OF = {
    "bandwidth": "rate",
    "bidir": 'direction = "both"',
    "bind": "interface",
    "bind-dev": "interface",
    "bitrate": "rate",
    "blockcount": "bytes",
    "bytes": "bytes",
    "client": "to",
    "congestion": "congestion_control",
    "connect-timeout": "connect_timeout",
    "cport": "source_port",
    "dont-fragment": "dont_fragment",
    "dscp": "dscp",
    "interval": "interval",
    "length": "length",
    "linux-congestion": "congestion_control",
    "mptcp": "protocol",
    "no-delay": "no_delay",
    "omit": "omit",
    "parallel": "streams",
    "port": "the port of [servers]",
    "reverse": 'direction = "receive"',
    "rsa-public-key-path": "public_key",
    "sctp": "protocol",
    "set-mss": "mss",
    "time": "duration",
    "tos": "dscp",
    "udp": "protocol",
    "username": "username",
    "version4": "ip_version",
    "version6": "ip_version",
    "window": "window",
    "zerocopy": "zero_copy",
}
_OUTPUT = (
    "debug", "forceflush", "format", "get-server-output", "help", "json", "json-stream",
    "json-stream-full-output", "logfile", "timestamps", "title", "verbose", "version",
)  # fmt: skip
_FILES = ("file", "pidfile")
_SERVER = (
    "authorized-users-path", "daemon", "idle-timeout", "one-off", "rsa-private-key-path", "server",
    "server-bitrate-limit", "server-max-duration", "time-skew-threshold",
)  # fmt: skip
_REASONS = {
    **{name: f"use {parameter}" for name, parameter in _PARAMETER_OF.items()},
    **dict.fromkeys(_OUTPUT, "it changes the output, which benchctl reads"),
    **dict.fromkeys(_FILES, "it names a file of this host"),
    **dict.fromkeys(_SERVER, "it is for servers"),
}

_OPTION = re.compile(r"--([a-z0-9][a-z0-9-]*)(=.*)?")


def check_options(words: list[str]) -> list[str]:
    """Return the words of a command line unchanged; raises ValueError for one that is not allowed.

    Long options only: iperf3 reads several short ones from one word. It takes any unambiguous
    beginning of a long one, so a beginning of a forbidden option is forbidden, too.
    """
    for position, word in enumerate(words):
        if not word.isprintable():
            raise ValueError(f"{word!r} is not printable")
        match = _OPTION.fullmatch(word)
        if not match:
            if word.startswith("-") or not position:
                raise ValueError(f"{word!r} is not a long option such as --fq-rate=1G")
            continue  # the value of the option before
        for name, reason in _REASONS.items():
            if name.startswith(match[1]):
                raise ValueError(f"--{match[1]} is not allowed: {reason}")
    return words
