"""``benchctl schema``: the JSON schemas of profiles and topologies."""

from __future__ import annotations

import json

import click


@click.command()
@click.argument(
    "kind",
    type=click.Choice(["profile", "topology"]),
    metavar="[KIND]",
    default="profile",
    help="Kind of file: profile or topology; default: profile.",
)
def schema(kind: str) -> None:
    """Print the JSON schema of profiles or of topologies, for editors."""
    from benchctl.profile.schema import json_schema, model_schema

    if kind == "topology":
        from benchctl.lab.schema import TopologyFile

        schema = model_schema(TopologyFile, "benchctl topology")
    else:
        from benchctl.backends import installed

        registry = installed()
        schema = json_schema(registry.load(name) for name in sorted(registry.candidates))
    print(json.dumps(schema, indent=2))
