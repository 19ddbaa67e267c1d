"""What a script leaves to the resource manager that it is for, said in its document before that manager is to run it.

Whoever hands a script to ``sbatch`` or ``qsub`` gets the manager's own answer to what it does not say: the name of the
job, where it starts, whose variables it finds, what its files are called and whether they are emptied. A job that is
run by the same manager gets the same answers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import psij
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor
from sssjob.document.element import Container, Property, new_property
from sssjob.document.model import Document, Environment, Job
from sssjob.run.native import native_of
from sssjob.translators.scripts.common import FILLING
from sssjob.translators.scripts.rows import Dialect, ScriptDocument, source_of

__all__ = ["say"]

_STREAMS = ("OutputFile", "ErrorFile")
_HOST = re.compile(r"[\w.-]*:(?=.)", re.ASCII)      # before the name of a file, of which a host is to have it


def say(document: Document, backend: psij.JobExecutor | None, cwd: Path) -> None:
    """State in every job of a document that was a script of the executor's own manager what the script left to it. What
    is stated stays as it is, so that saying it twice changes nothing. cwd: where the script is handed in."""
    native = native_of(backend)
    if native is None or not isinstance(backend, BatchSchedulerExecutor):
        return
    dialect, is_here = native.dialect, backend.host.is_here
    common = {item.tag for group in document.groups() if group.defaults is not None for item in group.defaults.leaves()}
    for job, *_ in document.jobs():
        if source_of(job) == dialect.name:
            _Unsaid(job, dialect, common, cwd if is_here else None).say(_name_of(document, dialect))


def _name_of(document: Document, dialect: Dialect) -> str | None:
    """What a job is called whose script gives it no name; None where the manager does not go by files."""
    if not dialect.of_input or not isinstance(document, ScriptDocument):
        return None
    name = os.path.basename(document.path)
    return dialect.of_input if name in ("", "-") or name.startswith("<") else name


class _Unsaid:
    """One job. common: names that defaults state for all jobs; cwd: None on another host."""

    def __init__(self, job: Job, dialect: Dialect, common: set[str], cwd: Path | None) -> None:
        self.job, self.dialect, self.cwd = job, dialect, cwd
        self.stated = common | {item.tag for item in job.leaves()}

    def say(self, name: str | None) -> None:
        """State all of it."""
        if name is not None and "Name" not in self.stated:
            self.job.items.append(new_property("Name", name))
        if self.job.environment.export is None:
            block = next(self.job.containers("Environment"), None)
            if block is None:
                self.job.items.append(block := Environment())
            block.attributes = {**block.attributes, "export": "true" if self.dialect.exports else "false"}
        if self.dialect.files:
            self._files()
        if self.dialect.starts_in == "home" and self.cwd is not None and \
                "InitialWorkingDirectory" not in self.stated:
            self.job.items.append(new_property("InitialWorkingDirectory", "~"))

    def _files(self) -> None:
        is_array = any(p.get("name") == "Array" and p.get("type") == "Scheduler" for p in self.job.all("Extension"))
        for tag, name in zip(_STREAMS, self.dialect.files, strict=False):
            own_name = name.replace("{jobid}", "{array_jobid}" + self.dialect.numbered) if is_array else name
            if tag not in self.stated:
                self.job.items.append(new_property(tag, own_name))
            elif self.dialect.folders:
                self._in_folders(tag, own_name)
        for p in list(self._named_files()):
            self._placed(p)

    def _named_files(self) -> Iterator[Property]:
        return (item for item in self.job.leaves() if item.tag in _STREAMS and item.text and not (
            {"Merge", "Close"} & set(item.attributes.get("redirectList", "").split(","))))

    def _in_folders(self, tag: str, name: str) -> None:
        """Name the file in a folder that is stated in its place."""
        for p in self._named_files():
            folder = self._base() / os.path.expanduser(p.text) if self.cwd is not None else None
            if p.tag == tag and (p.text.endswith("/") or (folder is not None and folder.is_dir())):
                self._replace(p, f"{p.text.rstrip('/')}/{name}", dict(p.attributes))

    def _placed(self, p: Property) -> None:
        """State that a file goes on where it ends, and where its name begins."""
        text, attributes = p.text, dict(p.attributes)
        if self.dialect.of_hosts:
            text = _HOST.sub("", text)
        if self.dialect.appends or self._keeps_open_mode():
            words = [word for word in attributes.get("redirectList", "").split(",") if word]
            attributes["redirectList"] = ",".join(dict.fromkeys([*words, "Append"]))
        if text.startswith("$HOME/") and self.dialect.name in FILLING:
            text = f"~/{text.removeprefix('$HOME/')}"
        placed = ("/", "~", "{workdir}", "$")
        if self.dialect.files_in == "submit" and self.cwd is not None and not text.startswith(placed):
            text = f"{_literal(str(self.cwd))}/{text}"
        if (text, attributes) != (p.text, dict(p.attributes)):
            self._replace(p, text, attributes)

    def _keeps_open_mode(self) -> bool:
        """Whether a script of Slurm that names no file says that output is appended to it."""
        return any(p.get("name") == "open-mode" and p.get("type") == self.dialect.name and p.text[:1] in ("a", "A")
                   for p in self.job.all("Extension"))

    def _base(self) -> Path:
        """Where relative names of files begin."""
        stated = self.job.value("InitialWorkingDirectory")
        assert self.cwd is not None
        if self.dialect.files_in == "submit":
            return self.cwd
        if stated is not None:
            return self.cwd / os.path.expanduser(str(stated))
        return Path.home() if self.dialect.starts_in == "home" else self.cwd

    def _replace(self, p: Property, text: str, attributes: dict[str, str]) -> None:
        """Put another property in the place of one."""
        for scope in _scopes(self.job):
            for number, item in enumerate(scope.items):
                if item is p:
                    scope.items[number] = new_property(p.tag, text, attributes)


def _scopes(scope: Container) -> Iterator[Container]:
    yield scope
    for item in scope.items:
        if isinstance(item, Container):
            yield from _scopes(item)


def _literal(text: str) -> str:
    """A text in which no part is a token of a file name."""
    return text.replace("{", "{{").replace("}", "}}")
