"""Archives in the form that the kernel unpacks as its first file system.

The "newc" form of cpio (Documentation/driver-api/early-userspace/buffer-format.rst in the kernel's
sources). The kernel unpacks several of them one after the other, so a large one that seldom changes
and a small one that always does need not become one file.
"""

import stat
import tarfile
from pathlib import Path

_TYPES = {
    tarfile.DIRTYPE: stat.S_IFDIR,
    tarfile.SYMTYPE: stat.S_IFLNK,
    tarfile.CHRTYPE: stat.S_IFCHR,
    tarfile.REGTYPE: stat.S_IFREG,
    tarfile.LNKTYPE: stat.S_IFREG,
}


class Archive:
    """Writes one archive; a context manager."""

    def __init__(self, path):
        self._path = Path(path)
        self._count = 0

    def __enter__(self):
        self._file = self._path.open("wb")
        return self

    def __exit__(self, *_):
        self._entry("TRAILER!!!", 0, b"")
        self._file.write(bytes(-self._file.tell() % 512))
        self._file.close()

    def directory(self, name):
        self._entry(name, stat.S_IFDIR | 0o755, b"")

    def file(self, name, data, mode=0o644):
        self._entry(name, stat.S_IFREG | mode, data)

    def tree(self, tar):
        """Take all members of an open tar file."""
        for member in tar:
            name = member.name.removeprefix("./").strip("/")
            if name in ("", ".") or member.type not in _TYPES:
                continue
            data = member.linkname.encode() if member.issym() else b""
            if member.isfile() or member.islnk():
                data = tar.extractfile(member).read()
            self._entry(name, _TYPES[member.type] | member.mode, data, member)

    def _entry(self, name, mode, data, member=None):
        self._count += 1
        uid, gid = (member.uid, member.gid) if member else (0, 0)
        major, minor = (member.devmajor, member.devminor) if member else (0, 0)
        path = name.encode() + b"\0"
        fields = [
            self._count, mode, uid, gid, 1, 0, len(data), 0, 0, major, minor, len(path), 0,
        ]  # fmt: skip
        head = b"070701" + b"".join(b"%08x" % field for field in fields) + path
        self._file.write(head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4))
