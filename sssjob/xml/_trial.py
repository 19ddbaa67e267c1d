"""What a text says is tried by the careful code, one tag at a time, without a place in a document.

What that has nothing to tell about is understood, and so is what was told once and is not told again in the same
document (another name for a property). Everything else has to be reported with its place, which only a tree knows.
"""

from __future__ import annotations

from typing import Any, Final

from lxml import etree

from sssjob.document.element import NO_ATTRIBUTES, Item, Property
from sssjob.document.vocabulary import CONTAINERS, HOMELESS, TRANSPARENT
from sssjob.findings import Findings, Severity
from sssjob.xml._elements import ElementReader
from sssjob.xml._pieces import Thought, whole
from sssjob.xml._scopes import Scope, Start, Texts
from sssjob.xml.xmlio import parser

_NOWHERE: Final = (0, 0, "")


class Trial(ElementReader):
    """The careful code for one document, which raises Thought instead of telling anything."""

    __slots__ = ()

    def __init__(self, reader: ElementReader) -> None:
        super().__init__(reader.profile, Findings(), reader.limits, reader.default, lambda element: _NOWHERE,
                         reader.scopes, reader.once)

    def tell(self, rule: str, element: Any, subject: str, message: str, hint: str = "",
             severity: Severity | None = None) -> None:
        """Nothing is told here."""
        raise Thought

    def tell_once(self, rule: str, element: Any, subject: str, message: str,
                  severity: Severity | None = None) -> None:
        """What was told already is not told again."""
        if (rule, subject) not in self.once:
            raise Thought
        self.findings.told += 1

    def unknown(self, child: Any, local: str, scope: Scope) -> None:
        """Nothing is told here."""
        raise Thought

    def leaf(self, scope: Scope, head: str, text: str) -> tuple[Property | None, Texts | None]:
        """The property that ``<head>text`` is, None where it is taken as absent; and what reads others with that head.

        Raises Thought."""
        name = head.split(None, 1)[0] if head.strip() else ""
        if not whole(head):
            raise Thought
        element = _element(f"<{head}>{text}</{name}>")
        items: list[Item] = []
        self.other(element, element.tag.rpartition("}")[2], element.items(), scope, items, 1)
        if not items:
            return None, None
        first = items[0]
        if not isinstance(first, Property) or len(items) > 1:
            raise Thought
        if first.spelling in HOMELESS or first.tag not in scope.rows:
            return first, None
        row = scope.rows[first.tag][0]
        if first.attributes is NO_ATTRIBUTES and first.spelling is None and name in scope.texts:
            return first, scope.texts[name]
        return first, Texts(row, first.attributes, first.spelling)

    def start(self, scope: Scope, head: str, classes: dict[str, Scope] | None = None) -> tuple[Scope, Start]:
        """The scope of the container that starts with ``<head>``, and what its tag says. Raises Thought."""
        element = _element(f"<{head}/>")
        local = element.tag.rpartition("}")[2]
        inner = (scope.classes if classes is None else classes).get(local)
        if inner is None:
            row, alias = scope.rows.get(local, (None, None))
            wraps = local in TRANSPARENT or (row is not None and row.name == "Node" and alias is not None)
            if wraps and self.profile.aliases and ("SSS306", local) in self.once:
                return scope, (None, NO_ATTRIBUTES, True)
            raise Thought
        spelling = None if local == inner.name else local
        if spelling is not None and spelling in CONTAINERS[inner.name].aliases and spelling != self.profile.root:
            self.tell_once("SSS306", element, spelling, "")
        own = element.items()
        return inner, (spelling, self.own_attributes(element, own, inner) if own else NO_ATTRIBUTES, False)

    def may_be_empty(self, scope: Scope) -> bool:
        """Whether a container without items is nothing to tell about any more."""
        return (self.profile.liberal and scope.name != "Environment" and not CONTAINERS[scope.name].reference
                and ("SSS204", scope.name) in self.once)


def _element(text: str) -> Any:
    try:
        return etree.fromstring(text, parser())
    except (etree.XMLSyntaxError, ValueError):
        raise Thought from None
