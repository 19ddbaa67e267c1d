"""From a checked specification to what has to be started: command, environment, directory, streams, limits.

Nothing is started here. Custom attributes ``local.*`` that the local executor understands: ``rlimit.<name>``
("soft:hard", each a number or ``unlimited``; names of setrlimit(2) in lower case), ``nice`` (a number), ``stdout_mode``
and ``stderr_mode`` (``truncate``, ``append``), ``merge`` (``stderr-to-stdout``, ``stdout-to-stderr``).
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
from psij.job_spec import JobSpec
from psij.resource_spec import ResourceSpecV1

__all__ = ["Options", "Plan", "expand", "make_plan", "options", "processors"]

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}", re.ASCII)
_LIMIT = re.compile(r"(\d{1,19}|unlimited)(?::(\d{1,19}|unlimited))?", re.ASCII)
_MODES = ("truncate", "append")
_MERGES = ("stderr-to-stdout", "stdout-to-stderr")
_LIMITS = {name[len("RLIMIT_"):].lower(): name for name in dir(resource) if name.startswith("RLIMIT_")}
_KNOWN = ("stdout_mode", "stderr_mode", "merge", "nice", *(f"rlimit.{name}" for name in sorted(_LIMITS)))


@dataclass(slots=True)
class Options:
    """The custom attributes of the local executor. limits: by name in ``resource``, soft and hard (-1: unlimited)."""

    limits: dict[str, tuple[int, int]] = field(default_factory=dict)
    nice: int | None = None
    append_stdout: bool = False
    append_stderr: bool = False
    merge: str | None = None


@dataclass(slots=True)
class Plan:
    """What to start. Paths are absolute; None is /dev/null. spec: with everything expanded, for launchers."""

    spec: JobSpec
    environment: dict[str, str]
    directory: str
    stdin: str | None
    stdout: str | None
    stderr: str | None
    options: Options
    limit: float | None      # seconds


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
        setattr(result, f"append_{option[:6]}", _one_of(option, value, _MODES) == "append")
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


def _one_of(option: str, value: object, known: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in known:
        raise InvalidJobException(f"custom attribute 'local.{option}' must be one of {', '.join(known)}, not {value!r}")
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


def expand(text: str, environment: Mapping[str, str]) -> str:
    """Replace each ``${NAME}`` by the variable's value, by nothing when it is not set. No other form is touched."""
    return _REFERENCE.sub(lambda match: environment.get(match[1], ""), text)


def _home(path: str) -> str:
    """The path with ``~/`` (or ``~`` alone) at its start replaced by the user's home directory."""
    return os.path.expanduser("~") + path[1:] if path == "~" or path.startswith("~/") else path


def _environment(spec: JobSpec, extra: Mapping[str, str]) -> dict[str, str]:
    """The job's environment. A value sees the inherited variables and those stated before it, as in a shell."""
    environment = dict(os.environ) if spec.inherit_environment else {}
    environment.update(extra)
    for name, value in (spec.environment or {}).items():
        environment[name] = expand(str(value), environment)
    return environment


def make_plan(spec: JobSpec, extra: Mapping[str, str]) -> Plan:
    """The plan for a checked specification. extra: variables that psij adds, such as PSIJ_NODEFILE."""
    chosen = options(spec)
    environment = _environment(spec, extra)
    directory = os.path.abspath(_home(str(spec.directory or os.getcwd())))

    def absolute(path: Path | None) -> str | None:
        return None if path is None else os.path.join(directory, _home(str(path)))

    stdin, stdout, stderr = absolute(spec.stdin_path), absolute(spec.stdout_path), absolute(spec.stderr_path)
    if chosen.merge == "stderr-to-stdout":
        stderr, chosen.append_stderr = stdout, chosen.append_stdout
    elif chosen.merge == "stdout-to-stderr":
        stdout, chosen.append_stdout = stderr, chosen.append_stderr
    arguments = [expand(argument, environment) for argument in spec.arguments or ()]
    resolved = JobSpec(
        os.fspath(spec.executable or ""), arguments, directory, spec.name, spec.inherit_environment, environment, stdin,
        stdout, stderr, spec.resources, spec.attributes, absolute(spec.pre_launch), absolute(spec.post_launch),
        spec.launcher)
    duration: timedelta | None = spec.attributes.duration if spec.attributes is not None else None
    return Plan(resolved, environment, directory, stdin, stdout, stderr, chosen,
                None if duration is None else duration.total_seconds())


def processors(spec: JobSpec | None) -> int:
    """Processors the job holds: processes x cores of each, at most the CPUs this process may use."""
    resources = spec.resources if spec is not None else None
    if not isinstance(resources, ResourceSpecV1):
        return 1
    asked = resources.computed_process_count * (resources.cpu_cores_per_process or 1)
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(asked, available)
