"""Files that appear whole: a temporary name in the same directory, then a rename."""

from __future__ import annotations

import os
import tempfile

from sssjob.errors import AccessError
from sssjob.findings import escape


def put(directory: str, name: str, text: str, mode: int = 0o644, owner: tuple[int, int] | None = None) -> None:
    """Write a text and its newline; a link in its place is replaced, not followed. owner: (uid, gid) of the file."""
    with naming(directory):
        handle, temporary = tempfile.mkstemp(prefix=".", suffix=".new", dir=directory)
        try:
            with open(handle, "w", encoding="ascii") as file:
                file.write(text + "\n")
                os.fchmod(file.fileno(), mode)          # whatever the umask
                if owner is not None:
                    os.fchown(file.fileno(), *owner)
            os.replace(temporary, os.path.join(directory, name))
        except BaseException:
            os.unlink(temporary)
            raise


class naming:
    """Turns an OSError into an AccessError that names the path."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError) and not isinstance(error, AccessError):
            raise AccessError(escape(str(error.filename or self.path)), error.strerror or str(error)) from None
