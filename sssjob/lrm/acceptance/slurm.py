"""What sbatch refuses. Seen with sbatch of Slurm 22.05.8, for the most part with ``--test-only``; sbatch(1);
Heterogeneous Job Support of the Slurm documentation."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from sssjob.lrm.acceptance import Judge, Refusal, bounded
from sssjob.lrm.idset import one_range
from sssjob.lrm.slurm import limit, unbracketed

__all__ = ["JUDGE"]

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


def _of_form(form: str, why: str) -> Callable[[str], str]:
    """The check of an option of few words. form: an expression of those that are taken; why: what another one is."""
    taken = re.compile(form, re.IGNORECASE | re.ASCII | re.DOTALL)

    def refused(value: str) -> str:
        """Why a value is refused; empty if it is not."""
        return "" if taken.fullmatch(value) else why

    return refused


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
    **{name: _of_form(*form) for name, form in _FORMS.items()},
    "--priority": bounded(0, 4294967293), "--nice": bounded(-2147483645, 2147483645),
}, _together, whole={"--array": "a heterogeneous job is no array"})
