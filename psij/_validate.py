"""Checks of a job before it is submitted: everything that can be told wrong without asking a backend.

Each check raises InvalidJobException naming the member, its value and what was expected; wrong types raise
InvalidJobTypeException, which is a TypeError too.
"""

from __future__ import annotations

import os
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

from psij.exceptions import InvalidJobException, InvalidJobTypeException
from psij.job import Job
from psij.job_attributes import JobAttributes
from psij.job_spec import JobSpec, as_text
from psij.resource_spec import ResourceSpec, ResourceSpecV1
from psij.staging import StageIn, StageOut, StageOutFlags

_LAUNCHER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*", re.ASCII)
_PATHS = tuple((name, f"_{name}") for name in (
    "directory", "stdin_path", "stdout_path", "stderr_path", "pre_launch", "post_launch"))
_OWNERS = ("psij", "launcher")      # of custom attributes, beside executors
_LONGEST = timedelta(days=365_000)


def check_is_job(job: object) -> None:
    """Raise InvalidJobTypeException for what is no Job, which programs hand over in its place."""
    if not isinstance(job, Job):
        hint = ": an AsyncJob is for an AsyncJobExecutor" if _kind(job) == "AsyncJob" else ""
        raise InvalidJobTypeException(f"an executor takes a Job, not {_kind(job)}{hint}")


def check_spec(spec: object) -> JobSpec:
    """The specification, checked. Raises InvalidJobException saying what is wrong with it."""
    if spec is None:
        raise InvalidJobException("The job has no specification (job.spec is None).")
    if not isinstance(spec, JobSpec):
        raise InvalidJobTypeException(f"job.spec must be a JobSpec, not {_kind(spec)}")
    _check_command(spec)
    _check_environment(spec)
    for name, member in _PATHS:
        if (path := getattr(spec, member)) is not None:
            _check_path(name, path)
    _check_resources(spec.resources)
    _check_attributes(spec.attributes)
    _check_staging(spec)
    return spec


def attached_id(job: object, native_id: object) -> str:
    """A native id as text, for a Job that is to be attached to it: programs that have a process id hand over a number.
    Raises TypeError."""
    check_is_job(job)
    if isinstance(native_id, str):
        return native_id
    if isinstance(native_id, int) and not isinstance(native_id, bool):
        return str(native_id)
    raise TypeError(f"native_id must be a str, not {_kind(native_id)}: {native_id!r}")


def _kind(value: object) -> str:
    return type(value).__name__


def _text(name: str, value: object, empty: bool = True) -> None:
    """Check that a value is text that can be handed to a program."""
    if not isinstance(value, str):
        raise InvalidJobTypeException(f"{name} must be a str, not {_kind(value)}: {value!r}")
    if not empty and not value:
        raise InvalidJobException(f"{name} is empty")
    if "\0" in value:
        raise InvalidJobException(f"{name} contains a NUL character: {value!r}")
    if value.isascii():             # every encoding of a file system has these
        return
    try:
        os.fsencode(value)
    except UnicodeEncodeError as e:
        raise InvalidJobException(f"{name} cannot be encoded for the system: {value!r}", e) from e


def _check_command(spec: JobSpec) -> None:
    if spec.executable is None:
        raise InvalidJobException("The job has no executable.")
    executable: object = spec.executable
    is_path = type(executable) is not str and isinstance(executable, os.PathLike)
    _text("executable", os.fspath(spec.executable) if is_path else executable, empty=False)
    arguments = spec.arguments
    if arguments is not None:
        if not isinstance(arguments, list | tuple):
            raise InvalidJobTypeException(f"arguments must be a list of texts, not {_kind(arguments)}")
        texts = spec._argument_texts()
        if texts is not arguments:
            spec.arguments = texts
        for index, argument in enumerate(texts or ()):
            _text(f"arguments[{index}]", argument)
    if spec._name is not None:
        if type(spec._name) is not str:
            spec._name = as_text(spec._name)
        _text("name", spec._name)
    if spec.launcher is not None:
        _text("launcher", spec.launcher)
        if not _LAUNCHER.fullmatch(spec.launcher):
            raise InvalidJobException(f"launcher {spec.launcher!r} is not the name of a launcher")


def _check_environment(spec: JobSpec) -> None:
    if not isinstance(spec.inherit_environment, bool):
        raise InvalidJobTypeException(f"inherit_environment must be True or False, not {spec.inherit_environment!r}")
    environment: Any = spec.environment
    if environment is None:
        return
    if not isinstance(environment, dict):
        raise InvalidJobTypeException(f"environment must be a dict, not {_kind(environment)}")
    for name, value in environment.items():
        if not isinstance(name, str):
            raise InvalidJobTypeException(f"the name {name!r} in environment must be a str, not {_kind(name)}")
        if not name or "=" in name:
            raise InvalidJobException(f"environment: {name!r} is not the name of a variable, which is not empty and "
                                      f"has no '='")
        _text(f"environment: the name {name!r}", name)
        if not isinstance(value, int):
            _text(f"environment[{name!r}]", value)


