"""PSI/J: from a job object to a JobSpec.

Every item of the job is walked once, so that whatever no rule below takes becomes a finding that names it. Sources:
PSI/J specification (JobSpec, ResourceSpecV1, JobAttributes); numbers after "decisions" are rows of the project's table
of decisions.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from datetime import timedelta
from enum import EnumMeta
from typing import Any, Final

from psij import JobAttributes, JobSpec, StageIn, StageOut, StageOutFlags, StagingMode
from psij.references import literal
from sssjob.document.element import Container, Property
from sssjob.document.model import Job, TaskGroup
from sssjob.findings import Findings, Policy
from sssjob.request._of_groups import Siblings
from sssjob.request.asked import FACTS, JOB, JSON, MARKERS, NEAREST, Entry, Target
from sssjob.translators.scripts.grammars import FILE_TOKEN
from sssjob.translators.scripts.raw import shell_words
from sssjob.translators.scripts.rows import DIALECT, dialect_of, spells
from sssjob.translators.specs._psij_resources import Resources, merged

# --- staging --------------------------------------------------------------------------------------------------------
# The texts of the Extensions StageIn, StageOut, Cleanup and CleanupFlags of type PSIJ, into a JobSpec.
#
#     {"source": "http://host/file", "target": "file", "mode": "LINK"}
#     {"source": "out", "target": "back/out", "flags": "IF_PRESENT|ON_SUCCESS"}
#
# A text that says anything else is refused whole, because half of it would stage other files than were meant.

#: Extension -> the members of its object; those of Cleanup and CleanupFlags are no objects.
_MEMBERS: Final[Mapping[str, tuple[str, ...]]] = {
    "StageIn": ("source", "target", "mode"), "StageOut": ("source", "target", "mode", "flags")}
#: Names of the Extensions.
STAGING: Final = (*_MEMBERS, "Cleanup", "CleanupFlags")


def read_staging(spec: JobSpec, name: str, text: str) -> None:
    """Put what one of these Extensions says into a JobSpec. Raises ValueError with what is wrong with the text."""
    if name == "Cleanup":
        spec.cleanup = {*(spec.cleanup or ()), text}
    elif name == "CleanupFlags":
        spec.cleanup_flags = _flags(text)
    else:
        staging = _members(name, text)
        source, target = staging["source"], staging["target"]
        mode = StagingMode[_word(StagingMode, "mode", staging.get("mode", "COPY"))]
        if name == "StageIn":
            spec.stage_in = {*(spec.stage_in or ()), StageIn(source, target, mode)}
        else:
            out = StageOut(source, target, _flags(staging.get("flags", "ALWAYS")), mode)
            spec.stage_out = {*(spec.stage_out or ()), out}


def _members(name: str, text: str) -> dict[str, str]:
    """The members of an object, all of them texts, source and target among them."""
    try:
        staging: Any = json.loads(text)
    except (ValueError, RecursionError):
        staging = None
    if not isinstance(staging, dict):
        raise ValueError('it is no JSON object like {"source": "a", "target": "b"}')
    for member in ("source", "target"):
        if not staging.get(member):
            raise ValueError(f"{member} is missing")
    for member, value in staging.items():
        if member not in _MEMBERS[name]:
            raise ValueError(f"{member!r} is not known (known: {', '.join(_MEMBERS[name])})")
        if not isinstance(value, str):
            raise ValueError(f"{member} is no text")
    return staging


def _word(words: EnumMeta, what: str, word: str) -> str:
    if word not in words.__members__:
        raise ValueError(f"{what} {word!r} is not known (known: {', '.join(words.__members__)})")
    return word


def _flags(text: str) -> StageOutFlags:
    """``IF_PRESENT|ON_ERROR`` as flags."""
    flags = StageOutFlags.NONE
    for word in text.split("|"):
        flags |= StageOutFlags[_word(StageOutFlags, "flag", word)]
    return flags


#: Executors without queues and reservations.
_WITHOUT_QUEUES: Final = ("local", "htcondor")
#: Before the name of a custom attribute that is no option of the manager, and that no executor takes for one: with
#: which of its options something was said.
SPELLING: Final = "sssjob."
_EXTENSION_CONTEXTS: Final = frozenset(("Scheduler", "LRM", "PSIJ", "MJF", "SSSJob", "Maui", "Moab", "Gold"))
#: Executors that reach a service elsewhere, which never sees the submitter's variables.
_WITHOUT_VARIABLES: Final = frozenset(("arc", "iri"))


class _Writing(Resources):
    """One job on its way into a JobSpec."""

    def __init__(self, job: Job, findings: Findings, policy: Policy, files: Mapping[str, str], target: Target,
                 group: TaskGroup | None, siblings: Siblings | None) -> None:
        super().__init__(job, findings, policy, target, group, siblings)
        self.files = files
        self.spec = JobSpec(attributes=JobAttributes(duration=None))

    # -- the parts of a JobSpec
    def result(self) -> JobSpec:
        """The JobSpec, once."""
        self._identity()
        self._command()
        self._environment()
        self._streams()
        self._attributes()
        self._extensions()
        self._resources()
        self._rest()
        return self.spec

    def _identity(self) -> None:
        name = self.one("Name", (JOB,))
        if name is None:
            return
        self.spec.name = name.text
        if name.text == self.text("Executable"):
            self.note("SSS502", name, "Name: a JobSpec cannot tell a name that is the executable from none")

    def _command(self) -> None:
        self._executable()
        arguments = self.one("Arguments")
        if arguments is not None:
            self.spec.arguments = self._words(arguments)
        directory = self.one("InitialWorkingDirectory")
        if directory is not None:
            self.spec.directory = directory.text
            if not directory.text.startswith(("/", "~/")) and not self.target.executor:
                self.note("SSS504", directory, f"InitialWorkingDirectory: {directory.text} is relative; "
                          "PSI/J asks for an absolute directory")

    def _executable(self) -> None:
        entry = self.one("Executable")
        if entry is None:
            return
        text = entry.text
        if not text.startswith("#"):
            self.spec.executable = text
            if "://" in text:
                self.note("SSS504", entry, f"Executable: {text} would have to be fetched")
        elif text[1:] in self.files:
            self.spec.executable = self.files[text[1:]]
        else:
            self.dropped(entry, f"the script {text} has no place in a JobSpec, which names a file")

    def _words(self, entry: Entry) -> list[str]:
        """Arguments as a list (decisions 24, 25)."""
        text = entry.text
        try:
            words = shell_words(text)
        except ValueError as error:
            self.note("SSS502", entry, f"Arguments: taken as one argument: {error}")
            words = [text]
        if shlex.join(words) != text:
            self.note("SSS502", entry, f"Arguments: quoted anew as {shlex.join(words)}", "info")
        return [self._dollar(entry, "Arguments", word) for word in words]

    def _dollar(self, entry: Entry, name: str, text: str) -> str:
        """The text as it goes into the JobSpec: PSI/J replaces ``${NAME}``, the job object does not (decisions 25)."""
        with_literals = literal(text)
        if with_literals != text and not self.target.executor:
            self.note("SSS502", entry, f"{name}: ${{...}} is written as $${{...}}, because PSI/J replaces the former; "
                      "psij-python, which replaces neither, hands on the latter", "info")
        return with_literals

    def _environment(self) -> None:
        variables: dict[str, str] = {}
        for level in reversed(NEAREST) if self.variables else ():
            for e in self.variables:
                if e.level == level and e.tag == "Variable" and isinstance(e.item, Property):
                    e.used = True
                    e.understood |= {"name"}
                    name = e.attributes.get("name", "")
                    variables[name] = self._dollar(e, f"Variable {name}", e.text)
        self.spec.environment = variables or None
        export = self._export()
        self.spec.inherit_environment = export is not False
        executor = self.target.executor
        passes = "PSI/J passes them on" if executor not in _WITHOUT_VARIABLES else f"{executor} passes none on"
        if export is None:
            self.note("SSS503", None, "Environment: the job does not say whether the submitter's variables go along; "
                      f"{passes}", "info" if executor else None, "export")
        elif export and executor in _WITHOUT_VARIABLES:
            self.note(self.target.rule, None, f"Environment: the submitter's variables are to go along; {passes}", None,
                      "export")

    def _export(self) -> bool | None:
        exports: dict[str, bool] = {}
        for level, scope in _scopes(self.job, JOB, self.group):
            for child in scope.containers("Environment"):
                stated = child.attributes.get("export")
                if stated is not None:
                    exports.setdefault(level, stated == "true")
        return next((exports[level] for level in NEAREST if level in exports), None)

    def _streams(self) -> None:
        for tag, member in (("InputFile", "stdin"), ("OutputFile", "stdout"), ("ErrorFile", "stderr")):
            entry = self.one(tag, carried=("redirectList",))
            if entry is None:
                continue
            if entry.text:
                setattr(self.spec, f"{member}_path", self._path(entry))
            elif not self.target.executor:
                self.dropped(entry, "an empty name leaves the file to the queuing system; PSI/J takes /dev/null")
            self._redirect(entry, member)
        self._in_one_file()

    def _in_one_file(self) -> None:
        """Send both streams to one file, as jobs of the dialect do that the job is a script of."""
        source = next((e.text for e in self.said("Extension") if e.attributes.get("name") == DIALECT), "")
        dialect = dialect_of(source)
        if dialect is None or not dialect.merges or self.said("ErrorFile") or self.spec.stdout_path is None:
            return
        if self.target.executor:
            self.attribute("local.merge", "stderr-to-stdout")
        else:
            self.note("SSS501", None, f"ErrorFile: without one {dialect.title} sends both streams to one file, which a "
                      "JobSpec cannot say", "warning", "ErrorFile")

    def _path(self, entry: Entry) -> str:
        """The name of a file. Who runs the job fills its tokens in; a JobSpec alone has none, and no doubled braces."""
        if self.target.executor:
            return entry.text
        tokens = dict.fromkeys(m[0] for m in FILE_TOKEN.finditer(entry.text) if m["token"] is not None)
        if tokens:
            self.note("SSS502", entry, f"{entry.tag}: PSI/J fills nothing in for {', '.join(tokens)}")
        return FILE_TOKEN.sub(lambda m: m[0] if m["token"] is not None else m[0][0], entry.text)

    def _redirect(self, entry: Entry, member: str) -> None:
        for word in filter(None, (w.strip() for w in entry.attributes.get("redirectList", "").split(","))):
            if word == "Close":
                setattr(self.spec, f"{member}_path", None)
            elif word == "Append" and member != "stdin" and self.target.executor not in ("", "fluxexec"):
                self.attribute(f"local.{member}_mode", "append")
            elif word == "Merge" and member != "stdin" and self.target.executor:
                other = "stdout" if member == "stderr" else "stderr"
                self.attribute("local.merge", f"{member}-to-{other}")
            elif word == "Keep" and self.target.executor == "local":
                continue
            else:
                self.dropped(entry, f"{word} is not carried", f"{entry.tag}/@redirectList")

    def attribute(self, name: str, value: object) -> None:
        """Set a custom attribute."""
        assert self.spec.attributes is not None
        self.spec.attributes.set_custom_attribute(name, value)

    def _attributes(self) -> None:
        attributes = self.spec.attributes
        assert attributes is not None
        duration = self.one("Duration")
        if duration is not None:
            attributes.duration = timedelta(seconds=int(duration.value))
        queued = self.target.executor not in _WITHOUT_QUEUES
        attributes.queue_name = self.text("Queue") if queued and "Queue" not in self.target.irrelevant else None
        attributes.account = self.text("Project") if "Project" not in self.target.irrelevant else None
        attributes.reservation_id = self.text("Reservation") if queued else None

    def _extensions(self) -> None:
        for e in self.entries:
            if e.tag != "Extension" or e.slot not in ("", "Requested") or not isinstance(e.item, Property):
                continue
            kind, name = e.attributes.get("type", ""), e.attributes.get("name", "")
            if (kind, name) in MARKERS:
                e.used = True
            elif (kind, name) == ("Scheduler", "ChunkCount"):
                e.used = True
                self.note("SSS502", e, f"Extension ChunkCount: how tasks are put into {e.text} chunks is left to the "
                          "resource manager", "info" if self.target.executor == "local" else None, "ChunkCount")
            elif kind in ("Scheduler", "PSIJ"):
                e.used = self._known(e, kind, name)
            elif kind == "MJF" and kind in self.target.handled:
                e.used = True
            elif spells(kind, name):
                if not self.target.executor:
                    self.attribute(f"{SPELLING}{kind}.{name}", e.text)
                e.used = True
            elif kind not in _EXTENSION_CONTEXTS and self.target.executor in ("", kind.lower()):
                self.attribute(f"{kind}.{name}" if kind else name, e.text)
                e.used = True
            e.understood |= {"name", "type"}

    def _known(self, e: Entry, kind: str, name: str) -> bool:
        """Take an Extension of PSI/J's own or of the Scheduler context; False when it is neither's."""
        spec = self.spec
        if (kind, name) == ("Scheduler", "Launcher"):
            spec.launcher = e.text
        elif kind == "PSIJ" and name in ("PreLaunch", "PostLaunch"):
            setattr(spec, "pre_launch" if name == "PreLaunch" else "post_launch", e.text)
        elif kind == "PSIJ" and name in STAGING:
            try:
                read_staging(spec, name, e.text)
            except ValueError as error:
                self.dropped(e, f"it is malformed: {error}", f"{e.tag} {name}")
        else:
            return kind == "Scheduler" and name in ("ExclusiveNodeUse", "ChunkCount")
        return True

    # -- what it takes
    def _resources(self) -> None:
        layout = self.layout()
        counts = self.counts(layout)
        self._launcher(layout.copies)
        self.spec.resources = self.resources(layout, counts)

    def _launcher(self, copies: int) -> None:
        """What starts several processes where the job does not say; a script is started once."""
        executable = self.one("Executable")
        if executable is not None and executable.text.startswith("#"):
            if self.spec.launcher not in (None, "single"):
                self.note("SSS502", None, f"Launcher: a script is started once, and not by {self.spec.launcher}",
                          "info", "Launcher")
                self.spec.launcher = "single"
        elif copies > 1 and self.spec.launcher is None:
            self.spec.launcher = self.target.launcher
            if not self.target.executor:
                self.note("SSS503", None, f"Launcher: {copies} tasks need one; {self.target.launcher} is taken",
                          None, "Launcher")

    # -- what is left
    def _rest(self) -> None:
        """One finding for facts of an earlier run, one for each item and attribute that is not carried."""
        facts = []
        for e in self.entries:
            if _is_fact(e):
                facts.append(e.tag if e.slot != "Delivered" else f"Delivered/{e.tag}")
            elif e.tag == "Interactive" and isinstance(e.item, Property) and e.value is False:
                continue        # what a JobSpec is anyway
            elif not e.used and e.tag not in self.target.handled:
                name = e.attributes.get("name")
                self.dropped(e, "", e.tag if name is None else f"{e.tag} {name}")
            elif e.tag not in self.target.handled:
                for attribute in e.attributes:
                    if attribute not in e.understood and attribute != "awarenessPolicy":
                        self.dropped(e, f"attribute {attribute} is not carried", f"{e.tag}/@{attribute}")
        if facts and "facts" not in self.target.handled:
            names = ", ".join(dict.fromkeys(facts))
            self.note("SSS501", None, f"results of a run are no part of a request: {names}", "warning", names)


def _is_fact(e: Entry) -> bool:
    if e.slot == "Delivered" or (e.tag == "Extension" and e.attributes.get("type") == "LRM"):
        return True
    in_task = e.level.endswith(("/Task", "/Task+")) and not e.slot and e.tag in ("Id", "Node")
    return e.tag in FACTS or in_task or (e.tag == "Duration" and e.slot == "" and e.used is False)


def _scopes(scope: Container, level: str, group: TaskGroup | None) -> Iterator[tuple[str, Container]]:
    yield level, scope
    for child in scope.containers():
        if child.tag in ("TaskGroup", "TaskGroupDefaults", "Task", "TaskDefaults") and (
                child.tag != "TaskGroup" or group is None or child is group):
            yield from _scopes(child, f"{level}/{child.tag}", group)

def to_spec(job: Job, findings: Findings, *, policy: Policy = Policy.REJECT, files: Mapping[str, str] | None = None,
            target: Target = JSON, group: TaskGroup | None = None, siblings: Siblings | None = None) -> JobSpec:
    """The JobSpec of a job whose JobDefaults are folded in already.

    files: id of a File -> path at which it lies; a script that is not among them cannot be carried. group: the one of
    several task groups to take (None: all of them as one); siblings: all of the job, where several are taken one by
    one. What is lost is in findings.
    """
    groups = job.task_groups if group is None else ()
    origins = None
    if len(groups) > 1:
        job, origins = merged(job, groups, findings, policy, target)
    writing = _Writing(job, findings, policy, files or {}, target, group, siblings)
    if origins is not None:
        writing.alike, writing.origins = groups, origins
    return writing.result()
