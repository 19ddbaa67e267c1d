"""The text of a document: encodings, what is refused before any parser sees it, and lines as findings show them.

Nothing here needs a parser, so that formats that are no XML do without one.
"""

from __future__ import annotations

import codecs
import re
from typing import Final

from sssjob.errors import RejectedError
from sssjob.findings import Findings
from sssjob.limits import LIMITS, Limits

__all__ = ["LEFT", "PACKED", "character_set", "clean_bytes", "excerpt", "is_json", "line_of", "long_tag", "refusal",
           "text_bytes"]

#: Characters kept left of a place in a line that is too long to be shown whole.
LEFT: Final = 60
#: What a file is compressed with -> its first bytes.
PACKED: Final = {"gzip": b"\x1f\x8b", "bzip2": b"BZh", "xz": b"\xfd7zXZ\0", "zstd": b"\x28\xb5\x2f\xfd"}
_LONG: Final = 400
_ALLOWED: Final = re.compile(r"utf-?8|us-ascii|ascii|utf-?16|iso-8859-\d{1,2}|latin-?1|(windows|cp)-?125\d", re.I)
#: Nothing is copied for it: where a copy of 64 KB is freed, memory goes back to the system that the parser needs next.
_SOMETHING: Final = re.compile(rb"\S")
_DECLARATION: Final = re.compile(rb"<\?xml\s[^>]*?\?>")
_DECLARED: Final = re.compile(rb"""encoding\s*=\s*["']([A-Za-z0-9._:-]+)["']""")
_PROLOG: Final = re.compile(rb"\s+|<\?.*?\?>|<!--.*?-->", re.S)
_LOOK: Final = 1000         # bytes in which a JSON object has to begin


def refusal(findings: Findings, rule: str, message: str, *, line: int = 0, column: int = 0, hint: str = "",
            excerpt: str = "") -> RejectedError:
    """The error to raise for a document that cannot be read, its finding told."""
    findings.add(rule, "", message, severity="error", line=line, column=column, hint=hint, excerpt=excerpt)
    return RejectedError(list(findings))


def _check_doctype(data: bytes, at: int, findings: Findings) -> None:
    while (skipped := _PROLOG.match(data, at)) is not None:
        at = skipped.end()
    if data[at:at + 9].upper() == b"<!DOCTYPE":
        line = data.count(b"\n", 0, at) + 1
        column = at - (data.rfind(b"\n", 0, at) + 1) + 1
        raise refusal(findings, "SSS102", "a document type declaration is not accepted", line=line, column=column,
                      hint="delete the DOCTYPE; job objects need no entities")


def clean_bytes(data: bytes, findings: Findings, limits: Limits = LIMITS, *, whole: bool = True) -> bytes:
    """The document in an encoding that is accepted, UTF-16 brought to UTF-8; raises RejectedError otherwise.

    Refuses by name: no text at all, compressed data, UTF-32, UTF-7, EBCDIC, UTF-16 without a byte order mark, and
    any DOCTYPE. whole: False for the first piece of a stream, which may end inside a character.
    """
    if len(data) > limits.document_bytes:
        raise refusal(findings, "SSS110", f"the document has {len(data)} bytes, more than the limit document_bytes "
                      f"({limits.document_bytes})", hint="read it as a stream")
    start = data[:4]
    packed = next((name for name, mark in PACKED.items() if data.startswith(mark)), None)
    if packed is not None:
        raise refusal(findings, "SSS103", f"the input is compressed ({packed})", hint="unpack it first")
    if start in (b"\xff\xfe\0\0", b"\0\0\xfe\xff") or start in (b"<\0\0\0", b"\0\0\0<"):
        raise refusal(findings, "SSS103", "encoding UTF-32 is not accepted")
    if start == b"\x4c\x6f\xa7\x94":
        raise refusal(findings, "SSS103", "encoding EBCDIC is not accepted")
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        data = _from_utf16(data, findings, whole)
    elif start in (b"<\0?\0", b"\0<\0?") or start[:2] in (b"<\0", b"\0<"):
        raise refusal(findings, "SSS103", "UTF-16 without a byte order mark is not accepted")
    elif b"<?xml" in data[:256]:
        _check_declared(data[:4096], findings)
    if whole and _SOMETHING.search(data) is None:
        raise refusal(findings, "SSS109", "the input is empty", line=1)
    _check_doctype(data, 3 if data.startswith(b"\xef\xbb\xbf") else 0, findings)
    return data


