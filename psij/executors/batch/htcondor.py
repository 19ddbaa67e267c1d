"""HTCondor: condor_submit, condor_q, condor_history, condor_rm.

A job is a vanilla universe job of one machine. The submit description (``templates/htcondor.sub.j2``) is there while
condor_submit runs; it has bash run the submit script, so that the work directory must be on a file system that the
execute machines share. Ended jobs leave the queue; ``condor_history`` has how they ended. ``url`` is the name of a
schedd, where it is not the default one. The submit description was tried with the parser of the 23.0 bindings; commands
were not run: their output is as the manual and the source have it. Sources: condor_submit(1), condor_q(1),
condor_history(1), Job ClassAd Attributes, src/condor_utils of 23.0.

There are no queues and no reservations. Limits on time and whole machines are matters of a site; here a time limit is
an expression of periodic_remove, which HTCondor evaluates about once a minute. A submit command that HTCondor does not
know is taken for a macro and has no effect; condor_submit only warns of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from psij._validate import attached_id
from psij.exceptions import InvalidJobException
from psij.executors.batch._answers import by_tag, job_state, readable, waiting
from psij.executors.batch._changes import Changes, megabytes
from psij.executors.batch._cluster import Cluster
from psij.executors.batch._identity import Claim, Whose
from psij.executors.batch._options import custom_directives, job_name, requested, resources, share
from psij.executors.batch._terms import Orders
from psij.executors.batch.batch_scheduler_executor import (
    Source,
    SourceOffError,
    check_status_exit_code,
)
from psij.executors.batch.lrm import LrmExecutor, Row
from psij.job import Job
from psij.job_spec import JobSpec
from psij.job_state import JobState
from psij.job_status import JobStatus
from psij.resource_spec import ResourceSpecV1
from psij.surroundings import Told
from sssjob.lrm.answers import json_answer
from sssjob.lrm.htcondor import ANSWERS, CPU, NUMBERS, STATES, recorded, state_of
from sssjob.lrm.states import Stage
from sssjob.lrm.usage import present
from sssjob.lrm.waits import TURN
from sssjob.templates import render
from sssjob.templates.quoting import Directive, QuotingError, condor, condor_string

__all__ = ["HTCondorJobExecutor"]


_REMOVED, _COMPLETED = 3, 4     # of NUMBERS
_GROUP = re.compile(r"[\w.@-]+", re.ASCII)
_LONGEST_NAME = 1024        # bytes; a guess: the manual names no limit
_IDS_AT_ONCE = 200
_TAGS_NAMED = 100           # in one constraint; where more are looked for, all jobs with a tag are asked for
_RECENT_ADS = "10000"       # of the history, in which a job is looked for by its tag
_SPOOLING = 16              # HoldReasonCode: input files are on their way; no hold

_QUEUE = ("SssjobId,Owner,ClusterId,ProcId,JobStatus,QDate,JobStartDate,RemoteHost,CpusProvisioned,HoldReason,"
          "HoldReasonCode,LastRejMatchReason")
_LONGEST_REASON = 400
_HISTORY = ("SssjobId,Owner,ClusterId,ProcId,JobStatus,QDate,JobStartDate,CompletionDate,EnteredCurrentStatus,"
            "LastRemoteHost,CpusProvisioned,GPUsProvisioned,NumJobStarts,ExitCode,ExitBySignal,ExitSignal,RemoveReason,"
            "RemoteWallClockTime,CumulativeSuspensionTime,ResidentSetSize,ResidentSetSize_RAW,AcctGroup,"
            + ",".join(chain.from_iterable(CPU)))

# SCHEDD_HOST: where the commands go. Without a SCHEDD_NAME a schedd has the name of its host.
_SCHEDD = "for v in SCHEDD_HOST SCHEDD_NAME FULL_HOSTNAME; do condor_config_val $v 2>/dev/null && break; done; :"
_TIME_LIMIT = "JobStatus == 2 && time() - JobCurrentStartDate > {}"
_BY_POLICY = re.compile(r"(?:job attribute|system macro) \w+ expression", re.IGNORECASE)


class _AnyCase(dict[str, str]):
    """Commands of submit descriptions, which are the same in any case of letters."""

    def __contains__(self, key: object) -> bool:
        return super().__contains__(str(key).lower())

    def __getitem__(self, key: str) -> str:
        return super().__getitem__(key.lower())


_REFUSED = _AnyCase({
    **dict.fromkeys(("executable", "arguments", "args", "arguments2", "transfer_executable"), "there is a script"),
    **dict.fromkeys(("output", "stdout"), "use stdout_path"), **dict.fromkeys(("error", "stderr"), "use stderr_path"),
    **dict.fromkeys(("input", "stdin"), "use stdin_path"),
    **dict.fromkeys(("initialdir", "initial_dir", "iwd"), "use directory"),
    **dict.fromkeys(("environment", "env", "environment2"), "use environment"), "getenv": "use inherit_environment",
    "universe": "jobs are of the vanilla universe", "queue": "a PSI/J job is one job",
    **dict.fromkeys(("if", "elif", "else", "endif", "include", "use", "warning"), "it is no submit command")})


class HTCondorJobExecutor(LrmExecutor):
    """Executor ``htcondor``. Custom attributes ``htcondor.<command>`` are commands of submit descriptions.

    Their values stand there as they are. ``htcondor.MY.<attribute>`` sets an attribute of the job to an expression.
    """

    _ANSWERS = ANSWERS
    #: condor_hold would end the run of a job that runs; a job that is vacated leaves its machine and is idle again.
    _ORDERS = Orders("condor_rm {}", re.compile("not found|couldn't find", re.IGNORECASE), hold="condor_hold {}",
                     release="condor_release {}", rerun="condor_vacate_job {}",
                     suspend="condor_suspend {}", resume="condor_continue {}", held={"hold": True})
    #: A job that runs would heed it when it begins again only. Sizes have units, where the attribute is a number.
    _CHANGES = Changes("condor_qedit {id} {changes}", _AnyCase({
        "my.jobbatchname": "JobBatchName=", "batch_name": "JobBatchName=", "periodic_remove": "PeriodicRemove=",
        "priority": "JobPrio=", "request_cpus": "RequestCpus=", "request_gpus": "RequestGPUs=",
        "request_memory": "RequestMemory=", "requirements": "Requirements=", "rank": "Rank="}),
        values={"request_memory": megabytes})
    _TEMPLATE = "htcondor.sh.j2"
    _PREFIX = "htcondor"
    _CHOOSING = ("CONDOR_CONFIG", "SCHEDD_HOST", "SCHEDD_NAME")
    _WRITTEN = staticmethod(condor)
    SCRIPT_FORMAT = "htcondor"
    _TOLD = Told('_psij_ad() { sed -n "s/^$1 = \\([0-9]*\\).*/\\1/p" "${_CONDOR_MACHINE_AD:-/dev/null}"; }\n', {
        "processors": ("$(_psij_ad Cpus)", 1), "node_processors": ("$(_psij_ad TotalCpus)", 1),
        "memory_bytes": ("$(_psij_ad Memory)", 1 << 20), "scratch_bytes": ("$(_psij_ad Disk)", 1 << 10)})

    def _there(self, command: str, *arguments: str) -> list[str]:
        return [command, *(["-name", self.url] if self.url else []), *arguments]

    # --- submitting ------------------------------------------------------------------------------------------------

    def get_submit_command(self, job: Job, submit_file_path: Path) -> list[str]:
        """condor_submit of the description that belongs to the script."""
        return self._there("condor_submit", "-terse", str(submit_file_path.with_suffix(".sub")))

    @contextmanager
    def _prepared(self, job: Job, path: Path) -> Iterator[None]:
        """The submit description."""
        ((description, text),) = self._beside(job, path).items()
        try:
            self.host.remove(description)
            self.host.write(description, text.encode("utf-8", "surrogateescape"))
            yield
        finally:
            if not self.config.keep_files:
                self.host.remove(description)

    def _beside(self, job: Job, path: Path) -> Mapping[Path, str]:
        """The submit description."""
        assert job.spec is not None
        try:
            text = render("htcondor.sub.j2", {"script": path, "script_dir": self.work_directory, "job_id": job.id,
                                              "directives": self._directives(job, job.spec)})
        except QuotingError as e:
            raise InvalidJobException(str(e), e) from e
        return {path.with_suffix(".sub"): text}

    def attach(self, job: Job, native_id: str) -> None:
        """Follow a job of HTCondor. native_id: cluster and process, or a cluster, of which process 0 is meant."""
        text = attached_id(job, native_id)
        super().attach(job, f"{text}.0" if re.fullmatch(r"\d{1,10}", text, re.ASCII) else text)

    def _lookup_commands(self, tags: Sequence[str]) -> list[list[str]]:
        """The tag is an attribute of the job."""
        constraint = (" || ".join(f"SssjobId == {json.dumps(tag)}" for tag in tags) if len(tags) <= _TAGS_NAMED
                      else "SssjobId isnt undefined")
        query = ["-json", "-attributes", "ClusterId,ProcId,SssjobId", "-constraint", constraint]
        return [self._there("condor_q", *query),
                self._there("condor_history", *query, "-scanlimit", _RECENT_ADS)]

    def _parse_lookup(self, out: str) -> dict[str, list[str]]:
        return by_tag(((str(ad.get("SssjobId")), native_id) for native_id, ad in _ads(out)),
                      lambda ident: tuple(map(int, ident.split("."))))

    def _directives(self, job: Job, spec: JobSpec) -> list[Directive]:
        name = job_name(spec, _LONGEST_NAME)
        directives = [Directive("MY.JobBatchName", condor_string(name.value or "", name.field), name.field),
                      Directive("MY.SssjobId", condor_string(job.id))]
        if spec.inherit_environment:
            directives.append(Directive("getenv", "true"))
        attributes = spec.attributes
        custom = custom_directives(spec, self._PREFIX, _REFUSED)
        if attributes is not None:
            for field, what in (("queue_name", "queues"), ("reservation_id", "reservations")):
                if getattr(attributes, field) is not None:
                    raise InvalidJobException(f"attributes.{field} cannot be used: HTCondor has no {what}; a site may "
                                              "have an attribute for it (htcondor.MY.<attribute>)")
            if attributes.account is not None:
                directives.append(Directive("accounting_group", _group(attributes.account), "attributes.account"))
            if attributes.duration is not None:
                seconds = max(1, -int(-attributes.duration.total_seconds() // 1))
                others = [directive for directive in custom if directive.option.lower() == "periodic_remove"]
                conditions = [_TIME_LIMIT.format(seconds), *(directive.value or "true" for directive in others)]
                custom = [directive for directive in custom if directive not in others]
                directives.append(Directive("periodic_remove", " || ".join(
                    f"({condition})" for condition in conditions) if others else conditions[0], "attributes.duration"))
        asked = requested(spec)
        return directives + (_resource_directives(asked) if asked is not None else []) + custom

    def _template_context(self, job: Job, spec: JobSpec, context: Mapping[str, Any]) -> dict[str, Any]:
        asked = resources(spec) or ResourceSpecV1()
        return {**super()._template_context(job, spec, context), "processes": asked.computed_process_count}

    # --- states ----------------------------------------------------------------------------------------------------

    def _cluster_command(self) -> list[str] | None:
        return None if self.url else ["/bin/sh", "-c", _SCHEDD]

    def _cluster(self, out: str) -> Cluster | None:
        """The schedd: that of the url, else the one that the commands use, which has the name of the host by itself."""
        name = self.url or out.strip().rpartition("\n")[2]
        return Cluster(name) if name else None

    def get_status_command(self, native_ids: Iterable[str]) -> list[str]:
        """condor_q for all jobs of the user."""
        return self._there("condor_q", "-json", "-attributes", _QUEUE + ",ExitCode,ExitBySignal,ExitSignal")

    def _rows(self, exit_code: int, out: str) -> Iterator[Row]:
        check_status_exit_code("condor_q", exit_code, out)
        for native_id, ad in _ads(out):
            native = state_of(ad)
            yield native_id, str(ad.get("JobStatus")) if native is None else native.word, ad

    def _stands(self, state: str, row: Any) -> str:
        return f"{state} {row.get('HoldReason') or ''} {row.get('LastRejMatchReason') or ''}"

    def _claim(self, row: Any) -> Claim:
        return _claim(row)

    def _status(self, state: str, row: Any) -> JobStatus | None:
        return _queued(state, row)

    def _sources(self, native_ids: list[str]) -> list[Source]:
        commands = [self._there("condor_history", "-json", "-attributes", _HISTORY, "-limit", str(len(ids)), *ids)
                    for start in range(0, len(native_ids), _IDS_AT_ONCE)
                    if (ids := native_ids[start:start + _IDS_AT_ONCE])]
        return [Source("condor_history", commands, parse_history)]

    # --- the rest --------------------------------------------------------------------------------------------------

    def get_list_command(self) -> list[str]:
        """condor_q: the user's jobs."""
        return self._there("condor_q", "-json", "-attributes", "ClusterId,ProcId,JobStatus")

    def parse_list_output(self, out: str) -> list[str]:
        """Ids of the jobs that have not ended."""
        return [native_id for native_id, state, _ in self._rows(0, out) if not _is_over(state)]


