"""The XML of plain jobs, one after another: what stands around the values is made into text once for each outline.

A job is plain where the document writer would have nothing to say and no other form to give it; all others are left to
that writer. The tests hold both against each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

from sssjob.document.element import Property, text_of
from sssjob.document.model import Job
from sssjob.document.outlines import Field, Outline, OutlinedJob, Outlines

#: What cannot stand as it is.
_MARKED: Final = re.compile("[^\t\n -%'-;=?-~\u00a0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_QUOTED: Final = re.compile("[^ !#-%'-;=?-~\u00a0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BRACKETS: Final = re.compile(r"\[[^\]]*\]")
_FORMED: Final = ("Feature",)       # which 3.1 may write in another form; so does Node, where it lists groups
_HELD: Final = 1 << 12                      # outlines whose text is remembered


class _Form(NamedTuple):
    """The text of jobs of an outline. form: with a mark for each value; values: takes these, in the order of the marks,
    from those of a job; texts: places of those that are texts; others: of those that are neither texts nor whole
    numbers; ranges: of Nodes that may list several groups."""

    form: str
    values: Callable[[Sequence[Any]], Any]
    texts: tuple[int, ...]
    others: tuple[int, ...]
    ranges: tuple[int, ...]


class PlainJobs:
    """Writes plain jobs. indent: what stands before the element of a job."""

    def __init__(self, indent: str = "  ") -> None:
        self._indent = indent
        self._outlines = Outlines()
        self._forms: dict[Outline, _Form | None] = {}

    def text(self, job: Job | OutlinedJob) -> str | None:
        """The element, a line for each property; None where the job is not plain."""
        outlined = self._outlines.of(job) if isinstance(job, Job) else job
        if job.attributes or outlined is None:
            return None
        outline, values = outlined.outline, outlined.values
        if outline not in self._forms:
            if len(self._forms) >= _HELD:
                self._forms.clear()
            self._forms[outline] = _formed(outline, self._indent)
        form = self._forms[outline]
        if form is None or any([_parted(values[place]) for place in form.ranges]):
            return None
        if form.others:
            values = [*values]
            for place in form.others:
                if (value := values[place]).__class__ is not int:
                    values[place] = text_of(value)
        texts = "".join([values[place] for place in form.texts])
        if not (texts.isascii() and texts.isprintable()) or "<" in texts or ">" in texts or "&" in texts:
            values = [*values]
            for place in form.texts:
                if _MARKED.search(values[place]) is not None:
                    escaped = _escaped(values[place])
                    if escaped is None:
                        return None
                    values[place] = escaped
        text: str = form.form % form.values(values)
        return text


def _formed(outline: Outline, indent: str) -> _Form | None:
    """The text of the jobs of an outline; None where these are not plain."""
    lines, places = list[str](), list[int]()

    def add(place: int, depth: int) -> bool:
        """Add the line of a property; whether it is plain."""
        line = _line(outline.fields[place])
        if line is not None:
            lines.append(f"{indent}{'  ' * depth}{line}\n")
            places.append(place)
        return line is not None

    for place in range(outline.bare):
        inside, field = outline.slots.get(place), outline.fields[place]
        if inside is None:
            if not add(place, 1):
                return None
            continue
        lines.append(f"{indent}  <{field.tag}>\n")
        if not inside or field.attributes or not all([add(inner, 2) for inner in inside]):
            return None
        lines.append(f"{indent}  </{field.tag}>\n")
    if not places:
        return None
    classes = {place: outline.fields[place].value_class for place in places}
    return _Form(f"{indent}<Job>\n{''.join(lines)}{indent}</Job>\n", itemgetter(*places),
                 tuple([place for place, kind in classes.items() if issubclass(kind, str)]),
                 tuple([place for place, kind in classes.items() if not issubclass(kind, str) and kind is not int]),
                 tuple([place for place in places if outline.fields[place].tag == "Node"
                        and outline.fields[place].attributes.get("aggregation") == "Range"]))


def _line(field: Field) -> str | None:
    """The element of a property, with a mark for its value; None where it is not plain."""
    if not issubclass(field.kind, Property) or (field.tag in _FORMED and issubclass(field.value_class, str)):
        return None
    for name, text in field.attributes.items():
        if not name.isidentifier() or not name.isascii() or _QUOTED.search(text) is not None:
            return None
    tag = field.tag.replace("%", "%%")
    more = "".join([f' {name}="{text}"' for name, text in field.attributes.items()]).replace("%", "%%")
    return f"<{tag}{more}>%s</{tag}>"


def _parted(node: object) -> bool:
    """Whether the range of a Node lists several groups."""
    return "," in _BRACKETS.sub("", str(node))


def _escaped(text: str) -> str | None:
    if not text.isprintable():
        return None
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
