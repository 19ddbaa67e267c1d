"""XPath over job objects: ``query`` over a whole document, ``query_stream`` Job by Job in bounded memory.

XPath 1.0 is evaluated by lxml, 3.1 by elementpath, in which case and where not: 3.1 when it is asked for, or when the
query is no XPath 1.0. Names of elements may be written with any alias of the vocabulary; they are mapped once to the
spellings that occur in the document.

Every query is taken to come from outside. Functions that reach beyond the document are refused by name, values are
passed as ``variables`` only. A query whose form alone shows that it takes linear time runs in this process; every
other one runs in a child process that is killed after ``limits.query_seconds``.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import islice, repeat
from pathlib import Path
from typing import Any, Final, Literal

from lxml import etree

from sssjob import _query_child
from sssjob._callable import make_callable
from sssjob._query_text import Token, candidates, check, is_text, linear, needs_31, spell, tokens
from sssjob.errors import QueryError, QueryTimeout, UsageError
from sssjob.findings import Findings
from sssjob.limits import LIMITS, Limits
from sssjob.profiles import profile as profile_of
from sssjob.reader import Source, iter_job_elements, parse_tree
from sssjob.vocabulary import CONTAINERS
from sssjob.xmlio import refuse_doctype

__all__ = ["Kind", "Result", "Version", "query", "query_stream"]

Version = Literal["1.0", "3.1"]
Kind = Literal["element", "attribute", "text", "string", "number", "boolean", "map", "array"]

_JOBS: Final = frozenset({"Job", *CONTAINERS["Job"].aliases})
_START_SECONDS: Final = 60.0        # for the child to start, and to parse


# --- results ------------------------------------------------------------------------------------------------------

class _Places:
    """Paths of elements of one document; linear when asked in document order."""

    __slots__ = ("file", "job", "ordinal", "seen")

    def __init__(self, file: str, job: Any = None, ordinal: int = 0) -> None:
        self.file = file
        self.job = job
        self.ordinal = ordinal
        self.seen: dict[tuple[Any, str], tuple[Any, int]] = {}

    def path(self, element: Any) -> str:
        """``/JobGroup/Job[2]/Requested/Memory``: a number where names repeat."""
        steps: list[str] = []
        node = element
        while node is not None:
            above = node.getparent()
            steps.append(node.tag.rpartition("}")[2] + self._number(node, above))
            node = above
        return "/" + "/".join(reversed(steps))

    def _number(self, node: Any, above: Any) -> str:
        if node is self.job:
            return f"[{self.ordinal}]" if self.ordinal else ""
        if above is None:
            return ""
        last, count = self.seen.get((above, node.tag), (None, 0))
        number = 0 if node is not last else count
        if not number:
            for before in node.itersiblings(node.tag, preceding=True):
                number += 1
                if before is last:
                    number += count - 1
                    break
            number += 1
        self.seen[above, node.tag] = node, number
        return f"[{number}]" if number > 1 or next(node.itersiblings(node.tag), None) is not None else ""


class Result:
    """One result: a node of the document, or a value.

    ``value`` is the element, or the text of an attribute or text node, or the value; ``element`` the element, or the
    one that the node belongs to (the Job of a value in a stream), or None.
    """

    __slots__ = ("_about", "_places", "value")

    def __init__(self, value: Any, places: _Places, about: tuple[Kind, Any, str] | None = None) -> None:
        self.value = value
        self._places = places
        self._about = about         # kind, element, name; None for what lxml gave: it knows that itself

    def __repr__(self) -> str:
        return f"Result({self.kind!r}, {self.path!r}, {self.text()!r})"

    @property
    def kind(self) -> Kind:
        """element, attribute or text for nodes; string, number, boolean, map or array for values."""
        if self._about is not None:
            return self._about[0]
        value = self.value
        if not isinstance(value, str):
            return "element"
        return "attribute" if value.is_attribute else "text"  # type: ignore[attr-defined]

    @property
    def element(self) -> Any:
        """The element of the result, as lxml knows it."""
        if self.kind == "element":
            return self.value
        return self._about[1] if self._about is not None else self.value.getparent()

    @property
    def name(self) -> str:
        """Name of the element or attribute; empty for everything else."""
        if self.kind == "element":
            return str(self.value.tag).rpartition("}")[2]
        if self.kind != "attribute":
            return ""
        return (self._about[2] if self._about is not None else str(self.value.attrname)).rpartition("}")[2]

    @property
    def file(self) -> str:
        """Where the document came from."""
        return self._places.file

    @property
    def line(self) -> int:
        """Line of the element; 0 when there is none."""
        element = self.element
        return 0 if element is None else int(element.sourceline or 0)

    @property
    def path(self) -> str:
        """Place in the document, such as ``/JobGroup/Job[2]/Requested/Memory/@units``; empty for a value."""
        element = self.element
        if element is None:
            return ""
        ending = {"attribute": f"/@{self.name}", "text": "/text()"}.get(self.kind, "")
        return self._places.path(element) + ending

    def text(self) -> str:
        """The value as text: of an element all its text, numbers without an exponent where they are whole."""
        value = self.value
        if self.kind == "element":
            return str(etree.tostring(value, method="text", encoding="unicode", with_tail=False))
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, float):
            return _number_text(value)
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    def xml(self) -> str:
        """The element as XML; any other result inside ``<result kind="...">``."""
        if self.kind == "element":
            return str(etree.tostring(self.value, encoding="unicode", with_tail=False))
        made = etree.Element("result", kind=self.kind)
        if self.name:
            made.set("name", self.name)
        made.text = _xml_text(self.text())
        return str(etree.tostring(made, encoding="unicode"))

    def record(self) -> dict[str, Any]:
        """A JSON object: kind, name, file, line, path, value; empty members are left out, value never."""
        about = {"kind": self.kind, "name": self.name, "file": self.file, "line": self.line, "path": self.path}
        return {k: v for k, v in about.items() if v not in ("", 0)} | {"value": self._plain()}

    def _plain(self) -> Any:
        if self.kind == "element":
            return _object(self.value)
        if isinstance(self.value, float):
            if self.value != self.value or self.value in (float("inf"), float("-inf")):
                return self.text()
            return int(self.value) if self.value.is_integer() and abs(self.value) < 1 << 53 else self.value
        return str(self.value) if isinstance(self.value, str) else self.value


def _number_text(value: float) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return str(int(value)) if value.is_integer() and abs(value) < 1e21 else repr(value)


def _xml_text(text: str) -> str:
    return "".join(c if c in "\t\n\r" or (c >= " " and c not in "\ufffe\uffff") else "\ufffd" for c in text)


def _object(element: Any) -> Any:
    """An element as JSON: text, or an object of attributes (``@name``) and children; repeated ones as a list."""
    made: dict[str, Any] = {f"@{k.rpartition('}')[2]}": v for k, v in element.attrib.items()}
    if not len(element):
        text = element.text or ""
        return made | {"value": text} if made else text
    for child in element.iterchildren(etree.Element):
        name, value = child.tag.rpartition("}")[2], _object(child)
        if name not in made:
            made[name] = value
        elif isinstance(made[name], _Many):
            made[name].append(value)
        else:
            made[name] = _Many([made[name], value])
    return made


class _Many(list[Any]):
    """The values of children that have the same name."""


# --- the child process --------------------------------------------------------------------------------------------

class _Worker:
    """The killable process that evaluates queries; started when it is first asked."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._process: subprocess.Popen[bytes] | None = None
        self._buffer = bytearray()

    def ask(self, query_text: str, version: Version, context: Any, variables: Mapping[str, str],
            namespaces: Mapping[str, str]) -> list[Any]:
        """The results in the form of ``_query_child.evaluate_10``; raises QueryError or QueryTimeout."""
        root = context.getroottree().getroot()
        data = etree.tostring(root, encoding="utf-8")
        request = {"bytes": len(data), "query": query_text, "version": version, "variables": dict(variables),
                   "namespaces": dict(namespaces), "at": _steps(context), "seconds": self.limits.query_seconds}
        process = self._process or self._start()
        try:
            assert process.stdin is not None
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.write(data)
            process.stdin.flush()
        except OSError:
            self.close()
            raise QueryError("the query was given up: its process ended") from None
        self._line(_START_SECONDS)
        answer = json.loads(self._line(self.limits.query_seconds))
        if "error" in answer:
            raise QueryError(f"the query cannot be evaluated: {answer['error']}")
        order = list(root.iter()) if any(len(f) == 3 for f in answer["found"]) else []
        return [[f[0], order[f[1]], f[2]] if len(f) == 3 else f for f in answer["found"]]

    def _start(self) -> subprocess.Popen[bytes]:
        kept = {k: v for k, v in os.environ.items() if k in {"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT"}}
        kept["PYTHONPATH"] = os.pathsep.join(str(Path(p).resolve()) for p in sys.path)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-B", str(Path(_query_child.__file__))], env=kept, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self._line(_START_SECONDS)
        return self._process

    def _line(self, seconds: float) -> bytes:
        """The next line of the process; kills it when none comes in time or it is too long."""
        assert self._process is not None and self._process.stdout is not None
        end = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while (at := self._buffer.find(b"\n", -1 << 17)) < 0:
                if not selector.select(max(0.0, end - time.monotonic())):
                    self.close()
                    raise QueryTimeout(f"the query took longer than query_seconds ({self.limits.query_seconds:g} s)")
                chunk = os.read(self._process.stdout.fileno(), 1 << 16)
                self._buffer += chunk
                if not chunk or len(self._buffer) > self.limits.document_bytes:
                    self.close()
                    raise QueryError("the query was given up: " + ("its process ended" if not chunk else
                                     f"its results are larger than document_bytes ({self.limits.document_bytes})"))
        line = bytes(self._buffer[:at])
        del self._buffer[:at + 1]
        return line

    def close(self) -> None:
        """Kill the process."""
        process, self._process = self._process, None
        self._buffer.clear()
        if process is None:
            return
        process.kill()
        for stream in (process.stdin, process.stdout):
            try:
                if stream is not None:
                    stream.close()
            except OSError:         # its last bytes find nobody: it has ended
                continue
        process.wait()


