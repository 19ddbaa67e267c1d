"""Arrays: one job that runs many times, each time with another index.

A job says so with an Extension ``Array`` of the context ``Scheduler``, whose text is Slurm's: ``1-10:2,20%4`` are the
indices 1, 3, 5, 7, 9 and 20, of which no more than four run at a time. Sources: sbatch(1), --array; the variables are
those that running elements see with Slurm, PBS Pro, Torque, LSF and Grid Engine.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Self

from sssjob.document.element import Item, Property, new_property
from sssjob.document.model import Container, Document, Job, JobDefaults, JobGroup, Requested
from sssjob.findings import Findings
from sssjob.limits import LIMITS, Limits
from sssjob.lrm.idset import ranges

__all__ = ["Array", "array_of", "element", "expand", "label_of", "read", "repeated", "variables",
           "without_array"]

_THROTTLE: Final = re.compile(r"\d{1,9}", re.ASCII)
_IS_ARRAY: Final = ("Scheduler", "Array")


@dataclass(frozen=True, slots=True)
class Array:
    """ranges: one (first, last, step) a part of the list. throttle: how many elements may run at a time (None: all)."""

    ranges: tuple[tuple[int, int, int], ...]
    throttle: int | None = None

    @classmethod
    def of(cls, text: str) -> Self:
        """The array that a text says. Raises ValueError."""
        listed, percent, limit = text.strip().partition("%")
        if percent and not (_THROTTLE.fullmatch(limit) and int(limit)):
            raise ValueError(f"{text!r} is no array: a number of at least 1 comes after '%'")
        members = []
        for part in listed.split(","):
            indices = ranges(part)
            if indices is None:
                raise ValueError(f"{text!r} is no array: {part!r} is no index and no range such as 1-10 or 1-10:2")
            if not indices[0]:
                raise ValueError(f"{text!r} is no array: {part!r} has no index in it")
            members.append((indices[0].start, indices[0].stop - 1, indices[0].step))
        return cls(tuple(members), int(limit) if percent else None)

    @property
    def size(self) -> int:
        """At most so many elements: an index that is listed twice counts twice."""
        return sum((last - first) // step + 1 for first, last, step in self.ranges)

    @property
    def indices(self) -> tuple[int, ...]:
        """Each index once, in order."""
        return tuple(sorted({n for first, last, step in self.ranges for n in range(first, last + 1, step)}))

    @property
    def step(self) -> int:
        """From one index to the next, where it is a single range; else 1."""
        return self.ranges[0][2] if len(self.ranges) == 1 else 1


def array_of(job: Job, defaults: JobDefaults | None = None) -> Property | None:
    """The Extension that makes a job an array."""
    scopes: list[Container] = [job, *([defaults] if defaults is not None else [])]
    for scope in scopes:
        for holder in (*scope.containers("Requested"), scope):
            for p in holder.all("Extension"):
                if (p.get("type"), p.get("name")) == _IS_ARRAY:
                    return p
    return None


def variables(array: Array, index: int, array_id: str) -> dict[str, str]:
    """What the elements of an array find in their environment, under the names of all resource managers that have
    arrays. array_id: what names the array as a whole."""
    indices, step = array.indices, array.step
    first, last = indices[0], indices[-1]
    values = {**dict.fromkeys(("SLURM_ARRAY_TASK_ID", "PBS_ARRAY_INDEX", "PBS_ARRAYID", "LSB_JOBINDEX", "SGE_TASK_ID"),
                              index),
              **dict.fromkeys(("SLURM_ARRAY_JOB_ID", "PBS_ARRAY_ID"), array_id),
              **dict.fromkeys(("SLURM_ARRAY_TASK_MIN", "SGE_TASK_FIRST"), first),
              **dict.fromkeys(("SLURM_ARRAY_TASK_MAX", "SGE_TASK_LAST", "LSB_JOBINDEX_END"), last),
              **dict.fromkeys(("SLURM_ARRAY_TASK_STEP", "SGE_TASK_STEPSIZE", "LSB_JOBINDEX_STEP"), step),
              "SLURM_ARRAY_TASK_COUNT": len(indices)}
    return {name: str(value) for name, value in values.items()}


def label_of(job: Job, number: int) -> str:
    """What a job is called: Id, else Name, else its place, ``job-N``. number: from 0."""
    return str(job.value("Id") or job.value("Name") or f"job-{number + 1}")


def element(job: Job, index: int, array_id: str) -> Job:
    """One element as a job of its own: Id with the index, Extensions ArrayId and ArrayIndex (decisions 23)."""
    job_of_element = Job([copy.deepcopy(i) if isinstance(i, Container) else i for i in job.items if not _says_array(i)],
                         job.attributes, None, job.line)
    for holder in job_of_element.containers("Requested"):
        holder.items = [i for i in holder.items if not _says_array(i)]
    job_of_element.set_as_is("Id", f"{array_id}_{index}")
    job_of_element.items += [new_property("Extension", text, {"type": "LRM", "name": name})
                             for name, text in (("ArrayId", array_id), ("ArrayIndex", str(index)))]
    return job_of_element


def fault_of(stated: Property) -> str | None:
    """Why an Extension that should make a job an array is none; None where it is one, or is about something else."""
    if not _says_array(stated):
        return None
    try:
        Array.of(stated.text)
    except ValueError as error:
        return str(error)
    return None


def without_array(job: Job) -> Job:
    """The job once, without the Extension."""
    items: list[Item] = [Requested([p for p in i.items if not _says_array(p)], i.attributes, None, i.line)
                         if isinstance(i, Requested) else i for i in job.items if not _says_array(i)]
    return Job(items, job.attributes, None, job.line)


def _says_array(item: Item) -> bool:
    return item.tag == "Extension" and isinstance(item, Property) and (item.get("type"), item.get("name")) == _IS_ARRAY


# --- as a group ---------------------------------------------------------------------------------------------------

def expand(document: Document, findings: Findings, limits: Limits = LIMITS) -> Document:
    """A document in which every array is as many jobs as it has elements.

    A Job becomes a JobGroup of its own Id. Who depended on the array depends on each of its elements: after their
    success or end that is the same; after a failure all of them must have failed, which is a finding (SSS502), as is a
    throttle that is left out. An array that is none, or has too many elements, is a finding that rejects (SSS201,
    SSS110); then the document comes back as it was.
    """
    bodies = list(document.bodies())
    arrays = [array_of(job, defaults) for job, defaults in document.jobs()]
    if not any(arrays):
        return document
    root = document.root
    if len(bodies) == 1 and isinstance(root, Job):
        array_id = label_of(root, 0)
        jobs = _elements(root, None, array_id, findings, limits)
        root = JobGroup([new_property("Id", array_id), *(jobs or [])])
    elif len(bodies) == 1 and isinstance(root, JobGroup):
        root = _expanded(root, findings, limits)
    else:
        findings.add("SSS502", "Array", "arrays inside a message are not made groups; they run as they are")
        return document
    return document if findings.rejected else Document(root, document.files, document.path, document.profile,
                                                       document.findings, places=document.places)


def _expanded(group: JobGroup, findings: Findings, limits: Limits) -> JobGroup:
    elements_of: dict[str, list[str]] = {}     # what an array is called -> ids of its elements
    items: list[Item] = []
    number = 0
    for item in group.items:
        if not isinstance(item, Job) or item.reference is not None:
            items.append(item)
            continue
        array_id = label_of(item, number)
        number += 1
        jobs = _elements(item, group.defaults, array_id, findings, limits)
        if jobs is None:
            items.append(item)
            continue
        for name in {str(item.value(tag)) for tag in ("Id", "Name") if item.value(tag) is not None}:
            elements_of.setdefault(name, []).extend(str(job.value("Id")) for job in jobs)
        items += jobs
    items = [_without_array(i) if isinstance(i, JobDefaults) else i for i in items]
    for item in items:
        if isinstance(item, Job | JobDefaults) and item.reference is None:
            item.items = [new for i in item.items for new in repeated(i, elements_of, findings)]
    return JobGroup(items, group.attributes, None, group.line)


def _without_array(defaults: JobDefaults) -> JobDefaults:
    return JobDefaults([i for i in defaults.items if not _says_array(i)], defaults.attributes, None, defaults.line)


def _elements(job: Job, defaults: JobDefaults | None, array_id: str, findings: Findings,
              limits: Limits) -> list[Job] | None:
    """The elements of a job as jobs; None where it is no array."""
    stated = array_of(job, defaults)
    array = None if stated is None else read(stated, findings, limits)
    if array is None:
        return None
    if array.throttle is not None:
        findings.add("SSS502", "Array", f"{array_id}: jobs of a group run without a limit, {array.throttle} at a time "
                     "is left out", within=job)
    return [element(job, index, array_id) for index in array.indices]


def read(stated: Property, findings: Findings, limits: Limits = LIMITS, path: str = "/Job/Extension") -> Array | None:
    """The array of an Extension; None, with a finding that rejects, where it is none or has too many elements."""
    try:
        array = Array.of(stated.text)
    except ValueError as error:
        findings.add("SSS201", "Array", str(error), path=path)
        return None
    if array.size > limits.array_elements:
        findings.add("SSS110", "array_elements", f"the array {stated.text} has {array.size} elements, more than "
                     f"{limits.array_elements} (limit array_elements)", path=path)
        return None
    return array


def repeated(item: Item, ids_by_name: dict[str, list[str]], findings: Findings) -> Iterable[Item]:
    """A Dependency on an array as one on each element; anything else as it is."""
    if not isinstance(item, Property) or item.tag != "Dependency" or item.text.strip() not in ids_by_name:
        return [item]
    return _on_each(item, ids_by_name[item.text.strip()], findings)


def _on_each(item: Property, ids: list[str], findings: Findings) -> Iterator[Item]:
    if item.get("condition") == "OnFailure" and len(ids) > 1:
        findings.add("SSS502", "Dependency", f"OnFailure {item.text}: all elements of the array must fail, not one")
    for ident in ids:
        yield item.replace(ident, designator="JobId")
