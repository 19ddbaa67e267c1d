"""Defaults of a site and of a user: what a configuration file says where programs say nothing.

    account = "p0017"                   # for all executors

    [executors.slurm]
    queue_name = "batch"
    queue_polling_interval = 60
    custom_attributes = {"slurm.constraint" = "knl"}

It is ``psij/config.toml`` where configuration belongs. Members of JobAttributes and the launcher are filled into jobs
when they are submitted; all else are parameters of the executor's configuration, where the program gives none.
"""

from __future__ import annotations

import difflib
import math
import os
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from copy import copy
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args, get_type_hints

from psij._plugins import EXECUTORS
from psij._validate import check_spec
from psij.exceptions import InvalidJobException
from psij.executors.batch._config import BatchSchedulerExecutorConfig
from psij.job_attributes import JobAttributes
from psij.job_executor_config import JobExecutorConfig
from psij.job_spec import JobSpec
from sssjob.places import configuration_files

_TABLE: Final = "executors"
_TEXTS: Final = ("account", "queue_name", "reservation_id")
_OF_JOBS: Final = (*_TEXTS, "launcher", "custom_attributes")
#: Variables of the environment that count before the file.
_VARIABLES: Final = {"work_directory": "PSIJ_WORK_DIRECTORY", "keep_files": "PSIJ_BATCH_KEEP_FILES",
                     "queue_polling_interval": "SSSJOB_POLLING_INTERVAL",
                     "questions_a_minute": "SSSJOB_QUESTIONS_A_MINUTE"}
_ABOVE_ZERO: Final = ("queue_polling_interval", "command_timeout", "questions_a_minute")      # not even 0
_KINDS: Final = {str: "a text", Path: "a path", int: "a whole number", float: "a number", bool: "true or false",
                 dict: 'a table of options with their executor before each, as {"slurm.constraint" = "knl"}'}


class Filled(NamedTuple):
    """A specification with the defaults of a site, and that of the program which they were filled into."""

    spec: JobSpec
    stated: JobSpec
    site: Site

    def untouched(self, spec: object) -> bool:
        """Whether a specification is this one, as it was filled."""
        return spec is self.spec and spec == self.site.fill(self.stated)


class Site(NamedTuple):
    """What holds for one executor. jobs: values for jobs, by name. settings: parameters of its configuration."""

    jobs: Mapping[str, Any] = {}
    settings: Mapping[str, Any] = {}

    def filled(self, spec: JobSpec, stated: JobSpec) -> Filled:
        """What is known of a specification that was filled."""
        return Filled(spec, stated, self)

    def fill(self, spec: JobSpec) -> JobSpec:
        """The specification, or a copy of it with what it does not say."""
        attributes = JobAttributes() if spec.attributes is None else spec.attributes
        custom = {**self.jobs.get("custom_attributes", {}), **(attributes.custom_attributes or {})}
        texts = {name: self.jobs[name] for name in _TEXTS if name in self.jobs and getattr(attributes, name) is None}
        launcher = self.jobs.get("launcher") if spec.launcher is None else None
        if not texts and launcher is None and custom == (attributes.custom_attributes or {}):
            return spec
        filled = copy(spec)
        filled.attributes = copy(attributes)
        filled.attributes.custom_attributes = custom or None
        for name, text in texts.items():
            setattr(filled.attributes, name, text)
        filled.launcher = spec.launcher if launcher is None else launcher
        return filled


def site_of(executor: str, config: type[JobExecutorConfig]) -> Site:
    """The defaults for an executor. config: the class of its configuration.

    The file of the user (PSIJ_CONFIG, else ``psij/config.toml`` below XDG_CONFIG_HOME) counts before that of the system
    (below XDG_CONFIG_DIRS), in each the table of the executor before what is said for all. Raises ValueError for a file
    that cannot be read, keys that are not known and values that cannot be, with file and key.
    """
    types = _parameters(config)
    jobs: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    for path, needed in configuration_files("psij", "PSIJ_CONFIG"):
        table = _read(path, needed)
        for prefix, values in (("", table), *_tables(table.pop(_TABLE, {}), executor, path)):
            for name, value in values.items():
                taken = _taken(name, value, types, prefix, path)
                if name == "custom_attributes":
                    taken = {**jobs.get(name, {}), **taken}
                (jobs if name in _OF_JOBS else settings)[name] = taken
    return Site(jobs, {name: value for name, value in settings.items()
                       if name in types and _VARIABLES.get(name, "") not in os.environ})


