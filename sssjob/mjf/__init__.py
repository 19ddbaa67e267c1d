"""Machine/Job Features: what a site tells a running job about its machine and its limits, and what a pilot tells back.

``Reader`` reads all three directories, ``provide`` makes them, ``PilotStatus`` writes the pilot's, ``Server`` publishes
them over HTTP. Texts: HSF-TN-2016-02 (the note) and HEPiX draft 0.99 of 2014 (the draft).

Importing the package imports none of it: each name is looked for when it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sssjob.mjf.features import Features, Note, Reading, TimeLeft
    from sssjob.mjf.job import record_usage, values_of
    from sssjob.mjf.keys import KEYS, VARIABLES, Key
    from sssjob.mjf.probe import check
    from sssjob.mjf.reader import Reader
    from sssjob.mjf.script import EPILOGUE, Variable, prologue
    from sssjob.mjf.serve import Server
    from sssjob.mjf.status import Busy, Candidate, Figures, PilotStatus, Usage, figures, least_critical
    from sssjob.mjf.values import MJFValueError, read_value, revised, write_value
    from sssjob.mjf.writer import Directories, provide, sweep

__all__ = [
    "EPILOGUE", "KEYS", "VARIABLES", "Busy", "Candidate", "Directories", "Features", "Figures", "Key", "MJFValueError",
    "Note", "PilotStatus", "Reader", "Reading", "Server", "TimeLeft", "Usage", "Variable", "check", "figures",
    "least_critical", "prologue", "provide", "read_value", "record_usage", "revised", "sweep", "values_of",
    "write_value",
]

#: Module -> names.
_HOMES = {
    "features": ("Features", "Note", "Reading", "TimeLeft"),
    "job": ("record_usage", "values_of"),
    "keys": ("KEYS", "VARIABLES", "Key"),
    "probe": ("check",),
    "reader": ("Reader",),
    "script": ("EPILOGUE", "Variable", "prologue"),
    "serve": ("Server",),
    "status": ("Busy", "Candidate", "Figures", "PilotStatus", "Usage", "figures", "least_critical"),
    "values": ("MJFValueError", "read_value", "revised", "write_value"),
    "writer": ("Directories", "provide", "sweep"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    exported = globals()[name] = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    return exported
