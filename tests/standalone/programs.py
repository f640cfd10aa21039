"""The built-in tools as programs that need nothing of benchctl."""

import subprocess
import sys
from pathlib import Path

import benchctl_standalone

PLUGINS = Path(benchctl_standalone.__file__).parents[1]
PACKAGES = {"simpleperf": "benchctl_simpleperf", "simpleowamp": "benchctl_owamp"}
"""The package of each tool."""


def path_of(name):
    """Return the file by whose path a tool is run."""
    return PLUGINS / PACKAGES[name] / name / "__main__.py"


def one_file(name, directory):
    """Write a tool as one file into a directory; returns its path."""
    path = directory / f"{name}.py"
    command = [sys.executable, "-I", "-S", path_of(name), "--self"]
    path.write_bytes(subprocess.run(command, capture_output=True, check=True).stdout)
    return path
