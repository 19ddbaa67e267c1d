"""Grid Engine: qsub, qstat, qacct, qdel.

Queued and running jobs come from ``qstat -xml``; ended jobs leave it, and ``qacct`` has their records. Times are asked
for in UTC, because qstat and qacct print them without a zone. Seen with Son of Grid Engine 8.1.9. Sources: qsub(1),
qstat(1), qacct(1), sge_status(5), accounting(5).

What sites name themselves (parallel environments, resources for memory, GPUs and whole hosts) is in the configuration.
"""

from __future__ import annotations

import calendar
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from psij.exceptions import InvalidJobException, SubmitException
from psij.executors.batch.batch_scheduler_executor import (
    BatchSchedulerExecutorConfig,
    Failure,
    InvalidJobStateError,
    Source,
    check_status_exit_code,
)
from psij.executors.batch.lrm import LrmExecutor, Row, clock, custom_directives, job_name, number, resources, share
from psij.job import Job
from psij.job_executor_config import JobExecutorConfig
from psij.job_spec import JobSpec
from psij.job_state import JobState
from psij.job_status import JobStatus
from psij.resource_spec import ResourceSpecV1
from psij.surroundings import Told
from sssjob.templates.quoting import Directive

__all__ = ["SGEExecutorConfig", "SGEJobExecutor", "state_of"]

_UTC = ["env", "TZ=UTC0"]
_ID = re.compile(r"\d{1,12}", re.ASCII)
_NAME_UNFIT = re.compile(r"""[\s"'#*/:?@\\]|[^ -~]""")
_ACCT_TIME = "%a %b %d %H:%M:%S %Y"
_XML_TIME = "%Y-%m-%dT%H:%M:%S"
_QUANTITY = re.compile(r"([\d.]+)\s*([KMGTP]?)(?:B|s|Bs)?", re.ASCII)
_FACTORS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}
_LONGEST_NAME = 512         # bytes; seen with 8.1.9
_QACCT_AT_ONCE = 25         # each call reads the whole file

# Letters of the state column, tested in this order; the first that is there decides (sge_status(5)).
_LETTERS: tuple[tuple[str, JobState, str | None], ...] = (
    ("E", JobState.QUEUED, "ERROR"), ("sST", JobState.ACTIVE, "SUSPENDED"), ("rt", JobState.ACTIVE, None),
    ("h", JobState.QUEUED, "HELD"), ("qwPN", JobState.QUEUED, None), ("m", JobState.ACTIVE, None))

# failed of accounting(5): 0 ran; 25 to be run again; 37 limit; 100 ended by a signal; the others never ran.
#: What becomes of the facts of the tasks of an array, by their keys.
_ARRAY_FACTS: dict[str, Callable[[Any], Any]] = {
    "submit_time": min, "start_time": min, "end_time": max, "wall_seconds": sum, "cpu_seconds": sum,
    "memory_max_bytes": max, "memory_average_bytes": max, "processors": max, "node_count": max, "starts": max}
_TIME_LIMIT, _SIGNALED = 37, 100
_RUN_AGAIN = 25
#: Requests for limits in a record's category, queue_conf(5); signals of the soft ones.
_ASKED = re.compile(r"(?:^|[\s,])([hs]_(?:rt|cpu|vmem))=([^\s,]+)")
_SOFT = (("s_rt", signal.SIGUSR1, "timeout"), ("s_cpu", signal.SIGXCPU, "cpu-limit"))
_WORDS = {"timeout": "the time limit was reached", "cpu-limit": "the limit of CPU time was reached",
          "memory": "out of memory"}
_NOT_OVER = (24, _RUN_AGAIN)

_REFUSED = {
    **dict.fromkeys(("t", "tc"), "a PSI/J job is one job"), "o": "use stdout_path", "e": "use stderr_path",
    "i": "use stdin_path", "j": "use stderr_path", "k": "use stdout_path", "cwd": "use directory",
    "wd": "use directory", "v": "use environment", "V": "use inherit_environment", "S": "the script is one of bash",
    "sync": "it would hold up submit(); use Job.wait()", "now": "it would hold up submit()", "b": "there is a script",
    "shell": "there is a script", "terse": "it is used already", "verify": "no job would be made",
    "C": "the script has its own", "@": "options are given one by one", "clear": "options are given one by one"}

