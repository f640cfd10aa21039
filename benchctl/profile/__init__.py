"""What to measure: TOML, validated, and planned into an ordered list of trials.

Pure but for reading the files themselves: nothing here looks at the machine, runs a program or
sends a packet. In the order of the work:

- `source` reads TOML and knows the lines; `load` finds a profile and its bases, `settings` lays
  ``--set`` over them, and `model` (with `values`) is what they may say;
- `matrix` makes the points; `targets` says what their values write, and `bind` makes a trial of a
  point; `plan` does both for all points, and puts the trials in order;
- `expect` and `reported` read the figures that a profile brings along;
- `explain` is how a mistake is told, and `schema` what editors need to prevent it.
"""
