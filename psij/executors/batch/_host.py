"""Where the commands of a resource manager are run and the files of its jobs lie: the one seam below batch executors.

``HERE`` is this machine. A host behind SSH is another one (``_ssh``). What asks a host never asks the system itself.
"""

from __future__ import annotations

import errno
import os
import pwd
import shutil
import socket
import stat
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from psij.executors._environment import ENVIRONMENT
from psij.executors.batch._command import OUTPUT_LIMIT, Result, run

_OLD_S = 30 * 24 * 3600
#: Names of files that are removed when nobody has touched them for a month end so.
ENDINGS: Final = (".job", ".out", ".ec", ".nodefile", ".keep", ".start", ".new")


class UnreachableError(OSError):
    """A host could not be reached: nothing was run there. A later try may succeed."""


class CutError(OSError):
    """The line to a host was lost while a command ran: nobody knows what became of it."""


class Host(ABC):
    """A machine with the commands of a resource manager.

    name: what people call it, empty for this machine. Files are named by absolute paths on it. Methods raise OSError;
    of a host behind a line also UnreachableError, and CutError where something may have been done.
    """

    name = ""

    def __init__(self) -> None:
        self.programs: dict[str, bytes] = {}    # by path there: what a job that starts it has to bring

    @property
    def is_here(self) -> bool:
        """Whether it is this machine."""
        return not self.name

    # --- what is known of it ---------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def environ(self) -> Mapping[str, str]:
        """The environment of commands."""

    def has_variable(self, beginning: str) -> bool:
        """Whether the name of a variable of that environment begins so."""
        return f"\0{beginning}" in "\0".join(["", *self.environ])

    @property
    @abstractmethod
    def home(self) -> str:
        """The home directory of the user."""

    @property
    @abstractmethod
    def uid(self) -> int:
        """The number of the user that commands run as."""

    @property
    @abstractmethod
    def user(self) -> str | None:
        """The name of that user by the system; None where it has none."""

    @property
    @abstractmethod
    def way(self) -> str:
        """What tells this machine from others, as far as that is known without asking it."""

    @abstractmethod
    def place(self, path: str) -> Path:
        """The absolute path that is meant: ``~/`` is the home directory behind a line, where relative paths begin."""

    # --- commands --------------------------------------------------------------------------------------------------

    @abstractmethod
    def run(self, command: Sequence[str], timeout_s: float, *, plain: bool = True, look: bool = True,
            limit: int = OUTPUT_LIMIT) -> Result:
        """Run a command to its end; as ``_command.run``.

        plain: in the locale C, else in that of the environment. look: the answer comes with the records that jobs have
        written meanwhile, where that makes a difference. limit: bytes of its outputs, at most.
        """

    @abstractmethod
    def which(self, program: str) -> str:
        """The path of a program where that is known without asking, else its name."""

    # --- files -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def make_private(self, directory: Path) -> None:
        """Have a directory that only we can enter; one of ours that others can enter is closed.

        Raises PermissionError for one that belongs to somebody else, who could put scripts and records into it.
        """

    @abstractmethod
    def clear_old(self, directory: Path, now: float) -> None:
        """Remove files that nobody has touched for a month, left by programs that ended before their jobs."""

    @abstractmethod
    def write(self, path: Path, content: bytes, mode: int = 0o600) -> None:
        """Write a new file with that mode; nothing is left when that fails. Behind a line it is there before the next
        command is run, which fails where it cannot be."""

    @abstractmethod
    def remove(self, path: Path) -> None:
        """Remove a file; one that is not there is no error."""

    @abstractmethod
    def names(self, directory: Path) -> list[str]:
        """The names in a directory; none where there is no directory."""

    @abstractmethod
    def changed(self, directory: Path) -> int:
        """A number that changes with the names in a directory, without asking anybody. Raises OSError where nothing is
        known of it."""

    @abstractmethod
    def exists(self, path: Path) -> bool:
        """Whether there is a file or directory."""

    @abstractmethod
    def record(self, path: Path, most: int) -> str | None:
        """The first bytes of a file that a job of ours has written, odd ones replaced; None when there is none of
        ours, or it cannot be read now."""

    @abstractmethod
    def tail(self, path: Path, most: int) -> bytes:
        """The last bytes of a file; none of one that cannot be read."""

    @abstractmethod
    def text(self, path: Path) -> str:
        """The text of a file of the system, of 64 KiB at most. Raises OSError where it cannot be read."""

    @abstractmethod
    def real(self, path: Path) -> Path:
        """The path without symbolic links."""

    @abstractmethod
    def note(self, directory: Path, name: str) -> None:
        """Put an empty file into a directory, which is made for it."""

    @abstractmethod
    def unnote(self, directory: Path, name: str) -> bool:
        """Remove that file again; whether it was the last one, with which the directory went."""


