"""IBM Spectrum LSF: bsub, bjobs, bhist, bkill.

States, also of jobs that ended a short while ago (CLEAN_PERIOD, an hour by default), come from one ``bjobs -a -json``
(10.1.0.2 and later); the end of older ones from ``bhist -l``. Sources: bsub(1), bjobs(1),
bhist(1), lsbatch.h of openlava; outputs of bjobs 10.1 in the tests of public clients. No LSF was at hand to record
from.

A process is ``cpu_cores_per_process`` slots, which sites make of cores unless they say otherwise. Numbers without a
unit mean what a site has set, so that memory always has one; how it is shared out is said too (``/host``,
``/task``), which needs 10.1.0.9: older releases refuse it.

Times are taken from bjobs only where it prints seconds and the year; by default it has neither, and the exit file has
both. A job that was killed and one that exited with 128 + signal look the same when bjobs gives no reason: it is a code
then.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from psij.exceptions import InvalidJobException
from psij.executors.batch._answers import by_tag, readable, standing
from psij.executors.batch._changes import Changes
from psij.executors.batch._cluster import Cluster, first
from psij.executors.batch._identity import Claim, Whose, tags_in
from psij.executors.batch._options import (
    custom_directives,
    job_name,
    local_time,
    member_directives,
    requested,
    share,
    time_limit,
)
from psij.executors.batch._terms import Orders
from psij.executors.batch.batch_scheduler_executor import (
    BatchSchedulerExecutorConfig,
    Source,
    check_status_exit_code,
)
from psij.executors.batch.lrm import LrmExecutor, Row
from psij.job import Job
from psij.job_spec import JobSpec
from psij.job_state import JobState
from psij.job_status import JobStatus
from psij.resource_spec import ResourceSpecV1
from psij.surroundings import Told
from sssjob.lrm.lsf import ANSWERS, STATES, moment, reason_of, recorded, run_limit, waits_for
from sssjob.lrm.names import JOB_NAMES
from sssjob.lrm.states import NativeState, Stage
from sssjob.lrm.usage import Usage, present
from sssjob.templates.quoting import Directive, bsub

__all__ = ["LsfExecutorConfig", "LsfJobExecutor", "parse_bhist"]


_UTC = ["env", "TZ=UTC0", "LSB_DISPLAY_YEAR=Y"]
_FIELDS = ("jobid jobindex stat queue exit_code exit_reason exec_host submit_time start_time finish_time cpu_used "
           "run_time max_mem proj_name job_description")
_RECORD = re.compile(r"\{[^{}]*\}")
_RECORDS_END = re.compile(r"\}\s*\]\s*\}")
_SUMMARY: Final = "\nSummary of time in seconds spent"
_NO_JOBS = re.compile(r"^No (?:unfinished |matching )?job found", re.MULTILINE)
_TERM = re.compile(r"TERM_([A-Z_]+)")
_LONGEST_NAME = 4094        # bytes
_TAG = "sssjob:"            # before the id of the job, in its description
_HISTORIES_AT_ONCE = 50

_BLOCK = re.compile(r"^Job <(\d+)(\[\d+\])?>", re.MULTILINE)
_EVENT = re.compile(r"^[A-Z][a-z]{2} [A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d(?: \d{4})?: +(.*)$", re.MULTILINE)
_END = re.compile(r"(Donesuccessfully)|Exitedwithexitcode(\d+)|Exitedbysignal(\d+)|Exited|Completed<exit>")

_REFUSED = {
    "J": "use name; a PSI/J job is one job", "Jd": "psij finds its jobs by it", "pack": "a PSI/J job is one job",
    **dict.fromkeys(("o", "oo"), "use stdout_path"), **dict.fromkeys(("e", "eo"), "use stderr_path"),
    **dict.fromkeys(("i", "is"), "use stdin_path"), "cwd": "use directory", "env": "use environment",
    "L": "the script is one of bash", **dict.fromkeys(("K", "I", "Ip", "IS", "ISp", "ISs", "Is", "IX", "tty"),
                                                      "it would hold up submit(); use Job.wait()"),
    **dict.fromkeys(("h", "help", "V"), "no job would be made"), "jsdl": "the job is described already"}

# Variables of bsub that hide its answer, or make no job.
_UNSET = ("BSUB_BLOCK", "BSUB_CHK_RESREQ", "BSUB_QUIET", "BSUB_QUIET2")



# LSB_MCPU_HOSTS: hosts and their slots in turns; the first one may be the launch node.
_SLOTS_HERE = ("$(echo ${LSB_MCPU_HOSTS:-} | awk -v here=\"$(uname -n)\" "
               "'{ for (i = 1; i < NF; i += 2) if (index(here \".\", $i \".\") == 1 || index($i, here \".\") == 1) "
               "{ print $(i + 1); exit } }')")


class LsfExecutorConfig(BatchSchedulerExecutorConfig):
    """Settings of the LSF executor."""


class LsfJobExecutor(LrmExecutor):
    """Executor ``lsf``. Custom attributes ``lsf.<option>`` are options of bsub, without the dash."""

    _ANSWERS = ANSWERS
    #: bstop would suspend a job that runs; brequeue takes jobs that are not rerunnable too.
    _ORDERS = Orders("bkill {}", re.compile("already finished|no matching job|is not found", re.IGNORECASE),
                     hold="bstop {}", release="bresume {}", rerun="brequeue {}",
                     suspend="bstop {}", resume="bresume {}", signal="bkill -s {signal} {}", held={"H": True})
    #: bmod(1), of which all requirements are given again. Whether a job that runs may have another limit is up to the
    #: site (LSB_MOD_ALL_JOBS).
    _CHANGES = Changes("bmod {changes} {id}", {option: f"-{option}" for option in (
        "G", "J", "M", "P", "R", "U", "W", "app", "n", "q", "sla", "sp")}, live=frozenset("W"))
    _TEMPLATE = "lsf.sh.j2"
    _SLOTS_ARE_CORES = True
    _PREFIX = "lsf"
    _CONFIG = LsfExecutorConfig
    _CHOOSING = ("LSF_ENVDIR",)
    _WRITTEN = staticmethod(bsub)
    SCRIPT_FORMAT = "lsf"
    _STATES, _STATE_KIND = STATES, "LSF's job state"
    _TOLD = Told("", {"native_id": ("$LSB_JOBID", 1),       # LSB_MCPU_HOSTS: this host, its slots, others
                      "processors": (_SLOTS_HERE, 1)},
                 # blaunch(1): without a shell of its own, on the hosts of this list
                 'blaunch -no-shell -z "$(sort -u "$LSB_DJOB_HOSTFILE" | tr "\\n" " ")" "$@"')

    # --- submitting ------------------------------------------------------------------------------------------------

    def get_submit_command(self, job: Job, submit_file_path: Path) -> list[str]:
        """bsub, which reads options everywhere only from a script on its standard input.

        It would wait for room in a full queue by itself, for ever unless LSB_NTRIES says how often.
        """
        unset = [word for name in _UNSET if name in self.host.environ for word in ("-u", name)]
        once = [] if "LSB_NTRIES" in self.host.environ else ["LSB_NTRIES=1"]
        around = ["env", *unset, *once] if unset or once else []
        return [*around, "/bin/sh", "-c", 'exec bsub <"$1"', "sh", str(submit_file_path)]

    def _lookup_commands(self, tags: Sequence[str]) -> list[list[str]]:
        """The tag is the description of the job."""
        return [self._bjobs("-a", "-json", "-o", "jobid job_description")]

    def _parse_lookup(self, out: str) -> dict[str, list[str]]:
        return by_tag(((text.removeprefix(_TAG), row["JOBID"]) for row in _records(0, out)
                       if (text := row.get("JOB_DESCRIPTION", "")).startswith(_TAG)), int)

    def dependency_attributes(self, after: Mapping[str, Sequence[str]]) -> dict[str, object] | None:
        """``-w``, a condition."""
        words = {"ok": "done", "notok": "exit", "any": "ended"}
        return {"lsf.w": " && ".join(f"{words[kind]}({native_id})" for kind, ids in after.items() for native_id in ids)}

    def begin_attributes(self, at: float) -> dict[str, object] | None:
        """``-b [[year:][month:]day:]hour:minute``, by local time; the next full minute."""
        begin = local_time(-(-at // 60) * 60, "%Y:%m:%d:%H:%M", self.host)
        return None if begin is None else {"lsf.b": begin}

    def _cluster_command(self) -> list[str]:
        return ["lsid"]

    def _cluster(self, out: str) -> Cluster | None:
        """The name; the host of its master changes when that fails."""
        name = first(r"^My cluster name is (\S+)", out)
        return Cluster(name) if name else None

    def fit_name(self, name: str) -> str:
        """Without brackets, which begin an array."""
        return JOB_NAMES["lsf"].fitted(name)

    def _directives(self, job: Job, spec: JobSpec) -> list[Directive]:
        name = job_name(spec, _LONGEST_NAME)
        if re.search(r"[\[\]]", name.value or ""):
            raise InvalidJobException(f"name {name.value!r} contains a bracket, which begins an array in LSF")
        directives = [Directive("J", name.value, name.field), Directive("Jd", _tag(job)), Directive("o", "/dev/null")]
        directives += member_directives(spec, (("q", "queue_name"), ("P", "account"), ("U", "reservation_id")))
        if (limit := time_limit(spec)) is not None:
            directives.append(Directive("W", self._format_duration(limit), "attributes.duration"))
        asked = requested(spec)
        if asked is not None:
            directives += _resource_directives(asked)
        custom = custom_directives(spec, self._PREFIX, _REFUSED)
        for directive in custom:
            for other in directives:
                if directive.option == other.option != "R":       # requirements are joined
                    raise InvalidJobException(f"{directive.field} and {other.field} say the same")
        return directives + custom

    def _format_duration(self, duration: timedelta) -> str:
        """``hours:minutes``, rounded up."""
        return run_limit(-int(-duration.total_seconds() // 1))

    # --- states ----------------------------------------------------------------------------------------------------

    def _bjobs(self, *words: str) -> list[str]:
        """bjobs for the user's jobs. That there is none it says on standard error."""
        return [*_UTC, "/bin/sh", "-c", 'exec bjobs "$@" 2>&1', "sh", "-u", self._current_user(), *words]

    def get_status_command(self, native_ids: Iterable[str]) -> list[str]:
        """bjobs for all jobs of the user, with those that ended a short while ago."""
        return self._bjobs("-a", "-json", "-o", _FIELDS)

    def _rows(self, exit_code: int, out: str) -> Iterator[Row]:
        for record in readable("bjobs", _records(exit_code, out), lambda record: record.get("JOBID") and record.get(
                "STAT")):
            index = record.get("JOBINDEX", "")
            yield record["JOBID"] + (f"[{index}]" if index not in ("", "0") else ""), record["STAT"], record

    def _claim(self, row: Any) -> Claim:
        """By the description; bjobs is asked for jobs of the user only."""
        description = row.get("JOB_DESCRIPTION")
        return Claim(None if description is None else tags_in(description), submit_time=moment(row.get("SUBMIT_TIME")))

    def _told_status(self, native: NativeState, common: JobState, row: Any) -> JobStatus | None:
        job = recorded(row)
        metadata = job.facts(began=common is not JobState.QUEUED, over=common.final) | standing(native, common)
        if common.final:
            return _end(native, job, row.get("EXIT_REASON", ""), metadata)
        return JobStatus(common, time=metadata.get("start_time") or job.submit_time, metadata=metadata)

    _ACCOUNTED_AT_ONCE = _HISTORIES_AT_ONCE

    def _reasons_command(self, native_ids: list[str]) -> list[str]:
        """bjobs in a form of its own: releases that do not know the field refuse the whole question."""
        return self._bjobs("-json", "-o", "jobid jobindex stat pend_reason")

    def _reasons(self, exit_code: int, out: str) -> dict[str, tuple[str | None, str]]:
        reasons_by_id = ((native_id, row.get("PEND_REASON", "").strip()) for native_id, _,
                         row in self._rows(exit_code, out))
        return {native_id: (waits_for(text), text) for native_id, text in reasons_by_id if text not in ("", "-")}

    def _sources(self, native_ids: list[str]) -> list[Source]:
        ids = native_ids[:_HISTORIES_AT_ONCE]
        return [Source("bhist", [["bhist", "-l", *ids]] if ids else [], parse_bhist, late=True)]

    # --- the rest --------------------------------------------------------------------------------------------------

    def get_list_command(self) -> list[str]:
        """bjobs, with those that ended a short while ago: it fails where there is no job at all."""
        return self.get_status_command(())

    def parse_list_output(self, out: str) -> list[str]:
        """The ids of those that have not ended."""
        return [native_id for native_id, state, _ in self._rows(0, out) if state not in (
            "DONE", "EXIT", "POST_DONE", "POST_ERR")]

    def _run_command(self, cmd: list[str]) -> str:
        """As in the base; ``No job found``, for which bjobs may fail, is an answer."""
        try:
            return super()._run_command(cmd)
        except subprocess.CalledProcessError as e:
            if "bjobs" in " ".join(cmd) and _NO_JOBS.search(e.output or ""):
                return str(e.output)
            raise


