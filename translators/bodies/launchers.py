"""Launchers of parallel programs: the one table of what they are told, by meaning.

``translate`` writes the options of another launcher where a command stands, ``shim`` a function that does so when it is
called. What is started is carried whole or not at all; an option that only tunes how it runs is left out where the
other launcher has none for it, which is told.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from sssjob.lrm.variables import FACTS
from sssjob.translators.bodies.shell import Word

__all__ = ["AMOUNTS", "CALLED", "HELD", "LAUNCHERS", "ONCE", "SOFT", "Form", "Launcher", "Place", "Said", "Value",
           "asked_tasks", "holds", "left_out", "parsed", "resolved", "untold", "written"]

Value = str | tuple[int, int]       # text, or where it stands in the body
#: How an option is written: ``-n 4``, ``-n4``, ``--ntasks=4``, ``-l``.
Form = tuple[str, Literal["apart", "glued", "equals", "flag"]]
#: Meanings that are numbers.
AMOUNTS: Final = frozenset((
    "tasks", "nodes", "per_node", "cpus", "gpus", "node_gpus", "all_gpus", "each", "per_host"))
#: Meanings of which each option is one more, or that say nothing that another launcher would have to be told.
ONCE: Final = frozenset(("setting", "exported", "own", "tuning", "same"))
#: Meanings that a launcher which has no option for them leaves out: the same tasks run the same program without them.
SOFT: Final = frozenset(("label", "output", "error", "hosts", "name"))


@dataclass(frozen=True, slots=True)
class Launcher:
    """A launcher.

    reads: option -> what it says; flags: those without a value. writes: what is said -> option, in order; empty where
    it does so unasked. default: tasks that it starts when nothing is said; empty: all of the job; ``?``: something of
    its own. sums: (meaning, meaning, sign, meaning, absent) of what is said in other words; absent: only where the
    first is not said. ones: what is one unless it is said. same: values with which an option says what holds anyway.
    ends: the word before the program. optional: options whose value stands behind ``=`` or not at all. takes: what it
    takes from the job where it is not told; one whose default is one task takes nothing.

    Meanings: ``tasks``; ``nodes``; ``per_node``, tasks of a node; ``cpus`` and ``gpus`` of a task; ``node_gpus`` and
    ``all_gpus``, those of a node and of all tasks; ``each``, tasks of a resource set; ``per_host``, sets of a node;
    ``directory``; ``label``, ranks before lines of output; ``output``, ``error`` and ``input``, files; ``hosts``, nodes
    by name; ``name``, that of the tasks; ``setting``, a variable; ``exported``, the name of one; ``own``, how the
    launcher does its work; ``tuning``, how tasks are placed, bound and limited, and what becomes of them; ``same``.
    """

    name: str
    reads: Mapping[str, str] = field(default_factory=dict)
    writes: Mapping[str, str] = field(default_factory=dict)
    default: str = "?"
    flags: frozenset[str] = frozenset()
    sums: tuple[tuple[str, str, str, str, bool], ...] = ()
    ones: frozenset[str] = frozenset()
    same: Mapping[str, frozenset[bytes]] = field(default_factory=dict)
    ends: str = ""
    optional: frozenset[str] = frozenset()
    takes: frozenset[str] = frozenset()


def _tuning(text: str) -> dict[str, str]:
    """Options that only tune, separated by blanks."""
    return dict.fromkeys(text.split(), "tuning")


#: srun(1): without these the same tasks run the same program. Not among them are those that choose what runs
#: (``--multi-prog``, ``--bcast``, ``--het-group``, ``--jobid``, ``--task-prolog``, ``--pty``) and the GPUs of a step.
_SRUN_TUNES: Final = _tuning(
    "--mem --mem-per-cpu --mem-per-gpu --mem-bind --mem_bind --cpu-freq --cpus-per-gpu --gpu-bind --gpu-freq --hint -m "
    "--distribution -t --time --time-min -p --partition -A --account -q --qos --reservation -C --constraint "
    "-x --exclude -r --relative -B --extra-node-info --sockets-per-node --cores-per-socket --threads-per-core "
    "--ntasks-per-core --ntasks-per-socket --ntasks-per-gpu --open-mode --acctg-freq --profile --network --comment "
    "--threads -T -W --wait --slurmd-debug --switches --tmp --mincpus -L --licenses -S --core-spec")
_SRUN_SWITCHES: Final = (
    "--overlap -O --overcommit -s --oversubscribe -X --disable-status -E --preserve-env --contiguous "
    "--use-min-nodes --whole --exact")
_SRUN_OPTIONAL: Final = (
    "--cpu-bind --cpu_bind --exclusive -K --kill-on-bad-exit -I --immediate --propagate --resv-ports")


def _forms(name: str) -> frozenset[bytes]:
    """A variable as it may be written for a value."""
    return frozenset(form % name.encode() for form in (b"$%s", b"${%s}", b'"$%s"', b'"${%s}"'))


#: Sources: srun(1); TACC's user guides (ibrun); aprun(1); jsrun(1); LLNL's page on srun and jsrun (lrun); flux-run(1);
#: mpirun.lsf of LSF takes mpirun's own options; mpiexec of the MPI standard, 11.5 (-wdir); runjob: the pages of the
#: Hartree Centre (one rank a node unless told) and of ALCF on jobs of Blue Gene/Q.
LAUNCHERS: Final[Mapping[str, Launcher]] = {launcher.name: launcher for launcher in (
    Launcher("srun",
             {"-n": "tasks", "--ntasks": "tasks", "-N": "nodes", "--nodes": "nodes", "-c": "cpus",
              "--cpus-per-task": "cpus", "--ntasks-per-node": "per_node", "--tasks-per-node": "per_node",
              "--gpus-per-task": "gpus", "--gpus-per-node": "node_gpus", "-G": "all_gpus", "--gpus": "all_gpus",
              "-D": "directory", "--chdir": "directory", "-l": "label", "--label": "label", "-o": "output",
              "--output": "output", "-e": "error", "--error": "error", "-i": "input", "--input": "input",
              "-w": "hosts", "--nodelist": "hosts", "-J": "name", "--job-name": "name",
              "--mpi": "own", "-v": "own", "--verbose": "own", "-Q": "own", "--quiet": "own", "-u": "own",
              "--unbuffered": "own", "--export": "same", "--gres": "same"}
             | _SRUN_TUNES | _tuning(_SRUN_SWITCHES) | _tuning(_SRUN_OPTIONAL),
             {"tasks": "-n {}", "nodes": "-N {}", "per_node": "--ntasks-per-node={}", "cpus": "-c {}",
              "gpus": "--gpus-per-task={}", "directory": "--chdir={}", "label": "-l", "output": "--output={}",
              "error": "--error={}", "input": "--input={}", "hosts": "--nodelist={}", "name": "--job-name={}",
              "setting": "", "exported": ""},
             "", frozenset(("-l", "--label", "-v", "--verbose", "-Q", "--quiet", "-u", "--unbuffered",
                            *_SRUN_SWITCHES.split())),
             same={"--export": frozenset((b"ALL",)), "--gres": frozenset((b"none",))},
             optional=frozenset(_SRUN_OPTIONAL.split()), takes=frozenset(("nodes", "per_node", "cpus", "gpus"))),
    Launcher("ibrun", {"-n": "tasks", "-np": "tasks"}, default="", takes=frozenset(("nodes", "per_node", "gpus"))),
    Launcher("aprun",
             {"-n": "tasks", "-N": "per_node", "-d": "cpus", "-e": "setting", "--env": "setting", "-q": "own",
              "--quiet": "own"} | _tuning("-cc --cc -cp -ss -S -sn -sl -m -j -r -F -b -t"),
             {"tasks": "-n {}", "per_node": "-N {}", "cpus": "-d {}", "setting": "", "exported": ""}, "1",
             frozenset(("-q", "--quiet", "-ss", "-b"))),
    Launcher("jsrun",
             {"-n": "tasks", "--nrs": "tasks", "-a": "each", "--tasks_per_rs": "each", "-c": "cpus",
              "--cpu_per_rs": "cpus", "-g": "gpus", "--gpu_per_rs": "gpus", "-r": "per_host", "--rs_per_host":
              "per_host", "-E": "setting", "--env": "setting", "-o": "output", "--stdio_stdout": "output",
              "-k": "error", "--stdio_stderr": "error", "-t": "input", "--stdio_stdin": "input"}
             | _tuning("-b --bind -d --launch_distribution -l --latency_priority -X --exit_on_error -K --rs_per_socket "
                       "-M --smpiargs -m --memory_per_rs"),
             sums=(("tasks", "tasks", "*", "each", False), ("cpus", "cpus", "/", "each", False),
                   ("gpus", "gpus", "/", "each", False), ("per_node", "per_host", "*", "each", False)),
             ones=frozenset(("each",))),
    Launcher("lrun", {"-p": "tasks", "-n": "tasks", "-N": "nodes", "-T": "per_node"},
             sums=(("tasks", "nodes", "*", "per_node", True),)),
    Launcher("mpirun.lsf", default="", takes=frozenset(("nodes", "per_node", "cpus", "gpus"))),
    Launcher("flux run",
             {"-n": "tasks", "--ntasks": "tasks", "-N": "nodes", "--nodes": "nodes", "-c": "cpus",
              "--cores-per-task": "cpus", "-g": "gpus", "--gpus-per-task": "gpus", "--cwd": "directory", "-l": "label",
              "--label-io": "label", "--output": "output", "--error": "error", "--input": "input", "--job-name": "name",
              "-v": "own", "--verbose": "own", "-u": "own", "--unbuffered": "own"}
             | _tuning("-o --setopt -t --time-limit -x --exclusive --urgency --setattr"),
             {"tasks": "-n {}", "nodes": "-N {}", "cpus": "-c {}", "gpus": "-g {}", "directory": "--cwd={}",
              "label": "-l", "output": "--output={}", "error": "--error={}", "input": "--input={}",
              "hosts": "--requires=host:{}", "name": "--job-name={}", "setting": "", "exported": ""}, "1",
             frozenset(("-l", "--label-io", "-v", "--verbose", "-u", "--unbuffered", "-x", "--exclusive"))),
    Launcher("runjob",
             {"--np": "tasks", "-n": "tasks", "--ranks-per-node": "per_node", "-p": "per_node", "--envs": "setting",
              "--exp-env": "exported", "--cwd": "directory", "--label": "label", "--verbose": "own", "--block": "same"},
             flags=frozenset(("--label",)), same={"--block": _forms("COBALT_PARTNAME")},
             sums=(("tasks", "all_nodes", "*", "per_node", True),), ones=frozenset(("per_node",)), ends=":"),
    Launcher("mpirun", writes={"tasks": "-np {}", "directory": "-wdir {}", "setting": "", "exported": ""}, default=""),
)}
#: What launchers do not share: it goes into sums.
_ALONE: Final = ("each", "per_host", "all_nodes")
#: What is meant -> what it is called in messages.
CALLED: Final = {"tasks": "the number of tasks", "nodes": "the number of nodes", "per_node": "the tasks of a node",
                 "cpus": "the processors of a task", "gpus": "the GPUs of a task", "node_gpus": "the GPUs of a node",
                 "all_gpus": "the GPUs of all tasks", "directory": "a directory",
                 "label": "ranks before lines of output", "setting": "variables of the tasks",
                 "exported": "variables of the tasks", "input": "a file of standard input"}
_SETTING: Final = re.compile(rb"[\"']?[A-Za-z_]\w*=")
#: What may follow the letter of an option without a blank.
_GLUED: Final = re.compile(r"[\d$\"'`]")


Place = tuple[Value, bytes]         # where a value stands, and the value


@dataclass(slots=True)
class Said:
    """What a command tells its launcher: meaning -> its value; variables of the tasks, where they stand; options of the
    launcher's own; those that only tune; how the options are written; how many words they are; what is left out, where
    it stands; names: meaning -> the option that said it; counted: of an option that says what holds anyway, the values
    that count something (``--gres=gpu:4``)."""

    values: dict[str, Place] = field(default_factory=dict)
    settings: list[tuple[int, int]] = field(default_factory=list)
    own: list[str] = field(default_factory=list)
    tuning: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    forms: dict[Form, None] = field(default_factory=dict)
    end: int = 0
    gone: list[tuple[int, int]] = field(default_factory=list)
    counted: dict[Form, dict[str, None]] = field(default_factory=dict)


def parsed(words: Sequence[Word], launcher: Launcher) -> Said | str:
    """What the words after a launcher's name say, or why they cannot be carried."""
    call, at = Said(), 0
    while at < len(words):
        word, text = words[at], words[at].text.decode("utf-8", "surrogateescape")
        if text == launcher.ends:
            call.end = at + 1
            return call
        if launcher.ends and call.settings and _SETTING.match(word.text):
            call.settings.append((word.start, word.end))
        elif launcher.ends and text.startswith("$"):
            return f"{text} may hold options"
        elif not text.startswith("-"):
            break
        else:
            option = _option(text, launcher)
            if option is None:
                return f"{text} has no equal"
            (name, form), skip = option
            at += form == "apart"
            if at == len(words):
                return f"{text} lacks its value"
            value = words[at]
            where = (value.start + skip, value.end)
            why = _taken(call, launcher, (name, form), where, value.text[skip:], (word.start, value.end))
            if why:
                return why
        at += 1
    call.end = at
    return f"no {launcher.ends} stands before the program" if launcher.ends else call


