"""Grid Engine: qsub, qstat, qacct, qdel.

Queued and running jobs come from ``qstat -xml``; ended jobs leave it, and ``qacct`` has their records. Times are asked
for in UTC, because qstat and qacct print them without a zone. Seen with Son of Grid Engine 8.1.9. Sources: qsub(1),
qstat(1), qacct(1), sge_status(5), accounting(5).

What sites name themselves (parallel environments, resources for memory, GPUs and whole hosts) is in the configuration.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from psij.exceptions import InvalidJobException
from psij.executors.batch._answers import by_tag, readable, standing, whole_lines
from psij.executors.batch._array_jobs import ArrayLimits, numbers_text, task_numbers
from psij.executors.batch._changes import Changes
from psij.executors.batch._cluster import Cluster
from psij.executors.batch._host import Host
from psij.executors.batch._identity import Claim
from psij.executors.batch._options import (
    asks_itself,
    custom_directives,
    job_name,
    limit_text,
    local_time,
    member_directives,
    orders_by_exit,
    requested,
    resources,
    share,
    time_limit,
)
from psij.executors.batch._sge_records import job_lists, of_lines, parse_qacct
from psij.executors.batch._terms import AnyOrder, Orders
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
from sssjob.lrm.names import JOB_NAMES
from sssjob.lrm.sge import ANSWERS, awaited, environment_for, listed, reasons, state_of, submitted
from sssjob.lrm.states import NativeState, Stage
from sssjob.templates.quoting import Directive, sge

__all__ = ["SGEExecutorConfig", "SGEJobExecutor"]

_UTC = ["env", "TZ=UTC0"]
_DONE_BY_QMOD: Final[Mapping[AnyOrder, str]] = {"rerun": "Pushed rescheduling", "suspend": "- suspended job",
                                             "resume": "- unsuspended job", "clear": "cleared error state"}
_LONGEST_NAME = 512         # bytes; seen with 8.1.9
_QACCT_AT_ONCE = 25         # each call reads the whole file

_REFUSED = {
    **dict.fromkeys(("t", "tc"), "a PSI/J job is one job"), "o": "use stdout_path", "e": "use stderr_path",
    "i": "use stdin_path", "j": "use stderr_path", "k": "use stdout_path", "cwd": "use directory",
    "wd": "use directory", "v": "use environment", "V": "use inherit_environment", "S": "the script is one of bash",
    "sync": "it would hold up submit(); use Job.wait()", "now": "it would hold up submit()", "b": "there is a script",
    "shell": "there is a script", "terse": "it is used already", "verify": "no job would be made",
    "C": "the script has its own", "@": "options are given one by one", "clear": "options are given one by one"}

_ARRAY_MADE = re.compile(r"(\d{1,12})\.\d+-\d+:\d+", re.ASCII)
# What qdel says of a job that waited, and of one that has begun, or an element of it. Seen with 8.1.9.
_DELETED = re.compile(r"has deleted job(?:-array task)? ([\d.]+)$", re.ASCII | re.MULTILINE)
_REGISTERED = re.compile(r"has registered the job(?:-array task)? ([\d.]+)", re.ASCII)
_MOST_TASKS = 75_000        # max_aj_tasks where the site does not say another number
_GREATEST_TASK = 9_999_999  # seen with 8.1.9

_PE = re.compile(r"""([^\s"'#\\]+)( [\d,:-]+)?""", re.ASCII)       # name, and slots as of -pe


class SGEExecutorConfig(BatchSchedulerExecutorConfig):
    """Settings of the Grid Engine executor: how the site names things; None where it has no such thing.

    parallel_environment: for jobs of more than one slot; the custom attribute ``sge.pe`` wins. parallel_environments:
    name -> allocation rule (sge_pe(5)), of which the first one that gives a job its hosts wins over that one.
    memory_resource, gpu_resource: requested for each slot. exclusive_resource: a resource that is True for a whole
    host.
    """

    def __init__(self, *arguments: Any, parallel_environment: str | None = None,
                 memory_resource: str | None = "mem_free", gpu_resource: str | None = None,
                 exclusive_resource: str | None = None,
                 parallel_environments: Mapping[str, str | int] | None = None, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.parallel_environment = parallel_environment
        self.parallel_environments = dict(parallel_environments or {})
        self.memory_resource = memory_resource
        self.gpu_resource = gpu_resource
        self.exclusive_resource = exclusive_resource


# A line of PE_HOSTFILE: host, slots, queue, processors. Recorded of 8.1.9: "head 2 all.q@head UNDEFINED".
_SLOTS_HERE = ("$(awk -v here=\"$(uname -n)\" "
               "'index(here \".\", $1 \".\") == 1 || index($1, here \".\") == 1 { print $2; exit }' "
               "\"${PE_HOSTFILE:-/dev/null}\" 2>/dev/null | grep . || "
               "{ [ \"${NHOSTS:-1}\" != 1 ] || echo \"${NSLOTS:-}\"; })")


class SGEJobExecutor(LrmExecutor):
    """Executor ``sge``. Custom attributes ``sge.<option>`` are options of qsub, without the dash.

    ``sge.pe`` is the name of a parallel environment, without slots; where the custom attributes ask for the resources,
    with them.
    """

    _ANSWERS = ANSWERS
    #: Jobs that are not restartable (``-r y``, or the queue's rerun) are refused by qmod.
    _ORDERS = Orders("qdel {}", re.compile("does not exist"), hold="qhold {}", release="qrls {}",
                     clear="qmod -cj {}", rerun="qmod -rj {}", suspend="qmod -sj {}", resume="qmod -usj {}",
                     held={"h": True})
    #: All resources are given again. What is changed of a job that runs would count when it is run again only.
    _CHANGES = Changes("qalter {changes} {id}", {option: f"-{option}" for option in (
        "N", "P", "A", "ar", "js", "l", "p", "pe", "q")})
    _TEMPLATE = "sge.sh.j2"
    _SLOTS_ARE_CORES = True
    _PREFIX = "sge"
    _CONFIG = SGEExecutorConfig
    _CHOOSING = ("SGE_ROOT", "SGE_CELL", "SGE_QMASTER_PORT")
    _WRITTEN = staticmethod(sge)
    SCRIPT_FORMAT = "sge"
    _STATE_KIND = "Grid Engine's job state"
    _ELEMENT = "SGE_TASK_ID"
    # qstat shows seconds; limits of processes are per job: the slots' sum. Seen with 8.1.9. qrsh -inherit needs a
    # parallel environment with control_slaves; the first line of PE_HOSTFILE is this host.
    _TOLD = Told("", {
        "native_id": ("$JOB_ID", 1),
        "processors": (_SLOTS_HERE, 1),
        "wall_seconds": ("$(qstat -j \"$JOB_ID\" 2>/dev/null | "
                         "sed -n 's/^hard resource_list:.*h_rt=\\([0-9]*\\).*/\\1/p')", 1),
        "cpu_seconds": ("$(ulimit -H -t)", 1), "memory_bytes": ("$(ulimit -H -v)", 1 << 10)},
        'for _psij_host in $(sed "1d; s/ .*//" "$PE_HOSTFILE"); do\n'
        '    qrsh -inherit -nostdin "$_psij_host" "$@" &\ndone\nwait')
    _SHOWN_CODES = MappingProxyType({99: 1, 100: 1})    # by the submit script: Grid Engine would take them for orders

    def __init__(self, url: str | None = None, config: JobExecutorConfig | None = None) -> None:
        super().__init__(url, config)
        self._site = config if isinstance(config, SGEExecutorConfig) else SGEExecutorConfig()
        self._rules: dict[str, str | None] = {}     # allocation rules of parallel environments
        self._named: list[str | None] = []          # the name of a cluster behind a line, once it was asked for
        self._most_tasks: int | None = None         # max_aj_tasks, once it was asked for; 0: any number

    # --- submitting ------------------------------------------------------------------------------------------------

    def get_submit_command(self, job: Job, submit_file_path: Path) -> list[str]:
        """qsub, with its shortest answer."""
        return ["qsub", "-terse", str(submit_file_path)]

    def _lookup_commands(self, tags: Sequence[str]) -> list[list[str]]:
        """The tag is in the context of the job, as long as the queue has it; later in its exit file."""
        return [["qstat", "-j", "*"]]

    def _parse_lookup(self, out: str) -> dict[str, list[str]]:
        tags_by_id = self._parse_tags(out)
        if not tags_by_id:      # a job that it does not show may be there: an empty cluster fails
            raise ValueError(f"qstat shows no job: {out[:200]!r}")
        return by_tag(((tag, native_id) for native_id, tags in tags_by_id.items() for tag in tags), int)

    def _says_none(self, out: str) -> bool:
        """qstat -j of an empty cluster fails, seen with 8.1.9."""
        return out.startswith("Following jobs do not exist")

    def _check_spec(self, spec: JobSpec) -> None:
        super()._check_spec(spec)
        asked = resources(spec)
        name = self._environment_name(spec)
        if asked is not None and name is not None and _slots(asked) > 1:
            _check_layout(asked, name, self._allocation_rule(name))

    def dependency_attributes(self, after: Mapping[str, Sequence[str]]) -> dict[str, object] | None:
        """``-hold_jid``, which waits for ends of any kind and knows no others, and no tasks of an array."""
        if after.keys() != {"any"} or any("." in native_id for native_id in after["any"]):
            return None
        return {"sge.hold_jid": ",".join(after["any"])}

    def machine(self) -> str | None:
        """The name of the cluster."""
        return self._cluster_name()

    def _cluster_name(self) -> str | None:
        """SGE_CLUSTER_NAME, else what the file ``cluster_name`` of the cell says; none of the answers has it."""
        if self.host.is_here:
            return self._asked_name()
        try:
            if not self._named:
                self._named.append(self._asked_name())
        except OSError:         # the host is out of reach
            return None
        return self._named[0]

    def _asked_name(self) -> str | None:
        if name := self.host.environ.get("SGE_CLUSTER_NAME"):
            return name
        try:
            return self.host.text(self._of_cell("cluster_name")).strip()[:200] or None
        except OSError:
            return None

    def _cluster(self, out: str) -> Cluster | None:
        """SGE_ROOT and cell, with the host of the qmaster: the first that may be one, where there is a list of them."""
        if not self.host.environ.get("SGE_ROOT"):
            return None
        cell = self.host.real(self._of_cell("accounting").parents[1])
        masters = (_first_word(self.host, cell / "common" / name) for name in ("shadow_masters", "act_qmaster"))
        port = self.host.environ.get("SGE_QMASTER_PORT", "")
        place = f"{cell} on {next(filter(None, masters), '?')}" + (f":{port}" if port else "")
        return Cluster(self._cluster_name() or cell.name, place)

    def fit_name(self, name: str) -> str:
        """Without what Grid Engine does not take in a name."""
        return JOB_NAMES["sge"].fitted(name)

    def native_name(self, job: Job) -> str | None:
        """The value of ``-N``: records of accounting have no context, in which the tag is."""
        try:
            return None if job.spec is None else _checked_name(job_name(job.spec, _LONGEST_NAME))
        except InvalidJobException:     # it is not submitted
            return None

    def begin_attributes(self, at: float) -> dict[str, object] | None:
        """``-a [[CC]YY]MMDDhhmm[.SS]``, by local time."""
        begin = local_time(at, "%Y%m%d%H%M.%S", self.host)
        return None if begin is None else {"sge.a": begin}

    def order_refusal(self, order: AnyOrder, out: str) -> str | None:
        """What qmod says in place of ``Pushed rescheduling of job 6 on host h`` or ``amy - suspended job 6``; it ends
        well in any case (8.1.9)."""
        done = _DONE_BY_QMOD.get(order)
        return None if done is None or done in out else out.strip() or "qmod says nothing"

    def array_limits(self) -> ArrayLimits:
        """One range from 1 on, of no more tasks than max_aj_tasks says (sge_conf(5)), which is 75000 by default."""
        if self._most_tasks is None:
            try:
                output = self._run_command(["qconf", "-sconf"])
            except (subprocess.SubprocessError, OSError):
                output = ""
            limit = re.search(r"^max_aj_tasks\s+(\d{1,9})$", output, re.MULTILINE)
            self._most_tasks = int(limit[1]) if limit else _MOST_TASKS
        return ArrayLimits(1, _GREATEST_TASK, self._most_tasks or _GREATEST_TASK, lists=False)

    def array_id_from_submit_output(self, out: str) -> str:
        """``12`` of ``12.1-9:2``, which qsub -terse says of an array."""
        ids = [match[1] for line in out.splitlines() if (match := _ARRAY_MADE.fullmatch(line.strip()))]
        if len(ids) != 1:
            raise ValueError(f"qsub gave no id of an array: {out!r}")
        return ids[0]

    def element_id(self, native_id: str, number: int) -> str:
        """``12.3``."""
        return f"{native_id}.{number}"

    def _allocation_rule(self, name: str) -> str | None:
        """How a parallel environment spreads slots over hosts, asked once; None when the site does not say."""
        if name not in self._rules:
            try:
                rule = re.search(r"^allocation_rule\s+(\S+)", self._run_command(["qconf", "-sp", name]), re.MULTILINE)
                self._rules[name] = rule[1] if rule else None
            except (subprocess.SubprocessError, OSError):
                return None
        return self._rules[name]

    @property
    def parallel_environment(self) -> str | None:
        """The parallel environment of the settings, for jobs that name none."""
        return self._site.parallel_environment

    @property
    def parallel_environments(self) -> Mapping[str, str | int]:
        """The parallel environments of the settings with their allocation rules, those to be preferred first."""
        return self._site.parallel_environments

    def _environment_name(self, spec: JobSpec) -> str | None:
        custom = (spec.attributes.custom_attributes if spec.attributes is not None else None) or {}
        environments = [value for name, value in custom.items() if name.lower() == "sge.pe"]
        if not environments:
            asked = resources(spec)
            fitting = None if asked is None else _fitting(asked, self._site.parallel_environments)
            return fitting or self._site.parallel_environment
        match = _PE.fullmatch(environments[0]) if isinstance(environments[0], str) else None
        if match is None or (match[2] is not None and not asks_itself(spec)):
            raise InvalidJobException(f"custom attribute 'sge.pe' must be the name of a parallel environment, not "
                                      f"{environments[0]!r}")
        return match[1]

    def _template_context(self, job: Job, spec: JobSpec, context: Mapping[str, Any]) -> dict[str, Any]:
        return {**super()._template_context(job, spec, context), "orders_by_exit": orders_by_exit(spec)}

    def _directives(self, job: Job, spec: JobSpec) -> list[Directive]:
        name = job_name(spec, _LONGEST_NAME)
        directives = [Directive("S", "/bin/bash"), Directive("N", _checked_name(name), name.field),
                      Directive("o", "/dev/null"), Directive("j", "y"), Directive("ac", f"sssjob={job.id}")]
        array = self._arrays.get(job.id)
        if array is not None:
            directives += [Directive("t", numbers_text(list(array.indices))),
                           *([Directive("tc", str(array.most))] if array.most is not None else [])]
        if spec.inherit_environment:
            directives.append(Directive("V"))
        directives += member_directives(spec, (("q", "queue_name"), ("P", "account"), ("ar", "reservation_id")))
        if (limit := time_limit(spec)) is not None:
            directives.append(Directive("l", f"h_rt={limit_text(limit)}", "attributes.duration"))
        asked = requested(spec)
        if asked is not None:
            directives += self._resource_directives(asked, self._environment_name(spec))
        return directives + [directive for directive in custom_directives(spec, self._PREFIX, _REFUSED)
                             if directive.option != "pe" or (asked is None and " " in (directive.value or ""))]

    def _resource_directives(self, asked: ResourceSpecV1, environment: str | None) -> Iterator[Directive]:
        slots = _slots(asked)
        if slots > 1:
            if environment is None:
                raise InvalidJobException(
                    f"resources: a job of {slots} slots needs a parallel environment, whose name only the site knows: "
                    "the custom attribute sge.pe names one (in a document: Extension pe of type sge), or the setting "
                    "parallel_environment (SGEExecutorConfig), or a site profile (qconf -spl lists them)")
            yield Directive("pe", f"{environment} {slots}", "custom attribute 'sge.pe'")
        elif asked.computed_node_count > 1:
            raise InvalidJobException(f"resources.node_count={asked.node_count}: one slot has one host")
        if asked.memory is not None:
            resource = _named("memory", self._site.memory_resource, "memory_resource")
            yield Directive("l", f"{resource}={max(1, share(share(asked.memory, slots), 1024))}K", "resources.memory")
        if asked.gpu_cores_per_process:
            resource = _named("gpu_cores_per_process", self._site.gpu_resource, "gpu_resource")
            gpus, cores = asked.gpu_cores_per_process, asked.cpu_cores_per_process or 1
            if gpus % cores:
                raise InvalidJobException(f"resources.gpu_cores_per_process={gpus}: resources are requested for each "
                                          f"slot, and a process has {cores}")
            yield Directive("l", f"{resource}={gpus // cores}", "resources.gpu_cores_per_process")
        if asked.exclusive_node_use:
            resource = _named("exclusive_node_use", self._site.exclusive_resource, "exclusive_resource")
            yield Directive("l", f"{resource}=true", "resources.exclusive_node_use")

    # --- states ----------------------------------------------------------------------------------------------------

    def get_status_command(self, native_ids: Iterable[str]) -> list[str]:
        """qstat for all jobs of the user that have not ended, with those that they wait for."""
        return [*_UTC, "qstat", "-u", self._current_user(), "-s", "prs", "-r", "-xml"]

    def _rows(self, exit_code: int, out: str) -> Iterator[Row]:
        check_status_exit_code("qstat", exit_code, out)
        arrays: dict[str, Row] = {}
        for item in readable("qstat", job_lists(out), lambda item: "state" in item and "JB_job_number" in item):
            native_id = item["JB_job_number"]
            if "tasks" not in item:
                yield native_id, item["state"], item
                continue
            for task in task_numbers(item["tasks"]):
                yield f"{native_id}.{task}", item["state"], item
            if native_id not in arrays or not _runs(arrays[native_id][1]):
                arrays[native_id] = native_id, item["state"], item
        yield from arrays.values()

    def _tags_command(self, native_ids: list[str]) -> list[str]:
        """qstat -j of the numbers, which shows their contexts."""
        return ["qstat", "-j", ",".join(dict.fromkeys(native_id.partition(".")[0] for native_id in native_ids))]

    def _parse_tags(self, out: str) -> dict[str, frozenset[str]]:
        tags_by_id: dict[str, frozenset[str]] = {}
        current = ""
        for line in whole_lines(out):
            name, _, value = line.partition(":")
            if name == "job_number":
                current = value.strip()
                tags_by_id[current] = frozenset()
            elif name == "context" and current:
                tags_by_id[current] = frozenset(tag.removeprefix("sssjob=") for tag in value.strip().split(",")
                                                if tag.startswith("sssjob="))
        return tags_by_id

    def _claim(self, row: Any) -> Claim:
        """By owner, name and, of a job that waits, time: the listing does not have the context, in which the tag is."""
        return Claim(None, row.get("JB_owner") or None, row.get("JB_name") or None,
                     submitted(row))

    def _stands(self, state: str, row: Any) -> str:
        return f"{state} {awaited(row)}"

    def _native(self, state: str, row: Any) -> NativeState | None:
        return state_of(state, bool(awaited(row)))

    def _told_status(self, native: NativeState, common: JobState, row: Any) -> JobStatus | None:
        job = listed(row)
        metadata = job.facts(began=common is JobState.ACTIVE, over=False) | standing(native, common)
        message = "Grid Engine cannot start it (state E); qstat -j says why" if native.phase == "ERROR" else None
        return JobStatus(common, time=metadata.get("start_time") or job.submit_time, message=message, metadata=metadata)

    _ACCOUNTED_AT_ONCE = _QACCT_AT_ONCE

    #: qstat -j too, which has the scheduler's words where the site lets it keep them (schedd_job_info).
    _reasons_command = _tags_command

    def _reasons(self, exit_code: int, out: str) -> dict[str, tuple[str | None, str]]:
        return reasons(out)

    def _sources(self, native_ids: list[str]) -> list[Source]:
        numbers = list(dict.fromkeys(native_id.partition(".")[0] for native_id in native_ids))
        each = [[*_UTC, "qacct", "-j", number] for number in numbers[:_QACCT_AT_ONCE]]
        path = self._of_cell("accounting")
        is_there = path.is_absolute() and (not self.host.is_here or path.is_file())
        first = [[*_UTC, *of_lines(path, numbers)]] if is_there and len(numbers) > 1 else each
        return [Source("qacct", first, parse_qacct), Source("qacct", each if is_there else [], parse_qacct, late=True)]

    def _of_cell(self, name: str) -> Path:
        """A file of the cell."""
        environ = self.host.environ
        return Path(environ.get("SGE_ROOT", ""), environ.get("SGE_CELL") or "default", "common", name)

    # --- the rest --------------------------------------------------------------------------------------------------

    def process_cancel_command_output(self, exit_code: int, out: str) -> None:
        """As the base; a job that is being deleted is well."""
        if "already in deletion" not in out or "denied" in out:
            super().process_cancel_command_output(exit_code, out)

    def _unbegun(self, out: str) -> Set[str]:
        """qdel has deleted what waited, and registers for deletion what has begun; of an array of which only some
        elements have begun it says both, the first of the whole."""
        begun = {native_id.partition(".")[0] for native_id in _REGISTERED.findall(out)}
        return {native_id for native_id in _DELETED.findall(out) if native_id not in begun}

    def get_list_command(self) -> list[str]:
        """qstat: the user's jobs that have not ended."""
        return [*self.get_status_command([])]

    def parse_list_output(self, out: str) -> list[str]:
        """The ids, each once; of an array that of the whole."""
        return list(dict.fromkeys(native_id for native_id, _, _ in self._rows(0, out) if "." not in native_id))


def _first_word(host: Host, path: Path) -> str:
    """The first word of a file of the cell; empty where there is none."""
    try:
        return next(iter(host.text(path).split()), "")
    except OSError:
        return ""


def _runs(letters: str) -> bool:
    native = state_of(letters)
    return native is not None and native.stage in (Stage.RUNNING, Stage.SUSPENDED)


def _slots(asked: ResourceSpecV1) -> int:
    return asked.computed_process_count * (asked.cpu_cores_per_process or 1)


def _named(member: str, resource: str | None, setting: str) -> str:
    if resource is None:
        raise InvalidJobException(f"resources.{member}: only the site knows the resource for it: set {setting} in "
                                  "SGEExecutorConfig, or request it with the custom attribute sge.l (qconf -sc lists "
                                  "them)")
    return resource


def _fitting(asked: ResourceSpecV1, rules: Mapping[str, str | int]) -> str | None:
    """The first parallel environment that gives a job the hosts that it asks for; None where none does."""
    each = None if asked.processes_per_node is None else asked.processes_per_node * (asked.cpu_cores_per_process or 1)
    return environment_for(rules, on_one_host=asked.node_count == 1, per_host=each)


def _check_layout(asked: ResourceSpecV1, name: str, rule: str | None) -> None:
    """Refuse hosts that the parallel environment would not give. rule: as in sge_pe(5)."""
    stated = asked.node_count is not None or asked.processes_per_node is not None
    if rule is None or not stated:
        return
    nodes, slots = asked.computed_node_count, _slots(asked)
    fits = nodes == 1 if rule == "$pe_slots" else rule.isdecimal() and slots == nodes * int(rule)
    if not fits:
        raise InvalidJobException(f"resources: {slots} slots on {nodes} hosts are not what the parallel environment "
                                  f"{name!r} gives (allocation_rule {rule})")


def _checked_name(name: Directive) -> str:
    """The name, if Grid Engine can take it. Seen with 8.1.9: it may not begin with a digit."""
    value = name.value or ""
    if name.field == "executable":
        return JOB_NAMES["sge"].fitted(re.sub(r"[^A-Za-z0-9_.+=-]", "_", value))
    if fault := JOB_NAMES["sge"].fault(value):
        raise InvalidJobException(f"name {value!r} {fault}, which Grid Engine does not take as the name of a job")
    return value
