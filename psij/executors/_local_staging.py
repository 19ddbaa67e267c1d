"""Staging on this machine: what is to be copied, linked, moved and removed, and the threads that do it.

Sources and targets are plain paths and ``file:`` URIs of this host. A file appears under its target's name when it is
whole. An existing file or link is replaced, and not written through; an existing folder gets the contents of a staged
folder and is not replaced by a file. ``cleanup`` removes only what really is inside the job's directory: symbolic links
on the way are resolved first, and one at the end is removed itself.
"""

from __future__ import annotations

import errno
import os
import queue
import re
import shutil
import stat
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import unquote

from psij.exceptions import InvalidJobException, InvalidJobTypeException
from psij.executors._local_spawn import check_directory
from psij.job_spec import JobSpec
from psij.job_state import JobState
from psij.job_status import JobStatus
from psij.staging import URI, StageOutFlags, StagingMode

#: Final state -> the flag of what is staged out and removed after it.
ENDS = {JobState.COMPLETED: StageOutFlags.ON_SUCCESS, JobState.FAILED: StageOutFlags.ON_ERROR,
        JobState.CANCELED: StageOutFlags.ON_CANCEL}

_THREADS = 4        # that stage at the same time
_CHUNK = 1 << 20    # bytes copied between two looks whether to go on
#: Errors that say nothing about the files themselves and may be gone at a later try. Source: errno(3).
PASSING = frozenset((
    errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE, errno.EAGAIN, errno.EBUSY, errno.ENFILE, errno.EMFILE,
    errno.ENOMEM, errno.ETIMEDOUT, errno.ETXTBSY, errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTDOWN,
    errno.EHOSTUNREACH, errno.ENOTCONN, errno.ECONNRESET, errno.ENOLCK, errno.EREMOTEIO))
_NUMBERED = re.compile(r"\[Errno (\d{1,4})\]")
PART = ".psij-"    # the names of files that are not whole yet begin so
_own = threading.local()    # mark: of the staging that this thread does
_Stop = Callable[[], bool]


class StagingError(Exception):
    """A file could not be staged or removed. reason: as in metadata. transient: a later try may succeed. away: nothing
    is known of the files, for the machine where they are gives no answer."""

    def __init__(self, reason: str, message: str, transient: bool = False, away: bool = False) -> None:
        super().__init__(f"{reason.replace('-', '_')}: {message}")
        self.reason, self.transient, self.away = reason, transient, away


class StagingStopped(Exception):
    """The job was canceled meanwhile."""


@dataclass(frozen=True, slots=True)
class Item:
    """One file or folder. Paths are absolute."""

    source: str
    target: str
    mode: StagingMode
    flags: StageOutFlags = StageOutFlags.ALWAYS


@dataclass(frozen=True, slots=True)
class Staging:
    """What a job has to have staged and removed. directory: the job's. mark: of this job alone, a part of the names of
    files that are not whole yet, by which those of a process that was killed are found."""

    directory: str
    stage_in: tuple[Item, ...]
    stage_out: tuple[Item, ...]
    cleanup: tuple[str, ...]
    cleanup_flags: StageOutFlags
    mark: str = ""

    def bring(self, stop: _Stop) -> None:
        """Stage in. Raises LaunchError where there is no directory, StagingError, StagingStopped."""
        _own.mark = self.mark
        for item in self.stage_in:
            if stop():
                raise StagingStopped
            self._bring_one(item, stop)

    def is_brought(self, item: Item) -> bool:
        """Whether a file that was to be brought by moving it is there already."""
        return is_moved(item)

    def fetch(self, end: StageOutFlags, stop: _Stop, done: int = 0, again: bool = False,
              reached: Callable[[int, bool], None] = lambda count, certain: None) -> None:
        """Stage out; end: ON_SUCCESS, ON_ERROR or ON_CANCEL. Raises StagingError, StagingStopped.

        For who goes on with what another process has begun: done is how many items that one had finished, which are
        left out, and again says that there was one, which may have moved a file without having said so. reached is
        called with the number of items that are done; certain: what comes next takes a source away, so that this number
        has to be known to others before it returns.
        """
        items = [item for item in self.stage_out if item.flags & end]
        _own.mark = self.mark
        for item in items[done:] if again and self.mark else ():
            _remove_parts(item.target, self.mark)
        for number, item in enumerate(items[done:], done):
            if number and item.mode is StagingMode.MOVE:
                reached(number, True)
            if stop():
                raise StagingStopped
            self._fetch_one(item, stop, again)
            reached(number + 1, False)

    def remove(self, end: StageOutFlags) -> None:
        """Clean up. Raises StagingError."""
        if self.cleanup and self.cleanup_flags & end:
            self._remove_all()

    # --- where files are is a matter of these -----------------------------------------------------------------------

    def _bring_one(self, item: Item, stop: _Stop) -> None:
        check_directory(self.directory)
        _stage("stage-in", item, stop)

    def _fetch_one(self, item: Item, stop: _Stop, again: bool) -> None:
        if not (again and is_moved(item)):
            _stage("stage-out", item, stop)

    def _remove_all(self) -> None:
        for path in self.cleanup:
            try:
                _remove(path, self.directory)
            except OSError as e:
                raise StagingError("cleanup", f"cannot remove {path}: {e.strerror or e}", may_pass(e)) from e


