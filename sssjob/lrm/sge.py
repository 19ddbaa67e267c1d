"""Grid Engine: states, how jobs failed, numbers, times and sizes of requests, the records of qacct.

Sources: sge_status(5), qstat(1), qacct(1), accounting(5), queue_conf(5), sge_pe(5), sge_types(5). Seen with Son of Grid
Engine 8.1.9.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, Decimal
from typing import Final, TypeVar

from sssjob.lrm import waits
from sssjob.lrm.acceptance import Judge, Refusal, bounded
from sssjob.lrm.answers import SubmitAnswers
from sssjob.lrm.clocks import total, utc
from sssjob.lrm.names import JOB_NAMES
from sssjob.lrm.sizes import LETTERS, POWERS, amount
from sssjob.lrm.states import NativeState, Stage
from sssjob.lrm.usage import Usage, whole

__all__ = [
    "ANSWERS", "FAILED", "FAILURES", "JUDGE", "NO_TIME", "RAN", "RUN_AGAIN", "SIGNALED", "TIME_LIMIT", "WAITS",
    "average", "awaited", "ended", "environment_for", "limit_passed", "listed", "memory", "moment", "number", "numbers",
    "peak", "quantity", "reasons", "records_of", "requested", "runs_of", "seconds", "state_of", "submitted", "used_in",
    "waits_for",
]

_N = TypeVar("_N", float, Decimal)

#: Letters of the state column, tested in this order; the first that is there decides.
_STATES: Final = (
    ("E", Stage.HELD, "ERROR"), ("sST", Stage.SUSPENDED, "SUSPENDED"), ("r", Stage.RUNNING, None),
    ("t", Stage.WAITING, "STARTING"),       # on its way to a node, where it may stay for minutes and never begin
    ("h", Stage.HELD, "HELD"), ("qwPN", Stage.WAITING, None), ("m", Stage.RUNNING, None))

#: ``failed`` of a record: to be run again; the limit of time; ended by a signal.
RUN_AGAIN, TIME_LIMIT, SIGNALED = 25, 37, 100
#: ``failed`` of a job that ran, whatever happened to it then; all others never started. Source: sge_status(5).
RAN: Final = frozenset((0, 12, 13, 14, 15, 16, 17, 24, RUN_AGAIN, 30, TIME_LIMIT, SIGNALED))
#: ``failed`` -> why the job ended, where it says so.
FAILED: Final[dict[int, str]] = {
    17: "signal", TIME_LIMIT: "timeout", SIGNALED: "signal",
    **{code: "launch" for code in range(1, SIGNALED) if code not in RAN},
    18: "node-failure", 19: "node-failure",     # what watches the job on its node died, probably with the node
}
#: ``failed`` -> what happened, in words, of some that the accounting file has as a bare number.
FAILURES: Final[Mapping[int, str]] = {
    RUN_AGAIN: "rescheduled", 28: "no such working directory", 30: "asked for an error state",
    TIME_LIMIT: "run time limit exceeded", SIGNALED: "killed"}


def ended(failed: int, status: int | None) -> tuple[int | None, int | None]:
    """(exit code, signal) of ``failed`` and ``exit_status``: of a run that failed, what is over 128 is a signal."""
    return (None, status - 128) if failed and status is not None and status > 128 else (status, None)


def awaited(row: Mapping[str, str]) -> str:
    """One of the jobs that a row of ``qstat -r -xml`` waits for; empty where it waits for none. Seen with 8.1.9."""
    return row.get("predecessor_jobs") or row.get("ad_predecessor_jobs") or ""


def state_of(letters: str, after: bool = False) -> NativeState | None:
    """The state that the letters of a state column say; None when they say nothing about it. after: the job waits for
    other jobs, which the letters call a hold, too."""
    standing = next(((stage, phase) for some, stage, phase in _STATES if any(letter in letters for letter in some)),
                    None)
    if standing == (Stage.WAITING, None) and "R" in letters:
        standing = Stage.AGAIN, None
    if "d" in letters:
        return NativeState(letters, standing[0] if standing is not None else Stage.RUNNING, phase="CANCELING")
    if standing == (Stage.HELD, "HELD") and after:
        return NativeState(letters, Stage.WAITING, waits=waits.DEPENDENCY)
    return None if standing is None else NativeState(letters, standing[0], phase=standing[1])


#: Why a job waits, by the lines of its scheduling info, the first that fits. ``qf``, ``hf`` and ``gf`` are fixed values
#: of a queue, a host and the cluster; the amounts of ``hc`` are what is left just now, and those of ``hv`` a load.
#: Sources: schedd_message.c, msg_schedd.h; the first six seen with 8.1.9, and ``max_aj_instances``, which -tc says too.
WAITS: Final = (
    (waits.HELD, re.compile(r"Job is in (?:hold|error) state")),
    (waits.DEPENDENCY, re.compile(r"job dependencies|waiting for (?:job|predecessor)")),
    (waits.BEGIN, re.compile(r"execution time|not yet ready|reservation .* not (?:yet )?(?:started|active)")),
    (waits.LIMIT, re.compile(r"exceeds? limit|user limit|reached .*limit|max_u_jobs|maxujobs|max_aj_instances")),
    (waits.TURN, re.compile(r"because it is (?:full|overloaded)|offers only [qhg][cvla]:|overload or full|"
                            r"only offers \d+ slots")),
    (waits.UNAVAILABLE, re.compile(r"because it is (?:disabled|suspended|temporarily not available|in error)|"
                                   r"dropped because|unknown|not available")),
    (waits.NEVER, re.compile(r"offers only [qhg]f:|of cluster queue|not contained in its hard|no permission|no access|"
                             r"not in (?:pe|the) |does not (?:have|exist)|is not (?:a )?(?:requestable|batch)")),
)
_SCHEDULING: Final = re.compile(r"^(?:scheduling info|error reason +\d+): +(.*(?:\n {20,}\S.*)*)", re.MULTILINE)
_NUMBER: Final = re.compile(r"^job_number: +(\d{1,12})$", re.MULTILINE)
_TASKS: Final = re.compile(r"^job-array tasks: ", re.MULTILINE)
_HELD_TASK: Final = re.compile(r"Job is in hold state")
_LONGEST_REASON: Final = 400


def waits_for(line: str) -> str | None:
    """The kind of a line of scheduling info; None where no table has it."""
    return waits.first_kind(line, WAITS)


def reasons(out: str) -> dict[str, tuple[str | None, str]]:
    """Kind and words of why jobs wait, by their numbers, from ``qstat -j``.

    A queue or a host that can never take a job says nothing of the others: only where all lines say so can it never
    start. Of an error the words of the error count. Of an array it is left out that a
    task is held: those that are asked about are not, or their state says so.
    """
    by_number: dict[str, tuple[str | None, str]] = {}
    for block in re.split(r"^={20,}$", out, flags=re.MULTILINE):
        number, texts = _NUMBER.search(block), _SCHEDULING.findall(block)
        lines = list(dict.fromkeys(line.strip() for text in texts for line in text.split("\n") if line.strip()))
        if _TASKS.search(block):
            lines = [line for line in lines if not _HELD_TASK.match(line)]
        if number is None or not lines:
            continue
        kinds = {waits_for(line) for line in lines}
        kind = next((kind_of_wait for kind_of_wait, _ in WAITS if kind_of_wait in kinds
                     and not (kind_of_wait == waits.NEVER and None in kinds)), None)
        lines.sort(key=lambda line: waits_for(line) != kind)
        by_number[number[1]] = kind, "; ".join(lines)[:_LONGEST_REASON]
    return by_number


_HEXADECIMAL: Final = re.compile(r"0[xX][0-9a-fA-F]{1,12}")
_OCTAL: Final = re.compile(r"0[0-7]{1,15}")
_DECIMAL: Final = re.compile(r"\d{1,20}(?:\.\d{0,9})?|\.\d{1,9}", re.ASCII)


def number(text: str) -> Decimal | None:
    """A decimal, hexadecimal or octal constant; None for anything else."""
    if _HEXADECIMAL.fullmatch(text):
        return Decimal(int(text, 16))
    if _OCTAL.fullmatch(text):
        return Decimal(int(text, 8))
    return Decimal(text) if _DECIMAL.fullmatch(text) else None


def seconds(text: str) -> int | None:
    """Seconds of a number or of ``H:M:S``, of which each may be empty; None for INFINITY. ValueError: another form."""
    if text.upper() == "INFINITY":
        return None
    if clock := re.fullmatch(r"(\d{0,9}):(\d{0,9}):(\d{0,9})", text, re.ASCII):
        return total([int(field or 0) for field in clock.groups()])
    value = number(text)
    if value is None:
        raise ValueError("is no time of Grid Engine")
    return int(value.to_integral_value(ROUND_CEILING))


def memory(text: str) -> int | None:
    """Bytes of ``4G``; lower-case letters are powers of 1000. None for INFINITY. ValueError for another form."""
    if text.upper() == "INFINITY":
        return None
    letter = text[-1:] if text[-1:].upper() in ("K", "M", "G", "T") else ""
    value = number(text.removesuffix(letter))
    if value is None:
        raise ValueError("is no size")
    factor = 1000 ** (LETTERS.index(letter.upper()) + 1) if letter.islower() else POWERS[letter]
    return int((value * factor).to_integral_value(ROUND_CEILING))


# -- what qstat and qacct say
_XML_TIME: Final = "%Y-%m-%dT%H:%M:%S"


def submitted(row: Mapping[str, str]) -> float | None:
    """When a job of ``qstat -xml`` was submitted, seconds since the epoch; the answer has that while it waits."""
    return utc(row.get("JB_submission_time", ""), _XML_TIME)


def listed(row: Mapping[str, str]) -> Usage:
    """A ``job_list`` of ``qstat -xml``. Of more slots than one it names the first host only."""
    queue, _, host = row.get("queue_name", "").partition("@")
    slots = whole(row.get("slots", ""))
    alone = host != "" and slots == 1
    return Usage(
        native_state=row.get("state"), submit_time=submitted(row), queue=queue or None, ran=True,
        start_time=utc(row.get("JAT_start_time", ""), _XML_TIME), nodes=[host] if alone else None,
        node_count=1 if alone else None, processors=slots)


_ACCT_TIME: Final = "%a %b %d %H:%M:%S %Y"
#: An option of a category; signals of the soft limits.
_OPTION: Final = re.compile(r"(?:^|\s)-(l|pe|q)\s+(\S+)(?:\s+(\d[\d,-]*))?", re.ASCII)
_SOFT: Final = (("s_rt", signal.SIGUSR1, "timeout"), ("s_cpu", signal.SIGXCPU, "cpu-limit"))


def records_of(out: str) -> list[dict[str, str]]:
    """The records in the answer of ``qacct -j``, by the names of their fields; without those that tell no end.

    Raises ValueError where there is none, or the last one is cut off: what it lacks, and what would follow it, counts.
    """
    blocks = re.split(r"^=+\n", out, flags=re.MULTILINE)[1:]
    records = [{name: value.strip() for name, _, value in (line.partition(" ") for line in block.split("\n")) if name}
               for block in blocks]
    if not (blocks and _is_whole(records[-1], blocks[-1])) and _TOTAL not in f"\n{out}":
        raise ValueError(f"the answer of qacct is cut off behind {out[-80:]!r}")
    return [record for record in records if {"jobnumber", "failed", "exit_status", "end_time"} <= record.keys()]


_TOTAL: Final = "\nTotal System Usage\n"         # behind the records of all jobs


def _is_whole(record: Mapping[str, str], text: str) -> bool:
    """Whether a record has the last of its fields that counts: ``category`` in the releases that write units, else
    ``arid`` where Univa's ``ioops`` is, else ``maxvmem``. Seen with 8.1.9, in published records of 8.1, Univa and
    6.2u5."""
    last = "category" if record.get("ru_wallclock", "").endswith("s") else "arid" if "ioops" in record else "maxvmem"
    return text.endswith("\n") and last in record


def environment_for(rules: Mapping[str, str | int], *, on_one_host: bool, per_host: str | int | None = None
                    ) -> str | None:
    """The parallel environment for slots on one host, for so many on each host, or for any number on any; None where
    there is none. rules: name -> allocation rule (sge_pe(5)), those to be preferred first."""
    fitting = ("$pe_slots",) if on_one_host else ("$fill_up", "$round_robin") if per_host is None else (str(per_host),)
    return next((name for name, rule in rules.items() if str(rule) in fitting), None)


def requested(category: str) -> Iterator[tuple[str, str]]:
    """Names and values of what a category asks for: ``-l h_rt=300,mem=50M -pe smp 2 -q short.q``. ``pe`` stands for the
    slots of the parallel environment; a resource without a value is not named."""
    for option, value, slots in _OPTION.findall(category):
        if option == "pe":
            yield "pe", slots
        elif option == "l":
            pairs = (item.partition("=") for item in value.split(","))
            yield from ((name, amount) for name, _, amount in pairs if amount)


#: In place of the time of a start that never was (qacct(1), accounting(5)).
NO_TIME: Final = "-/-"


def moment(text: str) -> float | None:
    """Seconds since the epoch of ``Thu Sep 10 17:35:17 2015`` in UTC; None for ``-/-``."""
    return utc(text, _ACCT_TIME)


def quantity(text: str) -> float | None:
    """Seconds or bytes, or bytes times seconds: ``12.5s``, ``47.777KB``, ``1.5GBs``; None for anything else."""
    value = amount(text.strip().removesuffix("s"))
    return None if value is None else float(value)


def numbers(record: Mapping[str, str]) -> tuple[int, int]:
    """``failed`` and ``exit_status``, which words may follow; -1 for what is no number."""
    failed, code = (whole(record[name].partition(" ")[0]) for name in ("failed", "exit_status"))
    return -1 if failed is None else failed, -1 if code is None else code


def runs_of(records: list[dict[str, str]]) -> list[list[dict[str, str]]]:
    """The records of a job by run, in order of time; of each run the one of the job itself last. A record that comes
    twice is of one run.

    Tasks of a parallel environment that accounts for them one by one (accounting_summary, sge_pe(5)) have records like
    the job's own, written as they end. qacct does not name them; they lie within the time of the run that they are of.
    """
    if len(records) == 1 or all(record.get("granted_pe", "NONE") == "NONE" for record in records):
        return [[record] for place, record in enumerate(records) if record not in records[:place]]
    runs: list[list[dict[str, str]]] = []
    spans = [(moment(record.get("start_time", "")) or 0.0, moment(record["end_time"]) or 0.0)
             for record in records]
    end = -1.0
    # the longest first of those that begin together, the last written first of those that also end together
    for place in sorted(range(len(records)), key=lambda n: (spans[n][0], -spans[n][1], -n)):
        again = runs and numbers(runs[-1][-1])[0] == RUN_AGAIN
        if spans[place][0] and spans[place][1] <= end and not (again and spans[place][0] >= end):
            runs[-1].insert(0, records[place])
        else:
            runs.append([records[place]])
            end = spans[place][1]
    return runs


def used_in(run: Sequence[Mapping[str, str]]) -> Usage:
    """What a run used, by its records, of which the one of the job itself is the last."""
    last = run[-1]
    failed, code = numbers(last)
    started, alone = moment(last.get("start_time", "")), last.get("granted_pe") == "NONE"
    ran = failed == RUN_AGAIN or (started is not None and failed in RAN)    # of a run that is run again it has no times
    project, cpu = last.get("project", "NONE"), _known(run, "cpu")
    return Usage(
        native_state=f"failed {last['failed']}" if failed else "done", account=None if project == "NONE" else project,
        submit_time=moment(last.get("qsub_time", "")) or None, queue=last.get("qname") if ran else None, ran=ran,
        start_time=started, nodes=[last["hostname"]] if alone else None, node_count=1 if alone else None,
        processors=whole(last.get("slots", "")), end_time=moment(last["end_time"]),
        wall_seconds=quantity(last.get("ru_wallclock", "")), cpu_seconds=sum(cpu) if cpu else None,
        memory_max_bytes=int(max(map(_resident, run))) or None,
        exit_code=code if code >= 0 and failed in RAN else None,
        signal=ended(failed, code)[1] if failed in RAN else None)


def average(records: Sequence[Mapping[str, str]]) -> int | None:
    """Bytes on average: ``mem``, which is memory integrated over CPU time, by the CPU time; None where it was not
    sampled."""
    used, cpu = sum(_known(records, "mem")), sum(_known(records, "cpu"))
    return int(used / cpu) if used and cpu else None


def _known(records: Iterable[Mapping[str, str]], name: str) -> list[float]:
    """The amounts that records have."""
    return [value for record in records if (value := quantity(record.get(name, ""))) is not None]


def peak(number: Callable[[str], _N | None]) -> tuple[_N, str] | None:
    """(size, letter of its unit) of the greatest resident size of a process: Univa's ``maxrss`` in bytes, else
    ``ru_maxrss`` in KiB; None for none. number: gives a field as a number, None where it has none."""
    if size := number("maxrss"):
        return size, ""
    size = number("ru_maxrss")
    return (size, "K") if size else None


def _resident(record: Mapping[str, str]) -> float:
    """The same in bytes; 0 for none. qacct of 8.1.9 takes the kilobytes of ru_maxrss for bytes when it makes a text of
    them: ``47.777KB`` are 48924 KB."""
    size = peak(lambda name: quantity(record.get(name, "")))
    return 0 if size is None else size[0] * POWERS[size[1]]


def limit_passed(record: Mapping[str, str]) -> str | None:
    """The limit that ended a job: the record says that one did, the requests in it say which.

    A soft limit sends a signal that may also have come from elsewhere, so it counts where the job had used it up.
    """
    failed, code = numbers(record)
    asked = {name: _limit_value(value) for name, value in requested(record.get("category", "")) if name in _LIMITS}
    used = {"rt": quantity(record.get("ru_wallclock", "")), "cpu": quantity(record.get("cpu", ""))}
    passed = {name for name, most in asked.items()
              if most is not None and (has := used.get(name.partition("_")[2])) is not None and has >= most - 1}
    if failed == TIME_LIMIT:
        if "h_rt" in passed or not asked.keys() & {"h_cpu", "h_vmem"}:
            return "timeout"
        return "cpu-limit" if "h_cpu" in passed else "memory" if "h_vmem" in asked else "timeout"
    if failed == SIGNALED:
        return next((reason for name, signal, reason in _SOFT if code == 128 + signal and name in passed), None)
    return None


_LIMITS: Final = frozenset(f"{kind}_{of}" for kind in "hs" for of in ("rt", "cpu", "vmem"))


def _limit_value(text: str) -> int | None:
    """A limit in seconds; None for anything else."""
    try:
        return seconds(text)
    except ValueError:
        return None


#: Answers of qsub.
ANSWERS: Final = SubmitAnswers(
    "qsub", re.compile(r"\d{1,12}(?:\.\d{1,9})?", re.ASCII),
    submitted=re.compile(r"(\d{1,12})", re.ASCII),
    full=re.compile(r"only \d+ jobs are allowed", re.IGNORECASE),      # max_u_jobs and max_jobs of sge_conf(5)
    later=re.compile(r"unable to (send message|contact)|connection refused|commlib error|"
                     r"try again|not available|qmaster is not running", re.IGNORECASE),
    unknown=re.compile(r"answer list|timeout|timed out|failed receiving|got read error|connection (reset|lost)",
                       re.IGNORECASE))


# What qsub of Grid Engine refuses. Seen with qsub and qmaster of Son of Grid Engine 8.1.9; qsub(1), sge_types(1).

_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?(?::(\d{1,9}))?", re.ASCII)
_SLOTS: Final = re.compile(r"\S+[ \t]+(\d{1,9})?(?:-(\d{1,9})?)?", re.ASCII)
#: Names of accounts and projects; what qmaster says no to in them.
_NO_ACCOUNT: Final = re.compile(r"""[\s"'#*/:?@\\\[\]{}|()]""")