def _check_path(name: str, path: object) -> None:
    if not isinstance(path, Path):
        raise InvalidJobTypeException(f"{name} must be a Path, not {_kind(path)}")
    _text(name, str(path))


def _check_resources(resources: object) -> None:
    if resources is None:
        return
    if not isinstance(resources, ResourceSpec):
        raise InvalidJobTypeException(f"resources must be a ResourceSpec, not {_kind(resources)}")
    if not isinstance(resources, ResourceSpecV1):
        raise InvalidJobException(f"resources: version {resources.version} of the resource specification is not "
                                  f"supported (supported: 1)")
    resources._check()


def _check_attributes(attributes: object) -> None:
    if attributes is None:
        return
    if not isinstance(attributes, JobAttributes):
        raise InvalidJobTypeException(f"attributes must be JobAttributes, not {_kind(attributes)}")
    for name in ("queue_name", "account", "reservation_id"):
        if (value := getattr(attributes, name)) is not None:
            if type(value) is not str:
                setattr(attributes, name, as_text(value))
            _text(f"attributes.{name}", getattr(attributes, name))
    _check_duration(attributes.duration)
    custom: Any = attributes.custom_attributes
    if custom is not None and not isinstance(custom, dict):
        raise InvalidJobTypeException(f"attributes.custom_attributes must be a dict, not {_kind(custom)}")
    owner_before = None
    for name, value in (custom or {}).items():
        _text("a name in attributes.custom_attributes", name, empty=False)
        owner, _, option = name.partition(".")
        if owner != owner_before or not option or owner.lower() == "launcher":      # most name one executor
            _check_owner(name, value)
        owner_before = owner if option else None


def _check_owner(name: str, value: Any) -> None:
    """Check that a custom attribute names an option beside its executor, and that executor as it is called."""
    from psij._plugins import EXECUTORS

    owner, dot, option = name.partition(".")
    if dot and (close := EXECUTORS.misspelt(owner, *_OWNERS)):
        raise InvalidJobException(f"custom attribute {name!r}: no executor is called {owner!r}; did you mean "
                                  f"'{close}.{option}'?")
    if owner.lower() == "launcher":
        _check_launcher_option(name, option)
    if not option and EXECUTORS.is_own(owner):
        keys = [pair.get("key") for pair in value if isinstance(pair, dict)] if isinstance(value, list | tuple) else []
        raise InvalidJobException(f"custom attribute {name!r} names an executor and none of its options; write "
                                  f"'{owner}.{keys[0] if keys else '<option>'}'")


def _check_launcher_option(name: str, rest: str) -> None:
    """Check that a custom attribute names a launcher's command, as it is called, and an option. rest: of the name after
    ``launcher.``; commands of launchers that are not here are taken."""
    from psij._plugins import LAUNCHERS

    command, _, option = rest.partition(".")
    if not command or not option:
        raise InvalidJobException(f"custom attribute {name!r} names no option of a launcher; write "
                                  f"'launcher.{command or 'srun'}.<option>'")
    if close := LAUNCHERS.misspelt(command):
        raise InvalidJobException(f"custom attribute {name!r}: no launcher is called {command!r}; did you mean "
                                  f"'launcher.{close}.{option}'?")


def _check_duration(duration: object) -> None:
    if duration is None:
        return
    if not isinstance(duration, timedelta):
        raise InvalidJobTypeException(f"attributes.duration must be a timedelta, not {_kind(duration)}")
    if not timedelta(0) <= duration <= _LONGEST:
        raise InvalidJobException(f"attributes.duration must not be below zero and at most {_LONGEST.days} days, not "
                                  f"{duration}")


def _check_staging(spec: JobSpec) -> None:
    if not isinstance(spec.cleanup_flags, StageOutFlags):
        raise InvalidJobTypeException(f"cleanup_flags must be StageOutFlags, not {_kind(spec.cleanup_flags)}")
    if not spec._has_staging():
        return
    for name, kind in (("stage_in", StageIn), ("stage_out", StageOut)):
        for item in getattr(spec, name) or ():
            if not isinstance(item, kind):
                raise InvalidJobTypeException(f"{name} must hold {kind.__name__} objects, not {_kind(item)}")
    for path in spec.cleanup or ():
        _check_path("a path in cleanup", path)
