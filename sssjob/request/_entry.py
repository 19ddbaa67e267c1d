"""An item of a job at its place, as it is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Final

from sssjob.document.element import Container, Property, Raw, Value
from sssjob.findings import Policy

_NOTHING: Final[frozenset[str]] = frozenset()


class Entry:
    """One item of the job at its place.

    tag, attributes: of the item as it stands, op and conj included; level: where it stands; slot: "", Requested,
    Delivered or Environment; above: the path of what it stands in; used: something was made of it; understood:
    attributes that were; taken: what is asked for in its place, free of op and conj.
    """

    __slots__ = ("above", "attributes", "item", "level", "policy", "slot", "tag", "taken", "understood", "used")

    def __init__(self, item: Property | Raw | Container, level: str, slot: str, above: str, policy: Policy) -> None:
        self.item, self.level, self.slot, self.policy = item, level, slot, policy
        self.tag: str = item.tag            # asked for again and again: a property of this class would cost a call
        self.attributes: Mapping[str, str] = item.attributes
        self.used = False
        self.understood: Set[str] = _NOTHING
        self.taken: Property | None = None
        self.above = above

    @property
    def path(self) -> str:
        """``/Job/Requested/Memory``."""
        return f"{self.above}/{self.tag}"

    @property
    def place(self) -> tuple[str, int]:
        """What tells it from the others of the job: the item alone does not, for a document that is read may hold one
        for two properties that say the same."""
        return self.above, id(self.item)

    @property
    def called(self) -> str:
        """``Memory``, ``Extension Array``: what findings call it."""
        return f"{self.tag} {self.attributes.get('name', '')}".rstrip() if self.tag == "Extension" else self.tag

    @property
    def value(self) -> Value:
        """The value that is asked for; only properties have one."""
        assert isinstance(self.item, Property)
        return (self.taken or self.item).value

    @property
    def text(self) -> str:
        """The same as text."""
        item: Property = self.taken or self.item  # type: ignore[assignment]     # no container is asked for
        value = item.value
        return value if type(value) is str else item.text


def policy_of(item: Property | Raw | Container, inherited: Policy) -> Policy:
    """The awarenessPolicy that holds for an item: its own, else the inherited one; an unknown word is Reject."""
    stated = item.attributes.get("awarenessPolicy")
    return inherited if stated is None else Policy.of(stated) or Policy.REJECT


def kind_of(e: Entry) -> tuple[str | None, ...]:
    """What amounts have in common that are one amount."""
    return tuple(e.attributes.get(name) for name in ("type", "metric", "context", "units"))


def said_of(e: Entry) -> str:
    """``GE 4``: an entry as a condition, of a resource with its type."""
    assert isinstance(e.item, Property)
    no = "not " if e.item.conj in ("Nand", "Nor") else ""
    kind = f" of type {e.attributes['type']}" if e.tag == "Resource" and "type" in e.attributes else ""
    return f"{no}{e.item.op} {e.item.text}{unit_of(e)}{kind}"


def unit_of(e: Entry) -> str:
    """The unit of an amount with a blank before it; empty where it has none."""
    return f" {e.attributes['units']}" if "units" in e.attributes else ""
