"""A batch script in an editor: what is wrong at which place, what a directive means, what may stand there, and the same
script for another manager.

Places are a line and a character of it, both from 0; characters are those of the text, whatever an editor counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from sssjob.consequences import worst_first
from sssjob.conversion.converting import AUTO, Conversion
from sssjob.document.element import Property
from sssjob.errors import FormatError, RejectedError, SSSJobError
from sssjob.findings import Finding, Findings, Policy
from sssjob.limits import LIMITS
from sssjob.request.explaining import condition_in_words
from sssjob.translators.base import ReadContext, Translator
from sssjob.translators.lint import lint
from sssjob.translators.lint_choice import ALL, Choice
from sssjob.translators.lint_fixes import fixed
from sssjob.translators.recognise import Sample, scripts
from sssjob.translators.registry import get, names
from sssjob.translators.scripts.raw import Option, lines_of
from sssjob.translators.scripts.rows import Dialect, Row, ScriptDocument, dialect_of, place

if TYPE_CHECKING:
    from sssjob.conversion.site import Site

__all__ = ["Converted", "Hover", "Mark", "Page", "Proposal", "dialects"]

#: Options are proposed of so many names at most; those of the longest table are fewer.
_MOST: Final = 400


class Mark(NamedTuple):
    """A finding at its place; end: the character behind it; rank: from 0, it refuses, on (``worst_first``)."""

    line: int
    start: int
    end: int
    rank: int
    rule: str
    message: str


class Hover(NamedTuple):
    """What is shown of a directive (Markdown), from start to before end of its line."""

    line: int
    start: int
    end: int
    text: str


class Proposal(NamedTuple):
    """What may stand at a place. text: what is put in place of the ``taken`` characters before it; detail: what it
    says."""

    text: str
    taken: int
    detail: str


class Converted(NamedTuple):
    """A script for another manager; text None: it is refused. findings: what was told, or why it is refused."""

    text: str | None
    findings: list[Finding]


def dialects() -> list[Dialect]:
    """The formats of batch scripts that have directives."""
    of_scripts = (dialect_of(name) for name in names() if get(name).kind == "script")
    return [dialect for dialect in of_scripts if dialect is not None]


@dataclass(frozen=True)
class Page:
    """A script as it stands in an editor. source: its dialect, or ``auto``."""

    text: str
    path: str = "-"
    source: str = AUTO
    site: Site | None = None
    choice: Choice = ALL

    @cached_property
    def data(self) -> bytes:
        """The text as the file would hold it."""
        return self.text.encode("utf-8", "surrogateescape" if self.text.isprintable() else "replace")

    @cached_property
    def lines(self) -> list[str]:
        """The lines, without their ends."""
        return [line.text for line in lines_of(self.text)]

    @property
    def too_large(self) -> bool:
        """Whether the script is one that nobody types: looking at it after each key would hold up the editor."""
        return len(self.text) > LIMITS.shell_bytes

    @cached_property
    def dialect(self) -> Dialect | None:
        """The dialect of the script; None where nothing in it tells, several may be meant, or it is too large."""
        if self.too_large:
            return None
        if self.source != AUTO:
            return dialect_of(self.source)
        formats = scripts(Sample(self.data, self.path))
        return dialect_of(formats[0].name) if len(formats) == 1 else None

    @cached_property
    def findings(self) -> list[Finding]:
        """What ``lint`` finds."""
        if self.too_large:
            limit = Findings(self.path)
            limit.add("SSS110", "shell_bytes", f"more than {LIMITS.shell_bytes} characters: nothing is said of it "
                      "while it is edited; sssjob lint reads it", severity="warning")
            return list(limit)
        if self.dialect is None:
            return []
        try:
            return list(lint(self.dialect.name, self.data, self.path, site=self.site, choice=self.choice))
        except RejectedError as error:
            return list(error.findings)

    def marks(self) -> list[Mark]:
        """The findings at their places: from the column of each to the end of its word, without a column on the whole
        line, without a line on the first."""
        return [self._mark(finding) for finding in self.findings]

    def _mark(self, finding: Finding) -> Mark:
        if self.too_large:
            return Mark(0, 0, 0, worst_first(finding.severity, finding.consequence), finding.rule, finding.message)
        line = min(max(finding.line - 1, 0), max(len(self.lines) - 1, 0))
        text = self.lines[line] if self.lines else ""
        start = min(max(finding.column - 1, 0), len(text))
        end = len(text.rstrip())
        if finding.column:
            end = next((at for at in range(start, len(text)) if text[at].isspace()), len(text))
        hint = f" ({finding.hint})" if finding.hint else ""
        return Mark(line, start, max(end, start), worst_first(finding.severity, finding.consequence),
                    finding.rule, finding.message + hint)

    # -- what a directive means
    @cached_property
    def document(self) -> ScriptDocument | None:
        """What the reader makes of the script; None where it refuses it."""
        if self.dialect is None:
            return None
        try:
            context = ReadContext(self.path, policy=Policy.WARN, site=self.site)
            document = get(self.dialect.name).read(self.data, context)
        except SSSJobError:
            return None
        return document if isinstance(document, ScriptDocument) else None

    def option_at(self, line: int, character: int) -> tuple[Option, int, int] | None:
        """The option of a directive at a place, and from where to where it stands."""
        if self.document is None:
            return None
        options = sorted((o for o in self.document.options if o.line == line + 1), key=lambda o: o.column)
        for option, after in zip(options, [*options[1:], None], strict=False):
            text = self.lines[line]
            start, end = option.column - 1, len(text.rstrip()) if after is None else after.column - 1
            if start <= character <= end:
                return option, start, start + len(text[start:end].rstrip())
        return None

    def hover(self, line: int, character: int) -> Hover | None:
        """What the option at a place asks for, and how other managers are asked for the same."""
        place = self.option_at(line, character)
        if place is None or self.document is None or self.dialect is None:
            return None
        option, start, end = place
        asked = [f"- {condition_in_words(p)}" for p, origin in self.document.origins.values()
                 if isinstance(p, Property) and origin is option]
        text = f"**{option.name}** of {self.dialect.title}\n\n" + ("\n".join(asked) or "- nothing that a document says")
        elsewhere = "\n".join(dict.fromkeys(self._elsewhere(option)))
        return Hover(line, start, end, text + (f"\n\n```\n{elsewhere}\n```" if elsewhere else ""))

    def _elsewhere(self, option: Option) -> Iterator[str]:
        """The directives by which other managers are asked for what an option asks for alone."""
        assert self.dialect is not None
        try:
            line = self.dialect.directive(option.name, option.value)
        except SSSJobError:
            return
        empty, alone = (Page(f"#!/bin/sh\n{text}", source=self.dialect.name, site=self.site)
                        for text in ("", f"{self.dialect.prefix} {line}\n"))
        for other in dialects():
            if other is not self.dialect:
                usual = (empty.converted(other.name).text or "").splitlines()
                yield from (text for text in (alone.converted(other.name).text or "").splitlines()
                            if text.startswith(f"{other.prefix} ") and text not in usual)

    # -- what may stand at a place
    def proposals(self, line: int, character: int) -> list[Proposal]:
        """The options whose names begin as the word before a place of a directive, or the beginnings of directives
        where a line begins with #."""
        text = self.lines[line][:character] if 0 <= line < len(self.lines) else ""
        word = text[max(text.rfind(" "), text.rfind("\t")) + 1:]
        for dialect in dialects() if self.dialect is None else (self.dialect,):
            if text != word and text.lstrip().startswith(dialect.prefix):
                return [Proposal(name, len(word), _said_of(dialect, name)) for name in dialect.known
                        if name.startswith(word or "-")][:_MOST]
        if text.startswith("#") and text == word:
            return [Proposal(f"{dialect.prefix} ", len(text), f"a directive of {dialect.title}")
                    for dialect in dialects() if dialect.prefix.startswith(text)]
        return []

    # -- changes
    def mended(self) -> str | None:
        """The text with what can be mended without a doubt; None where that is nothing."""
        if self.dialect is None:
            return None
        data, count = fixed(self.dialect.name, self.data, self.findings)
        return data.decode("utf-8", "surrogateescape") if count else None

    def targets(self) -> list[Dialect]:
        """The managers that the script can be converted for."""
        return [dialect for dialect in dialects() if dialect is not self.dialect] if self.dialect is not None else []

    def converted(self, target: str) -> Converted:
        """The script for another manager, as ``sssjob convert`` writes it."""
        if self.dialect is None:
            return Converted(None, [])
        how = Conversion(self.dialect.name, target, Policy.WARN, site=self.site)
        reader: Translator = get(self.dialect.name)
        context = how.reading(reader, self.path)
        try:
            document = how.read(reader, self.data, context)
            gate = how.gate(reader, document)
            gate.raise_if_rejected()
            return Converted(how.text(document, how.writing(context.findings, how.carrying(reader))),
                             [*context.findings, *gate])
        except RejectedError as error:
            return Converted(None, list(error.findings))
        except FormatError:
            return Converted(None, list(context.findings))


def _said_of(dialect: Dialect, name: str) -> str:
    """What an option says, by the property of its row."""
    row = dialect.known[name]
    if not isinstance(row, Row):
        return ", ".join(dict.fromkeys(place(where).tag for where in row.of or ())) or dialect.title
    return place(row.place).tag if row.place else f"only {dialect.title} knows it"
