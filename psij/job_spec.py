"""What to run (PSI/J specification, JobSpec). Values are checked when the job is submitted, in ``psij._validate``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Set
from numbers import Real
from pathlib import Path
from typing import Any, overload

from psij.job_attributes import JobAttributes
from psij.resource_spec import ResourceSpec
from psij.staging import StageIn, StageOut, StageOutFlags

__all__ = ["JobSpec"]

_MEMBERS = ("executable", "arguments", "directory", "name", "inherit_environment", "environment", "stdin_path",
            "stdout_path", "stderr_path", "resources", "attributes", "pre_launch", "post_launch", "launcher",
            "stage_in", "stage_out", "cleanup", "cleanup_flags")     # in the order of the constructor


class _PathMember:
    """A member that takes text or a Path and gives back a Path."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._public, self._private = name, f"_{name}"

    @overload
    def __get__(self, spec: None, owner: type) -> _PathMember: ...
    @overload
    def __get__(self, spec: JobSpec, owner: type) -> Path | None: ...
    def __get__(self, spec: JobSpec | None, owner: type) -> Path | _PathMember | None:
        if spec is None:
            return self
        value: Path | None = spec.__dict__.get(self._private)
        return value

    def __set__(self, spec: JobSpec, value: str | Path | None) -> None:
        path: Path | None
        if value is None or isinstance(value, Path):
            path = value
        elif isinstance(value, str):
            path = Path(value)
        else:
            raise TypeError(f"{self._public} must be a str or a Path, not {type(value).__name__}")
        spec.__dict__[self._private] = path


def as_text(value: Any) -> Any:
    """A path or a number as the text that a program gets; anything else as it is, for the checks to judge."""
    if type(value) is str:
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return str(value) if isinstance(value, Real) else value


class JobSpec:
    """The description of a job.

    executable: a path, relative to the job's directory, or a name looked up in the job's PATH. arguments: without the
    program's name; paths and numbers become text when the job is submitted. ``${NAME}`` in them and in environment
    values is expanded at the start against the job's environment (``psij.references``). directory: absolute, or
    starting with ``~/``; another is taken from the submitter's. std*_path: files, relative to the directory; None is
    /dev/null. environment: added to the inherited one, or all there is when inherit_environment is False. pre_launch,
    post_launch: shell scripts sourced before and after. launcher: name of the launcher, None for ``single``. stage_in,
    stage_out, cleanup, cleanup_flags: files to bring, fetch and remove.
    """

    directory = _PathMember()
    stdin_path = _PathMember()
    stdout_path = _PathMember()
    stderr_path = _PathMember()
    pre_launch = _PathMember()
    post_launch = _PathMember()

    def __init__(self, executable: str | None = None,
                 arguments: Iterable[str | os.PathLike[str] | float] | None = None,
                 directory: str | Path | None = None, name: str | None = None, inherit_environment: bool = True,
                 environment: Mapping[str, str | os.PathLike[str] | float] | None = None,
                 stdin_path: str | Path | None = None, stdout_path: str | Path | None = None,
                 stderr_path: str | Path | None = None, resources: ResourceSpec | None = None,
                 attributes: JobAttributes | None = None, pre_launch: str | Path | None = None,
                 post_launch: str | Path | None = None, launcher: str | None = None,
                 stage_in: Iterable[StageIn] | None = None, stage_out: Iterable[StageOut] | None = None,
                 cleanup: Iterable[str | Path] | None = None,
                 cleanup_flags: StageOutFlags = StageOutFlags.ALWAYS) -> None:
        self.executable = executable
        self.arguments = arguments
        self.directory = directory
        self._name = name
        self.inherit_environment = inherit_environment
        self.environment = environment
        self.stdin_path = stdin_path
        self.stdout_path = stdout_path
        self.stderr_path = stderr_path
        self.resources = resources
        self.attributes = JobAttributes() if attributes is None else attributes
        self.pre_launch = pre_launch
        self.post_launch = post_launch
        self.launcher = launcher
        self.stage_in = stage_in
        self.stage_out = stage_out
        self.cleanup = cleanup
        self.cleanup_flags = cleanup_flags

    @property
    def name(self) -> str | None:
        """A name to show to people; the executable when none is set."""
        return self.executable if self._name is None else self._name

    @name.setter
    def name(self, name: str | None) -> None:
        """Have this name; None: the manager's default."""
        self._name = name

    @property
    def arguments(self) -> list[str] | None:
        """The arguments. A list is kept, not copied, so that more can be added; what can only be run through once is
        made one."""
        arguments: list[str] | None = self._arguments
        return arguments

    @arguments.setter
    def arguments(self, arguments: Iterable[str | os.PathLike[str] | float] | None) -> None:
        """Have these arguments; an iterator is read once, here."""
        stated: Any = arguments
        if stated is None or type(stated) is list:
            self._arguments: Any = stated
            return
        kept = isinstance(stated, list | tuple | str | bytes | Set | Mapping) or not isinstance(stated, Iterable)
        self._arguments = stated if kept else list(stated)

    def _argument_texts(self) -> list[str] | None:
        """The arguments as a program gets them: paths and numbers as text."""
        stated: Any = self._arguments
        if not isinstance(stated, list | tuple) or all(type(argument) is str for argument in stated):
            return self.arguments
        return [as_text(argument) for argument in stated]

    @property
    def environment(self) -> dict[str, str] | None:
        """Variables of the job; paths and numbers are taken and read back as text. A dictionary is kept, not copied."""
        env: dict[str, str] | None = self._environment
        return env

    @environment.setter
    def environment(self, env: Mapping[str, str | os.PathLike[str] | float] | None) -> None:
        """Have these variables; numbers and paths become text."""
        self._environment: Any = env
        if env is None:
            return
        stated = env if isinstance(env, Mapping) else {}
        if stated is env and not (isinstance(env, dict) and all(type(value) is str for value in stated.values())):
            self._environment = {key: as_text(value) for key, value in stated.items()}

    @property
    def stage_in(self) -> set[StageIn] | None:
        """Files to bring before the start."""
        return self._stage_in

    @stage_in.setter
    def stage_in(self, value: Iterable[StageIn] | None) -> None:
        """Have these files copied before the start."""
        self._stage_in = None if value is None else set(value)

    @property
    def stage_out(self) -> set[StageOut] | None:
        """Files to fetch after the end."""
        return self._stage_out

    @stage_out.setter
    def stage_out(self, value: Iterable[StageOut] | None) -> None:
        """Have these files copied after the end."""
        self._stage_out = None if value is None else set(value)

    @property
    def cleanup(self) -> set[Path] | None:
        """Files and directories to remove after the end."""
        return self._cleanup

    @cleanup.setter
    def cleanup(self, value: Iterable[str | Path] | None) -> None:
        """Have these paths removed after the end."""
        self._cleanup = None if value is None else {Path(path) for path in value}

    def _has_staging(self) -> bool:
        """Whether there are files to bring, fetch or remove."""
        return bool(self._stage_in or self._stage_out or self._cleanup)

    def _values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _MEMBERS}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JobSpec) and self._values() == other._values()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        stated = (f"{name}={value!r}" for name, value in self._values().items() if value is not None)
        return f"JobSpec({', '.join(stated)})"
