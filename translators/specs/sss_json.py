"""Format ``sss-json``: the JSON twin of the job object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from sssjob.document.model import Document
from sssjob.errors import UsageError
from sssjob.translators.base import ReadContext, Translator, WriteContext
from sssjob.translators.recognise import by_keys
from sssjob.xml.twin import ROOTS, from_json, to_json

if TYPE_CHECKING:
    from sssjob.validation.large import Large

__all__ = ["TRANSLATOR", "read", "write"]

_INDENT: Final = 16


def read(data: bytes, context: ReadContext) -> Document:
    """The document that the JSON holds. Raises RejectedError when nothing can be built from it."""
    document = from_json(data, path=context.path, limits=context.limits, policy=context.policy)
    if document.findings is not None:
        context.findings.extend(document.findings)
    document.findings = context.findings
    return document


def write(document: Document, context: WriteContext) -> str:
    """The JSON of a document; option ``indent``: blanks a level, 0 for one line. Raises UsageError."""
    return to_json(document, indent=_indent(context))


def _pieces(large: Large, context: WriteContext) -> Iterator[str]:
    from sssjob.validation._group_writing import json_pieces

    return json_pieces(large, indent=_indent(context))


def _indent(context: WriteContext) -> int | None:
    indent = context.options.get("indent", "2")
    if not (indent.isdecimal() and indent.isascii() and len(indent) < 3 and int(indent) <= _INDENT):
        raise UsageError(f"indent is a number from 0 to {_INDENT}, not {indent!r}")
    return int(indent) or None


TRANSLATOR = Translator("sss-json", "SSS job object 3.1.0, JSON twin", "document", read, write, (".json",),
                        lambda sample: by_keys(sample, frozenset(), frozenset(ROOTS)), pieces=_pieces)