def _steps(element: Any) -> list[int]:
    """Indexes from the root down to the element."""
    steps: list[int] = []
    while (above := element.getparent()) is not None:
        steps.append(above.index(element))
        element = above
    return steps[::-1]


# --- evaluation ---------------------------------------------------------------------------------------------------

class _Query:
    """A query that was checked, ready for any number of documents."""

    def __init__(self, xpath: str, version: Version | None, variables: Mapping[str, str] | None,
                 limits: Limits, profile: str) -> None:
        if version not in (None, "1.0", "3.1"):
            raise UsageError(f"no XPath version {version!r}; known: 1.0, 3.1")
        if not xpath.strip():
            raise QueryError("the query is empty")
        self.tokens: list[Token] = tokens(xpath)
        check(self.tokens)
        self.variables = _checked(variables)
        self.version: Version = version or ("3.1" if needs_31(self.tokens) else "1.0")
        if self.version == "1.0" and needs_31(self.tokens):
            raise QueryError("the query uses functions that XPath 1.0 has not; ask for version 3.1")
        self.candidates = candidates(self.tokens)
        if not profile_of(profile).aliases:
            self.candidates &= {t.text for t in self.tokens}
        self.worker = _Worker(limits)
        self._compiled: dict[tuple[str, tuple[tuple[str, str], ...]], Any] = {}
        if self.version == "1.0":
            self._syntax(xpath, version)
        self.cheap = self.version == "1.0" and linear(self.tokens)

    def _syntax(self, xpath: str, asked: Version | None) -> None:
        try:
            etree.XPath(xpath)
        except etree.XPathSyntaxError as error:
            if asked == "1.0":
                raise QueryError(f"the query is no XPath 1.0: {error}") from None
            self.version = "3.1"

    def evaluate(self, context: Any, occurring: Sequence[str] | frozenset[str], namespaces: Mapping[str, str],
                 namespaced: bool, places: _Places, owner: Any = None) -> Iterator[Result]:
        """The results with context as context node; owner is the element that values belong to."""
        text = spell(self.tokens, occurring, namespaced)
        if not self.cheap:
            found = self.worker.ask(text, self.version, context, self.variables, namespaces)
            return iter([_result(f, places, owner) for f in found])
        value = self._run(text, context, namespaces)
        if isinstance(value, list):
            return map(Result, value, repeat(places))
        kind: Kind = "boolean" if isinstance(value, bool) else "number" if isinstance(value, float) else "string"
        return iter([Result(value, places, (kind, owner, ""))])

    def _run(self, text: str, context: Any, namespaces: Mapping[str, str]) -> Any:
        key = text, tuple(sorted(namespaces.items()))
        try:
            compiled = self._compiled.get(key)
            if compiled is None:
                compiled = self._compiled[key] = etree.XPath(text, namespaces=dict(namespaces) or None)
            return compiled(context, **self.variables)
        except etree.XPathError as error:
            raise QueryError(f"the query cannot be evaluated: {error}") from None


