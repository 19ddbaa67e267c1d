"""Keys, passwords and tokens: they are read from files that nobody else can read, and never from a command line."""

from __future__ import annotations

import os
import stat
from typing import Final

from sssjob.errors import AccessError, UsageError
from sssjob.findings import escape

_MOST: Final = 4096     # octets


def read_secret(name: str, most: int = _MOST) -> bytes:
    """The secret in a file, without the line end behind it. most: octets.

    Raises AccessError, and UsageError for a file that others may read, that is no file, is empty or too long.
    """
    try:
        with open(os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise UsageError(f"{escape(name)} is no file")
            if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise UsageError(f"{escape(name)} can be used by others (mode {status.st_mode & 0o777:o}): a secret "
                                 "needs mode 600")
            octets = file.read(most + 1)
    except OSError as error:
        raise AccessError(name, error.strerror or str(error)) from None
    secret = octets.removesuffix(b"\n").removesuffix(b"\r")
    if not secret or len(octets) > most:
        raise UsageError(f"{escape(name)} holds {'no secret' if not secret else f'more than {most} octets'}")
    return secret
