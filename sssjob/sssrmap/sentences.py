"""Requests as people type them: ``Query Job Where State=Running Get Id,State``.

The grammar, in which words of requests count in any case and ``'...'`` or ``"..."`` hold any text::

    request    = action object *("," object) *(clause)
    object     = name ["As" name]
    clause     = "Where" condition *(conj condition)
               | "Get" property *("," property)
               | "Set" name "=" value *("," name "=" value)
               | "Option" name ["=" value] *("," name ["=" value])
               | ("Limit" | "Offset") number
    condition  = *("(") path op value [units] *(")")
    conj       = "And" | "Or" | "AndNot" | "OrNot" | "And Not" | "Or Not"
    op         = "=" | "!=" | "<" | "<=" | ">" | ">=" | "~" (Match)
    property   = (path | getop "(" path ")") ["In" units] ["As" name]
    getop      = "Sort" | "Tros" | "Count" | "Sum" | "Average" | "Max" | "Min" | "GroupBy"

A path is a name or a path of XPath without blanks outside of its own quotes. Where there are several objects, it has
the name of its object and a point before it, and a value like that is a property of another object.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final, NamedTuple

from sssjob.errors import UsageError
from sssjob.findings import escape
from sssjob.limits import LIMITS
from sssjob.sssrmap.model import ACTIONS, CONJUNCTIONS, GET_OPS, Get, Object, Option, Part, Request, Set, Where

__all__ = ["request_of"]

_TOKEN: Final = re.compile(r"""
    \s*(?:(?P<text>'[^']*'|"[^"]*")
    |(?P<sign>!=|<=|>=|[=<>~(),])
    |(?P<word>(?:[^\s,()=<>!~'"\[\]]|\[(?:[^\]'"]|'[^']*'|"[^"]*")*\])+))""", re.VERBOSE)
_OPS: Final = {"=": "EQ", "!=": "NE", "<": "LT", "<=": "LE", ">": "GT", ">=": "GE", "~": "Match"}
_CLAUSES: Final = ("where", "get", "set", "option", "limit", "offset")
_TIES: Final = {conj.lower(): conj for conj in CONJUNCTIONS}
_ACTIONS: Final = {action.lower(): action for action in ACTIONS}
_GET_OPS: Final = {op.lower(): op for op in GET_OPS}


class _Token(NamedTuple):
    text: str
    kind: str           # text (quoted), sign, word, or end
    at: int


def request_of(text: str, actor: str) -> Request:
    """The Request that a text is. Raises UsageError, which names the place and what was expected there."""
    if len(text) > LIMITS.directive:
        raise UsageError(f"the request is longer than the limit directive ({LIMITS.directive} characters)")
    return _Parser(text).request(actor)


class _Parser:
    """Reads a request from its tokens."""

    def __init__(self, text: str) -> None:
        self.tokens: list[_Token] = []
        at = 0
        end = len(text.rstrip())
        while at < end:
            token = _TOKEN.match(text, at)
            if token is None or token.lastgroup is None:
                raise UsageError(f"the request is wrong at character {at + 1}: {escape(text[at:at + 20])!r}")
            kind = token.lastgroup
            self.tokens.append(_Token(token[kind][1:-1] if kind == "text" else token[kind], kind, token.start(kind)))
            at = token.end()
        self.tokens.append(_Token("", "end", len(text)))
        self.next = 0
        self.labels: list[str] = []         # of the objects, where there are several

    # -- tokens
    @property
    def token(self) -> _Token:
        """The token whose turn it is."""
        return self.tokens[self.next]

    def word(self, *words: str) -> str | None:
        """One of some words of requests (in small letters), if its turn is now; it is taken."""
        token = self.token
        if token.kind == "word" and token.text.lower() in words:
            self.next += 1
            return token.text.lower()
        return None

    def sign(self, *signs: str) -> str | None:
        """The same of signs."""
        token = self.token
        if token.kind == "sign" and token.text in signs:
            self.next += 1
            return token.text
        return None

    def take(self, what: str, *kinds: str) -> str:
        """The text of a token of some kinds."""
        token = self.token
        if token.kind not in kinds:
            self.expected(what)
        self.next += 1
        return token.text

    def expected(self, what: str) -> None:
        """Raise UsageError."""
        token = self.token
        word = "its end" if token.kind == "end" else repr(escape(token.text, 40))
        raise UsageError(f"the request has {word} at character {token.at + 1}, where {what} is expected")

    # -- the grammar
    def request(self, actor: str) -> Request:
        """The whole."""
        action = self.take("an action, as Query,", "word")
        objects = [self.object("an object, as Job,")]
        while self.sign(","):
            objects.append(self.object("an object"))
        if len(objects) > 1:
            self.labels = [asked.alias or asked.name for asked in objects]
        parts: list[Part] = [*objects]
        while self.token.kind != "end":
            parts += self.clause()
        return Request(_ACTIONS.get(action.lower(), action), actor, tuple(parts))

    def object(self, what: str) -> Object:
        """One object, with the name that the clauses have for it."""
        name = self.take(what, "word")
        return Object(name, alias=self.take("a name", "word") if self.word("as") else None)

    def of(self, path: str) -> tuple[str | None, str]:
        """The name of an object before a path, and the path without it."""
        label, point, rest = path.partition(".")
        return (label, rest) if point and rest and label in self.labels else (None, path)

    def clause(self) -> list[Part]:
        """Where, Get, Set, Option, Limit or Offset with what follows."""
        match self.word(*_CLAUSES):
            case "where":
                return [*self.conditions()]
            case "get":
                return [self.get(), *(self.get() for _ in iter(lambda: self.sign(","), None))]
            case "set":
                return [self.set(), *(self.set() for _ in iter(lambda: self.sign(","), None))]
            case "option":
                return [self.option(), *(self.option() for _ in iter(lambda: self.sign(","), None))]
            case "limit" | "offset" as name:
                return [Option(name.capitalize(), self.take("a number", "word"))]
        self.expected("Where, Get, Set, Option, Limit or Offset")
        raise AssertionError

    def conditions(self) -> list[Where]:
        """The conditions of Where, with their brackets as ``group``."""
        conditions: list[Where] = []
        conj: str | None = None
        while True:
            opened = sum(1 for _ in iter(lambda: self.sign("("), None))
            stated = self.condition(conj)
            closed = sum(1 for _ in iter(lambda: self.sign(")"), None))
            if opened and closed:               # around one condition they say nothing
                least = min(opened, closed)
                opened, closed = opened - least, closed - least
            conditions.append(replace(stated, group=opened - closed or None))
            word = self.word(*_TIES)
            if word is None:
                return conditions
            negated = word in ("and", "or") and self.word("not") is not None
            conj = _TIES[word + "not"] if negated else _TIES[word]

    def condition(self, conj: str | None) -> Where:
        """One condition, without its brackets."""
        label, path = self.of(self.take("a property", "word"))
        sign = self.sign(*_OPS)
        if sign is None:
            self.expected(f"one of {' '.join(_OPS)}")
        is_word = self.token.kind == "word"
        value = self.take("a value", "word", "text")
        subject, value = self.of(value) if is_word else (None, value)
        units = None
        if self.token.kind == "word" and self.token.text.lower() not in (*_CLAUSES, *_TIES):
            units = self.take("units", "word")
        op = _OPS[sign or "="]
        return Where(path, value, None if op == "EQ" else op, conj, object=label, subject=subject, units=units)

    def get(self) -> Get:
        """One property of Get."""
        name, op = self.take("a property", "word"), None
        if self.token.text == "(" and self.token.kind == "sign":
            op = _GET_OPS.get(name.lower())
            if op is None:
                self.expected(f"a property, or {', '.join(GET_OPS)} before the bracket,")
            self.next += 1
            name = self.take("a property", "word")
            if self.sign(")") is None:
                self.expected("a closing bracket")
        units = self.take("units", "word") if self.word("in") else None
        alias = self.take("a name", "word") if self.word("as") else None
        label, name = self.of(name)
        return Get(name, op, object=label, units=units, alias=alias)

    def set(self) -> Set:
        """One assignment of Set."""
        name = self.take("a property", "word")
        if self.sign("=") is None:
            self.expected("=")
        return Set(name, self.take("a value", "word", "text"))

    def option(self) -> Option:
        """One Option; True where no value is said."""
        name = self.take("the name of an option", "word")
        return Option(name, self.take("a value", "word", "text") if self.sign("=") else "True")