def _checked(variables: Mapping[str, str] | None) -> dict[str, str]:
    made = dict(variables or {})
    for name, value in made.items():
        if not name.isidentifier() and not name.replace("-", "_").replace(".", "_").isidentifier():
            raise QueryError(f"{name!r} is no name of a variable")
        if not isinstance(value, str):
            raise QueryError(f"variable {name} is no text")
        if not is_text(value):
            raise QueryError(f"variable {name} holds characters that XML does not know")
    return made


def _result(found: list[Any], places: _Places, owner: Any) -> Result:
    if len(found) == 2:
        kind, value = found
        return Result(float(value) if kind == "number" else value, places, (kind, owner, ""))
    kind, element, name = found
    if kind == "element":
        return Result(element, places)
    value = element.get(name) if kind == "attribute" else element.tail if name == "tail" else element.text
    parent = element.getparent() if name == "tail" and kind == "text" else element
    return Result(value or "", places, (kind, parent, name))


def _namespaces(root: Any) -> tuple[dict[str, str], bool]:
    """Prefixes of the root, and whether the document has namespaces (declared on the root or its first children)."""
    first = [e for e in islice(root, 3) if isinstance(e.tag, str)]
    named = any(isinstance(e.tag, str) and e.tag.startswith("{") for e in (root, *first)) or None in root.nsmap
    return {k: v for k, v in root.nsmap.items() if k}, named or any(e.nsmap for e in first)


