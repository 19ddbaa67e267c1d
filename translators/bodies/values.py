"""How a target gives what a variable of the source means: by a variable of its own, else from its list of nodes, else
by the operating system, else as the amount that the job asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final

from sssjob.lrm.variables import Facts, Given
from sssjob.translators.bodies.shell import Use

__all__ = ["FILES", "MADE", "SLOTTED", "given", "has_no_name", "is_unset", "why_fixed"]

_COUNT: Final = "$({} | wc -l)"
#: Meaning -> text made of the lines of hosts or slots; POSIX tools only.
_FROM_HOSTS: Final = {"node_list": "$({} | paste -s -d , -)", "nodes": _COUNT}
_TALLY: Final = "awk '{ if (!($1 in n)) order[++last] = $1; n[$1]++ } END { for (i = 1; i <= last; i++) "
_FROM_SLOTS: Final = {
    "tasks": _COUNT,
    "slot_hosts": "$({} | paste -s -d ' ' -)",
    "host_counts": "$({} | " + _TALLY + "printf \"%s%s %d\", (i > 1 ? \" \" : \"\"), order[i], n[order[i]] }')",
    "task_map": "$({} | " + _TALLY + "{ for (j = i; n[order[j + 1]] == n[order[i]] && j < last; ) j++; "
                "printf \"%s%d\", (i > 1 ? \",\" : \"\"), n[order[i]]; if (j > i) printf \"(x%d)\", j - i + 1; "
                "i = j } }')",
}
#: Meaning -> (hosts or slots, what follows): a file that has to be made.
FILES: Final = {
    "node_file": ("hosts", ""),
    "slot_file": ("slots", ""),
    "pe_file": ("slots", " | " + _TALLY + "print order[i], n[order[i]], \"UNDEFINED\", \"UNDEFINED\" }'"),
}
#: Meanings that the script has to make itself where the target does not.
MADE: Final = frozenset((*FILES, "scratch", "site_scratch"))
#: What any machine tells.
_ANYWHERE: Final = {"home": Given("${HOME}", "HOME"), "user": Given("$(id -un)"), "uid": Given("$(id -u)"),
                    "host": Given("$(hostname -s)"),
                    "scratch": Given("$(mktemp -d)", close="it is made by the script"),
                    "gpu_list": Given("${CUDA_VISIBLE_DEVICES}", "CUDA_VISIBLE_DEVICES",
                                      close="it names devices as CUDA does")}
_FROM_ZERO: Final = re.compile(r"0-\d+(?:%\d+)?", re.ASCII)
#: What an element of an array has -> what it is of a job that is none, and what differs.
_ELEMENTS: Final = {"element_name": ("job_name", "the name of an element carries its index there"),
                    "element_id": ("job_id", "the id of an element carries its index there")}
#: The name of the job in an array, of a manager whose own variable then has the name of the element.
_OF_ARRAYS: Final = "array_job_name"
_SHIFTED: Final = ("array_index", "array_first", "array_last")
#: What counts the tasks of a job in one system, and its slots in another.
SLOTTED: Final = ("tasks", "slot_hosts", "host_counts", "task_map", "slot_file", "pe_file")
#: In which way an amount is only close that the options say.
_ASKED: Final = "it is what the job asks for"
#: Meanings that depend on what the job asks for, whatever the target has.
_ASKING: Final = frozenset((*_SHIFTED, *SLOTTED))


def given(meaning: str, source: Facts, target: Facts, job_values: Mapping[str, str]) -> Given | None:
    """How a job of the target gives a meaning of the source; None: it does not. job_values: what the job asks for."""
    if not meaning:
        return None
    if meaning in _ELEMENTS:
        plain, close = _ELEMENTS[meaning]
        value = given(plain, source, target, job_values)
        return replace(value, close=close) if value is not None and "array" in job_values else value
    if meaning == "site_scratch":
        value = given("scratch", source, target, job_values)
        return None if value is None else replace(value, close=f"some sites of {source.title} set it, and no other")
    if meaning == "job_id" and "array" in job_values and target.unique and _shares_id(source):
        meaning = "array_id"
    value = _found(meaning, target)
    if meaning == "job_name" and (source.gives.keys() | target.gives.keys()) & {_OF_ARRAYS} and "array" in job_values:
        value = target.gives.get(_OF_ARRAYS, value)
        if value is not None and _OF_ARRAYS in source.gives:
            value = replace(value, close=_ELEMENTS["element_name"][1])
    if value is not None and not (value.top or value.array or meaning in _ASKING
                                  or (meaning == "job_id" and "array" in job_values)):
        return value                                # whatever the job asks for, which takes time to find out
    if value is not None and ((value.top and "directory" in job_values) or (value.array and "array" not in job_values)):
        value = None
    shift = job_values.get("array_shift", "")       # the target counts the elements in another way
    if value is not None and shift and meaning in _SHIFTED:
        value = replace(value, text=f"$(({shift.format(value.name or value.text)}))", close="")
    elif value is not None and meaning == "array_index" and _FROM_ZERO.fullmatch(job_values.get("array", "")):
        value = replace(value, close="")
    if value is None and meaning in job_values:
        number, cpus = job_values[meaning], job_values.get("cpus_per_task", "1")
        if meaning == "tasks" and source.counts == "slots" and number.isdecimal() and cpus.isdecimal():
            number = str(int(number) * int(cpus))
        return Given(number, close="" if meaning in source.asked or meaning.startswith("array_") else _ASKED)
    if value is not None and meaning == "tasks" and meaning in target.asked and meaning not in source.asked \
            and not job_values.keys() & {"tasks", "processors"}:     # the source says one, or one for each node
        return Given(f"${{{value.name}:-{job_values['nodes'] if job_values.get('nodes', '').isdecimal() else 1}}}")
    return None if value is None else _doubtful(value, meaning, source, target, job_values)


def is_unset(meaning: str, source: Facts, job_values: Mapping[str, str]) -> bool:
    """Whether a job of the source has no variable of a meaning, because it does not ask for it. job_values: what it
    asks for; a job that asks for tasks of a node asks for tasks."""
    return meaning in source.asked and meaning not in job_values and not (
        meaning == "tasks" and "tasks_per_node" in job_values)


def why_fixed(use: Use) -> str:
    """Why a use can neither be renamed nor made above, or nothing."""
    if use.kind == "text":
        return "it stands in text that this shell does not expand"
    return "this part of the script does not parse" if use.kind == "unknown" else ""


def has_no_name(use: Use, source: Facts, value: Given, job_values: Mapping[str, str]) -> bool:
    """Whether a use cannot be replaced by what the target gives, so that the variable of the source has to be made:
    it is no plain expansion, the two hold different values where there is nothing to say, or there is no variable for
    an operator to stand in."""
    if use.kind in ("odd", "command") or (use.kind == "operated" and not value.name):
        return True
    array = source.variables.get(use.name, "").startswith("array_") and "array" in job_values
    return not array and bool(value.none or source.absent.get(use.name, "") != value.none)


def _shares_id(source: Facts) -> bool:
    """Whether its variable of a job's id holds that of the array in every element, as JOB_ID of Grid Engine does."""
    shared = source.gives.get("array_id")
    return shared is not None and any(
        meaning == "job_id" and shared.text == f"${{{name}}}" for name, meaning in source.variables.items())


