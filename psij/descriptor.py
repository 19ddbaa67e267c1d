"""How a plugin makes itself known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.version import Version

__all__ = ["Descriptor"]


class Descriptor:
    """One executor or launcher, described in a module of a ``psij-descriptors`` folder on ``sys.path``.

    name: what users ask for. version: a packaging Version. cls: dotted path of the class, to be found under the same
    ``sys.path`` element as the descriptor. aliases: further names. nice_name: for people, the name by default.
    path: the file of the descriptor, filled in by the loader.
    """

    def __init__(self, name: str, version: Version, cls: str, aliases: list[str] | None = None,
                 nice_name: str | None = None) -> None:
        self.name = name
        self.version = version
        self.cls = cls
        self.aliases = aliases
        self.nice_name = name if nice_name is None else nice_name
        self.path: Path | None = None

    def __repr__(self) -> str:
        return f"Descriptor({self.name!r}, {str(self.version)!r}, {self.cls!r})"