def spoil(status: JobStatus, state: JobState, reason: str, message: str) -> None:
    """Let trouble with staging make the end of a job that was a good one a bad one; else it is only told."""
    if status.state is JobState.COMPLETED:
        status.state, status.message = state, message
        status.metadata = {**(status.metadata or {}), "reason": reason}
    else:
        status.message = f"{status.message}; {message}" if status.message else message


def is_moved(item: Item) -> bool:
    """Whether a file that was to be moved is not at its old place any more, but at the new one."""
    return (item.mode is StagingMode.MOVE and not os.path.lexists(item.source) and os.path.lexists(item.target))


def staging(spec: JobSpec, directory: str, base: str | None = None) -> Staging | None:
    """What is to be staged; None for a job that neither stages nor cleans up. Raises InvalidJobException.

    base: what relative paths on the client's side refer to, the current directory unless stated.
    """
    if not spec._has_staging():
        return None
    flags = spec.cleanup_flags
    return Staging(
        directory,
        tuple(Item(_of_uri("stage_in: source", item.source, base), _of_job("stage_in: target", item.target, directory),
                   _mode("stage_in", item.mode)) for item in spec.stage_in or ()),
        tuple(Item(_of_job("stage_out: source", item.source, directory),
                   _of_uri("stage_out: target", item.target, base), _mode("stage_out", item.mode), _flags(item.flags))
              for item in spec.stage_out or ()),
        tuple(_of_cleanup(path, directory) for path in spec.cleanup or ()),
        flags if flags & StageOutFlags.ALWAYS else flags | StageOutFlags.ALWAYS)


# -- checks -----------------------------------------------------------------------------------------------------------

def _mode(field: str, mode: object) -> StagingMode:
    if not isinstance(mode, StagingMode):
        raise InvalidJobTypeException(f"{field}: mode must be a StagingMode, not {mode!r}")
    return mode


def _flags(flags: object) -> StageOutFlags:
    if not isinstance(flags, StageOutFlags):
        raise InvalidJobTypeException(f"stage_out: flags must be StageOutFlags, not {flags!r}")
    return flags


def _of_uri(field: str, uri: object, base: str | None) -> str:
    """The path that a URI means on this machine."""
    if not isinstance(uri, URI):
        raise InvalidJobTypeException(f"{field} must be text, a Path or a URI, not {type(uri).__name__}")
    if uri.scheme not in ("", "file"):
        raise InvalidJobException(f"{field} {str(uri)!r}: the scheme {uri.scheme!r} is not supported (supported: "
                                  "'file', and plain paths)")
    if uri.netloc and uri.netloc.lower() != "localhost":
        raise InvalidJobException(f"{field} {str(uri)!r}: the host must be 'localhost' or left out, not {uri.netloc!r}")
    if uri.query or uri.fragment:
        raise InvalidJobException(f"{field} {str(uri)!r}: a query or a fragment has no meaning for a file (in a file "
                                  "URI, write %3F for ? and %23 for #; a Path may have any character)")
    path = uri.path + (f";{uri.params}" if uri.params else "")
    return _checked(field, unquote(path, errors="surrogateescape") if uri.scheme else path, base or os.getcwd())


