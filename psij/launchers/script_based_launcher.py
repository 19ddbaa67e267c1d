"""Launchers that are a shell script, copied to the work directory and run from there.

Command: ``/bin/bash SCRIPT job-id log-file pre-launch post-launch stdin stdout stderr [extra ...] executable arg ...``
(source: psij-python's architecture note and the behaviour of its scripts). Scripts source ``launcher_lib.sh``, which
lies beside them. Their last line of output is an end marker; without it the output says why the launch failed.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from psij.exceptions import InvalidJobException
from psij.job import Job
from psij.job_executor_config import JobExecutorConfig
from psij.job_launcher import Launcher
from psij.job_spec import JobSpec
from psij.resource_spec import ResourceSpecV1

__all__ = ["ParallelLauncher", "ScriptBasedLauncher", "process_count", "script_and_config"]

_MARKERS = ("_PSI_J_LAUNCHER_DONE", "_PSIJ_SCRIPT_DONE")     # psij-python 0.9.11 and its head
_OPTION = re.compile(r"[A-Za-z][\w-]*", re.ASCII)
_COUNTS = {"n", "np", "ntasks"}
_HERE = Path(__file__).resolve().parent
_LIBRARY = _HERE / "launcher_lib.sh"


def process_count(job: Job) -> int:
    """How many processes the job asks for in total, 1 when it does not say."""
    resources = job.spec.resources if job.spec is not None else None
    return resources.computed_process_count if isinstance(resources, ResourceSpecV1) else 1


class ScriptBasedLauncher(Launcher):
    """A launcher that is a script. script_path: the script; subclasses may deploy further files beside it."""

    def __init__(self, script_path: Path, config: JobExecutorConfig | None = None) -> None:
        super().__init__(config)
        self._script_path = Path(script_path)
        self._deployed: tuple[Path, object] | None = None      # folder, and the marks of all files when it was right

    def _files_to_deploy(self) -> list[Path]:
        """Files that are copied to the work directory, the script among them."""
        return [_LIBRARY, self._script_path]

    def get_additional_args(self, job: Job) -> list[str]:
        """Arguments between the seven fixed ones and the executable; none here."""
        return []

    def get_launch_command(self, job: Job, log_file: str | None = None) -> list[str]:
        """The command; deploys the script first. log_file: overrides the configured launcher log."""
        spec = job.spec
        if spec is None or spec.executable is None:
            raise ValueError(f"Job {job.id} has no executable")
        log = log_file if log_file is not None else _text(self.config.launcher_log_file)
        return ["/bin/bash", str(self._deploy()), job.id, log, *_launch_paths(spec), *self.get_additional_args(job),
                os.fspath(spec.executable), *(spec._argument_texts() or ())]

    def is_launcher_failure(self, output: str) -> bool:
        """Whether the end marker is missing from the end of what the script printed."""
        return not output.rstrip("\n").endswith(_MARKERS)

    def get_launcher_failure_message(self, output: str) -> str:
        """The output without the end marker."""
        return "".join(line for line in output.splitlines(keepends=True) if line.rstrip("\n") not in _MARKERS)

    def _deploy(self) -> Path:
        """Copy the files to ``<work directory>/<sha256 of their contents>/``, once; the path of the script there."""
        files = self._files_to_deploy()
        if getattr(self.config, "ssh_host", None) is not None:
            return self._deploy_there(files)
        if self._deployed is None or _marks(self._deployed[0], files) != self._deployed[1]:
            contents = {file.name: file.read_bytes() for file in files}
            folder = self.config.work_directory / _digest(contents)
            if not _holds(folder, contents):
                _write_folder(folder, contents)
            self._deployed = folder, _marks(folder, files)
        return self._deployed[0] / self._script_path.name


    def _deploy_there(self, files: list[Path]) -> Path:
        """The same on the host behind SSH where the jobs are, with the next command there."""
        from psij.executors.batch._config import BatchSchedulerExecutorConfig
        from psij.executors.batch._ssh import host_of

        assert isinstance(self.config, BatchSchedulerExecutorConfig)
        host = host_of(self.config.ssh_host, self.config.ssh_setup)
        contents = {file.name: file.read_bytes() for file in files}
        folder = host.place(str(self.config.work_directory)) / _digest(contents)
        if self._deployed is None or self._deployed[0] != folder:
            host.make_private(folder)
            for name, content in contents.items():
                host.write(folder / name, content, _mode(content))
            self._deployed = folder, None
        return folder / self._script_path.name


class ParallelLauncher(ScriptBasedLauncher):
    """A launcher whose script gets the total number of processes after the fixed arguments. script: its name here.

    command: the program that the script starts, whose options may stand in custom attributes
    ``launcher.COMMAND.OPTION``; empty where there is none. joined: long options are written ``--option=value``.
    script_path: the script of a subclass; its own where none is given.
    """

    script = ""
    command = ""
    joined = True

    def __init__(self, script_path: Path | JobExecutorConfig | None = None,
                 config: JobExecutorConfig | None = None) -> None:
        super().__init__(*script_and_config(script_path, config, _HERE / self.script))

    def get_additional_args(self, job: Job) -> list[str]:
        """The total number of processes, and the options of the command. Raises InvalidJobException."""
        return [str(process_count(job)), *(_options(job, self.command, self.joined) if self.command else ())]


def _options(job: Job, command: str, joined: bool) -> Iterator[str]:
    """Words of options from the custom attributes of a job. True makes an option without a value, None and False none,
    a list one for each of its members. Raises InvalidJobException."""
    custom = job.spec.attributes.custom_attributes if job.spec is not None and job.spec.attributes is not None else None
    if job.spec is None or not any(name.lower().startswith("launcher.") for name in custom or ()):
        return
    from psij.executors.batch._options import custom_directives

    prefix = f"{command}."
    for directive in custom_directives(job.spec, "launcher", {}):
        option, value, field = directive.option.removeprefix(prefix), directive.value, directive.field
        if option == directive.option:          # of another launcher
            continue
        if not _OPTION.fullmatch(option):
            raise InvalidJobException(f"{field} cannot be used: an option is letters, digits and -, with none "
                                      "of these dashes before it")
        if option in _COUNTS:
            raise InvalidJobException(f"{field} cannot be used: how many processes there are is said by the resources")
        if value is None or len(option) == 1 or not joined:
            yield from (f"-{option}" if len(option) == 1 else f"--{option}", *(() if value is None else (value,)))
        else:
            yield f"--{option}={value}"


def script_and_config(script_path: Path | str | JobExecutorConfig | None, config: JobExecutorConfig | None,
                       own: Path) -> tuple[Path, JobExecutorConfig | None]:
    """What a launcher class with a script of its own was given: ``(script_path, config)`` by a subclass with another
    script, ``(config)`` or nothing by everybody else."""
    if isinstance(script_path, JobExecutorConfig):
        script_path, config = None, script_path
    return own if script_path is None else Path(script_path), config


def _text(path: Path | None) -> str:
    return "" if path is None else str(path)


def _launch_paths(spec: JobSpec) -> list[str]:
    streams = (spec.stdin_path, spec.stdout_path, spec.stderr_path)
    return [_text(spec.pre_launch), _text(spec.post_launch), *(_text(path) or "/dev/null" for path in streams)]


def _digest(contents: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name in sorted(contents):
        digest.update(f"{name}\0{len(contents[name])}\0".encode() + contents[name])
    return digest.hexdigest()


def _marks(folder: Path, files: list[Path]) -> object:
    """What tells that neither the files nor their copies have changed; equal to nothing when a copy is missing."""
    try:
        return [(file, mark.st_mtime_ns, mark.st_size, mark.st_ino) for original in files
                for file in (str(original), f"{folder}/{original.name}") for mark in (os.stat(file),)]
    except FileNotFoundError:       # it is deployed again
        return object()


def _mode(content: bytes) -> int:
    """The mode of a file that only its user reads; scripts may be run."""
    return 0o700 if content.startswith(b"#!") else 0o600


def _holds(folder: Path, contents: dict[str, bytes]) -> bool:
    try:
        return all((folder / name).read_bytes() == content for name, content in contents.items())
    except OSError:         # not there, or not whole: it is written
        return False


def _write_folder(folder: Path, contents: dict[str, bytes]) -> None:
    """Make the folder in one step, so that nobody ever runs half a script; two writers write the same.

    The folder and the scripts are for the user alone (0700, other files 0600).
    """
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = Path(tempfile.mkdtemp(prefix=".launcher-", dir=folder.parent))
    try:
        for name, content in contents.items():
            (fresh / name).write_bytes(content)
            (fresh / name).chmod(_mode(content))
        _replace_folder(fresh, folder, contents)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _replace_folder(fresh: Path, folder: Path, contents: dict[str, bytes]) -> None:
    try:
        fresh.rename(folder)
    except OSError:                     # it is there already: by another writer, or damaged
        for name in contents if not _holds(folder, contents) else ():
            os.replace(fresh / name, folder / name)
