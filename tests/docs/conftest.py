import pytest
from docs.documents import Shell


@pytest.fixture(scope="session")
def shell_in(fork_server, lend_port):
    """Return a function that makes a `Shell` in a directory."""
    return lambda directory: Shell(directory, fork_server, lend_port())
