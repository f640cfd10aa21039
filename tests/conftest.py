"""What every test may use: marks that know which real programs and kernels are here.

A test that needs a real program or namespaces is skipped, with the reason, on a machine that
lacks them; with ``CI`` set it fails instead, so that CI never passes by skipping.
"""

import os
import shutil
import subprocess

import pytest


def _refused_namespaces() -> str:
    """Return why network namespaces cannot be made here, or an empty string."""
    if not shutil.which("unshare"):
        return "no unshare program (util-linux)"
    result = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--net", "--mount", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    return result.stderr.strip() if result.returncode else ""


def pytest_runtest_setup(item):
    reasons = [
        f"needs the program {name}"
        for mark in item.iter_markers("tool")
        for name in mark.args
        if not shutil.which(name)
    ]
    if item.get_closest_marker("netns") and (refused := _refused_namespaces()):
        reasons.append(f"needs network namespaces: {refused}")
    if reasons:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("; ".join(reasons))
