"""The page that a script was: where its directives, comments and blank lines stood, so that what is written looks like
it.

Each directive takes the place of the one that said the same. What has to be one directive in the target stands where
the first of its parts stood, what had no directive before stands after the last, and a directive that nothing is
carried of leaves its comment. Directives move up where the target would not obey them: above the first command.

``--layout canonical`` writes one block in the order of the dialect's table instead, as for a job that comes from no
script.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from sssjob.translators.base import ReadContext
from sssjob.translators.scripts import untranslated
from sssjob.translators.scripts.examples import EXAMPLES
from sssjob.translators.scripts.raw import Line, Option
from sssjob.translators.scripts.rows import (
    APPROXIMATED,
    SCRIPT,
    AnyRow,
    Dialect,
    Key,
    ScriptDocument,
    dialect_of,
    place,
)

if TYPE_CHECKING:
    from sssjob.document.model import Document
    from sssjob.request.asked import Entry
    from sssjob.translators.base import WriteContext
    from sssjob.translators.scripts.asking import Asking

__all__ = ["LAYOUTS", "OPTION", "Page", "Piece", "page_of"]

#: The option of script formats, and its values.
OPTION: Final = "layout"
LAYOUTS: Final = ("in-place", "canonical")


#: Some whole lines of the script that is written, and whether they are directives.
Piece = tuple[str, bool]

_LINE: Final[Callable[[Option], int]] = itemgetter(2)
_WHOLE: Final[Callable[[Option], str]] = itemgetter(4)
_SAID: Final = itemgetter(0, 1, 2)
_AT: Final = itemgetter(0)
_Placed = tuple[int, Piece]     # at the double of a line, behind it at one more


class Page:
    """Where the lines of a script stood, by their numbers from 1.

    head: comments and blank lines that stood above the last directive; cut: how many lines of the File Script those
    are; last: the line of that directive, 0 where none stands above the first command; first: that of the first one,
    where those of several parts of a job stay together, else 0.
    """

    def __init__(self, document: ScriptDocument, script: str | None, source: Dialect, target: Dialect, *, parts: bool
                 ) -> None:
        self.source, self.target, self.own = source, target, source is target
        self.options = options = list(filter(_LINE, document.options))
        stood = list(map(_LINE, options))
        self.first = min(stood, default=0) if parts else 0
        self._anchors: dict[tuple[str, str | None], int] = {}
        self._origins = document.origins
        self._done: set[Entry] = set()      # of which something is written
        self._keys = _keys(target)
        self._names = {name: line for name, _, line, _, _ in options}
        self._lines = {(name, value): line for name, value, line, _, _ in reversed(options)} if self.own else {}
        numbers = document.lines if script is not None else []
        lines = [] if script is None else script.split("\n")
        first = 1 if lines and lines[0].startswith("#!") else 0
        sign = _sign(options[0].text) if self.own and options else "#"
        command = next((number for number, line in zip(numbers[first:], lines[first:], strict=False)
                        if not line.startswith(sign) and line.strip()), 0)
        self.last = max(stood, default=0)
        if 0 < command < self.last:
            self.last = max([line for line in stood if line < command], default=0)
        self.cut = bisect_left(numbers, self.last) - first if self.last else 0
        self.head = [(number, f"{line}\n") for number, line in zip(
            numbers[first:first + self.cut], lines[first:first + self.cut], strict=True)]
        #: Directives below the first command, of a script that stays one of its dialect and is obeyed to its end.
        below = first + self.cut if self.own and target.late and command else len(numbers)
        self._below = {number: f"{line}\n" for number, line in zip(numbers[below:], lines[below:], strict=False)}
        if self._below and len(lines) == len(numbers):      # the last one has no end
            self._below[numbers[-1]] = lines[-1]

    # -- where options go
    def row(self, asking: Asking, row: AnyRow | None, options: Sequence[tuple[str, str | None]]) -> None:
        """Note where the options of one row stand: where that stood which they were made of. row: None for options
        that the dialect leaves open."""
        if self.first or not options:
            return
        anchors = self._anchors
        if self.own:
            names = self._names
            for option in options:
                line = self._lines.get(option) or names.get(option[0])
                if line is None:
                    written = {name for name, _ in (*anchors, *options)}
                    line = self._one_of([o.line for o in self._fresh(asking, row) if o.name not in written], option[0])
                anchors.setdefault(option, line)
            return
        fresh = self._fresh(asking, row)
        if len(fresh) == 1 or (fresh and (len(options) == 1 or len(set(map(_LINE, fresh))) == 1)):
            line = min(self._lines_of(fresh)) if len(fresh) > 1 else fresh[0].line or self._lines_of(fresh)[0]
            for option in options:
                anchors.setdefault(option, line)
            return
        lines = self._lines_of(fresh)
        likes = [self._like(lines, name) for name, _ in options]
        beside = next(filter(None, likes), 0)
        for option, like in zip(options, likes, strict=True):
            beside = like or beside         # one without the like stands with that before it in the row
            anchors.setdefault(option, beside or self._one_of(lines, option[0]))

    def _lines_of(self, options: Sequence[Option]) -> list[int]:
        """Where options stand, those of the command line in the places of those that they replace; 0: nowhere."""
        return [option.line or self._names.get(option.name, 0) for option in options]

    def _fresh(self, asking: Asking, row: AnyRow | None) -> list[Option]:
        """The directives of what a row used, but for what other rows have used before."""
        keys = None if row is None else self._keys.get(id(row))
        entries = asking.entries if keys is None else asking.under(*keys)
        done, origins = self._done, self._origins
        fresh = []
        for e in entries:
            if e.used and e not in done:
                done.add(e)
                origin = origins.get(id(e.item))
                if origin is not None:
                    fresh.append(origin[1])
        return fresh

    def _one_of(self, lines: Sequence[int], name: str) -> int:
        """The line of an option among those that its row comes from: that of a directive which says the like."""
        return self._like(lines, name) or min(lines or self._alike(name), default=0)

    def _like(self, lines: Sequence[int], name: str) -> int:
        """The first of some lines with a directive that says the like of an option; 0 where there is none."""
        return min([line for line in self._alike(name) if line in lines], default=0)

    def _alike(self, name: str) -> list[int]:
        """The lines of the directives that say the like of an option."""
        names, by_name = self._names, _alike(self.source.name, self.target.name)
        same = by_name.get(name) or by_name.get(name[:2], ())       # -oo is like -o
        return [names[n] for n in same if n in names]

    def restored(self, asking: Asking, options: Sequence[str]) -> list[tuple[str, str | None]]:
        """The options that comments among the directives say, in whose places they stand from now on. options: those
        that are said already."""
        again: list[tuple[str, str | None]] = []
        for line, text in [head for head in self.head if head[1].startswith("# untranslated")]:
            some, rest = untranslated.restored(asking, [*options, *(name for name, _ in again)], text)
            if not rest:
                self.head.remove((line, text))
            self._anchors.update(dict.fromkeys(some, line))
            again += some
        return again

    # -- the page
    def pieces(self, directives: Iterable[tuple[str, str | None, str]], comments: Iterable[tuple[int, str]], old: str,
               body: str) -> list[Piece]:
        """The script below its first line: comments and blank lines, with directives and with comments of what was lost
        (line of the directive, text) in their places, then the body. directives: name, value, whole lines; old: what
        was the first line."""
        stood, last = dict(self.head), self.last
        if self._below and body == "".join(self._below.values()):
            stood.update(self._below)
            last, body = max(map(_LINE, self.options), default=0), ""
        end = 2 * self.last + 1         # behind the last directive
        placed: list[_Placed] = []
        anchors, first = self._anchors, self.first
        for name, value, text in directives:
            line = first or anchors.get((name, value), 0)
            if line in stood:           # of a here-document, which is no place for another
                if (name, value, line) in map(_SAID, self.options):
                    continue
                line = 0
            placed.append((2 * line if 0 < line <= last else end, (text, True)))
        if tails := _tails(self.source, self.options, last):
            placed = self._with_tails(placed, tails)
        placed += [(2 * line if 0 < line <= last and line not in stood else end, (text, False))
                   for line, text in comments]
        pieces = [piece for _, piece in sorted([*((2 * line, (text, False)) for line, text in stood.items()), *placed],
                                               key=_AT)]
        if self.target.gapless:
            return [*(p for p in pieces if p[1]), (old, False), *(p for p in pieces if not p[1]), (body, False)]
        return [(old, False), *pieces, (body, False)]

    def _with_tails(self, placed: list[_Placed], tails: dict[int, str]) -> list[_Placed]:
        """The directives with the comments behind those whose places they have, by line: behind the first of each line
        where the target takes one there, else before it."""
        rows: list[_Placed] = []
        for at, (text, _) in placed:
            tail = tails.pop(at // 2, "") if at % 2 == 0 else ""
            if tail and self._holds(text, tail):
                rows.append((at, (f"{text[:-1]}{tail}\n", True)))
                continue
            rows += [*([(at, (f"{tail.lstrip()}\n", False))] if tail else []), (at, (text, True))]
        if self.own:
            return rows
        return [*((2 * line, (f"{tail.lstrip()}\n", False)) for line, tail in tails.items()), *rows]

    def _holds(self, directive: str, tail: str) -> bool:
        """Whether the target takes a comment behind a directive; only one that has it already may do so grudgingly."""
        line = directive[:-1]
        return "\n" not in line and _same(self.target, line, line + tail, grudging=self.own)


def _tails(source: Dialect, options: Sequence[Option], last: int) -> dict[int, str]:
    """The comments behind directives down to a line, with the blanks before them, by line."""
    tails: dict[int, str] = {}
    if "".join(map(_WHOLE, options)).count("#") == len(options):
        return tails
    for option in options:
        text = option.text
        if option.line <= last and option.line not in tails and text.count("#") > 1:
            at = next((at for at in _signs(text) if _same(source, text[:at], text)), 0)
            if at:
                blanks = text[len(text[:at].rstrip()):at]
                tails[option.line] = (blanks or " ") + text[at:].rstrip()
    return tails


def _sign(text: str) -> str:
    """What a comment begins with, seen from a directive: all but Flux in Lua and the like have ``#``."""
    hit = re.match(r"[^\w\s]+", text)
    return "#" if hit is None or hit[0].startswith("#") else hit[0]


