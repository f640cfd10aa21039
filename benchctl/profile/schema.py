"""The JSON schema of profiles (draft 7), for editors that complete and check TOML.

It is the schema of the models, with the parameters of the given backends wherever they may occur:
in a flow (those of its own backend), in ``[defaults]``, on axes and in labelled values. Checks of
the whole profile, such as whether an axis sets anything, are left to `make_plan`.

Taplo, the language server of TOML, supports draft 7 only. So unknown keys are rejected by
``additionalProperties`` and ``propertyNames``, and ``$ref`` has no sibling but its description.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from benchctl.backends import AnyBackend
from benchctl.metrics import METRICS, OF_TRIALS, Fold
from benchctl.profile.model import Profile
from benchctl.profile.values import LABELLED_SCHEMA
from benchctl.run.condition import AGGREGATES
from benchctl.units import write_like

Schema = dict[str, Any]

DRAFT = "http://json-schema.org/draft-07/schema#"
_LABELLED = {"$ref": "#/$defs/LabelledValue"}
_NULL = {"type": "null"}
_BOUNDS = ("ge", "gt", "le", "lt", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")


def json_schema(backends: Iterable[AnyBackend]) -> Schema:
    """Return the schema of profiles that use some backends."""
    backends = list(backends)
    schema = Profile.model_json_schema()
    defs: Schema = schema["$defs"]
    parameters = {backend.name: _parameters(backend, defs) for backend in backends}
    settable = {**defs["FlowTable"]["properties"], **_shared(parameters.values(), defs)}
    defs["FlowTable"]["properties"]["backend"]["enum"] = sorted(parameters)
    _add_parameters(defs["FlowTable"], settable, backends, parameters)
    defs["DefaultsTable"]["additionalProperties"] = False
    defs["DefaultsTable"]["properties"] |= {
        name: subschema for name, subschema in settable.items() if name != "backend"
    }
    _add_axes(schema, settable)
    own = {metric.name: metric for backend in backends for metric in backend.capabilities.metrics}
    metrics = {**own, **METRICS, **OF_TRIALS}
    statistics = {
        f"{name}.{aggregate}"
        for name, metric in metrics.items()
        if metric.fold is Fold.DISTRIBUTION
        for aggregate in AGGREGATES
    }
    defs["ExpectTable"]["properties"]["metric"]["enum"] = sorted({*metrics, *statistics})
    _ask_only_whole_profiles(schema)
    return {"$schema": DRAFT, "title": "benchctl profile", **_clean(schema)}


def model_schema(model: type[BaseModel], title: str) -> Schema:
    """Return the schema of a TOML file that one model describes."""
    return {"$schema": DRAFT, "title": title, **_clean(model.model_json_schema())}


def _parameters(backend: AnyBackend, defs: Schema) -> Schema:
    """Return the schemas of a backend's parameters; their definitions go into ``defs``."""
    template = f"#/$defs/{backend.name}.{{model}}"
    own = backend.parameters.model_json_schema(ref_template=template)
    defs |= {f"{backend.name}.{name}": inner for name, inner in own.get("$defs", {}).items()}
    properties: Schema = own.get("properties", {})
    return properties


def _shared(parameters: Iterable[Schema], defs: Schema) -> Schema:
    """Return each parameter of the backends; one that several have may be that of any."""
    found: dict[str, list[Schema]] = {}
    for properties in parameters:
        for name, schema in properties.items():
            known = found.setdefault(name, [])
            if schema not in known:
                known.append(schema)
    refs = {}
    for name, schemas in found.items():
        defs[f"parameter.{name}"] = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
        refs[name] = {
            "$ref": f"#/$defs/parameter.{name}",
            "description": schemas[0]["description"],
        }
    return refs


def _ask_only_whole_profiles(schema: Schema) -> None:
    """Let a profile that extends another leave out keys of the other."""
    defs = schema["$defs"]
    required: Schema = {"axes": {"$ref": "#/$defs/WholeAxes"}}
    for name, subschema in schema["properties"].items():
        table = subschema.get("additionalProperties", subschema)
        refs = [branch["$ref"] for branch in (table, *table.get("anyOf", ())) if "$ref" in branch]
        for ref in refs:
            if wanted := defs[ref.rpartition("/")[2]].pop("required", None):
                asked = {"required": wanted}
                required[name] = asked if table is subschema else {"additionalProperties": asked}
    schema["if"] = {"required": ["extends"]}
    schema["else"] = {"required": schema.pop("required"), "properties": required}


