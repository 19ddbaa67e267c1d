"""The Flux job execution protocol, version 1: an execution service, a job manager, and ways between them.

Importing the package imports none of them: each name is looked for when it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sssjob.fluxexec.check import StreamCheck, Violation
    from sssjob.fluxexec.loop import Loop
    from sssjob.fluxexec.machine import JobMachine, Phase
    from sssjob.fluxexec.manager import Manager
    from sssjob.fluxexec.messages import Event, Message, Request, Response
    from sssjob.fluxexec.rules import StreamRules
    from sssjob.fluxexec.runner import PsijRunner
    from sssjob.fluxexec.service import Service, State
    from sssjob.fluxexec.simulator import SimulatedRunner
    from sssjob.fluxexec.transport import Lines, pair

__all__ = [
    "Event", "JobMachine", "Lines", "Loop", "Manager", "Message", "Phase", "PsijRunner", "Request", "Response",
    "Service", "SimulatedRunner", "State", "StreamCheck", "StreamRules", "Violation", "pair",
]

#: Module -> names.
_HOMES = {
    "check": ("StreamCheck", "Violation"),
    "loop": ("Loop",),
    "machine": ("JobMachine", "Phase"),
    "manager": ("Manager",),
    "messages": ("Event", "Message", "Request", "Response"),
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
    member = globals()[name] = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    return member
