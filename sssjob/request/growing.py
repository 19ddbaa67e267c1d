"""A job that asks for more than before: what another attempt after a failure is planned with.

Amounts are changed where and as the request says them, so that memory per node stays memory per node and all totals
follow from the changed request as from any other. What only bounds an amount from above, and what is no amount at all,
stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Final, TypeVar

from sssjob.document.element import Container, Item, Property
from sssjob.document.failures import Change
from sssjob.document.lexical import LexicalError
from sssjob.document.model import Job
from sssjob.document.units import from_bytes, to_bytes

__all__ = ["amounts_of", "grown"]

_C = TypeVar("_C", bound=Container)

#: Operators of amounts that a job needs; with the others (LT, LE, NE) an amount says what it must not have.
_NEEDED: Final = (None, "EQ", "GE", "GT")
_NEGATED: Final = ("Nand", "Nor")
_ELSEWHERE: Final = ("Delivered", "Environment")     # containers whose amounts nobody asks for


def grown(job: Job, changes: Sequence[Change]) -> Job:
    """A copy of a job with its defaults in which each change was made, one after the other."""
    return _grown(job, changes) if changes else job


def amounts_of(job: Job, name: str) -> list[Decimal]:
    """The amounts that ``grown`` would change: seconds of Duration, bytes of Memory."""
    steps: list[Decimal] = []
    stack: list[Container] = [job]
    while stack:
        for item in stack.pop().items:
            if isinstance(item, Container) and item.tag not in _ELSEWHERE:
                stack.append(item)
            elif isinstance(item, Property) and item.tag == name and (amount := _amount(item)) is not None:
                steps.append(amount)
    return steps


def _grown(scope: _C, changes: Sequence[Change]) -> _C:
    items: list[Item] = []
    for item in scope.items:
        if isinstance(item, Property):
            item = _changed(item, changes)
        elif isinstance(item, Container) and item.tag not in _ELSEWHERE:
            item = _grown(item, changes)
        items.append(item)
    return type(scope)(items, scope.attributes or None, scope.reference, scope.line, scope.spelling)


def _changed(p: Property, changes: Sequence[Change]) -> Property:
    mine = [change for change in changes if change.name == p.tag]
    before = _amount(p) if mine else None
    if before is None:
        return p
    amount = before
    for change in mine:
        amount = change.of(amount)
    if amount == before:
        return p
    if p.tag == "Duration":
        return p.replace(int(amount))
    number, units = from_bytes(amount)
    return p.replace(number, units=units)


def _amount(p: Property) -> Decimal | None:
    """Seconds or bytes of a needed amount; None for anything else."""
    if p.get("op") not in _NEEDED or p.get("conj") in _NEGATED or not isinstance(p.value, int | Decimal):
        return None
    if p.tag == "Duration":
        return Decimal(p.value)
    try:
        return to_bytes(Decimal(p.value), p.get("units"))
    except LexicalError:
        return None
