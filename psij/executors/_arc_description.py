"""A specification as a computing element of ARC takes it: a description in ADL, and the files that go and come.

The job runs in a session directory of its own there. The specification's directory is where its files are here.
Source: Activity Description Language of EMI (2010/12), as A-REX reads it.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

from psij.exceptions import InvalidJobException
from psij.executors.batch._words import needs_env, through_env
from psij.job_spec import JobSpec
from psij.references import pieces
from psij.resource_spec import ResourceSpecV1
from psij.staging import URI, StageOutFlags, StagingMode
from sssjob.lrm.arc import DESCRIPTION_NAMESPACE
from sssjob.templates import render
from sssjob.templates.quoting import QuotingError

__all__ = ["SCRIPT", "Described", "Output", "annotation", "describe"]

_OWN: Final = ("arc", "psij", "launcher")       # prefixes of custom attributes that are this executor's to honour
_NULL: Final = Path("/dev/null")
#: A script that starts the program, in the session directory. A-REX 6.17 puts values in place of variables in arguments
#: and loses line breaks, so that words that are not plain do not stand in the description.
SCRIPT: Final = ".psij-start.sh"
_PLAIN: Final = re.compile(r"[A-Za-z0-9_@%+=:,./-]+", re.ASCII)
_STREAMS: Final = ("stdin", "stdout", "stderr")


@dataclass(frozen=True, slots=True)
class Output:
    """A file that is fetched. name: in the session directory; path: here; flags: of StageOutFlags, when."""

    name: str
    path: str
    flags: int = StageOutFlags.ALWAYS.value


@dataclass(slots=True)
class Described:
    """text: the description; script: what it starts, the file SCRIPT in the session directory, where it cannot say the
    command itself; inputs: name in the session directory -> path here; outputs: what is fetched."""

    text: str = ""
    script: str | None = None
    inputs: dict[str, str] = field(default_factory=dict)
    outputs: list[Output] = field(default_factory=list)


def annotation(tag: str) -> str:
    """What a description says of which job of psij it is."""
    return f"psij:{tag}"


def describe(spec: JobSpec, tag: str, brought: frozenset[str] = frozenset()) -> Described:
    """The description of a job, and its files. tag: the id of the job; brought: programs that lie here and not there.

    A program that is named by a relative path, or lies in the directory of the job or among ``brought``, goes along;
    any other path is one of the computing element. Raises InvalidJobException for what has no place in it.
    """
    _refuse(spec)
    folder = Path(os.path.abspath(os.path.expanduser(spec.directory or ".")))
    described = Described()
    streams = _streams(spec, folder, described)
    _stage(spec, folder, described)
    program, arguments = _command(spec, folder, described, brought)
    environment = _environment(spec)
    executables = [name for name in described.inputs if name == program]
    before = through_env([f"{name}={value}" for name, value in environment if needs_env(name)], program)
    if before or not all(map(_PLAIN.fullmatch, (program, *arguments, *(value for _, value in environment)))):
        here = f"./{program}" if program in described.inputs else program
        described.script = render("arc.sh.j2", {
            "environment": [(name, value) for name, value in environment if not needs_env(name)],
            "command": [*before, here, *arguments]})
        program, arguments, environment = SCRIPT, [], []
        executables.append(SCRIPT)
    attributes = spec.attributes
    duration = attributes.duration if attributes is not None else None
    try:
        described.text = render("arc.adl.j2", {
            "namespace": DESCRIPTION_NAMESPACE, "name": spec.name, "tag": annotation(tag), "program": program,
            "arguments": arguments, "streams": streams, "environment": environment, **_resources(spec),
            "seconds": None if duration is None else math.ceil(duration.total_seconds()),
            "queue": attributes.queue_name if attributes is not None else None,
            "inputs": [(name, name in executables) for name in dict.fromkeys((*described.inputs, *executables))]})
    except QuotingError as e:
        raise InvalidJobException(f"a description of a job for ARC is XML: {e}", e) from e
    return described


def _refuse(spec: JobSpec) -> None:
    """Raise InvalidJobException for what a computing element does not do."""
    attributes = spec.attributes
    custom = (attributes.custom_attributes if attributes is not None else None) or {}
    refused = {
        "pre_launch and post_launch are scripts of the place where a job runs": spec.pre_launch or spec.post_launch,
        f"one process is started, without a launcher ({spec.launcher})": spec.launcher not in (None, "single"),
        "the computing element removes the session directory itself: cleanup has to be empty": spec.cleanup,
        "its interface takes no account": attributes is not None and attributes.account,
        "its interface takes no reservation": attributes is not None and attributes.reservation_id,
        "GPUs are not asked for by its descriptions": isinstance(
            spec.resources, ResourceSpecV1) and spec.resources.gpu_cores_per_process}
    for reason, is_wanted in refused.items():
        if is_wanted:
            raise InvalidJobException(f"a job of ARC cannot have that: {reason}")
    for name, value in custom.items():
        if name.partition(".")[0] in _OWN and value is not None and value is not False:
            raise InvalidJobException(f"executor arc has no option {name}")


def _here(path: str | Path, folder: Path) -> Path:
    return Path(os.path.normpath(folder / os.path.expanduser(path)))


def _name(path: PurePosixPath, what: str) -> str:
    """A path in the session directory."""
    text = os.path.normpath(path)
    if os.path.isabs(text) or text in (".", "..") or text.startswith("../"):
        raise InvalidJobException(f"{what}: {path} is not inside the session directory of a job of ARC")
    return text


def _bring(described: Described, name: str, path: Path, what: str) -> None:
    if name in described.inputs or name in (*_STREAMS[1:], SCRIPT):
        raise InvalidJobException(f"{what}: there is another file {name} in the session directory")
    if not path.is_file():
        raise InvalidJobException(f"{what}: {path} is not a file here")
    if not os.access(path, os.R_OK):
        raise InvalidJobException(f"{what}: {path} cannot be read")
    described.inputs[name] = str(path)


def _fetch(described: Described, name: str, path: Path, what: str, flags: StageOutFlags) -> None:
    if path.is_dir() or not path.parent.is_dir():
        raise InvalidJobException(f"{what}: no file can be at {path}: " + (
            "it is a directory" if path.is_dir() else "its directory is not there"))
    described.outputs.append(Output(name, str(path), flags.value))


def _streams(spec: JobSpec, folder: Path, described: Described) -> list[tuple[str, str]]:
    """The elements that name the streams. The same path for stdout and stderr makes one file of both."""
    elements = []
    paths = {name: _here(path, folder) for name in _STREAMS if (path := getattr(spec, f"{name}_path")) is not None}
    for name, member in zip(_STREAMS, ("Input", "Output", "Error"), strict=True):
        path = paths.get(name, _NULL)
        if path == _NULL:
            continue
        if name == "stdin":
            _bring(described, name, path, "stdin_path")
        elif name == "stderr" and path == paths.get("stdout"):
            elements.append((member, "stdout"))
            continue
        else:
            _fetch(described, name, path, f"{name}_path", StageOutFlags.ALWAYS | StageOutFlags.IF_PRESENT)
        elements.append((member, name))
    return elements


def _local(uri: URI, what: str) -> str:
    if uri.scheme not in ("", "file") or uri.hostname not in (None, "", "localhost"):
        raise InvalidJobException(f"{what}: {uri} is not a file here")
    return str(uri.path)


def _stage(spec: JobSpec, folder: Path, described: Described) -> None:
    cwd = Path.cwd()
    for item in (*(spec.stage_in or ()), *(spec.stage_out or ())):
        if item.mode is not StagingMode.COPY:
            raise InvalidJobException(f"{item.source}: files of jobs of ARC are copied, not moved or linked")
    for entry in spec.stage_in or ():
        _bring(described, _name(PurePosixPath(entry.target), "stage_in"), _here(_local(entry.source, "stage_in"), cwd),
               "stage_in")
    for leaving in spec.stage_out or ():
        _fetch(described, _name(PurePosixPath(leaving.source), "stage_out"),
               _here(_local(leaving.target, "stage_out"), cwd), "stage_out", leaving.flags)


def _command(spec: JobSpec, folder: Path, described: Described, brought: frozenset[str]) -> tuple[str, list[str]]:
    """The program as the computing element finds it, and the arguments."""
    executable = str(spec.executable)
    texts = [_literal(text, spec.environment or {}, "an argument") for text in spec._argument_texts() or ()]
    if "/" not in executable:
        if "=" in executable:
            raise InvalidJobException(f"executable {executable!r}: env would take it for a variable; say its path")
        return "/usr/bin/env", [executable, *texts]         # looked up in PATH there
    path = _here(executable, folder)
    if os.path.isabs(executable) and executable not in brought and not (
            path.is_relative_to(folder) and path.is_file()):
        return executable, texts
    if str(path) not in described.inputs.values() or path.name not in described.inputs:
        _bring(described, path.name, path, "executable")
    return path.name, texts


def _literal(text: str, environment: Mapping[str, str], what: str) -> str:
    """A text with the variables that the job itself states; nothing expands it there."""
    parts = pieces(text)
    for name in parts[1::2]:
        if name not in environment or len(pieces(environment[name])) > 1:
            raise InvalidJobException(f"{what} of a job of ARC names ${{{name}}}, whose value is not known here: "
                                      f"write $${{{name}}} for these characters themselves")
    return "".join(pieces(environment[part])[0] if n % 2 else part for n, part in enumerate(parts))


def _environment(spec: JobSpec) -> list[tuple[str, str]]:
    stated = spec.environment or {}
    return [(name, _literal(value, stated, f"variable {name}")) for name, value in stated.items()]


def _resources(spec: JobSpec) -> dict[str, Any]:
    """Slots in all and of each host, and bytes of memory for each slot."""
    resources = spec.resources if isinstance(spec.resources, ResourceSpecV1) else ResourceSpecV1()
    cores = resources.cpu_cores_per_process or 1
    slots = resources.computed_process_count * cores
    shared_out = resources.node_count or resources.processes_per_node or resources.exclusive_node_use
    return {"slots": slots, "exclusive": resources.exclusive_node_use,
            "slots_per_host": resources.computed_processes_per_node * cores if shared_out else None,
            "memory": -(-resources.memory // slots) if resources.memory else None}
