"""Where in a JSON text its values stand: looked up when a finding is told, not kept while reading.

A finding about a JSON text names a value by its pointer (``/Job/Requested/Memory``) or, once the text is a document, by
the path of the document. ``JsonPlaces`` leads both to the key of the value in the text, or to the value itself in a
list. The text was read before, so that it is well-formed; of one longer than 16 MiB only paths are told. Places have no
source line: one may be the whole text, with values of variables that nobody should see.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Final

from sssjob.document.element import Container, Item, Property, Raw
from sssjob.document.model import JobGroup
from sssjob.xml.places import DocumentText, Place

__all__ = ["JsonPlaces", "Steps", "TextValue"]

#: The way to a value: names of members, and numbers (from 0, as texts) of those of a list.
Steps = Sequence[str]

_LONGEST: Final = 1 << 24
_BOM: Final = b"\xef\xbb\xbf"
_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')
_STEP: Final = re.compile(r"([^\[\]]+)(?:\[(\d+)\])?")


class TextValue:
    """A value of a text. at: the offset of its key, or its own in a list; token: it, or the bracket that opens it."""

    __slots__ = ("at", "members", "token")

    def __init__(self, at: int, token: bytes) -> None:
        self.at, self.token = at, token
        self.members: list[tuple[str | int, TextValue]] = []

    def named(self, name: str | int) -> list[TextValue]:
        """The members of a name: those of a list under it, or the only members of a list of objects with that key."""
        if isinstance(name, str) and self.token == b"[":
            return [inner for _, entry in self.members for key, inner in entry.members if key == name]
        values: list[TextValue] = []
        for key, value in self.members:
            if key == name:
                values += [entry for _, entry in value.members] if value.token == b"[" and isinstance(name, str) \
                    and not _is_ordered(value) else [value]
        return values

    @property
    def text(self) -> str:
        """The text of a scalar, also of one that stands in an object beside its attributes."""
        inner = next((value for key, value in self.members if key == "value"), self)
        return str(json.loads(inner.token)) if inner.token[:1] == b'"' else inner.token.decode()


def _is_ordered(value: TextValue) -> bool:
    """Whether a list holds the members of one container in their order, each in an object with one key."""
    return all(entry.token == b"{" and len(entry.members) == 1 for _, entry in value.members)


def _parsed(data: bytes) -> list[TextValue]:
    """The outermost values of a text, which is JSON, or one JSON text after another."""
    roots: list[TextValue] = []
    open_values: list[TextValue] = []
    key: tuple[str, int] | None = None
    for match in _TOKEN.finditer(data, len(_BOM) if data.startswith(_BOM) else 0):
        token = match[0]
        if token in b",:":
            continue
        if token in b"}]":
            if open_values:
                open_values.pop()
            continue
        outer = open_values[-1] if open_values else None
        if outer is not None and outer.token == b"{" and key is None:
            key = str(json.loads(token)), match.start()
            continue
        value = TextValue(match.start() if key is None else key[1], token)
        if outer is None:
            roots.append(value)
        else:
            outer.members.append((len(outer.members) if key is None else key[0], value))
        key = None
        if token in b"{[":
            open_values.append(value)
    return roots


class JsonPlaces:
    """The places of one document that was read from JSON.

    root: of the document, None while it is read; reading: which of several objects is read then; known_as: where the
    text is no job object, the steps from the object of a job to what stands there for an item of the document, given
    the item and its path from the job on; values_in: the outermost values of a text that is no JSON.
    """

    __slots__ = ("_known_as", "_roots", "_text", "_values_in", "reading", "root")

    def __init__(self, data: bytes, path: str,
                 known_as: Callable[[Item | None, Sequence[str]], Steps] | None = None,
                 values_in: Callable[[bytes], list[TextValue]] | None = None) -> None:
        self.root: Container | Raw | None = None
        self.reading = 0
        self._text, self._known_as, self._values_in = DocumentText(data, path), known_as, values_in or _parsed
        self._roots: list[TextValue] | None = None

    def of(self, item: Item | None, within: Container | None = None, path: str = "") -> Place | None:
        """The place of an item or of what a path or pointer leads to; of what the text does not have that of what is
        around it. None for a text that is too long."""
        named = [(m[1].replace("~1", "/").replace("~0", "~"), int(m[2] or 0))
                 for m in map(_STEP.fullmatch, path.split("/")[1:]) if m]
        if self._known_as is None:
            return self._place(lambda root: self._inner(root, item, within, named))
        number = self._number(within, named)
        names = [name for name, _ in named]
        return self.at(number, self._known_as(item, names[names.index("Job") + 1:]) if "Job" in names else names)

    def at(self, number: int, steps: Steps) -> Place | None:
        """The place of a value of one of several objects, counted from 0; of steps that the text does not have the last
        that it has."""
        def value_at(root: TextValue) -> TextValue:
            """The value at the end of the steps."""
            value = root
            for step in steps:
                name = int(step) if isinstance(step, str) and step.isdigit() and value.token == b"[" else step
                inner = [member for key, member in value.members if key == name]
                if not inner:
                    break
                value = inner[-1]
            return value

        return self._place(value_at, number)

    def comments(self) -> tuple[int, int]:
        """None: JSON has no comments."""
        return 0, 0

    def _place(self, search: Callable[[TextValue], TextValue], number: int | None = None) -> Place | None:
        data = self._text.read()
        if not data or len(data) > _LONGEST:
            return None
        if self._roots is None:
            roots = self._values_in(data)
            several = len(roots) == 1 and roots[0].token == b"["
            self._roots = [value for _, value in roots[0].members] if several else roots
        roots = self._roots
        if not roots:
            return None
        line, column, _ = self._text.place(data, search(roots[min(number or 0, len(roots) - 1)]).at)
        return line, column, ""

    def _number(self, within: Container | None, named: list[tuple[str, int]]) -> int:
        """Which job of a group a finding is about, counted from 0."""
        number = next((number for name, number in named if name == "Job"), 0)
        if self.root is None:
            return self.reading
        if number or not isinstance(self.root, JobGroup) or within is None:
            return max(0, number - 1)
        jobs = list(self.root.jobs)
        like = [at for at, job in enumerate(jobs) if job is within] or [
            at for at, job in enumerate(jobs) if _id(job) == _id(within) is not None]
        return like[0] if like else 0

    def _inner(self, root: TextValue, item: Item | None, within: Container | None, named: list[tuple[str, int]]
               ) -> TextValue:
        """What a path leads to in a job object."""
        value = root
        several: list[TextValue] = []      # of the step before, of which a pointer names one by its number
        for at, (name, number) in enumerate(named):
            last = at == len(named) - 1
            if name.isdigit():
                inner = several[int(name):][:1] or value.named(int(name))
            else:
                inner = value.named(name) or (_below(value, name) if not at else [])
            if not inner and last and isinstance(item, Property | Container):
                inner = value.named(item.spelling or "")
            if not inner:
                break
            several = inner
            if number:
                value = inner[min(number, len(inner)) - 1]
            elif name == "Job" and len(inner) > 1:
                value = inner[min(self._number(within, named), len(inner) - 1)]
            elif last and isinstance(item, Property):
                value = next((member for member in inner if member.text == item.text), inner[0])
            else:
                value = inner[0]
        return value


def _below(root: TextValue, name: str) -> list[TextValue]:
    """The values of a name in the outermost object that has them: a request or a group may be around them."""
    layer = [root]
    while layer:
        inner = [member for value in layer for member in value.named(name)]
        if inner:
            return inner
        layer = [member for value in layer for _, member in value.members if member.members]
    return []


def _id(container: Container) -> str | None:
    return next((p.text for p in container.properties() if p.tag == "Id"), None)
