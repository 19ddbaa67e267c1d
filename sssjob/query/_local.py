"""Whether a query can be asked of each job alone: what a stream may answer, and how its answers are put together.

The parsed query is followed from step to step by where its nodes can stand: D outside of the jobs (reached from the
root), J a job, I inside of a job, U outside (reached upwards from a job), X outside behind a condition that a stream
cannot check. Whatever is not shown to look at one job only is refused with the reason. It runs in the process of
``_child``, on the tree of elementpath's parser.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from sssjob.document.vocabulary import CONTAINERS, ELEMENTS, aliases, in_scope

#: Function -> how its values for the jobs make the one of the whole document.
AGGREGATES: Final[Mapping[str, str]] = {"count": "sum", "sum": "sum", "min": "min", "max": "max", "exists": "any",
                                        "boolean": "any", "not": "all", "empty": "all"}
JOBS: Final = frozenset({"Job", "job", *CONTAINERS["Job"].aliases})
_GROUPS: Final = frozenset({"JobGroup", "jobgroup", *CONTAINERS["JobGroup"].aliases})
#: Names of what stands in a job (or beside one in its group); never around jobs.
INSIDE: Final = frozenset(
    name for rows in (ELEMENTS, CONTAINERS.values()) for row in rows for name in (row.name, *row.aliases)
) - JOBS - _GROUPS
#: Those of them that stand in no job: JobDefaults, and what only a group says of itself.
BESIDE: Final = INSIDE - frozenset(
    name for c in CONTAINERS if c not in ("JobGroup", "JobDefaults")
    for name in (c, *CONTAINERS[c].aliases, *in_scope(c), *aliases(c)))
_AROUND: Final = frozenset("DUX")
_WITHIN: Final = frozenset("JI")
_LEAVES: Final = frozenset({"(string)", "(integer)", "(decimal)", "(float)"})
_SETS: Final = frozenset({"|", "union", "intersect", "except"})
#: What gives no number: a condition of it is no place.
_BOOLEANS: Final = frozenset({
    "=", "!=", "<", "<=", ">", ">=", "eq", "ne", "lt", "le", "gt", "ge", "is", "<<", ">>", "and", "or", "not",
    "boolean", "exists", "empty", "contains", "starts-with", "ends-with", "matches", "true", "false", "some",
    "every", "instance", "castable", "(string)", "string", "concat", "normalize-space", "name", "local-name",
    "substring", "substring-before", "substring-after", "translate", "lang", "upper-case", "lower-case",
    "contains-token", "deep-equal"
})
_FAR: Final = frozenset({"root", "id", "idref", "element-with-id", "path", "base-uri", "document-uri"})
_NAMES: Final = frozenset({"name", "local-name", "namespace-uri", "node-name"})
_OF_CONTEXT: Final = frozenset({"string", "number", "normalize-space", "string-length", "data", "has-children", "lang",
                                "bytes", "seconds", "nodes"})
_ALONE: Final = "a stream shows each Job alone"
_PLACE: Final = f"{_ALONE}: it has no place among other jobs (position, last)"


class Refused(ValueError):
    """A query that a stream cannot answer; the text is the reason."""


@dataclass(frozen=True, slots=True)
class _Context:
    """What is known where an expression stands. nodes: where the context node can be; whole: a path from the root may
    begin here, for the results for all jobs together are those of the document; down: a path may still go down to the
    jobs; numbered: position() and last() count what belongs to one job."""

    nodes: frozenset[str]
    whole: bool = False
    down: bool = False
    numbered: bool = False
    variables: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def inner(self, nodes: frozenset[str], numbered: bool = False) -> _Context:
        """The context of what is asked of each of the nodes."""
        return replace(self, nodes=nodes, whole=False, down=False, numbered=numbered)


def plan(root: Any) -> dict[str, Any]:
    """How a stream answers: ``{"how": "each" | "sum" | "min" | "max" | "any" | "all", "around": bool}``.

    around: nodes outside of the jobs may be among the results and have to be left out. Raises Refused.
    """
    token = _bare(root)
    if token.symbol in AGGREGATES and len(token) == 1 and _rooted(token):
        return _planned(AGGREGATES[token.symbol], _value(token[0], _Context(frozenset("J"), whole=True, down=True)))
    if not _rooted(token) and not _asks(token):
        raise Refused("the query asks nothing of a job: leave --stream away")
    return _planned("each", _value(token, _Context(frozenset("J"), whole=True, down=True)))


def _planned(how: str, nodes: frozenset[str]) -> dict[str, Any]:
    if nodes & _AROUND and "I" not in nodes:
        raise Refused(f"{_ALONE}: what stands around or beside the jobs is not seen")
    if how != "each" and nodes & _AROUND:
        raise Refused(f"{_ALONE}: what stands around the jobs would be counted with each of them")
    return {"how": how, "around": bool(nodes & _AROUND)}


# --- the tree -----------------------------------------------------------------------------------------------------

def _bare(token: Any) -> Any:
    """A token without brackets around it and without a prefix."""
    while (token.symbol == "(" and len(token) == 1) or (token.symbol == ":" and _is_function(token[1])):
        token = token[-1]
    return token


def _is_function(token: Any) -> bool:
    return "function" in str(token.label) and token.symbol != "function"


def _parts(token: Any) -> Iterator[Any]:
    """All expressions inside of a token, those that elementpath keeps elsewhere too."""
    yield from token
    kept = vars(token) if hasattr(token, "__dict__") else {}
    yield from (v for v in kept.get("_values", ()) if hasattr(v, "symbol"))
    body = kept.get("body")
    if body is not None and hasattr(body, "symbol"):
        yield body


def _any(token: Any, test: Any) -> bool:
    return test(token) or any(_any(part, test) for part in _parts(token))


def _rooted(token: Any) -> bool:
    """Whether a path in it begins at the root of the document."""
    return _any(token, lambda t: (t.symbol == "/" and len(t) < 2) or (t.symbol == "//" and len(t) < 2)
                or (t.symbol in _FAR and _is_function(t)))


def _asks(token: Any) -> bool:
    """Whether it looks at the context node at all."""
    if token.symbol == "$":
        return False
    if token.symbol in {"(name)", "@", ".", "..", "*"} and (token.symbol != "*" or not len(token)):
        return True
    if token.label in ("axis", "kind test") or (_is_function(token) and not len(token)
                                                and token.symbol in _OF_CONTEXT | _NAMES | {"position", "last"}):
        return True
    return any(map(_asks, _parts(token)))


# --- values -------------------------------------------------------------------------------------------------------

def _value(token: Any, context: _Context) -> frozenset[str]:
    """Where the nodes of a value can stand; raises Refused where it depends on more than one job."""
    symbol, size = token.symbol, len(token)
    if symbol in _LEAVES:
        return frozenset()
    if symbol == "$":
        return context.variables.get(str(token[0].value), frozenset())
    if symbol == "(" and size == 1:
        return _value(token[0], context)
    if symbol in ("/", "//", "!"):
        return _path(token, context)
    if symbol == "[" and size == 2 and type(token).__name__ != "XPathArray":
        return _filtered(token, context)
    if symbol in _SETS:
        return frozenset().union(*(_value(part, context) for part in token))
    step = _step(token)
    if step is not None:
        return frozenset().union(*(_moved(*step, node, context) for node in context.nodes))
    return _expression(token, context)


def _path(token: Any, context: _Context) -> frozenset[str]:
    if len(token) < 2:
        if not context.whole:
            raise Refused(f"{_ALONE}: a path from the root inside of another expression looks at all of them")
        nodes = frozenset("D")
    else:
        nodes = _value(token[0], context)
    if token.symbol == "//":
        nodes = frozenset().union(*(_moved("descendant-or-self", None, "node", node, context) for node in nodes))
    if not len(token):
        return nodes
    numbered = nodes <= _WITHIN and not context.whole
    return _value(token[-1], replace(context, nodes=nodes, whole=False, numbered=numbered))


def _filtered(token: Any, context: _Context) -> frozenset[str]:
    base, condition = token[0], token[1]
    nodes = _value(base, context)
    if _counts(condition):
        _check_place(base, context)
    within = nodes & _WITHIN
    _value(condition, context.inner(within or frozenset("I"), numbered=True))
    around = nodes & _AROUND
    if around and not _of_itself(condition):
        around = frozenset("X")
    return within | around


def _check_place(base: Any, context: _Context) -> None:
    """A place in a sequence: refused unless the sequence belongs to one job."""
    while base.symbol == "[" and len(base) == 2:
        base = base[0]
    step = _step(base)
    if step is not None:
        outside = context.nodes & _AROUND
        if frozenset().union(*(_moved(*step, node, context) for node in outside)):
            raise Refused(_PLACE)
    elif _rooted(base) or not context.nodes <= _WITHIN:
        raise Refused(_PLACE)


def _counts(condition: Any) -> bool:
    """Whether a condition may be a place: a number, position() or last(), or what is not known to be none."""
    token = _bare(condition)
    if _own_place(token):
        return True
    if token.symbol in _BOOLEANS or _step(token) is not None or token.symbol == "$":
        return False
    if token.symbol in _SETS:
        return False
    if token.symbol in ("/", "//"):
        return len(token) > 0 and _counts(token[-1])
    if token.symbol == "[" and type(token).__name__ != "XPathArray":
        return _counts(token[0])
    return True


def _own_place(token: Any) -> bool:
    """Whether position() or last() of the condition's own context are in it."""
    if token.symbol in ("position", "last") and _is_function(token):
        return True
    if token.symbol in ("/", "//", "!") and len(token) == 2:
        return _own_place(token[0])
    if token.symbol == "[" and len(token) == 2:
        return _own_place(token[0])
    return any(map(_own_place, _parts(token)))


