"""Slurm: sbatch, squeue, sacct, scontrol, scancel.

States are asked with one ``squeue`` for all jobs of the user in a fixed format that all releases know; ends and usage
come from ``sacct``, or where it is turned off from ``scontrol``. Seen with 22.05.8. Sources: sbatch(1), squeue(1),
sacct(1), JOB STATE CODES; slurm.h.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from psij.exceptions import InvalidJobException, SubmitException
from psij.executors.batch._answers import array_id, by_tag, whole_lines
from psij.executors.batch._array_jobs import ArrayLimits, numbers_text
from psij.executors.batch._changes import Changes, megabytes
from psij.executors.batch._cluster import Cluster, first
from psij.executors.batch._files import exit_file
from psij.executors.batch._identity import Claim, Whose, tags_in
from psij.executors.batch._options import (
    comments,
    custom_directives,
    custom_of,
    directory,
    job_name,
    keeps_environment,
    limit_text,
    member_directives,
    share,
    time_limit,
)
from psij.executors.batch._slurm_json import command as sacct_json
from psij.executors.batch._slurm_json import parse_codes
from psij.executors.batch._slurm_parts import check_part, step, whole_id
from psij.executors.batch._slurm_records import (
    ACCOUNTING,
    WORDS,
    is_off,
    is_unsure,
    native_state,
    parse_sacct,
    parse_scontrol,
    status_in,
)
from psij.executors.batch._terms import Orders
from psij.executors.batch._words import exported, program_words, shell_only
from psij.executors.batch.batch_scheduler_executor import (
    BatchSchedulerExecutorConfig,
    Source,
    check_status_exit_code,
)
from psij.executors.batch.lrm import LrmExecutor, Row, resolved
from psij.job import Job
from psij.job_executor_config import JobExecutorConfig
from psij.job_spec import JobSpec
from psij.job_state import JobState
from psij.job_status import JobStatus
from psij.resource_spec import ResourceSpecV1
from psij.surroundings import Told
from sssjob.lrm.hostlist import hosts
from sssjob.lrm.slurm import ANSWERS, stated
from sssjob.lrm.usage import Usage, quantity, whole
from sssjob.templates.quoting import Directive, Quoted, sbatch, slurm_path

__all__ = ["SlurmExecutorConfig", "SlurmJobExecutor"]


# Seen with 22.05: StartTime and EndTime are local times; EndTime is Unknown where there is no limit. A job that is an
# element of an array is asked for by its own id, and may be shown among others.
_TOLD_LINES = r"""_psij_of() {
    scontrol show job -o "$SLURM_JOB_ID" 2>/dev/null | grep "^JobId=$SLURM_JOB_ID " |
        sed -n 's/.* StartTime=\([0-9T:-]*\) EndTime=\([0-9T:-]*\).*/\1 \2/p'
}
_psij_span=$(_psij_of) _psij_from= _psij_to=
if [ -n "$_psij_span" ]; then
    _psij_from=$(date -d "${_psij_span% *}" +%s 2>/dev/null) || _psij_from=
    [ -z "${_psij_span#* }" ] || _psij_to=$(date -d "${_psij_span#* }" +%s 2>/dev/null) || _psij_to=
fi
"""
# The parts of a heterogeneous job have nodes of their own; srun is asked for them one by one. Seen with 22.05.
_EACH_NODE = r"""for _psij_group in $(seq 0 $((${SLURM_HET_SIZE:-1} - 1))); do
    eval "_psij_nodes=\${SLURM_JOB_NUM_NODES_HET_GROUP_$_psij_group:-\$SLURM_JOB_NUM_NODES}"
    srun ${SLURM_HET_SIZE:+--het-group=$_psij_group} --overlap --quiet --nodes="$_psij_nodes" --ntasks="$_psij_nodes" \
        --ntasks-per-node=1 "$@" &
