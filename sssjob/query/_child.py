"""The process that evaluates queries which could take long: it can be killed, and it reaches nothing.

Started by ``sssjob.query`` as a script; of sssjob it imports what evaluates and analyses queries only. Requests are
frames on standard input: a line of JSON ``{"bytes": n, "query": ..., "version": ..., "variables": {...},
"namespaces": {...}, "at": [...], "seconds": s}``, then n bytes of XML; with ``"analyse": true`` it is asked how a
stream can answer, and n is 0. Answers are lines: ``ready`` after start, ``parsed``, then the JSON result. A node is
told by its place: the index of its element in document order.
"""

from __future__ import annotations

import json
import math
import resource
import sys
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from typing import Any

from lxml import etree

from sssjob.query._functions import extensions, prefixed, register
from sssjob.query._local import Refused, plan
from sssjob.query._text import reason

_FORBIDDEN = ("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.fork", "urllib.", "ctypes.",
              "shutil.", "os.remove", "os.rename", "ftplib.", "http.")
_MEMORY = 4 << 30
_ITEMS = 5_000_000


def _guard(event: str, arguments: tuple[Any, ...]) -> None:
    """Audit hook: no network, no processes, no writing, no reading outside of the installed modules."""
    if event.startswith(_FORBIDDEN):
        raise PermissionError(f"refused: {event}")
    if event == "open" and isinstance(arguments[0], str):
        mode = arguments[1] or "r"
        roots = tuple(p for p in (*sys.path, sys.prefix, sys.base_prefix) if p)
        if not set("wax+").isdisjoint(mode) or not arguments[0].startswith(roots):
            raise PermissionError("refused: open")


def _limit(memory: int) -> None:
    for what, most in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)):
        try:
            resource.setrlimit(what, (most, resource.getrlimit(what)[1]))
        except (ValueError, OSError):       # a lower limit holds already, or the system knows none
            continue


