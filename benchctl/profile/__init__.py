"""What to measure: TOML, validated, and planned into an ordered list of trials.

Pure but for reading the files themselves: nothing here looks at the machine, runs a program or
sends a packet. `source` reads TOML and knows the lines, `model` is what a profile may say, `axes`
makes the points of the matrix, `plan` binds points to flows and puts trials in order.
"""