def _tag(job: Job) -> str:
    return f"{_TAG}{job.id}"


def _resource_directives(asked: ResourceSpecV1) -> list[Directive]:
    """A process is as many slots as it has cores. Nodes are fixed only when they follow from what is said."""
    processes, cores = asked.computed_process_count, asked.cpu_cores_per_process or 1
    slots = processes * cores
    fixed = asked.node_count is not None or asked.processes_per_node is not None
    here = asked.computed_processes_per_node
    one_host = asked.computed_node_count == 1 if fixed else processes == 1
    directives = [Directive("n", str(slots), "resources.process_count")]
    if one_host and slots > 1:
        directives.append(Directive("R", "span[hosts=1]", "resources.node_count"))
    elif fixed and slots > 1:
        directives.append(Directive("R", f"span[ptile={here * cores}]", "resources.processes_per_node"))
    elif cores > 1:
        directives.append(Directive("R", f"span[block={cores}]", "resources.cpu_cores_per_process"))
    if asked.memory is not None:
        parts, method = (asked.computed_node_count if fixed else 1, "host") if fixed or one_host else (slots, "task")
        kilobytes = max(1, share(share(asked.memory, parts), 1024))
        directives.append(Directive("R", f"rusage[mem={kilobytes}KB/{method}]", "resources.memory"))
    if asked.gpu_cores_per_process:
        directives.append(_gpus(asked.gpu_cores_per_process, here if fixed else 1, cores, fixed or one_host))
    if asked.exclusive_node_use:
        directives.append(Directive("x", None, "resources.exclusive_node_use"))
    return directives


