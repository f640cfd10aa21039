import pytest
from docs.documents import Shell
from docs.fork_server import ForkServer


@pytest.fixture(scope="session")
def shell_in():
    """Return a function that makes a `Shell` in a directory."""
    with ForkServer() as server:
        yield lambda directory: Shell(directory, server)