def _of_itself(condition: Any) -> bool:
    """Whether a condition looks at the name and the attributes of a node only."""
    token = _bare(condition)
    if token.symbol in _LEAVES or token.symbol in ("@", "$"):
        return True
    if token.label == "axis":
        return token.symbol in ("attribute", "self")
    of_name = token.symbol in ("=", "!=", "and", "or") or (
        _is_function(token) and token.symbol in _NAMES | {"not", "starts-with", "contains", "true", "false"})
    return of_name and all(map(_of_itself, _parts(token)))


def _expression(token: Any, context: _Context) -> frozenset[str]:
    """An expression that makes one value of its parts."""
    symbol = token.symbol
    if symbol in ("for", "let", "some", "every"):
        return _bound(token, context)
    if symbol == ":" and len(token) == 2:
        return _value(token[1], context)
    if symbol == "if":
        _value(token[0], replace(context, whole=False, down=False))
        return frozenset().union(*(_value(part, context) for part in list(token)[1:]))
    if context.whole and _rooted(token):
        raise Refused("its value depends on more than one job; one value of a whole stream is that of count(), sum(), "
                      "min(), max(), exists() or empty() of a path, and a value of each Job that of //Job/...")
    if _is_function(token):
        _check_function(token, context)
    inner = replace(context, whole=False, down=False)
    if symbol == "function":
        free = {str(part[0].value): _WITHIN for part in token if part.symbol == "$"}
        inner = replace(inner, variables={**context.variables, **free}, numbered=False)
    return frozenset().union(*(_value(part, inner) for part in _parts(token)))


