"""Cobalt: qsub, qstat, qdel.

Jobs of the user are listed by ``qstat -l``; ended ones leave it at once, and what is left of them is the exit file and
the line of the ``.cobaltlog`` that says how they ended. Nothing of this was run: commands and texts are those of
Cobalt's source (src/clients/POSIX, src/components/cqm.py), which is in Python 2.

Cobalt gives whole nodes, and that is all that can be requested: no memory, GPUs or cores (``cores_per_node`` in the
configuration has the number of cores checked), and no reservation but as a queue. There is no option that hands on
the environment of qsub: with inherit_environment it is written into the submit script. A ``Location`` may be a list of
nodes or the name of a block, so that ``nodes`` is not in the metadata. Usage is told nowhere. How an end by a signal
looks in the ``.cobaltlog`` is not to be found; a negative code is taken for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from psij.exceptions import InvalidJobException
from psij.executors.batch._answers import by_tag, readable, standing, whole_lines
from psij.executors.batch._changes import Changes
from psij.executors.batch._cluster import Cluster, first
from psij.executors.batch._host import Host
from psij.executors.batch._identity import Claim, Whose
from psij.executors.batch._options import (
    custom_directives,
    in_reservation,
    job_name,
    member_directives,
    requested,
    resources,
    time_limit,
)
from psij.executors.batch._terms import Orders
from psij.executors.batch._words import needs_env
from psij.executors.batch.batch_scheduler_executor import (
    BatchSchedulerExecutorConfig,
    Source,
    check_status_exit_code,
)
from psij.executors.batch.lrm import LrmExecutor, Row
from psij.job import Job
from psij.job_executor_config import JobExecutorConfig
from psij.job_spec import JobSpec
from psij.job_state import JobState
from psij.job_status import JobStatus
from psij.resource_spec import ResourceSpecV1
from psij.surroundings import Told
from sssjob.lrm.cobalt import ANSWERS, STATES, moment, recorded
from sssjob.lrm.names import JOB_NAMES
from sssjob.lrm.states import NativeState
from sssjob.lrm.usage import present
from sssjob.templates.quoting import Directive, cobalt

__all__ = ["CobaltExecutorConfig", "CobaltJobExecutor", "parse_log"]


_FIELD = re.compile(r"\s*(\w+)\s*: ?(.*)")
_COLUMNS = "JobID:State:Queue:Nodes:Procs:StartTime:SubmitTime:Envs"
_LONGEST_NAME = 1024        # bytes; a guess: the source names no limit
_LOGS_AT_ONCE = 200

_LOG_LINE = re.compile(r".*?/(\d+)\.([\w-]+)\.cobaltlog:"
                       r"(\w{3} \w{3} [ \d]\d [\d:]{8} \d{4}) ([+-]\d{4})(?: \(.*?\))? (.*)")
_COMPLETED = re.compile(r"Info: task completed normally with an exit code of (-?\d+|None);")
_TIME_LIMIT = re.compile(r"Info: maximum execution time exceeded")
_DELETED = re.compile(r"Info: (?:pending )?user delete")
_LOOKED_FOR = "submitted with cwd|task completed normally|maximum execution time|user delete"

_REFUSED = {
    **dict.fromkeys(("output", "o", "outputprefix", "O"), "use stdout_path"),
    **dict.fromkeys(("error", "e"), "use stderr_path"), **dict.fromkeys(("inputfile", "i"), "use stdin_path"),
    "cwd": "use directory", "env": "use environment", "debuglog": "it is where the end of the job is read",
    "mode": "there is a script", **dict.fromkeys(("interactive", "I"), "there is a script"),
    **dict.fromkeys(("help", "version"), "no job would be made")}


class CobaltExecutorConfig(BatchSchedulerExecutorConfig):
    """Settings of the Cobalt executor. cores_per_node: of each node; more for its processes is then refused."""

    def __init__(self, *arguments: Any, cores_per_node: int | None = None, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.cores_per_node = cores_per_node


class CobaltJobExecutor(LrmExecutor):
    """Executor ``cobalt``. Custom attributes ``cobalt.<option>`` are options of qsub, long or of one letter."""

    _ANSWERS = ANSWERS
    _ORDERS = Orders("qdel {}", re.compile("not found"), hold="qhold {}", release="qrls {}", held={"held": True})
    #: As the manual page of its qalter has it; it was not tried.
    _CHANGES = Changes("qalter {changes} {id}", {
        **dict.fromkeys(("time", "t"), "-t"), **dict.fromkeys(("nodecount", "n"), "-n"),
        **dict.fromkeys(("project", "A"), "-A")}, apart=dict.fromkeys(("queue", "q"), "qmove {value} {id}"))
    _TEMPLATE = "cobalt.sh.j2"
    _PREFIX = "cobalt"
    _CONFIG = CobaltExecutorConfig
    _CHOOSING = ("COBALT_CONFIG_FILES",)
    _WRITTEN = staticmethod(cobalt)
    SCRIPT_FORMAT = "cobalt"
    _STATES, _STATE_KIND = STATES, "Cobalt's job state"
    _SCRIPT_MODE = 0o700        # qsub wants to see an executable
    _FILES = (".cobaltlog",)
    _TOLD = Told("", {
        "native_id": ("$COBALT_JOBID", 1), "start_time": ("${COBALT_STARTTIME:-}", 1),
        "wall_seconds": ("$((${COBALT_ENDTIME:-0} - ${COBALT_STARTTIME:-0}))", 1)})

    def __init__(self, url: str | None = None, config: JobExecutorConfig | None = None) -> None:
        super().__init__(url, config)
        self._cores = config.cores_per_node if isinstance(config, CobaltExecutorConfig) else None

    # --- submitting ------------------------------------------------------------------------------------------------

    def get_submit_command(self, job: Job, submit_file_path: Path) -> list[str]:
        """qsub; all options are in the script."""
        return ["qsub", str(submit_file_path)]

    def _lookup_commands(self, tags: Sequence[str]) -> list[list[str]]:
        """The tag is a variable of the job, as long as the queue has it; later it is in the exit file."""
        return [self._qstat("JobID:Envs")]

    def _parse_lookup(self, out: str) -> dict[str, list[str]]:
        return by_tag(((word.removeprefix("SSSJOB_ID="), block["JobID"]) for block in _blocks(out)
                       for word in block.get("Envs", "").split() if word.startswith("SSSJOB_ID=")), int)

    def dependency_attributes(self, after: Mapping[str, Sequence[str]]) -> dict[str, object] | None:
        """``--dependencies``, which waits for success and knows nothing else."""
        return {"cobalt.dependencies": ":".join(after["ok"])} if after.keys() == {"ok"} else None

    def fit_name(self, name: str) -> str:
        """Without blanks, at which a directive ends."""
        return JOB_NAMES["cobalt"].fitted(name)

    def _directives(self, job: Job, spec: JobSpec) -> list[Directive]:
        name, folder = job_name(spec, _LONGEST_NAME), str(self.work_directory)
        directives = [Directive("jobname", name.value, name.field), Directive("env", f"SSSJOB_ID={job.id}"),
                      Directive("cwd", folder, "work_directory"),
                      *(Directive(option, f"{folder}/$jobid.{job.id}.{ending}", "work_directory")
                        for option, ending in (("output", "out"), ("error", "out"), ("debuglog", "cobaltlog")))]
        duration = time_limit(spec)
        directives += member_directives(spec, (("queue", "queue_name"), ("project", "account")))
        if spec.attributes is not None and spec.attributes.reservation_id is not None:
            directives = in_reservation(directives, Directive("queue", spec.attributes.reservation_id,
                                                              "attributes.reservation_id"))
        custom = custom_directives(spec, self._PREFIX, _REFUSED)
        if not any(directive.option in ("time", "t") for directive in custom):      # qsub wants one
            directives.append(Directive("time", "0" if duration is None else _minutes(duration), "attributes.duration"))
        asked = requested(spec)
        if asked is not None or not any(directive.option in ("nodecount", "n")
                                        for directive in custom):   # qsub wants one of these
            _check_resources(asked or ResourceSpecV1(), self._cores)
            directives.append(Directive("nodecount", str((asked or ResourceSpecV1()).computed_node_count),
                                        "resources.node_count"))
        return directives + custom

    def _template_context(self, job: Job, spec: JobSpec, context: Mapping[str, Any]) -> dict[str, Any]:
        asked = resources(spec) or ResourceSpecV1()
        return {**super()._template_context(job, spec, context),
                "processes_per_node": asked.computed_processes_per_node,
                "inherited": _inherited(self.host) if spec.inherit_environment else []}

    # --- states ----------------------------------------------------------------------------------------------------

    def _qstat(self, columns: str) -> list[str]:
        return ["qstat", "-u", self._current_user(), "-l", f"--header={columns}"]

    def _cluster(self, out: str) -> Cluster | None:
        """Where the service is, by the configuration of the commands."""
        for path in (self.host.environ.get("COBALT_CONFIG_FILES") or "/etc/cobalt.conf").split(":"):
            try:
                place = first(r"^\s*service-location\s*[=:]\s*(\S+)", self.host.text(Path(path)))
            except OSError:
                continue
            if place:
                return Cluster("cobalt", place)
        return None

    def get_status_command(self, native_ids: Iterable[str]) -> list[str]:
        """qstat for all jobs of the user."""
        return self._qstat(_COLUMNS)

    def _rows(self, exit_code: int, out: str) -> Iterator[Row]:
        check_status_exit_code("qstat", exit_code, out)
        for block in _blocks(out):
            if "State" in block:
                yield block["JobID"], block["State"], block

    def _claim(self, row: Any) -> Claim:
        """By the variables of the job; qstat is asked for jobs of the user only."""
        variables = row.get("Envs")
        tags = None if variables is None else frozenset(word.partition("=")[2] for word in variables.split()
                                                        if word.startswith("SSSJOB_ID="))
        return Claim(tags, submit_time=moment(row.get("SubmitTime", "")))

    def _told_status(self, native: NativeState, common: JobState, row: Any) -> JobStatus | None:
        job = recorded(row)
        metadata = job.facts(began=True, over=False) | standing(native, common)
        return JobStatus(common, time=metadata.get("start_time") or job.submit_time, metadata=metadata)

    def _sources(self, native_ids: list[str]) -> list[Source]:
        """The logs of the jobs; grep also fails where one of them is missing."""
        names = sorted(name for name in self.host.names(self.work_directory) if name.endswith(".cobaltlog"))
        paths = [str(self.work_directory / name) for number in native_ids for name in names
                 if name.startswith(f"{number}.")]
        commands = [["grep", "-E", "-H", "-s", "-e", _LOOKED_FOR, "--", *paths[start:start + _LOGS_AT_ONCE]]
                    for start in range(0, len(paths), _LOGS_AT_ONCE)]
        return [Source("cobaltlog", commands, lambda exit_code, out, whose: parse_log(out, whose))]

    # --- the rest --------------------------------------------------------------------------------------------------

    def get_list_command(self) -> list[str]:
        """qstat: the user's jobs that have not ended."""
        return self._qstat("JobID:State")

    def parse_list_output(self, out: str) -> list[str]:
        """Their ids."""
        return [native_id for native_id, _, _ in self._rows(0, out)]


