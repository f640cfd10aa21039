"""A page for the mesh: static files that show what is measured again and again between hosts.

`reading` gets the figures of the runs, day by day (`days`), `judging` says how good they are,
`pages` arranges them, `drawing` draws them, and `site` writes the files.
"""
