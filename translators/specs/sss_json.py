"""Format ``sss-json``: the JSON twin of the job object."""

from __future__ import annotations

from sssjob.model import Document
from sssjob.translators.base import ReadContext, Translator, WriteContext
from sssjob.twin import from_json, to_json

__all__ = ["TRANSLATOR", "read", "write"]


def read(data: bytes, context: ReadContext) -> Document:
    """The document that the JSON holds. Raises RejectedError when nothing can be built from it."""
    made = from_json(data, path=context.path, limits=context.limits, policy=context.policy)
    if made.findings is not None:
        context.findings.extend(made.findings)
    made.findings = context.findings
    return made


def write(document: Document, context: WriteContext) -> str:
    """The JSON of a document; option ``indent``: blanks a level, 0 for one line."""
    indent = int(context.options.get("indent", "2"))
    return to_json(document, indent=indent or None)


TRANSLATOR = Translator("sss-json", "SSS job object 3.1.0, JSON twin", "document", read, write, (".json",))
