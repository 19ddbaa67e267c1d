"""Records to text job by job, so that neither side is ever whole in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import BinaryIO, Final

from sssjob.document.model import Job, JobGroup
from sssjob.findings import Findings
from sssjob.translators.base import ReadContext, Translator, WriteContext
from sssjob.translators.records._sss import PlainJobs
from sssjob.translators.records.base import RecordTranslator, Stream, group_id, prop
from sssjob.xml.profiles import profile
from sssjob.xml.writer import write_document

__all__ = ["opened", "pieces", "streams", "sums", "texts"]

_BATCH: Final = 256     # jobs written at once
_ENDS: Final = ("<JobGroup>\n", "</JobGroup>\n")
_STATE: Final = "\n    <State"
_COMPLETED: Final = f"{_STATE}>Completed</State>\n"


def sums(reader: Translator, writer: Translator) -> bool:
    """Whether what is read are sums over jobs, and what is written a table of them."""
    return isinstance(reader, RecordTranslator) and reader.sums is not None and isinstance(
        writer, RecordTranslator) and writer.rows is not None


def streams(reader: Translator, writer: Translator, context: WriteContext) -> bool:
    """Whether the one can be read and the other written job by job."""
    if not isinstance(reader, RecordTranslator) or reader.stream is None:
        return False
    if writer.name == "sss":
        return "JobGroup" not in profile(context.profile).refused
    return isinstance(writer, RecordTranslator) and (writer.texts is not None or writer.blobs is not None)


def opened(reader: Translator, file: BinaryIO, context: ReadContext, writer: Translator | None = None) -> Stream:
    """The jobs of a stream of records, for a table the sums; ask ``streams`` before."""
    assert isinstance(reader, RecordTranslator) and reader.stream is not None
    if reader.sums is not None and writer is not None and sums(reader, writer):
        return reader.sums(file, context)
    return reader.stream(file, context)


def pieces(jobs: Iterable[Job], writer: Translator, context: WriteContext, path: str, reader: Translator | None = None,
           ) -> Iterator[str] | Iterator[bytes]:
    """As ``texts``, and the pieces of what is no text. reader: of sums, whose table they go into."""
    if isinstance(reader, RecordTranslator) and isinstance(writer, RecordTranslator) and reader.totals is not None and \
            writer.rows is not None:
        return writer.rows(jobs, context, reader.totals)
    if isinstance(writer, RecordTranslator) and writer.blobs:
        return writer.blobs(jobs, context)
    return texts(jobs, writer, context, path)


def texts(jobs: Iterable[Job], writer: Translator, context: WriteContext, path: str) -> Iterator[str]:
    """The pieces of text of jobs in the format of the writer; path: the source, which names the group."""
    if isinstance(writer, RecordTranslator) and writer.texts:
        return writer.texts(jobs, context)
    return _sss(iter(jobs), context, path)


def _sss(jobs: Iterator[Job], context: WriteContext, path: str) -> Iterator[str]:
    """A JobGroup; its State comes last, when it is known."""
    start, end = _ENDS
    done: bool | None = None
    plain = PlainJobs() if context.profile == "3.1" else None
    out, odd, reported = [start + _inner([], context, path)], list[Job](), set[tuple[str, str]]()
    for number, job in enumerate(jobs, 1):
        text = None if plain is None else plain.text(job)
        done = done is not False and _completed(job, text)
        if text is None:
            odd.append(job)
        else:
            if odd:
                out.append(_odd(odd, context, reported))
                odd = []
            out.append(text)
        if not number % _BATCH:
            yield "".join(out) + (_odd(odd, context, reported) if odd else "")
            out, odd = [], []
    yield "".join(out) + (_odd(odd, context, reported) if odd else "") + (
        "  <State>Completed</State>\n" if done and context.profile == "3.1" else "") + end


def _completed(job: Job, text: str | None) -> bool:
    """Whether the State of a job says so. text: its element, where it is plain."""
    at = -1 if text is None else text.find(_STATE)
    return (at >= 0 and text is not None and text.startswith(_COMPLETED, at)) or job.value("State") == "Completed"


def _odd(jobs: list[Job], context: WriteContext, reported: set[tuple[str, str]]) -> str:
    """The elements of jobs that are not plain. reported: what was told of the stream already and is not told again."""
    findings = Findings(context.findings.file, context.findings.limits)
    text = _inner(jobs, replace(context, findings=findings))
    for f in findings:
        if f.rejects or (f.rule, f.subject) not in reported:
            reported.add((f.rule, f.subject))
            context.findings.add(f.rule, f.subject, f.message, severity=f.severity, line=f.line, path=f.path,
                                 hint=f.hint)
    context.findings.overflow += findings.overflow
    return text


def _inner(jobs: list[Job], context: WriteContext, path: str | None = None) -> str:
    """What stands inside the JobGroup of some jobs, or of none with the Id of a group."""
    group = JobGroup(jobs if path is None else [prop("Id", group_id(path))])
    text = write_document(group, profile=context.profile, findings=context.findings, policy=context.policy)
    start, end = text.index("\n") + 1, text.rstrip().rfind("\n") + 1
    return text[start:end]
