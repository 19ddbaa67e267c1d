"""Whether the package ``psij`` is the one that was installed with sssjob: psij-python has one of the same name.

Whichever of the two distributions is installed last overwrites the other's files, and removing either removes them.
``python -m sssjob.packages`` says what is wrong, with exit status 3.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path

from sssjob.errors import SSSJobError

__all__ = ["ForeignPackageError", "check_psij", "psij_trouble"]

_MARK = 'DISTRIBUTION = "sssjob"'
_WHAT_TO_DO = "run pip uninstall psij-python, then pip install --force-reinstall --no-deps sssjob"


class ForeignPackageError(SSSJobError, ImportError):
    """The package psij is not the one that was installed with sssjob."""


def psij_trouble(path: list[str] | None = None) -> str:
    """What is wrong with the package psij, and what to do, in one sentence; empty where it is ours.

    path: where packages are looked for, ``sys.path`` unless stated.
    """
    package = find_spec("psij") if path is None else PathFinder.find_spec("psij", path)
    if package is None or package.origin is None:
        return f"the files of the package psij are gone, perhaps with psij-python: {_WHAT_TO_DO}"
    try:
        version = (Path(package.origin).parent / "version.py").read_text(encoding="utf-8")
    except OSError:
        version = ""
    if _MARK in version:
        return ""
    return f"the package psij in {Path(package.origin).parent} is that of psij-python and not sssjob's: {_WHAT_TO_DO}"


def check_psij() -> None:
    """Raise ForeignPackageError where the package psij is not ours."""
    if trouble := psij_trouble():
        raise ForeignPackageError(trouble)


if __name__ == "__main__":
    if trouble := psij_trouble():
        print(trouble, file=sys.stderr)
        sys.exit(3)