_LATER = re.compile(r"unable to (send message|contact)|connection refused|only \d+ jobs are allowed|commlib error|"
                    r"try again|not available|qmaster is not running", re.IGNORECASE)
_UNKNOWN_OUTCOME = re.compile(r"answer list|timeout|timed out|failed receiving|got read error|connection (reset|lost)",
                              re.IGNORECASE)


class SGEExecutorConfig(BatchSchedulerExecutorConfig):
    """Settings of the Grid Engine executor: how the site names things; None where it has no such thing.

    parallel_environment: for jobs of more than one slot; the custom attribute ``sge.pe`` wins. memory_resource,
    gpu_resource: requested for each slot. exclusive_resource: a resource that is True for a whole host.
    """

    def __init__(self, *arguments: Any, parallel_environment: str | None = None,
                 memory_resource: str | None = "mem_free", gpu_resource: str | None = None,
                 exclusive_resource: str | None = None, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.parallel_environment = parallel_environment
        self.memory_resource = memory_resource
        self.gpu_resource = gpu_resource
        self.exclusive_resource = exclusive_resource


class SGEJobExecutor(LrmExecutor):
    """Executor ``sge``. Custom attributes ``sge.<option>`` are options of qsub, without the dash.

    ``sge.pe`` is the name of a parallel environment, without slots.
    """

    _TEMPLATE = "sge.sh.j2"
    _PREFIX = "sge"
    # The first line of PE_HOSTFILE is this host. qstat shows seconds; limits of processes are per job: the slots' sum.
    _TOLD = Told("", {
        "native_id": ("$JOB_ID", 1),
        "processors": ("$(sed -n '1s/^[^ ]* *\\([0-9]*\\).*/\\1/p' \"${PE_HOSTFILE:-/dev/null}\" 2>/dev/null | "
                       "grep . || echo \"${NSLOTS:-}\")", 1),
        "wall_seconds": ("$(qstat -j \"$JOB_ID\" 2>/dev/null | "
                         "sed -n 's/^hard resource_list:.*h_rt=\\([0-9]*\\).*/\\1/p')", 1),
        "cpu_seconds": ("$(ulimit -H -t)", 1), "memory_bytes": ("$(ulimit -H -v)", 1 << 10)})
    _SHOWN_CODES = MappingProxyType({99: 1, 100: 1})    # by the submit script: Grid Engine would take them for orders

    def __init__(self, url: str | None = None, config: JobExecutorConfig | None = None) -> None:
        super().__init__(url, config)
        self._site = config if isinstance(config, SGEExecutorConfig) else SGEExecutorConfig()
        self._rules: dict[str, str | None] = {}     # allocation rules of parallel environments

    # --- submitting ------------------------------------------------------------------------------------------------

    def get_submit_command(self, job: Job, submit_file_path: Path) -> list[str]:
        """qsub, with its shortest answer."""
        return ["qsub", "-terse", str(submit_file_path)]

    def job_id_from_submit_output(self, out: str) -> str:
        """The id, from the one line that is a number."""
        found = [line.strip() for line in out.splitlines() if _ID.fullmatch(line.strip())]
        if len(found) != 1:
            raise ValueError(f"qsub gave no job id: {out!r}")
        return found[0]

    def _is_native_id(self, text: str) -> bool:
        return _ID.fullmatch(text) is not None

    def _classify_failure(self, exit_code: int, out: str) -> Failure:
        if exit_code < 0 or _UNKNOWN_OUTCOME.search(out):
            return Failure.UNKNOWN
        return Failure.LATER if _LATER.search(out) else Failure.REFUSED

    def _lookup_commands(self, job: Job) -> list[list[str]]:
        """The tag is in the context of the job, as long as the queue has it; later in its exit file."""
        return [["qstat", "-j", "*"]]

    def _parse_lookup(self, job: Job, out: str) -> list[str]:
        found, current = set(), None
        for line in out.splitlines():
            name, _, value = line.partition(":")
            if name == "job_number":
                current = value.strip()
            elif name == "context" and current is not None and f"sssjob={job.id}" in value.strip().split(","):
                found.add(current)
        return sorted(found, key=int)

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
        """``-hold_jid``, which waits for ends of any kind and knows no others."""
        return {"sge.hold_jid": ",".join(after["any"])} if after.keys() == {"any"} else None

    def fit_name(self, name: str) -> str:
        """Without what Grid Engine does not take in a name."""
        return _fitted(name)

    def hold_attributes(self) -> dict[str, object]:
        """``-h``."""
        return {"sge.h": True}

    def get_release_command(self, native_id: str) -> list[str]:
        """qrls."""
        return ["qrls", native_id]

    def _allocation_rule(self, name: str) -> str | None:
        """How a parallel environment spreads slots over hosts, asked once; None when the site does not say."""
        if name not in self._rules:
            try:
                found = re.search(r"^allocation_rule\s+(\S+)", self._run_command(["qconf", "-sp", name]), re.MULTILINE)
                self._rules[name] = found[1] if found else None
            except (subprocess.SubprocessError, OSError):
                return None
        return self._rules[name]

    def _environment_name(self, spec: JobSpec) -> str | None:
        custom = (spec.attributes.custom_attributes if spec.attributes is not None else None) or {}
        given = [value for name, value in custom.items() if name.lower() == "sge.pe"]
        if not given:
            return self._site.parallel_environment
        if not isinstance(given[0], str) or not re.fullmatch(r"[^\s\"'#\\]+", given[0]):
            raise InvalidJobException(f"custom attribute 'sge.pe' must be the name of a parallel environment, not "
                                      f"{given[0]!r}")
        return given[0]

    def _directives(self, job: Job, spec: JobSpec) -> list[Directive]:
        name = job_name(spec, _LONGEST_NAME)
        found = [Directive("S", "/bin/bash"), Directive("N", _checked_name(name), name.field),
                 Directive("o", "/dev/null"), Directive("j", "y"), Directive("ac", f"sssjob={job.id}")]
        if spec.inherit_environment:
            found.append(Directive("V"))
        attributes = spec.attributes
        if attributes is not None:
            for option, field in (("q", "queue_name"), ("P", "account"), ("ar", "reservation_id")):
                if getattr(attributes, field) is not None:
                    found.append(Directive(option, getattr(attributes, field), f"attributes.{field}"))
            if attributes.duration is not None:
                found.append(Directive("l", f"h_rt={clock(attributes.duration)}", "attributes.duration"))
        asked = resources(spec)
        if asked is not None:
            found += self._resource_directives(asked, self._environment_name(spec))
        return found + [one for one in custom_directives(spec, self._PREFIX, _REFUSED) if one.option != "pe"]

    def _resource_directives(self, asked: ResourceSpecV1, environment: str | None) -> Iterator[Directive]:
        slots = _slots(asked)
        if slots > 1:
            if environment is None:
                raise InvalidJobException(
                    f"resources: a job of {slots} slots needs a parallel environment, whose name only the site knows: "
                    "set the custom attribute sge.pe, or parallel_environment in SGEExecutorConfig (qconf -spl lists "
                    "them)")
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

    def _template_context(self, job: Job, spec: JobSpec, context: Mapping[str, Any]) -> dict[str, Any]:
        asked = resources(spec)
        slots = (asked.cpu_cores_per_process if asked is not None else None) or 1
        return {**super()._template_context(job, spec, context), "slots_per_process": slots}

    # --- states ----------------------------------------------------------------------------------------------------

    def get_status_command(self, native_ids: Iterable[str]) -> list[str]:
        """qstat for all jobs of the user that have not ended."""
        return [*_UTC, "qstat", "-u", self._current_user(), "-s", "prs", "-xml"]

    def _rows(self, exit_code: int, out: str) -> Iterator[Row]:
        check_status_exit_code("qstat", exit_code, out)
        for item in _job_lists(out):
            if "state" in item and "JB_job_number" in item:
                yield item["JB_job_number"], item["state"], item

    def _status(self, state: str, row: Any) -> JobStatus | None:
        found = state_of(state)
        if found is None:
            return None
        status, phase = found
        metadata: dict[str, Any] = {"native_state": state, "phase": phase,
                                    "submit_time": _utc(row.get("JB_submission_time"), _XML_TIME)}
        started = _utc(row.get("JAT_start_time"), _XML_TIME)
        if status is JobState.ACTIVE:
            queue, _, host = row.get("queue_name", "").partition("@")
            metadata |= {"start_time": started, "queue": queue or None, "processors": number(row.get("slots", ""))}
            if host and metadata["processors"] == 1:
                metadata |= {"nodes": [host], "node_count": 1}
        message = "Grid Engine cannot start it (state E); qstat -j says why" if phase == "ERROR" else None
        return JobStatus(status, time=metadata.get("start_time") or metadata["submit_time"], message=message,
                         metadata={key: value for key, value in metadata.items() if value is not None})

    def _sources(self, native_ids: list[str]) -> list[Source]:
        return [Source("qacct", [[*_UTC, "qacct", "-j", one] for one in native_ids[:_QACCT_AT_ONCE]], parse_qacct)]

    # --- the rest --------------------------------------------------------------------------------------------------

    def get_cancel_command(self, native_id: str) -> list[str]:
        """qdel."""
        return ["qdel", native_id]

    def process_cancel_command_output(self, exit_code: int, out: str) -> None:
        """qdel fails for a job that has ended."""
        if "does not exist" in out:
            raise InvalidJobStateError(out.strip())
        raise SubmitException(f"qdel failed: {out.strip() or exit_code}", transient=_LATER.search(out) is not None)

    def get_list_command(self) -> list[str]:
        """qstat: the user's jobs that have not ended."""
        return [*self.get_status_command([])]

    def parse_list_output(self, out: str) -> list[str]:
        """The ids, each once."""
        return list(dict.fromkeys(native_id for native_id, _, _ in self._rows(0, out)))


def _slots(asked: ResourceSpecV1) -> int:
    return asked.computed_process_count * (asked.cpu_cores_per_process or 1)


def _named(member: str, resource: str | None, setting: str) -> str:
    if resource is None:
        raise InvalidJobException(f"resources.{member}: only the site knows the resource for it: set {setting} in "
                                  "SGEExecutorConfig, or request it with the custom attribute sge.l (qconf -sc lists "
                                  "them)")
    return resource


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
        return _fitted(re.sub(r"[^A-Za-z0-9_.+=-]", "_", value))
    unfit = _NAME_UNFIT.search(value)
    if not value or unfit or value[0].isdigit():
        what = f"contains {unfit[0]!r}" if unfit else "is empty or begins with a digit"
        raise InvalidJobException(f"name {value!r} {what}, which Grid Engine does not take as the name of a job")
    return value


def _fitted(name: str) -> str:
    name = _NAME_UNFIT.sub("_", name)
    return f"_{name}" if not name or name[0].isdigit() else name


def state_of(letters: str) -> tuple[JobState, str | None] | None:
    """State and phase for the letters of a state column; None when they say nothing about it."""
    found = next(((state, phase) for some, state, phase in _LETTERS if any(one in letters for one in some)), None)
    if "d" in letters:
        return (found[0] if found is not None else JobState.ACTIVE), "CANCELING"
    return found


def _job_lists(out: str) -> Iterator[dict[str, str]]:
    """The ``job_list`` elements, as names and texts. Raises ValueError when it is not the whole answer."""
    from lxml import etree

    try:
        root = etree.fromstring(out.encode("utf-8", "surrogateescape"), _parser())
    except etree.XMLSyntaxError as e:
        raise ValueError(f"qstat gave no XML: {e}") from e
    if root.tag != "job_info":
        raise ValueError(f"qstat gave {root.tag}")
    for element in root.iter("job_list"):
        yield {str(child.tag): child.text or "" for child in element}


def _parser() -> Any:
    from lxml import etree

    return etree.XMLParser(resolve_entities=False, no_network=True, recover=False, encoding="utf-8")


def _utc(text: str | None, form: str) -> float | None:
    try:
        return float(calendar.timegm(time.strptime(text or "", form)))
    except ValueError:
        return None


def _quantity(text: str) -> float | None:
    match = _QUANTITY.fullmatch(text.strip())
    return float(match[1]) * _FACTORS[match[2]] if match and match[1].replace(".", "", 1).isdecimal() else None


def parse_qacct(exit_code: int, out: str) -> dict[str, JobStatus]:
    """Statuses from ``qacct -j``; of several records of a job, the last. None for a job without a record.

    Tasks of an array have the number of the array and their own ``taskid``; they are parts of one job, not runs of it.
    """
    if exit_code != 0 and "not found" in out:
        return {}
    check_status_exit_code("qacct", exit_code, out)
    records: dict[str, dict[str, list[dict[str, str]]]] = {}
    for block in re.split(r"^=+\n", out, flags=re.MULTILINE)[1:]:
        pairs = (line.partition(" ") for line in block.splitlines())
        record = {name: value.strip() for name, _, value in pairs if name}
        if {"jobnumber", "failed", "exit_status", "end_time"} <= record.keys():
            tasks = records.setdefault(record["jobnumber"], {})
            tasks.setdefault(record.get("taskid", ""), []).append(record)
    statuses = ((native_id, _of_tasks([_record(tasks[task]) for task in sorted(tasks, key=lambda t: (len(t), t))]))
                for native_id, tasks in records.items())
    return {native_id: status for native_id, status in statuses if status is not None}


def _of_tasks(tasks: Sequence[JobStatus | None]) -> JobStatus | None:
    """The status of an array: from its first start to its last end, the exit of the first task that failed.

    Usage is added up; of memory, slots and runs it is the most that one task had. None where a task will run again.
    """
    known = [task for task in tasks if task is not None]
    if len(known) < 2 or len(known) < len(tasks):
        return known[0] if len(known) == len(tasks) else None
    counts = next((task for task in known if task.state is JobState.FAILED), known[0])
    facts = dict(counts.metadata or {})
    facts.pop("attempts", None)
    for key, choose in _ARRAY_FACTS.items():
        values = [task.metadata[key] for task in known if task.metadata and key in task.metadata]
        if values:
            facts[key] = choose(values)
    if "nodes" in facts:
        facts["nodes"] = list(dict.fromkeys(n for task in known for n in (task.metadata or {}).get("nodes", ())))
    return JobStatus(counts.state, time=facts["end_time"], exit_code=counts.exit_code, message=counts.message,
                     metadata=facts)


def _runs(records: list[dict[str, str]]) -> list[list[dict[str, str]]]:
    """The records of a job by run, in order of time; of each run the one of the job itself last.

    Tasks of a parallel environment that accounts for them one by one (accounting_summary, sge_pe(5)) have records like
    the job's own, written as they end. qacct does not name them; they lie within the time of the run that they are of.
    """
    if len(records) == 1 or all(record.get("granted_pe", "NONE") == "NONE" for record in records):
        return [[record] for record in records]
    runs: list[list[dict[str, str]]] = []
    spans = [(_utc(record.get("start_time"), _ACCT_TIME) or 0.0, _utc(record["end_time"], _ACCT_TIME) or 0.0)
             for record in records]
    end = -1.0
    # the longest first of those that begin together, the last written first of those that also end together
    for place in sorted(range(len(records)), key=lambda n: (spans[n][0], -spans[n][1], -n)):
        again = runs and runs[-1][-1]["failed"].split(" ")[0] == str(_RUN_AGAIN)
        if spans[place][0] and spans[place][1] <= end and not (again and spans[place][0] >= end):
            runs[-1].insert(0, records[place])
        else:
            runs.append([records[place]])
            end = spans[place][1]
    return runs


def _record(records: list[dict[str, str]]) -> JobStatus | None:
    runs = _runs(records)
    last = runs[-1][-1]
    failed, code = (int(re.match(r"\d*", last[name])[0] or -1) for name in ("failed", "exit_status"))  # type: ignore[index]
    if failed in _NOT_OVER:
        return None
    metadata: dict[str, Any] = {"native_state": f"failed {last['failed']}" if failed else "done",
                                "submit_time": _utc(runs[0][-1].get("qsub_time"), _ACCT_TIME) or None,
                                "end_time": _utc(last["end_time"], _ACCT_TIME),
                                "account": last["project"] if last.get("project", "NONE") != "NONE" else None}
    started = _utc(last.get("start_time"), _ACCT_TIME)
    if started is not None and failed in (0, _TIME_LIMIT, _SIGNALED):
        cpu = [seconds for one in records if (seconds := _quantity(one.get("cpu", ""))) is not None]
        walls = [seconds for run in runs if (seconds := _quantity(run[-1].get("ru_wallclock", ""))) is not None]
        memory = max(map(_resident, records), default=0)
        metadata |= {"start_time": started, "wall_seconds": sum(walls) if walls else None,
                     "queue": last.get("qname"), "processors": _whole(last.get("slots", "")),
                     "cpu_seconds": sum(cpu) if cpu else None, "memory_max_bytes": int(memory) if memory else None,
                     "memory_average_bytes": _average(records, sum(cpu)),
                     "starts": len(runs),
                     "attempts": [_attempt(run[-1]) for run in runs] if len(runs) > 1 else None}
        if last.get("granted_pe") == "NONE":
            metadata |= {"nodes": [last["hostname"]], "node_count": 1}
    state = JobState.COMPLETED if failed == 0 and code == 0 else JobState.FAILED
    passed = _limit(last, failed, code)
    if passed is not None:
        metadata["reason"] = passed
    elif failed == _SIGNALED and code > 128:
        metadata |= {"reason": "signal", "signal": code - 128}
    elif failed not in (0, _SIGNALED):
        metadata["reason"], code = "launch", -1
    return JobStatus(state, time=metadata["end_time"], exit_code=code if code >= 0 else None,
                     message=_WORDS.get(passed or "") or _said(metadata.get("reason"), last["failed"]),
                     metadata={key: value for key, value in metadata.items() if value is not None})


def _resident(record: Mapping[str, str]) -> float:
    """The greatest resident size of a process in bytes; 0 for none.

    Univa's ``maxrss`` has a unit. ru_maxrss is in kilobytes, which 8.1.9 takes for bytes when it makes a text of them:
    ``47.777KB`` are 48924 KB.
    """
    return _quantity(record.get("maxrss", "")) or 1024 * (_quantity(record.get("ru_maxrss", "")) or 0)


def _average(records: list[dict[str, str]], cpu: float) -> int | None:
    """``mem``, which is memory integrated over CPU time, by the CPU time; None where it was not sampled."""
    used = sum(_quantity(one.get("mem", "")) or 0 for one in records)
    return int(used / cpu) if used and cpu else None


def _said(reason: str | None, failed: str) -> str | None:
    """Grid Engine's own words for a start that failed: ``28  : changing into working directory``."""
    words = failed.partition(":")[2].strip()
    return f"Grid Engine says {words}" if reason == "launch" and words else None


def _limit(record: Mapping[str, str], failed: int, code: int) -> str | None:
    """The limit that ended a job: the record says that one did, the requests in it say which.

    A soft limit sends a signal that may also have come from elsewhere, so it counts where the job had used it up.
    """
    asked = {name: _limit_value(value) for name, value in _ASKED.findall(record.get("category", ""))}
    used = {"rt": _quantity(record.get("ru_wallclock", "")), "cpu": _quantity(record.get("cpu", ""))}
    passed = {name for name, most in asked.items()
              if most is not None and (has := used.get(name.partition("_")[2])) is not None and has >= most - 1}
    if failed == _TIME_LIMIT:
        if "h_rt" in passed or not asked.keys() & {"h_cpu", "h_vmem"}:
            return "timeout"
        return "cpu-limit" if "h_cpu" in passed else "memory" if "h_vmem" in asked else "timeout"
    if failed == _SIGNALED:
        return next((reason for name, signal, reason in _SOFT if code == 128 + signal and name in passed), None)
    return None


def _limit_value(text: str) -> float | None:
    """A limit in seconds: a number, or hours:minutes:seconds, of which each part may be empty."""
    parts = text.split(":")
    if not all(part == "" or part.replace(".", "", 1).isdecimal() for part in parts) or len(parts) not in (1, 3):
        return None
    seconds = 0.0
    for part in parts:
        seconds = seconds * 60 + float(part or 0)
    return seconds


def _attempt(run: dict[str, str]) -> dict[str, Any]:
    """One run of a job that was run again."""
    code = _whole(run["exit_status"].split(" ")[0])
    signaled = run["failed"].startswith(str(_SIGNALED)) and code is not None and code > 128
    found = {"native_state": f"failed {run['failed']}" if run["failed"] != "0" else "done",
             "exit_code": None if signaled else code, "signal": code - 128 if signaled and code is not None else None,
             "nodes": [run["hostname"]] if run.get("granted_pe") == "NONE" else None,
             "start_time": _utc(run.get("start_time"), _ACCT_TIME), "end_time": _utc(run["end_time"], _ACCT_TIME),
             "wall_seconds": _quantity(run.get("ru_wallclock", "")) or None}
    return {key: value for key, value in found.items() if value is not None}


def _whole(text: str) -> int | None:
    return int(text) if text.isdecimal() else None
