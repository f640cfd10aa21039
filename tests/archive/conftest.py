import postgres
import pytest

from benchctl.archive.connection import open_archive
from benchctl.archive.init import init


@pytest.fixture(scope="session")
def new_database():
    """Make an empty database with each call; returns its URL."""
    with postgres.running() as make:
        yield make


@pytest.fixture
def url(new_database):
    """The URL of an archive that is empty."""
    found = new_database()
    with open_archive(found, any_version=True) as archive:
        init(archive, lambda _: False)
    return found


@pytest.fixture
def archive(url):
    with open_archive(url) as opened:
        yield opened
