"""What a user wrote: a TOML file, its bases and ``--set`` values, validated.

Pure, except for reading these files. `find` looks for a profile, `load` reads it with its bases,
`overrides` applies ``--set``, `model` (with `values`) defines the keys, and `schema` describes them
to editors.
"""
