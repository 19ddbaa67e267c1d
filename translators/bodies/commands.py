"""Commands of a resource manager in a body, and those of another that do the same.

What cancels, holds and releases jobs takes ids alone; a launcher takes the few options that all have. Anything else
stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sssjob.translators.bodies.facts import Facts
from sssjob.translators.bodies.shell import Use, Word

__all__ = ["Edit", "act_of", "hosts_asked", "replaced", "same_command"]

#: Launcher -> spelling of an option -> what it says. Sources: srun(1), aprun(1), jsrun(1), flux-run(1), mpirun(1);
#: lrun: LLNL's page on srun and jsrun; ibrun: TACC's user guides; mpirun.lsf of LSF takes mpirun's own options.
_READ: Final[Mapping[str, Mapping[str, str]]] = {
    "srun": {"-n": "tasks", "--ntasks": "tasks", "-N": "nodes", "--nodes": "nodes", "-c": "cpus",
             "--cpus-per-task": "cpus", "--ntasks-per-node": "per_node", "--tasks-per-node": "per_node",
             "--gpus-per-task": "gpus"},
    "ibrun": {"-n": "tasks", "-np": "tasks"},
    "aprun": {"-n": "tasks", "-N": "per_node", "-d": "cpus"},
    "jsrun": {"-n": "tasks", "--nrs": "tasks", "-a": "each", "--tasks_per_rs": "each", "-c": "cpus",
              "--cpu_per_rs": "cpus", "-g": "gpus", "--gpu_per_rs": "gpus"},
    "lrun": {"-p": "tasks", "-n": "tasks", "-N": "nodes", "-T": "per_node"},
    "mpirun.lsf": {},
    "flux run": {"-n": "tasks", "--ntasks": "tasks", "-N": "nodes", "--nodes": "nodes", "-c": "cpus",
                 "--cores-per-task": "cpus", "-g": "gpus", "--gpus-per-task": "gpus"},
}
_WRITE: Final[Mapping[str, Mapping[str, str]]] = {
    "srun": {"tasks": "-n {}", "nodes": "-N {}", "per_node": "--ntasks-per-node={}", "cpus": "-c {}",
             "gpus": "--gpus-per-task={}"},
    "aprun": {"tasks": "-n {}", "per_node": "-N {}", "cpus": "-d {}"},
    "flux run": {"tasks": "-n {}", "nodes": "-N {}", "cpus": "-c {}", "gpus": "-g {}"},
    "mpirun": {"tasks": "-np {}"},
}
Value = str | tuple[int, int]       # text, or where it stands in the body
#: Tasks that a launcher starts when nothing is said; "" : all of the job.
_DEFAULT: Final = {"srun": "", "mpirun": "", "ibrun": "", "mpirun.lsf": "", "aprun": "1", "flux run": "1", "jsrun": "?",
                   "lrun": "?"}


@dataclass(frozen=True, slots=True)
class Edit:
    """What takes the place of some bytes: text, and between its pieces what the body has there (start, end)."""

    start: int
    end: int
    pieces: tuple[str | tuple[int, int], ...]


def act_of(use: Use, facts: Facts) -> tuple[str, int]:
    """What a command of the source does, and how many words say so; nothing for what only it has."""
    if len(use.words) > 1:
        act = facts.commands.get(f"{use.name} {use.words[1].text.decode('utf-8', 'replace')}")
        if act is not None:
            return act, 2
    return facts.commands.get(use.name, ""), 1


def same_command(use: Use, act: str, source: Facts, target: Facts) -> bool:
    """Whether the target's command is the very same one."""
    return use.name in target.commands and (source.prefixes == target.prefixes
                                            or (bool(act) and target.words.get(act) == use.name))


_OWN_NODES: Final = {form % name for name in (b"SLURM_JOB_NODELIST", b"SLURM_NODELIST")
                     for form in (b"$%s", b"${%s}", b'"$%s"', b'"${%s}"')}


def hosts_asked(use: Use) -> bool:
    """``scontrol show hostnames``, of the job's own nodes."""
    words = [w.text for w in use.words]
    return words[1:3] in ([b"show", b"hostnames"], [b"show", b"hostname"]) and (
        len(words) == 3 or (len(words) == 4 and words[3] in _OWN_NODES))


