"""From text to typed values and back, by the rows of the vocabulary: shared by the XML reader and the JSON twin."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Final

from sssjob.document import lexical
from sssjob.document.leaf import Value
from sssjob.document.units import byte_factor
from sssjob.document.vocabulary import Attribute, Element

__all__ = ["attribute_text", "invisible", "known_unit", "resource_limit", "typed", "writable"]

#: What is meant as an amount of Network; anything else, 10GigE too, is the name of an adapter.
_AMOUNT: Final = re.compile(r"[+-]?\.?[0-9][0-9.,]*(?:[eE][+-]?[0-9]+)?", re.ASCII)
#: The text of a ResourceLimit; no limit that a system keeps has more digits.
_LIMIT: Final = re.compile(r"\s*(?:([0-9]{1,18})(?:\.0*)?|unlimited)\s*", re.ASCII | re.IGNORECASE)
_STRICT: Final[dict[str, Callable[[str], Value]]] = {
    "Integer": lexical.read_integer, "Float": lexical.read_float, "Boolean": lexical.read_boolean,
    "DateTime": lexical.read_datetime, "Duration": lexical.read_duration,
}
_LIBERAL: Final[dict[str, Callable[[str], tuple[Value, str | None]]]] = {
    "Integer": lexical.liberal_integer, "Float": lexical.liberal_float, "Boolean": lexical.liberal_boolean,
    "DateTime": lexical.liberal_datetime, "Duration": lexical.liberal_duration,
}


def typed(row: Element, text: str, liberal: bool) -> tuple[Value, str | None]:
    """(value, what was understood although it is another form); LexicalError when it is not of the type.

    Strings lose outer white space unless the row is verbatim.
    """
    if row.type == "String":
        return (text if row.verbatim else text.strip()), None
    if row.name == "Network" and _AMOUNT.fullmatch(text.strip()) is None:
        return text.strip(), None           # the adapter type of Table 2 under the same name
    if not liberal:
        return _STRICT[row.type](text), None
    try:
        return _STRICT[row.type](text), None
    except ValueError:
        return _LIBERAL[row.type](text)


def attribute_text(row: Attribute, text: str, liberal: bool) -> tuple[str, str | None, bool]:
    """(canonical text, what was repaired, whether a closed list knows the value) of an attribute.

    LexicalError when it is not of its type.
    """
    if row.values:
        return _listed(row, text, liberal)
    if row.type == "String":
        return text, None, True
    if not liberal:
        word = text.strip()
        if row.type == "Boolean" and word in ("True", "False"):         # as the prose of the specification spells it
            return word.lower(), f"{word} taken as {word.lower()}", True
        _STRICT[row.type](text)
        return text.strip(), None, True
    value, note = _LIBERAL[row.type](text)
    canonical = {True: "true", False: "false"}.get(value, text.strip()) if isinstance(value, bool) else text.strip()
    return (str(value) if note and not isinstance(value, bool) else str(canonical)), note, True


def _listed(row: Attribute, text: str, liberal: bool) -> tuple[str, str | None, bool]:
    parts = text.split(",") if row.is_list else [text]
    out, note, valid = [], None, True
    spellings = {v.lower(): v for v in row.values} | {a.lower(): v for a, v in row.aliases}
    for part in parts:
        word = part.strip()
        if word in row.values:
            out.append(word)
            continue
        canonical = spellings.get(word.lower()) if liberal else None
        if canonical is not None:
            note = f"{word} read as {canonical}"
            out.append(canonical)
        else:
            valid = valid and (row.open_list or (row.is_list and not word))
            out.append(word)
    return ",".join(out), note, valid


def resource_limit(text: str) -> int | float | None:
    """What a ResourceLimit comes to: bytes, seconds or a count, by its name; infinity for ``unlimited``; None for what
    is neither, which nobody honours. Source: section 5.1, whose one example is a bare number."""
    match = _LIMIT.fullmatch(text)
    if match is None:
        return None
    return int(match[1]) if match[1] else math.inf


def known_unit(unit: str) -> bool:
    """Whether a unit is one of bytes (Appendix A)."""
    try:
        byte_factor(unit)
    except LookupError:
        return False
    return True


def invisible(text: str) -> str | None:
    """The first character that does not show, as ``U+XXXX``; None when all do."""
    if text.isprintable():
        return None
    return next(f"U+{ord(c):04X}" for c in text if not c.isprintable())


def unlike(text: str) -> str:
    """What is to be said behind a name of another script than ASCII, whose letters may look like those of a known one:
    the letter and its code point, ``U+0408``; nothing for names of ASCII."""
    strange = next((c for c in text if not c.isascii()), None)
    return "" if strange is None else f", in which {strange} is U+{ord(strange):04X}"


def writable(text: str) -> bool:
    """Whether XML 1.0 can hold the text."""
    return text.isprintable() or not any(
        (c < " " and c not in "\t\n\r") or "\ud800" <= c <= "\udfff" or c in "\ufffe\uffff" for c in text)


