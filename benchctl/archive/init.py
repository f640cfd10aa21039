"""Makes the tables of an archive, or those of an older version anew."""

from __future__ import annotations

from collections.abc import Callable

from benchctl.archive.connection import Archive
from benchctl.archive.schema import (
    DROP_VIEWS,
    READER,
    RIGHTS,
    TABLES,
    UPGRADES,
    VERSION,
    VIEWS,
    WRITER,
)
from benchctl.errors import ArchiveError


def init(archive: Archive, agree: Callable[[int], bool]) -> int | None:
    """Make the tables, the views and the roles of an archive, in one transaction.

    Those of an older version are upgraded if ``agree`` says so, which gets that version. Returns
    the version that was there; None if there was none. Raises ArchiveError.
    """
    before = archive.version()
    if before is not None and before < VERSION and not agree(before):
        return before
    with archive.transaction(upgrade=True):
        before = archive.version()  # another program may have made it meanwhile
        if before is not None and before >= VERSION:
            archive.check_version()
            return before
        _make_roles(archive)
        if before is None:
            _execute(archive, TABLES)
            archive.connection.execute(
                "INSERT INTO benchctl_data.archive (version) VALUES (%s)", (VERSION,)
            )
        else:
            _execute(archive, DROP_VIEWS)
            for statements in UPGRADES[before - 1 :]:
                _execute(archive, statements)
            archive.connection.execute("UPDATE benchctl_data.archive SET version = %s", (VERSION,))
        _execute(archive, VIEWS)
        _execute(archive, RIGHTS)
    return before


def _execute(archive: Archive, statements: str) -> None:
    archive.connection.execute(statements)


def _make_roles(archive: Archive) -> None:
    """Make the roles, which all databases of a server share, unless they are there."""
    for role in (WRITER, READER):
        if archive.rows("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)):
            continue
        may = archive.rows(
            "SELECT rolcreaterole OR rolsuper FROM pg_roles WHERE rolname = current_user"
        )
        if may != [(True,)]:
            raise ArchiveError(
                f"{archive.name}: this user may not make the role {role}",
                f"an administrator makes them: CREATE ROLE {WRITER}; CREATE ROLE {READER}",
            )
        archive.connection.execute(f"CREATE ROLE {role} NOLOGIN")