def replaced(use: Use, source: Facts, target: Facts, known: Mapping[str, str]) -> Edit | str:
    """The edit that says the same in the target's words, or why there is none."""
    act, said = act_of(use, source)
    if act == "hosts" and hosts_asked(use) and target.hosts and "\n" not in target.hosts:
        return Edit(use.start, use.words[-1].end, (f"{{ {target.hosts}; }}",))
    if act in ("cancel", "hold", "release"):
        return _on_jobs(use, act, said, target)
    if act == "launch":
        return _launch(use, said, source, target, known)
    return ""


def _on_jobs(use: Use, act: str, said: int, target: Facts) -> Edit | str:
    word, rest = target.words.get(act), use.words[said:]
    if word is None:
        return f"{target.title} has no command that does this"
    if not rest or any(w.text.startswith(b"-") for w in rest):
        return "only ids may follow"
    return Edit(use.start, use.words[said - 1].end, (word,))


def _launch(use: Use, said: int, source: Facts, target: Facts, known: Mapping[str, str]) -> Edit | str:
    name, to = " ".join([use.name, "run"][:said]), target.words.get("launch", "")
    options = _READ.get(name)
    if options is None or to not in _WRITE:
        return f"{target.title} has no launcher like it"
    read = _options(use.words[said:], options)
    if isinstance(read, str):
        return read
    found, end = read
    if end == len(use.words) - said:
        return "no program follows"
    last = use.words[said + end - 1].end
    made = _said(found, name, to, known)
    return made if isinstance(made, str) else Edit(use.start, last, (to, *made))


def _options(words: Sequence[Word], options: Mapping[str, str]) -> tuple[dict[str, tuple[Value, bytes]], int] | str:
    """What is said -> (where its value stands, the value), and how many words are options."""
    found: dict[str, tuple[Value, bytes]] = {}
    at = 0
    while at < len(words) and words[at].text.startswith(b"-"):
        word, text = words[at], words[at].text.decode("utf-8", "surrogateescape")
        name, sign, value = text.partition("=")
        skip = len(name) + 1
        if name not in options and text[:2] in options and not text.startswith("--"):
            name, sign, value, skip = text[:2], "=", text[2:], 2
        if name not in options:
            return f"{text} has no equal"
        if not sign:
            at += 1
            if at == len(words):
                return f"{text} lacks its value"
            found[options[name]] = (words[at].start, words[at].end), words[at].text
        else:
            found[options[name]] = (word.start + skip, word.end), value.encode("utf-8", "surrogateescape")
        at += 1
    return found, at


def _said(found: dict[str, tuple[Value, bytes]], name: str, to: str, known: Mapping[str, str]) -> list[Value] | str:
    """The options of the other launcher."""
    values: dict[str, Value] = {key: where for key, (where, _) in found.items()}
    if "each" in found:
        sets = _sets(found)
        if not sets:
            return "its resource sets have no equal"
        values = dict(sets)
    if name == "lrun" and "tasks" not in found and {"nodes", "per_node"} <= set(found):
        nodes, each = (_number(found, key) for key in ("nodes", "per_node"))
        values |= {"tasks": str(nodes * each)} if nodes and each else {}
    if "tasks" not in values:
        default = _DEFAULT[name]
        if default == "?" or (not default and _DEFAULT[to] and "tasks" not in known):
            return "how many tasks it starts is not said"
        if default or _DEFAULT[to]:
            values["tasks"] = default or known["tasks"]
    made: list[Value] = []
    for key, option in _WRITE[to].items():
        if key in values:
            before, _, after = option.partition("{}")
            made += [f" {before}", values.pop(key), *([after] if after else [])]
    return f"{to} cannot say {', '.join(values)}" if values else made


def _number(found: Mapping[str, tuple[Value, bytes]], key: str) -> int | None:
    """A number that is said as such, 1 where nothing is."""
    text = found[key][1] if key in found else b"1"
    return int(text) if text.isdigit() and len(text) < 10 else None


def _sets(found: Mapping[str, tuple[Value, bytes]]) -> dict[str, str]:
    """What resource sets of several tasks are for each task; nothing where they do not divide."""
    each, sets = _number(found, "each"), _number(found, "tasks")
    if not each or sets is None:
        return {}
    made = {"tasks": str(sets * each)}
    for key in ("cpus", "gpus"):
        amount = _number(found, key)
        if amount is None or (key in found and amount % each):
            return {}
        made |= {key: str(amount // each)} if key in found else {}
    return made