@lru_cache(maxsize=512)
def _found(meaning: str, target: Facts) -> Given | None:
    """What the target gives in every job."""
    return _plain(meaning, target) or _derived(meaning, target)


def _plain(meaning: str, target: Facts) -> Given | None:
    if meaning in target.gives:
        return target.gives[meaning]
    for name, meaning_there in target.variables.items():
        if meaning_there == meaning:
            return Given(f"${{{name}}}", name, target.absent.get(name, ""))
    return None


def _derived(meaning: str, target: Facts) -> Given | None:
    for table, lines in ((_FROM_HOSTS, target.hosts), (_FROM_SLOTS, target.slots)):
        if meaning in table and lines:
            text = table[meaning].replace("{}", lines, 1)
            file = lines.removeprefix("cat ")
            return Given(f"$(wc -l < {file})" if text == f"$(cat {file} | wc -l)" else text, target.hosts_need)
    if meaning in FILES:
        lines = target.hosts if FILES[meaning][0] == "hosts" else target.slots
        return Given(lines + FILES[meaning][1], target.hosts_need) if lines else None
    return _ANYWHERE.get(meaning)


def _doubtful(value: Given, meaning: str, source: Facts, target: Facts, job_values: Mapping[str, str]) -> Given:
    """The same, with what makes it only close in this job."""
    cpus = job_values.get("cpus_per_task", "1")
    if meaning in SLOTTED and source.counts != target.counts and cpus != "1":
        if meaning == "tasks" and job_values.get("tasks") == "1" and target.counts == "tasks":
            return _plain("cpus_per_task", target) or _plain("cpus_on_node", target) or Given(cpus, close=_ASKED)
        if meaning == "tasks" and value.name and cpus.isdigit():
            sign = "/" if target.counts == "slots" else "*"
            return replace(value, text=f"$(({value.name} {sign} {cpus}))",
                           close=f"it is counted in {target.counts}, {cpus} processors a task")
        if target.counts == "slots" and target.slots in value.text and cpus.isdigit():
            each = f"{{ {target.slots}; }} | awk 'NR % {cpus} == 1'"
            return replace(value, text=value.text.replace(target.slots, each, 1),
                           close=f"it has one of {cpus} slots, for a task has {cpus} processors")
        return replace(value, close=f"it counts {target.counts}, not {source.counts}, and a task has {cpus} processors")
    if meaning == "tasks" and is_unset(meaning, source, job_values):
        return replace(value, close=f"{source.title} sets it only where the job asks for a number of tasks")
    if meaning == "job_id" and "array" in job_values and (source.unique or not _shares_id(source)) != target.unique:
        return replace(value, close="in an array each element has its own id there" if target.unique else
                       "all elements of an array have one id there")
    return value
