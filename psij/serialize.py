"""JobSpec to and from JSON, losslessly; the form is that of psij-python.

Shape: one object whose keys are the parameters of JobSpec; a value equal to the default is left out:

    {"name": "/bin/date", "executable": "/bin/date", "arguments": ["-u"], "directory": "/tmp",
     "resources": {"__version": 1, "node_count": 2}, "attributes": {"duration": "3600 s", "queue_name": "debug"}}

Staging members, which psij-python does not write, are lists of objects with the parameters of StageIn and StageOut;
flags are names joined by ``|``. Reading is strict: duplicate and unknown keys, NaN, wrong types (true for a count),
NUL characters and deep nesting raise ValueError with a JSON pointer to the place. Nothing is checked that depends on
an executor.
"""

from __future__ import annotations

import difflib
import io
import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import IO, Any, NoReturn

from psij.exceptions import InvalidJobException
from psij.job_attributes import JobAttributes
from psij.job_spec import JobSpec
from psij.resource_spec import ResourceSpecV1
from psij.staging import StageIn, StageOut, StageOutFlags, StagingMode

__all__ = ["JSONSerializer", "Serializer"]

_DEPTH = 32             # levels of nesting that are read
_DIGITS = 25            # of a whole number that is read
_PATHS = ("directory", "stdin_path", "stdout_path", "stderr_path", "pre_launch", "post_launch")
_COUNTS = ("node_count", "process_count", "processes_per_node", "cpu_cores_per_process", "gpu_cores_per_process",
           "memory")
_NAMES = ("queue_name", "account", "reservation_id")
_TEN_MINUTES = timedelta(minutes=10)
_Reader = Callable[[Any], Any]


class Serializer(ABC):
    """Writes and reads JobSpecs. A subclass says how a dictionary of plain values is written and read."""

    def dump(self, spec: JobSpec, stream: IO[str]) -> None:
        """Write a specification to a text stream. Raises ValueError for what cannot be written."""
        self._dump_dict(_from_spec(spec), stream)

    def load(self, stream: IO[str]) -> JobSpec:
        """Read a specification from a text stream. Raises ValueError."""
        return _to_spec(self._load_dict(stream))

    def dumps(self, spec: JobSpec) -> str:
        """A specification as text. Raises ValueError for what cannot be written."""
        stream = io.StringIO()
        self.dump(spec, stream)
        return stream.getvalue()

    def loads(self, s: str) -> JobSpec:
        """The specification in a text. Raises ValueError."""
        return self.load(io.StringIO(s))

    def _from_spec(self, spec: JobSpec) -> dict[str, Any]:
        """A specification as a dictionary of plain values; programs call these two of psij-python's."""
        return _from_spec(spec)

    def _to_spec(self, data: dict[str, Any]) -> JobSpec:
        """The specification in a dictionary of plain values."""
        return _to_spec(data)

    @abstractmethod
    def _dump_dict(self, dict: dict[str, Any], stream: IO[str]) -> None:
        """Write a dictionary of plain values."""

    @abstractmethod
    def _load_dict(self, stream: IO[str]) -> dict[str, Any]:
        """Read a dictionary of plain values."""


class JSONSerializer(Serializer):
    """Serializer for JSON.

    seconds: durations are written as whole numbers of seconds, as services do that speak PSI/J over HTTP, and not as
    ``"3600 s"``. Both are read.
    """

    def __init__(self, seconds: bool = False) -> None:
        self.seconds = seconds

    def dump(self, spec: JobSpec, stream: IO[str]) -> None:
        """Write a specification to a text stream. Raises ValueError for what cannot be written."""
        data = _from_spec(spec)
        if self.seconds and spec.attributes is not None and spec.attributes.duration is not None:
            data["attributes"]["duration"] = _whole_seconds(spec.attributes.duration)
        self._dump_dict(data, stream)

    def _dump_dict(self, dict: dict[str, Any], stream: IO[str]) -> None:
        stream.write(_ENCODER.encode(dict))

    def _load_dict(self, stream: IO[str]) -> dict[str, Any]:
        text = stream.read()
        try:
            plain = _quick(text)
        except _Odd:
            plain = _checked(text)
        if not isinstance(plain, dict):
            raise ValueError(f"/: a job specification is an object, not {_kind(plain)}")
        return plain


