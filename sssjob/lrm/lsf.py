"""LSF: states, why jobs were ended, what bjobs tells.

Sources: bjobs(1), STAT; bhist(1), table of job termination reasons; lsbatch.h, TERM_*.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from sssjob.lrm import waits
from sssjob.lrm.acceptance import Judge, at_least, bounded
from sssjob.lrm.answers import SubmitAnswers
from sssjob.lrm.clocks import seconds, utc
from sssjob.lrm.names import JOB_NAMES
from sssjob.lrm.sizes import in_bytes
from sssjob.lrm.states import NativeState, Stage, by_word
from sssjob.lrm.usage import Usage, quantity, whole

__all__ = [
    "ANSWERS", "JUDGE", "STATES", "TERMINATIONS", "WAITS", "moment", "reason_of", "recorded", "slots", "state_of",
    "waits_for",
]

STATES: Final[Mapping[str, NativeState]] = by_word(
    NativeState("PEND", Stage.WAITING),
    NativeState("PSUSP", Stage.HELD, phase="HELD"),
    NativeState("WAIT", Stage.WAITING),
    NativeState("PROV", Stage.WAITING, phase="CONFIGURING"),
    NativeState("FWD_PEND", Stage.WAITING),
    NativeState("RUN", Stage.RUNNING),
    NativeState("RUNKWN", Stage.RUNNING),
    NativeState("SSUSP", Stage.SUSPENDED, phase="SUSPENDED"),
    NativeState("USUSP", Stage.SUSPENDED, phase="SUSPENDED"),
    NativeState("EXIT", Stage.FAILED),
    NativeState("DONE", Stage.DONE),
    NativeState("POST_DONE", Stage.DONE),
    NativeState("POST_ERR", Stage.DONE),
    NativeState("UNKWN", Stage.SILENT),
    NativeState("ZOMBI", Stage.SILENT),
)
#: Bits of jStatus of a job that has ended. Source: lsbatch.h, JOB_STAT_*.
_ENDED: Final = ((0x40, STATES["DONE"]), (0x20, STATES["EXIT"]))


def state_of(status: int) -> NativeState | None:
    """The state of a jStatus of lsb.acct; None for that of a job that has not ended."""
    return next((state for bit, state in _ENDED if status & bit), None)


#: Why a job waits, by LSF's pending reasons, the first that fits. Sources: bjobs(1), -p; lsbatch.h, PEND_*; the texts
#: are those of the documents, none was seen on a cluster.
WAITS: Final = (
    (waits.NEVER, re.compile(r"never satisfied|dependency condition (?:is )?invalid|can(?:not)? never|"
                             r"invalid (?:queue|project|resource)|not a valid|exceeds the (?:maximum|limit)",
                             re.IGNORECASE)),
    (waits.HELD, re.compile(r"suspended by (?:the )?(?:user|owner|administrator|lsf)|while pending|PSUSP",
                            re.IGNORECASE)),
    (waits.DEPENDENCY, re.compile(r"dependency", re.IGNORECASE)),
    (waits.BEGIN, re.compile(r"start time|begin time|dispatch time|reservation (?:is )?not active", re.IGNORECASE)),
    (waits.LIMIT, re.compile(r"limit|threshold|quota", re.IGNORECASE)),
    (waits.UNAVAILABLE, re.compile(r"queue.*(?:clos|inactiv)|window|\bdown\b|unavail|unreach|no suitable hosts",
                                   re.IGNORECASE)),
)


def waits_for(reason: str | None) -> str | None:
    """The kind of a pending reason; of one that is in no table its turn, None where there is none."""
    return (waits.first_kind(reason, WAITS) or waits.TURN) if reason and reason != "-" else None


#: exitInfo of lsb.acct -> (word of the manager, reason); an empty reason: none of those in docs/facts.md.
TERMINATIONS: Final[Mapping[int, tuple[str, str]]] = {
    1: ("TERM_PREEMPT", "preempted"), 2: ("TERM_WINDOW", "deadline"), 3: ("TERM_LOAD", "preempted"),
    5: ("TERM_RUNLIMIT", "timeout"), 6: ("TERM_DEADLINE", "deadline"), 7: ("TERM_PROCESSLIMIT", "signal"),
    8: ("TERM_FORCE_OWNER", "cancel"), 9: ("TERM_FORCE_ADMIN", "cancel"), 10: ("TERM_REQUEUE_OWNER", ""),
    11: ("TERM_REQUEUE_ADMIN", ""), 12: ("TERM_CPULIMIT", "cpu-limit"), 13: ("TERM_CHKPNT", ""),
    14: ("TERM_OWNER", "cancel"), 15: ("TERM_ADMIN", "cancel"), 16: ("TERM_MEMLIMIT", "memory"),
    17: ("TERM_EXTERNAL_SIGNAL", "signal"), 18: ("TERM_RMS", ""), 19: ("TERM_ZOMBIE", "lost"),
    20: ("TERM_SWAP", "memory"), 21: ("TERM_THREADLIMIT", "signal"), 22: ("TERM_SLURM", ""),
    23: ("TERM_BUCKET_KILL", "cancel"),
}
#: Words that bhist and bjobs print; the last four have no number that was seen.
_REASONS: Final = {word: reason for word, reason in TERMINATIONS.values() if reason} | {
    "TERM_PRE_EXEC_FAIL": "launch", "TERM_CWD_NOTEXIST": "launch", "TERM_ORPHAN_SYSTEM": "dependency",
    "TERM_UNKNOWN": None}


def reason_of(word: str) -> str | None:
    """The reason of ``TERM_RUNLIMIT``; of a word that no table has the word itself in small letters, None where it says
    nothing."""
    return _REASONS.get(word, word.removeprefix("TERM_").lower().replace("_", "-"))


def slots(listed: Iterable[str]) -> tuple[int, list[str]]:
    """(slots, hosts, each once) of ``8*hostA`` and ``hostB``, which is one slot, as is a host with a count that is
    none."""
    count, names = 0, dict[str, None]()
    for part in listed:
        times, star, name = part.partition("*")
        counted = star and times.isdecimal() and times.isascii() and len(times) < 10
        count += int(times) if counted else 1
        names[name if star else part] = None
    return count, list(names)


_TIME: Final = re.compile(r"([A-Z][a-z]{2}) +(\d{1,2}) (\d\d:\d\d:\d\d) (\d{4})", re.ASCII)
_SPAN: Final = re.compile(r"\d+:\d\d:\d\d", re.ASCII)
_SECONDS: Final = re.compile(r"(\d+(?:\.\d+)?) second", re.ASCII)


def moment(text: str | None) -> float | None:
    """Seconds since the epoch of a time with seconds and a year, such as ``Dec 28 19:56:01 2025 L``; the letter says
    what it is a limit of."""
    day = _TIME.match(text or "")
    return None if day is None else utc(" ".join(day.groups()), "%b %d %H:%M:%S %Y")


def _duration(text: str) -> float | None:
    """Seconds of ``16038 second(s)`` or ``hours:minutes:seconds``."""
    if span := _SPAN.match(text):
        return seconds(span[0])
    number = _SECONDS.match(text)
    return None if number is None else quantity(number[1])


def recorded(row: Mapping[str, str]) -> Usage:
    """What ``bjobs -json`` says of a job, by the names of its columns; places are as in ``4*hostA:2*hostB``."""
    place, project = row.get("EXEC_HOST", ""), row.get("PROJ_NAME", "")
    count, names = slots(place.split(":") if place.strip("- ") else ())
    return Usage(
        native_state=row.get("STAT"), queue=row.get("QUEUE") or None, account=project if project.strip("-") else None,
        submit_time=moment(row.get("SUBMIT_TIME")), ran=place != "", start_time=moment(row.get("START_TIME")),
        nodes=names or None, node_count=len(names) or None, processors=count or None,
        end_time=moment(row.get("FINISH_TIME")), wall_seconds=_duration(row.get("RUN_TIME", "")),
        cpu_seconds=_duration(row.get("CPU_USED", "")),
        memory_max_bytes=in_bytes(row.get("MAX_MEM", "").strip()) or None, exit_code=whole(row.get("EXIT_CODE")))


#: Answers of bsub.
ANSWERS: Final = SubmitAnswers(
    "bsub", re.compile(r"\d{1,18}(?:\[\d{1,10}\])?", re.ASCII),
    submitted=re.compile(r"Job <(\d{1,18})> is submitted to (?:default )?queue <[^>]*>\.?.*", re.ASCII),
    # MAX_PEND_JOBS and MAX_PEND_SLOTS of lsb.params(5) and lsb.users(5); bsub tries again by itself, see LSB_NTRIES
    full=re.compile(r"pending (?:job|slot)s? (?:threshold|slot limit|limit)|"
                    r"job (?:slot )?limit (?:has been |is )?(?:reached|exceeded)|too many jobs", re.IGNORECASE),
    later=re.compile(r"cannot connect|please wait|not responding|(lim|mbatchd|daemon).* (is )?down|reconfigur|"
                     r"try.* later|too many (?:requests|connections|open)", re.IGNORECASE),
    unknown=re.compile(r"timed? ?out|socket operation|failed in (sending|receiving)|communication|"
                       r"connection (reset|lost|closed)|broken pipe", re.IGNORECASE))


# What bsub refuses. Source: bsub(1) of LSF 10.1, -J, -M, -n, -sp, -W; lsb.params, MAX_JOB_ARRAY_SIZE.

_ARRAY: Final = re.compile(r"([^\[\]]*)\[([\d,:\s-]+)\](?:%\d{1,9})?", re.ASCII)
_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", re.ASCII)
_SLOTS: Final = re.compile(r"(\d{1,9})(?:,(\d{1,9}))?", re.ASCII)


def _name(value: str) -> str:
    """Of a name with or without a list of indices."""
    array = _ARRAY.fullmatch(value)
    name = value if array is None else array[1]
    if name and (fault := JOB_NAMES["lsf"].fault(name)):
        return fault
    for part in array[2].split(",") if array is not None else ():
        span = _RANGE.fullmatch(part.strip())
        if span is None:
            return "is no list of indices"
        if not int(span[1]) or (span[2] and int(span[2]) < int(span[1])) or (span[3] and not int(span[3])):
            return "indices are counted from 1, upwards"
    return ""


def _slots(value: str) -> str:
    slots = _SLOTS.fullmatch(value)
    if slots is None:
        return ""
    return "asks for no slots" if not int(slots[1]) else \
        "the most is less than the least" if slots[2] and int(slots[2]) < int(slots[1]) else ""


JUDGE: Final = Judge("bsub", {"-J": _name, "-n": _slots, "-nnodes": at_least(1), "-sp": bounded(1, 2**31 - 1)})
