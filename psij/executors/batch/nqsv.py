"""NEC Network Queuing System V: qsub, qstat, qdel.

No NQSV and no manual were at hand. What is known: the command lines and state words of psij-python's executor, which
NEC contributed; ``Request 996644.nqsv submitted to queue: gen_S.``, PBS_JOBID ``0:996644.nqsv`` and PBS_NODEFILE with a
line for each host, from public logs; options of public job scripts. Not known, and done without:

- a way to find a request by something of ours: when qsub gives no answer, only the job's own record of its start tells
  that there is one;
- what qstat says of a request that has ended, beside that it does not exist: the exit file has the code. One that was
  killed has none and becomes ``lost``, or CANCELED after our own qdel;
- times, hosts and usage;
- how quotes are read in directives: values that would need them are refused;
- whether the jobs of a request on several hosts all run the script: those with another number than 0 leave at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from psij.exceptions import InvalidJobException
from psij.executors.batch._changes import Changes
from psij.executors.batch._options import (
    custom_directives,
    job_name,
    limit_text,
    member_directives,
    requested,
    resources,
    share,
    time_limit,
)
from psij.executors.batch._terms import Orders
from psij.executors.batch.batch_scheduler_executor import (
    BatchSchedulerExecutorConfig,
    check_status_exit_code,
)
from psij.executors.batch.lrm import LrmExecutor, Row, standing, whole_lines
from psij.job import Job
from psij.job_spec import JobSpec
from psij.job_state import JobState
from psij.job_status import JobStatus
from psij.resource_spec import ResourceSpecV1
from sssjob.lrm.nqsv import ANSWERS, STATES
from sssjob.lrm.states import NativeState
from sssjob.templates.quoting import Directive, nqsv

__all__ = ["NQSVExecutorConfig", "NQSVJobExecutor"]


_BIN = Path("/opt/nec/nqsv/bin")
_ROW = re.compile(r"(\d{1,15})(?:\.\S*)?(?:\s+(\S+))?", re.ASCII)
_NOT_THERE = re.compile(r"does not exist", re.IGNORECASE)
_LONGEST_NAME = 63      # bytes, as in the NQS that it comes from (a guess)

_REFUSED = {
    **dict.fromkeys(("o", "j"), "use stdout_path and stderr_path"), "e": "use stderr_path",
    "t": "a PSI/J job is one job",
    "V": "use inherit_environment", "v": "use environment", "S": "the script is one of bash",
    "C": "the script has its own", "z": "it hides the job id", "I": "the job would not run in the background"}



class NQSVExecutorConfig(BatchSchedulerExecutorConfig):
    """Settings of the NQSV executor."""


class NQSVJobExecutor(LrmExecutor):
    """Executor ``nqsv``. Custom attributes ``nqsv.<option>`` are options of qsub, long or of one letter."""

    _ANSWERS = ANSWERS
    _ORDERS = Orders("qdel {}", _NOT_THERE, hold="qhold {}", release="qrls {}", rerun="qrerun {}", held={"h": True})
    #: As of any qalter(1P) and qmove(1P): it was not tried with NQSV.
    _CHANGES = Changes("qalter {changes} {id}", {option: f"-{option}" for option in ("A", "N", "l", "p")},
                       apart={"q": "qmove {value} {id}"}, each=frozenset("l"))
    _TEMPLATE = "nqsv.sh.j2"
    _PREFIX = "nqsv"
    _STATES, _STATE_KIND = STATES, "NQSV's request state"
    _CONFIG = NQSVExecutorConfig
    _WRITTEN = staticmethod(nqsv)
    _chunk = 200

    def _there(self, command: str, *arguments: str) -> list[str]:
        """In NEC's directory, where there is one, for others have commands of these names too."""
        there = self.host.is_here and self.host.exists(_BIN / command)
        return [str(_BIN / command) if there else command, *arguments]

    # --- submitting ------------------------------------------------------------------------------------------------

    def get_submit_command(self, job: Job, submit_file_path: Path) -> list[str]:
        """qsub."""
        return self._there("qsub", str(submit_file_path))

    def _directives(self, job: Job, spec: JobSpec) -> list[Directive]:
        name = job_name(spec, _LONGEST_NAME)
        if name.field == "executable":
            name = Directive("N", re.sub(r"[^A-Za-z0-9_]", "_", name.value or "")[:15], name.field)
        directives = [Directive("N", name.value, name.field), Directive("o", "/dev/null"), Directive("e", "/dev/null"),
                      Directive("S", "/bin/bash")]
        if spec.inherit_environment:
            directives.append(Directive("V"))
        directives += member_directives(spec, (("q", "queue_name"), ("A", "account"), ("y", "reservation_id")))
        if (limit := time_limit(spec)) is not None:
            directives.append(Directive("l", f"elapstim_req={limit_text(limit)}", "attributes.duration"))
        asked = requested(spec)
        if asked is not None:
            directives += _resource_directives(asked)
        custom = custom_directives(spec, self._PREFIX, _REFUSED)
        for directive in custom:
            for other in directives:
                if directive.option == other.option and not _differ(directive, other) and other.field != "executable":
                    raise InvalidJobException(f"{directive.field} and {other.field} say the same")
        named = any(directive.option == "N" for directive in custom)
        return [directive for directive in directives if not (named and directive.option == "N")] + custom

    def _template_context(self, job: Job, spec: JobSpec, context: Mapping[str, Any]) -> dict[str, Any]:
        asked = resources(spec)
        processes = asked.computed_processes_per_node if asked is not None else 1
        return {**super()._template_context(job, spec, context), "processes_per_node": processes}

    # --- states ----------------------------------------------------------------------------------------------------

    def get_status_command(self, native_ids: Iterable[str]) -> list[str]:
        """qstat for these requests: it says of each that it is not there, while nothing is said without ids."""
        return self._there("qstat", "-F", "rid,stt", "-n", "-l", *native_ids)

    def _rows(self, exit_code: int, out: str) -> Iterator[Row]:
        lines = whole_lines(out if exit_code == 0 else out + "\n")
        matches = [match for line in lines if (match := _ROW.fullmatch(line.strip())) and match[2]]
        if not matches and not _NOT_THERE.search(out):
            check_status_exit_code("qstat", exit_code, out)
            raise ValueError(f"qstat gave no requests: {out[:200]!r}")
        yield from ((match[1], match[2], None) for match in matches)

    def _told_status(self, native: NativeState, common: JobState, row: Any) -> JobStatus | None:
        return JobStatus(common, metadata={"native_state": native.word} | standing(native, common))

    # --- the rest --------------------------------------------------------------------------------------------------

    def get_list_command(self) -> list[str]:
        """qstat: ids of the requests that it shows the user."""
        return self._there("qstat", "-F", "rid", "-n", "-l")

    def parse_list_output(self, out: str) -> list[str]:
        """The number at the beginning of each line."""
        return [match[1] for line in whole_lines(out) if (match := _ROW.fullmatch(line.strip()))]


def _resource_directives(asked: ResourceSpecV1) -> list[Directive]:
    """For each logical host; their number follows from what is said."""
    nodes, here = asked.computed_node_count, asked.computed_processes_per_node
    directives = [Directive("b", str(nodes), "resources.node_count"),
                  Directive("cpunum-lhost", str(here * (asked.cpu_cores_per_process or 1)), "resources")]
    if asked.gpu_cores_per_process:
        directives.append(Directive("gpunum-lhost", str(here * asked.gpu_cores_per_process),
                                    "resources.gpu_cores_per_process"))
    if asked.memory is not None:
        megabytes = max(1, share(share(asked.memory, nodes), 1 << 20))
        directives.append(Directive("memsz-lhost", f"{megabytes}mb", "resources.memory"))
    if asked.exclusive_node_use:
        directives.append(Directive("exclusive", None, "resources.exclusive_node_use"))
    return directives


def _differ(first_one: Directive, other: Directive) -> bool:
    """Whether two -l ask for different resources."""
    first, second = ({part.partition("=")[0].strip() for part in (each.value or "").split(",")}
                     for each in (first_one, other))
    return first_one.option == "l" and not first & second
