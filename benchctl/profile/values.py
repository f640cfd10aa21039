"""The types of values in a profile, besides units: names, scalars, axis values.

Each is a type for pydantic: what is accepted, and its schema for editors.
"""

from __future__ import annotations

import math
import re
from ipaddress import ip_address
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, WithJsonSchema

from benchctl.run.condition import Condition, parse_condition
from benchctl.run.planned import Scalar
from benchctl.units import parse_duration, parse_rate, parse_ratio, quoted

_SCALAR_SCHEMA = {"type": ["string", "number", "boolean"]}


def as_text(value: Scalar) -> str:
    """Write a value in one line, as on the command line: ``paris``, ``true``."""
    return value if isinstance(value, str) and value.isprintable() else quoted(value)


def check_setting(value: object) -> None:
    """Raise ValueError unless a target may be set to this: scalars, and lists of them."""
    if isinstance(value, dict) and value:
        for inner in value.values():
            check_setting(inner)
    else:
        for scalar in value if isinstance(value, list) else [value]:
            _check_scalar(scalar)


def _check_scalar(value: object) -> object:
    if isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ValueError("must be a string, a number, true or false")


def _check_axis_value(value: object) -> object:
    if not isinstance(value, dict):
        return _check_scalar(value)
    if not isinstance(value.get("label"), Scalar):
        raise ValueError('a value given as a table needs a "label"')
    for name, setting in value.items():
        try:
            check_setting(setting)
        except ValueError as error:
            raise ValueError(f"{quoted(name)} {error}") from None
    return value


def _one_as_list(value: object) -> object:
    return value if isinstance(value, list) else [value]


def _read_range(value: object) -> tuple[float, float]:
    low, dots, high = value.partition("..") if isinstance(value, str) else ("", "", "")
    if not dots:
        raise ValueError(f'{quoted(value)} is not a range; write it as in "1Mbit..1Gbit"')
    ends = parse_rate(low.strip()), parse_rate(high.strip())
    if not 0 < ends[0] < ends[1] < math.inf:
        raise ValueError(f"{quoted(value)} does not go from a rate to a higher one")
    return ends


RateRange = Annotated[
    tuple[float, float],
    BeforeValidator(_read_range),
    WithJsonSchema({"type": "string", "pattern": r"\.\.", "examples": ["1Mbit..1Gbit"]}),
]
"""The lowest and the highest of the rates to search in, in bits per second."""
Bound = Annotated[
    Condition,
    PlainValidator(parse_condition),
    WithJsonSchema({"type": "string", "pattern": "[<>]", "examples": ["loss_ratio < 0.1%"]}),
]
"""A condition on a figure."""
AxisScalar = Annotated[Any, AfterValidator(_check_scalar), WithJsonSchema(_SCALAR_SCHEMA)]
LABELLED_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "how this value is shown (label), and the targets that it sets",
    "properties": {"label": {**_SCALAR_SCHEMA, "description": "how this value is shown"}},
    "required": ["label"],
}
AxisValue = Annotated[
    Any,
    AfterValidator(_check_axis_value),
    WithJsonSchema({"anyOf": [_SCALAR_SCHEMA, LABELLED_SCHEMA]}),
]
AxisScalars = Annotated[
    list[AxisScalar],
    Field(min_length=1),
    BeforeValidator(_one_as_list, json_schema_input_type=AxisScalar | list[AxisScalar]),
]
"""One value of an axis, or several."""
TargetNames = Annotated[
    list[str],
    Field(min_length=1),
    BeforeValidator(_one_as_list, json_schema_input_type=str | list[str]),
]


def seconds_and_share(moment: object) -> tuple[float, float]:
    """Return a time within a trial: in seconds, plus a share of its duration.

    Raises ValueError.
    """
    if isinstance(moment, str) and moment.endswith("%"):
        return 0.0, parse_ratio(moment)
    return parse_duration(moment), 0.0


def _check_moment(moment: object) -> object:
    seconds_and_share(moment)
    return moment


_MOMENT = r"^[0-9]*\.?[0-9]+ ?(ns|[uµμ]s|ms|s|min|h|d|%)$"
Moment = Annotated[
    str,
    PlainValidator(_check_moment),
    WithJsonSchema({"type": "string", "pattern": _MOMENT, "examples": ["10s", "50%"]}),
]
"""A time within a trial; written as a duration, or as a share of the trial's duration."""


def _check_name(name: str) -> str:
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise ValueError("names consist of letters, digits, dots, hyphens and underscores")
    return name


def _check_flow_name(name: str) -> str:
    # A target is "flow.parameter", and "lab.…" is a setting of the lab.
    if "." in name or name == "lab":
        raise ValueError('the name of a flow must not contain a dot or be "lab"')
    return _check_name(name)


Name = Annotated[str, AfterValidator(_check_name)]
FlowName = Annotated[str, AfterValidator(_check_flow_name)]


def is_address(text: str) -> bool:
    """Return whether a text is an IP address; one of IPv6 may name its device."""
    address, percent, device = text.partition("%")
    try:
        version = ip_address(address).version
    except ValueError:
        return False
    return not percent or (version == 6 and re.fullmatch(r"[\w.-]{1,15}", device, re.A) is not None)


def _check_address(text: str) -> str:
    if not is_address(text):
        raise ValueError(f"{quoted(text)} is not an IP address")
    return text


def check_host(text: str) -> str:
    """Return a host's name or address unchanged. Raises ValueError unless it is one."""
    labels = text.removesuffix(".").split(".")
    # RFC 1123, section 2.1, and the underscore that resolvers allow. What ends in a number would be
    # read as an address, however incomplete it is (inet_aton(3)).
    is_name = len(text) <= 253 and all(_LABEL.fullmatch(label) for label in labels)
    if is_address(text) or (is_name and not _NUMBER.fullmatch(labels[-1])):
        return text
    what = f"{quoted(text)} is neither a host name nor an IP address"
    if "://" in text:
        what += "; leave out the scheme and the path"
    elif re.fullmatch(r"\[[^]]*\](:\d+)?|[^:]+:\d+", text):
        what += "; put the port in its own key, and write an IPv6 address without brackets"
    elif not text.isascii():
        what += '; write an internationalized name as in DNS, "xn--…"'
    raise ValueError(what)


_LABEL = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)")
_NUMBER = re.compile(r"\d+|0[xX][0-9A-Fa-f]*")
Address = Annotated[str, AfterValidator(_check_address)]
HostName = Annotated[str, Field(min_length=1), AfterValidator(check_host)]
"""A host's name or address."""