class _Bad(ValueError):
    """A value that cannot be taken. Its place grows from the inside outwards while the error passes by."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.place: list[str] = []

    def inside(self, key: object) -> _Bad:
        """This error, known to be below a key or index."""
        self.place.insert(0, str(key))
        return self

    def __str__(self) -> str:
        pointer = "".join(f"/{key.replace('~', '~0').replace('/', '~1')}" for key in self.place)
        return f"{pointer[:200] or '/'}: {self.problem}"


# -- JSON beyond what the json module checks: quickly first, and if something is odd, again with places ----------------

class _Odd(Exception):
    """Something that JSON has but a specification must not have."""


class _Object:
    """A JSON object as its pairs, so that duplicates are still there."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self.pairs = pairs


class _Number:
    """A number that is none (NaN, Infinity) or has too many digits."""

    def __init__(self, text: str) -> None:
        self.text = text


def _odd(text: str) -> NoReturn:
    raise _Odd


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    return result if len(result) == len(pairs) else _odd("")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _odd(text)


_ENCODER = json.JSONEncoder(allow_nan=False)
_QUICK = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_odd, parse_float=_finite,
                          parse_int=lambda text: int(text) if len(text) <= _DIGITS else _odd(text))
_CAREFUL = json.JSONDecoder(object_pairs_hook=_Object, parse_constant=_Number,
                            parse_int=lambda text: int(text) if len(text) <= _DIGITS else _Number(text))


def _quick(text: str) -> Any:
    """The value of a JSON text. Raises _Odd where a closer look is needed, ValueError where it is not JSON."""
    if "\\u0000" in text or text.count("[") + text.count("{") > _DEPTH:
        raise _Odd
    return _QUICK.decode(text)


def _checked(text: str) -> Any:
    """The value of a JSON text. Raises ValueError saying where it is what it must not be."""
    try:
        return _plain(_CAREFUL.decode(text), 0)
    except RecursionError:
        raise ValueError(f"/: nested more than {_DEPTH} levels deep") from None


def _plain(value: Any, depth: int) -> Any:
    """The value with objects as dictionaries."""
    if depth > _DEPTH:
        raise _Bad(f"nested more than {_DEPTH} levels deep")
    if isinstance(value, _Object):
        return _plain_object(value, depth)
    if isinstance(value, list):
        return [_inside(index, _plain, item, depth + 1) for index, item in enumerate(value)]
    if isinstance(value, _Number) or (isinstance(value, float) and not math.isfinite(value)):
        shown = value.text[:40] if isinstance(value, _Number) else value
        raise _Bad(f"{shown} is not a number that can be used")
    if isinstance(value, str) and "\0" in value:
        raise _Bad("the text contains a NUL character")
    return value


def _plain_object(value: _Object, depth: int) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, item in value.pairs:
        if key in result:
            raise _Bad("the key is there twice").inside(key)
        result[_plain(key, depth)] = _inside(key, _plain, item, depth + 1)
    return result


def _inside(key: object, call: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except _Bad as e:
        raise e.inside(key) from None


# -- readers of single values -----------------------------------------------------------------------------------------

def _kind(value: object) -> str:
    names = {type(None): "null", bool: "true or false", int: "a whole number", float: "a number", str: "text",
             list: "a list", dict: "an object"}
    return names.get(type(value), type(value).__name__)


def _of(kind: type, expected: str) -> _Reader:
    def read(value: Any) -> Any:
        """The value, if it is of just this type. Raises _Bad."""
        if type(value) is not kind:
            raise _Bad(f"must be {expected}, not {_kind(value)}")
        return value
    return read


_str = _of(str, "text")
_bool = _of(bool, "true or false")
_int = _of(int, "a whole number")
_list = _of(list, "a list")
_dict = _of(dict, "an object")


def _optional(reader: _Reader) -> _Reader:
    return lambda value: None if value is None else reader(value)


def _texts(value: Any) -> list[str]:
    items: list[str] = _list(value)
    for index, item in enumerate(items):
        if type(item) is not str:
            _inside(index, _str, item)
    return items


def _environment(value: Any) -> dict[str, str]:
    return {name: item if type(item) is str else str(item) if type(item) is int else _inside(name, _str, item)
            for name, item in _dict(value).items()}


def _path(value: Any) -> Path:
    return Path(_str(value))


def _duration(value: Any) -> timedelta:
    if type(value) in (int, float):
        return _span(value)
    try:
        return JobAttributes.parse_walltime(_str(value))
    except _Bad:
        raise
    except ValueError as e:
        raise _Bad(str(e)) from None


def _span(seconds: float) -> timedelta:
    """A duration that is written as a number of seconds."""
    if seconds < 0:
        raise _Bad(f"{seconds} is below zero")
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        raise _Bad(f"{seconds} is too long for a time limit") from None


def _members(value: Any, readers: dict[str, _Reader]) -> dict[str, Any]:
    """The members of an object. Raises ValueError for keys without a reader."""
    result = {}
    for key, item in _dict(value).items():
        reader = readers.get(key)
        if reader is None:
            raise _unknown(key, readers)
        try:
            result[key] = reader(item)
        except _Bad as e:
            raise e.inside(key) from None
    return result


def _unknown(key: str, readers: Iterable[str]) -> _Bad:
    close = difflib.get_close_matches(key, readers, 1)
    hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(readers)}"
    return _Bad(f"the key is not known; {hint}").inside(key)


