"""The command line: one thin file for each command.

`main` registers the commands, and is the only place that writes errors and exit codes. A command's
module imports heavy modules inside its function, so that help and completion are fast.
"""
