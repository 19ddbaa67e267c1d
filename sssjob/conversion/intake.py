"""One way in: the text of any format becomes a document, and what is wrong with it is found alike for whoever asked.

``take`` reads a text whole. A JobGroup that is large is read by ``large`` part by part, with the same findings.
Commands and the functions of Python read with ``take`` and hold what they got against ``gate`` before they write,
price, promise, hold or run it. No file is opened and nothing is printed.
"""

from __future__ import annotations

import codecs
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Final

from sssjob.conversion.converting import AUTO, Conversion, Options, gate
from sssjob.errors import RejectedError
from sssjob.findings import Findings
from sssjob.limits import LIMITS, Limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from sssjob.conversion.site import Site
    from sssjob.document.model import Document
    from sssjob.findings import Policy
    from sssjob.translators.base import Translator
    from sssjob.translators.recognise import Sample
    from sssjob.validation.large import Large

__all__ = ["Taken", "format_of", "gate", "large", "take"]

_BEGINNING: Final = 1000        # bytes that show whether something is a text


@dataclass(frozen=True, slots=True)
class Taken:
    """A text that was read. findings: those of the reader; reader: its format; why: what it was recognised by, empty
    where the format was named; data: the text."""

    document: Document
    findings: Findings
    reader: Translator
    why: str
    data: bytes


def take(data: bytes, path: str = "-", *, source: str = AUTO, policy: Policy | None = None, profile: str = "liberal",
         site: Site | None = None, options: Options | None = None,
         preferred: Callable[[], str] = str) -> Taken:
    """Read a text of any format.

    source: the format, or ``auto``; policy, profile: as a document is read; site: what only the site knows; options:
    of the format, which are all to be ones that it has; preferred: as of ``recognise``.
    Raises RejectedError where no document can be built, UsageError for a format that is unknown, not recognised or
    one of several that fit, and for an option that the format does not have.
    """
    how = Conversion(source, "sss", policy, profile, options=options or Options(), site=site)
    from sssjob.translators.recognise import Sample

    sample = Sample(data, path)
    reader, why = format_of(sample, path, source, preferred)
    context = how.reading(reader, path, sample)
    document = how.read(reader, data, context)
    how.options.check(reader.name)
    return Taken(document, context.findings, reader, why, data)


def large(file: BinaryIO, path: str = "-", *, source: str = AUTO, policy: Policy | None = None,
          profile: str = "liberal", site: Site | None = None, checked: bool = True, limits: Limits = LIMITS
          ) -> Large | None:
    """A JobGroup in XML of more than ``limits.whole_bytes``, to be read part by part: it was read once, and ``checks``
    is what ``gate`` would find. None for all that is to be read whole.

    file: can be read again from its start; checked: without the gate if False. Raises RejectedError for a group that is
    too large to be read whole and cannot be read in parts.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if size <= limits.whole_bytes or source not in (AUTO, "sss"):
        return None
    if b"<" not in file.read(_BEGINNING):
        return None
    from sssjob.validation.large import Large, WholeError

    try:
        return Large.of(file, path, profile=profile, policy=policy, site=site, checked=checked, limits=limits)
    except WholeError as why:
        if why.findings and size > limits.document_bytes:
            raise RejectedError(why.findings) from None
        return None
    finally:
        file.seek(0)


def format_of(text: bytes | Sample, path: str = "-", source: str = AUTO, preferred: Callable[[], str] = str
              ) -> tuple[Translator, str]:
    """The format of a text and, where it was recognised, by what; of relatives the preferred one. XML, JSON and
    bytes that are no text, which nobody knows, are taken for documents: their readers can tell what is wrong with them,
    and where. Raises UsageError."""
    from sssjob.translators.recognise import NoFormatError, guess
    from sssjob.translators.registry import get

    if source != AUTO:
        return get(source), ""
    try:
        reader, fit = guess(text, path, preferred)
    except NoFormatError:
        ours = _looks_like_ours(text if isinstance(text, bytes) else text.data)
        if not ours:
            raise
        return get(ours), ""
    return reader, fit.why


def _looks_like_ours(data: bytes) -> str:
    """The form of a document that a text has at its first sign; empty where it has none."""
    begun = data[:_BEGINNING].removeprefix(b"\xef\xbb\xbf").lstrip()
    if begun.startswith(b"{"):
        return "sss-json"
    if not begun or begun.startswith(b"<") or b"\0" in begun:
        return "sss"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(begun)
    except UnicodeDecodeError:
        return "sss"
    return ""
