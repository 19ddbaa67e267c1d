"""Slurm: states, exit codes, trackable resources (TRES), limits of time, sizes, members of its JSON.

Sources: squeue(1) and sacct(1), Job State Codes; slurm.h; sbatch(1), --time and --mem; slurm.conf(5),
AccountingStorageTRES; recorded output of 22.05.8.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from sssjob.lrm import waits
from sssjob.lrm.acceptance import Judge, Refusal, bounded, of_form
from sssjob.lrm.answers import SubmitAnswers
from sssjob.lrm.clocks import seconds, total
from sssjob.lrm.idset import one_range
from sssjob.lrm.sizes import POWERS, Size, in_bytes, suffixes
from sssjob.lrm.states import NativeState, Stage, by_word

if TYPE_CHECKING:
    from sssjob.lrm.usage import Usage

__all__ = [
    "ANSWERS", "CODED", "HELD", "JUDGE", "NEVER", "NOWHERE", "SIZE", "STATES", "UNSET", "WAITS", "exit_of", "gpus",
    "job_id", "limit", "member", "number", "recorded", "shown", "state_of", "stated", "tres", "unbracketed",
    "waits_for",
]

#: Base states, then the flags that squeue shows instead of them.
STATES: Final[Mapping[str, NativeState]] = by_word(
    NativeState("PENDING", Stage.WAITING),
    NativeState("RUNNING", Stage.RUNNING),
    NativeState("SUSPENDED", Stage.SUSPENDED, phase="SUSPENDED"),
    NativeState("COMPLETED", Stage.DONE),
    NativeState("CANCELLED", Stage.CANCELED),
    NativeState("FAILED", Stage.FAILED),
    NativeState("TIMEOUT", Stage.FAILED, "timeout"),
    NativeState("NODE_FAIL", Stage.FAILED, "node-failure"),
    NativeState("PREEMPTED", Stage.FAILED, "preempted"),
    NativeState("BOOT_FAIL", Stage.FAILED, "boot"),
    NativeState("DEADLINE", Stage.FAILED, "deadline"),
    NativeState("OUT_OF_MEMORY", Stage.FAILED, "memory"),
    NativeState("COMPLETING", Stage.RUNNING, phase="CLEANUP"),
    NativeState("STAGE_OUT", Stage.RUNNING, phase="STAGE_OUT"),
    NativeState("CONFIGURING", Stage.WAITING, phase="CONFIGURING"),
    NativeState("EXPEDITING", Stage.WAITING),
    NativeState("RESIZING", Stage.RUNNING),
    NativeState("SIGNALING", Stage.RUNNING),
    NativeState("STOPPED", Stage.SUSPENDED, phase="SUSPENDED"),
    NativeState("REQUEUED", Stage.AGAIN),
    NativeState("REQUEUE_FED", Stage.AGAIN),
    NativeState("REQUEUE_HOLD", Stage.HELD, phase="HELD"),
    NativeState("SPECIAL_EXIT", Stage.HELD, phase="HELD"),
    NativeState("RESV_DEL_HOLD", Stage.HELD, phase="HELD"),
    NativeState("REVOKED", Stage.SILENT, "never-ran"),      # another cluster of the federation runs it
)
#: Why a pending job waits, by the words of its reason, the first that fits. A limit on one job, or on what it has on
#: one node, cannot be kept by waiting; the others are limits on what runs at once, or on what was used up.
#: Sources: squeue(1), JOB REASON CODES; job_state_reason_string() of slurm_protocol_defs.c; words seen with 22.05.8.
WAITS: Final = (
    (waits.HELD, re.compile(r"JobHeld|held state|requeued held|JobHoldMaxRequeue|ReservationDeleted|"
                            r"BurstBufferOperation")),
    (waits.NEVER, re.compile(r"PartitionTimeLimit|PartitionNodeLimit|PartitionConfig|BadConstraints|DeadLine|"
                             r"DependencyNeverSatisfied|InvalidAccount|InvalidBankAccount|InvalidQOS|QOSNotAllowed|"
                             r"AccountNotAllowed|MaxMemPerLimit|(?:Assoc|QOS)M(?:ax|in)\w*Per(?:Job|Node)|QOSMin|"
                             r"QOSMaxWallDuration|AssocMaxWallDuration")),
    (waits.DEPENDENCY, re.compile(r"^Dependency$")),
    (waits.BEGIN, re.compile(r"^(?:BeginTime|Reservation)$")),
    (waits.LIMIT, re.compile(r"^(?:Assoc|QOS|JobArrayTaskLimit|MaxPoweredUpNodes|AccountingPolicy|"
                             r"Max\w+Per(?:Account|User)$)")),
    (waits.UNAVAILABLE, re.compile(r"PartitionDown|PartitionInactive|ReqNodeNotAvail|NodeDown|FrontEndDown|"
                                   r"SystemFailure|^Nodes.required", re.IGNORECASE)),
)


def waits_for(reason: str) -> str | None:
    """The kind of a pending job's reason; of one that is in no table its turn, None where there is none."""
    if reason in ("", "None", "(null)", "N/A"):
        return None
    return waits.first_kind(reason, WAITS) or waits.TURN