class _Here(Host):
    """This machine."""

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment of this process."""
        return os.environ

    def has_variable(self, beginning: str) -> bool:
        """The same, without a look at each name: it is asked for each job."""
        return b"\0" + os.fsencode(beginning) in b"\0".join([b"", *ENVIRONMENT])

    @property
    def home(self) -> str:
        """The home directory as ``HOME`` or the user database has it."""
        return os.path.expanduser("~")

    @property
    def uid(self) -> int:
        """The effective user id of this process."""
        return os.geteuid()

    @property
    def user(self) -> str | None:
        """The name of the effective user; None where the user database has none."""
        return _name_of(os.geteuid())

    @property
    def way(self) -> str:
        """The name of this host."""
        return socket.gethostname()

    def place(self, path: str) -> Path:
        """The path seen from the working directory of this process."""
        return Path(os.path.abspath(path))

    def run(self, command: Sequence[str], timeout_s: float, *, plain: bool = True, look: bool = True,
            limit: int = OUTPUT_LIMIT) -> Result:
        """Run a command as a child of this process."""
        return run(command, timeout_s, {**ENVIRONMENT, b"LC_ALL": b"C"} if plain else None, limit)

    def which(self, program: str) -> str:
        """The path of a program as ``PATH`` has it, else its name."""
        return shutil.which(program) or program

    def make_private(self, directory: Path) -> None:
        """Make a directory of mode 0700, or close the one that is there."""
        if not directory.is_dir():
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        status = directory.stat()
        if status.st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, "the work directory belongs to another user", str(directory))
        if stat.S_IMODE(status.st_mode) & 0o077:
            directory.chmod(0o700)

    def clear_old(self, directory: Path, now: float) -> None:
        """Remove the old files now; what cannot be removed stays."""
        for entry in os.scandir(directory):
            if not entry.name.endswith(ENDINGS):
                continue
            with suppress(OSError):     # gone meanwhile, or not to be removed: no reason not to submit
                if now - entry.stat(follow_symlinks=False).st_mtime <= _OLD_S:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry, ignore_errors=True)
                else:
                    os.unlink(entry)

    def write(self, path: Path, content: bytes, mode: int = 0o600) -> None:
        """Write a new file; FileExistsError where there is one, for a link is not followed."""
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        try:
            while content:
                content = content[os.write(fd, content):]
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        finally:
            os.close(fd)

    def remove(self, path: Path) -> None:
        """Remove a file now."""
        path.unlink(missing_ok=True)

    def names(self, directory: Path) -> list[str]:
        """List the directory now."""
        return os.listdir(directory) if directory.is_dir() else []

    def changed(self, directory: Path) -> int:
        """The time of the last change of the directory, in nanoseconds."""
        return os.stat(directory).st_mtime_ns

    def exists(self, path: Path) -> bool:
        """Look for the file now; a link to nothing is none."""
        return path.exists()

    def record(self, path: Path, most: int) -> str | None:
        """Read the file now; None for one that is a link, is no plain file or belongs to another user."""
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(fd, encoding="ascii", errors="replace") as file:
                status = os.fstat(fd)
                if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
                    return None
                return file.read(most)
        except OSError:         # not there, not yet, or not to be read now: no record
            return None

    def tail(self, path: Path, most: int) -> bytes:
        """Read the end of the file now."""
        with suppress(OSError), open(path, "rb") as file:       # a script that never ran has none
            file.seek(max(0, os.fstat(file.fileno()).st_size - most))
            return file.read(most)
        return b""

    def text(self, path: Path) -> str:
        """Read the file now, bytes that are no UTF-8 replaced."""
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(1 << 16)

    def real(self, path: Path) -> Path:
        """Resolve the links now."""
        return path.resolve()

    def note(self, directory: Path, name: str) -> None:
        """Make the directory, with mode 0700, and the file now."""
        directory.mkdir(0o700, exist_ok=True)
        (directory / name).touch(0o600)

    def unnote(self, directory: Path, name: str) -> bool:
        """Remove the file now, and the directory where it is empty then."""
        with suppress(OSError):         # it is not empty: others are attached; it is not there: nobody was noted
            (directory / name).unlink(missing_ok=True)
            directory.rmdir()
            return True
        return False


@cache
def _name_of(number: int) -> str | None:
    """The name of a user, remembered: the system reads a file for it, or asks another machine."""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return None


#: This machine.
HERE: Final[Host] = _Here()