def _read(path: Path, needed: bool) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError) as e:
        if needed:
            raise ValueError(f"{path}: PSIJ_CONFIG names this file, which is not there") from e
        return {}
    except OSError as e:
        raise ValueError(f"{path}: {e.strerror}") from e
    except RecursionError:
        raise ValueError(f"{path}: nested too deep") from None
    except ValueError as e:         # no TOML, or no UTF-8
        raise ValueError(f"{path}: {e}") from e


def _tables(tables: Any, executor: str, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The tables of an executor, by its name or an alias, each with what stands before its keys."""
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise ValueError(f"{path}: {_TABLE} is to be a table of tables, as [{_TABLE}.slurm]")
    for name, values in tables.items():
        if close := EXECUTORS.misspelt(name):
            raise ValueError(f"{path}: {_TABLE}.{name}: no such executor (did you mean {close!r}?)")
        if EXECUTORS.canonical(name) == executor.lower():
            yield f"{_TABLE}.{name}.", values


def _parameters(config: type[JobExecutorConfig]) -> dict[str, Any]:
    """The parameters of a configuration, those of the classes above it among them, with their types."""
    classes = [cls for cls in reversed(config.__mro__) if cls is not object]
    own = [vars(cls)["__init__"] for cls in classes if "__init__" in vars(cls)]
    return {name: kind for make in own for name, kind in _kinds(make).items()}


@cache
def _kinds(make: Callable[..., None]) -> dict[str, Any]:
    """The parameters of a function with their types: milliseconds of work, and an executor is made for each submission.
    """
    hints = get_type_hints(make)
    return {name: hints[name] for name, parameter in signature(make).parameters.items()
            if name != "self" and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)}


def _taken(name: str, value: Any, types: Mapping[str, Any], prefix: str, path: Path) -> Any:
    """A value as it is meant. Raises ValueError. At the top there may be settings that this executor has not."""
    if name in _OF_JOBS:
        kinds: tuple[type, ...] = (dict,) if name == "custom_attributes" else (str,)
    elif name in types:
        kinds = tuple(kind for kind in get_args(types[name]) or (types[name],) if kind in _KINDS)
    elif not prefix and name in _parameters(BatchSchedulerExecutorConfig):      # for others than this executor
        return value
    else:
        names = [*_OF_JOBS, *types]
        close = difflib.get_close_matches(name, names, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names)}"
        raise ValueError(f"{path}: {prefix}{name}: no such setting ({hint})")
    if not _fits(value, kinds):
        meaning = " or ".join(_KINDS[kind] for kind in kinds)
        raise ValueError(f"{path}: {prefix}{name} is to be {meaning}, not {value!r}")
    if isinstance(value, int | float) and not (math.isfinite(value) and value >= 0 and (
            value or name not in _ABOVE_ZERO or isinstance(value, bool))):
        bound = "above zero" if name in _ABOVE_ZERO else "zero or more"
        raise ValueError(f"{path}: {prefix}{name} is to be {bound}, not {value!r}")
    if name in _OF_JOBS:
        try:
            check_spec(Site({name: value}).fill(JobSpec("/bin/true")))
        except InvalidJobException as e:
            raise ValueError(f"{path}: {prefix}{name}: {e}") from e
    return os.path.expanduser(value) if Path in kinds else value


def _fits(value: Any, kinds: Collection[type]) -> bool:
    if isinstance(value, dict):
        return dict in kinds and not any(isinstance(entry, dict) for entry in value.values())
    if isinstance(value, str):
        return str in kinds and value != ""
    return type(value) in kinds or (type(value) is int and float in kinds)
