"""What Grid Engine says of jobs: its states, the listing of qstat, the records of qacct as statuses.

Text in, objects out. Sources: sge_status(5), qstat(1), qacct(1), accounting(5), queue_conf(5), sge_pe(5).
Seen with Son of Grid Engine 8.1.9.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from psij.executors.batch._array_jobs import of_elements
from psij.executors.batch._identity import Claim, RunRecord, Whose
from psij.executors.batch._terms import check_status_exit_code
from psij.job_state import JobState
from psij.job_status import JobStatus
from sssjob.lrm.answers import behind_notices
from sssjob.lrm.sge import (
    FAILED,
    NO_TIME,
    RAN,
    RUN_AGAIN,
    average,
    limit_passed,
    moment,
    numbers,
    records_of,
    runs_of,
    used_in,
)
from sssjob.lrm.usage import of_runs

#: What qacct says of a job without a record, and where there is no file of records: before the first job of a cluster
#: has ended, after the file was moved away, and always where the cluster keeps none (``accounting=false``). Seen.
_NO_RECORD = ("not found", "no jobs running since startup")
#: ``failed`` of a run that is not the last.
_NOT_OVER = (24, RUN_AGAIN)
_LINES_AT_ONCE = 1000       # jobs
_WORDS = {"timeout": "the time limit was reached", "cpu-limit": "the limit of CPU time was reached",
          "memory": "out of memory"}


def of_lines(path: Path, numbers: Sequence[str]) -> list[str]:
    """A command that asks for the records of several jobs: qacct takes one number and reads the whole file for it, so
    it is given the lines of these jobs alone. Before the number of a job come queue, host, group, owner and name."""
    jobs = "|".join(number for number in numbers[:_LINES_AT_ONCE] if number.isdecimal())
    script = 'grep -sE "$1" "$2" | exec qacct -j -f /dev/stdin'
    return ["/bin/sh", "-c", script, "sh", f"^([^:]*:){{5}}({jobs}):", str(path)]


def job_lists(out: str) -> Iterator[dict[str, str]]:
    """The ``job_list`` elements, as names and texts. Raises ValueError when it is not the whole answer."""
    from lxml import etree

    try:
        root = etree.fromstring(behind_notices(out, "<?xml").encode("utf-8", "surrogateescape"), _parser())
    except etree.XMLSyntaxError as e:
        raise ValueError(f"qstat gave no XML: {e}") from e
    if root.tag != "job_info":
        raise ValueError(f"qstat gave {root.tag}")
    for element in root.iter("job_list"):
        yield {str(child.tag): child.text or "" for child in element}


def _parser() -> Any:
    from lxml import etree

    return etree.XMLParser(resolve_entities=False, no_network=True, recover=False, encoding="utf-8")


def parse_qacct(exit_code: int, out: str, whose: Whose | None = None) -> dict[str, JobStatus]:
    """Statuses from ``qacct -j``; of several records of a job, the last. None for a job without a record.

    Tasks of an array have the number of the array and their own ``taskid``; they are parts of one job, not runs of it.
    They come as ``12.3`` as well. whose: the jobs that are asked about; qacct has all that ever had their numbers.
    """
    if exit_code != 0 and any(words in out for words in _NO_RECORD):
        return {}
    check_status_exit_code("qacct", exit_code, out)
    records: dict[str, dict[str, list[RunRecord[_Row]]]] = {}
    for row in records_of(out):
        tasks = records.setdefault(row["jobnumber"], {})
        failed, _ = numbers(row)
        if failed < 0:
            raise ValueError(f"qacct does not say whether job {row['jobnumber']} failed: {row['failed'][:80]!r}")
        over = failed not in _NOT_OVER
        tasks.setdefault(row.get("taskid", ""), []).append(RunRecord(_claim(row), over, row))
    statuses: dict[str, JobStatus] = {}
    asked = Whose() if whose is None else whose
    for native_id, tasks in records.items():
        for some in _apart(native_id, tasks, asked):
            own = _own(native_id, some, asked)
            by_task = {task: _record(own[task]) for task in sorted(own, key=lambda t: (len(t), t))}
            ended = {task: status for task, status in by_task.items() if status is not None}
            statuses |= {f"{native_id}.{task}": status for task, status in ended.items() if task.isdecimal()}
            if ended and len(ended) == len(by_task) and (some is tasks or not any(map(str.isdecimal, some))):
                statuses[native_id] = of_elements(list(ended.values()))        # else one of them will run again
    return statuses


def _apart(native_id: str, tasks: dict[str, list[RunRecord[_Row]]],
           whose: Whose) -> list[dict[str, list[RunRecord[_Row]]]]:
    """The records by what has to be looked at together: all, unless the number is that of a single job of ours. Then
    tasks of an array that had it too are no part of that, and count where they are asked about themselves."""
    if not whose.is_single(native_id):
        return [tasks]
    single = {task: runs for task, runs in tasks.items() if not task.isdecimal()}
    others = {task: runs for task, runs in tasks.items() if f"{native_id}.{task}" in whose.identities}
    if len(single) + len(others) < len(tasks):
        whose.leave(native_id, "it is a task of an array")
    return [single, others]


_Row = dict[str, str]


def _claim(row: Mapping[str, str]) -> Claim:
    """Whose a record is: it has no context, in which our tag would be."""
    return Claim(None, row.get("owner") or None, row.get("jobname") or None,
                 moment(row.get("qsub_time", "")) or None, moment(row.get("end_time", "")) or None)


def _own(native_id: str, tasks: Mapping[str, list[RunRecord[_Row]]], whose: Whose) -> dict[str, list[_Row]]:
    """The records of the job, by task. Where both an array and a plain job were called so, those of the later one."""
    own = {task: rows for task, runs in tasks.items()
           if (rows := whose.runs(f"{native_id}.{task}" if task.isdecimal() else native_id, runs))}
    last = max(own, key=lambda task: _claim(own[task][-1]).submit_time or 0.0, default="")
    return {task: rows for task, rows in own.items() if task.isdecimal() == last.isdecimal()}


def _record(records: list[dict[str, str]]) -> JobStatus | None:
    if not records:
        return None
    runs = runs_of(records)
    last, usages = runs[-1][-1], [used_in(run) for run in runs]
    failed, code = numbers(last)
    if failed in _NOT_OVER:
        return None
    job = replace(of_runs(usages), ran=usages[-1].ran, queue=usages[-1].queue, memory_average_bytes=average(records))
    metadata = job.facts(began=True, over=True)
    if not job.starts and all(row.get("start_time", "").strip() == NO_TIME for row in records):
        metadata["starts"] = 0
    if job.ran and len(runs) > 1:
        metadata["attempts"] = [usage.attempt() for usage in usages]
    state = JobState.COMPLETED if failed == 0 and code == 0 else JobState.FAILED
    passed = limit_passed(last)
    if passed is not None or job.signal:
        metadata |= {"reason": passed or "signal"} | ({"signal": job.signal} if job.signal else {})
    elif failed not in RAN:
        metadata["reason"] = FAILED.get(failed, "launch")
    return JobStatus(state, time=job.end_time, exit_code=job.exit_code,
                     message=_WORDS.get(passed or "") or _said(failed in RAN, last["failed"]),
                     metadata=metadata)


def _said(ran: bool, failed: str) -> str | None:
    """Grid Engine's own words for a start or a node that failed: ``28  : changing into working directory``."""
    words = failed.partition(":")[2].strip()
    return f"Grid Engine says {words}" if words and not ran else None
