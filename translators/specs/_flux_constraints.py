"""Constraints of Flux as objects (RFC 31) and as text (RFC 35), each as the other."""

from __future__ import annotations

import re
from typing import Any, Final

_TOKEN: Final = re.compile(r"\s+|(?P<or>\|\|?)|(?P<and>&&?)|(?P<open>\()|(?P<close>\))|"
                           r"(?P<term>(?:[^\s|&()\"']|\"[^\"]*\"|'[^']*')+)")
_OPERATORS: Final = {"": "properties", "properties": "properties", "host": "hostlist", "hosts": "hostlist",
                     "hostlist": "hostlist", "rank": "ranks", "ranks": "ranks"}
_SHORT: Final = {"properties": "", "hostlist": "host:", "ranks": "rank:"}
_WORDS: Final = {"and": "and", "or": "or", "not": "not"}
#: Brackets within one another.
_DEPTH: Final = 50
_PLAIN: Final = re.compile(r"[^\s|&()\"'\\:,-][^\s|&()\"'\\:]*")


def as_object(text: str) -> dict[str, Any]:
    """The object that a text stands for. ValueError when it is malformed."""
    tokens: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"a quote is not closed at character {at + 1}")
        kind = match.lastgroup
        if kind is not None:
            tokens.append((_WORDS.get(match[0], kind), match[0]))
        at = match.end()
    parser = _Parser(tokens)
    expression = parser.either(0)
    if parser.at < len(tokens):
        raise ValueError(f"{tokens[parser.at][1]!r} stands where an operator should")
    return expression


class _Parser:
    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self.tokens, self.at = tokens, 0

    def kind(self) -> str:
        """The kind of the next token; empty at the end."""
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def either(self, depth: int) -> dict[str, Any]:
        """Parts joined by or. depth: brackets that are open."""
        parts = [self.both(depth)]
        while self.kind() == "or":
            self.at += 1
            parts.append(self.both(depth))
        return parts[0] if len(parts) == 1 else {"or": parts}

    def both(self, depth: int) -> dict[str, Any]:
        """Parts joined by and, or just put side by side."""
        parts = [self.one(depth)]
        while self.kind() in ("and", "term", "open", "not"):
            if self.kind() == "and":
                self.at += 1
            parts.append(self.one(depth))
        merged: list[dict[str, Any]] = []
        for part in parts:
            if merged and part.keys() == merged[-1].keys() == {"properties"}:
                merged[-1] = {"properties": merged[-1]["properties"] + part["properties"]}
            else:
                merged.append(part)
        return merged[0] if len(merged) == 1 else {"and": merged}

    def one(self, depth: int) -> dict[str, Any]:
        """One term, its negation, or an expression in brackets. Raises ValueError."""
        kind = self.kind()
        if depth > _DEPTH:
            raise ValueError(f"more than {_DEPTH} brackets within one another")
        if kind == "not":
            self.at += 1
            return {"not": [self.one(depth + 1)]}
        if kind == "open":
            self.at += 1
            expression = self.either(depth + 1)
            if self.kind() != "close":
                raise ValueError("a bracket is not closed")
            self.at += 1
            return expression
        if kind != "term":
            raise ValueError("a term is missing")
        self.at += 1
        return _term(self.tokens[self.at - 1][1])


def _term(text: str) -> dict[str, Any]:
    negated, bare = text.startswith("-"), text.removeprefix("-")
    name, colon, value = bare.partition(":")
    operator = _OPERATORS.get(name if colon else "")
    if operator is None:
        raise ValueError(f"{name!r} is no operator")
    operand = re.sub(r"[\"']", "", value if colon else bare)
    if not operand:
        raise ValueError("a term is empty")
    if operator == "properties":
        words = operand.split(",")
        terms = [f"^{w.removeprefix('-')}" if w.startswith("-") or (negated and n == 0) else w
                 for n, w in enumerate(words)]
        return {"properties": terms}
    value_list = {operator: [operand]}
    return {"not": [value_list]} if negated else value_list


def as_text(value: object, depth: int = 0, outer: str = "and") -> str:
    """The text of an object; outer: the operator that it is an operand of. ValueError when it has no text, or is none
    of RFC 31."""
    if depth > _DEPTH or not isinstance(value, dict) or len(value) != 1:
        raise ValueError("is no constraint with one operator")
    (operator, operands), = value.items()
    if not isinstance(operands, list) or not operands:
        raise ValueError(f"{operator} has no list of operands")
    if operator in ("and", "or"):
        parts = [as_text(o, depth + 1, operator) for o in operands]
        result = ("&" if operator == "and" else "|").join(parts)
        return f"({result})" if depth and len(parts) > 1 and operator != outer else result
    if operator == "not":
        return "&".join(_negated(o, depth + 1) for o in operands)
    if operator not in _SHORT or not all(isinstance(o, str) for o in operands):
        raise ValueError(f"{operator!r} is no operator")
    texts = [f"-{o[1:]}" if operator == "properties" and o.startswith("^") else o for o in operands]
    if not all(_PLAIN.fullmatch(t.removeprefix("-")) for t in texts):
        raise ValueError("an operand would need quotes")
    if operator == "properties":
        result = "&".join(texts)
        return f"({result})" if len(texts) > 1 and outer != "and" else result
    return _SHORT[operator] + ",".join(texts)


def _negated(value: object, depth: int) -> str:
    text = as_text(value, depth, "not")
    if isinstance(value, dict) and value.keys() <= {"hostlist", "ranks"}:
        return f"-{text}"
    return f"not ({text})" if not text.startswith("(") else f"not {text}"