def _limit_cpu(seconds: float) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = math.ceil(used.ru_utime + used.ru_stime + seconds) + 2
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (most, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    except (ValueError, OSError):           # the same; the parent ends this process in any case
        return


def _scalar(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return ["boolean", value]
    if isinstance(value, (int, float, Decimal)):
        return ["number", str(value) if isinstance(value, (int, Decimal)) else value]
    if callable(getattr(value, "items", None)) and type(value).__name__ == "XPathMap":
        return ["map", {str(k): _plain(v) for k, v in value.items()}]
    if type(value).__name__ == "XPathArray":
        return ["array", [_plain(v) for v in value.items()]]
    if callable(value) and not isinstance(value, str):
        raise ValueError("the query gives a function")
    return ["string", str(value)]


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if hasattr(value, "string_value"):
        return value.string_value
    kind, plain = _scalar(value)
    return json.loads(plain) if kind == "number" and isinstance(plain, str) else plain


@lru_cache(64)
def _parsed_10(query: str, namespaces: tuple[tuple[str, str], ...]) -> etree.XPath:
    spaces = prefixed(dict(namespaces))
    return etree.XPath(query, namespaces=spaces, extensions=extensions(spaces))


@lru_cache(64)
def _parsed_31(query: str, variables: tuple[str, ...], namespaces: tuple[tuple[str, str], ...]) -> Any:
    """A query as elementpath parses it: once for all jobs of a stream that spell their names alike."""
    from elementpath.xpath31 import XPath31Parser

    names = {k: v for k, v in prefixed(dict(namespaces)).items() if k not in {"xs", "fn", "math", "map", "array"}}
    parser = XPath31Parser(namespaces=names, variable_types=dict.fromkeys(variables, "xs:string"))
    register(parser)
    return parser.parse(query)


def evaluate_10(query: str, context: Any, variables: Mapping[str, str], namespaces: Mapping[str, str]) -> list[Any]:
    """(kind, element, name) of every node, or (kind, value), by XPath 1.0."""
    value = _parsed_10(query, tuple(sorted(namespaces.items())))(context, **variables)
    if not isinstance(value, list):
        return [_scalar(value)]
    results: list[Any] = []
    for item in value:
        if isinstance(item, str):
            parent = item.getparent()  # type: ignore[attr-defined]
            name = item.attrname if item.is_attribute else "tail" if item.is_tail else ""  # type: ignore[attr-defined]
            results.append(["attribute" if item.is_attribute else "text", parent, name])  # type: ignore[attr-defined]
        elif isinstance(item, tuple):
            results.append(["string", f"{item[0] or ''!s}={item[1]!s}"])
        else:
            results.append(["element", item, ""])
    return results


def evaluate_31(query: str, context: Any, variables: Mapping[str, str], namespaces: Mapping[str, str]) -> list[Any]:
    """The same by XPath 3.1; sequences may hold values between nodes."""
    from elementpath import XPathContext

    parsed = _parsed_31(query, tuple(variables), tuple(sorted(namespaces.items())))
    place = XPathContext(context.getroottree(), item=context, variables=dict(variables))
    return [_node_31(i) for i in islice(parsed.select(place), _ITEMS)]


def _node_31(item: Any) -> list[Any]:
    kind = type(item).__name__
    if "Attribute" in kind and hasattr(item, "parent"):
        return ["attribute", _element(item.parent), item.name]
    if "Document" in kind and hasattr(item, "document"):
        return ["element", item.document.getroot(), ""]
    if "Text" in kind and hasattr(item, "parent"):
        parent = _element(item.parent)
        if parent.text == item.string_value:
            return ["text", parent, ""]
        return ["string", item.string_value]
    if etree.iselement(item):
        return ["element", item, ""]
    if hasattr(item, "string_value") and _element(item) is not None:
        return ["element", _element(item), ""]
    return _scalar(item)


def _element(node: Any) -> Any:
    for name in ("value", "elem", "obj"):
        element = getattr(node, name, None)
        if etree.iselement(element):
            return element
    return None


def analyse(query: str, namespaces: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, Any]:
    """How a stream can answer a query (see ``_local.plan``), or ``{"refused": reason}``."""
    from elementpath import ElementPathError, XPath1Parser

    try:
        try:
            parsed = _parsed_31(query, tuple(variables), tuple(sorted(namespaces.items())))
        except ElementPathError:
            parsed = XPath1Parser(namespaces=dict(namespaces)).parse(query)
        return plan(parsed)
    except Refused as reason:
        return {"refused": str(reason)}


def _index(root: Any, results: list[Any]) -> list[Any]:
    """Elements replaced by their index in document order."""
    order: dict[Any, int] = {}
    if any(len(f) == 3 for f in results):
        order = {e: n for n, e in enumerate(root.iter())}
    return [[f[0], order[f[1]], f[2]] if len(f) == 3 else f for f in results]


def _answer(request: dict[str, Any], data: bytes) -> dict[str, Any]:
    if request.get("analyse"):
        print("parsed", flush=True)
        return {"plan": analyse(request["query"], request["namespaces"], request["variables"])}
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True)
    root = etree.fromstring(data, parser)
    print("parsed", flush=True)
    context = root
    for step in request["at"]:
        context = context[step]
    evaluate = evaluate_10 if request["version"] == "1.0" else evaluate_31
    return {"found": _index(root, evaluate(request["query"], context, request["variables"], request["namespaces"]))}


def main() -> None:
    """Answer requests until standard input ends."""
    import elementpath.xpath31  # noqa: F401  (before the guard: everything that it imports)

    import sssjob.document.nodeset  # noqa: F401  (the same)

    _limit(_MEMORY)
    sys.addaudithook(_guard)
    print("ready", flush=True)
    while line := sys.stdin.buffer.readline():
        request = json.loads(line)
        data = sys.stdin.buffer.read(request["bytes"])
        _limit(_MEMORY + 16 * request["bytes"])
        _limit_cpu(request["seconds"])
        try:
            answer = _answer(request, data)
        except MemoryError:
            answer = {"error": "it needs too much memory"}
        except RecursionError:
            answer = {"error": "it is nested too deep"}
        except Exception as error:
            answer = {"error": reason(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