done
wait"""


_COMMENT, _SCRIPT = re.compile(r"sssjob:([\w-]+)"), re.compile(r"([\w-]+)\.job\b")    # where the tag is
# The comment and the command, which say whose a job is, can hold the separator: they are last.
_QUEUE = "%i|%T|%r|%V|%S|%e|%C|%D|%N|%P|%q|%k|%o"
_COLUMNS = 9    # of a row between the state and the comment
_EPOCH = ["env", "SLURM_TIME_FORMAT=%s"]     # times in seconds since the epoch

_CODES = ("sacct-json", "scontrol")          # sources of exit codes that the text of sacct does not have
_KILLED_FOR_MEMORY = re.compile(r"^slurmstepd\S*: error: .*(?:exceeded (?:\S+ )?memory limit|oom[-_ ]kill)",
                                re.IGNORECASE | re.MULTILINE)

_LONGEST_NAME = 1024     # bytes; seen with 22.05.8
_NAMED = (("partition", "queue_name"), ("account", "account"), ("reservation", "reservation_id"))

# Variables of sbatch that would win over a directive, where the name does not follow from the option's.
_VARIABLES = {"array": "SBATCH_ARRAY_INX", "time": "SBATCH_TIMELIMIT", "mem": "SBATCH_MEM_PER_NODE",
              "chdir": "SBATCH_WORKDIR"}

# Options of sbatch -> keywords of scontrol update, by scontrol(1); tried with 22.05.8. Numbers of nodes and tasks are
# not among them: sbatch has put those into the environment of the job, and srun heeds them there.
_UPDATED = {
    "account": "Account=", "constraint": "Features=", "exclude": "ExcNodeList=", "gres": "Gres=",
    "job-name": "JobName=", "licenses": "Licenses=", "mem": "MinMemoryNode=", "mem-per-cpu": "MinMemoryCPU=",
    "nice": "Nice=", "nodelist": "ReqNodeList=", "partition": "Partition=", "priority": "Priority=", "qos": "QOS=",
    "reservation": "ReservationName=", "time": "TimeLimit=", "time-min": "TimeMin=", "tmp": "MinTmpDiskNode=",
    "wckey": "WCKey="}

_ARRAY_SIZE = 1001      # MaxArraySize by default (slurm.conf(5))
_REFUSED = {
    **dict.fromkeys(("array", "a"), "a PSI/J job is one job"),
    **dict.fromkeys(("output", "o"), "use stdout_path"), **dict.fromkeys(("error", "e"), "use stderr_path"),
    **dict.fromkeys(("input", "i"), "use stdin_path"), **dict.fromkeys(("chdir", "D"), "use directory"),
    **dict.fromkeys(("wait", "W"), "it would hold up submit(); use Job.wait()"),
    **dict.fromkeys(("clusters", "M"), "jobs of other clusters cannot be followed; use SLURM_CONF"),
    "wrap": "there is a script already", "test-only": "no job would be made", "export": "use environment",
    "parsable": "it is used already", "get-user-env": "use environment", "quiet": "it hides the job id",
    "help": "no job would be made", "usage": "no job would be made", "version": "no job would be made"}


# ``--signal=B:USR1@60``: of which only the batch script is told. sbatch(1).
_OF_BATCH = re.compile(r"B:(?:SIG)?([A-Z]+[12]?|[1-9][0-9]?)(?:@.*)?", re.ASCII | re.IGNORECASE)


class SlurmExecutorConfig(BatchSchedulerExecutorConfig):
    """Settings of the Slurm executor."""


class SlurmJobExecutor(LrmExecutor):
    """Executor ``slurm``. Custom attributes ``slurm.<option>`` are options of sbatch, long or of one letter."""

    _ANSWERS = ANSWERS
    #: uhold: a hold of the user's, also where an operator gives it, so that the user can end it. Slurm does not requeue
    #: jobs that were submitted with ``--no-requeue``, and has operators alone suspend a job. Without ``--full`` the
    #: batch script would get no signal.
    _ORDERS = Orders("scancel {}", re.compile("invalid job id|already completing|already completed", re.IGNORECASE),
                     hold="scontrol uhold {,}", release="scontrol release {,}", rerun="scontrol requeue {}",
                     suspend="scontrol suspend {}", resume="scontrol resume {}",
                     signal="scancel --full --signal={signal} {}", held={"hold": True})
    #: A part of a heterogeneous job has an id of its own here. Of a job that runs users may only lower the limit.
    _CHANGES = Changes("scontrol update JobId={id} {changes}", _UPDATED, live=frozenset(("job-name", "time")),
                       values=dict.fromkeys(("mem", "mem-per-cpu", "tmp"), megabytes))
    _TEMPLATE = "slurm.sh.j2"
    _PREFIX = "slurm"
    _CONFIG = SlurmExecutorConfig
    _CHOOSING = ("SLURM_CONF", "SLURM_CLUSTERS")
    _NEEDS_NODES = True
    _SIZES = frozenset(("N", "n", "nodes", "ntasks", "ntasks-per-core", "ntasks-per-gpu", "ntasks-per-node",
                        "ntasks-per-socket"))
    _WRITTEN = staticmethod(sbatch)
    _TAKES_ANY_VALUE = True
    SCRIPT_FORMAT = "slurm"
    _TOLD = Told(_TOLD_LINES, {
        "native_id": ("$SLURM_JOB_ID", 1), "processors": ("${SLURM_CPUS_ON_NODE:-}", 1),
        "start_time": ("$_psij_from", 1), "wall_seconds": ("${_psij_to:+$((_psij_to - _psij_from))}", 1),
        "memory_bytes": ("${SLURM_MEM_PER_NODE:-$((${SLURM_MEM_PER_CPU:-0} * ${SLURM_CPUS_ON_NODE:-0}))}", 1 << 20),
        "node_processors": ("$(scontrol show node -o \"${SLURMD_NODENAME:-}\" 2>/dev/null | "
                            "sed -n 's/.* CPUTot=\\([0-9]*\\).*/\\1/p')", 1)},
        _EACH_NODE)
    _SEPARATOR = "|"
    _HEADER = "JOBID|"
    _ELEMENT = "SLURM_ARRAY_TASK_ID"
    TOGETHER = True
    _REMEMBERS = True       # the controller for MinJobAge, and sacct
    _SHOWN_CODES = MappingProxyType({code: code - 128 for code in range(128, 256)})     # by sacct; seen with 22.05.8

    def __init__(self, url: str | None = None, config: JobExecutorConfig | None = None) -> None:
        super().__init__(url, config)
        self._columns: tuple[str, ...] = ACCOUNTING
        self._array_size: int | None = None     # MaxArraySize, once the controller was asked for it

    # --- submitting ------------------------------------------------------------------------------------------------

    def get_submit_command(self, job: Job, submit_file_path: Path) -> list[str]:
        """sbatch, without those variables of it that would win over what the job says."""
        assert job.spec is not None
        if not self.host.has_variable("SBATCH_"):
            return ["sbatch", "--parsable", str(submit_file_path)]
        stated = {_VARIABLES.get(directive.option, f"SBATCH_{directive.option.upper().replace('-', '_')}")
                  for directive in self._directives(job, job.spec)} | {"SBATCH_EXPORT", "SBATCH_OPEN_MODE"}
        unset = [word for name in sorted(stated & self.host.environ.keys()) for word in ("-u", name)]
        return [*(["env", *unset] if unset else []), "sbatch", "--parsable", str(submit_file_path)]

    def _said_of_submission(self, out: str) -> dict[str, Any]:
        """The cluster, where sbatch names it."""
        lines = (ANSWERS.submitted.fullmatch(line.strip()) for line in out.splitlines())
        named = [match[2] for match in lines if match is not None and match[2]]
        return {"machine": named[0]} if named else {}

    def _lookup_commands(self, tags: Sequence[str]) -> list[list[str]]:
        """The tag is in the name of the script, which squeue and sacct show, and in the comment."""
        return [["squeue", "-u", str(self.host.uid), "-t", "all", "-o", "%i|%k|%o"],
                ["sacct", "-X", "-P", "-S", "now-1hours", "-u", str(self.host.uid), "-o",
                 "JobID,Comment,SubmitLine"]]

    def _parse_lookup(self, out: str) -> dict[str, list[str]]:
        """The comment counts first: all parts of a job have one script. The elements of an array have one of their
        own, and those that wait one row, which is that of the array. An answer without its header was cut off."""
        lines = whole_lines(out)
        if not any(line.upper().startswith("JOBID|") for line in lines):
            raise ValueError(f"an answer without a header: {out[:200]!r}")
        rows = [[*line.split("|", 2), "", ""][:3] for line in lines]
        by_comment, by_script = (by_tag(((match[1], native_id) for job_name_, *texts in rows
                                         if ANSWERS.is_id(native_id := array_id(job_name_)) and (
                                             match := form.search(texts[place]))),
                                        lambda job_name_: [int(part) for part in re.split(r"\D", job_name_)])
                                 for place, form in enumerate((_COMMENT, _SCRIPT)))
        return by_script | by_comment

    def _says_none(self, out: str) -> bool:
        """Without accounting the queue says it alone, beside the records that jobs write."""
        return is_off(out)

    def array_limits(self) -> ArrayLimits | None:
        """Any numbers below MaxArraySize, which scontrol tells; where it is silent, the default is taken for it."""
        if self._array_size is None:
            with suppress(SubmitException):
                self.cluster()
        size = self._array_size = self._array_size or _ARRAY_SIZE
        return ArrayLimits(0, size - 1, size, lists=True) if size > 1 else None

    def element_id(self, native_id: str, number: int) -> str:
        """``12_3``."""
        return f"{native_id}_{number}"

    def _told_id(self, native_id: str) -> str:
        return whole_id(native_id)

    def part_id(self, native_id: str, number: int) -> str:
        """``12+1``, the second component of the heterogeneous job 12."""
        return f"{native_id.partition('+')[0]}+{number}"

    def _check_spec(self, spec: JobSpec) -> None:
        super()._check_spec(spec)
        if "slurm.hetjob" in map(str.lower, custom_of(spec)):
            raise InvalidJobException("custom attribute 'slurm.hetjob' cannot be used: use submit_together()")

    def _template_context(self, job: Job, spec: JobSpec, context: Mapping[str, Any]) -> dict[str, Any]:
        values = super()._template_context(job, spec, context)
        parts = self._parts.get(job.id, ())
        for part in parts:
            check_part(part.spec or JobSpec())
        values["exported"], values["passed_on"] = _exported(spec), _passed_on(spec)
        values["comments"] = [Quoted(line) for line in comments(spec)]
        values["more_parts"] = [self._directives(part, part.spec) for part in parts[1:] if part.spec is not None]
        values["step"] = Quoted(step([self._part(part) for part in parts]) if parts and not _once(parts) else "")
        return values

    def _part(self, job: Job) -> tuple[Job, dict[str, Any]]:
        """A part with absolute paths, and what its program's template may use."""
        assert job.spec is not None
        spec = job.spec
        around = self._around(job, spec)
        return Job(resolved(spec, host=self.host)), {
            "directory": directory(spec, self.host), "keeps_environment": keeps_environment(spec),
            "environment": exported(spec), "shell_only": shell_only(spec), "variables": around.variables,
            "guard": around.guard, "program": program_words(spec)}

    def _several(self, job: Job) -> bool:
        return len(self._parts.get(job.id, ())) > 1

    def dependency_attributes(self, after: Mapping[str, Sequence[str]]) -> dict[str, object] | None:
        """``--dependency``; a job whose turn can no longer come is ended by Slurm and does not wait for ever."""
        words = [f"after{kind}:{':'.join(ids)}" for kind, ids in after.items()]
        return {"slurm.dependency": ",".join(words), "slurm.kill-on-invalid-dep": "yes"}

    def machine(self) -> str | None:
        """The name of the cluster, as sacct has it under Cluster; None where the controller does not say."""
        try:
            cluster = self.cluster()
        except SubmitException:
            return None
        return None if cluster is None else cluster.name

    def _cluster_command(self) -> list[str]:
        return ["scontrol", "show", "config"]

    def _cluster(self, out: str) -> Cluster | None:
        """ClusterName, with the controllers and their port: nothing makes names of clusters unique."""
        name = first(r"^ClusterName\s*=\s*(\S+)", out)
        hosts_ = re.findall(r"^(?:SlurmctldHost\[\d+\]|ControlMachine|BackupController)\s*=\s*(\S+)", out, re.MULTILINE)
        port = first(r"^SlurmctldPort\s*=\s*(\S+)", out)
        self._array_size = int(first(r"^MaxArraySize\s*=\s*(\d{1,9})$", out) or _ARRAY_SIZE)
        return Cluster(name, f"{','.join(hosts_)}:{port}") if name and hosts_ and port else None

    def begin_attributes(self, at: float) -> dict[str, object]:
        """``--begin``, in seconds since the epoch, which no change of local time makes earlier. Seen with 22.05.8."""
        return {"slurm.begin": f"uts{math.ceil(at)}"}

    def _directives(self, job: Job, spec: JobSpec) -> list[Directive]:
        array = self._arrays.get(job.id)
        output = f"%j{'+0' * (job.id in self._parts)}.{job.id}.out"
        if array is not None:       # %8a: the number, filled up with zeros as in the tag of the element
            output = f"%A_%a.{array.common}%8a.out"
        directives = [Directive("job-name", (name := job_name(spec, _LONGEST_NAME)).value, name.field),
                      Directive("output", f"{slurm_path(self.work_directory)}/{output}", "work_directory")]
        directives += member_directives(spec, _NAMED)
        if (limit := time_limit(spec)) is not None:
            directives.append(Directive("time", limit_text(limit), "attributes.duration"))
        asked = self._requested(spec)
        if asked is not None:
            directives += _resource_directives(asked)
        custom = custom_directives(spec, self._PREFIX, _REFUSED)
        if "comment" not in [directive.option for directive in custom]:
            directives.append(Directive("comment", f"sssjob:{job.id}"))
        if array is not None:
            limit_ = "" if array.most is None else f"%{array.most}"
            directives.append(Directive("array", numbers_text(list(array.indices)) + limit_))
        return directives + custom

    # --- states ----------------------------------------------------------------------------------------------------

    def get_status_command(self, native_ids: Iterable[str]) -> list[str]:
        """squeue for all jobs of the user: a list of ids would save the server nothing.

        Elements of an array that wait have one line for all of them, but where one is asked for.
        """
        each = ["-r"] if any("_" in native_id for native_id in native_ids) else []
        return [*_EPOCH, "squeue", "-u", str(self.host.uid), "-t", "all", *each, "-o", _QUEUE]

    def _rows(self, exit_code: int, out: str) -> Iterator[Row]:
        check_status_exit_code("squeue", exit_code, out)
        lines = whole_lines(out)
        if not lines or not lines[0].startswith(self._HEADER):
            raise ValueError(f"squeue gave no header: {out[:200]!r}")
        for line in lines[1:]:
            parts = line.split("|", 2)
            if len(parts) == 3:
                yield parts[0], parts[1], parts[2]

    def _array_of(self, native_id: str) -> str:
        """squeue lists elements only: ``12_3``, or ``12_[4-9]`` for those that wait."""
        array, element, _ = native_id.partition("_")
        return array if element else ""

    def _stands(self, state: str, row: Any) -> str:
        return f"{state} {row.partition('|')[0]}" if isinstance(row, str) else state

    def _claim(self, row: Any) -> Claim:
        """By comment and command; squeue is asked for jobs of the user only."""
        values = row.split("|", _COLUMNS)
        submitted = quantity(values[1]) if len(values) > 1 else None
        return Claim(tags_in(values[-1]) if len(values) > _COLUMNS else None, submit_time=submitted)

    def _status(self, state: str, row: Any) -> JobStatus | None:
        state_pair = native_state(state)
        values = row.split("|", _COLUMNS) if isinstance(row, str) else []
        if state_pair is None or len(values) < _COLUMNS:
            return None
        native, job_state = state_pair
        reason, submit, start, end, cpus, nodes, names, queue, qos = values[:_COLUMNS]
        # sacct calls the QOS of a short job Unknown for up to five seconds after its end
        job = Usage(native_state=state, submit_time=quantity(submit), queue=queue or None, qos=stated(qos),
                    ran=bool(names), start_time=quantity(start), end_time=quantity(end))
        if native.phase != "CLEANUP":       # then it lists what has not been given back yet
            job = replace(job, nodes=hosts(names), node_count=whole(nodes), processors=whole(cpus))
        metadata = job.facts(began=job_state is not JobState.QUEUED, over=job_state.final)
        return status_in(native, job_state, metadata, reason)

    _ACCOUNTED_AT_ONCE = 1000
    _LIVE_SOURCES = frozenset(("scontrol",))
    _OF_MANAGER = re.compile(r"^slurmstepd\S*: error: \*\*\* .* DUE TO JOB REQUEUE \*\*\*\n?", re.MULTILINE)

    def _sources(self, native_ids: list[str]) -> list[Source]:
        return [Source("sacct", [[*_EPOCH, "sacct", "-D", "-P", "-o", ",".join(self._columns), "-j", ",".join(ids)]
                                 for ids in _chunks(native_ids, 1000)], self._parse_sacct),
                Source("scontrol", [[*_EPOCH, "scontrol", "-o", "show", "job", native_id]
                                    for native_id in self._shown_ids(native_ids)[:50]],
                       parse_scontrol, late=True)]

    def _shown_ids(self, native_ids: list[str]) -> list[str]:
        """Ids of which scontrol shows these jobs, one by one: several elements of an array by that of the array."""
        arrays = [self._array_of(native_id) for native_id in native_ids]
        counts = Counter(arrays)
        return list(dict.fromkeys(array if array and counts[array] > 1 else native_id
                                  for native_id, array in zip(native_ids, arrays, strict=True)))

    def _parse_sacct(self, exit_code: int, out: str, whose: Whose) -> dict[str, JobStatus]:
        """As parse_sacct. A release before 20.11 knows no SubmitLine, and is not asked for it again."""
        if exit_code != 0 and re.search(r"invalid field.*SubmitLine", out, re.IGNORECASE):
            self._columns = ACCOUNTING[:-1]
        return parse_sacct(exit_code, out, whose)

    def _ask_sources(self, native_ids: list[str], late: set[str],
                     whose: Whose) -> tuple[dict[str, dict[str, JobStatus]], bool]:
        """As the base, and for exit codes that the text of sacct gives wrong its JSON where that is right, or scontrol.
        """
        records, silent = super()._ask_sources(native_ids, late, whose)
        unsure = [native_id for native_id, by_source in records.items() if "scontrol" not in by_source and is_unsure(
            by_source.get("sacct")) and exit_file(
                self._aux_path(native_id, ".ec", whose.tag(native_id)), None, self.host) is None]
        self._ask_codes(unsure, records, whose)
        for native_id, by_source in ((native_id, records[native_id]) for native_id in unsure):
            if any(by_source[name].exit_code is not None for name in _CODES if name in by_source):
                by_source["sacct"].exit_code = None
            elif native_id not in late and self.host.exists(
                    self._aux_path(native_id, ".start", whose.tag(native_id))):
                del by_source["sacct"]          # the script ran here, and its exit file may come yet
            else:
                code = by_source["sacct"].exit_code or 0
                by_source["sacct"].message = f"exit code {code}, or {code + 128}: sacct does not tell them apart"
        return records, silent

    def _ask_codes(self, native_ids: list[str], records: dict[str, dict[str, JobStatus]], whose: Whose) -> None:
        """Ask sacct --json, then the controller, for the exit codes of jobs that no earlier source had, and add them to
        the records."""
        for name in _CODES:
            unknown = [native_id for native_id in native_ids
                       if not any(code_source in records[native_id] for code_source in _CODES)]
            if unknown and name not in self._off:
                json_of_sacct = Source(name, [sacct_json(ids) for ids in _chunks(unknown, 100)], parse_codes)
                source = json_of_sacct if name == "sacct-json" else self._sources(unknown)[1]
                self._ask_source(source, records, whose)

    def _explain(self, status: JobStatus, output: str) -> None:
        """A step that was killed for its memory says so in the script's output; its state is that of any kill."""
        metadata = status.metadata or {}
        if metadata.get("reason") == "signal" and _KILLED_FOR_MEMORY.search(output):
            metadata["reason"] = "memory"
            status.message = WORDS["memory"] + (f" ({status.message})" if status.message else "")

    # --- the rest --------------------------------------------------------------------------------------------------

    def get_list_command(self) -> list[str]:
        """squeue: the user's jobs that have not ended."""
        return ["squeue", "-u", str(self.host.uid), "-h", "-r", "-o", "%i"]