def _group(name: str) -> str:
    if _GROUP.fullmatch(name) is None:
        raise InvalidJobException(f"attributes.account {name!r} is not the name of an accounting group of HTCondor: "
                                  "letters, digits and _ . @ -")
    return name


def _resource_directives(asked: ResourceSpecV1) -> list[Directive]:
    """All of a job on one machine: the parallel universe, for several, would start the script on each."""
    if asked.computed_node_count > 1:
        raise InvalidJobException(f"resources.node_count={asked.computed_node_count} cannot be used: a vanilla "
                                  "universe job of HTCondor has one machine")
    if asked.exclusive_node_use:
        raise InvalidJobException("resources.exclusive_node_use cannot be used: HTCondor has no request for a whole "
                                  "machine; a site may have an attribute for it (htcondor.MY.<attribute>)")
    processes = asked.computed_process_count
    field = "resources.process_count" if asked.cpu_cores_per_process is None else "resources.cpu_cores_per_process"
    directives = [Directive("request_cpus", str(processes * (asked.cpu_cores_per_process or 1)), field)]
    if asked.gpu_cores_per_process:
        directives.append(Directive("request_gpus", str(processes * asked.gpu_cores_per_process),
                                    "resources.gpu_cores_per_process"))
    if asked.memory is not None:
        directives.append(Directive("request_memory", f"{max(1, share(asked.memory, 1024))}KB", "resources.memory"))
    return directives