def _signs(text: str) -> list[int]:
    """Where a comment may begin behind a directive: at the first word that begins with ``#``, else at the first ``#``,
    outside of quotes."""
    quote, signs = "", list[int]()
    for at, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        elif sign == "#" and text[:at].strip():
            signs.append(at)
            if text[at - 1].isspace():
                break
    return [*signs[-1:], *signs[:1]]


def _same(dialect: Dialect, bare: str, text: str, *, grudging: bool = True) -> bool:
    """Whether a directive asks for the same with a comment behind it. grudging: the command may say that it leaves
    something out."""
    from sssjob.translators.scripts.reading import Reading

    seen = []
    for form in (bare, text):
        reading = Reading(dialect, ReadContext())
        scan = dialect.scan(reading, [Line(1, "#!/bin/sh"), Line(2, form)])
        seen.append([(option.name, option.value) for option in scan.components[0]])
    return seen[0] == seen[1] and not reading.findings.rejected and (grudging or not list(reading.findings))


@cache
def _keys(dialect: Dialect) -> dict[int, tuple[Key, ...]]:
    """A row, by its identity -> what it says; rows that are asked of every job are not there."""
    return {id(row): tuple(place(text).key for text in row.of if text) for row in dialect.rows if row.of is not None}


@lru_cache(maxsize=128)
def _alike(source: str, target: str) -> dict[str, tuple[str, ...]]:
    """Option of the target -> options of the source that state the same attribute of a job."""
    alike: dict[str, set[str]] = {}
    for by in EXAMPLES.values():
        if source in by and target in by:
            theirs = _names(source, by[source])
            for name in _names(target, by[target]):
                alike.setdefault(name, set()).update(theirs)
    return {name: tuple(sorted(names)) for name, names in alike.items()}


