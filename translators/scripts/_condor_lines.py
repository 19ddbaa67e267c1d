"""The first stage of reading a submit description: commands, macros, conditions and queue statements.

Nothing is opened: ``include``, ``queue .. from FILE`` and ``queue .. matching`` are told. Sources: condor_submit(1),
the users' manual of HTCondor ("Submitting a Job"), and what the parser of the 23.0 bindings read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sssjob.limits import Limits
from sssjob.translators.scripts.base import APPROXIMATED, DROPPED, SITE, Reading
from sssjob.translators.scripts.raw import Line

#: Macros that a value goes through, and characters that it may become.
DEPTH: Final = 50
MOST: Final = 1 << 16
#: Characters of commands that are looked at for all jobs together.
WORK: Final = 1 << 25
#: Different commands of one description.
COMMANDS: Final = 10_000
#: Macros whose values are only known when a job is submitted or placed.
LATE: Final = frozenset(("cluster", "clusterid", "process", "procid", "node", "step", "row", "itemindex", "submit_time",
                         "year", "month", "day", "submit_file"))
_FUNCTIONS: Final = ("ENV|INT|REAL|STRING|EVAL|RANDOM_INTEGER|RANDOM_CHOICE|CHOICE|SUBSTR|DIRNAME|BASENAME|"
                     "F[fpduwnxbqa]+")


def opaque(names: Iterable[str] = ()) -> re.Pattern[str]:
    """What is left of a value that only HTCondor can compute. names: macros whose values are not in the file."""
    late = "|".join(map(re.escape, sorted({*LATE, *names})))
    return re.compile(rf"\$\$[(\[]|\$(?:{_FUNCTIONS})\(|\$\((?i:{late})[:)]")


OPAQUE: Final = opaque()
_VERSION: Final = (23, 0, 0)


class Command(NamedTuple):
    """``name = value``; name in lower case, but for attributes, which are ``MY.Name``."""

    name: str
    value: str
    line: Line


@dataclass(slots=True)
class Submission:
    """What one queue statement queues: the commands then in force, count jobs for each of the items (None: there are
    none). first: number of its first job. unread: the statement, where its items are not in the file."""

    commands: dict[str, Command]
    count: int
    names: tuple[str, ...] = ()
    items: list[tuple[str, ...]] | None = None
    first: int = 0
    unread: str = ""
    used: frozenset[str] = frozenset()      # names that occur as macros
    line: Line = field(default_factory=lambda: Line(0, ""))


_COMMAND: Final = re.compile(
    r"(?P<plus>[+]|MY\.|my\.|My\.)?(?P<name>[A-Za-z_][\w.]*)\s*(?P<here>@)?=(?P<value>.*)", re.DOTALL)
_QUEUE: Final = re.compile(r"queue(?:\s+(?P<rest>.*))?$", re.IGNORECASE | re.DOTALL)
#: Words that begin a statement, where no ``=`` follows.
_STATEMENTS: Final = ("queue", "include", "use", "warning", "error")
_QUEUE_NAMED: Final = re.compile(r"queue\s*=", re.IGNORECASE)
_INCLUDE: Final = re.compile(r"include\b(?!\s*=)", re.IGNORECASE)
_SPECIAL: Final = re.compile(r"(use|warning|error)\b(?!\s*=).*:", re.IGNORECASE)
_ITEMS: Final = re.compile(
    r"(?P<count>(?:(?!\b(?:in|from|matching)\b)[^A-Za-z])*?)\s*(?P<names>[A-Za-z_][\w]*(?:\s*[,\s]\s*(?!(?:in|from|matching)"
    r"\b)[A-Za-z_]\w*)*)?\s*\b(?P<how>in|from|matching)\b\s*(?P<items>.*)", re.IGNORECASE | re.DOTALL)
_MACRO: Final = re.compile(r"\$\w*\(\s*([A-Za-z_]\w*)", re.ASCII)
_SLICE: Final = re.compile(r"\[\s*(\d*)\s*(?::\s*(\d*)\s*(?::\s*(\d*)\s*)?)?\]\s*")


_CONDITIONS: Final = ("if", "elif", "else", "endif")
#: ``name = value``, unless the name begins a condition: nearly all lines are such.
_PLAIN: Final = re.compile(r"([a-z]\w*+)[ \t]*+=(.*)", re.ASCII | re.DOTALL)


class _Lines:
    """The lines of a description, continued ones joined."""

    def __init__(self, lines: list[Line]) -> None:
        self.lines, self.at = lines, 0
        self.comments = 0

    def next(self) -> Line | None:
        """The next one that says something."""
        while self.at < len(self.lines):
            line = self.lines[self.at]
            self.at += 1
            text = line.text.strip().removeprefix("\ufeff")
            if not text or text.startswith("#"):
                self.comments += bool(text)
                continue
            if text == line.text and not text.endswith("\\"):
                return line
            parts = [text]
            while parts[-1].endswith("\\") and self.at < len(self.lines):
                parts[-1] = parts[-1][:-1]
                parts.append(self.lines[self.at].text.strip())
                self.at += 1
            return Line(line.number, "".join(parts), line.end)
        return None

    def until(self, closing: str) -> Iterator[str] | None:
        """Lines up to one that begins with a text; None where there is none."""
        numbers = range(self.at, len(self.lines))
        end = next((n for n in numbers if self.lines[n].text.lstrip().startswith(closing)), None)
        if end is None:
            return None
        inner_lines = [line.text.strip() for line in self.lines[self.at:end]]
        self.at = end + 1
        return iter(inner_lines)


def submissions(reading: Reading, lines: list[Line], more: dict[str, str]) -> list[Submission]:
    """What is queued. more: commands of the command line, which win."""
    return _Scanner(reading, lines, more).all()


class _Scanner:
    def __init__(self, reading: Reading, lines: list[Line], more: dict[str, str]) -> None:
        self.reading, self.lines, self.more = reading, _Lines(lines), more
        self.commands = {name: Command(name, value, Line(0, f"{name} = {value}")) for name, value in more.items()}
        self.branches: list[tuple[bool, bool]] = []     # (this branch counts, one of its branches has counted)
        self.made: list[Submission] = []
        self.number, self.executable = 0, ""
        self.work = self.items_made = 0

    def refuse(self, message: str, line: Line, subject: str = "line") -> None:
        """Tell what condor_submit stops at."""
        self.reading.refuse(message, line.number, 1, subject, line.text)

    def tell(self, rule: str, subject: str, message: str, line: Line, **more: str) -> None:
        """Record a finding at a line."""
        self.reading.findings.add(rule, subject, message, line=line.number, column=1, excerpt=line.text,
                                  severity=more.get("severity"))     # type: ignore[arg-type]

    def all(self) -> list[Submission]:
        """The submissions of the file, one for each queue statement."""
        while (line := self.lines.next()) is not None:
            plain = None if self.branches else _PLAIN.fullmatch(line.text)
            if plain is not None and plain[1] not in _CONDITIONS:
                self.assign(plain[1], plain[1], plain[2].strip(), line)
            elif not self.condition(line) and all(counts for counts, _ in self.branches):
                self.statement(line)
        if self.branches:
            self.refuse("if without endif", self.lines.lines[-1])
        if self.lines.comments:
            self.reading.findings.add(APPROXIMATED, "comments", f"{self.lines.comments} lines of comments are not "
                                      "carried", severity="info")
        if not self.made:
            self.refuse("there is no queue statement", Line(1, ""), "queue")
        return self.made

    def condition(self, line: Line) -> bool:
        """Take a line of if, elif, else or endif; False where it is none."""
        word, _, rest = line.text.partition(" ")
        word = word.lower()
        if word not in _CONDITIONS:
            return False
        if word == "if":
            if len(self.branches) >= self.reading.context.limits.depth:
                self.reading.findings.add("SSS110", "depth", "too many conditions within one another (limit depth)",
                                          line=line.number)
                self.reading.findings.raise_if_rejected()
            counts = self.holds(rest.strip(), line)
            self.branches.append((counts, counts))
        elif word in ("elif", "else") and self.branches and (word == "elif" or not rest.strip()):
            _, had_branch = self.branches[-1]
            counts = not had_branch and (word == "else" or self.holds(rest.strip(), line))
            self.branches[-1] = (counts, had_branch or counts)
        elif word == "endif" and self.branches:
            self.branches.pop()
        elif word in ("elif", "else", "endif") and not rest.startswith("="):
            self.refuse(f"{word} without if", line)
        else:
            return False
        return True

    def holds(self, text: str, line: Line) -> bool:
        """Whether the condition of if or elif holds."""
        if text.startswith("!"):
            return not self.holds(text[1:].strip(), line)
        word, _, rest = text.partition(" ")
        if word.lower() == "defined":
            return rest.strip().lower() in self.commands
        if word.lower() == "version":
            return self.version(rest.strip(), line)
        value = Macros(self.commands).expand(text, {}).strip().lower()
        if value in ("", "0", "false", "no", "f", "n"):
            return False
        if value not in ("true", "yes", "t", "y") and not re.fullmatch(r"-?\d+(\.\d+)?", value):
            self.refuse(f"{text} is no condition", line, "if")
        return True

    def version(self, text: str, line: Line) -> bool:
        """Whether a condition on the release of HTCondor holds, told because it is a guess."""
        match = re.fullmatch(r"(==|>=|<=|>|<|!=)\s*(\d+)(?:\.(\d+))?(?:\.(\d+))?", text, re.ASCII)
        if match is None:
            self.refuse(f"version {text} is no condition", line, "if")
            return False
        release = tuple(int(n) for n in match.groups()[1:] if n is not None)
        ours = _VERSION[:len(release)]
        self.tell(SITE, "if", f"taken as release {'.'.join(map(str, _VERSION))}", line)
        return {"==": ours == release, "!=": ours != release, ">=": ours >= release, "<=": ours <= release,
                ">": ours > release, "<": ours < release}[match[1]]

    def statement(self, line: Line) -> None:
        """Take one line that counts: a command, a queue statement, or what is not carried."""
        match = _COMMAND.match(line.text)
        if match is not None and match["name"].lower() not in _STATEMENTS:
            self.command(match, line)
            return
        queue = _QUEUE.fullmatch(line.text)
        if queue is not None and (match is None or not _QUEUE_NAMED.match(line.text)):
            self.queue((queue["rest"] or "").strip(), line)
        elif _INCLUDE.match(line.text):
            self.tell(DROPPED, "include", f"{line.text[:200]}: other files are not read", line, severity="warning")
        elif (special := _SPECIAL.match(line.text)) is not None:
            self.special(special[1].lower(), line)
        elif match is None:
            self.refuse("is neither a command nor a queue statement", line)
        else:
            self.command(match, line)

    def special(self, word: str, line: Line) -> None:
        """A statement that is reached: one of error has condor_submit refuse the description, one of warning prints."""
        shown = line.text[:200]
        if word == "error":
            self.refuse(f"{shown}: condor_submit stops here and submits nothing", line)
        elif word == "warning":
            self.tell(APPROXIMATED, word, f"{shown}: condor_submit prints this", line, severity="info")
        else:
            self.tell(DROPPED, word, f"{shown}: dropped, what it stands for is known to HTCondor alone", line,
                      severity="warning")

    def command(self, match: re.Match[str], line: Line) -> None:
        """``NAME = VALUE``, with lines up to its mark."""
        value = match["value"].strip()
        if match["here"]:
            lines = self.lines.until(f"@{value}")
            if lines is None:
                self.refuse(f"@{value} is missing", line)
                self.lines.at = len(self.lines.lines)
                return
            value = "\n".join(lines)
        name = match["name"]
        if match["plus"]:
            name = f"MY.{name}"
        self.assign(name if name.startswith("MY.") else name.lower(), name, value, line)

    def assign(self, key: str, name: str, value: str, line: Line) -> None:
        """Give a command its value, its own earlier one put in."""
        if key in self.more:
            return
        before = self.commands.get(key)
        if "$(" in value and f"$({key.removeprefix('MY.')}".lower() in value.lower():
            own = re.compile(rf"\$\({re.escape(name)}(?::[^()]*)?\)", re.IGNORECASE)     # made of the one before
            old = before.value if before is not None else ""
            if len(value) + len(own.findall(value)) * len(old) > MOST:
                self.refuse(f"{name} grows beyond {MOST} characters", line, name)
                return
            value = own.sub(lambda _: old, value)
        self.commands[key] = Command(key, value, line)
        if len(self.commands) > COMMANDS:
            self.reading.findings.add("SSS110", "commands", f"more than {COMMANDS} commands", line=line.number)
            self.reading.findings.raise_if_rejected()

    # -- queue
    def queue(self, rest: str, line: Line) -> None:
        """A queue statement: a number of jobs, or one for each of some items."""
        executable = self.commands.get("executable")
        if (executable.value if executable else "") != self.executable:
            self.number, self.executable = 0, executable.value if executable else ""      # another cluster
        match = _ITEMS.fullmatch(rest)
        if match is None:
            count = self.count(rest, line)
            if count:
                self.add(Submission(dict(self.commands), count, first=self.number, line=line))
            return
        count = self.count(match["count"], line)
        names = tuple(re.split(r"[\s,]+", match["names"].strip().lower())) if match["names"] else ("item",)
        items = self.items(match["how"].lower(), match["items"].strip(), len(names), line)
        if items is None:
            self.tell(DROPPED, "queue", f"{line.text[:200]}: the items are in files, which are not read; one job "
                      "stands for all of them", line, severity="warning")
            self.add(Submission(dict(self.commands), count, names, None, self.number, line.text, line=line))
        elif count and items:
            self.add(Submission(dict(self.commands), count, names, items, self.number, line=line))

    def add(self, submission: Submission) -> None:
        """Add a submission, within the limits."""
        limits: Limits = self.reading.context.limits
        items = len(submission.items or ("",))
        self.items_made += items
        self.work += items * sum([len(c.value) + len(name) for name, c in submission.commands.items()])
        if self.items_made > limits.array_elements or self.work > WORK:
            self.reading.findings.add("SSS110", "array_elements", f"more than {limits.array_elements} items are queued "
                                      "(limit array_elements)", line=submission.line.number)
            self.reading.findings.raise_if_rejected()
        texts = [*(c.value for c in submission.commands.values()), submission.line.text]
        submission.used = frozenset(name.lower() for text in texts if "$" in text for name in _MACRO.findall(text))
        self.made.append(submission)
        self.number += submission.count * len(submission.items or ("",))

    def count(self, text: str, line: Line) -> int:
        """The number of jobs, 1 unless said; 0, and refused, where it is no number."""
        value = Macros(self.commands).expand(text.strip(), {}).strip()
        number = whole(value) if value else 1
        if number is None or not 0 <= number < 1 << 31:
            self.refuse(f"{value!r} is no number of jobs", line, "queue")
            return 0
        if not number:
            self.tell(APPROXIMATED, "queue", "no job is queued", line)
        return number

    def items(self, how: str, text: str, names: int, line: Line) -> list[tuple[str, ...]] | None:
        """The values of the variables, a tuple a job; None where they stand in other files."""
        part = _SLICE.match(text)
        text = text[part.end():] if part is not None else text
        if how == "matching" or (how == "from" and not text.startswith("(")):
            return None
        lines = [text]
        if text.startswith("("):
            inside, closed, _ = text[1:].rpartition(")")
            lines = [inside] if closed else [text[1:]]
            if not closed:
                more = self.lines.until(")")
                if more is None:
                    self.refuse("the items have no closing bracket", line, "queue")
                    return []
                lines += more
        lines = [line_text for line_text in lines if line_text.strip() and not line_text.strip().startswith("#")]
        if how == "in":
            lines = [word for line_text in lines for word in re.split(r"[\s,]+", line_text.strip()) if word]
        tuples = [_parted(line_text.strip(), names) for line_text in lines]
        if part is None:
            return tuples
        first, last, step = (int(n) if n else None for n in part.groups())
        return tuples[first:first + 1] if ":" not in part[0] and first is not None else tuples[first:last:step or None]


def _parted(text: str, count: int) -> tuple[str, ...]:
    """The values of so many variables; the last one has the rest."""
    values: list[str] = []
    for _ in range(count - 1):
        word, _, text = re.sub(r"\s*[,\s]\s*", "\0", text, count=1).partition("\0")
        values.append(word)
    return (*values, text)


def whole(text: str) -> int | None:
    """The value of a sum or product of whole numbers; None for all else."""
    if not re.fullmatch(r"[\d\s+*-]{1,80}", text, re.ASCII) or "**" in text:
        return None
    total = 0
    for sign, product in re.findall(r"([+-]?)([^+-]+)", text):
        value = 1
        for factor in product.split("*"):
            if not re.fullmatch(r"\s*\d{1,12}\s*", factor):
                return None
            value *= int(factor)
        total += -value if sign == "-" else value
    return total if abs(total) < 1 << 53 else None


class MacroError(ValueError):
    """A macro that leads back to itself, or grows without end."""


class Macros:
    """The macros of a description at one queue statement, for one item."""

    def __init__(self, commands: dict[str, Command], late: frozenset[str] = LATE) -> None:
        self.commands, self.late = commands, late
        self.undefined: set[str] = set()
        self.known: dict[str, str] = {}         # values that were worked out, for one item

    def expand(self, text: str, values: dict[str, str], depth: int = 0) -> str:
        """The text with its macros replaced; values: of the item. What only HTCondor can compute stays. MacroError."""
        if "$" not in text:
            return text
        if depth > DEPTH:
            raise MacroError(f"more than {DEPTH} macros within one another")
        pieces: list[str] = []
        at, size = 0, 0
        while at < len(text):
            start = text.find("$", at)
            if start < 0:
                start = len(text)
            pieces.append(text[at:start])
            at = start
            if start < len(text):
                piece, at = self._one(text, start, values, depth)
                pieces.append(piece)
            size += len(pieces[-1])
            if size > MOST:
                raise MacroError(f"a value grows beyond {MOST} characters")
        return "".join(pieces)

    def _one(self, text: str, start: int, values: dict[str, str], depth: int) -> tuple[str, int]:
        """What stands for the macro that begins at a dollar sign, and where it ends."""
        match = _CALL.match(text, start)
        if match is None:
            return "$", start + 1
        end = _closing(text, match.end())
        if end is None or match["late"]:
            stop = match.end() if end is None else end + 1
            return text[start:stop], stop
        inside = text[match.end():end]
        if inside.strip().lower() == "dollar" and not match["function"]:
            after = re.sub(r"^\$\(dollar\)", "$", text[end + 1:end + 40], flags=re.IGNORECASE)
            macro = OPAQUE.match(f"${after}") is not None or (
                text[end + 1:end + 2] in ("(", "[") and text[:start].lower().endswith(("$", "$(dollar)")))
            return ("$(DOLLAR)" if macro else "$"), end + 1
        if match["function"]:
            return self._function(match["function"], inside, values, depth), end + 1
        return self._name(inside, values, depth), end + 1

    def _name(self, inside: str, values: dict[str, str], depth: int) -> str:
        name, colon, default = inside.partition(":")
        key = name.strip().lower()
        if key in values:
            return values[key]
        if key.startswith("my."):
            key = f"MY.{name.strip()[3:]}"
        if key in self.commands:
            if key not in self.known:
                self.known[key] = self.expand(self.commands[key].value, values, depth + 1)
            return self.known[key]
        if key in self.late:
            return f"$({inside})"
        if not colon:
            self.undefined.add(name.strip())
        return self.expand(default, values, depth + 1)

    def _function(self, name: str, inside: str, values: dict[str, str], depth: int) -> str:
        """The result of what needs no more than the description; all else stays, its macros replaced."""
        words = [self.expand(w.strip(), values, depth + 1) for w in inside.split(",")]
        whole_text = f"${name}({','.join(words)})"
        if name == "ENV" or words[0].lower() in self.late:
            return f"${name}({inside})"
        if words[0].lower() in values or (words[0].lower() in self.commands and name not in ("CHOICE",)):
            words[0] = self._name(words[0], values, depth)
        if any("$" in w for w in words):
            return whole_text if not re.fullmatch(r"\w+", inside.split(",")[0].strip()) else f"${name}({inside})"
        result = _computed(name, words)
        return f"${name}({inside})" if result is None else result


_CALL: Final = re.compile(r"\$(?P<late>\$)?(?P<function>[A-Za-z_]+)?[(]")


def _closing(text: str, at: int) -> int | None:
    depth = 1
    while at < len(text):
        depth += (text[at] == "(") - (text[at] == ")")
        if not depth:
            return at
        at += 1
    return None


def _computed(name: str, words: list[str]) -> str | None:
    """The result of a function whose arguments are known, where it is simple."""
    number = whole(words[0])
    if name == "INT" and number is not None and len(words) < 3:
        form = re.fullmatch(r"%(0?\d{0,2})d", words[1]) if len(words) == 2 else re.fullmatch("()", "")
        return None if form is None else format(number, f"{form[1]}d")
    if name == "CHOICE" and number is not None and 0 <= number < len(words) - 1 > 1:
        return words[number + 1]
    if name in ("BASENAME", "DIRNAME") and len(words) == 1:
        name = "Fnx" if name == "BASENAME" else "Fp"
    if re.fullmatch(r"F[pnx]+", name) and len(words) == 1:
        folder, slash, file = words[0].rpartition("/")
        stem, dot, extension = file.rpartition(".")
        parts = {"p": folder + slash, "n": stem if dot else file, "x": dot + extension if dot else ""}
        return "".join(parts[letter] for letter in "pnx" if letter in name[1:])
    return None
