"""The command line: one file for each command, each thin.

`main` knows the commands, and is the only place that writes errors and exit codes. A command's
module imports what is heavy inside its function, so that help and completion stay light.
"""
