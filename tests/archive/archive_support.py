"""Pushing, pulling and other users, for the tests of archives."""

from contextlib import closing, contextmanager

import psycopg

from benchctl.archive.connection import open_archive
from benchctl.archive.pull import archived_runs, find, pull
from benchctl.archive.push import push
from benchctl.store.read import Reader


def pushed(archive, store, name="last", **options):
    with closing(Reader(store)) as reader:
        return push(archive, reader, reader.find(name), **options)


def pulled(archive, store, name="last", folder=None):
    return pull(archive, find(archived_runs(archive), name), store, folder)


@contextmanager
def user_of(url, role):
    """Make a user with a role; yields the URL of the archive for that user."""
    name = f"some_{role}"
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute(f"DROP ROLE IF EXISTS {name}")
        owner.execute(f"CREATE ROLE {name} LOGIN IN ROLE {role}")
        yield url.replace("//owner@", f"//{name}@")
        owner.execute(f"DROP ROLE {name}")


@contextmanager
def opened_as(url, role):
    with user_of(url, role) as theirs, open_archive(theirs) as archive:
        yield archive
