"""Values of HTCondor's submit commands with a grammar of their own: arguments, environment, requirements.

Source: condor_submit(1); both syntaxes of arguments and environment were seen with the parser of the 23.0 bindings.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final


def _new(text: str) -> list[str]:
    """Words of the new syntax, in double quotes as a whole. ValueError."""
    inner = text[1:-1]
    if re.search(r'(?<!")(?:"")*"(?!")', inner):
        raise ValueError("has a double quote that is not doubled")
    inner = inner.replace('""', '"')
    if "'" not in inner:
        return inner.split()
    words: list[str] = []
    word: list[str] | None = None
    at, quoted = 0, False
    while at < len(inner):
        c = inner[at]
        if c == "'" and quoted and inner[at + 1:at + 2] == "'":
            at += 1
            assert word is not None
            word.append("'")
        elif c == "'":
            quoted, word = not quoted, word or []
        elif c.isspace() and not quoted:
            if word is not None:
                words.append("".join(word))
            word = None
        else:
            word = word or []
            word.append(c)
        at += 1
    if quoted:
        raise ValueError("has a single quote that is not closed")
    return words if word is None else [*words, "".join(word)]


def _is_new(text: str) -> bool:
    return len(text) > 1 and text[0] == text[-1] == '"'


def read_arguments(text: str) -> list[str]:
    """The words of ``arguments``. ValueError for a malformed value."""
    if _is_new(text):
        return _new(text)
    if re.search(r'(?<!\\)"', text):
        raise ValueError("has a double quote inside; the old syntax wants a backslash before it")
    return [word.replace('\\"', '"') for word in text.split()]


def write_arguments(words: list[str], raw: Callable[[str], str]) -> str:
    """The value of ``arguments``; raw: a text with its dollar signs as they should be."""
    if all(re.fullmatch(r"[^\s'\"\\]+", word) for word in words):
        return " ".join(map(raw, words))
    return '"' + " ".join(_quoted(raw(word)) for word in words) + '"'


_TO_QUOTE: Final = re.compile(r"[\s']")


def _quoted(word: str) -> str:
    text = word.replace('"', '""')
    return "'" + text.replace("'", "''") + "'" if not word or _TO_QUOTE.search(word) else text


def read_environment(text: str) -> dict[str, str]:
    """The variables of ``environment``. ValueError for a malformed value."""
    words = _new(text) if _is_new(text) else [part for part in text.split(";") if part.strip()]
    variables: dict[str, str] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not re.fullmatch(r"[A-Za-z_]\w*", name.strip(), re.ASCII):
            raise ValueError(f"{word[:60]!r} is no NAME=VALUE")
        variables[name.strip()] = value
    return variables


def write_environment(variables: dict[str, str], raw: Callable[[str], str]) -> str:
    """The value of ``environment``, in the new syntax."""
    return '"' + " ".join(_quoted(f"{name}={raw(value)}") for name, value in variables.items()) + '"'


#: Attribute of a machine -> property.
_PLACES: Final = {"opsys": "OperatingSystem", "arch": "Architecture", "machine": "Node", "memory": "Memory",
                  "cpus": "Processors"}
_COMPARISON: Final = re.compile(
    r"(?:target\.)?(\w+)\s*(==|!=|>=|<=|=\?=|=!=)\s*(\"[^\"\\]*\"|\d+|true|false)", re.IGNORECASE)
_NAMES: Final = ("OperatingSystem", "Architecture", "Node")
_BARE: Final = re.compile(r"(?:target\.)?([A-Za-z_]\w*)", re.IGNORECASE)


def read_requirements(text: str) -> tuple[list[tuple[str, str, str]], list[str]]:
    """(tag, op, value) of the conditions that are understood, and the others, all of which are demanded."""
    conditions: list[tuple[str, str, str]] = []
    others: list[str] = []
    for term in _terms(text):
        read_condition = condition(term)
        if read_condition is None:
            others.append(term)
        else:
            conditions.append(read_condition)
    return conditions, others


def condition(term: str) -> tuple[str, str, str] | None:
    """(tag, op, value) of one condition; None where it is not understood."""
    hit = _COMPARISON.fullmatch(term)
    if hit is None:
        bare = _BARE.fullmatch(term)
        return None if bare is None or bare[1].lower() in ("true", "false") else ("Feature", "EQ", bare[1])
    name, sign, value = hit.groups()
    tag = _PLACES.get(name.lower())
    if value.lower() == "true":
        return "Feature", "EQ" if sign in ("==", "=?=") else "NE", name
    if tag is None:
        return None
    if value.startswith('"') and tag in _NAMES and sign in ("==", "!=", "=?=", "=!="):
        return (tag, "NE" if "!" in sign else "EQ", value[1:-1]) if value != '""' else None
    return (tag, "GE", value) if value.isdigit() and sign == ">=" and tag in ("Memory", "Processors") else None


_SIGN: Final = re.compile(r'&&|\|\||["()\[\]{}\\]')
_BRACKET: Final = re.compile('["()]')


def _terms(text: str) -> list[str]:
    """The parts of an expression at ``&&`` outside of brackets and quotes; brackets around one go."""
    text = text.strip()
    while text.startswith("(") and _end(text) == len(text) - 1:
        text = text[1:-1].strip()
    parts, depth, quoted, begin, at = [], 0, False, 0, 0
    while (hit := _SIGN.search(text, at)) is not None:
        sign, at = hit[0], hit.end()
        if sign == '"':
            quoted = not quoted
        elif sign == "\\":
            at += quoted            # the next character means itself
        elif not quoted:
            depth += (sign in "([{") - (sign in ")]}")
            if not depth and sign == "||":
                return [text]
            if not depth and sign == "&&":
                parts.append(text[begin:hit.start()])
                begin = at
    parts.append(text[begin:])
    stripped = [p.strip() for p in parts if p.strip()]
    if len(stripped) > 1:
        return [inner for p in stripped for inner in _alone(p)]
    return stripped


def _alone(part: str) -> list[str]:
    """A part without the brackets around it, where it is one simple condition."""
    inner = part
    while inner.startswith("(") and _end(inner) == len(inner) - 1:
        inner = inner[1:-1].strip()
    return [inner if _COMPARISON.fullmatch(inner) or _BARE.fullmatch(inner) else part]


def _end(text: str) -> int:
    """Where the bracket at the beginning closes; -1: nowhere."""
    depth, quoted = 0, False
    for hit in _BRACKET.finditer(text):
        if hit[0] == '"':
            quoted = not quoted
        elif not quoted:
            depth += 1 if hit[0] == "(" else -1
            if not depth:
                return hit.start()
    return -1