def _option(text: str, launcher: Launcher) -> tuple[Form, int] | None:
    """The option that a word is, and at which sign of the word with the value that begins."""
    name, sign, _ = text.partition("=")
    if text in launcher.flags or (not sign and text in launcher.optional):
        return (text, "flag"), 0
    if sign and name.startswith("--") and name in launcher.reads:
        return (name, "equals"), len(name) + 1
    if not sign and name in launcher.reads:
        return (name, "apart"), 0
    meaning = launcher.reads.get(text[:2])
    if (meaning in AMOUNTS and _GLUED.match(text, 2)) or (
            meaning == "tuning" and text[:2] not in launcher.flags and text[2:3] not in ("", "-")):
        return (text[:2], "glued"), 2
    return None


def _taken(call: Said, launcher: Launcher, form: Form, where: tuple[int, int], value: bytes, whole: tuple[int, int]
           ) -> str:
    """Put one option into what is said; gives why it cannot be carried."""
    name, meaning = form[0], launcher.reads[form[0]]
    call.forms[form] = None
    if meaning == "setting":
        if not _SETTING.match(value):
            return f"{name} names no variable with its value"
        call.settings.append(where)
    elif meaning == "own":
        call.own.append(name)
    elif meaning == "tuning":
        call.tuning.append(name)
    elif meaning == "same" and value.startswith(_WITH_ALL) and not _ODD.search(value):
        at = where[0] + len(_WITH_ALL)
        for part in value[len(_WITH_ALL):].split(b","):
            call.settings += [(at, at + len(part))] * (b"=" in part)        # a name alone is exported by ALL
            at += len(part) + 1
    elif name == "--gres" and (gpus := _GRES.fullmatch(value)) is not None:
        call.values["node_gpus"] = (where[0] + gpus.start(1), where[1]), gpus[1]
        call.names["node_gpus"] = name
        call.counted.setdefault(form, {})[value.decode()] = None
    elif meaning == "same" and value not in launcher.same[name]:
        return f"{name} {value.decode('utf-8', 'replace')} has no equal"
    elif meaning not in ONCE or meaning == "exported":
        call.values[meaning] = where, value
        call.names[meaning] = name
    if meaning in ONCE and meaning != "setting" and not call.settings:
        call.gone.append(whole)
    return ""


