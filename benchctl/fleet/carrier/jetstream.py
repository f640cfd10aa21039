"""Asks the server itself by JetStream's API, and says in a line why something was not carried."""

from __future__ import annotations

import asyncio
import json
import ssl
from typing import Any, Final

import nats.errors
import nats.js.errors
from nats.aio.client import Client

ANSWER_S: Final = 2.0
"""So long it waits for the server itself to answer: it does so within milliseconds."""
UNREACHABLE: Final = (OSError, ssl.SSLError, asyncio.TimeoutError, nats.errors.Error)
"""What is raised if a server is not reached, or no longer."""


async def ask(
    client: Client, subject: str, data: bytes, headers: dict[str, str] | None = None
) -> dict[str, Any]:
    """Ask the server itself. Raises `nats.js.errors.APIError` if it refuses."""
    message = await client.request(subject, data, timeout=ANSWER_S, headers=headers)
    answer: dict[str, Any] = json.loads(message.data)
    if error := answer.get("error"):
        raise nats.js.errors.APIError.from_error(error)
    return answer


def why_of(error: Exception) -> str:
    """Return one line for an error of nats-py or of the system."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).removeprefix("nats: ") or type(error).__name__
