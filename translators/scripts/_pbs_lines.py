"""How qsub of PBS Pro and of Torque finds the directives of a script and splits them into options.

Source: qsub.c of OpenPBS and of Torque. ``-l a=1,b=2`` is read as the options ``-l a`` and ``-l b``, ``-W x=y`` as
``-W x``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Final

from sssjob.templates.quoting import Directive, bare, pbs
from sssjob.translators.scripts.base import APPROXIMATED, Reading, Scan
from sssjob.translators.scripts.raw import (
    Line,
    Option,
    Refusal,
    Word,
    before_commands,
    command_words,
    option_of,
    pbs_words,
    plain_breaks,
    split_outside,
)

PREFIX: Final = "#PBS"
#: One option with a value without quotes: nearly all lines are such.
_PLAIN: Final = re.compile(r"""\s*+#PBS\s*+-(\w)\s++([^\s"'\\]++)\s*+""")


def _is_command(text: str) -> bool:
    return text[:1] not in _NO_COMMAND and bool(bare_text := text.lstrip()) and bare_text[0] != "#"


_NO_COMMAND: Final = ("#", ":")
#: Lines that are read, up to the first that is executable. One that begins with ``:`` is not.
_SKIPPED: Final = re.compile(r"(?:(?::[^\n]*+|[^\S\n]*+(?:#[^\n]*+)?)\n)*+")


def live(lines: list[Line]) -> list[Line]:
    """The lines that qsub takes for directives."""
    return [line for line in lines[:before_commands(lines, _SKIPPED)] if line.text.lstrip().startswith(PREFIX)]


def scanner(letters: str, *, strict: bool, dos: bool) -> Callable[[Reading, list[Line]], Scan]:
    """The first stage. letters: options in the form of getopt; strict: words left over are refused (PBS Pro), else
    ignored (Torque); dos: DOS line breaks are taken."""
    valued = {letter for letter, more in pairwise(letters) if more == ":"}

    def scan(reading: Reading, lines: list[Line]) -> Scan:
        """The directives and the rest of a script's lines, as qsub of this manager reads them."""
        lines = plain_breaks(lines, lambda line, column: None if dos else reading.refuse(
            "DOS line breaks, which qsub refuses", line, column))
        result, taken, late = Scan(), 0, False
        options, rest = result.components[0], result.rest
        for index, line in enumerate(lines):
            number, whole, _ = line
            if number <= taken:
                late = late or _is_command(whole)
                continue
            hit = None if late else _PLAIN.fullmatch(whole)
            if hit is not None and (letter := hit[1]) in valued:
                name = f"-{letter}"
                option = option_of((name, hit[2], number, hit.start(1), whole))
                if name in _ALONE:
                    options += _split(option)
                else:
                    options.append(option)
                continue
            late = late or _is_command(whole)
            text = whole.lstrip()
            if not text.startswith(PREFIX):
                rest.append(line)
            elif late:
                reading.dead(line, "qsub stops reading at the first command", len(whole) - len(text) + 1)
                rest.append(line)
            else:
                whole, taken = _continued(lines, index)
                options += _options(reading, line, whole, letters, strict)
        return result
    return scan


def _continued(lines: list[Line], index: int) -> tuple[str, int]:
    """A directive with the lines that a backslash at its end takes up, and the number of the last."""
    text = lines[index].text
    while text.endswith("\\") and index + 1 < len(lines):
        index += 1
        text = text[:-1] + " " + lines[index].text
    return text, lines[index].number


_COMMENT: Final = re.compile(r"\s#")


def _options(reading: Reading, line: Line, text: str, letters: str, strict: bool) -> list[Option]:
    begin = text.index(PREFIX) + len(PREFIX)
    try:
        words, _ = pbs_words(text, line.number, begin)
    except Refusal as error:
        words, lost = _words_before_comment(text, line.number, begin, error)
        reading.refuse(f"{error}; {lost}", line.number, error.column, "directive", line.text)
    return list(_parse(reading, words, line.text, letters, strict))


