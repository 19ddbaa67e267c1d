"""The base of psij's own batch executors: submit scripts from the templates, options of jobs, rows of queue listings.

A resource manager is one module: a subclass with its command lines, its table of native states and the parsers of its
output, and one template. ``docs`` in the module of each name the sources.
"""

from __future__ import annotations

import fnmatch
import logging
import os
import re
import subprocess
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import replace
from functools import cache, partial
from glob import escape
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, ClassVar

from psij._plugins import EXECUTORS
from psij.exceptions import InvalidJobException, SubmitException
from psij.executors.batch._answers import array_id, job_state, line_blocks, whole_lines
from psij.executors.batch._changes import Changes, commands, differences
from psij.executors.batch._files import KEEP, recorded
from psij.executors.batch._followed import LastAnswer
from psij.executors.batch._host import HERE, Host
from psij.executors.batch._identity import Claim, Whose, whole_tag
from psij.executors.batch._options import (
    RESOURCES,
    appended,
    asks_itself,
    at_home,
    custom_of,
    directory,
    keeps_environment,
    requested,
    resources,
    warn_once,
)
from psij.executors.batch._terms import Failure, InvalidJobStateError, Order, Orders
from psij.executors.batch._words import command_words, exported, needs_env, program, shell_only
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor
from psij.job import Job
from psij.job_attributes import JobAttributes
from psij.job_spec import JobSpec
from psij.job_state import JobState
from psij.job_status import JobStatus
from psij.resource_spec import ResourceSpecV1
from psij.surroundings import Around, Told
from sssjob.lrm.answers import SubmitAnswers, behind_notices
from sssjob.lrm.states import NativeState
from sssjob.templates import render_planned
from sssjob.templates.quoting import (
    HOST_MARK,
    ID_MARK,
    NUMBER_MARK,
    TAG_MARK,
    Directive,
    Quoted,
    QuotingError,
    bare,
    marked_words,
    word,
)

__all__ = ["LrmExecutor", "Row", "resolved"]

Row = tuple[str, str, Any]      # native id, native state, and whatever the subclass needs to make a status of it

#: A line of a list of jobs that begins as one of its columns, and one that begins with the id of a job.
_OTHER_ROWS, _ROWS = re.compile(r"^[^\n|]*\|", re.MULTILINE), re.compile(r"^\d[^\n|]*\|", re.MULTILINE | re.ASCII)
_APPEND = "_PSI_J_APPEND"       # of launcher_lib.sh
_ANY_TAG = "?" * 8 + "-" + "?" * 4 + "-" + "?" * 4 + "-" + "?" * 4 + "-" + "?" * 12     # as a pattern of file names
_log = logging.getLogger("psij")

_HERE = '$(grep -cxF -- "$(hostname)" "$PSIJ_NODEFILE")'      # lines of the node file that are this host's


