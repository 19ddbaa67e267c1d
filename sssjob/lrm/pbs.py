"""PBS (OpenPBS, PBS Pro, Torque): states, exit statuses, hosts of a job, what qstat tells, times and sizes of options.

Sources: qstat(1B), job states; pbs_job.h; job.h of Torque; pbs_resources(7); qsub(1B).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final

from sssjob.lrm import clocks, waits
from sssjob.lrm.acceptance import Judge, Refusal, bounded, one_word
from sssjob.lrm.answers import SubmitAnswers
from sssjob.lrm.clocks import total
from sssjob.lrm.names import JOB_NAMES
from sssjob.lrm.sizes import Size, in_bytes, suffixes
from sssjob.lrm.states import NativeState, Stage, by_word
from sssjob.lrm.usage import Usage, quantity, whole

__all__ = [
    "ANSWERS", "FAILURES", "PBSPRO_JUDGE", "SIZE", "STATES", "TORQUE_ANSWERS", "TORQUE_JUDGE", "WAITS", "ended",
    "exec_host", "exit_status", "moment", "recorded", "seconds", "waits_for",
]

#: Letters of job_state, some with a substate that says more.
STATES: Final[Mapping[str, NativeState]] = by_word(
    NativeState("Q", Stage.WAITING),
    NativeState("H", Stage.HELD, phase="HELD"),
    NativeState("W", Stage.WAITING, waits=waits.BEGIN),
    NativeState("T", Stage.WAITING),
    NativeState("M", Stage.WAITING, phase="MOVED"),
    NativeState("R", Stage.RUNNING),
    NativeState("S", Stage.SUSPENDED, phase="SUSPENDED"),
    NativeState("U", Stage.SUSPENDED, phase="SUSPENDED"),       # by a user who came back to the machine
    NativeState("B", Stage.RUNNING),                            # an array of which an element has begun
    NativeState("E", Stage.RUNNING, phase="CLEANUP"),
    NativeState("X", Stage.ENDED),
    NativeState("F", Stage.ENDED),
    NativeState("C", Stage.ENDED),
    NativeState("0", Stage.SILENT),
    NativeState("R 41", Stage.WAITING, phase="PRERUN"),
    NativeState("H 22", Stage.WAITING, waits=waits.DEPENDENCY),
    NativeState("E 51", Stage.RUNNING, phase="STAGE_OUT"),
    NativeState("F 94", Stage.WAITING, phase="MOVED"),          # another server has it, of which nothing is seen here
)
#: An Exit_status above this is this and the number of a signal.
_SIGNALED: Final = 256
#: Exit_status below zero -> reason with Torque, and with OpenPBS and PBS Pro.
FAILURES: Final[Mapping[int, tuple[str, str]]] = {
    -1: ("launch", "launch"), -2: ("launch", "launch"), -3: ("launch", "launch"), -8: ("launch", "launch"),
    -9: ("launch", ""), -10: ("memory", ""), -11: ("timeout", ""), -12: ("cpu-limit", ""),
    -24: ("", "cpu-limit"), -25: ("", "cpu-limit"), -26: ("", "memory"), -27: ("", "memory"), -28: ("", "cpu-limit"),
    -29: ("", "timeout"),
}
#: Fields of the times of a job, of which the first that is there counts; with Torque, and with OpenPBS and PBS Pro.
_TIMES_OF: Final[tuple[Mapping[str, tuple[str, ...]], ...]] = (
    {"submit": ("qtime",), "start": ("start_time",), "end": ("comp_time",)},
    {"submit": ("ctime",), "start": ("stime",), "end": ("obittime", "history_timestamp", "mtime")})
#: Bytes where no suffix stands; words have eight bytes.
SIZE: Final = Size({"": 1, "b": 1, "w": 8} | suffixes("kmgtp", ("", "b", "w")))
_HOSTS: Final = 100_000
_COUNT: Final = re.compile(r"\d{1,9}", re.ASCII)


#: Why a job waits, by the scheduler's comment, the first that fits. Source: sched_cmds and error codes of OpenPBS'
#: pbs_sched (misc.cpp, prev_job_info.cpp); "Can Never Run" seen with OpenPBS 23.06, the others from the documents.
WAITS: Final = (
    (waits.NEVER, re.compile(r"can never run|will never run|never be satisfied", re.IGNORECASE)),
    (waits.HELD, re.compile(r"\bheld\b|too many failed attempts", re.IGNORECASE)),
    (waits.DEPENDENCY, re.compile(r"depend", re.IGNORECASE)),
    (waits.BEGIN, re.compile(r"execution time|eligible time|waiting for (?:its )?reservation|dedicated time|"
                             r"prime.?time", re.IGNORECASE)),
    (waits.LIMIT, re.compile(r"\blimit\b|reached .*(?:maximum|limit)|max_run", re.IGNORECASE)),
    (waits.UNAVAILABLE, re.compile(r"queue not started|queue .*(?:disabled|stopped)|offline|\bdown\b|"
                                   r"ineligible state|server (?:is )?not", re.IGNORECASE)),
)


# What is left of a run that was put back, and of the array where an element waits. Seen with OpenPBS 23.06.
_OF_RUNS: Final = re.compile(r"Job (?:run at|Array Began)\b")


def waits_for(comment: str | None) -> str | None:
    """The kind of a comment on a job that waits; of one that is in no table its turn, None where there is none, or one
    about a run."""
    if not comment or _OF_RUNS.match(comment):
        return None
    return waits.first_kind(comment, WAITS) or waits.TURN


@lru_cache(maxsize=1 << 12)
def exec_host(text: str) -> tuple[tuple[str, ...], int, str]:
    """(hosts, processors, what is wrong) of ``h/0+h/1``, ``h/0-3,7``, ``h/0*13``; ``*0`` leaves it to exec_vnode."""
    hosts: dict[str, None] = {}
    slots = 0
    for part in text.split("+") if text else ():
        host, _, places = part.partition("/")
        hosts[host.strip("()")] = None
        if len(hosts) > _HOSTS:
            return (), 0, f"more than {_HOSTS} hosts"
        _, star, times = places.partition("*")
        if star:
            slots += int(times) if _COUNT.fullmatch(times) else 0
            continue
        for piece in places.split(","):
            low, dash, high = piece.partition("-")
            if not re.fullmatch(r"\d{0,9}", low + high, re.ASCII) or (dash and not (low and high)):
                return (), 0, f"{part[:60]!a} is not of the form host/0-3"
            slots += max(0, int(high) - int(low) + 1) if dash else 1
    return tuple(hosts), slots, ""


# -- the fields of a job in an answer of ``qstat -f``, by their names in the plain form; column: as of FAILURES
def moment(fields: Mapping[str, str], name: str, column: int) -> float | None:
    """When a job was submitted (submit), started or ended, in seconds since the epoch; None where that is not said.

    A time is one of the epoch, or of the day in UTC: ``Sat Nov 21 08:24:31 2026``.
    """
    for field in _TIMES_OF[column][name]:
        text = fields.get(field, "")
        value = clocks.utc(text, "%a %b %d %H:%M:%S %Y")
        if (value := quantity(text) if value is None else value) is not None:
            return value
    return None


def exit_status(fields: Mapping[str, str]) -> int | None:
    """The exit status, which may be below zero."""
    text = fields.get("Exit_status") or fields.get("exit_status") or ""
    status = whole(text.removeprefix("-"))
    return -status if status is not None and text.startswith("-") else status


def ended(status: int, column: int) -> tuple[int | None, int | None, str]:
    """(exit code, signal, reason) of an exit status: one of the first two, or a reason, or nothing that is known."""
    if 0 <= status < _SIGNALED:
        return status, None, ""
    if _SIGNALED < status < 2 * _SIGNALED:
        return None, status - _SIGNALED, "signal"
    return None, None, FAILURES.get(status, ("", ""))[column]


def recorded(fields: Mapping[str, str], column: int) -> Usage:
    """What qstat says of a job; hosts that are malformed are none."""
    code, started = exit_status(fields), moment(fields, "start", column)
    names, processors, _ = exec_host(fields.get("exec_host", ""))
    starts = whole(fields.get("run_count") or fields.get("start_count")) or 0
    return Usage(
        submit_time=moment(fields, "submit", column), queue=fields.get("queue"), account=fields.get("Account_Name"),
        machine=fields.get("server"), ran=code is not None or started is not None or "exec_host" in fields,
        start_time=started, nodes=list(names) or None, node_count=len(names) or None,
        processors=processors if names else None, starts=starts if starts > 1 else None,
        end_time=moment(fields, "end", column),
        wall_seconds=clocks.seconds(fields.get("resources_used.walltime", "")),
        cpu_seconds=clocks.seconds(fields.get("resources_used.cput", "")),
        memory_max_bytes=in_bytes(fields.get("resources_used.mem", "")) or None,
        exit_code=code, signal=None if code is None else ended(code, column)[1])


def seconds(text: str, fields: int = 3) -> int:
    """Seconds of ``S``, ``M:S``, ``H:M:S``; a fraction of .5 or more is one second. ValueError for another form.

    fields: 4 for Torque, which also takes ``D:H:M:S`` and drops fractions.
    """
    if not _TIMES[fields].fullmatch(text):
        raise ValueError("is no time of PBS")
    whole, _, part = text.partition(".")
    return total([int(field) for field in whole.split(":")]) + (fields == 3 and part[:1] >= "5")


_TIMES: Final = {fields: re.compile(rf"\d{{1,12}}(?::\d{{1,9}}){{0,{fields - 1}}}(?:\.\d{{1,9}})?", re.ASCII)
                 for fields in (3, 4)}


#: Answers of qsub of OpenPBS and PBS Pro.
ANSWERS: Final = SubmitAnswers(
    "qsub", re.compile(r"\d{1,15}(?:\[\d*\])?\.[\w.-]{1,255}", re.ASCII),
    submitted=re.compile(r"(\d{1,15}(?:\[\d*\])?\.[\w.-]{1,255})", re.ASCII),
    # max_queued, queued_jobs_threshold and their kin of PBS Pro ("would exceed complex's per-user limit of jobs in 'Q'
    # state"), max_queuable and max_user_queuable of Torque
    full=re.compile(r"would exceed .*\blimit\b|maximum number of jobs|jobs exceeds? the|exceed.*limit of.*jobs",
                    re.IGNORECASE),
    later=re.compile(r"(cannot|could not|unable to) (connect|communicate)|connection refused|no route to host|"
                     r"try again|server (is )?(too )?busy|"
                     r"shutting down|temporarily", re.IGNORECASE),
    unknown=re.compile(r"timed? ?out|end of file|protocol error|system error|connection (reset|lost|closed)|"
                       r"broken pipe|premature|expired", re.IGNORECASE))
#: The same of Torque, whose ids may come without a server.
TORQUE_ANSWERS: Final = replace(
    ANSWERS, native_id=re.compile(r"\d{1,15}(?:\[\d*\]|-\d{1,10})?(?:\.[\w.-]{1,255})?", re.ASCII),
    submitted=re.compile(r"(\d{1,15}(?:\[\d*\]|-\d{1,10})?(?:\.[\w.-]{1,255})?)", re.ASCII))


# What qsub of PBS Pro and OpenPBS refuses.
#
# Sources: chk_Jrange.c, ck_job_name.c and parse_destid.c of OpenPBS; PBS_MAXJOBNAME of pbs_ifl.h; the flag
# ATR_DFLAG_CVTSLT of pbs_ecl_svr_resc_def.c; verify_value_mailpoints of ecl_verify_values.c, and what its own test of
# ``-m j`` expects; what qsub itself says of -r n and -I beside -J; qsub(1B), -l and -p.

_RANGE: Final = re.compile(r"(\d{1,9})-(\d{1,9})(?::(\d{1,9}))?(?:%\d{1,9})?", re.ASCII)
#: Resources that the server makes a select of; they cannot stand beside one, nor beside place.
_OF_CHUNKS: Final = ("ncpus", "mem", "vmem", "mpiprocs", "ompthreads", "ngpus", "naccelerators", "arch", "host",
                     "vnode", "aoe", "nodes")


def _indices(value: str) -> str:
    span = _RANGE.fullmatch(value)
    if span is None:
        return "is no range of indices"
    if int(span[2]) <= int(span[1]):
        return "the end of a range is above its start"
    return "a step is at least 1" if span[3] is not None and not int(span[3]) else ""


_EVENTS: Final = re.compile(r"n|[abej]*[abe][abej]*")


def _pbspro_events(value: str) -> str:
    return "" if _EVENTS.fullmatch(value) else "is n alone, or letters of abej of which j is not the only one"


def _resources(options: Mapping[str, str]) -> Iterator[Refusal]:
    if "j" in options.get("-m", "") and "-J" not in options:
        yield Refusal("-m", "only an array has mail of its elements (j)")
    if "-J" in options and options.get("-r") == "n":
        yield Refusal("-r", "an array may always be run again")
    if "-J" in options and "-I" in options:
        yield Refusal("-I", "an array is not interactive")
    beside = next((name for name in ("select", "place") if f"-l {name}" in options), None)
    if beside is None:
        return
    for name in _OF_CHUNKS:
        if f"-l {name}" in options:
            yield Refusal(f"-l {name}", f"-l {name} and -l {beside} exclude each other")


PBSPRO_JUDGE: Final = Judge("qsub", {
    "-J": _indices, "-m": _pbspro_events, "-N": JOB_NAMES["pbspro"].fault, "-q": one_word(", ", "destination"),
    "-p": bounded(-1024, 1023),
}, _resources)


# What qsub of Torque refuses. Sources: qsub(1B) of Torque, -N, -p, -q, -t; array_func.c, parse_array_request;
# process_opt_m of qsub_functions.c.

_TORQUE_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)


def _torque_indices(value: str) -> str:
    spans = [_TORQUE_RANGE.fullmatch(part) for part in re.sub(r"%\d{1,9}\Z", "", value).split(",")]
    if None in spans:
        return "is no list of indices"
    backwards = any(span is not None and span[2] is not None and int(span[2]) < int(span[1]) for span in spans)
    return "a range runs backwards" if backwards else ""


def _torque_events(value: str) -> str:
    return "" if re.fullmatch(r"n|p|[abef]+", value) else "is n or p alone, or letters of abef"


TORQUE_JUDGE: Final = Judge("qsub", {
    "-t": _torque_indices, "-m": _torque_events, "-N": JOB_NAMES["torque"].fault, "-q": one_word(", ", "destination"),
    "-p": bounded(-1024, 1023),
})
