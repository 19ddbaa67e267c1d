"""The jobs that a job waits for, as Slurm, PBS and Flux spell them, and the ids of jobs of another manager."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from sssjob.request.asked import Entry
from sssjob.translators.scripts.asking import Asking
from sssjob.translators.scripts.common import SCHEDULER
from sssjob.translators.scripts.raw import Option
from sssjob.translators.scripts.reading import Reading
from sssjob.translators.scripts.rows import APPROXIMATED, SITE

__all__ = ["CORRESPONDING", "OF_DEPENDENCIES", "corresponding", "dependencies", "foreign_id", "read_dependencies"]

_CONDITIONS: Final = {"afterok": "OnSuccess", "afternotok": "OnFailure", "afterany": "OnExit"}
_KINDS: Final = {v: k for k, v in _CONDITIONS.items()}
_ID: Final = re.compile(r"@JOBID:[^@]*@|[^:@]+(?:@[\w.-]+)?")
_SAFE: Final = re.compile(r"@JOBID:[^@]*@|[^\s@:,?+]+")
#: ``123.a@b``: the job is at another server than its id says (qsub(1B), -W depend).
_AT_SERVER: Final = re.compile(r"(?P<id>[^\s@:,?+]+)@[\w.-]+")
_PLACEHOLDER: Final = re.compile(r"@JOBID:([^@]*)@")
_CLAUSE: Final = re.compile(r"(?:@JOBID:[^@]*@|[^,@]|@(?!JOBID:))+")
#: The end of the id of an array as a whole, and what Torque adds to the kind of a dependency on one (qsub(1B), depend).
_WHOLE_ARRAY: Final = "[]"
_ON_ARRAY: Final = "array"


#: Where the writer of this module looks.
OF_DEPENDENCIES: Final = ("Dependency", SCHEDULER.format("DependencyOther"))


def read_dependencies(reading: Reading, option: Option) -> None:
    """``afterok:1:2,afterany:3``; a bare id is afterany. Other kinds are kept as Extension DependencyOther."""
    text = option.value or ""
    if "?" in text:
        reading.top("Extension[name=DependencyOther,type=Scheduler]", text, option)
        return
    for clause in _CLAUSE.findall(text):
        kind, colon, rest = clause.partition(":")
        if clause.startswith("@JOBID:") or (not colon and clause[:1].isdigit()):
            kind, rest = "afterany", clause
        if reading.dialect.name == "torque" and all(
                _id_alone(job).endswith(_WHOLE_ARRAY) for job in _ID.findall(rest)):
            kind = kind.removesuffix(_ON_ARRAY)
        if kind in _CONDITIONS and _ID.search(rest):
            for job in _ID.findall(rest):
                reading.top("Dependency", job, option, condition=_CONDITIONS[kind])
        else:
            reading.top("Extension[name=DependencyOther,type=Scheduler]", clause, option)


def dependencies(asking: Asking, unsaid: Iterable[str] = ()) -> str:
    """The same text. unsaid: kinds, or signs in them, that the target does not know. Ids of another system become
    placeholders (decisions 21)."""
    clauses: list[tuple[str, list[str]]] = []
    for e in asking.find("Dependency"):
        e.understood |= {"condition", "designator", "code"}
        kind = _KINDS.get(e.attributes.get("condition", "OnSuccess"))
        by_name = e.attributes.get("designator", "JobId") != "JobId"
        if by_name and e.text not in asking.context.ids:
            asking.dropped(e, f"{asking.dialect.title} waits for jobs by their ids; --id-map says that of "
                           f"{e.text[:80]}")
            continue
        if kind is None or "code" in e.attributes or not _SAFE.fullmatch(_id_alone(e.text)):
            asking.dropped(e, f"{asking.dialect.title} cannot say this dependency")
            continue
        if asking.dialect.name == "torque" and _PLACEHOLDER.sub(r"\1", _id_alone(e.text)).endswith(
                _WHOLE_ARRAY):
            kind += _ON_ARRAY
        if clauses and clauses[-1][0] == kind:
            clauses[-1][1].append(foreign_id(asking, e))
        else:
            clauses.append((kind, [foreign_id(asking, e)]))
    clauses_written = [f"{kind}:{':'.join(ids)}" for kind, ids in clauses]
    for e in asking.extensions("DependencyOther"):
        waits_for = re.fullmatch(r"on:\d+", e.text, re.ASCII) is not None and {
            asking.source, asking.dialect.name} == {"pbspro", "torque"}      # a number of other jobs, qsub(1B) of both
        if e.text.startswith(CORRESPONDING) and asking.source != asking.dialect.name and \
                CORRESPONDING not in unsaid and (ids := corresponding(asking, e)):
            clauses_written.append(CORRESPONDING + ids.replace(",", ":"))
        elif asking.source != asking.dialect.name and not waits_for and (
                any(u in e.text for u in unsaid) or ":" in e.text):
            asking.dropped(e, f"{asking.dialect.title} cannot say {e.text}")
        elif "?" in e.text and clauses_written:
            asking.dropped(e, f"{e.text} cannot stand beside another dependency")
        else:
            clauses_written.append(_PLACEHOLDER.sub(lambda hit: asking.context.ids.get(hit[1], hit[0]), e.text))
    return ",".join(clauses_written)


#: How Slurm says that each element of an array waits for the one of the same index of another array.
CORRESPONDING: Final = "aftercorr:"


def corresponding(asking: Asking, e: Entry) -> str:
    """The arrays of ``aftercorr:1:2`` for the target, parted by commas; empty where one of them has no plain id."""
    arrays = e.text.removeprefix(CORRESPONDING).split(":")
    if not all(re.fullmatch(r"[\w.-]+", array_id, re.ASCII) for array_id in arrays):
        return ""
    e.used = True
    e.understood |= {"name", "type"}
    for array_id in arrays if asking.source != asking.dialect.name else ():
        if array_id not in asking.context.ids:
            asking.note(SITE, e, f"{array_id} is a job of another system; @JOBID:{array_id}@ stands for its successor")
    if asking.source != asking.dialect.name:
        waits = "the end of each element, not for its success" if asking.dialect.name == "sge" else \
            "the success of each element"
        asking.note(APPROXIMATED, e, f"{asking.dialect.title} waits for {waits}")
        arrays = [asking.context.ids.get(array_id) or f"@JOBID:{array_id}@" for array_id in arrays]
    return ",".join(arrays)


def foreign_id(asking: Asking, e: Entry) -> str:
    """The id of a dependency for the target: from the id map, else ``@JOBID:id@``, which is told."""
    text = _id_alone(e.text)
    new_id = asking.context.ids.get(_PLACEHOLDER.sub(r"\1", text) if "@" in text else text)
    if new_id is not None or text.startswith("@JOBID:") or asking.source == asking.dialect.name:
        return new_id or e.text
    asking.note(SITE, e, f"{text} is an id of another system; @JOBID:{text}@ stands for its successor")
    return f"@JOBID:{text}@"


def _id_alone(text: str) -> str:
    """The id of a job without the server that PBS asks for it."""
    at_server = _AT_SERVER.fullmatch(text)
    return text if at_server is None else at_server["id"]