class LrmExecutor(BatchSchedulerExecutor):
    """An executor whose submit script is made from ``templates/<_TEMPLATE>``."""

    _ANSWERS: ClassVar[SubmitAnswers]
    _ORDERS: ClassVar[Orders]
    #: How a job that was submitted is changed; None where it cannot be.
    _CHANGES: ClassVar[Changes | None] = None
    _TEMPLATE: ClassVar[str]        # file name in sssjob.templates; extends job.sh.j2
    _PREFIX: ClassVar[str]          # of custom attributes
    _SEPARATOR: ClassVar[str | None] = None     # set where answers are a header and lines that begin with id, separator
    _HEADER: ClassVar[str] = ""                 # what that header begins with
    _RECORDS_TELL = True
    _TELLS_WHOSE = True
    _OUTPUT_IS_TROUBLE = True       # the program's output goes elsewhere
    _chunk: int | None = None
    #: What the environment of a job tells of what it was granted (psij.surroundings), beside what all tell.
    _TOLD: ClassVar[Told] = Told()

    #: Whether a job that says nothing of nodes and processes asks for one process on one node, as far as the
    #: configuration has default_resources; and the options of which a custom attribute says something of them.
    _NEEDS_NODES: ClassVar[bool] = False
    _SIZES: ClassVar[frozenset[str]] = frozenset()

    #: Whether the file of nodes has a line for each core, and not for each process.
    _SLOTS_ARE_CORES: ClassVar[bool] = False
    #: What the manager's words for states say, and what such a word is called where it is not known.
    _STATES: ClassVar[Mapping[str, NativeState]] = MappingProxyType({})
    _STATE_KIND: ClassVar[str] = ""
    #: The variable in which an element of an array finds its number.
    _ELEMENT: ClassVar[str] = ""
    #: How a directive is written; the template of the script has the filter of the same name.
    _WRITTEN: ClassVar[staticmethod[[Directive], Quoted]]
    #: Whether a custom attribute that is taken with one value that needs no quotes is taken with all of them.
    _TAKES_ANY_VALUE: ClassVar[bool] = False

    def job_id_from_submit_output(self, out: str) -> str:
        """The id, from the one line that names it."""
        return self._ANSWERS.job_id(out)

    def _is_native_id(self, text: str) -> bool:
        return self._ANSWERS.is_id(text)

    def _classify_failure(self, exit_code: int, out: str) -> Failure:
        if exit_code < 0 or self._ANSWERS.unknown.search(out):
            return Failure.UNKNOWN
        if self._ANSWERS.full.search(out):
            return Failure.FULL
        return Failure.LATER if self._ANSWERS.later.search(out) else Failure.REFUSED

    @abstractmethod
    def _directives(self, job: Job, spec: JobSpec) -> list[Directive]:
        """All options of the job. Raises InvalidJobException for what cannot be expressed."""

    def _check_spec(self, spec: JobSpec) -> None:
        super()._check_spec(spec)
        for name in custom_of(spec):
            owner, dot, option = name.partition(".")
            if not dot:
                warn_once(name, "Custom attribute %r does nothing: options of %s are called '%s.<option>'", name,
                          self.name, self._PREFIX)
            if owner.lower() != self._PREFIX and EXECUTORS.canonical(owner) == EXECUTORS.canonical(self.name):
                raise InvalidJobException(f"custom attribute {name!r} cannot be used: write '{self._PREFIX}.{option}'")

    def _requested(self, spec: JobSpec) -> ResourceSpecV1 | None:
        """The resources that options are to be made of: what the job says, or what it needs where it says nothing."""
        asked = requested(spec)
        says = asked is not None and (asked.node_count or asked.process_count or asked.processes_per_node)
        if says or asks_itself(spec) or not (self._NEEDS_NODES and self.config.default_resources) or any(
                self._is_size(name, str(value)) for name, value in custom_of(spec).items()):
            return asked
        resources = ResourceSpecV1() if asked is None else copy(asked)
        resources.node_count = resources.process_count = resources.processes_per_node = 1
        return resources

    def _is_size(self, attribute: str, value: str) -> bool:
        """Whether a custom attribute says something of nodes and processes."""
        prefix, _, option = attribute.partition(".")
        return prefix.lower() == self._PREFIX and option in self._SIZES

    @abstractmethod
    def _rows(self, exit_code: int, out: str) -> Iterable[Row]:
        """The rows of the answer to the status command. Raises an exception when it is no answer at all."""

    def _status(self, state: str, row: Any) -> JobStatus | None:
        """The status for a row; ``native_state`` in its metadata is state. None when nothing follows from the state."""
        native = self._native(state, row)
        common = job_state(native, state, self._STATE_KIND)
        return None if native is None or common is None else self._told_status(native, common, row)

    def _native(self, state: str, row: Any) -> NativeState | None:
        """What a word of the manager's says of the job of a row; None where it is not known."""
        return self._STATES.get(state)

    def _told_status(self, native: NativeState, common: JobState, row: Any) -> JobStatus | None:
        """The status for a row in a state that is known. common: what PSI/J makes of it."""
        raise NotImplementedError

    # --- the queue -------------------------------------------------------------------------------------------------

    def parse_list_output(self, out: str) -> list[str]:
        """One id a line."""
        return [line for line in whole_lines(out) if self._is_native_id(line)]

    def parse_status_output(self, exit_code: int, out: str) -> dict[str, JobStatus]:
        """Statuses by native id; jobs in a native state from which nothing follows are left out."""
        statuses = ((native_id, self._status(state, row)) for native_id, state, row in self._rows(exit_code, out))
        return {native_id: status for native_id, status in statuses if status is not None}

    def _statuses_of(self, rows: Iterable[Row], whose: Whose) -> dict[str, JobStatus]:
        """The same for the jobs that are asked about, without those that only have their native ids."""
        statuses = ((native_id, self._status(state, row)) for native_id, state, row in rows
                    if whose.takes(native_id, self._claim(row)))
        return {native_id: status for native_id, status in statuses if status is not None}

    def _ask_queue(self, command: list[str], last_answer: LastAnswer) -> Mapping[str, JobStatus | None]:
        code, out = self._ask(command)
        if self._SEPARATOR is not None and code == 0:
            out = behind_notices(out, self._HEADER)
            return self._changed_lines(out, last_answer, self._SEPARATOR)
        return self._changed_rows(code, out, last_answer)

    def _changed_rows(self, exit_code: int, out: str, last_answer: LastAnswer) -> dict[str, JobStatus | None]:
        seen: dict[str, JobStatus | None] = {}
        for native_id, state, row in self._rows(exit_code, out):
            if last_answer.wants(native_id):
                stands = self._stands(state, row)
                last_answer.offered[native_id] = stands
                last_answer.claims[native_id] = self._claim(row)
                last_answer.fresh.add(native_id)
                seen[native_id] = None if last_answer.get(native_id) == stands else self._status(state, row)
        return seen

    def _stands(self, state: str, row: Any) -> str:
        """What of a row has to be the same for "as before": the state, and of a job that waits the reason."""
        return state

    def _changed_lines(self, out: str, last_answer: LastAnswer, separator: str) -> dict[str, JobStatus | None]:
        """The same for lines, of which only those are read that were not in the last answer."""
        header, newline, _ = out.partition("\n")
        fresh, lines = [header + newline], dict[str, str]()
        listed: dict[str, JobStatus | None] = {}
        before = last_answer.lines
        for some in line_blocks(out, len(header) + 1):
            for line in some:
                native_id = before.get(line)
                if native_id is not None:
                    listed[native_id] = None
                elif last_answer.wants(native_id := line.partition(separator)[0]):
                    fresh.append(f"{line}\n")
                else:
                    if ((array := self._array_of(native_id)) and last_answer.wants(array)
                            and array not in last_answer.elements):
                        last_answer.elements[array] = self._claim_of_array(f"{header}\n{line}\n")
                    continue
                lines[line] = native_id
        if not lines and _OTHER_ROWS.search(out, len(header)) and not _ROWS.search(out, len(header)):
            raise ValueError(f"no line of the answer begins with the id of a job: {out[:200]!r}")
        seen = self._changed_rows(0, "".join(fresh), last_answer)
        last_answer.lines = lines
        return listed | seen

    def _array_of(self, native_id: str) -> str:
        """The id of the array that a job is an element of; empty where it is none, or arrays are listed themselves."""
        return ""

    def _claim_of_array(self, out: str) -> Claim:
        """Whose an array is, by the row of an element: its tags, for elements that were put back have times of their
        own."""
        return Claim(next((self._claim(row).tags for _, _, row in self._rows(0, out)), None))

    def _watch_key(self) -> tuple[Any, ...]:
        return self.name, type(self), self.url, os.geteuid(), self.host

    # --- what can be said ------------------------------------------------------------------------------------------

    def custom_attribute(self, option: str) -> str:
        """The name of the custom attribute that stands for an option of the submit command, given without dashes."""
        return f"{self._PREFIX}.{option}"

    def refusal(self, spec: JobSpec) -> str | None:
        """Why a job cannot be submitted, as far as that is known before it is; None where nothing is."""
        try:
            self._check_spec(spec)
            for directive in self._directives(_nobody(), spec):
                self._WRITTEN(directive)
        except (InvalidJobException, QuotingError) as e:
            return str(e)
        return None

    def refusal_of(self, option: str, value: str | None) -> str | None:
        """Why an option of the submit command cannot be given as a custom attribute; None where it can. value: None
        for a flag."""
        name = self.custom_attribute(option)
        is_bare = self._TAKES_ANY_VALUE and value is not None and bare(value) is not None
        if is_bare and (type(self), option) in _taken:
            return None
        alone = JobAttributes(duration=None, custom_attributes={RESOURCES: "custom",
                                                                name: True if value is None else value})
        reason = self.refusal(JobSpec("/bin/true", attributes=alone))
        if is_bare and reason is None:
            _taken.add((type(self), option))
        return None if reason is None else reason.removeprefix(f"custom attribute {name!r} cannot be used: ")

    def hold_attributes(self) -> dict[str, object] | None:
        """The option of the submit command for it."""
        return {self.custom_attribute(option): value for option, value in self._ORDERS.held.items()} or None

    def _there(self, command: str, *arguments: str) -> list[str]:
        """A command for the resource manager that this executor submits to."""
        return [command, *arguments]

    def _told_id(self, native_id: str) -> str:
        """The id by which a job is told about: held, released, signalled and so on."""
        return native_id

    def _order(self, words: str, native_ids: Iterable[str], signal: str = "") -> list[str]:
        told_ids = dict.fromkeys(self._told_id(native_id) for native_id in native_ids)
        each = {"{}": told_ids, "{,}": [",".join(told_ids)]}
        return self._there(*(argument for word in words.split()
                             for argument in each.get(word, [word.replace("{signal}", signal)])))

    def get_order_command(self, order: Order, native_id: str, signal: str = "") -> list[str] | None:
        """That of ``_ORDERS``."""
        words: str | None = getattr(self._ORDERS, order)
        return None if words is None else self._order(words, [native_id], signal)

    def _order_command(self, order: Order, native_ids: Sequence[str]) -> list[str] | None:
        """That of ``_ORDERS``, where the id is its last word."""
        words: str | None = getattr(self._ORDERS, order)
        return None if words is None or not words.endswith("}") else self._order(words, native_ids)

    def get_change_commands(self, job: Job, before: JobSpec, after: JobSpec) -> list[list[str]]:
        """Those of ``_CHANGES`` for the options that differ. What the script itself says stays as it was submitted."""
        if self._CHANGES is None:
            raise InvalidJobException(f"{self.name} has no command for that")
        for says in (_members_of_script, partial(self._said_by_script, job)):
            old, new = (says(spec) for spec in (before, after))
            if changed := [name for name, value in new.items() if value != old[name]]:
                raise InvalidJobException(f"{', '.join(changed)}: the script that was submitted says it")
        differing = differences(*(self._directives(job, spec) for spec in (before, after)))
        return [self._there(*command) for command in commands(
            self._CHANGES, differing, job.native_id or "", begun=job.status.state is JobState.ACTIVE,
            manager=self.name)]

    def _said_by_script(self, job: Job, spec: JobSpec) -> dict[str, object]:
        """What the script says beside its options because of the resources, by what the template calls it."""
        shown = Job(spec)
        shown._id, shown.executor = job.id, self
        context = {"psij": {"launch_command": [str(word) for word in self._launch_command(shown)]}}
        values = self._template_context(shown, spec, context)
        return {name: str(value) for name, value in values.items()
                if name not in ("directives", "around", "more_parts", "step")}

    def get_cancel_command(self, native_id: str) -> list[str]:
        """The cancel of ``_ORDERS``."""
        return self._order(self._ORDERS.cancel, [native_id])

    def process_cancel_command_output(self, exit_code: int, out: str) -> None:
        """Every failure is one, but that of a job that has ended."""
        if self._ORDERS.over.search(out):
            raise InvalidJobStateError(out.strip())
        raise SubmitException(f"{self._ORDERS.cancel.removesuffix(' {}')} failed: {out.strip() or exit_code}",
                              transient=self._ANSWERS.passes(out))

    def _cancel_command(self, native_ids: Sequence[str]) -> list[str]:
        """The command for one job takes more ids: so do those of all managers here."""
        return self._order(self._ORDERS.cancel, native_ids)

    # --- files -----------------------------------------------------------------------------------------------------

    def _aux_path(self, native_id: str, suffix: str, tag: str | None = None) -> Path:
        """``<native id>.<tag><suffix>``; where the tag is not known, the only file that there is for the native id."""
        if tag is None and suffix != KEEP:
            pattern = f"{escape(native_id)}.{_ANY_TAG}{escape(suffix)}"
            named = fnmatch.filter(self.host.names(self.work_directory), pattern)
            return self.work_directory / named[0] if len(named) == 1 else super()._aux_path(native_id, suffix)
        return super()._aux_path(native_id if tag is None or suffix == KEEP else f"{native_id}.{tag}", suffix)

    # --- submissions without an answer -----------------------------------------------------------------------------

    def _look_up(self, tags: Sequence[str]) -> tuple[dict[str, list[str]], bool]:
        """By tag, and in the records: a job that has ended may be in no queue any more. By the tag of an array the id
        of the whole is found, also in the records of its elements."""
        ids_by_tag, answered = super()._look_up(tags)
        wanted_tags = set(tags)
        try:
            written = list(recorded(self.work_directory, self.host))
        except (OSError, subprocess.TimeoutExpired):        # a host behind a line, of which nothing is known now
            return ids_by_tag, False
        for native_id, tag in written:
            for tag_shown, id_shown in ((tag, native_id), (whole_tag(tag), array_id(native_id))):
                if tag_shown in wanted_tags and id_shown not in (ids := ids_by_tag.setdefault(tag_shown, [])):
                    ids.append(id_shown)
        return ids_by_tag, answered

    # --- the script ------------------------------------------------------------------------------------------------

    def generate_submit_script(self, job: Job, context: dict[str, Any], submit_file: IO[str]) -> None:
        """Write the script. Raises InvalidJobException naming what cannot be said in it."""
        assert job.spec is not None
        try:
            with marked_words() if job.id in self._arrays or _knows_itself(job.spec) else nullcontext():
                submit_file.write(render_planned(self._TEMPLATE, self._template_context(job, job.spec, context)))
        except QuotingError as e:
            raise InvalidJobException(str(e), e) from e

    def _template_context(self, job: Job, spec: JobSpec, context: Mapping[str, Any]) -> dict[str, Any]:
        """What the template may use. launcher: the command up to the program; arguments: what follows it."""
        array = self._arrays.get(job.id)
        return {
            "around": self._around(job, spec), "element": "" if array is None else array.lines(self._ELEMENT),
            "job_id": job.id if array is None else TAG_MARK,
            "directives": self._directives(job, spec), "script_dir": self.work_directory,
            "directory": directory(spec, self.host), "keeps_environment": keeps_environment(spec),
            "environment": [*exported(spec), *self._told_launcher(spec)],
            "shell_only": shell_only(spec), "slots_per_process": self._slots_per_process(spec),
            **command_words(context["psij"]["launch_command"], spec)}

    def _slots_per_process(self, spec: JobSpec) -> int:
        """Lines of the file of nodes that one process has."""
        asked = resources(spec) if self._SLOTS_ARE_CORES else None
        return (asked.cpu_cores_per_process if asked is not None else None) or 1

    def _told_launcher(self, spec: JobSpec) -> list[tuple[str, Quoted]]:
        """Variables that tell the launcher of streams."""
        return [(_APPEND, word(" ".join(streams)))] if (streams := appended(spec)) else []

    def _around(self, job: Job, spec: JobSpec) -> Around:
        """What is to stand around a job."""
        surroundings = self.config.surroundings
        if surroundings is None:
            return Around("")
        surroundings.check(job)
        try:
            return surroundings.around(job, replace(self._told(spec), several=self._several(job)))
        except Exception as e:
            _log.warning("Job %s has no surroundings: %s", job.id, e)
            return Around("")

    def _several(self, job: Job) -> bool:
        """Whether a job has parts, each with nodes of its own."""
        return False

    def _told(self, spec: JobSpec) -> Told:
        """What the job is told, with what is the same everywhere: its id, the processes on this host."""
        asked = resources(spec) or ResourceSpecV1()
        common = {"native_id": ("$_psij_native", 1),
                  "processors": (_HERE, asked.cpu_cores_per_process or 1)}
        own_words = self._TOLD
        return Told(own_words.lines, MappingProxyType(common | dict(own_words.words)), own_words.each_node)

    def _launch_command(self, job: Job) -> list[str]:
        """The command for the job as launchers see it: with absolute paths."""
        assert job.spec is not None
        guard = self._around(job, job.spec).guard if job.spec.launcher not in (None, "single") else ()
        if _is_resolved(job.spec) and not guard:
            return super()._launch_command(job)
        shown = Job(resolved(job.spec, guard, self.host))
        shown._id, shown.executor = job.id, self
        return super()._launch_command(shown)


