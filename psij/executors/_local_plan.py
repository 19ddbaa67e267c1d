"""From a checked specification to what has to be started: command, environment, directory, streams, limits.

Nothing is started here. Custom attributes ``local.*`` that the local executor understands: ``rlimit.<name>``
("soft:hard", each a number or ``unlimited``; names of setrlimit(2) in lower case), ``nice`` (a number), ``stdout_mode``
and ``stderr_mode`` (``truncate``, ``append``, ``share``: emptied, then appended to, for a file that jobs which start
later append to), ``merge`` (``stderr-to-stdout``, ``stdout-to-stderr``).
"""

from __future__ import annotations

import difflib
import os
import re
import resource
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from psij.exceptions import InvalidJobException
from psij.executors._environment import ENVIRONMENT
from psij.job_spec import JobSpec
from psij.references import expand
from psij.resource_spec import ResourceSpecV1

_LIMIT = re.compile(r"(\d{1,19}|unlimited)(?::(\d{1,19}|unlimited))?", re.ASCII)
_MODES = {"truncate": os.O_TRUNC, "append": os.O_APPEND, "share": os.O_TRUNC | os.O_APPEND}
_LONGEST_PATH, _LONGEST_NAME = 4096, 255             # PATH_MAX, NAME_MAX
_LONGEST_STRING, _MOST = 131072, 6 << 20             # MAX_ARG_STRLEN, and the most of all strings
_SHORT = 63              # characters of a path that need no look: each has four bytes at most
_STREAMS = tuple((name, f"_{name}") for name in ("stdin_path", "stdout_path", "stderr_path"))
_MERGES = ("stderr-to-stdout", "stdout-to-stderr")
_LIMITS = {name[len("RLIMIT_"):].lower(): name for name in dir(resource) if name.startswith("RLIMIT_")}
_KNOWN = ("stdout_mode", "stderr_mode", "merge", "nice", *(f"rlimit.{name}" for name in sorted(_LIMITS)))


@dataclass(slots=True)
class Options:
    """The custom attributes of the local executor. limits: by name in ``resource``, soft and hard (-1: unlimited);
    flags: how a file that is there is opened."""

    limits: dict[str, tuple[int, int]] = field(default_factory=dict)
    nice: int | None = None
    stdout_flags: int = os.O_TRUNC
    stderr_flags: int = os.O_TRUNC
    merge: str | None = None


@dataclass(slots=True)
class Plan:
    """What to start: command and environment as the system takes them. Paths are absolute; None is /dev/null."""

    command: list[bytes]
    environment: dict[bytes, bytes]
    directory: str
    stdin: str | None
    stdout: str | None
    stderr: str | None
    options: Options
    limit: float | None      # seconds
    record: bytes = b""      # file and first line of the job's record, if it has one
    head: bytes = b""


def options(spec: JobSpec) -> Options:
    """The ``local.*`` attributes; those of other executors are ignored. Raises InvalidJobException."""
    result = Options()
    custom = spec.attributes.custom_attributes if spec.attributes is not None else None
    for name, value in (custom or {}).items():
        prefix, _, option = name.partition(".")
        if prefix.lower() == "local" and option:
            _set_option(result, option.lower(), value)
    return result


def _set_option(result: Options, option: str, value: object) -> None:
    if option in ("stdout_mode", "stderr_mode"):
        setattr(result, f"{option[:6]}_flags", _MODES[_one_of(option, value, tuple(_MODES))])
    elif option == "merge":
        result.merge = _one_of(option, value, _MERGES)
    elif option == "nice":
        result.nice = _nice(value)
    elif option.startswith("rlimit.") and option[7:] in _LIMITS:
        result.limits[_LIMITS[option[7:]]] = _limit(option, value)
    else:
        close = difflib.get_close_matches(option, _KNOWN, 1)
        raise InvalidJobException(f"custom attribute 'local.{option}' is not known"
                                  + (f"; did you mean 'local.{close[0]}'?" if close else f" (known: {_KNOWN})"))