#: The beginning of ``--export=ALL,NAME=VALUE`` (srun(1)), and signs with which its values have to be read by a shell.
_WITH_ALL: Final = b"ALL,"
_ODD: Final = re.compile(rb"[\"'\\`]|\$\(")


#: GPUs of a node, as srun(1) counts them.
_GRES: Final = re.compile(rb"gpu(?::[A-Za-z][\w.]*)?:(\d{1,9})", re.ASCII)


def left_out(call: Said, launcher: Launcher, to: Launcher) -> str:
    """What to say of options that are left out: the launcher's own, and those that the other one has none for."""
    own, tuning = list(dict.fromkeys(call.own)), list(dict.fromkeys(call.tuning))
    say, are = ("say", "are") if len(own) > 1 else ("says", "is")
    reasons = [f"{', '.join(own)} {say} how {launcher.name} itself works and {are} left out"] if own else []
    reasons += [f"{', '.join(tuning)} left out, for {to.name} is told nothing of the kind"] if tuning else []
    if to.name == "mpirun" and (call.settings or "exported" in call.values):
        reasons.append("whether tasks on other nodes get its variables depends on the MPI")
    return "; ".join(reasons)


def resolved(call: Said, launcher: Launcher, to: Launcher, job_values: Mapping[str, str], default: str
             ) -> dict[str, Place] | str:
    """What is said in the words that launchers share, or why the other one cannot say it. job_values: what the job asks
    for; default: tasks that the other one starts when nothing is said, as ``Launcher.default``."""
    values = {m: ("1", b"1") for m in launcher.ones} | call.values
    if (nodes := job_values.get("nodes", "")).isdigit():
        values["all_nodes"] = nodes, nodes.encode()
    for key, first, sign, second, absent in launcher.sums:
        if first not in values or second not in values or (absent and key in values):
            continue
        total = _sum(values[first], sign, values[second])
        if total is None:
            return f"{CALLED[key]} cannot be worked out"
        values[key] = total
    for key in _ALONE:
        values.pop(key, None)
    without_gpus = values.get("gpus", ("", b""))[1] == b"0"
    if without_gpus and isinstance(place := values.pop("gpus")[0], tuple):      # to say nothing is to ask for none
        call.gone.append(place)
    if "tasks" not in values:
        number = launcher.default or (default and asked_tasks(launcher, job_values))
        if number and not number.isdigit():
            return "how many tasks it starts is not said"
        values |= {"tasks": (number, number.encode())} if number else {}
    if call.settings:
        values["setting"] = "", b""
    if "gpus" in values:                    # they say the same in sum
        call.gone += [place for key in ("node_gpus", "all_gpus") for place, _ in (values.pop(key, ("", b"")),)
                      if isinstance(place, tuple)]
    for key in SOFT & values.keys():
        if key not in to.writes or (key in ("output", "error") and _TOKEN.search(values[key][1])):
            call.tuning.append(call.names[key])
            call.gone += [place for place, _ in (values.pop(key),) if isinstance(place, tuple)]
    unsayable = [key for key in values if key not in to.writes and not holds(key, values[key][1], job_values)]
    if unsayable:
        return f"{to.name} cannot say {' or '.join(CALLED[key] for key in unsayable)}"
    call.gone += [place for key, (place, _) in values.items() if key not in to.writes and isinstance(place, tuple)]
    missing = untold(call.values, launcher, to, job_values)
    if "gpus" in launcher.takes and "gpus" in to.writes and not {"gpus"} & (values.keys() | missing.keys()) \
            and to.default == "1" and job_values.keys() & _GPUS_ASKED and not without_gpus:
        return f"{to.name} gives a task the GPUs that it is told of, and how many a task has is not said"
    return values | {key: (text, text.encode()) for key, text in missing.items()}