def _of_job(field: str, path: object, directory: str) -> str:
    if not isinstance(path, os.PathLike):
        raise InvalidJobTypeException(f"{field} must be a Path, not {type(path).__name__}")
    return _checked(field, os.fspath(path), directory)


def _of_cleanup(path: object, directory: str) -> str:
    whole = _of_job("cleanup", path, directory)
    if not _inside(os.path.normpath(whole), os.path.normpath(directory)) and not _inside(
            os.path.realpath(whole), os.path.realpath(directory)):
        raise InvalidJobException(f"cleanup: {str(path)!r} is not inside the job's directory {directory}")
    return whole


def _checked(field: str, path: str, directory: str) -> str:
    """The path, under the directory if it is relative."""
    if path in ("", "."):
        raise InvalidJobException(f"{field} is empty")
    if "\0" in path:
        raise InvalidJobException(f"{field} contains a NUL character: {path!r}")
    try:
        os.fsencode(path)
    except UnicodeEncodeError as e:
        raise InvalidJobException(f"{field} cannot be encoded for the system: {path!r}", e) from e
    return os.path.join(directory, path)


def _inside(path: str, directory: str) -> bool:
    """Whether a path is below a directory: neither the directory itself nor one whose name begins alike."""
    return path != directory and path.startswith(directory.rstrip("/") + "/")


# -- the work ---------------------------------------------------------------------------------------------------------

def _stage(reason: str, item: Item, stop: _Stop) -> None:
    try:
        stage_one(item, stop)
    except (OSError, shutil.Error) as e:
        what = getattr(e, "strerror", None) or e
        raise StagingError(reason, f"cannot {item.mode.name.lower()} {item.source} to {item.target}: {what}",
                           may_pass(e)) from e


def may_pass(error: OSError | shutil.Error) -> bool:
    """Whether what went wrong may be gone at a later try; of a folder, for all of its files that went wrong."""
    if isinstance(error, shutil.Error):     # which has the errors of the files as text only
        numbers = [_NUMBERED.search(str(why)) for _, _, why in error.args[0]] if error.args else []
        return bool(numbers) and all(n is not None and int(n[1]) in PASSING for n in numbers)
    return error.errno in PASSING


def stage_one(item: Item, stop: _Stop) -> None:
    """Copy, link or move a file or folder on this machine. Raises OSError, shutil.Error, StagingStopped."""
    if not os.path.exists(item.source):
        if item.flags & StageOutFlags.IF_PRESENT:
            return
        raise OSError(errno.ENOENT, f"{item.source} does not exist")
    os.makedirs(os.path.dirname(item.target), exist_ok=True)
    folder = os.path.isdir(item.source)
    if not folder and os.path.isdir(item.target):
        raise OSError(errno.EISDIR, "the target is a folder")
    if os.path.exists(item.target) and not (os.path.isdir(item.target) or os.path.isfile(item.target)):
        raise OSError(errno.EINVAL, "the target is a device or a pipe")      # a rename would put a file in its place
    if os.path.lexists(item.target) and os.path.realpath(item.source) == os.path.realpath(item.target):
        return
    if folder and _inside(os.path.realpath(item.target), os.path.realpath(item.source)):
        raise OSError(errno.EINVAL, "the target is inside the source")
    if item.mode is StagingMode.LINK:
        _link(os.path.realpath(item.source), item.target)
    elif item.mode is StagingMode.COPY or not _renamed(item):
        _copy(item.source, item.target, stop)
        if item.mode is StagingMode.MOVE:
            delete(item.source)


def _renamed(item: Item) -> bool:
    """Move by renaming; False when that cannot be done: to another file system, or into an existing folder."""
    try:
        os.rename(item.source, item.target)
    except OSError as e:
        if e.errno in (errno.EXDEV, errno.ENOTEMPTY, errno.EEXIST):
            return False
        raise
    return True


def _link(source: str, target: str) -> None:
    with _fresh(target) as name:
        os.symlink(source, name)
        os.replace(name, target)


