"""pyarrow (extra ``tables``) under the names by which its users call it.

It is imported when something of it is used for the first time: many commands load modules that could use it and do not,
and it may not be installed (``table.has_arrow`` says whether it is).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["pa", "pc"]


class _Later:
    """A module of pyarrow that is imported when one of its attributes is asked for; each is then kept."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(import_module(self._name), attribute)
        setattr(self, attribute, value)
        return value


if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
else:
    pa, pc = _Later("pyarrow"), _Later("pyarrow.compute")