#: What a job may ask for GPUs by.
_GPUS_ASKED: Final = frozenset(("gpus", "gpus_per_node", "gpus_per_task"))


def untold(own: Mapping[str, Place], launcher: Launcher, to: Launcher, job_values: Mapping[str, str]) -> dict[str, str]:
    """What the tasks of a launcher get of the job although no word says so, and the other one has to be told: meaning
    -> number. own: what the call says itself; job_values: what the job asks for.

    Sources: srun(1), section INPUT ENVIRONMENT VARIABLES; flux-run(1) and aprun(1) know nothing of the job;
    flux-shell(1), gpu-affinity: a task that is given no GPU sees none.
    """
    if to.default != "1":
        return {}
    numbers = {meaning: text for meaning, text in job_values.items() if text.isdecimal() and len(text) < _LONG}
    of_the_job = {key: numbers[HELD[key]] for key in ("per_node", "nodes", "cpus", "gpus") if HELD[key] in numbers}
    all_tasks = not own.keys() & {"nodes", "per_node"} and (
        "tasks" not in own or own["tasks"][1] in (*_TASKS, numbers.get("tasks", "").encode()))
    if all_tasks and "gpus" not in of_the_job and (each := _gpus_of_a_task(numbers)):
        of_the_job["gpus"] = each
    if not all_tasks or numbers.get("nodes", "1") == "1":
        of_the_job = {key: text for key, text in of_the_job.items() if key not in ("nodes", "per_node")}
    elif "per_node" in to.writes and "per_node" in of_the_job:
        of_the_job.pop("nodes", None)
    return {key: text for key, text in of_the_job.items()
            if key in launcher.takes and key in to.writes and key not in own and (key, text) != ("cpus", "1")}


