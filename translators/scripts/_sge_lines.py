"""How qsub of Grid Engine finds and splits directives: the first stage.

Source: submit(1) of Son of Grid Engine 8.1.9, and what its ``qsub -verify`` listed for small cases. A directive may
stand anywhere in the file, here-documents included. Once a quote has begun, all that follows on the line is one word,
whatever closes it; the quotes themselves go. ``-l h_rt=1,b=2`` is read as the options ``-l h_rt`` and ``-l``, for only
some resources have a meaning of their own; after ``-soft`` as ``-soft -l b``, and that ends with its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from sssjob.templates.quoting import Directive, QuotingError, bare, checked
from sssjob.translators.scripts.base import APPROXIMATED, SITE, Reading, Scan
from sssjob.translators.scripts.raw import Line, Option, Word, command_words, option_of, parted, plain_breaks

PREFIX: Final = "#$"
#: Resources that have a row of their own.
RESOURCES: Final = ("h_rt", "h_cpu", "h_vmem", "m_mem_free", "mem_free", "h_core", "h_data", "h_fsize", "h_rss",
                    "h_stack", "s_core", "s_cpu", "s_data", "s_fsize", "s_rss", "s_rt", "s_stack")
FLAGS: Final = frozenset(("V", "clear", "cwd", "h", "hard", "notify", "soft", "terse", "verify"))
_ONE: Final = frozenset((
    "@", "A", "C", "M", "N", "P", "R", "S", "a", "ac", "ar", "b", "c", "ckpt", "dc", "dl", "e", "hold_jid",
    "hold_jid_ad", "i", "j", "js", "jsv", "l", "m", "masterq", "now", "o", "p", "pty", "q", "r", "sc", "shell", "sync",
    "t", "tc", "u", "v", "w", "wd"))
#: What values of options without a meaning elsewhere look like, or qsub stops while it reads them.
_FORMS: Final = {name: (re.compile(form, re.ASCII), expected) for name, form, expected in (
    *((name, r"y(?:es)?|n(?:o)?", "y or n") for name in ("R", "b", "now", "pty", "shell", "sync")),
    ("js", r"\d{1,9}", "a number"), ("w", r"[envpw]", "one of e, n, p, v, w"),
    ("c", r"[nsmxr]+|\d*(?::\d*:\d*)?", "letters of nsmxr or a time"),
    ("binding", r"(?:(?:env|pe|set) )?(?:linear|striding|explicit)(?::[\w,:]*)?", "linear, striding or explicit"))}
_KNOWN: Final = FLAGS | _ONE | {"pe", "binding"}
#: One option, with a value without quotes: nearly all lines are such.
_PLAIN: Final = re.compile(r"""#\$[ \t]*+(-(\w+))(?:[ \t]++([^\s"'#]++))?[ \t]*+""")
_PLAIN_NAMES: Final = _ONE - {"C", "@"} - _FORMS.keys()
#: What parts words, or ends a line, in another way than blanks do.
_SIGN: Final = re.compile(r"[\"'#]|[^\S \t]")
_AFTER: Final = re.compile(r"[ \t]-[A-Za-z]")


def _prefix(reading: Reading) -> str:
    """That of ``-C`` on the command line; empty: nothing is read."""
    options_text = reading.context.options.get("set")
    if not options_text:
        return PREFIX
    given = [word.text for word in command_words(options_text)]
    at = max((i for i, text in enumerate(given[:-1]) if text == "-C"), default=-1)
    return PREFIX if at < 0 else given[at + 1]


def live(lines: list[Line]) -> list[Line]:
    """The lines that qsub takes for directives."""
    return [line for line in lines if line.text.startswith(PREFIX)]


def scan(reading: Reading, lines: list[Line]) -> Scan:
    """The directives of a script, wherever they stand."""
    lines = plain_breaks(lines, lambda line, column: reading.findings.add(
        APPROXIMATED, "script", "qsub takes DOS line breaks, a shell does not; plain ones are put", line=line,
        column=column))
    result, prefix = Scan(), _prefix(reading)
    options, rest, ours = result.components[0], result.rest, prefix == PREFIX
    for line in lines:
        number, text, _ = line
        hit = _PLAIN.fullmatch(text) if ours and text.startswith(PREFIX) else None
        if hit is not None:
            flag, name, value = hit.groups()
            if value is not None and name in _PLAIN_NAMES:
                option = option_of((flag, value, number, hit.start(1) + 1, text))
                if name == "l":
                    options += _split(option, "")
                else:
                    options.append(option)
                continue
        if prefix and text.startswith(prefix):
            options_found = _line(reading, line, prefix)
            options += options_found
            if any(o.name == "-clear" for o in options_found):
                _cleared(reading, result)
            continue
        rest.append(line)
        if text[:1].isspace() and (bare_text := text.lstrip()).startswith(PREFIX + " -"):
            reading.dead(line, "blanks stand before it", len(text) - len(bare_text) + 1)
    return result


def _cleared(reading: Reading, result: Scan) -> None:
    """``-clear`` discards what was said before it."""
    options = result.components[0]
    at = max(i for i, o in enumerate(options) if o.name == "-clear")
    if any(o.name != "-clear" for o in options[:at]):
        reading.tell(APPROXIMATED, options[at], f"qsub forgets {at} options that were said before it")
    del options[:at]


