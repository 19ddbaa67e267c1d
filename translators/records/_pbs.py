"""What stands in the records of PBS: attributes, and the texts of vnodes, hosts and requests."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Set
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final

from sssjob.document.element import Property
from sssjob.document.units import to_bytes
from sssjob.findings import escape
from sssjob.translators.records._again import Token, cutter
from sssjob.translators.records._record import leaf, node_of_hosts
from sssjob.translators.records._values import amount, count, micros, rounded
from sssjob.translators.records.base import Reading

_NAME: Final = re.compile(r"[A-Za-z_][\w.\-]*", re.ASCII)
_QUOTED: Final = re.compile(r'([A-Za-z_][\w.\-]*)=(?:"((?:[^"\\]++|\\.)*+)"|(\S*+))')
_HEAD: Final = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;([A-Za-z]{1,2});\d[^; ]*;(.*)", re.ASCII | re.DOTALL)
_FEW: Final = 1000          # hosts of a list that is remembered
#: Resource_List -> ResourceLimit.
LIMITS: Final = {"cput": "CPUTime", "pmem": "MaxMemorySize", "vmem": "MaxSwap"}
#: Sections of a record: texts that together say one thing.
WHO: Final = ("user", "group", "account", "queue", "resvname", "resvID", "owner", "resource", "project")
_WHEN: Final = ("jobname", "ctime", "etime", "start", "end", "qtime", "eligible_time", "run_count")
_ENDED: Final = ("Exit_status", "run_count", "exec_vnode")
HELD: Final = (
    "exec_vnode", "exec_host", "Resource_List.ncpus", "Resource_List.nodes", "Resource_List.nodect",
    "resources_used.ncpus", "total_execution_slots", "unique_node_count", "Resource_List.ngpus", "Resource_List.gpus",
    "Resource_List.gpu", "Resource_List.neednodes", "Resource_List.walltime", "Resource_List.mem",
    "Resource_List.select", "Resource_List.place", *(f"Resource_List.{name}" for name in LIMITS))
_USED: Final = ("resources_used.cput", "resources_used.walltime", "resources_used.mem", "resources_used.vmem",
                "resources_used.energy_used", "resources_used.cpupercent", "session")
#: What says again what others say, or nothing of the job.
_BESIDE: Final = ("Resource_List.mpiprocs", "Resource_List.ompthreads", "alt_id", "accounting_id", "requestor",
                  "array_indices", "pcap_accelerator", "pcap_node")
#: Whose a job is, and the texts that its user chooses, as they stand in OpenPBS (pbs_accounting) and Torque:
#: ``user= group= account= project= jobname= queue= ctime= ...``; Torque writes the account behind the owner.
_OWNERS: Final = frozenset(("user", "group", "account"))
_CHOSEN: Final = ("project", "jobname")
#: The attributes that become part of a job; all others are told.
READ: Final = frozenset((*WHO, *_WHEN, *_ENDED, *HELD, *_USED, *_BESIDE))
Texts = tuple[str, ...]
#: Of each section its texts or, of who and held, the runs of a form.
Said = tuple[Any, Any, Any, Any, Any]


class PbsForm:
    """Records of one kind whose attributes come in one order.

    Who a job is of and what it held is looked up by the text of the attributes that say so, where those stand together
    (a run), so that they are cut and looked at only when they come for the first time; ``section`` reads such runs.
    All other values are cut from every line.
    """

    __slots__ = ("_sections", "keys", "kind", "match", "unread")

    def __init__(self, kind: str, named: dict[str, str], quoted: Collection[str]) -> None:
        self.kind, self.keys = kind, frozenset(named)
        self.unread = self.keys - READ
        place = {name: i for i, name in enumerate(named)}
        runs = [_runs(place, section) for section in (WHO, HELD)]
        wanted_places = {place[name] for section in (_WHEN, _ENDED, _USED) for name in section if name in place}
        tokens = [_token(name, name in quoted) for name in named]
        cut = cutter(tokens, wanted_places, sorted((*runs[0], *runs[1])), _prefix(kind, 2 * len(quoted)))
        of_run = dict(zip(sorted((*runs[0], *runs[1])), cut.runs, strict=True))
        self.match = cut.match
        who, held = (itemgetter(*([of_run[run] for run in group_of_run] or [cut.empty])) for group_of_run in runs)
        when, ended, used = (itemgetter(*(cut.values[place[name]] if name in place else cut.empty for name in section))
                             for section in (_WHEN, _ENDED, _USED))
        self._sections = who, when, ended, held, used

    def said(self, values: Texts) -> Said:
        """What a line says: of each section its texts, or its runs."""
        who, when, ended, held, used = self._sections
        return who(values), when(values), ended(values), held(values), used(values)


def _prefix(kind: str, quotes: int) -> str:
    """Stamp, kind and id. A line with other quotes than those around its quoted values is left to ``attributes``."""
    only = f'(?=(?:[^"]*+"){{{quotes}}}[^"]*+\\Z)'
    return rf"{only}([0-9]{{2}}/[0-9]{{2}}/[0-9]{{4}} [0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}});{kind};([0-9][^; ]*+);"


def _token(name: str, quoted: bool) -> Token:
    name = re.escape(name)
    if quoted:
        return Token(rf'{name}="[^"\\]*+"', rf'{name}="([^"\\]*+)"')
    return Token(rf"{name}=[^ ]*+", rf"{name}=([^ ]*+)")


def _runs(place: dict[str, int], section: Texts) -> list[tuple[int, int]]:
    """(first, last) of the attributes of a section that stand together."""
    runs: list[tuple[int, int]] = []
    for at in sorted(place[name] for name in section if name in place):
        if runs and runs[-1][1] == at - 1:
            runs[-1] = runs[-1][0], at
        else:
            runs.append((at, at))
    return runs


def section(names: Texts, runs: str | Texts) -> Texts:
    """The texts of a section by the runs that a form has cut."""
    get = attributes(runs if isinstance(runs, str) else " ".join(runs)).get
    return tuple([get(name, "") for name in names])


class Facts:
    """The attributes of a record, by name. form: that the record has."""

    __slots__ = ("_form", "_named", "text")

    def __init__(self, text: str, form: PbsForm | None = None) -> None:
        self.text, self._form = text, form
        self._named: dict[str, str] | None = None

    @property
    def named(self) -> dict[str, str]:
        """The attributes."""
        if self._named is None:
            self._named = attributes(self.text)
        return self._named

    @property
    def keys(self) -> Set[str]:
        """Their names."""
        return self.named.keys() if self._form is None else self._form.keys

    def said(self) -> Said:
        """The texts of each section."""
        get = self.named.get
        who, when, ended, held, used = (
            tuple([get(name, "") for name in section]) for section in (WHO, _WHEN, _ENDED, HELD, _USED))
        return who, when, ended, held, used

    def with_more(self, later: Iterable[Facts]) -> Facts:
        """With what later records of the job say."""
        named = self.named
        for facts in later:
            named.update(facts.named)
        self._form = None
        return self

    def over(self, old: Iterable[Facts]) -> Facts:
        """With what only older records of the job say."""
        lost = [facts for facts in old if not facts.keys <= self.keys]
        if lost:
            self._named = {name: text for facts in (*lost, self) for name, text in facts.named.items()}
            self._form = None
        return self


def form_of(text: str) -> PbsForm | None:
    """The form of a record; None where its pattern would not cut others of the form as ``attributes`` does."""
    match = _HEAD.fullmatch(text)
    if match is None:
        return None
    kind, rest = match.groups()
    named = attributes(rest)
    if not named or not all(map(_NAME.fullmatch, named)):
        return None
    quoted = [name for name in named if f' {name}="' in f" {rest}"]
    form = PbsForm(kind, named, quoted)
    return form if form.match(text) is not None else None


def attributes(text: str) -> dict[str, str]:
    """``a=1 b="two words" c=3``; a word without = belongs to the value before it, and of a name that stands twice the
    last value counts, for managers write their own attributes behind those of users. Whose a job is they write before
    its project and name, or behind its queue: what stands between is the user's."""
    return dict(_parted(text)[0])