def _resource_directives(asked: ResourceSpecV1) -> list[Directive]:
    """Nodes are fixed only when they follow from what is said; memory is shared out accordingly."""
    processes, cores = asked.computed_process_count, asked.cpu_cores_per_process or 1
    fixed = asked.node_count is not None or asked.processes_per_node is not None
    directives = [Directive("nodes", str(asked.computed_node_count), "resources.node_count")] if fixed else []
    directives.append(Directive("ntasks", str(processes), "resources.process_count"))
    if asked.processes_per_node is not None:
        directives.append(Directive("ntasks-per-node", str(asked.processes_per_node), "resources.processes_per_node"))
    if asked.cpu_cores_per_process is not None:
        directives.append(Directive("cpus-per-task", str(cores), "resources.cpu_cores_per_process"))
    if asked.gpu_cores_per_process:
        directives.append(Directive("gpus-per-task", str(asked.gpu_cores_per_process),
                                    "resources.gpu_cores_per_process"))
    if asked.exclusive_node_use:
        directives.append(Directive("exclusive", None, "resources.exclusive_node_use"))
    if asked.memory is not None:
        option, parts = ("mem", asked.computed_node_count) if fixed else ("mem-per-cpu", processes * cores)
        kilobytes = max(1, share(share(asked.memory, parts), 1024))     # 0 would be all memory of the node
        directives.append(Directive(option, f"{kilobytes}K", "resources.memory"))
    return directives


def _chunks(items: list[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(items), size):
        yield items[start:start + size]


def _exported(spec: JobSpec) -> str:
    """The value of ``--export``. Slurm gives a job for which not all variables are exported those of a login; the names
    stand there because srun goes by them too, inside the job."""
    if spec.inherit_environment or not keeps_environment(spec):
        return "ALL"
    names = [name for name in spec.environment or {} if name.isidentifier() and not name.startswith("SLURM_")]
    return ",".join(names) or "NONE"


def _passed_on(spec: JobSpec) -> str:
    """The signal of which Slurm tells only the batch script, which has to tell its program; empty for none."""
    values = (value for name, value in custom_of(spec).items() if name.lower() == "slurm.signal")
    match = _OF_BATCH.fullmatch(str(next(values, "")))
    return "" if match is None else match[1].upper()


def _once(parts: Sequence[Job]) -> bool:
    """Whether a program is started once for all parts, on the first node: it starts their tasks itself."""
    programs = [(part.spec.executable, part.spec.arguments) for part in parts
                if part.spec is not None and part.spec.launcher == "single"]
    return len(programs) == len(parts) and all(each == programs[0] for each in programs)