def _ads(out: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Ids and ads of an answer in JSON, which is empty when there is none. Raises ValueError for anything else."""
    ads = json_answer("HTCondor", out) if out.strip() else []
    if not isinstance(ads, list):
        raise ValueError(f"no list of ads: {out[:200]!r}")
    for ad in readable("HTCondor", ads, lambda ad: isinstance(ad, dict) and isinstance(
            ad.get("ClusterId"), int) and isinstance(ad.get("ProcId"), int)):
        yield f"{ad['ClusterId']}.{ad['ProcId']}", ad


def _is_over(state: str) -> bool:
    return state in STATES and STATES[state].stage is Stage.ENDED


def _queued(state: str, ad: Mapping[str, Any]) -> JobStatus | None:
    """The status for a job in the queue; None, with a warning, when its state is not known."""
    native = STATES.get(state)
    job_state_ = job_state(native, state, "HTCondor's JobStatus")
    if native is None or job_state_ is None:
        return None
    if native is NUMBERS[_COMPLETED]:
        return _ended(ad)
    job = recorded(ad)
    if native is NUMBERS[_REMOVED]:         # it may run on for a while
        job_state_ = JobState.ACTIVE if job.ran else JobState.QUEUED
    phase, message = native.phase, None
    if native.stage is Stage.HELD:
        message = f"held: {ad.get('HoldReason')}"
        if ad.get("HoldReasonCode") == _SPOOLING:
            message, phase = None, "STAGE_IN"
    metadata = job.facts(began=job_state_ is JobState.ACTIVE, over=False) | present({"phase": phase})
    if job_state_ is JobState.QUEUED and phase != "STAGE_IN" and native.stage in (Stage.WAITING, Stage.HELD):
        refused = ad.get("LastRejMatchReason") if native.stage is Stage.WAITING else None
        message = str(refused)[:_LONGEST_REASON] if refused else message
        metadata |= waiting(native, TURN if refused else None)
        if job.ran and job.submit_time is not None:     # it has begun before, and is in the queue again
            metadata["requeued"] = True
    return JobStatus(job_state_, time=metadata.get("start_time") or job.submit_time, message=message, metadata=metadata)


def _claim(ad: Mapping[str, Any]) -> Claim:
    """By the attribute that our jobs have, the owner and QDate."""
    tag, submitted = ad.get("SssjobId"), ad.get("QDate")
    return Claim(frozenset([tag] if isinstance(tag, str) else ()), str(ad.get("Owner") or "") or None,
                 submit_time=float(submitted) if isinstance(submitted, int | float) else None)


def parse_history(exit_code: int, out: str, whose: Whose | None = None) -> dict[str, JobStatus]:
    """Statuses from ``condor_history -json`` with the attributes of _HISTORY; none for a job without a record."""
    if exit_code != 0 and "no history file" in out.lower():
        raise SourceOffError(out.strip())
    check_status_exit_code("condor_history", exit_code, out)
    whose = Whose() if whose is None else whose
    return {native_id: _ended(ad) for native_id, ad in _ads(out) if whose.takes(native_id, _claim(ad))}


def _ended(ad: Mapping[str, Any]) -> JobStatus:
    """The status for a job that was completed or removed. Wall time is that of all its runs."""
    job = recorded(ad)
    metadata = {"native_state": NUMBERS[_COMPLETED].word} | job.facts(began=True, over=True)
    state, code, message = _outcome(ad, state_of(ad) is NUMBERS[_REMOVED], metadata)
    return JobStatus(state, time=job.end_time, message=message, exit_code=code, metadata=metadata)


def _outcome(ad: Mapping[str, Any], removed: bool,
             metadata: dict[str, Any]) -> tuple[JobState, int | None, str | None]:
    """State, exit code and message; reason and signal go into the metadata."""
    if removed:
        why = str(ad.get("RemoveReason") or "") or None
        if why is None or not _BY_POLICY.search(why):
            return JobState.CANCELED, None, why
        metadata["reason"] = "timeout" if "JobCurrentStartDate" in why else "policy"
        return JobState.FAILED, None, why
    signal, code = ad.get("ExitSignal"), ad.get("ExitCode")
    if ad.get("ExitBySignal") is True and isinstance(signal, int):
        metadata |= {"signal": signal, "reason": "signal"}
        return JobState.FAILED, 128 + signal, None
    if isinstance(code, int):
        return (JobState.FAILED if code else JobState.COMPLETED), code, None
    metadata["reason"] = "unknown-exit"
    return JobState.FAILED, None, None
