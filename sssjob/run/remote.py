"""Commands on a host behind SSH, by the system's own ``ssh``: one connection a site, which later commands share.

``ssh`` is told to ask for nothing: who has to type a second factor does so once, by ``sssjob sites connect``. What
logins print before a command (banners, messages of the day, profiles that talk) is told apart from its answer by a line
that nobody can know before. Sources: ssh(1), ssh_config(5) (ControlMaster, ControlPath, ControlPersist, BatchMode).
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path
from secrets import token_hex
from typing import Final

__all__ = ["connecting", "mark", "over_ssh", "read_answer"]

#: Seconds that a connection stays when nobody uses it.
_PERSIST_S: Final = 600
#: Bytes of the path of a Unix socket that a name of ssh's own and the end of its folder leave.
_LONGEST: Final = 40
#: Exit status of ssh itself: no connection, or a lost one.
_OF_SSH: Final = 255


def mark() -> str:
    """A line that stands before the answer of a command."""
    return f"sssjob {token_hex(16)}"


def over_ssh(host: str, command: Sequence[str], line: str, seconds: float) -> list[str]:
    """A command on a host, as the words of one here. line: of ``mark``; seconds: the longest to wait for a connection.

    It is run by sh whatever the login shell is, in the locale C, and writes the line before it begins.
    """
    script = f"printf '%s\\n' {shlex.quote(line)}; LC_ALL=C exec {shlex.join(command)}"
    return ["ssh", "-T", "-o", "BatchMode=yes", *_shared(), "-o", f"ConnectTimeout={max(int(seconds), 1)}", "--", host,
            f"exec /bin/sh -c {shlex.quote(script)}"]


def connecting(host: str) -> list[str]:
    """The words of a command that logs in and leaves a connection behind for others; it may ask on the terminal."""
    return ["ssh", "-f", "-N", *_shared(), "--", host]


def _shared() -> list[str]:
    return ["-o", "ControlMaster=auto", "-o", f"ControlPath={_folder()}/%C", "-o", f"ControlPersist={_PERSIST_S}"]


def _folder() -> Path:
    """Where connections are: a folder that only its owner enters, with a short path."""
    folder = Path(os.environ.get("XDG_RUNTIME_DIR", ""), "sssjob")
    if "XDG_RUNTIME_DIR" not in os.environ or len(os.fsencode(folder)) > _LONGEST:
        folder = Path(tempfile.gettempdir(), f"sssjob-{os.geteuid()}")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat(follow_symlinks=False)
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise OSError(0, "others could use the connections in it", str(folder))
    return folder


def read_answer(exit_code: int, stdout: str, stderr: str, line: str) -> tuple[str | None, str]:
    """The answer of a command, or why there is none: ssh did not reach the host, or the command failed there."""
    _, marked, answer = stdout.partition(f"{line}\n")
    errors = "; ".join(filter(None, map(str.strip, stderr.splitlines()[-3:])))
    if not marked:
        return None, errors or f"ssh ended with {exit_code} before the command began"
    if exit_code == _OF_SSH:
        return None, f"the connection was lost: {errors}" if errors else "the connection was lost"
    if exit_code:
        return None, errors or answer.strip() or f"the command ended with {exit_code}"
    return answer, ""
