"""Site profiles: what no text can say and only a site knows, read from TOML. Readers and writers get it with their
context; where it answers, a finding of the kind site-dependent is not needed.

    name = "alpha"
    manager = "slurm"
    machine = "alpha"
    rates = "alpha-rates.toml"
    timezone = "Europe/Berlin"
    cores_per_node = 48
    home = "/home/{user}"

    [map.Queue]
    debug = "test"

    [modules]
    "gcc/9" = "GCC/9.3.0"

    [lsf]
    unit_for_limits = "MB"

    [sge.pe.mpi]
    allocation_rule = "$fill_up"

    [options.acme]
    flavour = "sweet"

All keys are in docs/profiles.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError

from sssjob.conversion.settings import checked
from sssjob.document.element import Container, Property
from sssjob.document.vocabulary import ELEMENTS
from sssjob.errors import SSSJobError
from sssjob.lrm.clocks import time_zone
from sssjob.lrm.reasons import ALIASES, EXECUTORS
from sssjob.lrm.sge import environment_for
from sssjob.xml._faults import model_problem
from sssjob.xml._toml import TOMLError, read_toml

if TYPE_CHECKING:
    from sssjob.document.model import Document

__all__ = ["LSF", "OPTION", "SGE", "SSH", "ParallelEnvironment", "Queue", "Site", "SiteError", "Slurm", "read_site"]

#: Properties whose values are names that a site gives.
_NAMED: Final = frozenset(e.name for e in ELEMENTS if e.type == "String")
#: A host, a name of ssh_config(5), or user@host; nothing that ssh would take for an option.
_HOST: Final = re.compile(r"[A-Za-z0-9_][\w.@:%-]{0,254}", re.ASCII)
_ALIASES: Final = {alias: e.name for e in ELEMENTS for alias in e.aliases}


class SiteError(SSSJobError, ValueError):
    """A site profile that is wrong. problems: ``sge.pe.mpi.allocation_rule: ...``, one each."""

    def __init__(self, path: str, problems: list[str]) -> None:
        self.path, self.problems = path, tuple(problems)
        super().__init__(f"{path}: {'; '.join(problems[:20])}")


def _directory(text: str) -> str:
    if not text.isprintable() or not (text.startswith(("/", "~/")) or text == "~"):
        raise ValueError("a path that begins with / or ~/")
    return text


def _home(text: str) -> str:
    if not text.isprintable() or not text.startswith("/") or "{" in text.replace("{user}", ""):
        raise ValueError("a path that begins with /, with {user} for the user's name")
    return text.rstrip("/")


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("holds a control character")
    return text


def _property(name: str) -> str:
    """3.1.0's name of a property that holds a name."""
    canonical = _ALIASES.get(name, name)
    if canonical not in _NAMED:
        raise ValueError(f"{name!r} is no property that holds a name, as Queue or Project")
    return canonical


def _manager(name: str) -> str:
    name = ALIASES.get(name, name)
    if name not in EXECUTORS:
        raise ValueError(f"{name!r} is none of {', '.join(sorted(EXECUTORS))}")
    return name


def _host(name: str) -> str:
    if not _HOST.fullmatch(name):
        raise ValueError("a host, as login.example.org or user@host")
    return name


def _rule(text: object) -> object:
    if isinstance(text, int) and not isinstance(text, bool) and text > 0:
        return text
    if text in ("$pe_slots", "$fill_up", "$round_robin"):
        return text
    raise ValueError("$pe_slots, $fill_up, $round_robin or a number of slots a host")


Name = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_printable)]
Replaced = Annotated[str, StringConstraints(max_length=200), AfterValidator(_printable)]
Count = Annotated[int, Field(strict=True, ge=1, le=1_000_000)]