def _gpus(each: int, processes: int, slots: int, by_host: bool) -> Directive:
    """GPUs of a host where its processes are known, else of a slot."""
    field = "resources.gpu_cores_per_process"
    if by_host:
        return Directive("gpu", f"num={each * processes}/host", field)
    if each % slots:
        raise InvalidJobException(f"{field}={each}: LSF gives GPUs to hosts or slots, and a process has {slots} slots "
                                  "on hosts that are not fixed: state node_count or processes_per_node")
    return Directive("gpu", f"num={each // slots}/task", field)


def _records(exit_code: int, out: str) -> list[dict[str, str]]:
    """The records of an answer in JSON; one that is no JSON is left out. Raises ValueError where it is cut off."""
    begin = out.find("{")
    if begin < 0:
        if _NO_JOBS.search(out):
            return []
        check_status_exit_code("bjobs", exit_code, out)
        raise ValueError(f"bjobs gave no JSON: {out[:200]!r}")
    try:
        answer, _ = json.JSONDecoder(strict=False).raw_decode(out, begin)
        records = answer["RECORDS"]
    except (ValueError, KeyError, TypeError):
        records = [record for text in _RECORD.findall(out) if (record := _record(text))]
        if not records or not _RECORDS_END.search(out):
            raise ValueError(f"bjobs gave no records, or not all: {out[:200]!r}") from None
    return [{name: str(value) for name, value in record.items()} for record in records
            if isinstance(record, dict) and "ERROR" not in record]


