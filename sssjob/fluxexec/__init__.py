"""The Flux job execution protocol, version 1: an execution service, a job manager, and ways between them.

Importing the package imports none of them: each name is looked for when it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sssjob.fluxexec.check import StreamCheck, Violation
    from sssjob.fluxexec.errors import EXEC_LIMITS, ExecLimitError, ExecLimits, JobspecError, ProtocolError
    from sssjob.fluxexec.fsd import read_fsd, write_fsd
    from sssjob.fluxexec.jobid import read_id, write_id
    from sssjob.fluxexec.loop import Loop
    from sssjob.fluxexec.machine import JobMachine, Phase
    from sssjob.fluxexec.manager import Manager
    from sssjob.fluxexec.messages import Event, Message, Request, Response
    from sssjob.fluxexec.resources import ResourceSet, read_resources
    from sssjob.fluxexec.rules import StreamRules
    from sssjob.fluxexec.runner import PsijRunner
    from sssjob.fluxexec.service import Service, State
    from sssjob.fluxexec.simulator import SimulatedRunner
    from sssjob.fluxexec.transport import Lines, pair

__all__ = [
    "EXEC_LIMITS", "Event", "ExecLimitError", "ExecLimits", "JobMachine", "JobspecError", "Lines",
    "Loop", "Manager", "Message", "Phase", "ProtocolError", "PsijRunner", "Request", "ResourceSet", "Response",
    "Service", "SimulatedRunner", "State", "StreamCheck", "StreamRules", "Violation", "pair", "read_fsd", "read_id",
    "read_resources", "write_fsd", "write_id",
]

#: Module -> names.
_HOMES = {
    "check": ("StreamCheck", "Violation"),
    "errors": ("EXEC_LIMITS", "ExecLimitError", "ExecLimits", "JobspecError", "ProtocolError"),
    "fsd": ("read_fsd", "write_fsd"),
    "jobid": ("read_id", "write_id"),
    "loop": ("Loop",),
    "machine": ("JobMachine", "Phase"),
    "manager": ("Manager",),
    "messages": ("Event", "Message", "Request", "Response"),
    "resources": ("ResourceSet", "read_resources"),
    "rules": ("StreamRules",),
    "runner": ("PsijRunner",),
    "service": ("Service", "State"),
    "simulator": ("SimulatedRunner",),
    "transport": ("Lines", "pair"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    return found
