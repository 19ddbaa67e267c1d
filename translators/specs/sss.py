"""Format ``sss``: the job object itself, in XML."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from sssjob.document.model import Document
from sssjob.translators.base import ReadContext, Translator, WriteContext
from sssjob.translators.recognise import Fit, Sample, by_root
from sssjob.xml.reader import read_document

if TYPE_CHECKING:
    from sssjob.validation.large import Large

__all__ = ["TRANSLATOR", "read", "write"]


def read(data: bytes, context: ReadContext) -> Document:
    """The document that the XML holds. Raises RejectedError when nothing can be built from it."""
    document = read_document(data, profile=context.profile, path=context.path, limits=context.limits,
                             policy=context.policy)
    if document.findings is not None:
        context.findings.extend(document.findings)
    document.findings = context.findings
    return document


def write(document: Document, context: WriteContext) -> str:
    """The XML of a document in the profile of the context."""
    from sssjob.xml.writer import write_document

    return write_document(document, profile=context.profile, findings=context.findings, policy=context.policy)


def _pieces(large: Large, context: WriteContext) -> Iterator[str]:
    from sssjob.validation._group_writing import xml_pieces

    return xml_pieces(large, profile=context.profile, findings=context.findings, policy=context.policy)


_ROOTS: Final = frozenset(("JobGroup", "Job", "TaskGroup", "Requested", "Delivered", "Request", "Response",
                           "Envelope", "job"))


def _recognise(sample: Sample) -> Fit | None:
    """By the root: the UsageRecord of others is in a namespace."""
    return by_root(sample, _ROOTS) or by_root(sample, frozenset(("UsageRecord",)), frozenset(("",)))


TRANSLATOR = Translator("sss", "SSS job object 3.1.0 (XML)", "document", read, write, (".xml", ".sss"), _recognise,
                        pieces=_pieces)