def _settings(table: dict[str, Any]) -> dict[str, Any]:
    """The settings of a run, checked."""
    checked(table, lambda keys: "run")
    return table


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class LSF(_Table):
    """unit_for_limits: LSF_UNIT_FOR_LIMITS, the unit of memory without a suffix, in -M, -v, -F and in rusage[mem]
    (lsf.conf(5)); reserve_per_task: RESOURCE_RESERVE_PER_TASK, whether rusage[mem] without /host, /task or /job counts
    for each task and not for each host; job_memory_limit: LSB_JOB_MEMLIMIT, whether -M is the memory of the whole job
    and not of each process; suffixes: whether the release reads them (10.1.0.2 and later)."""

    unit_for_limits: Literal["KB", "MB", "GB", "TB", "PB", "EB"] | None = None
    reserve_per_task: bool | None = None
    job_memory_limit: bool | None = None
    suffixes: bool | None = None


class ParallelEnvironment(_Table):
    """One parallel environment of Grid Engine. allocation_rule: how its slots are spread over hosts (sge_pe(5)); a
    number: so many on each."""

    allocation_rule: Annotated[int | str, BeforeValidator(_rule)]


#: What a complex of Grid Engine is; of each slot unless of the job (complex(5): consumable YES or JOB).
Complex = Literal["GPU", "GPU per job", "Memory", "Memory per job", "License", "License per job"]


#: A long option without its dashes.
OPTION: Final = re.compile(r"[A-Za-z][\w-]*", re.ASCII)


def _option(name: str) -> str:
    if not OPTION.fullmatch(name):
        raise ValueError(f"{name[:80]!r} is no name of a long option, as container-image")
    return name


class Slurm(_Table):
    """plugin_options: long options that plugins of the site add to sbatch (spank(7)), as ``container-image``."""

    plugin_options: tuple[Annotated[str, AfterValidator(_option)], ...] = ()


class SGE(_Table):
    """pe: name -> parallel environment, those to be preferred first; h_vmem_per_slot: whether h_vmem is multiplied by
    the slots (complex(5), consumable YES); complex: name of a resource -> what it is."""

    complex: dict[Name, Complex] = Field(default_factory=dict)
    pe: dict[Name, ParallelEnvironment] = Field(default_factory=dict)
    h_vmem_per_slot: bool | None = None

    def smp(self) -> str | None:
        """The first environment that puts all slots on one host."""
        return environment_for(self.rules(), on_one_host=True)

    def spread(self, per_host: int | None) -> str | None:
        """The first one that puts so many slots on each host; without a number, one that fills up or goes round."""
        return environment_for(self.rules(), on_one_host=False, per_host=per_host)

    def rules(self) -> dict[str, int | str]:
        """Name of each environment -> its allocation rule."""
        return {name: environment.allocation_rule for name, environment in self.pe.items()}


class Queue(_Table):
    """A queue. duration: the longest that a job may run there, in seconds; qualities_of_service: the names with which
    it takes jobs."""

    duration: Annotated[int, Field(strict=True, ge=1, le=10**9)] | None = None
    qualities_of_service: tuple[Annotated[Name, StringConstraints(pattern="^[^,]+$")], ...] | None = None


class SSH(_Table):
    """How a site is reached. host: as the system's ssh takes it, whose own configuration says the rest; setup: a line
    of sh with which each command there begins; directory: what relative paths of jobs refer to there, the home
    directory unless stated; staging_bytes: the most of one file or folder that is brought or fetched, 1 TiB unless
    stated."""

    host: Annotated[str, AfterValidator(_host)]
    setup: Name | None = None
    directory: Annotated[str, AfterValidator(_directory)] | None = None
    staging_bytes: Annotated[int, Field(strict=True, ge=1, le=1 << 60)] | None = None