def _one_of(option: str, value: object, choices: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise InvalidJobException(f"custom attribute 'local.{option}' must be one of {', '.join(choices)}, "
                                  f"not {value!r}")
    return value


def _nice(value: object) -> int:
    text = "" if isinstance(value, bool) else str(value)
    if not re.fullmatch(r"[+-]?\d{1,2}", text, re.ASCII):
        raise InvalidJobException(f"custom attribute 'local.nice' must be a whole number, not {value!r}")
    return int(text)


def _limit(option: str, value: object) -> tuple[int, int]:
    match = _LIMIT.fullmatch("" if isinstance(value, bool) else str(value))
    if match is None:
        raise InvalidJobException(f"custom attribute 'local.{option}' must be 'soft:hard', each a number or "
                                  f"'unlimited', not {value!r}")
    soft, hard = (-1 if text == "unlimited" else int(text) for text in (match[1], match[2] or match[1]))
    if hard != -1 and (soft == -1 or soft > hard):
        raise InvalidJobException(f"custom attribute 'local.{option}': soft limit above hard limit in {value!r}")
    return soft, hard


def home(path: str) -> str:
    """The path with ``~/`` (or ``~`` alone) at its start replaced by the user's home directory."""
    return os.path.expanduser("~") + path[1:] if path == "~" or path.startswith("~/") else path


def _environment(spec: JobSpec, extra: Mapping[str, str]) -> dict[bytes, bytes]:
    """The job's environment. A value sees the inherited variables and those stated before it, as in a shell."""
    environment = dict(ENVIRONMENT) if spec.inherit_environment else {}
    environment.update((name.encode(), os.fsencode(value)) for name, value in extra.items())
    for name, value in (spec.environment or {}).items():
        environment[os.fsencode(name)] = os.fsencode(expand(str(value), environment))
    return environment


def _directory(spec: JobSpec) -> str:
    """The job's directory: where we are unless stated."""
    path = "" if spec.directory is None else home(str(spec.directory))
    if not path.startswith("/"):
        try:
            path = os.path.join(os.getcwd(), path).rstrip("/") or "/"
        except OSError as e:
            raise InvalidJobException("directory must be absolute, for the current directory of this program is not "
                                      "there any more", e) from e
    _check_path("directory", path)
    return path


def make_plan(spec: JobSpec, extra: Mapping[str, str]) -> Plan:
    """The plan for a checked specification. extra: variables that psij adds, such as PSIJ_NODEFILE.

    Raises InvalidJobException when something is longer than the system takes.
    """
    chosen = options(spec)
    directory = _directory(spec)
    environment = _environment(spec, extra)
    arguments = [os.fsencode(expand(argument, environment, kept=True)) for argument in spec.arguments or ()]
    stdin, stdout, stderr = (None if getattr(spec, member) is None else _absolute(spec, name, directory)
                             for name, member in _STREAMS)
    if chosen.merge == "stderr-to-stdout":
        stderr, chosen.stderr_flags = stdout, chosen.stdout_flags
    elif chosen.merge == "stdout-to-stderr":
        stdout, chosen.stdout_flags = stderr, chosen.stderr_flags
    duration: timedelta | None = spec.attributes.duration if spec.attributes is not None else None
    plan = Plan([os.fsencode(spec.executable or ""), *arguments], environment, directory, stdin, stdout, stderr, chosen,
                None if duration is None else duration.total_seconds())
    _check_path("executable", plan.command[0])
    _check_lengths(plan)
    return plan


def _absolute(spec: JobSpec, name: str, directory: str) -> str | None:
    """A path of the specification, relative ones under the job's directory."""
    path: Path | None = getattr(spec, name)
    if path is None:
        return None
    whole = os.path.join(directory, home(str(path)))
    _check_path(name, whole)
    return whole


def for_launcher(spec: JobSpec, plan: Plan) -> JobSpec:
    """The specification as launchers see it: with everything expanded."""
    _, *arguments = map(os.fsdecode, plan.command)
    environment = {os.fsdecode(name): os.fsdecode(value) for name, value in plan.environment.items()}
    pre_launch, post_launch = (_absolute(spec, name, plan.directory) for name in ("pre_launch", "post_launch"))
    return JobSpec(
        os.fspath(spec.executable or ""), arguments, plan.directory, spec.name, spec.inherit_environment, environment,
        plan.stdin, plan.stdout, plan.stderr, spec.resources, spec.attributes, pre_launch, post_launch, spec.launcher)


def _check_path(name: str, path: str | bytes) -> None:
    if len(path) <= _SHORT:
        return
    whole = os.fsencode(path)
    if len(whole) >= _LONGEST_PATH or max(map(len, whole.split(b"/"))) > _LONGEST_NAME:
        raise InvalidJobException(f"{name} is too long for the system, with {len(whole)} bytes (a path may have "
                                  f"{_LONGEST_PATH - 1}, a name in it {_LONGEST_NAME}): {os.fsdecode(whole[:60])!r}...")


def _check_lengths(plan: Plan) -> None:
    """Check what exec would refuse with E2BIG. Source: execve(2), Limits on size of arguments and environment."""
    strings = (*plan.command, *plan.environment, *plan.environment.values())
    size = len(b"".join(strings)) + 9 * len(strings)
    if size < _LONGEST_STRING:
        return
    for index, argument in enumerate(plan.command[1:]):
        if len(argument) >= _LONGEST_STRING:
            raise InvalidJobException(f"arguments[{index}] has {len(argument)} bytes, more than the system takes "
                                      f"({_LONGEST_STRING - 1})")
    for name, value in plan.environment.items():
        if len(name) + len(value) + 1 >= _LONGEST_STRING:
            raise InvalidJobException(f"environment[{os.fsdecode(name)!r}] has {len(value)} bytes, more than the "
                                      f"system takes ({_LONGEST_STRING - 2 - len(name)})")
    stack = plan.options.limits.get("RLIMIT_STACK") or resource.getrlimit(resource.RLIMIT_STACK)
    room = max(_LONGEST_STRING, _MOST if stack[0] == -1 else min(stack[0] // 4, _MOST))
    if size > room:
        raise InvalidJobException(f"arguments and environment have about {size} bytes together, more than the system "
                                  f"takes ({room})")


def processors(spec: JobSpec | None) -> int:
    """Processors the job holds: processes x cores of each, at most the CPUs this process may use."""
    resources = spec.resources if spec is not None else None
    if resources is None or not isinstance(resources, ResourceSpecV1):
        return 1
    asked = resources.computed_process_count * (resources.cpu_cores_per_process or 1)
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(asked, available)