def _names(dialect: str, text: str) -> list[str]:
    """The options of an example."""
    from sssjob.translators.scripts.reading import Reading

    named = dialect_of(dialect)
    if named is None or "\n" in text:
        return []
    return [option.name for option in named.arguments(Reading(named, ReadContext()), text)]


def page_of(asked: Sequence[Asking], document: Document, context: WriteContext) -> Page | None:
    """The page of a job that comes from a script; None where directives are to stand in one block.

    Raises ValueError for another layout, and where there is no script whose place they could take.
    """
    layout = context.options.get(OPTION)
    if layout not in (None, *LAYOUTS):
        raise ValueError(f"{OPTION} is {' or '.join(LAYOUTS)}")
    source = asked[0].source_dialect
    from_script = isinstance(document, ScriptDocument) and document.lines and source is not None
    if layout == "in-place" and not from_script:
        raise ValueError(f"{OPTION} in-place is for scripts: no directive stands anywhere in what is read")
    if not from_script:
        return None
    assert isinstance(document, ScriptDocument) and source is not None
    if layout == "canonical":
        options = list(filter(_LINE, document.options))
        if tails := _tails(source, options, max(map(_LINE, options), default=0)):
            context.findings.add(APPROXIMATED, "comments", "comments behind directives are not carried, "
                                 f"{len(tails)} of them", severity="info")
        return None
    file = document.files.get(SCRIPT)
    return Page(document, None if file is None else file.as_text(), source,
                asked[0].dialect, parts=len(asked) > 1)
