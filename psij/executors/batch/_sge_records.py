"""What Grid Engine says of jobs: its states, the listing of qstat, the records of qacct as statuses.

Text in, objects out. Sources: sge_status(5), qstat(1), qacct(1), accounting(5), queue_conf(5), sge_pe(5).
Seen with Son of Grid Engine 8.1.9.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Mapping
from typing import Any

from psij.executors.batch._arrays import of_elements
from psij.executors.batch._terms import check_status_exit_code
from psij.job_state import JobState
from psij.job_status import JobStatus
from sssjob.lrm.clocks import utc
from sssjob.lrm.sge import FAILED, RAN, RUN_AGAIN, SIGNALED, TIME_LIMIT, seconds
from sssjob.lrm.sizes import amount
from sssjob.lrm.usage import present, whole

__all__ = ["XML_TIME", "job_lists", "parse_qacct"]

_ACCT_TIME = "%a %b %d %H:%M:%S %Y"
XML_TIME = "%Y-%m-%dT%H:%M:%S"

#: ``failed`` of a run that is not the last.
_NOT_OVER = (24, RUN_AGAIN)
#: Requests for limits in a record's category, queue_conf(5); signals of the soft ones.
_ASKED = re.compile(r"(?:^|[\s,])([hs]_(?:rt|cpu|vmem))=([^\s,]+)")
_SOFT = (("s_rt", signal.SIGUSR1, "timeout"), ("s_cpu", signal.SIGXCPU, "cpu-limit"))
_WORDS = {"timeout": "the time limit was reached", "cpu-limit": "the limit of CPU time was reached",
          "memory": "out of memory"}


def job_lists(out: str) -> Iterator[dict[str, str]]:
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


def _quantity(text: str) -> float | None:
    """Seconds or bytes: ``12.5s``, ``47.777KB``."""
    text = text.strip().removesuffix("s")
    value = amount(text.removesuffix("B"))
    return None if value is None else float(value)


def parse_qacct(exit_code: int, out: str) -> dict[str, JobStatus]:
    """Statuses from ``qacct -j``; of several records of a job, the last. None for a job without a record.

    Tasks of an array have the number of the array and their own ``taskid``; they are parts of one job, not runs of it.
    They come as ``12.3`` as well.
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
    found: dict[str, JobStatus] = {}
    for native_id, tasks in records.items():
        known = {task: _record(tasks[task]) for task in sorted(tasks, key=lambda t: (len(t), t))}
        ended = {task: status for task, status in known.items() if status is not None}
        found |= {f"{native_id}.{task}": status for task, status in ended.items() if task.isdecimal()}
        if len(ended) == len(known):        # else one of them will run again
            found[native_id] = of_elements(list(ended.values()))
    return found


def _runs(records: list[dict[str, str]]) -> list[list[dict[str, str]]]:
    """The records of a job by run, in order of time; of each run the one of the job itself last.

    Tasks of a parallel environment that accounts for them one by one (accounting_summary, sge_pe(5)) have records like
    the job's own, written as they end. qacct does not name them; they lie within the time of the run that they are of.
    """
    if len(records) == 1 or all(record.get("granted_pe", "NONE") == "NONE" for record in records):
        return [[record] for record in records]
    runs: list[list[dict[str, str]]] = []
    spans = [(utc(record.get("start_time", ""), _ACCT_TIME) or 0.0, utc(record["end_time"], _ACCT_TIME) or 0.0)
             for record in records]
    end = -1.0
    # the longest first of those that begin together, the last written first of those that also end together
    for place in sorted(range(len(records)), key=lambda n: (spans[n][0], -spans[n][1], -n)):
        again = runs and runs[-1][-1]["failed"].split(" ")[0] == str(RUN_AGAIN)
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
                                "submit_time": utc(runs[0][-1].get("qsub_time", ""), _ACCT_TIME) or None,
                                "end_time": utc(last["end_time"], _ACCT_TIME),
                                "account": last["project"] if last.get("project", "NONE") != "NONE" else None}
    started = utc(last.get("start_time", ""), _ACCT_TIME)
    if started is not None and failed in RAN:
        cpu = [spent for one in records if (spent := _quantity(one.get("cpu", ""))) is not None]
        walls = [spent for run in runs if (spent := _quantity(run[-1].get("ru_wallclock", ""))) is not None]
        memory = max(map(_resident, records), default=0)
        metadata |= {"start_time": started, "wall_seconds": sum(walls) if walls else None,
                     "queue": last.get("qname"), "processors": whole(last.get("slots", "")),
                     "cpu_seconds": sum(cpu) if cpu else None, "memory_max_bytes": int(memory) if memory else None,
                     "memory_average_bytes": _average(records, sum(cpu)),
                     "starts": len(runs),
                     "attempts": [_attempt(run[-1]) for run in runs] if len(runs) > 1 else None}
        if last.get("granted_pe") == "NONE":
            metadata |= {"nodes": [last["hostname"]], "node_count": 1}
    state = JobState.COMPLETED if failed == 0 and code == 0 else JobState.FAILED
    passed = _limit(last, failed, code)
    killed = FAILED.get(failed) in ("timeout", "signal") and code > 128
    if passed is not None or killed:
        metadata |= {"reason": passed or "signal", "signal": code - 128 if killed else None}
    elif failed not in RAN:
        metadata["reason"], code = "launch", -1
    return JobStatus(state, time=metadata["end_time"], exit_code=code if code >= 0 else None,
                     message=_WORDS.get(passed or "") or _said(metadata.get("reason"), last["failed"]),
                     metadata=present(metadata))


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
    if failed == TIME_LIMIT:
        if "h_rt" in passed or not asked.keys() & {"h_cpu", "h_vmem"}:
            return "timeout"
        return "cpu-limit" if "h_cpu" in passed else "memory" if "h_vmem" in asked else "timeout"
    if failed == SIGNALED:
        return next((reason for name, signal, reason in _SOFT if code == 128 + signal and name in passed), None)
    return None


def _limit_value(text: str) -> int | None:
    """A limit in seconds; None for anything else."""
    try:
        return seconds(text)
    except ValueError:
        return None


def _attempt(run: dict[str, str]) -> dict[str, Any]:
    """One run of a job that was run again."""
    code = whole(run["exit_status"].split(" ")[0])
    signaled = whole(run["failed"].split(" ")[0]) in (TIME_LIMIT, SIGNALED) and code is not None and code > 128
    found = {"native_state": f"failed {run['failed']}" if run["failed"] != "0" else "done",
             "exit_code": None if signaled else code, "signal": code - 128 if signaled and code is not None else None,
             "nodes": [run["hostname"]] if run.get("granted_pe") == "NONE" else None,
             "start_time": utc(run.get("start_time", ""), _ACCT_TIME), "end_time": utc(run["end_time"], _ACCT_TIME),
             "wall_seconds": _quantity(run.get("ru_wallclock", "")) or None}
    return present(found)
