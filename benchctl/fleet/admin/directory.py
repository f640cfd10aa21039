"""The administrator's directory, in which the server and the coordinator live, too.

All in it is its owner's alone. Who is in the fleet is in `members.json`. Several processes change
it, one at a time: each change also writes `nats.conf`, and the server reads it at once.
"""

from __future__ import annotations

import fcntl
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from benchctl.errors import FleetError, UsageError
from benchctl.fleet.admin.conf import server_conf
from benchctl.fleet.admin.hosts import disk_note
from benchctl.fleet.admin.members import NAME, Members, Person
from benchctl.fleet.trust.certificates import (
    DAY_S,
    SAID_AHEAD_DAYS,
    end_s,
    make_ca,
    make_server,
)
from benchctl.fleet.trust.keys import SigningKey, need_cryptography, parse_nkey, write_secret
from benchctl.fleet.trust.keyset import KeySet, open_keys, sign_keys
from benchctl.fleet.trust.membership import Membership, Rights, Server, Token, write_membership
from benchctl.fleet.trust.signing import KnownKey, UntrustedError

ADMIN: Final = "admin"
ADMIN_FILE: Final = "admin.fleet"
"""The file of whoever administers the fleet; others get theirs by an invitation."""

_INIT_HINT: Final = "benchctl fleet init DIR makes one"


