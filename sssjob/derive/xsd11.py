"""Writes ``schemas/sssjob-3.1.0-assertions.xsd``, XML Schema 1.1: the types of the 1.0 schema, and its rules.

Beyond 1.0: how often a child may stand (an ``all`` group, which 1.1 allows to be unordered and counted), what MUST be
there, definition or reference but not both, attributes that go together, ids that are unique, brackets that balance.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from sssjob.derive.xsd import TYPES, Dialect, choice, restricted, schema
from sssjob.document.vocabulary import ContainerRow

__all__ = ["TESTS", "xsd11"]

_FINITE: Final = '<xs:pattern value="[0-9eE+.\\-]+"/>'
_TYPES: Final = {
    **TYPES,
    "Name": restricted("string", '<xs:pattern value="\\s*\\S(.|\\s)*"/>'),
    "Float": restricted("float", _FINITE),
    "Amount": restricted("float", f'{_FINITE}<xs:minInclusive value="0"/>'),
}

_REFERENCE: Final = (
    "exists(*) != (normalize-space(string-join(text(), '')) != '')",
    "elements make a definition, text alone a reference by id; never both, never neither",
)
_LIST: Final = ("not(@delimiter) or @aggregation = 'List'", "delimiter parts the members of a List")
_BRACKETS: Final = (
    "sum(for $g in */@group return xs:integer($g)) = 0 and (every $i in 1 to count(*/@group) satisfies "
    "sum(for $g in subsequence(*/@group, 1, $i) return xs:integer($g)) ge 0)",
    "every bracket that opens closes, and none closes before it opens",
)
_AMOUNT: Final = (
    "not(@context | @units | @metric | @duration | @consumptionRate | @dynamic) or "
    "matches($value, '^\\s*[0-9]*\\.?[0-9]+([eE][+-]?[0-9]+)?\\s*$')",
    "with attributes of a consumable resource it is an amount, else it may be the type of an adapter (Table 2)",
)
_SOME: Final = ("exists(*)", "one property or more")


def _unique(child: str) -> tuple[str, str]:
    return f"count({child}/Id) = count(distinct-values({child}/Id/normalize-space(.)))", f"ids of {child} are unique"


#: Container or element -> (XPath 2.0 test, what it means).
TESTS: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "JobGroup": (
        _REFERENCE,
        ("not(*) or exists(Id)", "a job group MUST have an Id (Table 1)"),
        ("not(*) or exists(Job)", "a job group MUST contain one or more jobs (4.0)"),
        _unique("Job"),
    ),
    "Job": (
        _REFERENCE,
        ("not(State) or exists(Id) or State = 'NotQueued'",
         "a job MUST have an Id (Table 2) once the resource manager knows it; a submission has none yet"),
        _unique("TaskGroup"),
    ),
    "TaskGroup": (_REFERENCE, _unique("Task")),
    "TaskGroupDefaults": (_unique("Task"),),
    "Task": (_REFERENCE,),
    "Requested": (
        _SOME, _BRACKETS,
        ("every $p in */@preference satisfies xs:integer($p) != 0", "a preference is positive or negative (8.1)"),
    ),
    "Delivered": (_SOME, _BRACKETS),
    "Feature": (_LIST,),
    "Node": (_LIST,),
    "Network": (_AMOUNT,),
    "Dependency": (("not(@code) or @condition = 'OnExit'", "code counts only with condition OnExit"),),
    "Request": (
        ("every $e in .//Executable[starts-with(normalize-space(.), '#')] satisfies "
         "count(File[@id = substring(normalize-space($e), 2)]) = 1", "#id in Executable names one File of the request"),
        ("count(File) = count(distinct-values(File/@id))", "ids of File are unique"),
    ),
}


def _all(container: ContainerRow | None, children: Iterable[tuple[str, str, int, int | None]]) -> str:
    """An unordered group with counts; what MUST be there is a test, because a reference has no children at all."""
    if container is not None and container.category:
        return choice(container, children)
    lines = "\n".join(
        f'      <xs:element name="{name}" type="{kind}" minOccurs="0" '
        f'maxOccurs="{"unbounded" if most is None else most}"/>'
        for name, kind, _, most in children
    )
    return f"    <xs:all>\n{lines}\n    </xs:all>"


_ROOT: Final = (
    '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" '
    'xmlns:vc="http://www.w3.org/2007/XMLSchema-versioning" vc:minVersion="1.1" '
    'elementFormDefault="qualified" version="3.1.0">'
)


def xsd11() -> str:
    """The text of ``schemas/sssjob-3.1.0-assertions.xsd``."""
    return schema(Dialect("SSS job object 3.1.0 in XML Schema 1.1, with its rules.", _TYPES, _all,
                          lambda name: TESTS.get(name, ()), _ROOT))