def _record(text: str) -> dict[str, str] | None:
    try:
        record: dict[str, str] = json.loads(text, strict=False)
    except ValueError:
        return None
    return record


def _end(native: NativeState, job: Usage, reason_text: str, metadata: dict[str, Any]) -> JobStatus:
    """The final status. DONE has no code: it is 0. reason_text: the reason of the exit in LSF's words."""
    if native.stage is Stage.DONE:
        state = JobState.FAILED if job.exit_code else JobState.COMPLETED
        return JobStatus(state, time=job.end_time, exit_code=job.exit_code or 0, metadata=metadata)
    term = _TERM.search(reason_text)
    return _exit(term[1] if term else None, job.exit_code, job.ran, reason_text, metadata)


def _exit(term: str | None, code: int | None, ran: bool, reason_text: str, metadata: dict[str, Any]) -> JobStatus:
    """The status of a job that did not end well. term: what follows TERM_; reason_text: LSF's text, for people."""
    reason = reason_of(f"TERM_{term}") if term is not None else None
    if reason == "cancel":
        return JobStatus(JobState.CANCELED, time=metadata.get("end_time"), metadata=metadata)
    if reason is None and not code:
        reason = "unknown-exit" if ran else "launch"
    if reason is not None and code is not None and code > 128:
        metadata["signal"] = code - 128
    metadata |= present({"reason": reason})
    return JobStatus(JobState.FAILED, time=metadata.get("end_time"),
                     message=reason_text.strip() or None if reason else None,
                     exit_code=code or None, metadata=metadata)


