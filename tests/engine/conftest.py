import pytest
from engine.virtual import run_trial


@pytest.fixture
def measure(tmp_path):
    """Run one trial in virtual time; see `engine.virtual.run_trial`."""
    outcomes = []

    def measure(scripts, *flows, **options):
        store = tmp_path / f"runs-{len(outcomes)}.sqlite"
        outcomes.append(run_trial(store, scripts, *flows, **options))
        return outcomes[-1]

    yield measure
    for outcome in outcomes:
        outcome.reader.close()