def _words_before_comment(text: str, line: int, begin: int, error: Refusal) -> tuple[list[Word], str]:
    """The words of a directive whose quotes do not end, where it is a comment behind it that opens them; none where the
    directive itself does. Also what is lost. error: what is wrong with the whole."""
    comment = _COMMENT.search(text, begin, max(begin, error.column))
    if comment is not None:
        try:
            words, _ = pbs_words(text[:comment.start()], line, begin)
        except Refusal:
            pass
        else:
            return words, "qsub knows no comments behind a directive, this one is left out"
    return [], "the directive is left out"


def _parse(reading: Reading, words: list[Word], text: str, letters: str, strict: bool) -> Iterator[Option]:
    """Options as getopt finds them."""
    queue = list(reversed(words))
    while queue:
        at = queue.pop()
        ended = at.text == "--"             # what follows is no option, whatever it looks like
        if ended and not queue:
            return
        at = queue.pop() if ended else at
        if ended or not at.text.startswith("-") or len(at.text) < 2:
            message = f"{at.text!r} is no option; a comment cannot follow a directive"
            if strict:
                reading.refuse(message, at.line, at.column, at.text, text)
            elif not at.text.startswith("#"):       # a comment is nothing that gets lost
                reading.findings.add(APPROXIMATED, at.text, f"{at.text!r} and what follows are ignored",
                                     line=at.line, column=at.column, excerpt=text)
            return
        if at.text.startswith("--"):
            reading.refuse(f"{at.text[:80]}: no such option; those of qsub are single letters, and it stops at the "
                           "second dash (invalid option -- '-')", at.line, at.column, at.text, text)
            return
        rest = at.text[1:]
        while rest:
            letter, rest = rest[0], rest[1:]
            where = letters.find(letter)
            if where < 0 or letter == ":":
                reading.refuse(f"-{letter}: no such option", at.line, at.column, at.text, text)
                return
            if letters[where + 1:where + 2] != ":":
                yield Option(f"-{letter}", None, at.line, at.column, text)
                continue
            if not rest and not queue:
                reading.refuse(f"-{letter} wants a value", at.line, at.column, f"-{letter}", text)
                return
            yield from _split(Option(f"-{letter}", rest or queue.pop().text, at.line, at.column, text))
            break


#: What begins another name after a comma.
_ALONE: Final = {"-l": re.compile(r"[A-Za-z_][\w.-]*(?:=|\Z)"), "-W": re.compile(r"\s*[A-Za-z_][\w.-]*\s*=")}


def _split(option: Option) -> Iterator[Option]:
    """``-l a=1,b=2`` and ``-W`` as an option for each name. What has no ``=`` belongs to the value before it in ``-W``
    (parse_equal_string of qsub): ``-W group_list=a,b,umask=022`` has two names."""
    if option.name not in _ALONE:
        yield option
        return
    value, parts = option.value or "", list[str]()
    alone = _ALONE[option.name]
    for part in split_outside(value, ",") if "," in value else (value,):
        if parts and not alone.match(part):
            parts[-1] += f",{part}"
        else:
            parts.append(part)
    for part in parts:
        name, sign, text_given = part.partition("=")
        if name.strip():
            yield Option(f"{option.name} {name.strip()}", text_given if sign else None, option.line, option.column,
                         option.text)


def arguments(letters: str) -> Callable[[Reading, str], list[Option]]:
    """Options of the command line."""
    return lambda reading, text: list(_parse(reading, command_words(text), text, letters, True))


_SIMPLE: Final = re.compile(r"-[A-Za-z]( \w+)?", re.ASCII)


@lru_cache(maxsize=256)
def _joined(name: str) -> str:
    """What stands between a simple name and its value: ``=`` after a resource; empty for a name that takes thought."""
    simple = _SIMPLE.fullmatch(name)
    return "" if simple is None else "=" if simple[1] else " "


def directive(name: str, value: str | None) -> str:
    """``-l walltime=1:00:00``, ``-N name``, ``-V``."""
    if value is not None and (sign := _joined(name)) and bare(value):
        return f"{name}{sign}{value}"
    letter, _, resource = name.lstrip("-").partition(" ")
    if resource:
        value = resource if value is None else f"{resource}={value}"
    return pbs(Directive(letter, value, name))
