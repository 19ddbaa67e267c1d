"""The two languages inside options of bsub: resource requirements (``-R``) and dependency conditions (``-w``).

Source: Administering LSF 10.1, resource requirement strings; the command reference, bsub -w. Parsers refuse with
ValueError what has no form; what has one but no meaning for another dialect is kept as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from sssjob.translators.scripts.raw import split_outside

SECTIONS: Final = ("select", "order", "rusage", "span", "same", "cu", "affinity")
#: Brackets within brackets.
DEEP: Final = 50
_SECTION: Final = re.compile(rf"\s*({'|'.join(SECTIONS)})\s*\[", re.ASCII)
# No group is repeated possessively here: before Python 3.11.5 such a group keeps what a last try that failed has eaten.
#: Sections without any quote in them, and no bracket but pairs of round ones side by side.
_TEXT: Final = r"[^\"'\[\](){}]*+"
_ONE: Final = re.compile(rf"({'|'.join(SECTIONS)})\s*\[({_TEXT}(?:\({_TEXT}\){_TEXT})*)\]", re.ASCII)
_SIMPLE: Final = re.compile(rf"(?:\s*+{_ONE.pattern})+\s*", re.ASCII)
_CLOSES: Final = {"[": "]", "(": ")", "{": "}"}


def sections(text: str) -> list[tuple[str, str]]:
    """The sections of a simple requirement, ``[("select", "type==any"), ("span", "hosts=1")]``.

    What stands before the first is a selection. Of a compound or alternative one the whole is the one section "".
    """
    if _SIMPLE.fullmatch(text):
        return [(name, inside.strip()) for name, inside in _ONE.findall(text)]
    _balanced(text)
    if "{" in text:
        return [("", text.strip())]
    all_sections: list[tuple[str, str]] = []
    first = next((m for m in _SECTION.finditer(text) if m.start() == 0 or text[m.start()].isspace()
                  or text[m.start() - 1] == "]"), None)
    begin = first.start() if first is not None else len(text)
    if text[:begin].strip():
        all_sections.append(("select", text[:begin].strip()))
    at, text = begin, text.rstrip()
    while at < len(text):
        match = _SECTION.match(text, at)
        if match is None:
            raise ValueError(f"has {text[at:at + 40].strip()!r} where a section should stand")
        end = _closing(text, match.end() - 1)
        all_sections.append((match[1], text[match.end():end].strip()))
        at = end + 1
    return all_sections


def compound(text: str) -> list[tuple[int, str]] | None:
    """``(2, "select[a]")`` of each part of ``2*{select[a]}+1*{span[hosts=1]}``; None for alternatives."""
    parts, begin = [], 0
    for at, depth in _depths(text):
        if depth == 0 and text[at] == "}":
            match = _PART.fullmatch(text[begin:at + 1])
            if match is None:
                return None
            parts.append((int(match[1]), match[2]))
            begin = at + 1
    return parts if parts and not text[begin:].strip() and all(count for count, _ in parts) else None


_PART: Final = re.compile(r"\s*\+?\s*(\d{1,9})\s*\*\s*\{(.*)\}", re.ASCII | re.DOTALL)


def _closing(text: str, at: int) -> int:
    """Where the bracket at a place is closed."""
    for end, depth in _depths(text, at):
        if depth == 0:
            return end
    raise ValueError("has a bracket that is not closed")


_SIGNS: Final = re.compile(r"[\"'\[\](){}]")


def _depths(text: str, start: int = 0) -> Iterator[tuple[int, int]]:
    """Place of each bracket outside quotes, and how many are open after it."""
    stack: list[str] = []
    quote = ""
    for hit in _SIGNS.finditer(text, start):
        at, c = hit.start(), hit[0]
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        elif c in _CLOSES:
            stack.append(_CLOSES[c])
            if len(stack) > DEEP:
                raise ValueError(f"has more than {DEEP} brackets within each other")
            yield at, len(stack)
        elif c in "])}":
            if not stack or stack.pop() != c:
                raise ValueError(f"has a {c} that closes nothing")
            yield at, len(stack)


def _balanced(text: str) -> None:
    open_at_end = [depth for _, depth in _depths(text)][-1:]
    if any(open_at_end):
        raise ValueError("has a bracket that is not closed")


_TERM: Final = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:(==|=|!=)\s*(['\"]?)([\w.-]+)\3\s*)?", re.ASCII)


def names_of(text: str) -> list[tuple[str, str, str]] | None:
    """``(name, operator, value)`` of a selection where all terms are simply demanded: ``a && b && hname!=n1``; None for
    another expression."""
    terms = []
    for term in text.split("&&"):
        match = _TERM.fullmatch(term)
        if match is None:
            return None
        terms.append((match[1], "==" if match[2] == "=" else match[2] or "", match[4] or ""))
    return terms


# -- dependencies
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<sign>&&|\|\||[!()])|(?P<word>@JOBID:[^@]*@|"[^"]*"|'[^']*'|[^\s()&|!"']+))""")
_WITH_NUMBER: Final = ("numdone", "numended", "numexit", "numhold", "numpend", "numrun", "numstart")
_STATES: Final = ("done", "ended", "exit", "external", "post_done", "post_err", "started", *_WITH_NUMBER)


