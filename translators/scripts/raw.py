"""The first stage of reading a script: its lines, and the words of its directives with line and column.

Nothing here knows what an option means. What a resource manager refuses while it splits is a Refusal.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, count, repeat
from operator import itemgetter
from typing import Final, NamedTuple

from sssjob.errors import UsageError

__all__ = ["TEMPLATE", "Line", "Option", "Refusal", "Word", "before_commands", "command_words", "here_lines",
           "lines_of", "numbers_of", "option_of", "parted", "pbs_words", "plain_breaks", "quoted_words", "shell_words",
           "slurm_words", "split_outside", "texts_of"]

#: Placeholders of generators, seen in public scripts: ``{{x}}``, ``{x}``, ``{x.y}``, ``{x[y]}``, ``{x:d}``,
#: ``%(x)s``, ``$${x}``, ``<x>``, ``@X@``, ``!TBG_x``.
TEMPLATE: Final = re.compile(
    r"\{\{.{0,200}?\}\}|\{\w{1,99}(?:[.:\[][\w.:\[\]]{0,99})?\}|%\(\w{1,99}\)[sd]|\$\$?\{?\w|"
    r"<\w{1,99}>|@\w[^@]{0,200}@|!\w", re.ASCII)

_SHOWN: Final = 80          # characters of a value in messages


class Refusal(ValueError):
    """What the real submit command stops at. column: where in the line, from 1 (0: the whole line)."""

    def __init__(self, message: str, column: int = 0) -> None:
        super().__init__(message)
        self.column = column


class Line(NamedTuple):
    """number from 1; text without its end; end: the line break as found."""

    number: int
    text: str
    end: str = "\n"


class Word(NamedTuple):
    """A word of a directive after quotes are gone. line 0: of the command line."""

    text: str
    line: int
    column: int


class Option(NamedTuple):
    """name: as in the dialect's table; value None: none was given; text: the directive as found."""

    name: str
    value: str | None
    line: int
    column: int
    text: str

    @property
    def shown(self) -> str:
        """``--time 5``: name and value, cut to a length for messages."""
        name, value = self[:2]
        if not value:
            return name.rstrip()
        return f"{name} {value}".rstrip() if len(value) <= _SHOWN else f"{name} {value[:_SHOWN]}…"


class Told(Option):
    """An option that its reader kept for its own dialect alone, and told so: that no other carries it is no news."""

    __slots__ = ()


_line: Final[Callable[[tuple[int, str, str]], Line]] = partial(tuple.__new__, Line)
#: An Option of its members: as the class makes it, in half the time.
option_of: Final[Callable[[tuple[str, str | None, int, int, str]], Option]] = partial(tuple.__new__, Option)


#: Lines that are blank or, after blanks, begin with ``#``.
_COMMENTS: Final = re.compile(r"(?:[^\S\n]*+(?:#[^\n]*+)?\n)*+")
_HERE: Final = re.compile(r"<<-?[ \t]*(?:'([^'\n]+)'|\"([^\"\n]+)\"|\\?([A-Za-z_]\w*))", re.ASCII)


def here_lines(lines: list[Line]) -> list[Line]:
    """The lines of text of the here-documents of a shell script, of each that has an end. A ``<<`` in a comment begins
    none."""
    inside: list[Line] = []
    places: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        places.setdefault(line.text.lstrip("\t"), []).append(number)
    at = 0
    while at < len(lines):
        text = lines[at].text
        at += 1
        begins = _HERE.search(text) if "<<" in text and not text.lstrip().startswith("#") else None
        if begins is None:
            continue
        ends = places.get(begins[1] or begins[2] or begins[3], ())
        first = bisect_left(ends, at)
        if first < len(ends):
            inside += lines[at:ends[first]]
            at = ends[first] + 1
    return inside


