"""Looking at work directories for the records that submit scripts write at start and end.

This is what makes starts and ends known at once, whatever the pause between two questions to the resource manager. It
costs one stat(2) a directory and look while nothing changes, and one listing when something did; looking takes at most
a twentieth of the time. With a network file system a record is seen when its cache of directories lets it be seen.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from psij.executors.batch._host import Host

if TYPE_CHECKING:
    from psij.executors.batch._followed import Followed

LOOK_S = 0.5        # between two looks
_SHARE = 20         # and at least this many times as long as a look took
_COARSE_S = 1.5     # how long a directory may change without another time of change: some clocks are coarse
_SUFFIXES = (".start", ".ec")


class _Folder:
    __slots__ = ("again", "changed", "fresh", "host", "path", "wanted")

    def __init__(self, path: str, host: Host) -> None:
        self.path, self.host = Path(path), host         # where it is
        self.wanted: dict[str, list[Followed]] = {}     # those that wait for a record of this name
        self.changed = 0            # when it changed last, nanoseconds since the epoch by its own clock
        self.again = 0.0            # monotonic time until which it is listed again all the same
        self.fresh = False          # somebody wants a record that may be there already


class Lookout:
    """The records that jobs wait for. Everything but ``listings`` is called with the watcher's lock held."""

    def __init__(self) -> None:
        self._folders: dict[str, _Folder] = {}
        self._due = 0.0             # monotonic time of the next look

    def want(self, item: Followed) -> None:
        """Look for the records of a job."""
        folder = self._folders.get(item.directory)
        if folder is None:
            folder = self._folders[item.directory] = _Folder(item.directory, item.executor.host)
        item.records = _names(item)
        for name in item.records:
            folder.wanted.setdefault(name, []).append(item)
        folder.fresh = True

    def drop(self, item: Followed) -> None:
        """Look for them no more."""
        folder = self._folders.get(item.directory)
        for name in item.records if folder is not None else ():
            self._remove(folder, name, item)
        if folder is not None and not folder.wanted:
            del self._folders[item.directory]

    def clear(self) -> None:
        """Look for nothing."""
        self._folders.clear()

    def listings(self) -> Iterator[tuple[str, list[str]]]:
        """Directories in which something may have changed, and the names in them."""
        began = time.monotonic()
        if began < self._due:
            return
        for directory, folder in list(self._folders.items()):
            fresh, folder.fresh = folder.fresh, False
            try:
                changed = folder.host.changed(folder.path)
                if changed != folder.changed:
                    folder.changed, folder.again = changed, began + _COARSE_S
                elif not fresh and began >= folder.again:
                    continue
                yield directory, folder.host.names(folder.path)
            except OSError:         # not there, or no descriptors left: at the next look, whether it changes or not
                folder.fresh = True
        ended = time.monotonic()
        self._due = ended + max(LOOK_S, _SHARE * (ended - began))

    def found(self, directory: str, names: list[str]) -> list[tuple[Followed, str]]:
        """Jobs whose records are among the names, each with the name; they wait for these no more."""
        folder = self._folders.get(directory)
        if folder is None:
            return []
        return [(item, name) for name in sorted(folder.wanted.keys() & names)
                for item in folder.wanted.pop(name)]

    @staticmethod
    def _remove(folder: _Folder | None, name: str, item: Followed) -> None:
        items = folder.wanted.get(name) if folder is not None else None
        if folder is not None and items is not None and item in items:
            items.remove(item)
            if not items:
                del folder.wanted[name]


def _names(item: Followed) -> tuple[str, ...]:
    """As the executor names them; by templates of third parties, which do not know the native id, by our own."""
    return (*(item.executor._aux_path(item.native_id, suffix, item.tag).name for suffix in _SUFFIXES),
            f"{item.job.id}.start")
