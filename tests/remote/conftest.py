import pytest
from remote.measured import Measured
from remote_lab import SharedLabs


@pytest.fixture(scope="session")
def labs(tmp_path_factory):
    with SharedLabs(tmp_path_factory.mktemp("labs")) as labs:
        yield labs


@pytest.fixture
def lab(labs):
    with labs.lend() as lab:
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
