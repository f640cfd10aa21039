"""What a profile says of figures: the bounds that they must meet, and what others reported."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from benchctl.api import Ratio
from benchctl.metrics import Direction
from benchctl.profile.values import AxisScalar
from benchctl.run.condition import REFERENCES
from benchctl.run.planned import Severity
from benchctl.toml.table import TomlTable


class ExpectTable(TomlTable):
    """What every point has to meet; an error that is not met makes the run end with code 1."""

    metric: str | None = Field(
        None, description="metric name, such as throughput_bps, or a statistic, such as rtt_s.p95"
    )
    flow: str | None = Field(None, description="only this flow")
    where: dict[str, AxisScalar] = Field({}, description="only points with these axis values")
    at_least: AxisScalar = Field(
        None, description="lower bound of the mean over the repeats, with unit, or 0.9 * expected"
    )
    at_most: AxisScalar = Field(
        None, description="upper bound of the mean over the repeats, with unit, or 1.1 * baseline"
    )
    within: Ratio | None = Field(
        None, gt=0, description="largest difference of the mean from a reference, relative to it"
    )
    not_worse_than: Ratio | None = Field(
        None,
        gt=0,
        description="share of a reference by which the mean must be shown not to be worse",
    )
    of: Literal[REFERENCES] | None = Field(  # type: ignore[valid-type]
        None,
        description="reference; default: expected for within, baseline for not_worse_than",
    )
    events: str | None = Field(
        None, description="what must happen in the flows, or must not: no drop, no stall"
    )
    severity: Severity = Field(
        Severity.ERROR, strict=False, description="error, or warning for no effect on the exit code"
    )

    @model_validator(mode="after")
    def _one_demand(self) -> ExpectTable:
        bounds = [self.at_least, self.at_most]
        bounded, close = bounds != [None, None], self.within is not None
        if self.not_worse_than is not None:
            if bounded or close:
                raise ValueError("not_worse_than excludes at_least, at_most and within")
            close = True
        if self.of is not None and not close:
            raise ValueError("of needs within or not_worse_than")
        if self.events is not None and (self.metric is not None or bounded or close):
            raise ValueError("events exclude metric, bounds, within and not_worse_than")
        if self.events is None and self.metric is None:
            raise ValueError("give a metric, or events")
        if bounded and close:
            raise ValueError("within excludes at_least and at_most")
        if self.events is None and not bounded and not close:
            raise ValueError("give at_least, at_most, or both; or within, or not_worse_than")
        return self


class ReportedTable(BaseModel):
    """What others measured in the same experiment; shown beside the measured figures.

    Every key that is not here is a metric, such as ``throughput_bps = "14.4Mbit"``.
    """

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)
    __pydantic_extra__: dict[str, AxisScalar] = Field(init=False)

    flow: str | None = Field(None, description="only this flow")
    direction: Direction | None = Field(
        None, strict=False, description="only this direction: send, receive or round-trip"
    )
    where: dict[str, AxisScalar] = Field({}, description="only points with these axis values")

    @property
    def figures(self) -> dict[str, AxisScalar]:
        """Figures as written, by metric."""
        return self.__pydantic_extra__

    @model_validator(mode="after")
    def _some_figure(self) -> ReportedTable:
        if not self.figures:
            raise ValueError('give a figure, such as throughput_bps = "14.4Mbit"')
        return self
