"""Records to text job by job, so that neither side is ever whole in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import BinaryIO, Final

from sssjob.model import Job, JobGroup
from sssjob.profiles import profile
from sssjob.translators.base import ReadContext, Translator, WriteContext
from sssjob.translators.records.base import RecordTranslator, Stream, group_id, prop
from sssjob.writer import write_document

__all__ = ["opened", "pieces", "streams", "texts"]

_BATCH: Final = 256     # jobs written at once
_ENDS: Final = ("<JobGroup>\n", "</JobGroup>\n")


def streams(reader: Translator, writer: Translator, context: WriteContext) -> bool:
    """Whether the one can be read and the other written job by job."""
    if not isinstance(reader, RecordTranslator) or reader.stream is None:
        return False
    if writer.name == "sss":
        return "JobGroup" not in profile(context.profile).refused
    return isinstance(writer, RecordTranslator) and (writer.texts is not None or writer.blobs is not None)


def opened(reader: Translator, file: BinaryIO, context: ReadContext) -> Stream:
    """The jobs of a stream of records; ask ``streams`` before."""
    assert isinstance(reader, RecordTranslator) and reader.stream is not None
    return reader.stream(file, context)


def pieces(jobs: Iterable[Job], writer: Translator, context: WriteContext, path: str,
           ) -> Iterator[str] | Iterator[bytes]:
    """As ``texts``, and the pieces of what is no text."""
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
    head = start + _inner([], context, path)
    done = None
    while batch := list(islice(jobs, _BATCH)):
        yield head + _inner(batch, context)
        head = ""
        done = done is not False and all(job.value("State") == "Completed" for job in batch)
    yield head + ("  <State>Completed</State>\n" if done and context.profile == "3.1" else "") + end


def _inner(jobs: list[Job], context: WriteContext, path: str | None = None) -> str:
    """What stands inside the JobGroup of some jobs, or of none with the Id of a group."""
    group = JobGroup(jobs if path is None else [prop("Id", group_id(path))])
    text = write_document(group, profile=context.profile, findings=context.findings, policy=context.policy)
    start, end = text.index("\n") + 1, text.rstrip().rfind("\n") + 1
    return text[start:end]
