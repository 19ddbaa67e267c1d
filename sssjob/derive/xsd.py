"""Writes the schemas of release 3.1.0: ``schemas/sssjob-3.1.0.xsd``, XML Schema 1.0, with names, places, types and
attributes, and ``schemas/sssjob-3.1.0-assertions.xsd``, XML Schema 1.1, with the same types and the rules.

Content is unordered, so every container is a repeated choice; what XSD 1.0 cannot say (at most one, definition or
reference, what MUST be there) stands in the XSD 1.1 schema and in ``check``. Names of types: the place (``Bare``,
``Requested``, ``Delivered``) followed by the type or, for an element with attributes of its own, by its name.

Beyond 1.0: how often a child may stand (an ``all`` group, which 1.1 allows to be unordered and counted), what MUST be
there, definition or reference but not both, attributes that go together, ids that are unique, brackets that balance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from xml.sax.saxutils import escape, quoteattr

from sssjob.document.vocabulary import (
    AWARENESS,
    CONTAINERS,
    DELIVERED,
    PRINTED,
    REQUESTED,
    Attribute,
    ContainerRow,
    Element,
    in_scope,
)
from sssjob.sssrmap.model import Data, File, Get, Object, Option, Request, Response, Set, Where

__all__ = ["ROOTS", "TYPES", "WRAPPERS", "Dialect", "Place", "Wrapper", "choice", "restricted", "schema", "xsd"]


Place = Literal["Bare", "Requested", "Delivered"]

#: Containers that may be the root of a document; Requested and Delivered are answers to queries.
ROOTS: Final = ("JobGroup", "Job", "TaskGroup", "Requested", "Delivered")
_PLACES: Final[dict[str, Place]] = {"R": "Requested", "D": "Delivered", "": "Bare"}
_INHERITED: Final[dict[Place, tuple[Attribute, ...]]] = {
    "Bare": (), "Requested": REQUESTED, "Delivered": DELIVERED,
}


@dataclass(frozen=True, slots=True)
class Wrapper:
    """An element of SSSRMAP around jobs: attributes are strings; text: it holds text instead of elements."""

    attributes: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    text: bool = False


_PLAIN: Final = Wrapper(text=True)


def _of(part: type[Any], required: tuple[str, ...] = (), *, older: tuple[str, ...] = (),
        children: tuple[str, ...] = ()) -> Wrapper:
    """The element of a part of messages. older: attributes that only older forms have."""
    names = (*older, *(name for name, _, _ in part.ATTRIBUTES if name not in required))
    return Wrapper(names, required, children, text=not children)


#: The message around a job with a script (SSSRMAP message format 3.0.4), as far as it carries jobs.
WRAPPERS: Final[dict[str, Wrapper]] = {
    "Envelope": Wrapper(("type", "component", "name", "version"), children=("Body",)),
    "Body": Wrapper(("actor", "chunking"), children=("Request", "Response")),
    "Request": _of(Request, ("action",), older=("object",),
                   children=("Object", "Get", "Set", "Where", "Option", "Data", "File", "Count")),
    "Response": _of(Response, children=("Status", "Count", "Data", "File")),
    "Data": _of(Data, children=ROOTS),
    "Status": Wrapper(children=("Value", "Code", "Message")),
    "File": _of(File, ("id",)),
    "Object": _of(Object),
    **{part.__name__: _of(part, ("name",)) for part in (Get, Set, Where, Option)},
    **dict.fromkeys(("Count", "Value", "Code", "Message"), _PLAIN),
}


@dataclass(frozen=True, slots=True)
class Dialect:
    """What differs between the two schemas.

    types: simple type -> a built-in type or its definition; model: the content model of a container from its children
    (name, type, least, most); tests: assertions of a container or of an element with attributes, as (XPath, comment).
    """

    title: str
    types: Mapping[str, str]
    model: Callable[[ContainerRow | None, Iterable[tuple[str, str, int, int | None]]], str]
    tests: Callable[[str], Iterable[tuple[str, str]]] = field(default=lambda name: ())
    root: str = '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" elementFormDefault="qualified" version="3.1.0">'


def restricted(base: str, facets: str) -> str:
    """The definition of a simple type by facets."""
    return f'<xs:restriction base="xs:{base}">{facets}</xs:restriction>'


#: The lexical types of section 2.2: a built-in type where one will do (libxml2 is slower with derived ones), else a
#: definition. DateTime and Duration have no 32-bit end (section 2.2 calls xsd:int unsigned, which it is not).
TYPES: Final[dict[str, str]] = {
    "String": "xs:string",
    "Name": "xs:string",
    "Integer": "xs:integer",
    "Count": "xs:nonNegativeInteger",
    "Float": "xs:float",
    "Amount": "xs:float",
    "Boolean": restricted("boolean", '<xs:pattern value="\\s*(true|false)\\s*"/>'),
    "Flag": restricted("string", '<xs:pattern value="\\s*([tT]rue|[fF]alse)\\s*"/>'),      # as the prose spells it
    "DateTime": "xs:nonNegativeInteger",
    "Duration": "xs:nonNegativeInteger",
}

#: What stands in most jobs comes first in a choice: libxml2 compares a name with one alternative after the other.
_COMMON: Final = (
    "Id", "Name", "Executable", "Queue", "State", "Machine", "User", "Project", "StartTime", "EndTime", "Charge",
    "Processors", "Memory", "Duration", "Node", "Process", "TaskCount", "TaskDistribution", "Resource", "Feature",
    "Requested", "Delivered", "TaskGroup", "Task", "Environment", "Job",
)


def simple_type(e: Element) -> str:
    """The simple type of an element's text."""
    if e.name == "Network":          # an amount, or the adapter type of Table 2
        return "String"
    if e.type == "String":
        return "String" if e.may_be_empty or e.verbatim else "Name"
    if e.minimum == 0:
        return "Count" if e.type == "Integer" else "Amount"
    return e.type


