"""Settings of a user and of a site: which executor, account and queue are meant where nobody says so, and how executors
work. The configuration file and the table ``run`` of a site profile hold the same settings.

    executor = "slurm"
    site = "alpha"

    [executors.slurm]
    queue = "batch"
    polling_interval = 60

All settings are in SETTINGS; where each value is from is kept with it. Nothing is run here.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from sssjob.errors import AccessError, SSSJobError
from sssjob.places import configuration_files
from sssjob.xml._toml import TOMLError, read_toml

__all__ = ["OF_SITES", "SETTINGS", "Layer", "Setting", "Settings", "SettingsError", "Value", "checked", "config_files",
           "file_layers", "read_config", "site_file", "variables_layer"]

_LONGEST_TEXT: Final = 4096
_MOST_SECONDS: Final = 86_400.0
_MOST_COUNT: Final = 1_000_000
_MOST_BYTES: Final = 1 << 60
_MOST_COMMANDS: Final = 16
_TABLE: Final = "executors"
_HEADER: Final = re.compile(r"\s*\[([^\[\]]+)\]\s*(?:#.*)?")
_KEY: Final = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")


class SettingsError(SSSJobError, ValueError):
    """Settings that are wrong; the message has a line for each problem, with its file and line."""


def _text(value: object) -> object:
    if not isinstance(value, str) or not value or len(value) > _LONGEST_TEXT or not value.isprintable():
        raise ValueError("is to be a text without control characters")
    return value


def _place(value: object) -> object:
    """A folder that is the same wherever a command is started."""
    text = str(_text(value))
    if not (text.startswith(("/", "~/")) or text == "~"):
        raise ValueError("is to be an absolute path, or one that begins with ~/")
    return text


def _seconds(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _MOST_SECONDS:
        raise ValueError(f"is to be a number of seconds, more than 0 and at most {_MOST_SECONDS:.0f}")
    return value


def _whole(most: int) -> Callable[[object], object]:
    def check(value: object) -> object:
        """The value, if it is a whole number from 1 on. Raises ValueError."""
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            raise ValueError(f"is to be a whole number from 1 to {most}")
        return value

    return check


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. check: gives the value, or raises ValueError. general: it is about no executor in particular."""

    name: str
    meaning: str
    check: Callable[[object], object] = _text
    default: object = None
    general: bool = False

    @property
    def variable(self) -> str:
        """The variable of the environment that sets it."""
        return f"SSSJOB_{self.name.upper()}"

    def of_text(self, text: str) -> object:
        """The value that a text means, as the variable has it. Raises ValueError."""
        if self.check in (_text, _place):
            return self.check(text)
        try:
            number = float(text) if self.check is _seconds else int(text)
        except ValueError:
            number = -1
        return self.check(number)


#: All settings; ``docs/config.md`` has the same table.
SETTINGS: Final[Mapping[str, Setting]] = {one.name: one for one in (
    Setting("executor", "what jobs are run with", default="local", general=True),
    Setting("site", "the site profile: a file, or the name of one in the folder `sites`", general=True),
    Setting("account", "Project of jobs that name none"),
    Setting("queue", "Queue of jobs that name none"),
    Setting("launcher", "what starts the tasks of jobs that do not say it"),
    Setting("polling_interval", "seconds between two questions for the states of jobs, at most", _seconds, 30),
    Setting("command_timeout", "seconds that a command of the resource manager may take", _seconds, 60),
    Setting("submit_commands", "submit commands of an executor that run at a time", _whole(_MOST_COMMANDS), 2),
    Setting("accounting_delay", "seconds that a job that has ended waits for its accounting record", _seconds, 10),
    Setting("lost_after", "seconds that a job of which nothing is known counts as alive", _seconds, 60),
    Setting("work_directory", "where scripts and records of jobs are", _place, "~/.psij/work"),
    Setting("max_queued", "jobs of an executor that may be submitted and not have ended at a time",
            _whole(_MOST_COUNT)),
    Setting("max_queued_total", "the same of all executors together", _whole(_MOST_COUNT), general=True),
    Setting("parallel_environment", "of Grid Engine, for jobs of several slots"),
    Setting("memory_resource", "what Grid Engine is asked for memory by", default="mem_free"),
    Setting("gpu_resource", "what Grid Engine is asked for GPUs by"),
    Setting("exclusive_resource", "what Grid Engine is asked for whole hosts by"),
    Setting("cores_per_node", "of each node of Cobalt", _whole(_MOST_COUNT)),
    Setting("facility", "the address of a facility with the IRI API, for the executor `iri`, or of an ARC computing "
            "element, for `arc`, up to its version"),
    Setting("resource", "what runs the jobs at a facility of `iri`"),
    Setting("token_file", "the file with the token of the facility, which its owner alone may read"),
)}