class Site(_Table):
    """What one site knows. map: property -> name there -> name here, an empty one leaves it out; modules: likewise of
    environment modules; options: format -> its options; run: settings of executors; all others: see
    docs/profiles.md.

    manager: the resource manager, which is the executor too unless ``run`` names another; ssh: how it is reached where
    it is not here; machine: the identity of its
    cluster; rates: a file of rates, relative to the folder of the profile.
    """

    name: Name
    manager: Annotated[str, AfterValidator(_manager)] | None = None
    ssh: SSH | None = None
    machine: Name | None = None
    rates: Name | None = None
    timezone: Annotated[ZoneInfo, BeforeValidator(lambda key: time_zone(str(key)))] | None = None
    cores_per_node: Count | None = None
    home: Annotated[str, AfterValidator(_home)] | None = None
    map: dict[Annotated[str, AfterValidator(_property)], dict[Name, Replaced]] = Field(default_factory=dict)
    modules: dict[Name, Replaced] = Field(default_factory=dict)
    lsf: LSF = Field(default_factory=LSF)
    sge: SGE = Field(default_factory=SGE)
    slurm: Slurm = Field(default_factory=Slurm)
    options: dict[Name, dict[Name, Replaced]] = Field(default_factory=dict)
    queues: dict[Name, Queue] = Field(default_factory=dict)
    run: Annotated[dict[str, Any], AfterValidator(_settings)] = Field(default_factory=dict)

    def stamp(self, local: int) -> int | None:
        """Epoch seconds of what the clock of the site shows, given as if it were UTC; None: the zone is not known."""
        if self.timezone is None:
            return None
        shown = datetime.fromtimestamp(local, UTC).replace(tzinfo=self.timezone)
        return int(shown.timestamp())

    def clock(self, stamp: int) -> int | None:
        """What the clock of the site shows at a moment, as if it were UTC; the way back of ``stamp``."""
        if self.timezone is None:
            return None
        offset = datetime.fromtimestamp(stamp, self.timezone).utcoffset()
        return stamp + int(offset.total_seconds() if offset is not None else 0)

    def defaults(self, format: str, kind: str) -> Mapping[str, str]:
        """Options of a format that nobody has given: those of its table, and of records the machine and the zone."""
        options = dict(self.options.get(format, {}))
        if kind == "record":
            options |= {"machine": self.machine} if self.machine else {}
            options |= {"timezone": self.timezone.key} if self.timezone is not None else {}
        return options

    def rename(self, document: Document) -> None:
        """Put this site's names in place of the others', in all bodies of a document."""
        if self.map:
            for body in document.bodies():
                self._renamed(body, getattr(document, "origins", {}))

    def _renamed(self, scope: Container, origins: dict[int, Any]) -> None:
        kept: list[Any] = []
        for item in scope.items:
            if isinstance(item, Container):
                self._renamed(item, origins)
            elif isinstance(item, Property) and (new := self.map.get(item.tag, {}).get(item.text)) is not None:
                if not new:
                    continue
                renamed = item.replace(new)
                if id(item) in origins:
                    origins[id(renamed)] = (renamed, origins[id(item)][1])
                item = renamed
            kept.append(item)
        scope.items = kept


def read_site(data: bytes | str, path: str = "-") -> Site:
    """The site of a TOML text. Raises SiteError with every problem and the path of its key."""
    try:
        return Site.model_validate(read_toml(data))
    except ValidationError as error:
        raise SiteError(path, [_problem(e) for e in error.errors()]) from None
    except TOMLError as error:
        raise SiteError(path, [str(error)]) from None


def _problem(error: Any) -> str:
    """``sge.pe.mpi.allocation_rule: ...``"""
    *table, key = error["loc"] or ("",)
    close = get_close_matches(str(key), _keys(table), 1) if error["type"] == "extra_forbidden" else []
    return model_problem(error) + (f" (did you mean {close[0]!r}?)" if close else "")


def _keys(steps: Sequence[object]) -> list[str]:
    """The keys of a table of a profile."""
    tables: dict[tuple[object, ...], type[_Table]] = {
        (): Site, ("ssh",): SSH, ("lsf",): LSF, ("sge",): SGE, ("sge", "pe"): ParallelEnvironment, ("queues",): Queue}
    table = tables.get(tuple(steps[:2])) or tables.get(tuple(steps[:1]))
    return [] if table is None else list(table.model_fields)
