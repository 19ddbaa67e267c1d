"""The first stage of reading a batch script of Flux: where directives stand, and the words in them.

Source: RFC 36 (Batch Script Directives) and flux-batch(1); seen with the parser of flux-core 0.88.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from sssjob.templates.quoting import Directive, QuotingError, bare, checked
from sssjob.templates.quoting import flux as quoted
from sssjob.translators.scripts.base import SITE, Reading, Scan
from sssjob.translators.scripts.raw import Line, Option, Word, command_words, option_of, parted

FLAGS: Final = ("debug-emulate", "dry-run", "exclusive", "label-io", "quiet", "unbuffered", "verbose", "wrap")
_VALUES: Final = ("add-file", "bank", "begin-time", "broker-opts", "conf", "cores-per-slot", "cwd", "dependency", "env",
                  "env-file", "env-remove", "error", "flags", "gpus-per-slot", "input", "job-name", "nodes", "nslots",
                  "output", "queue", "requires", "rlimit", "setattr", "setopt", "signal", "time-limit", "urgency")
#: Long option -> "" no argument, ":" one, "?" one only after ``=``.
_LONG: Final = dict.fromkeys(FLAGS, "") | dict.fromkeys(_VALUES, ":") | {"dump": "?"}
_WRITTEN: Final = frozenset(f"--{name}" for name in _LONG)
_SHORT: Final = {"B": "bank", "N": "nodes", "S": "setattr", "c": "cores-per-slot", "g": "gpus-per-slot",
                 "l": "label-io", "n": "nslots", "o": "setopt", "q": "queue", "t": "time-limit", "u": "unbuffered",
                 "v": "verbose", "x": "exclusive"}
#: Options of flux-submit and flux-run that flux-batch does not have -> what it calls the same.
_SUBMIT: Final = {"ntasks": "nslots", "cores-per-task": "cores-per-slot", "gpus-per-task": "gpus-per-slot"}
#: Options that say the same with another beginning of the value.
_RULES: Final = {"env-remove": "-", "env-file": "^"}

#: What a directive begins with, and the rest of its line.
SENTINEL: Final = re.compile(r"([^\w]*)((?:flux|FLUX):)(.*)", re.S)
_ALMOST: Final = re.compile(r"\s*#+\s*(?:flux|FLUX)\b\s*-", re.ASCII)
_TRIPLE: Final = re.compile(r"(\"\"\"|''')(.*)\1", re.S)
_QUOTES: Final = ('"""', "'''")


@dataclass(slots=True)
class _Multi:
    """A value in three quotes that goes over several lines."""

    quotes: str
    first: Line
    indent: str
    parts: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        """Take one more line, without the indentation of the first."""
        self.parts.append(text.removeprefix(self.indent))

    def text(self) -> str:
        """The option with all lines as one quoted word."""
        return self.parts[0] + shlex.quote("\n".join(self.parts[1:]))