def _parted(text: str) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """(the attributes of a record, those that a user has written into the project or the name of the job)."""
    pairs = list(_pairs(text))
    names = [name for name, _ in pairs]
    first = min((names.index(name) for name in _CHOSEN if name in names), default=len(names))
    last = max((at for at, name in enumerate(names) if name == "queue" and names[at + 1:at + 2] == ["ctime"]),
               default=0)
    forged = [at for at in range(first + 1, last) if names[at] in _OWNERS]
    return [pair for at, pair in enumerate(pairs) if at not in forged], [pairs[at] for at in forged]


def tell_forged(reading: Reading, ident: str, text: str, number: int) -> None:
    """Tell which attributes stand in a record of a job with several values. number: of its line."""
    values: dict[str, set[str]] = {}
    pairs, forged = _parted(text)
    for name, _ in forged:
        reading.tell("SSS542", name, f"job {escape(ident, 60)}: {escape(name, 60)} stands inside the project or the "
                     "name of the job, where a user has written it; it is not taken", number)
    for name, value in pairs:
        values.setdefault(name, set()).add(value)
    for name, different in values.items():
        if len(different) > 1:
            reading.tell("SSS542", name, f"job {escape(ident, 60)}: {escape(name, 60)} stands in one record with "
                         "several values, of which somebody may have forged one; the last one is taken", number)


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    if '"' in text:
        for m in _QUOTED.finditer(text):
            yield m[1], m[3] if m[2] is None else m[2].replace('\\"', '"').replace("\\\\", "\\")
        return
    name: str | None = None
    value = ""
    for word in text.split():
        key, sign, more = word.partition("=")
        if sign:
            if name is not None:
                yield name, value
            name, value = key, more
        elif name:
            value += f" {word}"
    if name is not None:
        yield name, value


