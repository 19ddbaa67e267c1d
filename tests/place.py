"""``python tests/place.py``: make a directory for the files of the tests, and print its path.

In memory, where there is room. Journals flush to the disk thousands of times; a disk that stalls for some seconds, as
that of a machine that is shared does, would fail tests that wait for less.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress

MEMORY = "/dev/shm"
ROOM = 4 << 30          # bytes: the tests use one


def roomy(folder: str) -> bool:
    """Whether files can be made and executed there, and there is room for all."""
    with suppress(OSError, ValueError, StopIteration):
        space = os.statvfs(folder)
        with open("/proc/meminfo", encoding="ascii") as lines:
            free = next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
        return (not space.f_flag & os.ST_NOEXEC and os.access(folder, os.W_OK)
                and space.f_bavail * space.f_frsize > ROOM and free > 2 * ROOM)
    return False


if __name__ == "__main__":
    print(tempfile.mkdtemp(prefix="t", dir=MEMORY if roomy(MEMORY) else None))
