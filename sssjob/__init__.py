"""sssjob: a job is one document, the SSS job object, from request to charge.

The front door in Python, imported when it is used; docs/python.md shows it::

    import sssjob

    job = sssjob.Job(id="1", executable="/bin/true", requested={"processors": 8, "memory": "2 GB"})
    print(sssjob.write(job, format="slurm"))
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from sssjob.version import __version__

if TYPE_CHECKING:
    from sssjob.document._sentences import Condition, eq, ge, gt, le, lt, matching, ne
    from sssjob.document.element import Property
    from sssjob.document.model import (
        Delivered,
        Document,
        Environment,
        File,
        Job,
        JobDefaults,
        JobGroup,
        Requested,
        Task,
        TaskDefaults,
        TaskGroup,
        TaskGroupDefaults,
    )
    from sssjob.errors import PropertyError, RejectedError, SSSJobError, UsageError
    from sssjob.findings import Finding, Findings, Policy
    from sssjob.front import (
        check,
        convert,
        effective,
        explain,
        match,
        query,
        quote,
        read,
        run,
        submit,
        write,
    )

__all__ = [
    "Condition", "Delivered", "Document", "Environment", "File", "Finding", "Findings", "Job", "JobDefaults",
    "JobGroup", "Policy", "Property", "PropertyError", "RejectedError", "Requested", "SSSJobError", "Task",
    "TaskDefaults", "TaskGroup", "TaskGroupDefaults", "UsageError", "__version__", "check", "convert", "effective",
    "eq", "explain", "ge", "gt", "le", "lt", "match", "matching", "ne", "query", "quote", "read", "run", "submit",
    "write",
]

#: Name -> the module that has it.
_PLACES: Final[dict[str, str]] = {
    **dict.fromkeys(("Condition", "eq", "ge", "gt", "le", "lt", "matching", "ne"), "sssjob.document._sentences"),
    "Property": "sssjob.document.element",
    **dict.fromkeys(("PropertyError", "RejectedError", "SSSJobError", "UsageError"), "sssjob.errors"),
    **dict.fromkeys(("Finding", "Findings", "Policy"), "sssjob.findings"),
    **dict.fromkeys(("check", "convert", "effective", "explain", "match", "query", "quote", "read", "run", "submit",
                     "write"), "sssjob.front"),
    **dict.fromkeys(("Delivered", "Document", "Environment", "File", "Job", "JobDefaults", "JobGroup", "Requested",
                     "Task", "TaskDefaults", "TaskGroup", "TaskGroupDefaults"), "sssjob.document.model"),
}


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(place), name)


class _Room(ModuleType):
    """A room whose name is that of a function of the front door (``run``, ``query``): it is called as that one."""

    def __call__(self, *args: Any, **named: Any) -> Any:
        return __getattr__(self.__name__.rpartition(".")[2])(*args, **named)


class _Package(ModuleType):
    """This package: importing a room puts its module under the name, be it that of a function."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in _PLACES and isinstance(value, ModuleType):
            value.__class__ = _Room
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
