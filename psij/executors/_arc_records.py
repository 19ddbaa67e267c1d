"""Which files of a job of ARC are still to be brought there and fetched, for whoever follows it: one file a job."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from psij.executors._arc_description import Described, Output

__all__ = ["Records"]


class Records:
    """The records in a folder, which its owner alone may read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _path(self, tag: str) -> Path:
        return self._folder / f"{quote(tag, safe='')}.json"

    def write(self, tag: str, files: Described) -> None:
        """Keep what is to be done for a job. Raises OSError."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._path(tag)
        fresh = path.with_suffix(".new")
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w",
                  encoding="utf-8", errors="surrogateescape") as file:
            json.dump({"inputs": files.inputs, "outputs": [[one.name, one.path, one.flags] for one in files.outputs]},
                      file)
        os.replace(fresh, path)

    def read(self, tag: str) -> Described | None:
        """What is to be done for a job; None where there is no record, or it is none."""
        try:
            with open(self._path(tag), encoding="utf-8") as file:
                members = json.load(file)
            return Described("", {str(name): str(path) for name, path in members["inputs"].items()},
                             [Output(str(name), str(path), int(flags)) for name, path, flags in members["outputs"]])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def forget(self, tag: str) -> None:
        """Nothing is to be done for a job any more."""
        with suppress(OSError):
            self._path(tag).unlink()
