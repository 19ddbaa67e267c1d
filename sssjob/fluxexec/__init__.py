"""The Flux job execution protocol, version 1: an execution service, a job manager, and ways between them."""

from sssjob.fluxexec.check import StreamCheck, Violation
from sssjob.fluxexec.errors import EXEC_LIMITS, ExecLimitError, ExecLimits, JobspecError, ProtocolError
from sssjob.fluxexec.fsd import read_fsd, write_fsd
from sssjob.fluxexec.hostlist import Hostlist
from sssjob.fluxexec.idset import Idset
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
    "EXEC_LIMITS", "Event", "ExecLimitError", "ExecLimits", "Hostlist", "Idset", "JobMachine", "JobspecError", "Lines",
    "Loop", "Manager", "Message", "Phase", "ProtocolError", "PsijRunner", "Request", "ResourceSet", "Response",
    "Service", "SimulatedRunner", "State", "StreamCheck", "StreamRules", "Violation", "pair", "read_fsd", "read_id",
    "read_resources", "write_fsd", "write_id",
]