#: Digits of counts with which is reckoned.
_LONG: Final = 10


def _gpus_of_a_task(numbers: Mapping[str, str]) -> str:
    """The GPUs of each task, where those of a node or of the job can be shared out evenly."""
    tasks = int(numbers.get("tasks", "0"))
    per_node = int(numbers.get("tasks_per_node", "0"))
    if not per_node and numbers.get("nodes", str(tasks)) == "1":
        per_node = tasks
    for whole, among in (("gpus_per_node", per_node), ("gpus", tasks)):
        gpus = int(numbers.get(whole, "0"))
        if gpus and among and not gpus % among:
            return str(gpus // among)
    return ""


#: What a launcher fills in in the name of a file, each in its own way.
_TOKEN: Final = re.compile(rb"%|\{\{")


def asked_tasks(launcher: Launcher, job_values: Mapping[str, str]) -> str:
    """How many tasks the job asks for, ``?`` where nothing says so: srun starts one on each node where no number of
    tasks is said (srun(1), -n)."""
    on_each_node = launcher.name == "srun" and "tasks_per_node" not in job_values
    return job_values.get("tasks") or (job_values.get("nodes", "?") if on_each_node else "?")


def _sum(first: Place, sign: str, second: Place) -> Place | None:
    """Of numbers that are said as such."""
    if second[1] == b"1":
        return first
    if not (first[1].isdigit() and second[1].isdigit() and len(first[1] + second[1]) < 20):
        return None
    a, b = int(first[1]), int(second[1])
    if sign == "/" and (not b or a % b):
        return None
    text = str(a * b if sign == "*" else a // b)
    return text, text.encode()


def written(values: Mapping[str, Place], to: Launcher) -> list[Value]:
    """The options of the other launcher, each with a blank before it."""
    options: list[Value] = []
    for key, option in to.writes.items():
        if key in values and option:
            before, braces, after = option.partition("{}")
            options += [f" {before}", *([values[key][0]] if braces else []), *([after] if after else [])]
    return options


#: What is said -> what the job asks for.
HELD: Final = {"nodes": "nodes", "per_node": "tasks_per_node", "cpus": "cpus_per_task", "gpus": "gpus_per_task",
               "node_gpus": "gpus_per_node", "all_gpus": "gpus"}
#: The same, as variables of any manager hold it.
_HOLDING: Final = {key: frozenset(form for facts in FACTS.values() for name, meaning in facts.variables.items()
                                  if meaning == asked for form in _forms(name)) for key, asked in HELD.items()}
#: The number of tasks, as variables of any manager hold it.
_TASKS: Final = frozenset(form for facts in FACTS.values() for name, meaning in facts.variables.items()
                          if meaning == "tasks" for form in _forms(name))


def holds(key: str, value: bytes, job_values: Mapping[str, str]) -> bool:
    """Whether what is said is what the job asks for, so that it need not be said again."""
    text = value.decode("utf-8", "replace")
    if value in _HOLDING.get(key, ()):
        return True
    if key == "per_node" and text == "1" and "nodes" in job_values and "tasks" not in job_values:
        return job_values.get("tasks_per_node", "1") == "1"
    if key == "gpus" and text.isdigit() and text == job_values.get("gpus_per_node") and \
            job_values.get("tasks_per_node") == "1":
        return True                         # those of a node are the one task's
    if key == "node_gpus" and text.isdigit() and (each := job_values.get("gpus_per_task", "")).isdecimal():
        per_node = job_values.get("tasks_per_node", "")
        return per_node.isdecimal() and len(text + each + per_node) < _LONG and int(text) == int(each) * int(per_node)
    return key in HELD and text.isdigit() and text == job_values.get(HELD[key])
