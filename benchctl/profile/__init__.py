"""What a person wrote: a TOML file, its bases and ``--set`` values, validated.

Pure but for reading the files themselves. `find` looks for a profile, `load` reads it with its
bases, `overrides` lays ``--set`` over them, `model` (with `values`) is what they may say, and
`schema` tells editors so.
"""
