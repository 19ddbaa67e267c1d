"""Tar archives as they are sent to a host and come from one, with suspicion against the latter.

What comes may be anything: each name has to lead into the folder by folders of the same archive, so that none leads
through a link; headers that ``tarfile`` would read into memory are short; bytes and members are counted.
Source: tar(5) of libarchive, for the forms of headers.
"""

from __future__ import annotations

import io
import os
import shutil
import stat
import tarfile
from collections.abc import Callable, Iterator
from typing import IO, Any, Final

from psij.executors._local_staging import open_file

_CHUNK: Final = 1 << 18
_MEMBERS: Final = 1_000_000     # of one archive
_HEADER: Final = 1 << 20        # bytes of a header that says a long name, or the like
_MODE: Final = 0o777            # what is taken of the permissions of others' files
#: Members that say something of the next one.
_SAYING: Final = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE,
                  tarfile.SOLARIS_XHDTYPE)


def pack(source: str, send: Callable[[bytes], int], most: int) -> None:
    """Send an archive with a file or folder as ``it``, and behind it an empty file ``end``.

    Links inside a folder stay links, the source itself is followed. Raises OSError, also for what is neither file,
    folder nor link, for a file that becomes shorter meanwhile, and for more than so many bytes.
    """
    total = 0
    with tarfile.open(fileobj=_Writer(send), mode="w|", bufsize=_CHUNK, format=tarfile.GNU_FORMAT, encoding="utf-8",
                      errors="surrogateescape") as archive:
        for path, name in _walk(source):
            status = os.stat(path) if path == source else os.lstat(path)
            member = tarfile.TarInfo(f"it/{name}" if name else "it")
            member.mode, member.mtime = stat.S_IMODE(status.st_mode), int(status.st_mtime)
            if stat.S_ISDIR(status.st_mode):
                member.type, member.mode = tarfile.DIRTYPE, member.mode | stat.S_IRWXU
                archive.addfile(member)
            elif stat.S_ISLNK(status.st_mode):
                member.type, member.linkname = tarfile.SYMTYPE, os.readlink(path)
                archive.addfile(member)
            else:
                with open(path, "rb", opener=open_file) as file:
                    member.size = os.fstat(file.fileno()).st_size
                    total += member.size
                    if total > most:
                        raise OSError(0, _too_much(most))
                    archive.addfile(member, file)
        archive.addfile(tarfile.TarInfo("end"))


def _walk(source: str) -> Iterator[tuple[str, str]]:
    """The path of each file and folder, folders first, and its name below the source."""
    yield source, ""
    if os.path.isdir(source):
        folders = [""]
        while folders:
            folder = folders.pop()
            with os.scandir(os.path.join(source, folder)) as entries:
                for entry in entries:
                    name = os.path.join(folder, entry.name)
                    yield entry.path, name
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(name)


def unpack(read: Callable[[int], bytes], whole: str, is_folder: bool, most: int) -> None:
    """Read an archive and make a file or folder of it. whole: its path, where nothing is yet.

    Raises OSError, also for an archive that is not as it should be, and for more than so many bytes.
    """
    try:
        with tarfile.open(fileobj=_Reader(read), mode="r|", bufsize=tarfile.BLOCKSIZE, tarinfo=_Suspicious,
                          encoding="utf-8", errors="surrogateescape") as archive:
            _Unpacking(whole, is_folder, most).take(archive)
    except (tarfile.TarError, ValueError, OverflowError, IndexError, RecursionError) as e:
        raise OSError(0, f"the archive cannot be understood: {e}") from e


