import pytest
from docs.documents import Shell
from ports import lend_port


@pytest.fixture(scope="session")
def shell_in(fork_server):
    """Return a function that makes a `Shell` in a directory."""
    return lambda directory: Shell(directory, fork_server, lend_port())
