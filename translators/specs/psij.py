"""PSI/J: the JSON text of JobSpecs (format ``psij``).

``to_spec`` turns a job into a JobSpec; here are the way back, member by member, and the text around both. Nothing
starts a process or opens a file.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Final

from psij import (
    InvalidJobException,
    JobAttributes,
    JobSpec,
    JSONSerializer,
    ResourceSpecV1,
    StageIn,
    StageOut,
    StageOutFlags,
    StagingMode,
)
from psij.references import pieces
from sssjob.document.element import Container, Item, Property, new_property
from sssjob.document.inherit import effective
from sssjob.document.model import Document, Environment, Job, JobGroup, Requested, TaskDefaults, TaskGroup
from sssjob.document.units import from_bytes
from sssjob.findings import Findings, Policy
from sssjob.limits import Limits
from sssjob.request.asked import FACTS, Target, policy_of
from sssjob.translators.base import ReadContext, Translator, WriteContext
from sssjob.translators.recognise import by_keys
from sssjob.translators.scripts.grammars import literal_name
from sssjob.translators.specs._psij_to_spec import SPELLING, to_spec
from sssjob.xml._faults import parse_fault
from sssjob.xml.json_places import JsonPlaces, Steps

__all__ = ["FACTS", "TRANSLATOR", "Target", "from_spec", "read", "to_spec", "write"]


#: Members of a JobSpec, one of which stands beside the executable in what is recognised as one.
_MEMBERS: Final = frozenset((
    "arguments", "directory", "inherit_environment", "environment", "stdin_path", "stdout_path", "stderr_path",
    "resources", "attributes", "pre_launch", "post_launch", "launcher"))


#: Property -> where a JobSpec says it.
_PLACES: Final[dict[str, Steps]] = {
    "Name": ("name",), "Executable": ("executable",), "Arguments": ("arguments",), "InputFile": ("stdin_path",),
    "InitialWorkingDirectory": ("directory",), "OutputFile": ("stdout_path",), "ErrorFile": ("stderr_path",),
    "Queue": ("attributes", "queue_name"), "Project": ("attributes", "account"),
    "Reservation": ("attributes", "reservation_id"), "Duration": ("attributes", "duration"),
    "NodeCount": ("resources", "node_count"), "TaskDistribution": ("resources", "processes_per_node"),
    "TaskCount": ("resources", "process_count"), "Memory": ("resources", "memory"),
    "Resource": ("resources", "gpu_cores_per_process"), "Environment": ("environment",),
    "Requested": ("resources",), "TaskGroup": ("resources",), "TaskDefaults": ("resources",)}
_OF_EXTENSIONS: Final[dict[str, Steps]] = {
    "Launcher": ("launcher",), "PreLaunch": ("pre_launch",), "PostLaunch": ("post_launch",), "StageIn": ("stage_in",),
    "StageOut": ("stage_out",), "Cleanup": ("cleanup",), "CleanupFlags": ("cleanup_flags",),
    "ExclusiveNodeUse": ("resources", "exclusive_node_use")}


def _known_as(item: Item | None, path: Sequence[str]) -> Steps:
    """Where a JobSpec says what a document has under a path from the job on."""
    tag = item.tag if item is not None else path[-1] if path else ""
    name = item.attributes.get("name", "") if isinstance(item, Property) else ""
    if tag == "Extension":
        kind = item.attributes.get("type") if isinstance(item, Property) else None
        return _OF_EXTENSIONS.get(name) or ("attributes", "custom_attributes", f"{kind}.{name}" if kind else name)
    if tag == "Processors":
        return "resources", "cpu_cores_per_process" if "TaskDefaults" in path else "process_count"
    if tag == "Variable":
        return "environment", name
    return _PLACES.get(tag, ())


def read(data: bytes, context: ReadContext) -> Document:
    """One object is a Job; an array, or objects one after another (JSON Lines), a JobGroup named by its source.

    Raises RejectedError when the text is no JSON or an object no JobSpec.
    """
    findings = context.findings
    text = _decoded(data, findings, context.limits)
    jobs: list[Job] = []
    many, parts = _objects(text, findings)
    places = findings.places = JsonPlaces(data, context.path, _known_as)
    for number, (start, end) in enumerate(parts):
        places.reading = number
        try:
            jobs.append(from_spec(JSONSerializer().loads(text[start:end]), findings))
        except (ValueError, InvalidJobException) as error:
            place = places.at(number, _pointer(str(error)))
            line, column, excerpt = place or (text.count("\n", 0, start) + 1, 0, "")
            findings.add("SSS112", "JobSpec", str(error), line=line, column=column, excerpt=excerpt)
    findings.raise_if_rejected()
    places.reading = 0
    if not many:
        places.root = jobs[0]
        return Document(jobs[0], {}, context.path, context.profile, findings, places=places)
    name = context.path.rpartition("/")[2] or "-"
    findings.add("SSS503", "Id", f"Id: the group is named after its source, {name}", path="/JobGroup/Id")
    places.root = group = JobGroup([new_property("Id", name), *jobs])
    return Document(group, {}, context.path, context.profile, findings, places=places)


def _pointer(message: str) -> Steps:
    """The way to the member that a message about a JobSpec begins with, as ``/resources/colour: ...``."""
    match = re.match(r"((?:/[^/:\s]+)+): ", message)
    return () if match is None else tuple(match[1].split("/")[1:])


def _decoded(data: bytes, findings: Findings, limits: Limits) -> str:
    if len(data) > limits.document_bytes:
        findings.add("SSS110", "document_bytes", f"more than {limits.document_bytes} bytes (limit document_bytes)")
        findings.raise_if_rejected()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        findings.add("SSS111", "JSON", parse_fault(error))
        findings.raise_if_rejected()
        raise


def _objects(text: str, findings: Findings) -> tuple[bool, list[tuple[int, int]]]:
    """Whether there may be several, and where each stands: (start, end)."""
    at = _after_space(text, 0)
    listed = text[at:at + 1] == "["
    places: list[tuple[int, int]] = []
    try:
        places = list(_elements(text, at + 1) if listed else _sequence(text, at))
    except (ValueError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 0
        findings.add("SSS111", "JSON", parse_fault(error), line=line)
    if not places and not findings.rejected:
        findings.add("SSS112", "JobSpec", "there is no job specification in it")
    return listed or len(places) > 1, places


_SPACE: Final = re.compile(r"[ \t\r\n]*")
_DECODER: Final = json.JSONDecoder(parse_int=str)       # only to find ends; the serializer reads the values


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()


def _sequence(text: str, at: int) -> Iterator[tuple[int, int]]:
    while at < len(text):
        _, end = _DECODER.raw_decode(text, at)
        yield at, end
        at = _after_space(text, end)


def _elements(text: str, at: int) -> Iterator[tuple[int, int]]:
    """The members of an array whose bracket was read."""
    at = _after_space(text, at)
    while text[at:at + 1] != "]":
        _, end = _DECODER.raw_decode(text, at)
        yield at, end
        at = _after_space(text, end)
        if text[at:at + 1] == ",":
            at = _after_space(text, at + 1)
            if text[at:at + 1] != "]":
                continue
            raise json.JSONDecodeError("a member of the array expected", text, at)
        if text[at:at + 1] != "]":
            raise json.JSONDecodeError("',' or ']' expected", text, at)
    if text[at + 1:].strip(" \t\r\n"):
        raise json.JSONDecodeError("nothing may follow the array", text, at + 1)


def write(document: Document, context: WriteContext) -> str:
    """One object for a Job, an array for a JobGroup or several jobs; what is lost is in ``context.findings``."""
    policy = context.policy or Policy.REJECT
    texts: list[str] = []
    many = False
    for body in document.bodies():
        if isinstance(body, Job):
            texts.append(_text(body, context.findings, policy))
        elif isinstance(body, JobGroup):
            many = True
            texts += _group_texts(body, context.findings, policy)
        else:
            context.findings.add("SSS109", body.tag, f"{body.tag} is no job", path=f"/{body.tag}")
    if len(texts) == 1 and not many:
        return texts[0] + "\n"
    return "[\n" + ",\n".join(texts) + "\n]\n"


def _group_texts(group: JobGroup, findings: Findings, policy: Policy) -> list[str]:
    policy = policy_of(group, policy)
    labels = [p.tag for p in group.properties()]
    if labels and policy is not Policy.IGNORE:
        findings.add("SSS501", "JobGroup", f"an array of JobSpecs has no place for {', '.join(labels)} of the group",
                     severity="warning", path="/JobGroup", within=group)
    for raw in group.unknown():
        findings.add("SSS501", raw.tag, f"{raw.tag}: not known", policy=policy_of(raw, policy),
                     path=f"/JobGroup/{raw.tag}", item=raw, within=group)
    texts = []
    for job in group.jobs:
        if job.reference is None:
            texts.append(_text(effective(job, group.defaults, policy=policy.value).fold(), findings, policy))
        else:
            findings.add("SSS501", "Job", f"the job {job.reference} is only referred to", policy=policy,
                         path="/JobGroup/Job", within=job)
    return texts


def _text(job: Job, findings: Findings, policy: Policy) -> str:
    return JSONSerializer().dumps(to_spec(job, findings, policy=policy))


TRANSLATOR = Translator("psij", "PSI/J JobSpec (JSON)", "spec", read, write, (".psij", ".jsonl"),
                        lambda sample: by_keys(sample, frozenset(("executable",)), _MEMBERS))


def from_spec(spec: JobSpec, findings: Findings) -> Job:
    """The job of a JobSpec: amounts in Requested (decisions 4), all else bare."""
    job = Job()
    _add(job, "Name", None if spec.name == spec.executable else spec.name)
    _add(job, "Executable", spec.executable)
    if spec.arguments is not None:
        job.add_as_is("Arguments", shlex.join(_literal(findings, "Arguments", spec.arguments)))
    _add(job, "InitialWorkingDirectory", spec.directory)
    _read_attributes(job, spec.attributes or JobAttributes(duration=None))
    for tag, member in (("InputFile", "stdin"), ("OutputFile", "stdout"), ("ErrorFile", "stderr")):
        path = getattr(spec, f"{member}_path")
        _add(job, tag, None if path is None else literal_name(str(path)))
    _read_environment(job, spec, findings)
    requested = Requested()
    group = TaskGroup()
    _read_duration(requested, spec.attributes, findings)
    if isinstance(spec.resources, ResourceSpecV1):
        _read_resources(job, requested, group, spec.resources, spec.launcher)
    elif spec.resources is not None:
        findings.add("SSS501", "resources", f"resources of version {spec.resources.version} are not known")
    _read_extensions(job, spec, findings)
    job.items += [c for c in (requested, group) if c.items]
    return job


def _add(scope: Container, tag: str, value: object) -> None:
    if value is not None and str(value) != "":
        scope.add_as_is(tag, str(value))


def _literal(findings: Findings, name: str, texts: Iterable[str]) -> list[str]:
    """Texts of a JobSpec as those of a job object, where ``${NAME}`` is what it is."""
    parts = [pieces(text) for text in texts]
    if any(len(some) > 1 for some in parts):
        findings.add("SSS502", name, f"{name}: PSI/J replaces ${{...}} at the start, the job object does not",
                     path=f"/Job/{name}")
    return ["".join(part if index % 2 == 0 else f"${{{part}}}" for index, part in enumerate(some)) for some in parts]


def _read_attributes(job: Job, attributes: JobAttributes) -> None:
    _add(job, "Queue", attributes.queue_name)
    _add(job, "Project", attributes.account)
    _add(job, "Reservation", attributes.reservation_id)


def _read_duration(requested: Requested, attributes: JobAttributes | None, findings: Findings) -> None:
    if attributes is None or attributes.duration is None:
        return
    exact = Decimal(str(attributes.duration.total_seconds()))
    whole = int(exact.to_integral_value(ROUND_HALF_UP))
    if whole != exact:
        findings.add("SSS502", "Duration", f"Duration: {exact} s becomes {whole}", path="/Job/Requested/Duration")
    requested.add_as_is("Duration", whole)


def _read_environment(job: Job, spec: JobSpec, findings: Findings) -> None:
    variables = spec.environment or {}
    values = _literal(findings, "Environment", variables.values())
    variables_made = [new_property("Variable", value, {"name": name}) for name,
                      value in zip(variables, values, strict=True)]
    job.items.append(Environment(variables_made, {"export": "true" if spec.inherit_environment else "false"}))


def _read_resources(job: Job, requested: Requested, group: TaskGroup, r: ResourceSpecV1,
                    launcher: str | None) -> None:
    """Amounts; with a launcher that starts copies the processes are tasks, else processors (decisions 10)."""
    many = launcher not in (None, "single")
    if r.node_count is not None:
        requested.add_as_is("NodeCount", r.node_count)
    if r.processes_per_node is not None:
        job.add_as_is("TaskDistribution", str(r.processes_per_node), type="TasksPerNode")
    if r.process_count is not None:
        if many:
            group.add_as_is("TaskCount", r.process_count)
        else:
            requested.add_as_is("Processors", r.process_count * (r.cpu_cores_per_process or 1))
    if r.memory is not None:
        amount, units = from_bytes(r.memory)
        requested.add_as_is("Memory", amount, units=units)
    each = Requested()
    if r.cpu_cores_per_process is not None:
        each.add_as_is("Processors", r.cpu_cores_per_process)
    if r.gpu_cores_per_process is not None:
        each.add_as_is("Resource", Decimal(r.gpu_cores_per_process), name="GPU")
    if each.items:
        group.items.append(TaskDefaults([each]))
    if r.exclusive_node_use:
        _extend(job, "Scheduler", "ExclusiveNodeUse", "true")


def _extend(job: Job, kind: str | None, name: str, text: str) -> None:
    job.add_as_is("Extension", text, type=kind, name=name)


def _read_extensions(job: Job, spec: JobSpec, findings: Findings) -> None:
    for kind, name, stated in (("Scheduler", "Launcher", spec.launcher), ("PSIJ", "PreLaunch", spec.pre_launch),
                               ("PSIJ", "PostLaunch", spec.post_launch)):
        if stated is not None:
            _extend(job, kind, name, str(stated))
    for text in sorted(_staged(i) for i in spec.stage_in or ()):
        _extend(job, "PSIJ", "StageIn", text)
    for text in sorted(_staged(o) for o in spec.stage_out or ()):
        _extend(job, "PSIJ", "StageOut", text)
    for path in sorted(map(str, spec.cleanup or ())):
        _extend(job, "PSIJ", "Cleanup", path)
    if spec.cleanup_flags != StageOutFlags.ALWAYS:
        _extend(job, "PSIJ", "CleanupFlags", _flag_words(spec.cleanup_flags))
    custom = spec.attributes.custom_attributes if spec.attributes is not None else None
    for name, value in (custom or {}).items():
        _read_custom(job, name, value, findings)

def _flag_words(flags: StageOutFlags) -> str:
    if flags & StageOutFlags.ALWAYS == StageOutFlags.ALWAYS:
        return "IF_PRESENT|ALWAYS" if flags & StageOutFlags.IF_PRESENT else "ALWAYS"
    words = [f.name or "" for f in (StageOutFlags.IF_PRESENT, StageOutFlags.ON_SUCCESS, StageOutFlags.ON_ERROR,
                                    StageOutFlags.ON_CANCEL) if flags & f]
    return "|".join(words) or "NONE"


def _staged(item: StageIn | StageOut) -> str:
    staging = {"source": str(item.source), "target": str(item.target)}
    if item.mode is not StagingMode.COPY:
        staging["mode"] = item.mode.name
    if isinstance(item, StageOut) and item.flags != StageOutFlags.ALWAYS:
        staging["flags"] = _flag_words(item.flags)
    return json.dumps(staging, ensure_ascii=False)


def _read_custom(job: Job, name: str, value: object, findings: Findings) -> None:
    """``slurm.constraint`` as Extension type slurm, name constraint (decisions 16), and so is what only tells a
    spelling, ``sssjob.sge.memory``."""
    kind, dot, rest = name.removeprefix(SPELLING).partition(".")
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    _extend(job, kind if dot else None, rest if dot else name, text)
    if not isinstance(value, str):
        findings.add("SSS502", name, f"{name}: {text} is kept as text", path="/Job/Extension", item=job.items[-1])
