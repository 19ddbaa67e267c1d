"""``sssjob.run`` and ``sssjob.query`` are rooms and functions of the front door in one: importing such a room puts a
module under the name, which is why these modules can be called."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Room(ModuleType):
    """A module that is called as the function of its name in ``sssjob.front``."""

    def __call__(self, *args: Any, **named: Any) -> Any:
        from sssjob import front

        return getattr(front, self.__name__.rpartition(".")[2])(*args, **named)


def make_callable(name: str) -> None:
    """Make the module of that name callable."""
    sys.modules[name].__class__ = _Room
