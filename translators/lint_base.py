"""What a check of a batch script sees (``Script``) and what it gives (``Hit``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from sssjob.document.model import Document
from sssjob.findings import Findings, Policy, Severity
from sssjob.limits import LIMITS
from sssjob.translators.base import ReadContext
from sssjob.translators.registry import get
from sssjob.translators.scripts.base import Dialect, Reading, ScriptDocument
from sssjob.translators.scripts.body import asked
from sssjob.translators.scripts.placeholders import scanned
from sssjob.translators.scripts.raw import Line, Option, before_commands, lines_of, numbers_of

if TYPE_CHECKING:
    from sssjob.conversion.site import Site
    from sssjob.translators.bodies.shell import Shell
    from sssjob.translators.recognise import Sample

__all__ = ["Hit", "Run", "Script"]


@dataclass(frozen=True, slots=True)
class Hit:
    """One occurrence. line 0: of the script as a whole; severity None: that of the rule."""

    line: int
    column: int
    subject: str
    message: str
    severity: Severity | None = None


@dataclass
class Script:
    """A script, its dialect, and the document that its reader made of it.

    parts: the live options of each part of a heterogeneous job, in order; options: those of all parts together.
    sample: the data as they were recognised, if they were.
    """

    dialect: Dialect
    data: bytes
    document: Document
    findings: Findings
    site: Site | None = None
    sample: Sample | None = None

    def __post_init__(self) -> None:
        self.text = self.data.decode("utf-8", "surrogateescape")        # as a reader takes it
        self.lines: list[Line] = getattr(self.document, "whole", None) or list(lines_of(self.text))
        self.parts = self._parts()
        self.options = self.parts[0] if len(self.parts) == 1 else [o for part in self.parts for o in part]
        self.last: dict[str, Option] = dict(zip(map(_NAME, self.options), self.options, strict=True))    # of each name
        self.names = self.last.keys()           # of the live options
        #: The values of all live options, to see at once that a sign stands in none of them.
        self.values = "\n".join(filter(None, map(_VALUE, self.options)))
        #: The number of the first line that is neither blank nor a comment; past the end where there is none.
        self.first_command = before_commands(self.lines) + 1
        live = None if self.sample is None else self.sample.live.get(self.dialect.name)
        #: The lines that the submit command obeys.
        self.live_lines = self.dialect.live(self.lines) if live is None else live

    def of(self, names: Collection[str]) -> list[Option]:
        """The live options of some names."""
        last = self.last
        if len(last) == len(self.options):
            return [last[name] for name in names if name in last]
        return [option for option in self.options if option.name in names]

    def line(self, number: int) -> str:
        """The text of a line from 1; empty for what is no line."""
        return self.lines[number - 1].text if 0 < number <= len(self.lines) else ""

    @cached_property
    def templates(self) -> frozenset[tuple[int, int]]:
        """Places of values that the reader took for placeholders."""
        return frozenset((f.line, f.column) for f in self.findings if f.kind == "template")

    def _parts(self) -> list[list[Option]]:
        """The options of each part of a heterogeneous job; of a job of one part those that the reader found."""
        separator, document = self.dialect.separator, self.document
        if isinstance(document, ScriptDocument) and document.whole and not (separator and separator in self.text):
            return [document.options]
        return scanned(self.dialect, Reading(self.dialect, ReadContext(policy=Policy.WARN)), self.lines,
                       self.text).components

    @cached_property
    def shell(self) -> Shell:
        """The script by the grammar of the shell, parsed once for all checks."""
        from sssjob.translators.bodies.shell import Shell

        return Shell(self.data, LIMITS)

    @cached_property
    def readable(self) -> bool:
        """Whether a shell of the grammar runs it."""
        from sssjob.translators.bodies.languages import SHELLS, interpreter

        return interpreter(self.lines[0].text if self.lines else "") in SHELLS

    def inner(self, number: int) -> bool:
        """Whether a line is text of a here-document or a string; False without the grammar."""
        if not self.readable or not 0 < number <= len(self.starts):
            return False
        return self.shell.quoted(self.starts[number - 1])

    @cached_property
    def starts(self) -> list[int]:
        """Where each line begins, in bytes."""
        return [0, *(m.end() for m in re.finditer(rb"\n", self.data))]

    @cached_property
    def live(self) -> frozenset[int]:
        """The numbers of the lines that the submit command obeys."""
        return numbers_of(self.live_lines)

    @cached_property
    def known(self) -> Mapping[str, str]:
        """What the job asks for, by meaning."""
        whole = get(self.dialect.name).read(self.data, ReadContext(policy=Policy.WARN, site=self.site))
        return asked(next(job for job, _ in whole.jobs()))


_NAME: Final = itemgetter(0)        # of an option
_VALUE: Final = itemgetter(1)
Run = Callable[[Script], Iterator[Hit]]