#: States in which a code of 0 is the job's own.
CODED: Final = ("COMPLETED", "FAILED")
#: Reason of a pending job whose dependency cannot come true any more.
NEVER: Final = "DependencyNeverSatisfied"
#: Reason of a pending job -> who holds it.
HELD: Final = {"JobHeldUser": "User", "JobHeldAdmin": "System", NEVER: "System"}
#: Lists of nodes of a job that never had any.
NOWHERE: Final = ("", "None assigned", "(null)")


def state_of(text: str) -> NativeState | None:
    """The state of ``CANCELLED by 1001``, and of ``CANCELL+``, which a narrow column has cut; None for another word."""
    word = text.partition(" ")[0]
    state = STATES.get(word.rstrip("+"))
    if state is None and len(word) > 1 and word.endswith("+"):
        return next((native for name, native in STATES.items() if name.startswith(word.rstrip("+"))), None)
    return state


def exit_of(text: str) -> tuple[int | None, int | None]:
    """(exit code, signal) of ``code:signal``; None for what is no number or was never set."""
    code, _, signal = text.partition(":")
    return _count(code), _count(signal)


def _count(text: str) -> int | None:
    value = int(text) if text.isdecimal() and text.isascii() and len(text) <= 20 else None
    return None if value in UNSET else value


#: What a counter holds that was never set: NO_VAL and INFINITE of slurm.h, with 32 and with 64 bits.
UNSET: Final = frozenset({2**32 - 2, 2**32 - 1, 2**64 - 2, 2**64 - 1})


def tres(text: str) -> list[tuple[str, str]]:
    """The kinds and amounts of ``billing=8,cpu=8,gres/gpu:a100=1,mem=32G,node=1``."""
    pairs = (item.partition("=") for item in text.split(",") if item)
    return [(kind, value) for kind, _, value in pairs]


def gpus(items: Iterable[tuple[str, Decimal]]) -> tuple[Decimal | None, dict[str, Decimal], str]:
    """GPUs among kinds and amounts: how many (None where nothing says so), of which types, and what is wrong.

    Types are given where they add up to the total; where they do not, the total holds.
    """
    whole: Decimal | None = None
    types: dict[str, Decimal] = {}
    for kind, value in items:
        if kind == "gres/gpu":
            whole = value
        elif kind.startswith("gres/gpu:"):
            types[kind[9:]] = types.get(kind[9:], Decimal(0)) + value
    typed = sum(types.values(), Decimal(0))
    if whole is not None and types and typed != whole:
        return whole, {}, f"gres/gpu says {whole}, its types {typed}; gres/gpu is taken"
    return (typed if whole is None and types else whole), types, ""


# -- what a record says of a run, with times in seconds since the epoch (SLURM_TIME_FORMAT=%s)
def stated(text: str | None) -> str | None:
    """A word of an answer; None for what stands for none."""
    return None if text is None or text in NOWHERE or text == "Unknown" else text