def lines_of(text: str) -> Iterator[Line]:
    """The lines of a text; together they are the text. A lone carriage return does not end a line."""
    *ended, last = text.split("\n")
    rest = (Line(len(ended) + 1, last, ""),) if last else ()
    if "\r\n" in text:
        return chain((Line(number, line.removesuffix("\r"), "\r\n" if line.endswith("\r") else "\n")
                      for number, line in enumerate(ended, 1)), rest)
    return chain(map(_line, zip(count(1), ended, repeat("\n"))), rest)      # none of this is Python's own loop


def texts_of(lines: Iterable[Line]) -> list[str]:
    """The texts of lines."""
    return list(map(_TEXT, lines))


def numbers_of(lines: Iterable[Line]) -> frozenset[int]:
    """The numbers of lines."""
    return frozenset(map(_NUMBER, lines))


def before_commands(lines: Iterable[Line], skipped: re.Pattern[str] = _COMMENTS) -> int:
    """How many lines stand before the first command. skipped: matches those that are none, each with its end."""
    text = "\n".join([*texts_of(lines), ""])
    header = skipped.match(text)
    return 0 if header is None else text.count("\n", 0, header.end())


def plain_breaks(lines: list[Line], tell: Callable[[int, int], object]) -> list[Line]:
    """The lines with breaks of Unix. tell: takes line and column of the first of DOS, where there is one."""
    if "\r\n" not in map(_END, lines):
        return lines
    broken = next(line for line in lines if line.end == "\r\n")
    tell(broken.number, len(broken.text) + 1)
    return [Line(line.number, line.text, "\n" if line.end else "") for line in lines]


_NUMBER: Final[Callable[[Line], int]] = itemgetter(0)
_TEXT: Final[Callable[[Line], str]] = itemgetter(1)
_END: Final[Callable[[Line], str]] = itemgetter(2)


#: Words of a directive without any sign of the dialect are parted by blanks alone: nearly all are.
_SLURM_SIGN: Final = re.compile("[\"'\\\\#]")
_PBS_SIGN: Final = re.compile("[\"'\\\\]")
_QUOTED_SIGN: Final = re.compile("[\"'#]")
_QUOTED_WORD: Final = re.compile(r"""(?:[^\s"']++|"[^"]*+"|'[^']*+')+""")
_QUOTES: Final = re.compile(r""""([^"]*)"|'([^']*)'""")
_BLANKS: Final = re.compile(r"\s*")


def parted(text: str, line: int, at: int) -> list[Word]:
    """The words of a text from a place on, where blanks part them and no sign has a meaning."""
    words = []
    for word in text[at:].split():
        at = text.index(word, at)
        words.append(Word(word, line, at + 1))
        at += len(word)
    return words


def quoted_words(text: str, line: int, start: int) -> list[Word]:
    """The words where both kinds of quotes keep blanks, nothing else has a meaning in them, and a word that begins
    with ``#`` ends the line (LSF)."""
    if not _QUOTED_SIGN.search(text, start):
        return parted(text, line, start)
    words: list[Word] = []
    at = start
    while True:
        at = _BLANKS.match(text, at).end()  # type: ignore[union-attr]      # it matches nothing, too
        if at == len(text) or text[at] == "#":
            return words
        hit = _QUOTED_WORD.match(text, at)
        end = at if hit is None else hit.end()
        if end < len(text) and not text[end].isspace():
            raise Refusal(f"a {text[end]} is not closed", at + 1)
        word = text[at:end]
        words.append(Word(_QUOTES.sub(r"\1\2", word) if '"' in word or "'" in word else word, line, at + 1))
        at = end


def slurm_words(text: str, line: int, start: int) -> tuple[list[Word], str]:
    """The words after ``#SBATCH``, and what was ignored at the end of the line.

    Quotes may begin within a word; inside them a backslash takes the next character as it is; ``#`` outside ends the
    line, and so does an empty word. Seen with sbatch 22.05.8.
    """
    words: list[Word] = []
    if not _SLURM_SIGN.search(text, start):
        return parted(text, line, start), ""
    at = start
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        if text[at] == "#":
            return words, ""
        word, end, comment = _slurm_word(text, at)
        if not word:
            return words, "" if comment else text[at:]
        words.append(Word(word, line, at + 1))
        if comment:
            return words, ""
        at = end
    return words, ""