def _rules(value: object) -> object:
    if not isinstance(value, dict) or not all(isinstance(rule, str | int) for rule in value.values()):
        raise ValueError("is to be a table of allocation rules")
    return value


#: What only the profile of a site says, in its tables ``ssh`` and ``sge.pe``; no configuration does.
OF_SITES: Final[Mapping[str, Setting]] = {one.name: one for one in (
    Setting("ssh_host", "where the resource manager is"),
    Setting("ssh_setup", "a line of sh with which each command there begins"),
    Setting("ssh_directory", "what relative paths of jobs refer to there"),
    Setting("ssh_staging_bytes", "the most of one file or folder that is brought there or fetched",
            _whole(_MOST_BYTES)),
    Setting("parallel_environments", "of Grid Engine, each with how it spreads slots", _rules),
)}


@dataclass(frozen=True, slots=True)
class Value:
    """The value of a setting, and where it is from: ``default``, ``FILE:LINE``, a variable, an option."""

    value: Any
    source: str


@dataclass(frozen=True, slots=True)
class Layer:
    """The settings of one place. of: those of single executors, by the executor's name in small letters."""

    values: Mapping[str, Value] = field(default_factory=dict)
    of: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings that hold. layers: places, the one that counts most first."""

    layers: Sequence[Layer] = ()

    def get(self, name: str, executor: str | None = None) -> Value:
        """The value of a setting, for an executor where one is named. In each place the table of the executor counts
        before what is said for all. Raises KeyError for a name that is no setting."""
        setting = OF_SITES[name] if name in OF_SITES else SETTINGS[name]
        for layer in self.layers:
            own = layer.of.get(executor.lower(), {}) if executor is not None else {}
            value = own.get(name) or layer.values.get(name)
            if value is not None:
                return value
        return Value(setting.default, "default")

    def stated(self, executor: str) -> dict[str, Any]:
        """The settings of an executor that somebody has stated."""
        names = {name for layer in self.layers for name in (*layer.values, *layer.of.get(executor.lower(), ()))}
        return {name: self.get(name, executor).value for name, setting in {**SETTINGS, **OF_SITES}.items()
                if name in names and not setting.general}

    def max_queued(self, executor: str) -> int | None:
        """The most jobs of an executor that may be submitted and not have ended at a time; None: any number."""
        most: int | None = self.get("max_queued", executor).value
        return most

    @property
    def executors(self) -> list[str]:
        """Executors that have settings of their own."""
        return sorted({name for layer in self.layers for name in layer.of})

    def shown(self) -> Iterator[tuple[str, Value]]:
        """Every setting by its path, as ``executors.slurm.queue``, with what holds."""
        for name in SETTINGS:
            yield name, self.get(name)
        for executor in self.executors:
            for name, setting in SETTINGS.items():
                if not setting.general and any(name in layer.of.get(executor, {}) for layer in self.layers):
                    yield f"{_TABLE}.{executor}.{name}", self.get(name, executor)


def checked(table: Mapping[str, Any], place: Callable[[Sequence[str]], str]) -> Layer:
    """The settings of a table. place: where the key of a path stands, as ``FILE:LINE``.

    Raises SettingsError with every key that is not known and every value that is wrong.
    """
    problems: list[str] = []

    def taken(settings: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Value]:
        """The settings of one table, or of the table of a format below it; what is wrong with the others is noted."""
        values = {}
        for name, value in settings.items():
            where = place((*path, name))
            setting = SETTINGS.get(name)
            if setting is None or (path and setting.general):
                problems.append(f"{where}: {'.'.join((*path, name))}: no such setting{_hint(name, bool(path))}")
                continue
            try:
                values[name] = Value(setting.check(value), where)
            except ValueError as error:
                problems.append(f"{where}: {'.'.join((*path, name))} {error}")
        return values

    tables = table.get(_TABLE, {})
    of: dict[str, dict[str, Value]] = {}
    if not isinstance(tables, Mapping):
        problems.append(f"{place((_TABLE,))}: {_TABLE} is to be a table of tables, as [{_TABLE}.slurm]")
        tables = {}
    for executor, own in tables.items():
        if isinstance(own, Mapping):
            of[executor.lower()] = taken(own, (_TABLE, executor))
        else:
            problems.append(f"{place((_TABLE, executor))}: {_TABLE}.{executor} is to be a table")
    layer = Layer(taken({name: value for name, value in table.items() if name != _TABLE}, ()), of)
    if problems:
        raise SettingsError("\n".join(problems[:20]))
    return layer


def _hint(name: str, inside: bool) -> str:
    settable = [setting.name for setting in SETTINGS.values() if not (inside and setting.general)]
    settable += [] if inside else [_TABLE]
    close = difflib.get_close_matches(name, settable, 1)
    return f" (did you mean {close[0]!r}?)" if close else f" (known: {', '.join(settable)})"


def read_config(data: bytes, path: str) -> Layer:
    """The settings of a configuration file. Raises SettingsError with each problem and its line."""
    try:
        table = read_toml(data)
    except TOMLError as error:
        raise SettingsError(f"{path}: {error}") from None
    lines = _lines(data.decode("utf-8"))
    return checked(table, lambda keys: f"{path}:{_line_of(lines, tuple(keys))}")


def _lines(text: str) -> dict[tuple[str, ...], int]:
    """Line of each key and each table, as far as they stand on lines of their own."""
    line_of: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.split("\n"), 1):
        if header := _HEADER.fullmatch(line.rstrip("\r")):
            table = _parts(header[1])
            line_of.setdefault(table, number)
        elif key := _KEY.match(line):
            line_of.setdefault((*table, *_parts(key[1])), number)
    return line_of


def _parts(key: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in re.findall(r'"[^"]*"|\'[^\']*\'|[^.]+', key))


def _line_of(lines: Mapping[tuple[str, ...], int], keys: tuple[str, ...]) -> int:
    """The line of a key, else that of what it stands in."""
    while keys and keys not in lines:
        keys = keys[:-1]
    return lines.get(keys, 1)


def config_files(environment: Mapping[str, str] = os.environ) -> list[tuple[Path, bool]]:
    """The configuration files (``configuration_files``); SSSJOB_CONFIG names that of the user."""
    return configuration_files("sssjob", "SSSJOB_CONFIG", environment)


def site_file(name: str, environment: Mapping[str, str] = os.environ) -> str:
    """The file of a site profile: the one of that name, else ``sites/NAME.toml`` beside a configuration file; the name
    itself where there is none. A folder of that name is no profile."""
    if name == "-" or os.sep in name or (os.path.exists(name) and not os.path.isdir(name)):
        return name
    for path, _ in reversed(config_files(environment)):
        profile = path.parent / "sites" / f"{name}.toml"
        if profile.exists():
            return str(profile)
    return name


def site_files(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Name -> file of every site profile beside a configuration file; of two of a name the user's counts. Raises
    AccessError."""
    profiles: dict[str, str] = {}
    for path, _ in config_files(environment):
        folder = path.parent / "sites"
        try:
            profiles |= {file.stem: str(file) for file in folder.iterdir() if file.suffix == ".toml"}
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise AccessError(str(folder), error.strerror or str(error)) from error
    return dict(sorted(profiles.items()))


def variables_layer(environment: Mapping[str, str]) -> Layer:
    """The settings of the environment. Raises SettingsError."""
    values, problems = {}, []
    for setting in SETTINGS.values():
        text = environment.get(setting.variable)
        if text:
            try:
                values[setting.name] = Value(setting.of_text(text), setting.variable)
            except ValueError as error:
                problems.append(f"{setting.variable} {error}")
    if problems:
        raise SettingsError("\n".join(problems))
    return Layer(values)


def file_layers(environment: Mapping[str, str]) -> list[Layer]:
    """The settings of each configuration file that is there, the one that counts least first. Raises SettingsError,
    AccessError."""
    layers = []
    for path, needed in config_files(environment):
        try:
            layers.append(read_config(path.read_bytes(), str(path)))
        except FileNotFoundError:
            if needed:
                raise AccessError(str(path), "SSSJOB_CONFIG names this file, which is not there") from None
        except NotADirectoryError:
            continue
        except SettingsError:
            raise
        except OSError as error:
            raise AccessError(str(path), error.strerror or str(error)) from error
    return layers