def _check_function(token: Any, context: _Context) -> None:
    if token.symbol in ("position", "last") and not context.numbered:
        raise Refused(_PLACE)
    if token.symbol in _FAR:
        raise Refused(f"{_ALONE}: {token.symbol}() looks at the whole document")
    if token.symbol in _OF_CONTEXT and not len(token) and not context.nodes <= _WITHIN:
        raise Refused(f"{_ALONE}: {token.symbol}() of what stands around the jobs is not known")


def _bound(token: Any, context: _Context) -> frozenset[str]:
    """for, let, some and every: variables, what they range over, and what is said of them."""
    *pairs, body = token
    inner = context
    for number, (variable, source) in enumerate(zip(pairs[::2], pairs[1::2], strict=True)):
        first = token.symbol == "for" and number == 0
        nodes = _value(source, inner if first else replace(inner, whole=False, down=False))
        variables = {**inner.variables, str(variable[0].value): nodes}
        inner = replace(inner, variables=variables, whole=inner.whole and token.symbol == "let")
    if token.symbol == "let" and not context.whole:
        inner = replace(inner, whole=False)
    return _value(body, inner if inner.whole else replace(inner, down=False))


# --- steps --------------------------------------------------------------------------------------------------------

def _step(token: Any) -> tuple[str, str | None, str] | None:
    """(axis, name, kind of node) of a step; name None: any. None for what is no step."""
    symbol, label = token.symbol, token.label
    if symbol == ".":
        return "self", None, "node"
    if symbol == "..":
        return "parent", None, "node"
    if symbol == "@":
        return "attribute", None, "node"
    if label == "axis":
        test = _step(token[0])
        return None if test is None else (symbol, test[1], test[2])
    if symbol == "(name)":
        return "child", str(token.value), "element"
    if symbol == "*" and not len(token):
        return "child", None, "element"
    if symbol == ":" and not _is_function(token[1]):
        test = _step(token[1])
        return None if test is None else ("child", test[1], "element")
    if symbol in ("Q{", "{") and len(token) == 2:
        return _step(token[1])
    if label == "kind test":
        return "child", None, symbol
    return None