# --- attributes ---------------------------------------------------------------------------------------------------

def _values(a: Attribute) -> str:
    if a.is_list:
        word = f"({'|'.join(a.values)})"
        return restricted("string", f'<xs:pattern value="\\s*{word}(\\s*,\\s*{word})*\\s*"/>')
    return restricted("string", "".join(f'<xs:enumeration value="{v}"/>' for v in a.values))


def _attribute(a: Attribute, types: Mapping[str, str]) -> str:
    use = ' use="required"' if a.required else ""
    if a.values and not a.open_list and a.type == "String":
        inner = f"<xs:simpleType>{_values(a)}</xs:simpleType>"
        return f'<xs:attribute name="{a.name}"{use}>{inner}</xs:attribute>'
    kind = "Flag" if a.type == "Boolean" else a.type
    return f'<xs:attribute name="{a.name}" type="{_reference(kind, types)}"{use}/>'


def _reference(name: str, types: Mapping[str, str]) -> str:
    """How a simple type is named where it is used."""
    return types[name] if types[name].startswith("xs:") else name


def _group(name: str, attributes: Iterable[Attribute], types: Mapping[str, str]) -> Iterator[str]:
    yield f'  <xs:attributeGroup name="{name}">'
    yield from (f"    {_attribute(a, types)}" for a in attributes)
    yield "  </xs:attributeGroup>"


def _uses(place: Place, e: Element, types: Mapping[str, str]) -> Iterator[str]:
    yield '<xs:attributeGroup ref="Any"/>'
    if place != "Bare":
        yield f'<xs:attributeGroup ref="{place}"/>'
    inherited = {a.name for a in _INHERITED[place]}
    yield from (_attribute(a, types) for a in e.attributes if a.name not in inherited and not a.former)


# --- properties ---------------------------------------------------------------------------------------------------

def type_name(e: Element, place: Place) -> str:
    """The complex type of a property in a place; elements without attributes of their own share one."""
    if not e.attributes:
        return f"{place}{simple_type(e)}"
    return f"{place}{'Task' if e.table == 'Task' else ''}{e.name}"


def _documented(text: str, indent: str) -> str:
    return f"{indent}<xs:annotation><xs:documentation>{escape(text)}</xs:documentation></xs:annotation>"


def _tests(dialect: Dialect, name: str, indent: str) -> Iterator[str]:
    for test, why in dialect.tests(name):
        yield f"{indent}<xs:assert test={quoteattr(test)}>{_documented(why, '')}</xs:assert>"


def _property_type(e: Element, place: Place, dialect: Dialect) -> Iterator[str]:
    yield f'  <xs:complexType name="{type_name(e, place)}">'
    if e.attributes:
        yield _documented(f"{e.description}. Section {e.section}.", "    ")
    yield f'    <xs:simpleContent><xs:extension base="{_reference(simple_type(e), dialect.types)}">'
    yield from (f"      {line}" for line in _uses(place, e, dialect.types))
    yield from _tests(dialect, e.name, "      ")
    yield "    </xs:extension></xs:simpleContent>"
    yield "  </xs:complexType>"