def recorded(row: Mapping[str, str]) -> Usage:
    """A row of sacct, by the names of its columns: a run or a step, of which the steps have the memory.

    It has no nodes while it names fewer than it counts, as it does for a moment after the end (seen in 22.05).
    """
    from sssjob.lrm.hostlist import hosts
    from sssjob.lrm.usage import Usage, quantity, whole

    ran, count, (code, signal) = row["NodeList"] not in NOWHERE, whole(row["NNodes"]), exit_of(row["ExitCode"])
    names = hosts(row["NodeList"]) if ran else []
    return Usage(
        native_state=row["State"], submit_time=quantity(row["Submit"]), queue=row["Partition"] or None,
        account=row.get("Account") or None, qos=stated(row.get("QOS")), machine=row.get("Cluster") or None,
        ran=ran, start_time=quantity(row["Start"]),
        nodes=names if count in (None, len(names)) else None, node_count=count, processors=whole(row["NCPUS"]),
        **_gpus(row["AllocTRES"]), end_time=quantity(row["End"]), wall_seconds=quantity(row["ElapsedRaw"]),
        suspend_seconds=seconds(row["Suspended"]) or None, cpu_seconds=seconds(row["TotalCPU"]),
        memory_max_bytes=in_bytes(row["MaxRSS"]) or None, memory_average_bytes=in_bytes(row["AveRSS"]) or None,
        energy_joules=quantity(row["ConsumedEnergyRaw"]) or None, exit_code=code, signal=signal)


def shown(fields: Mapping[str, str]) -> Usage:
    """The fields of ``scontrol -o show job``, which say nothing of what was used."""
    from sssjob.lrm.hostlist import hosts
    from sssjob.lrm.usage import Usage, quantity, whole

    names, state = fields.get("NodeList", ""), state_of(fields.get("JobState", ""))
    ran, (code, signal) = names not in NOWHERE, exit_of(fields.get("ExitCode", ""))
    return Usage(
        native_state=None if state is None else state.word, submit_time=quantity(fields.get("SubmitTime", "")),
        queue=fields.get("Partition"), account=stated(fields.get("Account")), qos=stated(fields.get("QOS")),
        ran=ran, start_time=quantity(fields.get("StartTime", "")), nodes=hosts(names) if ran else None,
        node_count=whole(fields.get("NumNodes")), processors=whole(fields.get("NumCPUs")),
        **_gpus(fields.get("TRES", "")), starts=(whole(fields.get("Restarts")) or 0) + 1,
        end_time=quantity(fields.get("EndTime", "")), exit_code=code, signal=signal)


def _gpus(text: str) -> dict[str, Any]:
    """GPUs of ``gres/gpu=2,gres/gpu:a100=2``: how many, and of which types where all of them are named."""
    count, types, _ = gpus((kind, Decimal(value)) for kind, value in tres(text)
                           if kind.startswith("gres/gpu") and value.isdecimal() and value.isascii())
    return {"gpus": None if count is None else int(count),
            "gpu_types": {name: int(value) for name, value in types.items()} or None}


# -- values of options
_LIMIT: Final = re.compile(r"(?:\d{1,9}-)?\d{1,9}(?::\d{1,9}){0,2}|\d{1,9}-", re.ASCII)
#: MiB where no suffix stands.
SIZE: Final = Size({"": POWERS["M"]} | suffixes("kmgt"))