def _copy(source: str, target: str, stop: _Stop) -> None:
    """Copy a file or a folder; links inside a folder stay links."""
    def copy_file(source: str, target: str) -> None:
        """Copy one file; StagingStopped where the job is cancelled meanwhile."""
        _copy_file(source, target, stop)

    if os.path.isdir(source):
        shutil.copytree(source, target, symlinks=True, copy_function=copy_file, dirs_exist_ok=True)
    else:
        copy_file(source, target)


def _copy_file(source: str, target: str, stop: _Stop) -> None:
    with open(source, "rb", opener=open_file) as data, _fresh(target) as name:
        with open(name, "xb") as copy:
            while chunk := data.read(_CHUNK):
                if stop():
                    raise StagingStopped
                copy.write(chunk)
        shutil.copystat(source, name)
        os.replace(name, target)


def open_file(path: str, flags: int) -> int:
    """Open a regular file, without waiting for the other end of a pipe."""
    fd = os.open(path, flags | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, f"{path} is not a file")
    return fd


class _fresh:
    """A name beside the target that is not in use; what is left under it goes in the end."""

    def __init__(self, target: str) -> None:
        self._name = tempfile.mktemp(prefix=f"{PART}{getattr(_own, 'mark', '')}", dir=os.path.dirname(target))

    def __enter__(self) -> str:
        return self._name

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):         # it has got its name, or was never made
            os.unlink(self._name)


def _remove_parts(target: str, mark: str) -> None:
    """Remove what a process that was killed has not finished of a target: beside it, and within a folder."""
    prefix = f"{PART}{mark}"
    with suppress(OSError):             # there is no such folder yet
        for name in os.listdir(os.path.dirname(target)):
            if name.startswith(prefix):
                delete(os.path.join(os.path.dirname(target), name))
    for folder, _, names in os.walk(target):
        for name in names:
            if name.startswith(prefix):
                with suppress(OSError):     # it is only in the way of nobody
                    os.unlink(os.path.join(folder, name))


def delete(path: str) -> None:
    """Remove a file or a folder."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def _remove(path: str, directory: str) -> None:
    """Remove a file or folder inside a directory. Nothing there is no error."""
    parent, name = os.path.split(path.rstrip("/"))
    place = os.path.realpath(path) if name in ("", ".", "..") else os.path.join(os.path.realpath(parent), name)
    root = os.path.realpath(directory)
    if not _inside(place, root):
        raise OSError(errno.EPERM, f"{place} is not inside the job's directory {root}")
    *folders, name = os.path.relpath(place, root).split("/")
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for folder in folders:      # not by the whole path, which may be another's by now
            deeper = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
            os.close(fd)
            fd = deeper
        if stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
            shutil.rmtree(name, dir_fd=fd)
        else:
            os.unlink(name, dir_fd=fd)
    except FileNotFoundError:       # as it is wanted
        pass
    finally:
        os.close(fd)


# -- the threads ------------------------------------------------------------------------------------------------------

class _Workers:
    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.RLock()
        self._threads = 0
        self._idle = 0

    def put(self, call: Callable[[], None]) -> bool:
        """Queue the call; False if there can be no thread for it."""
        with self._lock:
            if self._threads < _THREADS and self._calls.qsize() >= self._idle:
                with suppress(RuntimeError):        # no more threads: those that there are do it, or False is returned
                    threading.Thread(target=self._run, name="psij-staging", daemon=True).start()
                    self._threads += 1
            if not self._threads:
                return False
        self._calls.put(call)
        return True

    def _run(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
            call = self._calls.get()
            with self._lock:
                self._idle -= 1
            call()


_workers: dict[int, _Workers] = {}      # by process id: threads do not survive a fork


def in_background(call: Callable[[], None]) -> None:
    """Have a staging thread call this, which is to raise nothing; call it here if there can be no thread."""
    pid = os.getpid()
    workers = _workers.get(pid) or _workers.setdefault(pid, _Workers())
    if not workers.put(call):
        call()


def later(pause_s: float, call: Callable[[], None]) -> None:
    """Have this called after so many seconds, unless the process has ended."""
    timer = threading.Timer(pause_s, in_background, (call,))
    timer.daemon = True
    timer.start()
