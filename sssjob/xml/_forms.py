"""Forms that release 3.1 has for what stands otherwise in a document: brackets around alternatives, and when a List is
to stand for a Range of several groups, or one Feature for several. Source: SSS job object 3.1.0, sections 6.1 and 14.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import accumulate
from typing import Final

from sssjob.document.element import Container, Item, Property
from sssjob.document.vocabulary import CONTAINERS

_BRACKETS: Final = re.compile(r"\[[^\]]*\]")


def is_adapter(p: Property) -> bool:
    """Whether a Network names the kind of an adapter rather than an amount; older releases have a name for that."""
    return p.tag == "Network" and isinstance(p.value, str)


def bracketed(items: list[Item]) -> list[Item] | None:
    """The items of a Requested block so that further ones are demanded beside all of them: in brackets where there are
    alternatives. None where its own brackets do not balance."""
    properties = [i for i in items if isinstance(i, Property)]
    if not any(p.conj in ("Or", "Nor") for p in properties):
        return items
    try:
        groups = [int(p.attributes.get("group", "0")) for p in properties]
    except ValueError:
        return None
    if sum(groups) or min(accumulate(groups)) < 0:
        return None
    groups[0] += 1
    groups[-1] -= 1
    texts = iter([str(n) if n else None for n in groups])       # one property may stand in several places
    return [i.replace(group=next(texts)) if isinstance(i, Property) else i for i in items]


def is_parted(p: Property, node: Container | None = None) -> bool:
    """Whether a Node is a Range of several groups."""
    return p.attributes.get("aggregation") == "Range" and "," in _BRACKETS.sub("", p.text)


def _is_repeated(p: Property, node: Container) -> bool:
    """Whether several Features stand bare, where the text has one."""
    return not CONTAINERS[node.tag].category and len(node.all("Feature")) > 1


#: When 3.1 has another form for what a name says.
FORMS: Final[dict[str, Callable[[Property, Container], bool]]] = {
    "Feature": _is_repeated, "Node": is_parted}