@dataclass(slots=True)
class Chunks:
    """What exec_vnode assigns; memory in bytes."""

    cpus: int = 0
    gpus: int = 0
    memory: Decimal = Decimal(0)
    hosts: int = 0


@lru_cache(maxsize=1 << 12)
def vnodes(text: str) -> Chunks:
    """``(h1:ncpus=24:ngpus=2:mem=5kb+h2:ncpus=2)+(h1:ncpus=1)``. Rejected: number."""
    chunks = Chunks()
    names = set()
    for part in text.replace("(", "").replace(")", "").split("+") if text else ():
        name, *resources = part.split(":")
        names.add(name)
        for resource in resources:
            key, _, value = resource.partition("=")
            if key == "ncpus":
                chunks.cpus += count(value, "exec_vnode ncpus") or 0
            elif key == "ngpus":
                chunks.gpus += count(value, "exec_vnode ngpus") or 0
            elif key == "mem" and (size := amount(value, "exec_vnode mem")):
                chunks.memory += to_bytes(*size)
    chunks.hosts = len(names)
    return chunks


def nodes_spec(text: str) -> tuple[int | None, int | None]:
    """(processors, GPUs) of Torque's ``2:ppn=8:gpus=1+host:ppn=4``; None where it is none."""
    if not text:
        return None, None
    cpus = gpus = 0
    for part in text.split("+"):
        first, *others = part.split(":")
        times = int(first) if re.fullmatch(r"\d{1,9}", first, re.ASCII) else 1
        options = {k: int(v) for k, _, v in (o.partition("=") for o in others) if re.fullmatch(r"\d{1,9}", v, re.ASCII)}
        cpus += times * options.get("ppn", 1)
        gpus += times * options.get("gpus", 0)
    return cpus, gpus or None


def node_of(hosts: Texts) -> Property | None:
    """Node of hosts, folded; None where there are none."""
    return _node(hosts) if len(hosts) < _FEW else _node.__wrapped__(hosts)


@lru_cache(maxsize=1 << 12)
def _node(hosts: Texts) -> Property | None:
    return node_of_hosts(hosts)


def array_of(ident: str) -> tuple[str, str] | None:
    """(id of the array, index) of ``4[2].head`` and of Torque's ``4-2.head``."""
    match = re.match(r"(\d+)(?:\[(\d+)\]|-(\d+)(?=\.|$))(.*)", ident, re.ASCII | re.DOTALL)
    if not match:
        return None
    return (f"{match[1]}[]{match[4]}", match[2]) if match[2] else (f"{match[1]}{match[4]}", match[3])


_TEXT: Final = 4096         # characters of texts that are remembered
_ASKED: Final = ("walltime", "mem", "ngpus", "select", "place", "nodes")


def requested(texts: Texts, cpus: int | None, nodes: int | None, gpus: int | None) -> tuple[Property, ...]:
    """What Resource_List asks for. Rejected: number."""
    asked = _asked if sum(map(len, texts)) < _TEXT else _asked.__wrapped__
    return asked(texts, cpus, nodes, gpus)


@lru_cache(maxsize=1 << 12)
def _asked(texts: tuple[str, ...], cpus: int | None, nodes: int | None, gpus: int | None) -> tuple[Property, ...]:
    texts_by_name = dict(zip(_ASKED, texts, strict=True))
    properties: list[Property] = [leaf(tag, n) for tag, n in (("Processors", cpus), ("NodeCount", nodes)) if n]
    if limit := rounded(micros(texts_by_name["walltime"], "Resource_List.walltime")):
        properties.append(leaf("Duration", limit))
    size = amount(texts_by_name["mem"], "Resource_List.mem")
    if size and size[0]:
        properties.append(leaf("Memory", size[0], {"units": size[1], "metric": "Total"}))
    if gpus := count(texts_by_name["ngpus"], "Resource_List.ngpus") or gpus:
        properties.append(leaf("Resource", Decimal(gpus), {"name": "GPU"}))
    properties += (leaf("Extension", texts_by_name[name],
                        {"name": name, "type": "torque" if name == "nodes" else "pbspro"})
                   for name in ("select", "place", "nodes") if texts_by_name[name])
    return tuple(properties)