def _minutes(duration: timedelta) -> str:
    """Whole minutes, rounded up; 0 would be the longest that the queue allows."""
    return str(max(1, -int(-duration.total_seconds() // 60)))


def _check_resources(asked: ResourceSpecV1, cores_per_node: int | None) -> None:
    """Refuse what cannot be requested. Nodes are always exclusive."""
    for field, value in (("memory", asked.memory), ("gpu_cores_per_process", asked.gpu_cores_per_process)):
        if value:
            raise InvalidJobException(f"resources.{field} cannot be used: Cobalt gives whole nodes as they are (a site "
                                      "may have a queue or cobalt.attrs for it)")
    cores = asked.computed_processes_per_node * (asked.cpu_cores_per_process or 1)
    if cores_per_node is not None and cores > cores_per_node:
        raise InvalidJobException(f"resources: {cores} cores on a node, which has {cores_per_node} "
                                  "(processes_per_node, cpu_cores_per_process)")


def _inherited(host: Host) -> list[tuple[str, str]]:
    """The environment of qsub, but for what is set in a job, and what bash cannot hand on."""
    return [(name, value) for name, value in host.environ.items()
            if not needs_env(name) and name != "TMPDIR" and not name.startswith("COBALT_")]


def _blocks(out: str) -> Iterator[dict[str, str]]:
    """Jobs in the answer of ``qstat -l``, which is empty when there is none. Raises ValueError where it is cut off."""
    *blocks, rest = out.split("\n\n")
    if out.strip() and "JobID" not in out:
        raise ValueError(f"qstat gave no job: {out[:200]!r}")
    if rest.strip():
        raise ValueError(f"the answer of qstat is cut off behind {rest[-80:]!r}")
    fields_by_job = ({match[1]: match[2].strip() for line in block.split("\n") if (match := _FIELD.fullmatch(line))}
                     for block in blocks)
    yield from readable("qstat", fields_by_job, lambda fields: ANSWERS.is_id(fields.get("JobID", "")))


def parse_log(out: str, whose: Whose | None = None) -> dict[str, JobStatus]:
    """Statuses from lines of ``<id>.<tag>.cobaltlog`` files, each after the name of its file, as grep shows them.

    A job whose deletion was asked for, or whose time was over, has no exit code there. None for a job of which no
    line tells the end. Raises ValueError where the last line is cut off.
    """
    lines: dict[str, list[tuple[float | None, str]]] = {}
    for line in whole_lines(out):
        match = _LOG_LINE.fullmatch(line)
        if match and (whose is None or whose.takes(match[1], Claim(frozenset([match[2]])))):
            lines.setdefault(match[1], []).append((moment(f"{match[3]} {match[4]}"), match[5]))
    statuses = ((native_id, _end(lines_of_job)) for native_id, lines_of_job in lines.items())
    return {native_id: status for native_id, status in statuses if status is not None}


def _end(lines_of_job: list[tuple[float | None, str]]) -> JobStatus | None:
    submitted = next((when for when, text in lines_of_job if text.startswith("submitted ")), None)
    lines_after = [(when, text) for when, text in lines_of_job if not text.startswith("submitted ")]
    metadata: dict[str, Any] = {"native_state": "done", "submit_time": submitted}
    for when, text in reversed(lines_after):
        metadata["end_time"] = when
        if match := _COMPLETED.match(text):
            return _by_code(None if match[1] == "None" else int(match[1]), metadata)
        if _TIME_LIMIT.match(text):
            return _known(JobState.FAILED, {**metadata, "reason": "timeout"}, message="the time limit was reached")
        if _DELETED.match(text):
            return _known(JobState.CANCELED, metadata, message=text.partition("Info: ")[2])
    return None


def _by_code(code: int | None, metadata: dict[str, Any]) -> JobStatus:
    if code is None:
        return _known(JobState.FAILED, {**metadata, "reason": "unknown-exit"})
    if code < 0:
        return _known(JobState.FAILED, {**metadata, "reason": "signal", "signal": -code}, code=128 - code)
    return _known(JobState.FAILED if code else JobState.COMPLETED, metadata, code=code)


def _known(state: JobState, metadata: dict[str, Any], code: int | None = None, message: str | None = None) -> JobStatus:
    facts = present(metadata)
    return JobStatus(state, time=facts.get("end_time"), message=message, exit_code=code, metadata=facts)