def _version(value: Any) -> int:
    if _int(value) != 1:
        raise _Bad(f"version {value} of resource specifications is not known (known: 1)")
    return 1


def _resources(value: Any) -> ResourceSpecV1:
    members = _members(value, _RESOURCES)
    members.pop("__version", None)
    try:
        return ResourceSpecV1(**members)
    except InvalidJobException as e:
        raise _Bad(str(e)) from e


def _attributes(value: Any) -> JobAttributes:
    members = _members(value, _ATTRIBUTES)
    project = members.pop("project_name", None)
    if project is not None and members.setdefault("account", project) != project:
        raise _Bad(f"{project!r} contradicts account {members['account']!r}").inside("project_name")
    return JobAttributes(**members)


def _mode(value: Any) -> StagingMode:
    if _str(value) not in StagingMode.__members__:
        raise _Bad(f"{value!r} is not a staging mode (known: {', '.join(StagingMode.__members__)})")
    return StagingMode[value]


def _flags(value: Any) -> StageOutFlags:
    flags = StageOutFlags.NONE
    for name in _str(value).split("|"):
        if name not in StageOutFlags.__members__:
            raise _Bad(f"{name!r} is not a flag (known: {', '.join(StageOutFlags.__members__)})")
        flags |= StageOutFlags[name]
    return flags


def _staged(kind: type, readers: dict[str, _Reader]) -> _Reader:
    def read(value: Any) -> Any:
        """The staging that an object describes. Raises _Bad where source or target is missing."""
        if missing := [key for key in ("source", "target") if key not in _dict(value)]:
            raise _Bad(f"{missing[0]!r} is missing")
        return kind(**_members(value, readers))
    return read


def _set_of(reader: _Reader) -> _Reader:
    return lambda value: {_inside(index, reader, item) for index, item in enumerate(_list(value))}


_RESOURCES: dict[str, _Reader] = {"__version": _version, **dict.fromkeys(_COUNTS, _optional(_int)),
                                  "exclusive_node_use": _bool}
_ATTRIBUTES: dict[str, _Reader] = {"duration": _optional(_duration),
                                   **dict.fromkeys((*_NAMES, "project_name"), _optional(_str)),
                                   "custom_attributes": _optional(_dict)}
_STAGE: dict[str, _Reader] = {"source": _str, "target": _str, "mode": _mode}
_SPEC: dict[str, _Reader] = {
    "executable": _optional(_str), "arguments": _optional(_texts), "name": _optional(_str),
    "inherit_environment": _bool, "environment": _optional(_environment), **dict.fromkeys(_PATHS, _optional(_path)),
    "resources": _optional(_resources), "attributes": _optional(_attributes), "launcher": _optional(_str),
    "stage_in": _optional(_set_of(_staged(StageIn, _STAGE))),
    "stage_out": _optional(_set_of(_staged(StageOut, {**_STAGE, "flags": _flags}))),
    "cleanup": _optional(_set_of(_path)), "cleanup_flags": _flags}


def _to_spec(data: dict[str, Any]) -> JobSpec:
    return JobSpec(**_members(data, _SPEC))


# -- writing ----------------------------------------------------------------------------------------------------------

def _given(owner: object, names: Iterable[str]) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(owner, name)) is not None}