def _tasks(value: str) -> str:
    span = _RANGE.fullmatch(value)
    if span is None:
        return "is no range of tasks"
    if not int(span[1]) or (span[2] and not int(span[2])):
        return "tasks are counted from 1"
    return "a step is at least 1" if span[3] is not None and not int(span[3]) else ""


def _account(value: str) -> str:
    sign = _NO_ACCOUNT.search(value)
    return "" if sign is None else f"contains {sign[0]!r}"


def _slots(value: str) -> str:
    asked = _SLOTS.fullmatch(value)
    return "asks for no slots" if asked is not None and asked[1] is not None and not int(asked[1]) else ""


def _variables(value: str) -> str:
    return "names no variable before =" if re.search(r"(?:\A|,)=", value) else ""


def _together(options: Mapping[str, str]) -> Iterator[Refusal]:
    for name, other in (("-tc", "-t"), ("-hold_jid_ad", "-t"), ("-masterq", "-pe")):
        if name in options and other not in options and (name, options[name]) != ("-tc", "0"):
            yield Refusal(name, f"{name} wants {other}")


JUDGE: Final = Judge("qsub", {
    "-t": _tasks, "-tc": bounded(0, 2**31 - 1), "-N": JOB_NAMES["sge"].fault, "-A": _account, "-P": _account,
    "-ac": _variables, "-v": _variables,
    "-pe": _slots, "-p": bounded(-1023, 1024),
}, _together)
