"""The Flux job execution protocol, version 1: an execution service, a job manager, and ways between them."""

from sssjob.fluxexec.errors import EXEC_LIMITS, ExecLimitError, ExecLimits, JobspecError, ProtocolError
from sssjob.fluxexec.idset import Idset
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
    "EXEC_LIMITS", "Event", "ExecLimitError", "ExecLimits", "Idset", "JobMachine", "JobspecError", "Lines", "Loop",
    "Manager", "Message", "Phase", "ProtocolError", "PsijRunner", "Request", "Response", "Service", "SimulatedRunner",
    "State", "StreamRules", "pair",
]