def parse_bhist(exit_code: int, out: str, whose: Whose | None = None) -> dict[str, JobStatus]:
    """Statuses from ``bhist -l``; none for a job that is not known. Its lines are broken anywhere.

    Raises ValueError where the last history is cut off: a sum of times is behind it, as seen in all that is published.
    """
    if re.search(r"no matching job found", out, re.IGNORECASE) and "Job <" not in out:
        return {}
    check_status_exit_code("bhist", 0 if "Job <" in out else exit_code, out)
    blocks = _BLOCK.split(out)
    if _SUMMARY not in blocks[-1]:
        raise ValueError(f"the answer of bhist is cut off behind {out[-80:]!r}")
    histories = {}
    whose = Whose() if whose is None else whose
    for number_, index, text in zip(blocks[1::3], blocks[2::3], blocks[3::3], strict=True):
        native_id = number_ + (index or "")
        if whose.takes(native_id, _described(text)):
            histories[native_id] = _history([
                re.sub(r"\s+", "", event) for event in _EVENT.findall(re.sub(r"\n {10,}", "", text))])
    return histories


def _described(text: str) -> Claim:
    """Whose a history is: by the description, where it shows one, and by the user. Its times have no year."""
    text_joined = re.sub(r"\s+", "", text)
    user = re.search(r",User<([^<>]+)>", text_joined)
    return Claim(tags_in(text_joined) or None, None if user is None else user[1])


def _history(events: list[str]) -> JobStatus:
    """The status after these events, which are without blanks."""
    end, ran, termination = None, False, None
    for event in events:
        match = _END.match(event)
        if match is not None:
            end = end if end is not None and match[0] == "Completed<exit>" else match
            termination = _TERM.search(event) or termination
        elif re.match(r"Start|Dispatched|Pending", event):
            end, termination = None, None
            ran = ran or not event.startswith("Pending")
    if end is None:
        state, native = (JobState.ACTIVE, "RUN") if ran else (JobState.QUEUED, "PEND")
        return JobStatus(state, metadata={"native_state": native})
    if end[1]:
        return JobStatus(JobState.COMPLETED, exit_code=0, metadata={"native_state": "DONE"})
    code = int(end[2]) if end[2] else 128 + int(end[3]) if end[3] else None
    term = termination[1] if termination else "EXTERNAL_SIGNAL" if end[3] else None
    return _exit(term, code, ran, f"TERM_{term}" if term else "", {"native_state": "EXIT"})