def _add_parameters(
    flow: Schema,
    settable: Schema,
    backends: Iterable[AnyBackend],
    parameters: Mapping[str, Schema],
) -> None:
    """Let a flow have the parameters and directions of its backend, and no others."""
    own = [*flow["properties"]]
    branches = [
        {
            "if": {"properties": {"backend": {"const": backend.name}}, "required": ["backend"]},
            "then": {
                "description": backend.summary,
                "propertyNames": {"enum": [*own, *parameters[backend.name]]},
                "properties": {
                    **parameters[backend.name],
                    "direction": {"enum": [*backend.capabilities.directions]},
                },
            },
        }
        for backend in backends
    ]
    if branches:
        flow["allOf"] = branches
    flow["properties"] = settable
    flow["additionalProperties"] = False


def _add_axes(schema: Schema, settable: Schema) -> None:
    """Describe the axes that are named after their target, and the targets of labelled values."""
    defs = schema["$defs"]
    flow = {"type": "string", "description": "name of a flow that the point has"}
    flows = {"anyOf": [flow, {"type": "array", "minItems": 1, "items": flow}]}
    defs["LabelledValue"] = {
        **LABELLED_SCHEMA,
        "properties": {
            **settable,
            "flows": {"description": "names of the flows that the point has", **flows},
            **LABELLED_SCHEMA["properties"],
        },
    }
    axes = schema["properties"]["axes"]
    defs["Axes"] = {
        "type": axes.pop("type"),
        "properties": {
            name: {
                "description": subschema["description"],
                "anyOf": [
                    {"type": "array", "minItems": 1, "items": {"anyOf": [subschema, _LABELLED]}},
                    {"$ref": "#/$defs/AxisTable"},
                ],
            }
            for name, subschema in {**settable, "flows": flow}.items()
        },
        "additionalProperties": axes.pop("additionalProperties"),
    }
    axes["$ref"] = "#/$defs/Axes"
    # An axis may be a list, too.
    axis = {"anyOf": [{"type": "array"}, {"required": ["values"]}, {"required": ["mesh"]}]}
    defs["WholeAxes"] = {"additionalProperties": axis}
    whole = [{"$ref": "#/$defs/Axes"}, {"$ref": "#/$defs/WholeAxes"}, {"minProperties": 1}]
    schema["properties"]["zip"]["items"] = {"allOf": whole}


def _clean(node: Any) -> Any:
    """Return a schema as TOML needs it: without null, and with defaults as people write them.

    Titles go, since they only repeat names, and so do bounds that pydantic puts on the number
    behind a text.
    """
    if isinstance(node, list):
        return [_clean(item) for item in node]
    if not isinstance(node, dict):
        return node
    if node == LABELLED_SCHEMA:
        return _LABELLED
    if _NULL in node.get("anyOf", ()):
        branches = [branch for branch in node["anyOf"] if branch != _NULL]
        rest = {name: value for name, value in node.items() if name != "anyOf"}
        node = {**rest, "anyOf": branches} if len(branches) > 1 else {**branches[0], **rest}
    unwanted = {"title", *(_BOUNDS if node.get("type") == "string" else ())}
    if isinstance(node.get("default", {}), dict | list | None):
        unwanted.add("default")
    cleaned = {}
    for name, value in node.items():
        if name in ("properties", "$defs"):
            cleaned[name] = {key: _clean(subschema) for key, subschema in value.items()}
        elif name == "default" and "default" not in unwanted:
            cleaned[name] = _written(value, node.get("examples"))
        elif name not in unwanted:
            cleaned[name] = _clean(value)
    return cleaned


def _written(value: Any, examples: Sequence[str] | None) -> Any:
    """Return a default as TOML text; a quantity has examples."""
    if examples is None or isinstance(value, str):
        return value
    return "unlimited" if math.isinf(value) else write_like(examples[0], value).replace(" ", "")
