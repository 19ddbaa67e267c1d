"""Starts the process that looks after the jobs of submissions on this machine when nobody else does: ``keeping``."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from sssjob.errors import AccessError
from sssjob.run.journal import Entry

__all__ = ["keep"]

_READY_S = 60.0         # patience with the start of the process
_ROOT = str(Path(__file__).resolve().parents[2])
_CODE = f"import sys; sys.path.append({_ROOT!r}); from sssjob.run.keeping import main; main()"


def keep(entries: Sequence[Entry]) -> None:
    """Start one for submissions that were made together, and wait until it has started what can be started."""
    read, write = os.pipe()
    log = -1
    entry, numbers = entries[0], [str(entry.number) for entry in entries]
    jobs = f"the jobs of {', '.join(f'@{number}' for number in numbers[:5])}{', ...' * (len(numbers) > 5)}"
    try:
        log = entry.open_file("keeper.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        subprocess.run([sys.executable, "-P", "-c", _CODE, str(entry.journal.path), str(write), *numbers],
                       stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=(write,), start_new_session=True,
                       check=True)
        os.close(write)
        write = -1
        if not select.select([read], [], [], _READY_S)[0] or os.read(read, 1) != b".":
            last_line = (entry.folder / "keeper.log").read_text(errors="replace").strip().rpartition("\n")[2]
            raise AccessError(str(entry.journal.path), f"{jobs} are not looked after: {last_line}")
    except (OSError, subprocess.SubprocessError) as error:
        if isinstance(error, AccessError):
            raise
        raise AccessError(sys.executable, f"cannot look after {jobs}: {error}") from error
    finally:
        for fd in (read, write, log):
            if fd >= 0:
                os.close(fd)