def _from_utf16(data: bytes, findings: Findings, whole: bool) -> bytes:
    try:
        text = codecs.getincrementaldecoder("utf-16")().decode(data, whole)
    except UnicodeDecodeError as error:
        raise refusal(findings, "SSS103", f"not valid UTF-16: {error.reason} at byte {error.start}") from None
    return _DECLARATION.sub(lambda m: b" " * len(m.group()), text.encode("utf-8", "surrogatepass"), count=1)


def text_bytes(data: bytes) -> bytes:
    """The bytes of a document that was read, in an encoding that holds ASCII as it is: UTF-16 becomes UTF-8."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace").encode("utf-8", "replace")
    return data


def character_set(data: bytes) -> str:
    """The name of the encoding that a document declares, as Python knows it; UTF-8 where it declares none."""
    declaration = _DECLARATION.match(data[:1_000].removeprefix(codecs.BOM_UTF8).lstrip())
    declared = declaration and _DECLARED.search(declaration.group())
    name = declared.group(1).decode("ascii") if declared else "utf-8"
    try:
        return "utf-8" if name.lower().startswith("utf") else codecs.lookup(name).name
    except LookupError:
        return "utf-8"


def _check_declared(data: bytes, findings: Findings) -> None:
    declaration = _DECLARATION.match(data.lstrip())
    declared = declaration and _DECLARED.search(declaration.group())
    if not declared:
        return
    name = declared.group(1).decode("ascii")
    if not _ALLOWED.fullmatch(name):
        raise refusal(findings, "SSS103", f"encoding {name} is not accepted", line=1,
                      hint="accepted: UTF-8, UTF-16, US-ASCII, ISO-8859-x, windows-125x")
    if name.lower().replace("-", "") == "utf16":
        raise refusal(findings, "SSS103", "declared as UTF-16, but it is not (no byte order mark)", line=1)


def long_tag(data: bytes, limits: Limits = LIMITS) -> bool:
    """Whether the text may hold a tag with more attributes than the limit.

    ``<`` may not stand in a tag, and so many attributes take at least five bytes each: a look at every half of that
    length tells, a thousand times faster than looking at every element. Listing the attributes of such an element
    takes libxml2 a time that grows with their square.
    """
    step = limits.attributes * 5 // 2
    return any(data.find(b"<", at, at + step) < 0 for at in range(0, len(data) - step, step))


def is_json(data: bytes) -> bool:
    """Whether a text begins like a JSON object, which no XML does."""
    return data[:_LOOK].removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"{")


def excerpt(line: str, column: int) -> str:
    """A source line as findings carry it; of a long one what is around the column: ``…`` and LEFT characters of it
    come first then, unless the line starts there."""
    if len(line) <= _LONG:
        return line
    at = max(0, column - 1 - LEFT)
    return ("…" if at else "") + line[at:at + _LONG] + ("…" if at + _LONG < len(line) else "")


def line_of(data: bytes, number: int, column: int) -> str:
    """The excerpt of a line; empty when there is none."""
    at = 0
    for _ in range(number - 1):
        at = data.find(b"\n", at) + 1
        if at == 0:
            return ""
    end = data.find(b"\n", at)
    most = at + 4 * (column + _LONG)        # bytes
    return excerpt(data[at:most if end < 0 else min(end, most)].decode("utf-8", "replace").rstrip("\r"), column)