def _slurm_word(text: str, start: int) -> tuple[str, int, bool]:
    """A word, where it ends, and whether a comment begins there."""
    characters: list[str] = []
    quote, at = "", start
    while at < len(text):
        c = text[at]
        if quote and c == "\\" and at + 1 < len(text):
            at += 1
            characters.append(text[at])
        elif quote and c == quote:
            quote = ""
        elif quote:
            characters.append(c)
        elif c in "\"'":
            quote = c
        elif c == "#":
            return "".join(characters), at, True
        elif c.isspace():
            return "".join(characters), at, False
        elif c != "\\":
            characters.append(c)
        at += 1
    if quote:
        raise Refusal(f"a {quote} is not closed", start + 1)
    return "".join(characters), at, False


def pbs_words(text: str, line: int, start: int) -> tuple[list[Word], str]:
    """The words after ``#PBS``. A backslash takes the next character as it is; there are no comments
    (qsub.c of OpenPBS)."""
    words: list[Word] = []
    if not _PBS_SIGN.search(text, start):
        return parted(text, line, start), ""
    at = start
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        begin, quote, characters = at, "", []
        while at < len(text) and (quote or not text[at].isspace()):
            c = text[at]
            if c == "\\" and at + 1 < len(text):
                at += 1
                characters.append(text[at])
            elif quote and c == quote:
                quote = ""
            elif not quote and c in "\"'":
                quote = c
            else:
                characters.append(c)
            at += 1
        if quote:
            raise Refusal(f"a {quote} is not closed", begin + 1)
        words.append(Word("".join(characters), line, begin + 1))
    return words, ""


def split_outside(text: str, sign: str, strip: Callable[[str], str] | None = None) -> list[str]:
    """The parts of a value at a sign that is not inside quotes; the quotes stay."""
    if '"' not in text and "'" not in text:
        parts = text.split(sign)
        return [strip(p) for p in parts] if strip else parts
    parts, quote, begin = [], "", 0
    for at, c in enumerate(text):
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        elif c == sign:
            parts.append(text[begin:at])
            begin = at + 1
    parts.append(text[begin:])
    return [strip(p) for p in parts] if strip else parts


def command_words(text: str) -> list[Word]:
    """The words of options that ``--set`` adds as on a command line. Raises UsageError where quotes are open."""
    try:
        return [Word(word, 0, 0) for word in shell_words(text)]
    except ValueError as error:
        raise UsageError(f"--set {text}: {error}") from None


_SHELL: Final = re.compile(r"""(?P<blank>[ \t\r\n]+)|\\(?P<escaped>.)|'(?P<single>[^']*)'"""
                           r"""|"(?P<double>[^"\\]*(?:\\.[^"\\]*)*)"|(?P<plain>[^ \t\r\n\\'"]+)""", re.S)
_ESCAPED: Final = re.compile(r'\\(["\\])')


def shell_words(text: str) -> list[str]:
    """Words as ``shlex.split`` gives them, in time that grows with the text alone. ValueError where quotes are open."""
    words: list[str] = []
    pieces: list[str] = []
    at = 0
    while at < len(text):
        hit = _SHELL.match(text, at)
        if hit is None:
            raise ValueError("No escaped character" if text[at] == "\\" else "No closing quotation")
        at = hit.end()
        if hit.lastgroup != "blank":
            text_part = hit[hit.lastgroup or 0]
            pieces.append(_ESCAPED.sub(r"\1", text_part) if hit.lastgroup == "double" else text_part)
        elif pieces:
            words.append("".join(pieces))
            pieces = []
    return [*words, "".join(pieces)] if pieces else words
