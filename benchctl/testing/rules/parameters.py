"""The rule of parameters: what each is, in which unit, and a schema that says what is accepted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from benchctl.testing.rules.rule import Fault
from benchctl.testing.rules.subject import Subject

JsonSchema = Mapping[str, Any]

# What `benchctl.api.Parameters` sets, and why.
_CONFIGURED = {
    "extra": ("forbid", "a misspelled name would be ignored"),
    "frozen": (True, "flows of one point share their parameters"),
    "strict": (True, '"4" would be a number'),
}
# By the names that backends share (`benchctl.api.Parameters`): these are quantities.
_QUANTITIES = {
    "bytes", "client_window", "duration", "interval", "length", "mss", "omit", "rate",
    "server_window", "timeout", "window",
}  # fmt: skip
_UNITS = ("_s", "_ms", "_us", "_ns", "_bps", "_bytes", "_kb", "_mb")
_UNIT_REMEDY = 'a quantity is Duration, Rate, Size or Ratio, written with its unit: "10ms"'
# An example of a quantity shows how it is written, and may lie outside the limits of one parameter.
_LIMITS = {"greater_than", "greater_than_equal", "less_than", "less_than_equal"}


def judge_parameters(subject: Subject) -> Iterator[Fault | str]:
    """Look at the model of a backend's parameters and its schema."""
    backend = subject.backend
    fields = backend.parameters.model_fields
    for name, (wanted, otherwise) in _CONFIGURED.items():
        if backend.parameters.model_config.get(name) != wanted:
            yield Fault(
                f"the model has {name}={backend.parameters.model_config.get(name)}: {otherwise}",
                "make it a subclass of benchctl.api.Parameters without a model_config of its own",
            )
    for name, info in fields.items():
        if len((info.description or "").split()) < 2:
            yield Fault(
                f"{name} is described by {info.description!r}",
                "say what it is: it is read in the profile's editor and the documentation",
            )
    schema = _schema(subject)
    for name in fields:
        yield from _unit(name, schema[name])
        yield from _accepted(subject, name, schema[name])
    yield f"{len(fields)} parameters"


def _schema(subject: Subject) -> JsonSchema:
    """Return the schema of each parameter, as editors of profiles get it."""
    from benchctl.profile.schema import json_schema

    whole = json_schema([subject.backend])
    whole = json.loads(json.dumps(whole, allow_nan=False))
    (flow,) = whole["$defs"]["FlowTable"]["allOf"]
    found: JsonSchema = _resolved(flow["then"]["properties"], whole["$defs"])
    return found


def _resolved(node: Any, defs: JsonSchema) -> Any:
    if isinstance(node, list):
        return [_resolved(item, defs) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        node = {**defs[node["$ref"].rpartition("/")[2]], **node}
        del node["$ref"]
    return {name: _resolved(part, defs) for name, part in node.items()}


def _parts(schema: JsonSchema) -> Iterator[JsonSchema]:
    """Yield a schema and all of its alternatives."""
    yield schema
    for alternative in (
        *schema.get("anyOf", ()),
        *schema.get("oneOf", ()),
        *schema.get("allOf", ()),
    ):
        yield from _parts(alternative)


def _unit(name: str, schema: JsonSchema) -> Iterator[Fault]:
    types = {part.get("type") for part in _parts(schema)}
    if "number" in types:
        yield Fault(f"{name} is a number without a unit", _UNIT_REMEDY)
    elif "integer" in types and (name in _QUANTITIES or name.endswith(_UNITS)):
        yield Fault(f"{name} is an integer, and a quantity by its name", _UNIT_REMEDY)


def _accepted(subject: Subject, name: str, schema: JsonSchema) -> Iterator[Fault]:
    """Offer the model every value that the schema names."""
    model = subject.backend.parameters
    given = subject.parameters
    for value in _offered(schema):
        try:
            params = model.model_validate({**given, name: value})
        except ValidationError as error:
            of_field = [detail for detail in error.errors() if detail["loc"][:1] == (name,)]
            if any(detail["type"] not in _LIMITS for detail in of_field):
                yield Fault(
                    f"the schema offers {name} = {value!r}, but: {of_field[0]['msg']}",
                    "let the type say what is accepted: Literal, Field(ge=…), or the quantities of"
                    " benchctl.api",
                )
            continue
        if params != model.model_validate({**given, name: json.loads(json.dumps(value))}):
            yield Fault(f"{name} = {value!r} is read in two ways", "parse without side effects")
        if value is schema.get("default") and getattr(params, name) != _default(subject, name):
            yield Fault(
                f"{name} = {value!r}, its default as written, is {getattr(params, name)!r}",
                "give the default in the unit of the type: seconds, bit/s, bytes",
            )


def _default(subject: Subject, name: str) -> Any:
    given = {key: value for key, value in subject.parameters.items() if key != name}
    return getattr(subject.backend.parameters.model_validate(given), name)


def _offered(schema: JsonSchema) -> Iterator[Any]:
    for part in _parts(schema):
        yield from part.get("enum", ())
        yield from part.get("examples", ())
        yield from (part[key] for key in ("const", "default") if key in part)
        if part.get("type") == "integer":
            yield from (part[key] for key in ("minimum", "maximum") if key in part)
        if part.get("type") == "boolean":
            yield from (True, False)