class _Scanner:
    """The first stage for one script."""

    def __init__(self, reading: Reading) -> None:
        self.reading, self.made = reading, Scan()
        self.most = reading.context.limits.directive
        self.sentinel, self.prefix = "", ""
        self.closed = 0             # the line after which directives may not come any more
        self.multi: _Multi | None = None

    def lines(self, lines: list[Line]) -> Scan:
        """Go through all lines."""
        for line in lines:
            match = SENTINEL.match(line.text)
            if match is None:
                self._other(line)
            else:
                self._directive(line, match)
        if self.multi is not None:
            self._unclosed(self.multi.first.number)
        if self.sentinel and "#" not in self.prefix:
            first = self.made.components[0]
            first.insert(0, Option("sentinel", self.sentinel, 0, 0, ""))
        return self.made

    def _refuse(self, message: str, line: Line) -> None:
        self.reading.refuse(message, line.number, 1, "directive", line.text)

    def _unclosed(self, number: int) -> None:
        assert self.multi is not None
        self._refuse(f"three quotes are not closed before line {number}", self.multi.first)
        self.multi = None

    def _other(self, line: Line) -> None:
        if self.multi is not None:
            self._unclosed(line.number)
        self.made.rest.append(line)
        if _ALMOST.match(line.text):
            self.reading.dead(line, "there is no colon after flux")
        if self.sentinel and not self.closed and line.text.strip() and not line.text.startswith(self.prefix.rstrip()):
            self.closed = line.number

    def _directive(self, line: Line, match: re.Match[str]) -> None:
        sentinel, value = match[1] + match[2], match[3].removesuffix("\r")
        if self.closed:
            self.made.rest.append(line)
            self._refuse(f"a directive after line {self.closed}, which ended them", line)
            return
        if not self.sentinel:
            self.sentinel, self.prefix = sentinel, match[1]
        elif sentinel != self.sentinel:
            self.made.rest.append(line)
            self._refuse(f"the directives before begin with {self.sentinel}", line)
            return
        simple = _ONE.fullmatch(value) if self.multi is None and len(value) <= self.most else None
        if simple is not None and simple[1] in _SIMPLE:
            name, text_of_option, quoted = simple.groups()
            column = match.start(3) + (simple.start(1) - 1 if quoted is None else 1)
            self.made.components[0].append(option_of((f"--{name}", text_of_option or quoted, line.number, column,
                                                      line.text)))
            return
        if (paired := _paired(value)) is None:
            self._refuse("something follows three quotes", line)
            return
        if self.multi is None and not _MEANT.search(value):
            self._placed(line, parted(line.text, line.number, match.start(3)))
        else:
            self._value(line, paired)

    def _value(self, line: Line, value: str) -> None:
        quotes = value[-3:]
        if self.multi is not None and quotes == self.multi.quotes:
            self.multi.add(value[:-3])
            text, first = self.multi.text(), self.multi.first
            self.multi = None
            self._options(first, text)
        elif self.multi is not None:
            self.multi.add(value)
        elif quotes in _QUOTES:
            self.multi = _Multi(quotes, line, value[:len(value) - len(value.lstrip())])
            self.multi.add(value[:-3])
        else:
            self._options(line, value)

    def _options(self, line: Line, value: str) -> None:
        most = self.most
        if len(value) > most and _MEANT.search(value):      # shlex takes time by the square
            self.reading.findings.add("SSS110", "directive", f"a directive of more than {most} characters (limit "
                                      "directive)", line=line.number)
            return
        try:
            words = _words(value)
        except ValueError as error:
            self._refuse(str(error), line)
            return
        at = line.text.find(":") + 2
        placed = []
        for text in words:
            column = line.text.find(text.split("\n")[0][:20], at - 1) + 1
            at = column or at
            placed.append(Word(text, line.number, at))
        self._placed(line, placed)

    def _placed(self, line: Line, words: list[Word]) -> None:
        if words and not words[0].text.startswith("-"):
            self._refuse(f"{words[0].text!r} is no option", line)
            return
        self.made.components[0] += _parse(self.reading, words, line.text)


def _paired(value: str) -> str | None:
    """The text with what stands within three quotes on the line quoted once; None where that is malformed."""
    if not any(q in value for q in _QUOTES):
        return value
    if any(value.count(q) and value.count(q) % 2 == 0 for q in _QUOTES):
        return _TRIPLE.sub(lambda hit: shlex.quote(hit[2]), value)
    return None if any(re.search(f"{q}.", value) for q in _QUOTES) else value


_MEANT: Final = re.compile(r"[\"'\\#();<>|&]|[^\S \t\r\n]")
#: One long option with a value that is plain or in double quotes: nearly all lines are such.
_ONE: Final = re.compile(r"""[ \t]*+--([a-z-]++)=(?:([^\s"'\\#();<>|&]++)|"([^"'\\]++)")[ \t]*+""")
_SIMPLE: Final = frozenset(_VALUES) - _RULES.keys()
_BLANKS: Final = re.compile(r"[ \t\r\n]+")
_NEGATIVE: Final = re.compile(r"-\d+")


def _words(text: str) -> list[str]:
    """Words as Python's shlex splits them for RFC 36: comments go, a backslash works in both kinds of quotes."""
    if not _MEANT.search(text):
        return [word for word in _BLANKS.split(text) if word]     # shlex looks at each character
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.escapedquotes = "\"'"
    return list(lexer)