def limit(text: str) -> int:
    """Seconds of ``M``, ``M:S``, ``H:M:S``, ``D-[H[:M[:S]]]``; Slurm keeps whole minutes, rounded up. ValueError."""
    if not _LIMIT.fullmatch(text):
        raise ValueError("is no time of Slurm")
    days, dash, rest = text.rpartition("-")
    fields = [int(field or 0) for field in rest.split(":")]
    if dash:
        fields = [int(days), *fields, 0, 0][:4]
    elif len(fields) < 3:
        fields = [*fields, 0][:2]
    return -(-total(fields) // 60) * 60


#: Where brackets of an array are taken off: before the first number of a part, and behind every number.
_BRACKETS: Final = re.compile(r"(?<![^,])\[(?=\d)|(?<=\d)\]")


def unbracketed(text: str) -> str:
    """``1-12,20%4`` of ``[1-12,20%4]``, as squeue prints the indices of an array and sbatch takes them. Source:
    slurm_parse_array_tok of src/common/slurm_protocol_defs.c."""
    return _BRACKETS.sub("", text)


# -- JSON
_GREATEST: Final = 10**18


def member(value: Any, *keys: str) -> Any:
    """What stands under the keys, None where it does not."""
    for key in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def number(value: Any) -> int | None:
    """A number, plain or with ``set`` and ``infinite``; None where it is not set. ValueError for anything else."""
    if isinstance(value, dict):
        if not value.get("set", True) or value.get("infinite"):
            return None
        value = value.get("number")
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 2**64:
        raise ValueError(f"{str(value)[:40]!r} is no number")
    return int(value) if abs(value) < _GREATEST else None


def job_id(job: Any) -> str:
    """The id of a job as the text form prints it: ``12``, ``12_3``, ``12_[4-9]``, ``12+1``. ValueError: no number."""
    array, task = number(member(job, "array", "job_id")), number(member(job, "array", "task_id"))
    group = number(member(job, "het", "job_id"))
    if group:
        return f"{group}+{number(member(job, 'het', 'job_offset')) or 0}"
    if array and task is not None:
        return f"{array}_{task}"
    pending = member(job, "array", "task")
    if array and pending and isinstance(pending, str):
        return f"{array}_[{pending}]"
    return str(number(member(job, "job_id")))


# The reasons that sbatch prints before "Job violates accounting/QOS policy" where a limit on the number of submitted
# jobs was reached (seen with 22.05.8), those of other releases (squeue(1), JOB REASON CODES), and what it says while it
# tries again by itself because of MaxJobCount (slurm.conf(5)). That a job alone asks for too much
# (QOSMaxCpuPerJobLimit, QOSMaxWallDurationPerJobLimit) never passes.
_FULL: Final = re.compile(r"(?:QOS|Assoc)?(?:Max|Grp)SubmitJobs?(?:Per(?:User|Account))?(?:Limit)?\b|"
                         r"unable to accept job, sleeping and retrying|failed: resource temporarily unavailable|"
                         r"MaxJobCount|maximum.*jobs", re.IGNORECASE)
#: Answers of sbatch.
ANSWERS: Final = SubmitAnswers(
    "sbatch", re.compile(r"\d{1,10}(?:_\d{1,10}|\+\d{1,10})?", re.ASCII),
    submitted=re.compile(r"(\d{1,10})(?:;([\w.-]+))?", re.ASCII),
    full=_FULL, later=re.compile(r"temporarily|try again|unable to contact|connection refused|(?:QOS|Assoc)Grp|"
                                r"\A(?![\s\S]*(?:QOS|Assoc)M(?:ax|in))[\s\S]*job violates accounting/QOS policy|"
                                r"in standby mode|slurm backup controller|unable to resolve", re.IGNORECASE),
    unknown=re.compile(r"timed out|zero bytes|unexpected message|transport endpoint|connection reset|"
                       r"broken pipe|communication (connection|shutdown) failure|unspecified error",
                       re.IGNORECASE))


# What sbatch refuses. Seen with sbatch of Slurm 22.05.8, for the most part with ``--test-only``; sbatch(1);
# Heterogeneous Job Support of the Slurm documentation.

_LONGEST: Final = 1024
#: Options of which only one may stand.
_ONE_OF: Final = (
    ("--mem", "--mem-per-cpu", "--mem-per-gpu"),
    ("--cpus-per-task", "--cpus-per-gpu"),
    ("--ntasks-per-node", "--ntasks-per-gpu"),
    ("--gpus-per-task", "--ntasks-per-gpu"),
    ("--core-spec", "--thread-spec"),
)
_COUNTS: Final = ("--ntasks", "--cpus-per-task", "--ntasks-per-node", "--threads-per-core", "--ntasks-per-core",
                  "--ntasks-per-socket", "--ntasks-per-gpu", "--cpus-per-gpu", "--sockets-per-node",
                  "--cores-per-socket", "--mincpus")
#: Options of few words: the form of all values that are taken, in any case, and what is refused of another one.
#: Source: the ``arg_set_`` functions of src/common/slurm_opt.c, and what they call in src/common/proc_args.c.
_LIMITS: Final = "AS|CORE|CPU|DATA|FSIZE|MEMLOCK|NOFILE|NPROC|RSS|STACK"
_SIGNALS: Final = "HUP|INT|QUIT|ABRT|KILL|ALRM|TERM|CHLD|USR[12]|PIPE|URG|CONT|STOP|TSTP|TTIN|TTOU|XCPU"
_WITHIN: Final = r"(?:block|cyclic|fcyclic|\*)"
_EVERY: Final = r"(?:(?:energy|task|filesystem|network)=)?\d+"
_LICENSE: Final = r"[^:=,;|]+(?:[:=][1-9]\d*)?"
_COUNTED: Final = r"(?:\*[^:]*|\d+[km]?(?:-[1-9]\d*[km]?)?|)"
#: Lists of numbers and of masks, each of them repeated or not: ``0*4,1``. All is possessive, so that no text is slow.
_NUMBERS: Final = r"\d++(?:\*\d++)?+(?:,++\d++(?:\*\d++)?+)*+"
_MASKS: Final = r"(?:0x)?+[\da-f]++(?:\*\d++)?+(?:,++(?:0x)?+[\da-f]++(?:\*\d++)?+)*+"
_MEMORY: Final = (rf"(?:q|quiet|v|verbose|no|none|rank|local|p|prefer|sort|nosort|help|"
                  rf"map_?mem[:=]{_NUMBERS}|mask_?mem[:=]{_MASKS})")
_GPU_FREQUENCY: Final = r"(?-i:\d+|low|medium|high|highm1)"
_CPU_FREQUENCY: Final = r"(?:(?:lo|hi|med)[^:-]*|[1-9]\d*)"
_GOVERNOR: Final = r"(?:co|perf|pow|onde|sche)"
#: src/common/parse_time.c. A T that stands alone parts a date from a clock, and so no word begins with a capital one.
_DAY: Final = r"(?:0[1-9]|[12]\d|3[01]|[1-9](?!\d))"
_DATE: Final = (rf"(?:\d{{4}}-(?:0[1-9]|1[0-2])-{_DAY}|"
                rf"(?:0[1-9]|1[0-2]|[1-9](?!\d))[./]?{_DAY}[./]?(?:\d\d|(?!\d)))")
_CLOCK: Final = (r"(?:(?:0?\d|1[0-2]):[0-5]\d(?::[0-5]\d)?\s*+[ap]m|"
                 r"(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?(?!\s*[ap]m))")
_WORD_OF_TIME: Final = "(?-i:t)(?:oday|omorrow|eatime)|midnight|noon|elevenses|fika"
_NOW: Final = r"now[ \t]*+(?:[+-]\s*+\d[\d\s]*+(?:second|minute|hour|day|week)?s?)?"
_MOMENT: Final = (rf"uts\d+|(?:[ \t-]|(?-i:T)|{_WORD_OF_TIME}|{_NOW}|{_CLOCK}|{_DATE})*+",
                  "is no time that sbatch reads, as 2030-01-31T16:00, 16:00 or now+2hours")
_FORMS: Final = {
    "--open-mode": (r"[at].*", "is neither append nor truncate"),
    "--kill-on-invalid-dep": ("yes|no", "is neither yes nor no"),
    "--wait-all-nodes": ("[01]", "is neither 0 nor 1"),
    "--signal": (rf"R?B?R?:?(?:(?:SIG)?(?:{_SIGNALS})|[1-9]\d{{0,4}})(?:@\d{{0,5}})?",
                 "is no signal with the seconds before the end, as B:USR1@60"),
    "--hint": (r"(?:,?(?:compute_bound|memory_bound|multithread|nomultithread|help))+",
               "is none of compute_bound, memory_bound, multithread, nomultithread"),
    "--distribution": (rf"plane=\d+|arbitrary|(?:block|cyclic|\*)(?::{_WITHIN}){{0,2}}(?:,(?:no)?pack)?|(?:no)?pack",
                       "is no distribution of tasks, as block:cyclic"),
    "--exclusive": ("|user|mcs|topo|exclusive|allocation|oversubscribe", "is neither user nor mcs"),
    "--profile": (".*(?:none|energy|task|lustre|filesystem|network|all).*", "is none of all, none, energy, task, "
                  "filesystem, network"),
    "--propagate": (rf"|ALL|NONE|(?:,?(?:RLIMIT_)?(?:{_LIMITS}))+", "names no limit that Slurm knows"),
    "--dependency": (r"\d.*|(?:after(?:any|burstbuffer|corr|notok|ok)?|expand):.+|singleton(?:[,?].*)?",
                     "begins with no kind of dependency, as afterok:123"),
    "--switches": (r"\d+(?:@.*)?", "begins with no number of switches"),
    "--acctg-freq": (rf"{_EVERY}(?:,{_EVERY})*", "is no number of seconds"),
    "--licenses": (rf"{_LICENSE}(?:[,;|]{_LICENSE})*|.*\(.*", "has no whole number behind the name of a license"),
    **dict.fromkeys(("--core-spec", "--thread-spec"), (r"\d+", "is no whole number")),
    **dict.fromkeys(_COUNTS, (r"\s*\+?0*[1-9]\d*", "is no whole number of at least 1")),
    **dict.fromkeys(("--begin", "--deadline"), _MOMENT),
    "--extra-node-info": (rf"{_COUNTED}(?::{_COUNTED}(?::{_COUNTED}(?::.*)?)?)?",
                          "is no number of sockets, cores and threads, as 2:4:1"),
    "--no-kill": ("|off", "takes no value but off"),
    "--delay-boot": (r"-1|infinite|unlimited|\d+-?|(?:\d+-)?\d+(?::\d+)?|\d+(?:-\d+)?(?::\d+){2}", "is no time"),
    "--get-user-env": (r"|-?\d+[sl]?|[sl]", "is no number of seconds with S or L behind it"),
    "--gpu-bind": (rf"(?:verbose,)?(?:closest.*|none.*|map(?:_gpu)?:(?:{_NUMBERS})?|mask(?:_gpu)?:(?:{_MASKS})?|"
                   r"(?:single|per_task):(?!-).*)",
                   "binds tasks to no GPU, as closest or single:2"),
    "--gpu-freq": (rf"(?:,*(?:(?-i:memory=)?{_GPU_FREQUENCY}|(?-i:verbose))(?=,|\Z))+,*",
                   "is no frequency of GPUs, as medium,memory=high"),
    "--cpu-freq": (rf"(?:{_GOVERNOR}|user)[^:]*|{_CPU_FREQUENCY}(?::user.*)?|"
                   rf"{_CPU_FREQUENCY}-{_CPU_FREQUENCY}(?::{_GOVERNOR}.*)?",
                   "is no frequency and no governor of CPUs, as low-high:OnDemand"),
    "--mem-bind": (rf"{_MEMORY}(?:,++{_MEMORY})*+,*", "binds tasks to no memory, as local"),
}


def _indices(value: str) -> str:
    indices = re.sub(r"%\d{1,9}\Z", "", unbracketed(value))
    for part in indices.split(",") if indices else ():
        span = one_range(part)
        if span is None:
            return "is no list of indices"
        if span[1] < span[0]:
            return "a range runs backwards"
        if not span[2]:
            return "a step is at least 1"
    return ""


def _name(value: str) -> str:
    return f"has more than {_LONGEST} characters" if len(value) > _LONGEST else ""


def _hosts(value: str) -> str:
    return "" if value.count("[") == value.count("]") else "has a bracket without the other one"


def _owner(value: str) -> str:
    return "" if re.fullmatch(r"[\w.][\w.$-]*", value) else "is no name and no number of one user or group"


def _together(options: Mapping[str, str]) -> Iterator[Refusal]:
    for names in _ONE_OF:
        stated = [name for name in names if name in options]
        if len(stated) > 1:
            yield Refusal(stated[-1], f"{' and '.join(stated)} exclude each other")
    if "--gpus-per-task" in options and "--ntasks" not in options and "--gpus" not in options \
            and "--ntasks-per-node" not in options:
        yield Refusal("--gpus-per-task", "--gpus-per-task wants --ntasks or --gpus")
    if "--gpus-per-socket" in options and "--sockets-per-node" not in options:
        yield Refusal("--gpus-per-socket", "--gpus-per-socket wants --sockets-per-node")
    if "--mem-per-gpu" in options and not any(name.startswith("--gpus") or name == "--gres" for name in options):
        yield Refusal("--mem-per-gpu", "--mem-per-gpu wants an option that asks for GPUs")
    if "--time-min" in options and _duration(options["--time-min"]) > _duration(options.get("--time", "0")):
        yield Refusal("--time-min", f"is more than --time {options['--time']}")


def _duration(value: str) -> float:
    """Seconds of a limit; without end for none, and for what is no limit, of which its grammar tells."""
    try:
        return limit(value) or math.inf
    except ValueError:
        return math.inf


JUDGE: Final = Judge("sbatch", {
    "--array": _indices, "--job-name": _name,
    "--uid": _owner, "--gid": _owner, "--nodelist": _hosts, "--exclude": _hosts,
    **{name: of_form(*form) for name, form in _FORMS.items()},
    "--priority": bounded(0, 4294967293), "--nice": bounded(-2147483645, 2147483645),
}, _together, whole={"--array": "a heterogeneous job is no array"})
