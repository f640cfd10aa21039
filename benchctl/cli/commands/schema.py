"""``benchctl schema``: the JSON schemas of profiles and topologies."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer


def schema(
    kind: Annotated[
        Literal["profile", "topology"],
        typer.Argument(metavar="[KIND]", help="Kind of file: profile or topology."),
    ] = "profile",
) -> None:
    """Print the JSON schema of profiles or of topologies, for editors."""
    from benchctl.profile.schema import json_schema, model_schema

    if kind == "topology":
        from benchctl.lab.topology.schema import TopologyFile

        schema = model_schema(TopologyFile, "benchctl topology")
    else:
        from benchctl.backends import installed

        registry = installed()
        schema = json_schema(registry.load(name) for name in sorted(registry.candidates))
    print(json.dumps(schema, indent=2))