def words(text: str, line: int, start: int) -> tuple[list[Word], int]:
    """The words after the prefix, and where (from 1) options stand that a quote has swallowed (0: nowhere). ``#`` ends
    the line, even inside quotes."""
    if not _SIGN.search(text, start):
        return parted(text, line, start), 0
    end = text.find("#", start)
    text = text.rstrip() if end < 0 else text[:end].rstrip()
    words_read: list[Word] = []
    at = start
    while at < len(text):
        if text[at] in " \t":
            at += 1
            continue
        begin = at
        while at < len(text) and text[at] not in " \t" and text[at] not in "\"'":
            at += 1
        if at < len(text) and text[at] in "\"'":
            closed = text.find(text[at], at + 1)
            after = _AFTER.search(text, closed + 1) if closed > 0 else None
            words_read.append(Word(re.sub("[\"']", "", text[begin:]), line, begin + 1))
            return words_read, after.start() + 2 if after else 0
        words_read.append(Word(text[begin:at], line, begin + 1))
    return words_read, 0


def _line(reading: Reading, line: Line, prefix: str) -> list[Option]:
    words_read, swallowed = words(line.text, line.number, len(prefix))
    if swallowed:
        reading.findings.add(APPROXIMATED, "directive", "after a quote the rest of the line belongs to the value, for "
                             "qsub no option follows", line=line.number, column=swallowed, excerpt=line.text)
    return list(_parse(reading, words_read, line.text))


def arguments(reading: Reading, text: str) -> list[Option]:
    """Options of the command line; what is soft stays so to the end of it."""
    options = list(_parse(reading, command_words(text), text))
    return [o for o in options if o.name not in ("-C", "-clear")]


def _parse(reading: Reading, words_read: list[Word], text: str) -> Iterator[Option]:
    """Options out of words."""
    queue, soft = list(reversed(words_read)), False
    while queue:
        at = queue.pop()
        name = at.text[1:]
        if name not in _KNOWN or not at.text.startswith("-"):
            reading.refuse(f"{at.text!r}: no such option", at.line, at.column, at.text, text)
            return
        if name in ("soft", "hard"):
            soft = name == "soft"
        elif name in FLAGS:
            yield Option(at.text, None, at.line, at.column, text)
        else:
            value = _value(name, queue)
            if value is None:
                reading.refuse(f"-{name} wants a value", at.line, at.column, at.text, text)
                return
            option = Option(at.text, value, at.line, at.column, text)
            if name in _FORMS or name == "@":
                _check(reading, option)
            if name == "l":
                yield from _split(option, "-soft " if soft else "")
            elif name != "C" or not at.line:
                yield option._replace(name="-soft -q") if soft and name == "q" else option


def _value(name: str, queue: list[Word]) -> str | None:
    """The value of an option, parted by blanks where it has two words."""
    taken = [queue.pop().text] if queue else []
    if taken and (name == "pe" or (name == "binding" and taken[0] in ("env", "pe", "set"))):
        if not queue:
            return None
        taken.append(queue.pop().text)
    return " ".join(taken) if taken else None


def _check(reading: Reading, option: Option) -> None:
    """The findings for a value that qsub stops at, and for what is not seen here."""
    name, value = option.name[1:], option.value or ""
    if name == "@":
        reading.tell(SITE, option, "the options of that file are not seen here")
        return
    form, expected = _FORMS[name]
    if not form.fullmatch(value):
        reading.stumble(option, "is not what qsub takes", expected)


_PARTS: Final = re.compile(r"[,\s]+")


def _split(option: Option, soft: str) -> Iterator[Option]:
    """``-l a=1,b`` as an option for each resource."""
    for part in _PARTS.split(option.value or ""):
        name, sign, value = part.partition("=")
        if not part:
            continue
        if name in RESOURCES or soft:
            yield Option(f"{soft}-l {name}", value if sign else None, option.line, option.column, option.text)
        else:
            yield Option("-l", part, option.line, option.column, option.text)


_UNFIT: Final = re.compile("[\"'#]")
_SIMPLE: Final = re.compile(r"-[A-Za-z0-9]\w*( \w+)?", re.ASCII)
_TWO: Final = re.compile(r"(?:pe \S+|binding (?:env|pe|set)) \S+", re.ASCII)      # options of two words


@lru_cache(maxsize=256)
def _joined(name: str) -> str:
    """What stands between a simple name and its value: ``=`` after a resource; empty for a name that takes thought."""
    simple = _SIMPLE.fullmatch(name)
    return "" if simple is None else "=" if simple[1] else " "


_BLANK: Final = re.compile(r"\s")


def directive(name: str, value: str | None) -> str:
    """``-l h_rt=01:00:00``, ``-N "a b"``, ``-soft -l a=1``. Raises QuotingError for what no directive can hold."""
    if value is not None and (sign := _joined(name)) and bare(value):
        return f"{name}{sign}{value}"
    soft = name.startswith("-soft ")
    option, _, resource = name.removeprefix("-soft ").lstrip("-").partition(" ")
    if resource:
        if re.search(r"[\s,=]", resource):
            raise QuotingError(name, resource, "is no name of a resource")
        value = resource if value is None else f"{resource}={value}"
    text = checked(Directive(option, value, name), plain=True) if option != "@" else value or ""
    if unfit := _UNFIT.search(text):
        raise QuotingError(name, text, f"contains {unfit[0]!r}, which a directive of Grid Engine cannot hold")
    if value is None:
        return f"-{option}"
    blank = _BLANK.search(text) is not None
    if _TWO.fullmatch(f"{option} {text}"):
        return f"-{option} {text}"
    if not text or text != text.strip() or (blank and (resource or option == "pe")):
        raise QuotingError(name, text, "is empty or has a blank where a directive of Grid Engine cannot hold one")
    if blank:
        text = f'"{text}"'
    return f"{'-soft ' if soft else ''}-{option} {text}"
