"""``benchctl schema``: the JSON schema of profiles."""

from __future__ import annotations

import json

import click


@click.command()
def schema() -> None:
    """Print the JSON schema of profiles, for editors."""
    from benchctl.backends import installed
    from benchctl.profile.schema import json_schema

    registry = installed()
    loaded = [registry.load(name) for name in sorted(registry.candidates)]
    print(json.dumps(json_schema(loaded), indent=2))
