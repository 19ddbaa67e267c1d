"""PSI/J: the JSON text of JobSpecs (format ``psij``).

``to_spec`` and ``from_spec`` turn a job into a JobSpec and back; here is the text around them. Nothing starts a process
or opens a file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from psij import InvalidJobException, JSONSerializer
from sssjob.document.element import new_property
from sssjob.document.inherit import effective
from sssjob.document.model import Document, Job, JobGroup
from sssjob.findings import Findings, Policy
from sssjob.limits import Limits
from sssjob.request.asked import FACTS, Target, policy_of
from sssjob.translators.base import ReadContext, Translator, WriteContext
from sssjob.translators.recognise import by_keys
from sssjob.translators.specs._psij_from_spec import from_spec
from sssjob.translators.specs._psij_to_spec import to_spec

__all__ = ["FACTS", "TRANSLATOR", "Target", "from_spec", "read", "to_spec", "write"]


#: Members of a JobSpec, one of which stands beside the executable in what is recognised as one.
_MEMBERS: Final = frozenset((
    "arguments", "directory", "inherit_environment", "environment", "stdin_path", "stdout_path", "stderr_path",
    "resources", "attributes", "pre_launch", "post_launch", "launcher"))


def read(data: bytes, context: ReadContext) -> Document:
    """One object is a Job; an array, or objects one after another (JSON Lines), a JobGroup named by its source.

    Raises RejectedError when the text is no JSON or an object no JobSpec.
    """
    findings = context.findings
    text = _decoded(data, findings, context.limits)
    jobs: list[Job] = []
    many, parts = _objects(text, findings)
    for start, end in parts:
        line = text.count("\n", 0, start) + 1
        try:
            jobs.append(from_spec(JSONSerializer().loads(text[start:end]), findings))
        except (ValueError, InvalidJobException) as error:
            findings.add("SSS112", "JobSpec", str(error), line=line)
    findings.raise_if_rejected()
    if not many:
        return Document(jobs[0], {}, context.path, context.profile, findings)
    name = context.path.rpartition("/")[2] or "-"
    findings.add("SSS503", "Id", f"Id: the group is named after its source, {name}", path="/JobGroup/Id")
    group = JobGroup([new_property("Id", name), *jobs])
    return Document(group, {}, context.path, context.profile, findings)


def _decoded(data: bytes, findings: Findings, limits: Limits) -> str:
    if len(data) > limits.document_bytes:
        findings.add("SSS110", "document_bytes", f"more than {limits.document_bytes} bytes (limit document_bytes)")
        findings.raise_if_rejected()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        findings.add("SSS111", "JSON", f"JSON is UTF-8: {error}")
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
        findings.add("SSS111", "JSON", str(error), line=line)
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