def _property_types(dialect: Dialect) -> Iterator[str]:
    done: set[str] = set()
    for container in CONTAINERS.values():
        place = _PLACES[container.category]
        for e in in_scope(container.name).values():
            if type_name(e, place) not in done:
                done.add(type_name(e, place))
                yield from _property_type(e, place, dialect)


# --- containers ---------------------------------------------------------------------------------------------------

def _children(c: ContainerRow) -> Iterator[tuple[str, str, int, int | None]]:
    place = _PLACES[c.category]
    for e in in_scope(c.name).values():
        many = e.repeats and not e.once_in_text
        yield e.name, type_name(e, place), 0, None if many or place != "Bare" else 1
        if c.category:
            yield from ((alias, type_name(e, place), 0, None) for alias, name in PRINTED.items() if name == e.name)
    for name, least, most in c.children:
        yield name, f"{name}Type", least, most


def choice(container: ContainerRow | None, children: Iterable[tuple[str, str, int, int | None]]) -> str:
    """Any of the children in any number and order, all that XSD 1.0 can say of unordered content."""
    rank = {name: at for at, name in enumerate(_COMMON)}
    rows = sorted(children, key=lambda row: rank.get(row[0], len(rank)))
    lines = "\n".join(f'      <xs:element name="{name}" type="{kind}"/>' for name, kind, _, _ in rows)
    return f'    <xs:choice minOccurs="0" maxOccurs="unbounded">\n{lines}\n    </xs:choice>'


def _container(c: ContainerRow, dialect: Dialect) -> Iterator[str]:
    mixed = ' mixed="true"' if c.reference else ""
    yield f'  <xs:complexType name="{c.name}Type"{mixed}>'
    more = "; with text alone a reference by id" if c.reference else ""
    yield _documented(f"{c.description}{more}. Section {c.section}.", "    ")
    yield dialect.model(c, _children(c))
    yield '    <xs:attributeGroup ref="Any"/>'
    yield from (f"    {_attribute(a, dialect.types)}" for a in c.attributes)
    yield from _tests(dialect, c.name, "    ")
    yield "  </xs:complexType>"


def _wrapper(name: str, w: Wrapper, dialect: Dialect) -> Iterator[str]:
    uses = [f'<xs:attribute name="{a}" type="xs:string"/>' for a in w.attributes]
    uses += [f'<xs:attribute name="{a}" type="xs:string" use="required"/>' for a in w.required]
    yield f'  <xs:complexType name="{name}Type">'
    if w.text:
        yield '    <xs:simpleContent><xs:extension base="xs:string">'
        yield from (f"      {line}" for line in uses)
        yield "    </xs:extension></xs:simpleContent>"
    else:
        yield choice(None, ((child, f"{child}Type", 0, None) for child in w.children))
        yield from (f"    {line}" for line in uses)
        yield from _tests(dialect, name, "    ")
    yield "  </xs:complexType>"


def _lines(dialect: Dialect) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield (f"<!-- {dialect.title} Generated by `python -m sssjob.derive` from sssjob/document/vocabulary.py; "
           "do not edit. -->")
    yield dialect.root
    for root in (*ROOTS, "Envelope", "Request", "Response"):
        yield f'  <xs:element name="{root}" type="{root}Type"/>'
    for name, definition in dialect.types.items():
        if not definition.startswith("xs:"):
            yield f'  <xs:simpleType name="{name}">{definition}</xs:simpleType>'
    yield from _group("Any", (AWARENESS,), dialect.types)
    yield from _group("Requested", REQUESTED, dialect.types)
    yield from _group("Delivered", DELIVERED, dialect.types)
    yield from _property_types(dialect)
    for container in CONTAINERS.values():
        yield from _container(container, dialect)
    for name, wrapper in WRAPPERS.items():
        yield from _wrapper(name, wrapper, dialect)
    yield "</xs:schema>"


def schema(dialect: Dialect) -> str:
    """The text of a schema in a dialect."""
    return "\n".join(_lines(dialect)) + "\n"


def xsd() -> str:
    """The text of ``schemas/sssjob-3.1.0.xsd``."""
    return schema(Dialect("SSS job object 3.1.0 in XML Schema 1.0.", TYPES, choice))


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
