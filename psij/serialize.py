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
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import IO, Any

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
_Reader = Callable[[Any, str], Any]


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

    @abstractmethod
    def _dump_dict(self, dict: dict[str, Any], stream: IO[str]) -> None:
        """Write a dictionary of plain values."""

    @abstractmethod
    def _load_dict(self, stream: IO[str]) -> dict[str, Any]:
        """Read a dictionary of plain values."""


class JSONSerializer(Serializer):
    """Serializer for JSON."""

    def _dump_dict(self, dict: dict[str, Any], stream: IO[str]) -> None:
        json.dump(dict, stream, allow_nan=False)

    def _load_dict(self, stream: IO[str]) -> dict[str, Any]:
        try:
            data = json.load(stream, object_pairs_hook=_Object, parse_constant=_Odd, parse_int=_whole)
        except RecursionError:
            raise ValueError(f"/: nested more than {_DEPTH} levels deep") from None
        plain = _plain(data, "", 0)
        if not isinstance(plain, dict):
            raise ValueError(f"/: a job specification is an object, not {_kind(plain)}")
        return plain


# -- JSON beyond what the json module checks --------------------------------------------------------------------------

class _Object:
    """A JSON object as its pairs, so that duplicates are still there."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self.pairs = pairs


class _Odd:
    """A number that is none (NaN, Infinity) or has too many digits."""

    def __init__(self, text: str) -> None:
        self.text = text


def _whole(text: str) -> int | _Odd:
    return int(text) if len(text) <= _DIGITS else _Odd(text)


def _error(pointer: str, problem: str) -> ValueError:
    return ValueError(f"{pointer or '/'}: {problem}")


def _below(pointer: str, key: object) -> str:
    return f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}"


def _plain(value: Any, pointer: str, depth: int) -> Any:
    """The value with objects as dictionaries. Raises ValueError with a pointer."""
    if depth > _DEPTH:
        raise _error(pointer[:200], f"nested more than {_DEPTH} levels deep")
    if isinstance(value, _Object):
        return _plain_object(value, pointer, depth)
    if isinstance(value, list):
        return [_plain(item, _below(pointer, index), depth + 1) for index, item in enumerate(value)]
    if isinstance(value, _Odd) or (isinstance(value, float) and not math.isfinite(value)):
        shown = value.text[:40] if isinstance(value, _Odd) else value
        raise _error(pointer, f"{shown} is not a number that can be used")
    if isinstance(value, str) and "\0" in value:
        raise _error(pointer, "the text contains a NUL character")
    return value


def _plain_object(value: _Object, pointer: str, depth: int) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, item in value.pairs:
        if key in result:
            raise _error(_below(pointer, key), "the key is there twice")
        result[_plain(key, pointer, depth)] = _plain(item, _below(pointer, key), depth + 1)
    return result


# -- readers of single values: (value, pointer) -> value --------------------------------------------------------------

def _kind(value: object) -> str:
    names = {type(None): "null", bool: "true or false", int: "a whole number", float: "a number", str: "text",
             list: "a list", dict: "an object"}
    return names.get(type(value), type(value).__name__)


def _of(kind: type, expected: str) -> _Reader:
    def read(value: Any, pointer: str) -> Any:
        if type(value) is not kind:
            raise _error(pointer, f"must be {expected}, not {_kind(value)}")
        return value
    return read


_str = _of(str, "text")
_bool = _of(bool, "true or false")
_int = _of(int, "a whole number")
_list = _of(list, "a list")
_dict = _of(dict, "an object")


def _optional(reader: _Reader) -> _Reader:
    return lambda value, pointer: None if value is None else reader(value, pointer)


def _texts(value: Any, pointer: str) -> list[str]:
    return [_str(item, _below(pointer, index)) for index, item in enumerate(_list(value, pointer))]


def _environment(value: Any, pointer: str) -> dict[str, str]:
    result = {}
    for name, item in _dict(value, pointer).items():
        place = _below(pointer, name)
        result[name] = str(item) if type(item) is int else _str(item, place)
    return result


def _path(value: Any, pointer: str) -> Path:
    return Path(_str(value, pointer))


def _duration(value: Any, pointer: str) -> timedelta:
    try:
        return JobAttributes.parse_walltime(_str(value, pointer))
    except ValueError as e:
        raise e if str(e).startswith(pointer) else _error(pointer, str(e)) from None


def _members(value: Any, pointer: str, readers: dict[str, _Reader]) -> dict[str, Any]:
    """The members of an object. Raises ValueError for keys without a reader."""
    result = {}
    for key, item in _dict(value, pointer).items():
        if key not in readers:
            close = difflib.get_close_matches(key, readers, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(readers)}"
            raise _error(_below(pointer, key), f"the key is not known; {hint}")
        result[key] = readers[key](item, _below(pointer, key))
    return result


def _version(value: Any, pointer: str) -> int:
    if _int(value, pointer) != 1:
        raise _error(pointer, f"version {value} of resource specifications is not known (known: 1)")
    return 1


def _resources(value: Any, pointer: str) -> ResourceSpecV1:
    readers = {"__version": _version, **dict.fromkeys(_COUNTS, _optional(_int)), "exclusive_node_use": _bool}
    members = _members(value, pointer, readers)
    members.pop("__version", None)
    try:
        return ResourceSpecV1(**members)
    except InvalidJobException as e:
        raise _error(pointer, str(e)) from e


def _attributes(value: Any, pointer: str) -> JobAttributes:
    readers = {"duration": _optional(_duration), **dict.fromkeys((*_NAMES, "project_name"), _optional(_str)),
               "custom_attributes": _optional(_dict)}
    members = _members(value, pointer, readers)
    project = members.pop("project_name", None)
    if project is not None and members.setdefault("account", project) != project:
        raise _error(_below(pointer, "project_name"), f"{project!r} contradicts account {members['account']!r}")
    return JobAttributes(**members)


def _mode(value: Any, pointer: str) -> StagingMode:
    if _str(value, pointer) not in StagingMode.__members__:
        raise _error(pointer, f"{value!r} is not a staging mode (known: {', '.join(StagingMode.__members__)})")
    return StagingMode[value]


def _flags(value: Any, pointer: str) -> StageOutFlags:
    flags = StageOutFlags.NONE
    for name in _str(value, pointer).split("|"):
        if name not in StageOutFlags.__members__:
            raise _error(pointer, f"{name!r} is not a flag (known: {', '.join(StageOutFlags.__members__)})")
        flags |= StageOutFlags[name]
    return flags


def _staged(kind: type, readers: dict[str, _Reader]) -> _Reader:
    def read(value: Any, pointer: str) -> Any:
        if missing := [key for key in ("source", "target") if key not in _dict(value, pointer)]:
            raise _error(pointer, f"{missing[0]!r} is missing")
        return kind(**_members(value, pointer, readers))
    return read


def _set_of(reader: _Reader) -> _Reader:
    return lambda value, pointer: {reader(item, _below(pointer, i)) for i, item in enumerate(_list(value, pointer))}


_STAGE: dict[str, _Reader] = {"source": _str, "target": _str, "mode": _mode}
_SPEC: dict[str, _Reader] = {
    "executable": _optional(_str), "arguments": _optional(_texts), "name": _optional(_str),
    "inherit_environment": _bool, "environment": _optional(_environment), **dict.fromkeys(_PATHS, _optional(_path)),
    "resources": _optional(_resources), "attributes": _optional(_attributes), "launcher": _optional(_str),
    "stage_in": _optional(_set_of(_staged(StageIn, _STAGE))),
    "stage_out": _optional(_set_of(_staged(StageOut, {**_STAGE, "flags": _flags}))),
    "cleanup": _optional(_set_of(_path)), "cleanup_flags": _flags}


def _to_spec(data: dict[str, Any]) -> JobSpec:
    members = _members(data, "", _SPEC)
    return JobSpec(**members)


# -- writing ----------------------------------------------------------------------------------------------------------

def _given(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {key: value for key, value in pairs if value is not None}


def _from_spec(spec: JobSpec) -> dict[str, Any]:
    data = _given((key, getattr(spec, key)) for key in ("name", "executable", "arguments", "environment", "launcher"))
    if not spec.inherit_environment:
        data["inherit_environment"] = False
    data |= {key: str(path) for key in _PATHS if (path := getattr(spec, key)) is not None}
    if spec.resources is not None:
        data["resources"] = _from_resources(spec.resources)
    if spec.attributes is not None:
        data["attributes"] = _from_attributes(spec.attributes)
    data |= _from_staging(spec)
    _writable(data, "", 0)
    return data


def _from_resources(resources: object) -> dict[str, Any]:
    if not isinstance(resources, ResourceSpecV1):
        raise ValueError(f"/resources: {type(resources).__name__} cannot be written")
    data = _given((key, getattr(resources, key)) for key in _COUNTS)
    if resources.exclusive_node_use:
        data["exclusive_node_use"] = True
    return data | {"__version": 1}


def _from_attributes(attributes: JobAttributes) -> dict[str, Any]:
    data = _given((key, getattr(attributes, key)) for key in (*_NAMES, "custom_attributes"))
    if attributes.account is not None:
        data["project_name"] = attributes.account
    if attributes.duration is None:
        data["duration"] = None
    elif attributes.duration != timedelta(minutes=10):
        data["duration"] = _seconds(attributes.duration)
    return data


def _seconds(duration: timedelta) -> str:
    """``"3600 s"``, with a fraction (microseconds) only where there is one: psij-python misreads fractions."""
    if duration < timedelta(0):
        raise ValueError(f"/attributes/duration: {duration} is below zero")
    whole = duration // timedelta(seconds=1)
    fraction = f"{duration.microseconds:06d}".rstrip("0")
    return f"{whole}.{fraction} s" if fraction else f"{whole} s"


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


def _writable(value: Any, pointer: str, depth: int) -> None:
    """Check that JSON gives the value back as it is. Raises ValueError with a pointer."""
    if depth > _DEPTH:
        raise _error(pointer[:200], f"nested more than {_DEPTH} levels deep")
    if isinstance(value, dict):
        for key, item in value.items():
            _str(key, pointer)
            _writable(item, _below(pointer, key), depth + 1)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _writable(item, _below(pointer, index), depth + 1)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise _error(pointer, f"{value} cannot be written in JSON")
    elif value is not None and type(value) not in (str, bool, int):
        raise _error(pointer, f"a value of type {type(value).__name__} cannot be written in JSON")