def _occurring(root: Any, names: frozenset[str], namespaced: bool) -> frozenset[str]:
    """Those of the names that occur; one pass in C for as long as none is found."""
    found: set[str] = set()
    if namespaced:
        return frozenset(n for n in names if next(root.iter(f"{{*}}{n}"), None) is not None)
    rest = set(names)
    while rest:
        element = next(root.iter(*rest), None)
        if element is None:
            break
        found.add(element.tag)
        rest.discard(element.tag)
    return frozenset(found)


def query(xpath: str, source: Any, *, version: Version | None = None, variables: Mapping[str, str] | None = None,
          limits: Limits = LIMITS, path: str = "-", profile: str = "liberal",
          findings: Findings | None = None) -> Iterator[Result]:
    """The results of a query over a whole document, in document order.

    source: bytes, text, a Path, an open binary file, or a tree of lxml (an element or its ElementTree). The context
    node is the root element. version: None takes 1.0, and 3.1 where 1.0 does not do. profile: a strict one (``3.1``)
    repairs nothing and takes names as they stand. findings: takes the repairs. Everything is evaluated before this
    returns. Raises QueryError for a query that is wrong or refused, QueryTimeout after ``limits.query_seconds``,
    RejectedError for what is no document.
    """
    asked = _Query(xpath, version, variables, limits, profile)
    root = _tree(source, path, limits, profile, findings)
    namespaces, namespaced = _namespaces(root)
    try:
        return asked.evaluate(root, _occurring(root, asked.candidates, namespaced), namespaces, namespaced,
                              _Places(path))
    finally:
        asked.worker.close()


def _tree(source: Any, path: str, limits: Limits, profile: str, findings: Findings | None) -> Any:
    if isinstance(source, etree._ElementTree):
        return source.getroot()
    if etree.iselement(source):
        return source
    return parse_tree(source, profile=profile, path=path, limits=limits, findings=findings)


# --- streams ------------------------------------------------------------------------------------------------------

def query_stream(xpath: str, source: Source, *, version: Version | None = None,
                 variables: Mapping[str, str] | None = None, limits: Limits = LIMITS, path: str = "-",
                 profile: str = "liberal") -> Iterator[Result]:
    """The results of a query evaluated for each Job alone, in bounded memory, over a document of any size.

    Every Job stands alone inside copies of the elements above it (``/JobGroup/Job``), without its siblings. The Job
    is the context node: ``/JobGroup/Job/User``, ``//Job[User='x']`` and ``User`` all work. A query that gives a
    value gives one for each Job (``count(//Task)`` counts the tasks of that Job); a query that asks for the place of
    a Job among others (``Job[3]``, ``Job[last()]``) is refused. A result is valid until the next one is asked for.
    ``limits.query_seconds`` holds for each Job; nothing is repaired.
    """
    asked = _Query(xpath, version, variables, limits, profile)
    _check_places(asked.tokens)
    return _stream(asked, source, limits, path)


def _check_places(found: list[Token]) -> None:
    row = [t for t in found if t.role != "space"]
    for first, second, third in zip(row, row[1:], row[2:], strict=False):
        if (first.role == "element" and first.text in _JOBS and second.text == "["
                and (third.role == "number" or third.text in {"last", "position"})):
            raise QueryError("a stream shows each Job alone: it has no place among other jobs")


def _stream(asked: _Query, source: Source, limits: Limits, path: str) -> Iterator[Result]:
    ordinal = 0
    findings = Findings(path, limits)
    try:
        for element in iter_job_elements(source, path=path, limits=limits, findings=findings):
            refuse_doctype(element, findings)
            if not isinstance(element.tag, str) or element.tag.rpartition("}")[2] not in _JOBS:
                continue
            ordinal += 1
            job = _alone(element)
            names = {e.tag.rpartition("}")[2] for e in job.getroottree().iter(etree.Element)}
            namespaces, namespaced = _namespaces(job.getroottree().getroot())
            places = _Places(path, job, 0 if job.getparent() is None else ordinal)
            yield from asked.evaluate(job, asked.candidates & names, namespaces, namespaced or bool(job.nsmap), places,
                                      job)
    finally:
        asked.worker.close()


def _alone(element: Any) -> Any:
    """A copy of a Job inside copies of the elements above it."""
    job = deepcopy(element)
    job.tail = None
    inner = job
    for above in element.iterancestors():
        made = etree.Element(above.tag, dict(above.attrib), nsmap=above.nsmap)
        made.append(inner)
        inner = made
    return job


make_callable(__name__)