class FleetDirectory:
    """A directory that `make` made."""

    def __init__(self, path: Path) -> None:
        """Open it. Raises FleetError if it is none."""
        need_cryptography()
        self.path = path.absolute()
        self._read: tuple[int, int] | None = None
        self._members: Members
        self._keys: dict[str, KnownKey] = {}
        self.members()

    @classmethod
    def make(
        cls, path: Path, fleet: str, address: str, listen: str, now_s: float
    ) -> FleetDirectory:
        """Make the directory of a new fleet. Raises FleetError if it is there, and not empty.

        ``address`` is the server's, as hosts and people reach it; it listens on ``listen``.
        """
        need_cryptography()
        path = path.absolute()
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if any(path.iterdir()):
                raise FleetError(f"{path} is not empty", "a fleet is made in a new directory")
            path.chmod(0o700)
        except OSError as error:
            raise FleetError(f"{path}: {error.strerror}") from None
        root, coordinator, upcoming, setup = (SigningKey.make() for _ in range(4))
        root.write(path / "root.seed")
        coordinator.write(path / "coordinator.seed")
        upcoming.write(path / "next.seed")
        setup.write(path / "setup.seed")
        ca, ca_key = make_ca(fleet, now_s)
        write_secret(path / "ca.pem", ca)
        write_secret(path / "ca.key", ca_key)
        keys = KeySet(fleet, 1, (coordinator.public, upcoming.public))
        write_secret(path / "root.pub", f"{root.nkey}\n".encode())
        write_secret(path / "keys", sign_keys(root, keys))
        write_secret(path / "listen", f"{listen}\n".encode())
        members = Members(fleet, address, setup.nkey, (coordinator.nkey, upcoming.nkey))
        write_secret(path / "members.json", _json(members))
        directory = cls(path)
        directory.renew_certificate(now_s)
        directory.invite_person(ADMIN, "admin", path / ADMIN_FILE)
        return directory

    def members(self) -> Members:
        """Return who is in the fleet now. Raises FleetError."""
        path = self.path / "members.json"
        try:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                read = (status.st_ino, status.st_mtime_ns)
                if read != self._read:
                    self._members = msgspec.json.decode(file.read(), type=Members)
                    self._keys = self._members.keys()
                    self._read = read
        except FileNotFoundError:
            raise FleetError(f"{self.path} is no directory of a fleet", _INIT_HINT) from None
        except OSError as error:
            raise FleetError(f"{path}: {error.strerror}") from None
        except (ValueError, msgspec.MsgspecError) as error:
            raise FleetError(f"{path} is damaged: {error}", "bring it back from a backup") from None
        return self._members

    def known_keys(self) -> Mapping[str, KnownKey]:
        """Return the keys of all members of now, by what names them in an envelope."""
        self.members()
        return self._keys

    def find(self, key: str) -> KnownKey | None:
        """Return the key of a member of now that an envelope names."""
        return self.known_keys().get(key)

    def change(self, how: Callable[[Members], Members], *, at_once: bool = True) -> Members:
        """Change who is in the fleet; the server knows it at once. Raises FleetError.

        Unless ``at_once``, the caller has the server read it, by `reload_server`.
        """
        with self._lock():
            members = how(self.members().current(time.time()))
            write_secret(self.path / "members.json", _json(members), replace=True)
            self.write_conf(members)
            if at_once:
                self.reload_server()
        return members

    def write_conf(self, members: Members) -> None:
        """Write the server's configuration."""
        listen = (self.path / "listen").read_text().strip()
        text = server_conf(members, self.path, listen)
        write_secret(self.path / "nats.conf", text.encode(), replace=True)

    def reload_server(self) -> bool:
        """Have the server of this machine read its configuration; returns whether one runs."""
        pid = self.server_pid()
        if pid is not None:
            os.kill(pid, signal.SIGHUP)
        return pid is not None

    def server_pid(self) -> int | None:
        """Return the process of the running server of this directory, None if there is none."""
        try:
            pid = int((self.path / "nats.pid").read_text())
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError):
            return None
        # The file stays after a kill, and its number may be another process' by now.
        return pid if str(self.path / "nats.conf").encode() in words else None

    def invite_host(self, name: str, expires_s: float) -> Token:
        """Let a host join, once. Raises UsageError for a bad name."""
        key = SigningKey.make()

        def invite(members: Members) -> Members:
            members.check_new(name, again=True)
            return members.invite_host(name, key.nkey, expires_s)

        self.change(invite)
        return Token(self.server(), name, key.text, self.keys(), expires_s)

    def invite_person(
        self, name: str, rights: Rights, file: Path, limits: Mapping[str, int] = {}
    ) -> None:
        """Take a person in and write their file. Raises UsageError for a bad name, FleetError.

        ``limits`` are fields of `Person`.
        """
        self.members().check_new(name)
        key = SigningKey.make()
        write_membership(file, Membership(self.server(), name, key.text, self.keys(), rights))

        def invite(members: Members) -> Members:
            members.check_new(name)
            return members.invite_person(name, Person(key.nkey, rights, **limits))

        try:
            self.change(invite)
        except BaseException:
            file.unlink()
            raise

    def server(self) -> Server:
        """Return what everybody knows the server by."""
        members = self.members()
        ca = (self.path / "ca.pem").read_text()
        root = parse_nkey((self.path / "root.pub").read_text().strip())
        return Server(members.fleet, members.address, ca, root)

    def keys(self) -> bytes:
        """Return the signed set of the coordinator's keys."""
        return (self.path / "keys").read_bytes()

    def coordinator_key(self) -> SigningKey:
        """Return the key that the coordinator signs with and logs in by. Raises FleetError."""
        return SigningKey.read(self.path / "coordinator.seed")

    def setup_key(self) -> SigningKey:
        """Return the key of who makes the streams. Raises FleetError."""
        return SigningKey.read(self.path / "setup.seed")

    def renew_certificate(self, now_s: float) -> None:
        """Make another certificate of the server. Raises FleetError."""
        host = self.members().address.rpartition(":")[0].strip("[]")
        names = list(dict.fromkeys([host, "localhost", "127.0.0.1", "::1"]))
        try:
            ca, ca_key = (self.path / "ca.pem").read_bytes(), (self.path / "ca.key").read_bytes()
        except OSError as error:
            raise FleetError(
                f"{error.filename}: {error.strerror}", "bring the authority's files back"
            ) from None
        certificate, key = make_server(ca, ca_key, names, now_s)
        write_secret(self.path / "server.pem", certificate, replace=True)
        write_secret(self.path / "server.key", key, replace=True)

    def renew_coordinator(self) -> int:
        """Let the coordinator's next key take the place of its own, and make another next one.

        All know the next key before it is used. Returns the number of the new set. Raises
        FleetError, for example if the root key is elsewhere.
        """
        root = SigningKey.read(self.path / "root.seed")

        def renew(members: Members) -> Members:
            key, upcoming = SigningKey.read(self.path / "next.seed"), SigningKey.make()
            number = members.keys_number + 1
            # The running coordinator's key stays until the next time.
            nkeys = (members.coordinators[-2], key.nkey, upcoming.nkey)
            public = tuple(map(parse_nkey, nkeys))
            signed = sign_keys(root, KeySet(members.fleet, number, public))
            open_keys(signed, self.server().root, members.fleet, number)  # is it our root key?
            for name, seed in (("coordinator.seed", key), ("next.seed", upcoming)):
                write_secret(self.path / name, f"{seed.text}\n".encode(), replace=True)
            write_secret(self.path / "keys", signed, replace=True)
            return msgspec.structs.replace(members, coordinators=nkeys, keys_number=number)

        try:
            return self.change(renew).keys_number
        except UntrustedError as error:
            raise FleetError(f"root.seed is not the root key of this fleet: {error.why}") from None

    def notes(self, now_s: float) -> list[str]:
        """Return what is to be done here: a certificate that ends, a disk that becomes full."""
        notes = []
        left_s = end_s((self.path / "server.pem").read_bytes()) - now_s
        if left_s < SAID_AHEAD_DAYS * DAY_S:
            notes.append(
                f"the server's certificate ends in {max(0.0, left_s) / DAY_S:.0f} days:"
                " benchctl fleet renew"
            )
        disk = os.statvfs(self.path)
        store = self.path / "benchctl.sqlite"
        size = store.stat().st_size if store.exists() else 0
        age_s = now_s - (self.path / "root.pub").stat().st_mtime
        notes.append(disk_note(disk.f_bavail * disk.f_frsize, size, age_s))
        return [note for note in notes if note]

    @contextmanager
    def _lock(self) -> Iterator[None]:
        lock = os.open(self.path / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


def check_name(name: str) -> str:
    """Return a name of a fleet. Raises UsageError."""
    if not NAME.fullmatch(name):
        raise UsageError(f"{name!r} is no name of a fleet", "give one with --name: a-z, 0-9 and -")
    return name


def check_address(address: str) -> str:
    """Return an address of a server, HOST:PORT. Raises UsageError."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise UsageError(f"{address!r} is no address", "use HOST:PORT: fleet.example.org:443")
    return address


def _json(value: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
