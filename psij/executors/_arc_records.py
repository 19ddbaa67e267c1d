"""Which files of a job of ARC are still to be brought there and fetched, for whoever follows it: one file a job."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from psij.executors._arc_description import SCRIPT, Described, Output

__all__ = ["Records"]


class Records:
    """The records in a folder, which its owner alone may read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _path(self, tag: str) -> Path:
        return self._folder / f"{quote(tag, safe='')}.json"

    def write(self, tag: str, files: Described) -> None:
        """Keep what is to be done for a job; its script becomes one of its inputs. Raises OSError."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._path(tag)
        if files.script is not None:
            script = path.with_suffix(".sh")
            self._put(script, files.script)
            files.inputs[SCRIPT] = str(script)
        self._put(path, json.dumps({"inputs": files.inputs,
                                    "outputs": [[output.name, output.path, output.flags] for output in files.outputs]}))

    @staticmethod
    def _put(path: Path, text: str) -> None:
        fresh = path.with_name(f"{path.name}.new")
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w", encoding="utf-8",
                  errors="surrogateescape") as file:
            file.write(text)
        os.replace(fresh, path)

    def read(self, tag: str) -> Described | None:
        """What is to be done for a job; None where there is no record, or it is none."""
        try:
            with open(self._path(tag), encoding="utf-8") as file:
                members = json.load(file)
            return Described("", None, {str(name): str(path) for name, path in members["inputs"].items()},
                             [Output(str(name), str(path), int(flags)) for name, path, flags in members["outputs"]])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def forget(self, tag: str) -> None:
        """Nothing is to be done for a job any more."""
        for path in (self._path(tag), self._path(tag).with_suffix(".sh")):
            with suppress(OSError):
                path.unlink()