def _moved(axis: str, name: str | None, kind: str, node: str, context: _Context) -> frozenset[str]:
    """Where a step from a node leads to."""
    if axis in ("attribute", "namespace"):
        return frozenset(node)
    if axis in ("following", "preceding") or (axis.endswith("-sibling") and node != "I"):
        raise Refused(f"{_ALONE}: its neighbours are not seen")
    if axis.endswith("-sibling"):
        return _named(frozenset("I"), name, kind)
    if axis in ("self", "parent", "ancestor", "ancestor-or-self"):
        return _named(_upwards(axis, node), name, kind)
    return _downwards(axis, name, kind, node, context)


def _upwards(axis: str, node: str) -> frozenset[str]:
    above = {"I": "JI", "J": "U"}.get(node, node)
    if axis.startswith("ancestor") and node == "I":
        above = "JIU"
    return frozenset(node if axis == "self" else above + node if axis == "ancestor-or-self" else above)


def _downwards(axis: str, name: str | None, kind: str, node: str, context: _Context) -> frozenset[str]:
    own = _named(frozenset(node), name, kind) if axis == "descendant-or-self" else frozenset()
    if node in "JI":
        return own | _named(frozenset("I"), name, kind)
    if node != "D" or not context.down:
        raise Refused(f"{_ALONE}: from what stands around the jobs others cannot be seen")
    if name in BESIDE or (axis == "child" and name in INSIDE and context.nodes == frozenset("D")):
        raise Refused(f"{_ALONE}: {name} stands beside the jobs and is not seen")
    below = "DJ" if axis == "child" else "DJI"
    return own | _named(frozenset(below), name, kind)


def _named(nodes: frozenset[str], name: str | None, kind: str) -> frozenset[str]:
    """Those nodes that can have a name and be of a kind."""
    if kind not in ("element", "node"):
        return nodes & frozenset("I")
    if name is None:
        return nodes
    if name in JOBS:
        return nodes & frozenset("J")
    if name in INSIDE:
        return nodes & frozenset("I")
    return nodes - frozenset("J") if name not in _GROUPS else nodes & _AROUND