#: Executors with options of which any value is taken that needs no quotes, as far as they were asked for.
_taken: set[tuple[type, str]] = set()


@cache
def _nobody() -> Job:
    """A job that stands for those of which only the specification counts."""
    return Job()


def _knows_itself(spec: JobSpec) -> bool:
    """Whether a stream or a variable has the job's own id or host in it, which is known once it runs."""
    paths = (spec.stdin_path, spec.stdout_path, spec.stderr_path)
    texts = [str(path) for path in paths if path is not None] + list(map(str, (spec.environment or {}).values()))
    return any(not text.isascii() and any(mark in text for mark in (ID_MARK, NUMBER_MARK, HOST_MARK)) for text in texts)


def _members_of_script(spec: JobSpec) -> dict[str, object]:
    """The members of a specification of which no option is made."""
    return {name: value for name, value in spec._values().items() if name not in ("name", "resources", "attributes")}


def resolved(spec: JobSpec, guard: Sequence[str] = (), host: Host = HERE) -> JobSpec:
    """The specification for launchers: all paths absolute. guard: words before the program."""
    base = directory(spec, host)
    resolved_spec = copy(spec)
    resolved_spec.name = spec.name
    resolved_spec.executable, *resolved_spec.arguments = *guard, *program(spec)
    resolved_spec.directory = Path(base)
    for member in ("stdin_path", "stdout_path", "stderr_path", "pre_launch", "post_launch"):
        path: Path | None = getattr(spec, member)
        if path is not None and not path.is_absolute():
            setattr(resolved_spec, member, os.path.join(base, at_home(str(path), host)))
    return resolved_spec


def _is_resolved(spec: JobSpec) -> bool:
    """Whether launchers can take the specification as it is."""
    paths = (spec.stdin_path, spec.stdout_path, spec.stderr_path, spec.pre_launch, spec.post_launch)
    return (all(path is None or path.is_absolute() for path in paths)
            and not any(map(needs_env, spec.environment or ())))