def _parse(reading: Reading, words: list[Word], text: str) -> Iterator[Option]:
    """Options as argparse finds them."""
    queue = list(reversed(words))
    while queue:
        at = queue.pop()
        if at.text.startswith("--") and len(at.text) > 2:
            name_given, sign, value = at.text[2:].partition("=")
            name = _full(reading, name_given, at, text)
            value_given: str | None = value if sign else None
        elif at.text.startswith("-") and len(at.text) > 1:
            name, value_given = _SHORT.get(at.text[1]), at.text[2:].removeprefix("=") or None
            if name is not None and not _LONG[name] and value_given is not None:
                queue.append(Word(f"-{value_given}", at.line, at.column))        # flags may stand together
                value_given = None
        else:
            name, value_given = None, None
        if name is None:
            _refuse(reading, f"{at.text!r} is no option of flux-batch", at, text)
            continue
        kind = _LONG[name]
        if kind == ":" and value_given is None:
            if not queue or (queue[-1].text.startswith("-") and len(queue[-1].text) > 1
                             and not _NEGATIVE.fullmatch(queue[-1].text)):
                _refuse(reading, f"--{name} wants a value", at, text)
                continue
            value_given = queue.pop().text
        elif kind == "" and value_given is not None:
            _refuse(reading, f"--{name} takes no value", at, text)
            value_given = None
        if name in _RULES:
            name, value_given = "env", _RULES[name] + (value_given or "")
        yield Option(f"--{name}", value_given, at.line, at.column, text)


def _refuse(reading: Reading, message: str, at: Word, text: str) -> None:
    reading.refuse(message, at.line, at.column, at.text.partition("=")[0], text)


def _full(reading: Reading, prefix: str, at: Word, text: str) -> str | None:
    """The long option of that name, or that begins with it alone."""
    if prefix in _LONG:
        return prefix
    if prefix in _SUBMIT:
        _refuse(reading, f"--{prefix} is an option of flux-submit; flux-batch has --{_SUBMIT[prefix]}", at, text)
        return _SUBMIT[prefix]
    candidates = [name for name in _LONG if name.startswith(prefix)]
    if len(candidates) != 1:
        return None
    reading.findings.add(SITE, f"--{prefix}",
                         f"--{prefix} is short for --{candidates[0]}, which releases since 2025 refuse",
                         line=at.line, column=at.column, excerpt=text)
    return candidates[0]


def scan(reading: Reading, lines: list[Line]) -> Scan:
    """The directives of a script, and the lines that are none."""
    first = lines[0] if lines else Line(1, "")
    if not first.text.startswith("#!"):
        reading.refuse("flux-batch wants #! at the very beginning", 1, text=first.text)
    return _Scanner(reading).lines(lines)


def live(lines: list[Line]) -> list[Line]:
    """The lines that flux-batch obeys or stumbles over."""
    return [line for line in lines if SENTINEL.match(line.text)]


def arguments(reading: Reading, text: str) -> list[Option]:
    """Options of a command line."""
    return list(_parse(reading, command_words(text), text))


#: What shlex takes for something else than itself.
_SPECIAL: Final = re.compile(r"[\s\"'\\#();<>|&]")


def directive(name: str, value: str | None) -> str:
    """``--option=value``, in double quotes where it must be; three quotes for several lines."""
    if value is not None and name in _WRITTEN and bare(value):
        return f"{name}={value}"
    written_directive = Directive(name.lstrip("-"), value, name)
    if value is None or any(q in value for q in _QUOTES):
        return quoted(written_directive)        # a backslash before each sign
    if "\n" not in value:
        checked(written_directive)
        special = not value or _SPECIAL.search(value)
        return f"{name}=" + ('"' + re.sub(r'(["\\])', r"\\\1", value) + '"' if special else value)
    if not all(c.isprintable() or c in "\t\n" for c in value):
        raise QuotingError(name, value, "cannot stand within three quotes")
    return f"{name}='''\n{value}'''"
