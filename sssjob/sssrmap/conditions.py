"""The conditions of a request (Where): one expression, true or false of each object.

``conj`` and ``group`` mean what they mean in Requested (section 10.2 of the job object): And binds over Or, brackets
open before a condition and close after it, AndNot and OrNot negate the one condition. So the expression is parsed by
``sssjob.request``. Of several values of a property one that meets the condition is enough.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final

from sssjob.document.element import new_property
from sssjob.document.vocabulary import SILENT
from sssjob.findings import Findings, escape
from sssjob.limits import LIMITS, Limits
from sssjob.request.tree import AllOf, AnyOf, Node, Not, Predicate, parse
from sssjob.sssrmap.joining import comparable
from sssjob.sssrmap.model import CONJUNCTIONS, WHERE_OPS, MessageError, Where
from sssjob.sssrmap.properties import Property, Typed, rank
from sssjob.sssrmap.things import Thing

__all__ = ["Test", "condition"]

Test = Callable[[Thing], bool]

_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "EQ": eq, "NE": ne, "LT": lt, "LE": le, "GT": gt, "GE": ge}
#: Conjunction of SSSRMAP -> its word in the job object.
_TIES: Final = {"And": "And", "Or": "Or", "AndNot": "Nand", "OrNot": "Nor"}
_NULL: Final = "NULL"
_LIKE: Final = str.maketrans("%_", "*?")


def condition(wheres: Sequence[Where], property_of: Callable[[str, str | None], Property], *,
              limits: Limits = LIMITS, like: bool = False) -> Test:
    """The test of an object that some conditions are. property_of: a property by its name and the label of its object;
    like: whether % and _ are patterns of Match too, as Gold's list commands write them.

    Raises MessageError: 318 for an operator, a conjunction or brackets that do not exist, 317 for a value that is not
    of the type of its property.
    """
    tests: list[Test] = []
    ties = []
    for where in wheres:
        if (where.conj or "And") not in CONJUNCTIONS:
            raise MessageError("318", f"conj {escape(where.conj or '', 40)!r} is not known "
                                      f"(known: {', '.join(CONJUNCTIONS)})")
        conj = _TIES[where.conj or "And"]
        attributes = {"conj": conj, "group": str(where.group or 0)}
        ties.append(new_property("Where", str(len(tests)), dict(attributes.items() - SILENT)))
        own = property_of(where.name, where.object)
        if where.subject is None:
            tests.append(_test(where, own, like))
        else:
            tests.append(_tying(_op(where), own, property_of(where.value, where.subject)))
    if not tests:
        return lambda object_: True
    findings = Findings(limits=limits)
    expression = parse(ties, findings, strict=True, limits=limits)
    if findings.rejected:
        raise MessageError("318", "; ".join(f.message for f in findings.rejecting()))
    return _of(expression.root, tests)


def _of(node: Node, tests: Sequence[Test]) -> Test:
    """The test that a tree of conditions is."""
    match node:
        case Predicate():
            return tests[int(node.property.text)]
        case Not():
            negated = tests[int(node.item.property.text)]
            return lambda object_: not negated(object_)
        case AllOf() | AnyOf():
            inner = [_of(item, tests) for item in node.items]
            if isinstance(node, AllOf):
                return lambda object_: all(test(object_) for test in inner)
            return lambda object_: any(test(object_) for test in inner)
    raise AssertionError(node)      # preferences are no part of SSSRMAP


def _op(where: Where) -> str:
    op = where.op or "EQ"
    if op not in WHERE_OPS:
        raise MessageError("318", f"op {escape(op, 40)!r} is not known (known: {', '.join(WHERE_OPS)})")
    return op


def _tying(op: str, own: Property, other: Property) -> Test:
    """The test of a condition that compares properties of two objects."""
    if op not in _COMPARE:
        raise MessageError("318", f"{op} compares with a value, and not with a property")
    compare, (value_of, value_of_other) = _COMPARE[op], comparable(own, other)
    return lambda object_: any(_holds(compare, value_of(value), value_of_other(other_value))
                               for value in own.of(object_) for other_value in other.of(object_))


def _test(where: Where, property_: Property, like: bool) -> Test:
    op = _op(where)
    if where.value == _NULL and op in ("EQ", "NE"):
        absent = op == "EQ"
        return lambda object_: any(map(property_.text, property_.of(object_))) is not absent
    if op == "Match":
        pattern = where.value.translate(_LIKE) if like else where.value
        fits = re.compile(fnmatch.translate(pattern.replace("[", "[[]"))).match
        return lambda object_: any(fits(property_.text(value).strip()) for value in property_.of(object_))
    wanted_value = property_.wanted(where.value, where.units)
    compare = _COMPARE[op]
    return lambda object_: any(_holds(compare, property_.typed(value), wanted_value) for value in property_.of(object_))


def _holds(compare: Callable[[Any, Any], bool], value: Typed, wanted_value: Typed) -> bool:
    """Whether a value is as it is wanted; one that is not of the type differs from all values and has no order."""
    if type(value) is type(wanted_value):
        if isinstance(value, str) and compare not in (eq, ne):
            return compare(rank(value), rank(wanted_value))
        return compare(value, wanted_value)
    return compare is ne