class _Suspicious(tarfile.TarInfo):
    """A member of an archive of a stranger."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Suspicious:
        """A member from the bytes of its header. Raises OSError for what tarfile would pass over in silence."""
        try:
            member = super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as e:
            if any(buf):                # no end, after which nothing follows, but one that tarfile would take for it
                raise OSError(0, f"the archive cannot be understood: {e}") from e
            raise
        if (member.type in _SAYING and member.size > _HEADER) or member.type == tarfile.GNUTYPE_SPARSE:
            raise OSError(0, f"the archive has a header of a kind that is not taken: {member.type!r}, {member.size}")
        return member


class _Unpacking:
    """One archive that becomes files. most: bytes that are still taken."""

    def __init__(self, whole: str, is_folder: bool, most: int) -> None:
        self._whole, self._is_folder = whole, is_folder
        self._most = self._left = most
        self._folders: dict[tuple[str, ...], tarfile.TarInfo | None] = {}
        self._files: set[tuple[str, ...]] = set()

    def take(self, archive: tarfile.TarFile) -> None:
        """Write all that an archive holds, times and modes of folders last. Raises OSError for what it may not hold."""
        if self._is_folder:
            os.mkdir(self._whole, 0o700)
            self._folders[()] = None
        for count, member in enumerate(archive):
            vars(archive)["members"] = []       # tarfile would keep all of them
            if count >= _MEMBERS:
                raise OSError(0, f"there are more than {_MEMBERS} files in it")
            self._take(archive, member)
        if not self._is_folder and not self._files:
            raise OSError(0, "the archive is empty")
        for parts, folder in sorted(self._folders.items(), reverse=True):
            if folder is not None:
                path = self._path(parts)
                os.chmod(path, (folder.mode & _MODE) | stat.S_IRWXU)
                os.utime(path, (folder.mtime, folder.mtime))

    def _take(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        parts = self._parts(member.name)
        if member.isdir() and self._is_folder:
            if parts not in self._folders:
                os.mkdir(self._path(parts), 0o700)
            self._folders[parts] = member
        elif member.isreg():
            data = archive.extractfile(member)
            assert data is not None
            self._write(parts, member, data)
        elif member.issym() and self._is_folder:
            os.symlink(member.linkname, self._path(parts))
        elif member.islnk() and (first := self._parts(member.linkname)) in self._files:
            with open(self._path(first), "rb") as data:
                member.size = os.fstat(data.fileno()).st_size
                self._write(parts, member, data)
        else:
            raise OSError(0, f"{member.name!r} is not a file")

    def _write(self, parts: tuple[str, ...], member: tarfile.TarInfo, data: IO[bytes]) -> None:
        self._left -= member.size
        if self._left < 0:
            raise OSError(0, _too_much(self._most))
        path = self._path(parts)
        with open(path, "xb") as file:
            shutil.copyfileobj(data, file, _CHUNK)
            if file.tell() != member.size:
                raise OSError(0, f"{member.name!r} is not whole")
        os.chmod(path, member.mode & _MODE)
        os.utime(path, (member.mtime, member.mtime))
        self._files.add(parts)

    def _parts(self, name: str) -> tuple[str, ...]:
        """The names that lead to a member from what is unpacked; none for the one file, whatever its name."""
        parts = tuple(part for part in name.split("/") if part != ".")
        if not self._is_folder:
            if self._files:
                raise OSError(0, "the archive has more than one file")
            return ()
        parts = parts[:-1] if parts and not parts[-1] else parts
        if name.startswith("/") or ".." in parts or "" in parts or (parts and parts[:-1] not in self._folders):
            raise OSError(0, f"the name {name!r} leads out of the folder")
        return parts

    def _path(self, parts: tuple[str, ...]) -> str:
        return os.path.join(self._whole, *parts)


def _too_much(most: int) -> str:
    return f"it has more than {most} bytes (staging_bytes)"


class _Writer(io.RawIOBase):
    """What ``tarfile`` writes to."""

    def __init__(self, send: Callable[[bytes], int]) -> None:
        super().__init__()
        self._send = send

    def write(self, data: Any, /) -> int:
        """Hand the bytes on; how many they were."""
        return self._send(bytes(data))


class _Reader(io.RawIOBase):
    """What ``tarfile`` reads from, block by block, for something else follows the archive."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        super().__init__()
        self._read = read

    def read(self, size: int = -1, /) -> bytes:
        """Just as many bytes as are asked for; none where all are."""
        parts = []
        while size > 0:
            parts.append(self._read(size))
            size -= len(parts[-1])
        return b"".join(parts)
