"""XPath over job objects: ``query`` over a whole document, ``query_stream`` Job by Job in bounded memory.

XPath 1.0 is evaluated by lxml, 3.1 by elementpath, in which case and where not: 3.1 when it is asked for, or when the
query is no XPath 1.0. Names of elements may be written with any alias of the vocabulary; they are mapped once to the
spellings that occur in the document.

Every query is taken to come from outside. Functions that reach beyond the document are refused by name, values are
passed as ``variables`` only. A query whose form alone shows that it takes linear time runs in this process; every
other one runs in a child process that is killed after ``limits.query_seconds``.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import islice, repeat
from typing import Any, Final, Literal

from lxml import etree

from sssjob.document.model import Document, Job, JobDefaults
from sssjob.document.vocabulary import CONTAINERS
from sssjob.errors import QueryError, UsageError
from sssjob.findings import Findings, Policy
from sssjob.limits import LIMITS, Limits
from sssjob.query._functions import extensions, prefixed
from sssjob.query._results import Kind, Places, Result
from sssjob.query._stream import Plan, combined, leads_through_jobs, plain
from sssjob.query._text import Token, candidates, check, is_text, linear, needs_31, needs_amounts, reason, spell, tokens
from sssjob.query._worker import Worker
from sssjob.xml.profiles import profile as profile_of
from sssjob.xml.reader import Source, parse_tree, read_document
from sssjob.xml.streaming import iter_job_elements, stream_elements
from sssjob.xml.xmlio import refuse_doctype

__all__ = ["Kind", "Result", "Selector", "Version", "is_of_jobs", "query", "query_stream"]

Version = Literal["1.0", "3.1"]

_JOBS: Final = frozenset({"Job", *CONTAINERS["Job"].aliases})


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
        self.amounts = needs_amounts(self.tokens)
        self.candidates = candidates(self.tokens)
        if not profile_of(profile).aliases:
            self.candidates &= {t.text for t in self.tokens}
        self.worker = Worker(limits)
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
                 namespaced: bool, places: Places, owner: Any = None) -> Iterator[Result]:
        """The results with context as context node; owner is the element that values belong to."""
        text = spell(self.tokens, occurring, namespaced)
        if not self.cheap:
            answers = self.worker.ask(text, self.version, context, self.variables, namespaces)
            return iter([_result(f, places, owner) for f in answers])
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
                spaces = prefixed(namespaces) if self.amounts else dict(namespaces)
                compiled = self._compiled[key] = etree.XPath(
                    text, namespaces=spaces or None, extensions=extensions(spaces) if self.amounts else None)
            return compiled(context, **self.variables)
        except etree.XPathError as error:
            raise QueryError(f"the query cannot be evaluated: {reason(error)}") from None


def _checked(variables: Mapping[str, str] | None) -> dict[str, str]:
    checked = dict(variables or {})
    for name, value in checked.items():
        if not name.isidentifier() and not name.replace("-", "_").replace(".", "_").isidentifier():
            raise QueryError(f"{name!r} is no name of a variable")
        if not isinstance(value, str):
            raise QueryError(f"variable {name} is no text")
        if not is_text(value):
            raise QueryError(f"variable {name} holds characters that XML does not know")
    return checked


def _result(answer: list[Any], places: Places, owner: Any) -> Result:
    if len(answer) == 2:
        kind, value = answer
        return Result(float(value) if kind == "number" else value, places, (kind, owner, ""))
    kind, element, name = answer
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
    occurring: set[str] = set()
    if namespaced:
        return frozenset(n for n in names if next(root.iter(f"{{*}}{n}"), None) is not None)
    rest = set(names)
    while rest:
        element = next(root.iter(*rest), None)
        if element is None:
            break
        occurring.add(element.tag)
        rest.discard(element.tag)
    return frozenset(occurring)


def query(xpath: str, source: Any, *, version: Version | None = None, variables: Mapping[str, str] | None = None,
          limits: Limits = LIMITS, path: str = "-", profile: str = "liberal", effective: bool = False,
          findings: Findings | None = None) -> Iterator[Result]:
    """The results of a query over a whole document, in document order.

    source: bytes, text, a Path, an open binary file, a tree of lxml (an element or its ElementTree), or a Document. The
    context node is the root element. version: None takes 1.0, and 3.1 where 1.0 does not do. profile: a strict one
    (``3.1``) repairs nothing and takes names as they stand. effective: the document is read, and every job asked as it
    counts, all defaults folded in (then JobDefaults is gone, names are those of 3.1.0, and lines those of the
    container). findings: takes the repairs, or what reading finds. Everything is evaluated before this returns.
    Raises QueryError for a query that is wrong or refused, QueryTimeout after ``limits.query_seconds``, RejectedError
    for what is no document.
    """
    asked = _Query(xpath, version, variables, limits, profile)
    root = _tree(source, path, limits, profile, effective, findings)
    namespaces, namespaced = _namespaces(root)
    try:
        return asked.evaluate(root, _occurring(root, asked.candidates, namespaced), namespaces, namespaced,
                              Places(path))
    finally:
        asked.worker.close()


def _tree(source: Any, path: str, limits: Limits, profile: str, effective: bool, findings: Findings | None) -> Any:
    if isinstance(source, etree._ElementTree):
        source = source.getroot()
    if effective and not isinstance(source, Document):
        data = etree.tostring(source) if etree.iselement(source) else source
        source = read_document(data, profile=profile, path=path, limits=limits)
        if findings is not None and source.findings is not None:
            findings.extend(source.findings)
    if isinstance(source, Document):
        from sssjob.document import _folding

        root = (_folding.folded(source) if effective else source).root
        try:
            return _folding.tree(root)
        except ValueError:                  # of lxml: a script may name what XML cannot hold
            from sssjob.xml.writer import write_document

            write_findings = Findings(path)
            write_document(source, findings=write_findings)
            write_findings.raise_if_rejected()
            raise
    if etree.iselement(source):
        return source
    return parse_tree(source, profile=profile, path=path, limits=limits, findings=findings)


class Selector:
    """A path that is evaluated on one element after another, each the root of its tree and the context node.

    XPath 1.0 in the names of 3.1.0 or any alias, of a form that takes linear time: it runs in this process. Raises
    QueryError for a path that is wrong or refused.
    """

    def __init__(self, path: str, *, limits: Limits = LIMITS) -> None:
        self._asked = _Query(path, "1.0", None, limits, "liberal")
        if not self._asked.cheap:
            raise QueryError("the path may take long: unions, steps up and searches inside of conditions are refused")

    def select(self, element: Any) -> list[Any]:
        """The elements that the path selects, and the texts of what else it comes to. Raises QueryError."""
        occurring = _occurring(element, self._asked.candidates, False)
        results = self._asked.evaluate(element, occurring, {}, False, Places("-"), element)
        return [result.value if result.kind == "element" else result.text() for result in results]


# --- streams ------------------------------------------------------------------------------------------------------

def is_of_jobs(xpath: str, *, profile: str = "liberal") -> bool:
    """Whether the form of a query shows that it asks for jobs and what stands in them: then ``query_stream`` gives the
    same results as ``query``. Raises QueryError."""
    asked = _Query(xpath, None, None, LIMITS, profile)
    asked.worker.close()
    return asked.cheap and leads_through_jobs(asked.tokens)


def query_stream(xpath: str, source: Source, *, version: Version | None = None,
                 variables: Mapping[str, str] | None = None, limits: Limits = LIMITS, path: str = "-",
                 profile: str = "liberal", effective: bool = False, policy: Policy | None = None,
                 findings: Findings | None = None) -> Iterator[Result]:
    """The results of a query over the jobs of a document of any size, job by job, in bounded memory.

    Every Job stands alone inside copies of the elements above it (``/JobGroup/Job``), without its siblings. The Job is
    the context node: ``/JobGroup/Job/User``, ``//Job[User='x']`` and ``User`` all work, and ``count(Task)`` gives a
    value for each Job. Of a path from the root ``count()``, ``sum()``, ``min()``, ``max()``, ``exists()``,
    ``boolean()``, ``empty()`` and ``not()`` give one value for all jobs, at the end. Any other query whose answer
    depends on more than one Job (``//Job[3]``, ``//Job[last()]``, ``string(//Id)``) is refused before anything is read.

    effective: every job is read and asked as it counts; QueryError where JobDefaults follows a Job, which was let go by
    then. policy and findings: of that reading, as for ``stream_jobs``. A result is valid until the next one is asked
    for. ``limits.query_seconds`` holds for each Job; nothing is repaired.
    """
    asked = _Query(xpath, version, variables, limits, profile)
    try:
        plan = plain(asked.tokens) if asked.cheap else None
        if plan is None:
            prefixes = {t.text.partition(":")[0] for t in asked.tokens if ":" in t.text and t.role == "element"}
            planned = asked.worker.plan("".join(t.text for t in asked.tokens), asked.variables,
                                        {prefix: f"urn:{prefix}" for prefix in prefixes if prefix.isidentifier()})
            plan = Plan(planned["how"], planned["around"])
    except BaseException:
        asked.worker.close()
        raise
    heard_findings = Findings(path, limits) if findings is None else findings
    jobs = (_effective_jobs(source, path, limits, profile, policy, heard_findings) if effective
            else _jobs(source, path, limits, heard_findings))
    return _stream(asked, plan, jobs, path)


def _stream(asked: _Query, plan: Plan, jobs: Iterator[Any], path: str) -> Iterator[Result]:
    results = _each(asked, jobs, path)
    try:
        if plan.how != "each":
            yield from combined(plan.how, results, Places(path))
        elif plan.around:
            yield from (r for r in results if r.within_job())
        else:
            yield from results
    finally:
        results.close()


def _each(asked: _Query, jobs: Iterator[Any], path: str) -> Generator[Result]:
    """The results of every job; each is a tree of its own."""
    try:
        for ordinal, job in enumerate(jobs, 1):
            names = {e.tag.rpartition("}")[2] for e in job.getroottree().iter(etree.Element)}
            namespaces, namespaced = _namespaces(job.getroottree().getroot())
            places = Places(path, job, 0 if job.getparent() is None else ordinal)
            yield from asked.evaluate(job, asked.candidates & names, namespaces, namespaced or bool(job.nsmap), places,
                                      job)
    finally:
        asked.worker.close()


def _jobs(source: Source, path: str, limits: Limits, findings: Findings) -> Iterator[Any]:
    for element in iter_job_elements(source, path=path, limits=limits, findings=findings):
        refuse_doctype(element, findings)
        if isinstance(element.tag, str) and element.tag.rpartition("}")[2] in _JOBS:
            job = deepcopy(element)
            job.tail = None
            yield _placed(job, element)


def _effective_jobs(source: Source, path: str, limits: Limits, profile: str, policy: Policy | None,
                    findings: Findings) -> Iterator[Any]:
    """The jobs of a document as they count, which JobDefaults have to come before."""
    from sssjob.document import _folding

    group, defaults, started = None, None, False
    for element, job in stream_elements(source, profile=profile, path=path, limits=limits, policy=policy,
                                        findings=findings):
        above = element.getparent()
        if above is not group:
            group, defaults, started = above, None, False
        if isinstance(job, Job):
            started = True
            outer = "Reject" if above is None else above.get("awarenessPolicy", "Reject")
            yield _placed(_folding.tree(_folding.folded_job(job, defaults, outer)), element)
        elif started:
            raise QueryError(f"{path}:{job.line}: JobDefaults stands after jobs that it holds for, which a stream "
                             "has let go by then; leave --stream away")
        else:
            items = [*(defaults.items if defaults is not None else ()), *job.items]
            defaults = JobDefaults(items, job.attributes, None, job.line)


def _placed(job: Any, element: Any) -> Any:
    """A Job inside copies of the elements above one."""
    inner = job
    for above in element.iterancestors():
        copied = etree.Element(above.tag, dict(above.attrib), nsmap=above.nsmap)
        copied.append(inner)
        inner = copied
    return job
