import pytest
from remote.measured import Measured
from remote_lab import remote_lab


@pytest.fixture
def lab(tmp_path):
    with remote_lab(tmp_path) as lab:
        yield lab


@pytest.fixture
def measure(lab, tmp_path):
    """Start a run of a profile's text where ssh starts, and yield what is seen of it."""
    runs = []

    def measure(text, *options, lab=lab):
        file = tmp_path / f"remote-{len(runs)}.toml"
        file.write_text(text)
        runs.append(Measured(lab, file, options))
        return runs[-1]

    yield measure
    for run in runs:
        run.end()
