"""Opens an archive, and converts PostgreSQL's errors to ours.

No message has the URL, which may hold a password: archives are named by host and database.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from benchctl.archive.schema import VERSION
from benchctl.errors import ArchiveAwayError, ArchiveError, MissingError, UsageError

if TYPE_CHECKING:
    from psycopg import Connection

CONNECT_S = 10
# How long a statement may take, also if it waits for another program. The largest copies some
# 200,000 samples.
STATEMENT_S = 120
SLACK_S = 30.0
"""So much later than it should have, the server has not even ended a statement: it hangs."""
# If what was sent is not acknowledged for so long, the network is gone (tcp(7), TCP_USER_TIMEOUT).
UNANSWERED_S = 30
# How long a pusher that was stopped holds its lock.
IDLE_S = 300

_UPGRADE_LOCK = "SELECT pg_advisory_xact_lock{}(hashtextextended('benchctl archive', 0))"
_HINTS = {
    "42501": "benchctl_reader may read, benchctl_writer may push; the rest is for the owner",
    "53100": "its disk is full; the runs are in the store, push them again later",
    "55P03": "another program has locked it; try again later",
    "57014": "it is too slow, or another program has locked it; try again later",
    "25006": "it can only be read: is it a standby server?",
}
"""What to do, by the code of the error (PostgreSQL, appendix A)."""
_HINT_AWAY = "is it running, and has this user a password in ~/.pgpass? runs stay in the store"
# Classes of errors: connection, resources, shut down by an administrator.
_AWAY = ("08", "57P")


class Archive:
    """A connection to an archive. Methods raise ArchiveError."""

    def __init__(self, connection: Connection[Any], name: str) -> None:
        self.connection = connection
        self.name = name

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Convert errors of PostgreSQL about this archive."""
        with archive_errors(self.name):
            yield

    @contextmanager
    def transaction(self, *, upgrade: bool = False) -> Iterator[None]:
        """Run a block as one transaction, in which nobody upgrades the archive.

        With ``upgrade``, nobody else pushes. Raises ArchiveError.
        """
        with self.errors(), self.connection.transaction():
            self.connection.execute(_UPGRADE_LOCK.format("" if upgrade else "_shared"))
            if not upgrade:
                self.check_version()
            yield

    def version(self) -> int | None:
        """Return the version of its tables; None if it has none."""
        with self.errors():
            there = self.connection.execute("SELECT to_regclass('benchctl_data.archive')")
            if there.fetchone() == (None,):
                return None
            row = self.connection.execute("SELECT version FROM benchctl_data.archive").fetchone()
        return None if row is None else int(row[0])

    def check_version(self) -> None:
        """Raise ArchiveError if there is no archive, or one of another version."""
        version = self.version()
        if version is None:
            raise ArchiveError(f"{self.name} has no archive", "make it: benchctl archive init URL")
        if version != VERSION:
            age = "newer" if version > VERSION else "older"
            hint = (
                "update benchctl" if version > VERSION else "upgrade it: benchctl archive init URL"
            )
            raise ArchiveError(
                f"{self.name} was made by {age} benchctl (format {version}, here {VERSION})", hint
            )

    def rows(self, query: str, values: Any = None) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with self.errors():
            return self.connection.execute(query, values).fetchall()


@contextmanager
def open_archive(
    url: str, *, any_version: bool = False, statement_s: float = STATEMENT_S
) -> Iterator[Archive]:
    """Open an archive by its URL, or by the words that libpq takes.

    With ``any_version``, its tables may be of another version, or missing. Raises UsageError if the
    URL is none, MissingError without psycopg, ArchiveError.
    """
    try:
        import psycopg
    except ImportError as error:
        raise MissingError(
            "an archive needs psycopg, which is not installed", 'pip install "benchctl[archive]"'
        ) from error
    from psycopg.conninfo import conninfo_to_dict

    from benchctl.archive.driver import PatientConnection

    try:
        parameters = conninfo_to_dict(url)
    except psycopg.Error:  # its message may repeat a password
        raise UsageError(
            "this is no URL of a PostgreSQL database",
            "for example: postgresql://user@host/database; see docs/archive.md",
        ) from None
    name = _name(parameters)
    defaults = {
        "connect_timeout": CONNECT_S, "tcp_user_timeout": UNANSWERED_S * 1000,
        "keepalives_idle": UNANSWERED_S, "application_name": "benchctl",
    }  # fmt: skip
    with archive_errors(name):
        connection = PatientConnection.connect(**{**defaults, **parameters}, autocommit=True)  # type: ignore[arg-type]
    with connection:
        archive = Archive(connection, name)
        with archive.errors():
            for setting, value_s in (
                ("statement_timeout", statement_s),
                ("lock_timeout", statement_s),
                ("idle_in_transaction_session_timeout", IDLE_S),
            ):
                connection.execute(f"SET {setting} = {value_s * 1000:.0f}")
            connection.use_arrays()
            connection.patience_s = statement_s + SLACK_S
            connection.execute("SET timezone = 'UTC'")
            connection.execute("SET client_encoding = 'UTF8'")
        if not any_version:
            archive.check_version()
        yield archive


def _name(parameters: dict[str, Any]) -> str:
    """Return what an archive is called in messages: never its password."""
    database = parameters.get("dbname") or parameters.get("service") or "the default database"
    host = parameters.get("host") or parameters.get("hostaddr")
    return f"archive {database}{f' on {host}' if host else ''}"


@contextmanager
def archive_errors(name: str) -> Iterator[None]:
    """Convert PostgreSQL's errors to ArchiveError."""
    import psycopg

    try:
        yield
    except psycopg.DatabaseError as error:
        code = error.sqlstate or ""
        if isinstance(error, psycopg.ProgrammingError) and not code:
            raise  # a bug of ours
        said = (error.diag.message_primary or str(error)).strip().partition("\n")[0]
        text = f"{name}: {said}"
        hint = _HINTS.get(code, "")
        away = isinstance(error, psycopg.OperationalError) and (not code or code.startswith(_AWAY))
        if away:
            raise ArchiveAwayError(text, _HINT_AWAY) from error
        raise ArchiveError(text, hint) from error
