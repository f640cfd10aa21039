"""What a profile may say about a simpleperf flow."""

from __future__ import annotations

from benchctl.api import Duration, Field, Parameters, Size

__all__ = ["SimpleperfParameters"]


class SimpleperfParameters(Parameters):
    """Parameters of one flow."""

    duration: Duration = Field(10.0, gt=0, description="seconds to measure, omit excluded")
    bytes: Size | None = Field(
        None, gt=0, description="bytes to send instead of a duration, shared by the streams"
    )
    streams: int = Field(1, ge=1, le=128, description="parallel connections")
    interval: Duration = Field(1.0, ge=0.01, description="seconds between samples")
