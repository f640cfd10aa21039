"""A store that version 0.1.0 wrote opens: exports are those of then, and the keys added since."""

import os
import shutil
from pathlib import Path

import pytest

WRITTEN = Path(__file__).parent / "version-0.1.0.db"
RUNS = {
    "quick": "20261122-025541-1fadd4",
    "lab": "20261122-025549-a1d6fa",
    "failed": "20261122-025605-d68397",
    "interrupted": "20261122-025606-52bc19",
    "died": "20261122-025610-6d24b6",
    "planned": "20261122-025735-71c90b",
}


@pytest.fixture
def ask(tmp_path, fork_server):
    store = shutil.copy(WRITTEN, tmp_path / "runs.sqlite")

    def ask(*words):
        environment = {**os.environ, "BENCHCTL_STORE": str(store)}
        done = fork_server.run(["benchctl", *words], tmp_path, environment)
        assert not done.stderr
        return done.stdout

    return ask


@pytest.mark.parametrize("form", ["json", "jsonl", "csv"])
@pytest.mark.parametrize("run", RUNS)
def test_every_run_is_exported_as_the_version_that_wrote_it_did(run, form, ask, golden):
    golden(f"store/golden/0.1.0/{run}.{form}", ask("export", RUNS[run], "--format", form))


def test_samples_are_exported_as_the_version_that_wrote_them_did(ask, golden):
    golden("store/golden/0.1.0/lab-samples.csv", ask("export", RUNS["lab"], "--samples"))


def test_nothing_in_it_counts_as_damaged(ask):
    assert "damaged" not in ask("store", "check")
