"""Sweeps: one Job that stands for many, which differ by values that its texts name in braces.

The Extension ``Sweep`` of the type Scheduler gives the values: ``x=1..200 y=a,b,c`` are all 600 pairs, ``zip(x=1..3
y=a,b,c)`` three. ``{x}`` in a text of the job is the value of ``x``, ``{x:4}`` the same with zeros before it up to four
characters, and ``{{x}}`` means the braces themselves. ``expand`` is the one place where a sweep becomes a JobGroup.

Values in a file are taken from a File that comes with the document (``y=#values``, one a line), never from a path:
nothing that a document names is opened.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from typing import Any, Final, Protocol, Self, TypeVar

from sssjob.document.arrays import label_of, repeated
from sssjob.document.element import Container, Item, Property, Raw, new_property
from sssjob.document.failures import FailurePolicyError
from sssjob.document.model import Document, File, Job, JobDefaults, JobGroup
from sssjob.findings import Findings
from sssjob.limits import LIMITS, Limits

__all__ = ["NAME", "Sweep", "check", "expand", "is_sweep", "jobs_in", "jobs_of", "names_of", "sweep_of"]

NAME: Final = "Sweep"
_TOKENS: Final = re.compile(r"zip\((?P<zip>[^()]*)\)(?!\S)|(?P<one>\S+)")
_AXIS: Final = re.compile(r"(?P<name>[A-Za-z_]\w{0,63})=(?P<values>.*)", re.S | re.ASCII)
_NUMBER: Final = r"-?\d{1,15}(?:\.\d{1,9})?"
_RANGE: Final = re.compile(rf"({_NUMBER})\.\.({_NUMBER})(?:\.\.({_NUMBER}))?", re.ASCII)
#: What looks like a range, and is none: an end is missing, or has more digits than numbers of a sweep.
_NO_RANGE: Final = re.compile(r"(?=.*\d)(?=.*\.\.)[-+.\d]+", re.ASCII)
_PLACE: Final = re.compile(
    r"\{\{(?P<literal>[A-Za-z_]\w*(?::\d{1,3})?)\}\}|(?<![$\\])\{(?P<name>[A-Za-z_]\w*)(?::(?P<width>\d{1,3}))?\}",
    re.ASCII)
#: Names of files have tokens of their own, which are filled in when the job is submitted; braces are doubled there.
_STREAMS: Final = ("InputFile", "OutputFile", "ErrorFile")
_FILE_TOKENS: Final = ("jobid", "array_jobid", "index", "name", "user", "host", "workdir", "node_rank", "task_rank",
                       "step")
_VALUE_LENGTH: Final = 4_096
_C = TypeVar("_C", bound=Container)
_Row = tuple[tuple[str, str], ...]


class _Jobs(Protocol):
    """A document of any size."""

    def jobs(self) -> Iterator[tuple[Job, JobDefaults | None]]:
        """The jobs, each with the JobDefaults of its group."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """axes: values that go through independently of each other; each row gives the values of one or more names."""

    axes: tuple[tuple[_Row, ...], ...]

    @classmethod
    def of(cls, text: str, files: Mapping[str, File] | None = None, limits: Limits = LIMITS) -> Self:
        """The sweep that a text says. files: those that come with the document, None where they are not known; then
        each counts as one value. Raises FailurePolicyError."""
        axes: list[tuple[_Row, ...]] = []
        names: list[str] = []
        for hit in _TOKENS.finditer(text):
            try:
                several = hit["zip"] is not None
                columns = [_column(column, files, limits)
                           for column in (hit["zip"].split() if several else [hit["one"]])]
                axes.append(tuple(_rows(columns)))
                for name, _ in columns:
                    if name in names:
                        raise FailurePolicyError(f"{name} has values twice")
                    names.append(name)
            except FailurePolicyError as error:
                raise FailurePolicyError(f"Sweep, column {hit.start() + 1}, {hit[0][:80]!r}: {error}",
                                         hit.start() + 1) from None
        if not axes:
            raise FailurePolicyError("Sweep has no values, such as x=1..10")
        sweep = cls(tuple(axes))
        if sweep.size > limits.sweep_jobs:
            raise FailurePolicyError(f"Sweep makes {sweep.size} jobs, more than {limits.sweep_jobs} (limit sweep_jobs)")
        return sweep

    @property
    def size(self) -> int:
        """How many jobs there are."""
        size = 1
        for axis in self.axes:
            size *= len(axis)
        return size

    @property
    def names(self) -> tuple[str, ...]:
        """The names that have values."""
        return tuple(name for axis in self.axes for name, _ in axis[0])

    def rows(self) -> Iterator[dict[str, str]]:
        """The values of each job; the last name changes fastest."""
        for some in product(*self.axes):
            yield dict(pair for row in some for pair in row)


def _column(text: str, files: Mapping[str, File] | None, limits: Limits) -> tuple[str, list[str]]:
    hit = _AXIS.fullmatch(text)
    if hit is None:
        raise FailurePolicyError("is not of the form NAME=VALUES")
    if hit["name"] in _FILE_TOKENS:
        raise FailurePolicyError(f"{hit['name']} already means something in names of files; choose another name")
    listed = hit["values"]
    values = _listed(listed[1:], files) if listed.startswith("#") else [
        value for part in listed.split(",") for value in _values(part, limits)]
    if not values:
        raise FailurePolicyError(f"{hit['name']} has no values")
    if len(values) > limits.sweep_jobs:
        raise FailurePolicyError(f"{hit['name']} has {len(values)} values, more than {limits.sweep_jobs} (limit "
                                 "sweep_jobs)")
    return hit["name"], values


def _rows(columns: Sequence[tuple[str, list[str]]]) -> Iterator[_Row]:
    if not columns:
        raise FailurePolicyError("zip() has no values")
    lengths = {len(values) for _, values in columns}
    if len(lengths) > 1:
        lengths_by_name = ", ".join(f"{name} has {len(values)}" for name, values in columns)
        raise FailurePolicyError(f"zip needs as many values of each name: {lengths_by_name}")
    names = [name for name, _ in columns]
    for row in zip(*(values for _, values in columns), strict=True):
        yield tuple(zip(names, row, strict=True))


def _listed(identifier: str, files: Mapping[str, File] | None) -> list[str]:
    """The lines of a File that comes with the document."""
    if files is None:
        return [""]
    if identifier not in files:
        raise FailurePolicyError(f"there is no File {identifier[:80]!r} in the document")
    try:
        text = files[identifier].content().decode("utf-8")
    except ValueError:
        raise FailurePolicyError(f"File {identifier[:80]!r} is no text") from None
    values = [line.strip() for line in text.splitlines() if line.strip()]
    if any(len(value) > _VALUE_LENGTH for value in values):
        raise FailurePolicyError(f"File {identifier[:80]!r} has a line of more than {_VALUE_LENGTH} characters")
    return values


def _values(part: str, limits: Limits) -> list[str]:
    if not part:
        raise FailurePolicyError("an empty value stands there")
    hit = _RANGE.fullmatch(part)
    if hit is None:
        if _NO_RANGE.fullmatch(part):
            raise FailurePolicyError(f"{part[:60]!r} is no whole range such as 1..10 or 1..10..2, in numbers of at "
                                     "most 15 digits, 9 more behind the point; a text like that can stand in a File")
        return [part]
    first, last = Decimal(hit[1]), Decimal(hit[2])
    step = Decimal(hit[3]) if hit[3] else Decimal(1 if first <= last else -1)
    if not step or (last - first) * step < 0:
        raise FailurePolicyError(f"{part[:60]!r} has nothing in it: no step of {step} leads from {first} to {last}")
    count = int((last - first) / step) + 1
    if count > limits.sweep_jobs:
        raise FailurePolicyError(f"{part[:60]!r} has {count} values, more than {limits.sweep_jobs} (limit sweep_jobs)")
    digits = max(len(text.partition(".")[2]) for text in (hit[1], hit[3] or ""))
    width = len(hit[1].lstrip("-")) if re.match(r"-?0\d", hit[1]) else 0
    return [_spelt(first + n * step, digits, width) for n in range(count)]


def _spelt(number: Decimal, digits: int, width: int) -> str:
    """A number with so many digits after the point, and zeros before it up to a width without the sign."""
    sign = "-" if number < 0 else ""
    return sign + f"{abs(number):.{digits}f}".rjust(width, "0")


# --- in documents -------------------------------------------------------------------------------------------------

def is_sweep(item: Item) -> bool:
    """Whether an item makes the job in which it stands a sweep."""
    return isinstance(item, Property) and item.tag == "Extension" and (
        item.get("type"), item.get("name")) == ("Scheduler", NAME)


def sweep_of(job: Job) -> Property | None:
    """The Extension that makes a job a sweep."""
    for item in job.items:
        if item.tag == "Extension" and isinstance(item, Property) and is_sweep(item):
            return item
    return None


def check(stated: Property, job: Container, files: Mapping[str, File], limits: Limits = LIMITS) -> str | None:
    """What is wrong with the Extension of a job, or with the texts that name its values; None where all is well."""
    if not isinstance(job, Job):
        return f"{NAME} is about one Job and cannot stand in {job.tag}"
    if [item for item in job.items if is_sweep(item)][1:]:
        return f"{NAME} stands there twice"
    try:
        sweep = Sweep.of(stated.text, files, limits)
        _check_names(job, sweep.names)
        _ids(job, sweep, "")
    except FailurePolicyError as error:
        return str(error)
    return None


def _texts(scope: Container) -> Iterator[Property]:
    """The texts of a job in which values may stand."""
    for item in scope.items:
        if isinstance(item, Container) and item.tag != "Delivered":
            yield from _texts(item)
        elif isinstance(item, Property) and item.tag != "Extension" and isinstance(item.value, str):
            yield item


def _check_names(job: Job, names: Sequence[str]) -> None:
    used: set[str] = set()
    for p in _texts(job):
        for hit in _PLACE.finditer(p.text):
            name = hit["name"]
            if name in names:
                used.add(name)
            elif name is not None and not (p.tag in _STREAMS and name in _FILE_TOKENS):
                raise FailurePolicyError(f"{p.tag} names {{{name}}}, which has no values; {{{{{name}}}}} means the "
                                         f"braces themselves (values have {', '.join(names)})")
    unused = [name for name in names if name not in used]
    if unused:
        raise FailurePolicyError(f"no text of the job names {{{unused[0]}}}: the jobs would be the same")


def _ids(job: Job, sweep: Sweep, label: str) -> list[str]:
    """The Ids of the jobs: as the text says, where that names values, else with numbers from 1."""
    p = job.first("Id")
    named = p is not None and any(hit["name"] for hit in _PLACE.finditer(p.text))
    if not named or p is None:
        return [f"{label}_{n}" for n in range(1, sweep.size + 1)]
    ids = [_filled(p.text, row, stream=False) for row in sweep.rows()]
    if len(set(ids)) < len(ids):
        raise FailurePolicyError(f"Id {p.text[:80]!r} names several jobs alike; let it name all values")
    return ids


def _filled(text: str, row: Mapping[str, str], *, stream: bool) -> str:
    def value(hit: re.Match[str]) -> str:
        """What stands for a place: the value of its name; other places stay."""
        if hit["literal"] is not None:
            return hit[0] if stream else f"{{{hit['literal']}}}"
        if hit["name"] not in row:
            return hit[0]
        filled = row[hit["name"]].rjust(int(hit["width"] or 0), "0")
        return filled.replace("{", "{{").replace("}", "}}") if stream else filled

    return _PLACE.sub(value, text)


def _with(scope: _C, row: Mapping[str, str]) -> _C:
    """A copy of a container with the values in its texts."""
    items: list[Item] = []
    for item in scope.items:
        if isinstance(item, Container) and item.tag != "Delivered":
            item = _with(item, row)
        elif isinstance(item, Property) and item.tag != "Extension" and isinstance(item.value, str):
            text = _filled(item.text, row, stream=item.tag in _STREAMS)
            item = item if text == item.text else item.replace(text)
        items.append(item)
    return type(scope)(items, scope.attributes or None, scope.reference, scope.line, scope.spelling)


def _jobs(job: Job, label: str, files: Mapping[str, File], findings: Findings, limits: Limits) -> list[Job] | None:
    """The jobs of a sweep; None of a job that is none, and with a finding that rejects of one that is wrong."""
    stated = sweep_of(job)
    if stated is None:
        return None
    fault = check(stated, job, files, limits)
    if fault is not None:
        findings.add("SSS426", "Extension", f"{label}: {fault}", item=stated, within=job)
        return None
    sweep = Sweep.of(stated.text, files, limits)
    bare = Job([item for item in job.items if not is_sweep(item)], job.attributes or None, None, job.line)
    jobs = []
    for row, identifier in zip(sweep.rows(), _ids(job, sweep, label), strict=True):
        varied = _with(bare, row)
        varied.set_as_is("Id", identifier)
        jobs.append(varied)
    return jobs


def jobs_of(job: Job, number: int, files: Mapping[str, File], findings: Findings, limits: Limits = LIMITS
            ) -> Sequence[Job]:
    """The jobs of a sweep; of any other job, or one that is wrong, the job itself. number: its place, from 0."""
    some = None if sweep_of(job) is None else _jobs(job, _plain(job, number), files, findings, limits)
    return (job,) if some is None else some


def names_of(jobs: Sequence[Job], files: Mapping[str, File], limits: Limits = LIMITS) -> set[str]:
    """The texts by which a Dependency may stand for one of these jobs: Ids and Names, of a sweep also what it is called
    as a whole, those of its jobs, and a text of its own that means one of them for each of its values."""
    sweeps: list[tuple[Job, Sequence[Job]]] = []
    names = set[str]()
    for number, job in enumerate(jobs):
        if sweep_of(job) is not None:
            sweeps.append((job, _jobs(job, _plain(job, number), files, Findings(), limits) or []))
            names.add(_plain(job, number))
    for job in (*jobs, *[job for _, swept in sweeps for job in swept]):
        names.update([str(p.value) for p in (job.first("Id"), job.first("Name")) if p is not None])
    for job, swept in sweeps:
        for number, stated in enumerate(job.all("Dependency")):
            if swept and names.issuperset(each.all("Dependency")[number].text for each in swept):
                names.add(stated.text)
    return names


def jobs_in(document: _Jobs, findings: Findings, limits: Limits = LIMITS) -> Iterator[tuple[Job, JobDefaults | None]]:
    """Every job of a document of any size with its JobDefaults, a sweep as all of its jobs."""
    files = getattr(document, "files", {})
    for number, (job, defaults) in enumerate(document.jobs()):
        for each in jobs_of(job, number, files, findings, limits):
            yield each, defaults


def expand(document: Document, findings: Findings, limits: Limits = LIMITS) -> Document:
    """A document in which every sweep is as many jobs as it makes.

    A Job by itself becomes a JobGroup of its own Id. Who depended on the sweep depends on each of its jobs, as with
    arrays. What is wrong is a finding that rejects (SSS426); then the document comes back as it was, as one does
    without sweeps.
    """
    if not any(sweep_of(job) is not None for job, _ in document.jobs()):
        return document
    findings.places = findings.places or document.places

    def body(item: Container) -> Container:
        """A job as the group of jobs that its sweep makes; what has no sweep comes back as it is."""
        if isinstance(item, JobGroup):
            return _group(item, document.files, findings, limits)
        if not isinstance(item, Job):
            return item
        label = _plain(item, 0)
        jobs = _jobs(item, label, document.files, findings, limits)
        return item if jobs is None else JobGroup([new_property("Id", label), *jobs], None, None, item.line)

    root = _replaced(document.root, body)
    return document if findings.rejected else Document(
        root, document.files, document.path, document.profile, document.findings, policy=document.policy,
        places=document.places)


def _replaced(node: Any, body: Callable[[Container], Container]) -> Any:
    """A root with its outermost containers changed."""
    if isinstance(node, Container):
        return body(node)
    if isinstance(node, Raw):
        return Raw(node.tag, node.attributes, node.text, [_replaced(child, body) for child in node.children], node.line)
    return node


def _plain(job: Job, number: int) -> str:
    """What a sweep is called as a whole: its Id, Name or number, without the places of values."""
    label = _PLACE.sub("", label_of(job, number)).strip("-_. ")
    return label or f"job-{number + 1}"


def _group(group: JobGroup, files: Mapping[str, File], findings: Findings, limits: Limits) -> JobGroup:
    ids: dict[str, list[str]] = {}     # what a sweep is called -> ids of its jobs
    items: list[Item] = []
    number = 0
    for item in group.items:
        jobs = None
        if isinstance(item, Job) and item.reference is None:
            jobs = _jobs(item, _plain(item, number), files, findings, limits)
            number += 1
            if jobs is not None:
                names = [str(item.value(tag)) for tag in ("Id", "Name") if item.value(tag) is not None]
                for name in {*names, _plain(item, number - 1)}:
                    ids.setdefault(name, []).extend(str(job.value("Id")) for job in jobs)
        items += [item] if jobs is None else jobs
    for member in items:
        if isinstance(member, Job | JobDefaults) and member.reference is None:
            member.items = [new for i in member.items for new in repeated(i, ids, findings)]
    return JobGroup(items, group.attributes or None, None, group.line)
