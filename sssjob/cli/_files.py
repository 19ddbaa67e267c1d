"""Bytes in and out of commands: ``-`` is standard input and output; written files appear whole or not at all."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from pathlib import Path
from typing import IO, Final

from sssjob.errors import AccessError
from sssjob.findings import Findings, escape
from sssjob.limits import LIMITS, Limits

__all__ = ["emit", "file_name", "read_bytes", "write_file"]

#: Never replaced by a rename: what stands there is a device or a view of a process.
_SPECIAL: Final = ("/dev/", "/proc/", "/sys/")


def read_bytes(name: str, limits: Limits = LIMITS) -> bytes:
    """The whole of a file, a pipe or (``-``) standard input.

    Raises AccessError (a directory, not there, not readable) and RejectedError (SSS110) when it is too large.
    """
    if name == "-":
        return _bounded(sys.stdin.buffer, name, limits)
    try:
        with open(name, "rb") as file:
            return _bounded(file, name, limits)
    except ValueError as error:         # a NUL in the name
        raise AccessError(escape(name), str(error)) from None
    except OSError as error:
        raise AccessError(escape(name), error.strerror or str(error)) from None


def _bounded(file: IO[bytes], name: str, limits: Limits) -> bytes:
    data = file.read(limits.document_bytes + 1)
    if len(data) > limits.document_bytes:
        findings = Findings(name, limits)
        findings.add("SSS110", "document_bytes", f"larger than document_bytes = {limits.document_bytes} bytes")
        findings.raise_if_rejected()
    return data


def emit(text: str, output: str = "-") -> None:
    """Write a result: UTF-8 to standard output (escaped for a terminal) or to a file."""
    if output != "-":
        write_file(output, text.encode("utf-8"))
        return
    if sys.stdout.isatty():
        text = "".join(c if c.isprintable() or c in "\n\t" else f"\\u{{{ord(c):04X}}}" for c in text)
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
    sys.stdout.buffer.flush()


def write_file(name: str, data: bytes) -> None:
    """Put data under that name, mode 0600, through a temporary file beside it; a link there is replaced, not followed.

    Devices and pipes are written to as they are.
    """
    path = Path(os.path.abspath(name))
    try:
        if str(path).startswith(_SPECIAL) or (path.exists() and not stat.S_ISREG(path.stat().st_mode)):
            with open(path, "wb") as file:
                file.write(data)
            return
        handle, temporary = tempfile.mkstemp(prefix=".sssjob-", dir=path.parent)
        try:
            with open(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except ValueError as error:
        raise AccessError(escape(name), str(error)) from None
    except OSError as error:
        raise AccessError(escape(name), error.strerror or str(error)) from None


def file_name(name: str, taken: set[str], suffix: str) -> str:
    """A file name made of an identifier: nothing in it leads out of its directory; unique among taken."""
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "._@+=,-[]") else "_" for c in name[:150]) or "job"
    if safe.startswith((".", "-")):
        safe = "_" + safe[1:]
    made, count = safe + suffix, 1
    while made in taken:
        count += 1
        made = f"{safe}-{count}{suffix}"
    taken.add(made)
    return made