def _from_spec(spec: JobSpec) -> dict[str, Any]:
    if not isinstance(spec, JobSpec):
        raise TypeError(f"what is written is a JobSpec, not {type(spec).__name__}")
    data = _given(spec, ("name", "executable", "environment", "launcher"))
    if (arguments := spec._argument_texts()) is not None:
        data["arguments"] = arguments
    if isinstance(spec.executable, os.PathLike):
        data |= {key: os.fspath(value) for key, value in data.items() if value is spec.executable}
    for key, value in data.items():
        _inside(key, _SPEC[key], list(value) if type(value) is tuple else value)
    if not spec.inherit_environment:
        data["inherit_environment"] = False
    for key, value in _given(spec, _PATHS).items():
        data[key] = str(value)
    if spec.resources is not None:
        data["resources"] = _inside("resources", _from_resources, spec.resources)
    if spec.attributes is not None:
        data["attributes"] = _inside("attributes", _from_attributes, spec.attributes)
    data |= _from_staging(spec)
    return data


def _from_resources(resources: object) -> dict[str, Any]:
    if not isinstance(resources, ResourceSpecV1):
        raise _Bad(f"{type(resources).__name__} cannot be written")
    data = _given(resources, _COUNTS)
    _writable(data, 1)
    if resources.exclusive_node_use:
        data["exclusive_node_use"] = True
    data["__version"] = 1
    return data


def _from_attributes(attributes: JobAttributes) -> dict[str, Any]:
    data = _given(attributes, (*_NAMES, "custom_attributes"))
    _writable(data, 1)
    if attributes.account is not None:
        data["project_name"] = attributes.account
    if attributes.duration is None:
        data["duration"] = None
    elif attributes.duration != _TEN_MINUTES:
        data["duration"] = _seconds(attributes.duration)
    return data


def _seconds(duration: timedelta) -> str:
    """``"3600 s"``, with a fraction (microseconds) only where there is one: psij-python misreads fractions."""
    if duration < timedelta(0):
        raise _Bad(f"{duration} is below zero").inside("duration")
    whole = duration // timedelta(seconds=1)
    if not duration.microseconds:
        return f"{whole} s"
    return f"{whole}.{duration.microseconds:06d}".rstrip("0") + " s"


def _whole_seconds(duration: timedelta) -> int:
    if duration.microseconds:
        raise _Bad(f"{duration} is no whole number of seconds").inside("duration").inside("attributes")
    return duration.days * 86400 + duration.seconds


def _from_staging(spec: JobSpec) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for key in ("stage_in", "stage_out"):
        if (items := getattr(spec, key)) is not None:
            data[key] = sorted((_from_staged(item) for item in items), key=lambda item: sorted(item.items()))
    if spec.cleanup is not None:
        data["cleanup"] = sorted(str(path) for path in spec.cleanup)
    if spec.cleanup_flags != StageOutFlags.ALWAYS:
        data["cleanup_flags"] = _flag_text(spec.cleanup_flags)
    return data


def _from_staged(item: StageIn | StageOut) -> dict[str, str]:
    data = {"source": str(item.source), "target": str(item.target)}
    if item.mode is not StagingMode.COPY:
        data["mode"] = item.mode.name
    if isinstance(item, StageOut) and item.flags != StageOutFlags.ALWAYS:
        data["flags"] = _flag_text(item.flags)
    return data


def _flag_text(flags: StageOutFlags) -> str:
    if flags & StageOutFlags.ALWAYS == StageOutFlags.ALWAYS:
        return "ALWAYS|IF_PRESENT" if flags & StageOutFlags.IF_PRESENT else "ALWAYS"
    return "|".join(str(flag.name) for flag in StageOutFlags if flag in flags) or "NONE"


def _writable(value: Any, depth: int) -> None:
    """Check that JSON gives the value back as it is."""
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return
    if depth > _DEPTH:
        raise _Bad(f"nested more than {_DEPTH} levels deep")
    if isinstance(value, dict):
        for key, item in value.items():
            _str(key)
            _inside(key, _writable, item, depth + 1)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _inside(index, _writable, item, depth + 1)
    elif kind is not float:
        raise _Bad(f"a value of type {kind.__name__} cannot be written in JSON")
    elif not math.isfinite(value):
        raise _Bad(f"{value} cannot be written in JSON")