class _Condition:
    """A recursive descent over the tokens of a condition."""

    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        at, text = 0, text.strip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise ValueError(f"has {text[at:at + 20]!r} that is no part of a condition")
            self.tokens.append(("sign", match["sign"]) if match["sign"] else ("word", match["word"]))
            at = match.end()
        self.at = 0
        self.plain = True       # only terms that are all demanded
        self.terms: list[tuple[str, str, str]] = []

    def next(self) -> tuple[str, str]:
        """The next token, (kind, text); empty at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else ("", "")

    def take(self, sign: str) -> bool:
        """Go past a sign if it comes next; whether it did."""
        if self.next() != ("sign", sign):
            return False
        self.at += 1
        return True

    def either(self, depth: int = 0) -> None:
        """Parts joined by ``||``. depth: brackets that are open. Raises ValueError."""
        if depth > DEEP:
            raise ValueError(f"has more than {DEEP} brackets within each other")
        self.both(depth)
        while self.take("||"):
            self.plain = False
            self.both(depth)

    def both(self, depth: int) -> None:
        """Parts joined by ``&&``."""
        self.term(depth)
        while self.take("&&"):
            self.term(depth)

    def term(self, depth: int) -> None:
        """One state of a job, or a condition in brackets; with ``!`` it is not plain."""
        while self.take("!"):
            self.plain = False
        if self.take("("):
            self.either(depth + 1)
            if not self.take(")"):
                raise ValueError("has a bracket that is not closed")
            return
        kind, word = self.next()
        if kind != "word":
            raise ValueError("lacks a job")
        self.at += 1
        if word in _STATES and self.take("("):
            self.terms.append(self.job(word))
        else:
            self.terms.append(("done", word, ""))

    def job(self, state: str) -> tuple[str, str, str]:
        """The inside of ``done(...)``; a comma stands before a number, with an operator or not."""
        inside: list[str] = []
        while not self.take(")"):
            kind, word = self.next()
            if not kind:
                raise ValueError("has a bracket that is not closed")
            inside.append(word)
            self.at += 1
        job, *rest = split_outside("".join(inside), ",", str.strip)
        if not job or len(rest) > 1 or (rest and state not in ("exit", *_WITH_NUMBER)):
            raise ValueError(f"has no job in {state}()")
        return state, job, rest[0] if rest else ""


#: A term that takes no descent: nearly all are such.
_SIMPLE_TERM: Final = re.compile(r"\s*(done|ended|exit|started)\((\d+)\)\s*", re.ASCII)


def conditions(text: str) -> list[tuple[str, str, str]] | None:
    """``(state, job, number)`` of each term where all are demanded; a job alone is ``done``.

    None for another condition. Raises ValueError for what is none.
    """
    simple = [_SIMPLE_TERM.fullmatch(part) for part in text.split("&&")]
    if None not in simple:
        return [(match[1], match[2], "") for match in simple if match is not None]
    parser = _Condition(text)
    parser.either()
    if parser.at < len(parser.tokens):
        raise ValueError(f"has {parser.next()[1][:40]!r} where it should end")
    return parser.terms if parser.plain else None
