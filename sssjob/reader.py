"""From XML to typed objects: whole documents, streams of jobs, and the trees that queries run on.

One pass over the children of each element. A property whose text was seen before is not read again: properties are
immutable and shared, so the second ``<Queue>batch</Queue>`` costs one look-up (``_scopes``). Whatever has to be
told is a finding; the kinds that awarenessPolicy governs follow the nearest policy (section 9.0).
"""

from __future__ import annotations

import difflib
import gc
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, Final

from lxml import etree

from sssjob import accessors
from sssjob._lines import Lines, lines_of
from sssjob._scopes import NOTHING, Scope, Texts, plain_items, scope_of, texts_of
from sssjob.element import NO_ATTRIBUTES, Container, Item, Property, Raw
from sssjob.errors import AccessError, RejectedError
from sssjob.findings import Findings, Policy, Severity
from sssjob.lexical import LexicalError
from sssjob.limits import LIMITS, Limits
from sssjob.model import Document, File, Job, JobDefaults
from sssjob.profiles import Profile
from sssjob.profiles import profile as profile_of
from sssjob.values import attribute_text, invisible, known_unit, typed
from sssjob.vocabulary import (
    ATTRIBUTES,
    AWARENESS,
    CONSUMABLE,
    CONTAINERS,
    ELEMENTS,
    HOMELESS,
    TRANSPARENT,
    Attribute,
    Element,
    aliases,
    in_scope,
)
from sssjob.xmlio import Locator, clean_bytes, crowded, long_tag, parser, refuse_doctype, syntax_error
from sssjob.xmlio import parse_tree as parse_xml

__all__ = ["Source", "collector_paused", "iter_job_elements", "parse_tree", "read_bytes", "read_document",
           "stream_jobs"]

Source = bytes | str | Path | BinaryIO

_ROOTS: Final = ("Job", "JobGroup", "TaskGroup", "Requested", "Delivered")
_ENVELOPES: Final = ("Envelope", "Body", "Request", "Response", "Data")
_XSI: Final = "{http://www.w3.org/2001/XMLSchema-instance}"
_PIECE: Final = 1 << 24
_SMALL: Final = 100_000
_POOLED: Final = 4
_LOOK: Final = 100
_KEPT: Final = 20_000
_reads: Final = count(1)
_RELIEF: Final = 2_000
_SLOW: Final = 50
#: Profile -> scopes with what small documents left there, which make the next several times as fast (popped while in
#: use, so threads do not share). Now and then they start anew, for they must not grow without end.
_POOLS: Final[dict[str, list[dict[str, Scope]]]] = {}


class _Reader:
    """Turns elements into objects for one document: profile, policy, findings and caches."""

    __slots__ = ("_aliases", "_jobs", "_scopes", "_told", "default", "files", "findings", "first", "limits", "locate",
                 "profile", "whole")

    def __init__(self, profile: Profile, findings: Findings, limits: Limits, default: Policy,
                 locate: Callable[[Any], tuple[int, int, str]], scopes: dict[str, Scope]) -> None:
        self.profile = profile
        self.findings = findings
        self.limits = limits
        self.default = default
        self.locate = locate
        self.files: dict[str, File] = {}
        self._jobs = 0
        self.first = 1              # number of the first line of what is being read
        self.whole = False          # reading a whole document: everything made stays
        self._scopes = scopes
        self._aliases: dict[tuple[str, str], Texts] = {}
        self._told: set[tuple[str, str]] = set()

    # -- scopes
    def scope(self, container: str) -> Scope:
        """The scope of a container with the caches of this document."""
        found = self._scopes.get(container)
        if found is None:
            found = self._scopes[container] = scope_of(container, self.profile.aliases).fresh()
            found.classes = {tag: self.scope(name) for tag, name in found.containers.items()}
            found.starts = {f"<{name}>": inner for name, inner in found.classes.items() if name == inner.name}
            if not self.profile.liberal and not CONTAINERS[container].category:
                found.single |= {n for n, e in in_scope(container).items() if e.once_in_text}
        return found

    # -- findings
    def policy(self, element: Any) -> Policy:
        """The nearest awarenessPolicy at or above an element."""
        while element is not None:
            text = element.get("awarenessPolicy")
            if text is not None:
                return Policy.of(text) or Policy.REJECT
            element = element.getparent()
        return self.default

    def tell(self, rule: str, element: Any, subject: str, message: str, hint: str = "",
             severity: Severity | None = None) -> None:
        """Record a finding at an element."""
        self.findings.add(rule, subject, message, policy=self.policy(element), path=lambda: _path(element), hint=hint,
                          severity=severity, place=lambda: self.locate(element))

    def tell_once(self, rule: str, element: Any, subject: str, message: str,
                  severity: Severity | None = None) -> None:
        """Record a finding the first time it occurs for a subject in this document."""
        self.findings.told += 1
        if (rule, subject) not in self._told:
            self._told.add((rule, subject))
            self.findings.add(rule, subject, message, policy=self.policy(element), path=lambda: _path(element),
                              severity=severity, place=lambda: self.locate(element))

    # -- containers
    def container(self, element: Any, scope: Scope, spelling: str | None = None, depth: int = 0) -> Container:
        """The container that an element is, with everything below it."""
        items: list[Item] = []
        append = items.append
        texts_of = scope.texts.get
        stray = element.text
        for child in element:
            tag = child.tag
            texts = texts_of(tag)
            if texts is None:
                inner = scope.classes.get(tag)
                if inner is None:
                    self._other(child, tag, child.items(), scope, items, depth)
                else:
                    append(self.container(child, inner, None if tag == inner.name else tag, depth + 1))
            else:
                attributes = child.items()
                if attributes:
                    texts = texts.sets.get(tuple(attributes), NOTHING)
                leaf = texts[child.text]
                if leaf is None or len(child):
                    self._other(child, tag, attributes, scope, items, depth)
                else:
                    append(leaf)
            if child.tail is not None:
                stray = child.tail if stray is None else stray + child.tail
        made = scope.make(items, None, None, element.sourceline + self.first - 1, spelling)
        if spelling is not None and spelling in CONTAINERS[scope.name].aliases and spelling != self.profile.root:
            self.tell_once("SSS306", element, spelling, f"{spelling} read as {scope.name}", severity="info")
        if scope.name == "Job":
            self._relieve()
        own = element.items()
        if own:
            made.attributes = self._own_attributes(element, own, scope)
        if not items:
            self._without_items(element, made)
            return made
        if stray is not None and stray.strip():
            self.tell("SSS107", element, made.tag, f"{made.tag} holds text beside its elements: "
                      f"{stray.strip()[:40]!r}")
        if scope.single and scope.repeats(items):
            self._repeated(element, scope, made)
        return made

    def _relieve(self) -> None:
        """Every few thousand jobs, take what was read out of the collector's sight; the end of the read undoes it."""
        self._jobs += 1
        if self._jobs % _RELIEF == 0 and self.whole and gc.isenabled():
            gc.freeze()

    def _without_items(self, element: Any, made: Container) -> None:
        text = (element.text or "").strip()
        row = CONTAINERS[made.tag]
        if text and row.reference and not len(element):
            made.reference = text
        elif text and not len(element) and made.tag == "Environment" and self.profile.packed_script:
            made.items.extend(_packed_environment(text))
        elif text and not len(element):
            self.tell("SSS107", element, made.tag, f"{made.tag} holds text where elements are expected")
        elif made.tag == "Environment" and made.attributes:
            return          # its export says something
        elif row.reference or not (self.profile.liberal or made.tag == "Environment"):
            self.tell("SSS309", element, made.tag, f"{made.tag} is empty: neither a reference nor a definition")
        else:
            self.tell_once("SSS204", element, made.tag, f"{made.tag} is empty", severity="info")

    def _own_attributes(self, element: Any, own: list[tuple[str, str]], scope: Scope) -> dict[str, str]:
        self._count_attributes(element, own)
        return dict(self._attribute(element, scope.name, name, text, scope.own) for name, text in own)

    def _count_attributes(self, element: Any, own: list[tuple[str, str]]) -> None:
        if len(own) > self.limits.attributes:
            self.tell("SSS110", element, element.tag, f"{len(own)} attributes, more than the limit attributes "
                      f"({self.limits.attributes})")
            raise RejectedError(list(self.findings))

    def _repeated(self, element: Any, scope: Scope, made: Container) -> None:
        """More than one of what stands once: an alias beside its name, or a real contradiction."""
        by_name: dict[str, list[Property]] = {}
        for item in made.items:
            if isinstance(item, Property) and item.tag in scope.single:
                by_name.setdefault(item.tag, []).append(item)
        for name, found in by_name.items():
            if len(found) < 2:
                continue
            plain = [p for p in found if p.spelling is None]
            if plain and len(plain) < len(found):
                self._shadowed(element, made, plain[0], [p for p in found if p.spelling is not None])
            metrics = {p.attributes.get("metric") for p in found}
            measured = in_scope(scope.name)[name].attributes == CONSUMABLE and len(metrics) == len(found)
            if not self.profile.liberal:
                self.tell("SSS304", _second(element, found), name, f"{len(found)} {name} in one {made.tag}; one may "
                          "stand there", severity="error")
            elif len(plain) != 1 and not measured and any(p.value != found[0].value for p in found):
                self.tell("SSS304", _second(element, found), name, f"{len(found)} {name} in one {made.tag}; the first "
                          "is used")

    def _shadowed(self, element: Any, made: Container, plain: Property, others: list[Property]) -> None:
        for other in others:
            if other.value != plain.value:
                self.tell("SSS307", element, plain.tag, f"{other.spelling} {other.text!r} differs from {plain.tag} "
                          f"{plain.text!r}; {plain.tag} is used")
            at = next(i for i, item in enumerate(made.items) if item is other)
            made.items[at] = Raw(other.spelling or other.tag, other.attributes, other.text, line=made.line)

    # -- what is not in the cache
    def _other(self, child: Any, tag: str, attributes: list[tuple[str, str]], scope: Scope, items: list[Item],
               depth: int) -> None:
        before = self.findings.told
        again = self._aliases.get((scope.name, tag))
        if again is not None and not attributes and not len(child):
            leaf = again[child.text]
            if leaf is not None:
                items.append(leaf)
                return
        local = tag.rpartition("}")[2]
        if depth > self.limits.depth:
            self.tell("SSS110", child, local, f"nested deeper than the limit depth ({self.limits.depth})")
            raise RejectedError(list(self.findings))
        if local in scope.containers and local != tag:
            inner = scope.classes[local]
            items.append(self.container(child, inner, None if local == inner.name else local, depth + 1))
            return
        found = scope.rows.get(local)
        if found is None:
            self._not_here(child, local, scope, items, depth)
            return
        row, alias = found
        if len(child):
            if row.name == "Node" and alias is not None:
                self._transparent(child, scope, items, depth)
                return
            self.tell("SSS201", child, local, f"{local} holds elements where {row.type} is expected")
            items.append(self._raw(child, depth))
            return
        made = self._leaf(child, row, alias, attributes, scope)
        if made is None:
            return
        items.append(made)
        if alias is not None and (scope.name, tag) not in self._aliases:
            self._aliases[scope.name, tag] = texts_of(row, alias)
        if isinstance(made, Property) and before == self.findings.told:
            texts = scope.texts.get(tag)
            if texts is not None and attributes:
                texts.with_attributes(tuple(attributes), made.attributes)

    def _transparent(self, child: Any, scope: Scope, items: list[Item], depth: int) -> None:
        self.tell_once("SSS306", child, child.tag, f"{child.tag} is read as what it wraps", severity="info")
        items.extend(self.container(child, scope, None, depth + 1).items)

    def _not_here(self, child: Any, local: str, scope: Scope, items: list[Item], depth: int) -> None:
        """An element that has no row in this scope."""
        canonical = scope.folded.get(local.lower())
        if canonical is not None and canonical != local:
            self._other_case(child, local, canonical, scope, items, depth)
        elif self.profile.aliases and local in TRANSPARENT:
            self._transparent(child, scope, items, depth)
        elif self.profile.aliases and local in HOMELESS and "Extension" in scope.rows and not (
                len(child) or child.items()):
            self.tell_once("SSS312", child, local, f"{local} has no equivalent and is kept as an Extension")
            items.append(accessors.Extension("Extension", child.text or "", {"name": local, "type": HOMELESS[local]},
                                             local))
        else:
            self._unknown(child, local, scope)
            items.append(self._raw(child, depth))

    def _other_case(self, child: Any, local: str, canonical: str, scope: Scope, items: list[Item],
                    depth: int) -> None:
        self.tell_once("SSS310", child, local, f"{local} read as {canonical}")
        if canonical in scope.containers:
            items.append(self.container(child, scope.classes[canonical], local, depth + 1))
            return
        row, _ = scope.rows[canonical]
        made = self._leaf(child, row, local, child.items(), scope)
        if made is not None:
            items.append(made)

    def _unknown(self, child: Any, local: str, scope: Scope) -> None:
        bad = None if local.isascii() else next(f"U+{ord(c):04X}" for c in local if not c.isascii())
        if bad:
            self.tell("SSS108", child, local, f"the name holds the character {bad}")
            return
        rule, message = "SSS301", f"unknown element {local} in {scope.name}"
        hint: str | Callable[[], str] = ""
        if local in CONTAINERS or any(e.name == local for e in ELEMENTS):
            rule, message = "SSS303", f"{local} may not stand in {scope.name}"
        elif not self.profile.aliases and local in aliases(scope.name):
            hint = f"an alias of {aliases(scope.name)[local]}; profile liberal reads it"
        else:
            hint = partial(_meant, local, scope.name, (*scope.rows, *scope.containers))
        policy = self.policy(child)
        if policy is not Policy.REJECT and any(
            Policy.of(e.get("awarenessPolicy", "")) is Policy.REJECT for e in child.iter() if isinstance(e.tag, str)
        ):
            policy = Policy.REJECT
        self.findings.add(rule, local, message, policy=policy, path=lambda: _path(child), hint=hint,
                          place=lambda: self.locate(child))

    def _raw(self, element: Any, depth: int) -> Raw:
        """An element kept whole; mixed content included."""
        if depth > self.limits.depth:
            self.tell("SSS110", element, element.tag, f"nested deeper than the limit depth ({self.limits.depth})")
            raise RejectedError(list(self.findings))
        self._count_attributes(element, element.items())
        made = Raw(element.tag, dict(element.items()), element.text or "", line=element.sourceline + self.first - 1)
        for child in element:
            made.children.append(self._raw(child, depth + 1))
            if child.tail:
                made.children.append(child.tail)
        return made

    # -- leaves
    def _leaf(self, child: Any, row: Element, alias: str | None, attributes: list[tuple[str, str]],
              scope: Scope) -> Item | None:
        text = child.text or ""
        name = row.name
        if not row.may_be_empty and not text.strip():
            return self._empty(child, row)
        if len(text) > self.limits.text:
            self.tell("SSS110", child, name, f"text longer than the limit text ({self.limits.text})")
            raise RejectedError(list(self.findings))
        try:
            value, note = typed(row, text, self.profile.liberal)
        except LexicalError as error:
            rule = "SSS110" if getattr(error, "limit", "") else "SSS201"
            self.tell(rule, child, name, f"{name}: {error}")
            return self._raw(child, 0)
        if note:
            self.tell("SSS202", child, name, f"{name}: {note}")
        if alias in scope.rows:
            self.tell_once("SSS306", child, alias, f"{alias} read as {name}", severity="info")
        self._check_value(child, row, value)
        kept = NO_ATTRIBUTES
        if attributes or row.attributes:
            kept = self._leaf_attributes(child, row, attributes, scope)
        return accessors.CLASSES.get(name, Property)(name, value, kept, alias)

    def _empty(self, child: Any, row: Element) -> Item | None:
        if self.profile.liberal:
            self.tell_once("SSS204", child, row.name, f"{row.name} is empty and taken as absent", severity="info")
            return None
        self.tell("SSS201", child, row.name, f"{row.name} is empty")
        return self._raw(child, 0)

    def _check_value(self, child: Any, row: Element, value: Any) -> None:
        if row.minimum is not None and not isinstance(value, str) and value < row.minimum:
            self.tell("SSS205", child, row.name, f"{row.name} {value} is less than {row.minimum}")
        if not row.identifier or not isinstance(value, str):
            return
        if len(value) > self.limits.identifier:
            self.tell("SSS110", child, row.name, f"{row.name} is longer than the limit identifier "
                      f"({self.limits.identifier})")
        hidden = invisible(value)
        if hidden:
            self.tell("SSS209", child, row.name, f"{row.name} holds the character {hidden}, which does not show")

    def _leaf_attributes(self, child: Any, row: Element, attributes: list[tuple[str, str]],
                         scope: Scope) -> dict[str, str]:
        self._count_attributes(child, attributes)
        allowed = scope.attributes[row.name]
        kept = dict(self._attribute(child, row.name, name, text, allowed) for name, text in attributes)
        for wanted in row.attributes:
            if wanted.required and wanted.name not in kept:
                self.tell("SSS208", child, row.name, f"{row.name} lacks the attribute {wanted.name}")
        units = kept.get("units")
        if units is not None and row.unit and not known_unit(units):
            self.tell("SSS206", child, units, f"{row.name}: unit {units!r} is not known")
        return kept

    def _attribute(self, element: Any, owner: str, name: str, text: str,
                   allowed: dict[str, Attribute]) -> tuple[str, str]:
        row = allowed.get(name)
        if row is None and self.profile.liberal:
            row = next((a for n, a in allowed.items() if n.lower() == name.lower()), None)
            if row is not None:
                self.tell_once("SSS310", element, name, f"attribute {name} read as {row.name}")
        if row is None:
            self._unknown_attribute(element, owner, name, allowed)
            return name, text
        if row is AWARENESS:
            return row.name, self._awareness(element, text)
        try:
            canonical, note, known = attribute_text(row, text, self.profile.liberal)
        except LexicalError as error:
            self.tell("SSS207", element, name, f"{owner}: attribute {name}: {error}")
            return row.name, text
        if note:
            self.tell("SSS202", element, name, f"{owner}: attribute {name}: {note}")
        if not known:
            self.tell("SSS203", element, name, f"{owner}: attribute {name} has the unknown value {text!r}",
                      hint=f"known: {', '.join(row.values)}")
        return row.name, canonical

    def _awareness(self, element: Any, text: str) -> str:
        policy = Policy.of(text)
        if policy is None or (not self.profile.liberal and policy.value != text):
            self.tell("SSS210", element, "awarenessPolicy", f"awarenessPolicy {text!r} is not known; Reject holds")
            return text
        return policy.value

    def _unknown_attribute(self, element: Any, owner: str, name: str, allowed: dict[str, Attribute]) -> None:
        if name.startswith(_XSI):
            self.tell_once("SSS106", element, name, f"{name.removeprefix(_XSI)} is not followed")
            return
        local = name.rpartition("}")[2]
        if local in ATTRIBUTES:
            message, hint = f"{owner}: attribute {local} may not stand here", ""
            if local in ("op", "conj", "group", "preference", "performanceFactor"):
                hint = "it belongs to properties inside Requested"
        else:
            close = difflib.get_close_matches(local, allowed, 1)
            message, hint = f"{owner}: unknown attribute {local}", f"did you mean {close[0]}?" if close else ""
        self.tell("SSS302", element, local, message, hint)

    # -- envelopes
    def envelope(self, element: Any, depth: int = 0) -> Raw:
        """An SSSRMAP message: everything as it is, with the jobs in it as objects and the Files taken aside."""
        if depth > self.limits.depth:
            self.tell("SSS110", element, element.tag, f"nested deeper than the limit depth ({self.limits.depth})")
            raise RejectedError(list(self.findings))
        made = Raw(element.tag, dict(element.items()), element.text or "", line=element.sourceline + self.first - 1)
        for child in element:
            local = child.tag.rpartition("}")[2]
            name = self.root_name(local)
            if local == "File" and child.get("id"):
                self._file(child)
            elif name is not None and (len(child) or element.tag == "Data"):
                made.children.append(self.container(child, self.scope(name), None if local == name else local))
            else:
                made.children.append(self.envelope(child, depth + 1))
                if (child.tail or "").strip():
                    made.children.append(child.tail)
        return made

    def _file(self, element: Any) -> None:
        name = element.get("id")
        if name in self.files:
            self.tell("SSS311", element, name, f"File {name!r} stands there twice")
            return
        total = sum(len(f.text) for f in self.files.values()) + len(element.text or "")
        if len(self.files) >= self.limits.files or total > self.limits.files_bytes:
            self.tell("SSS110", element, name, "more Files than the limit files or files_bytes allows")
            raise RejectedError(list(self.findings))
        self.files[name] = File(name, element.text or "", element.get("encoded"))

    def root_name(self, local: str) -> str | None:
        """The container that an element stands for where jobs stand, or None."""
        if local in _ROOTS:
            return local
        if local == "UsageRecord" and self.profile.root == "UsageRecord":
            return "Job"
        if self.profile.aliases and local.lower() in ("job", "jobgroup"):
            return {"job": "Job", "jobgroup": "JobGroup"}[local.lower()]
        return None

    def tree(self, data: bytes, path: str) -> Document:
        """The whole document."""
        root = parse_xml(data, findings=self.findings, repairs=self.profile.liberal, limits=self.limits)
        _count_elements(root, data, self.findings, self.limits)
        local = root.tag.rpartition("}")[2]
        name = self.root_name(local)
        if name is not None:
            body: Container | Raw = self.container(root, self.scope(name), None if local == name else local)
        elif local in _ENVELOPES:
            body = self.envelope(root)
        else:
            hint = "--profile mam reads usage records" if local == "UsageRecord" else ""
            self.tell("SSS109", root, local, f"{local} is not the root of a job document", hint)
            raise RejectedError(list(self.findings))
        made = self.finished(body, path)
        if isinstance(body, Raw) and not any(True for _ in made.bodies()):
            self.tell("SSS109", root, local, f"{local} holds no job")
            raise RejectedError(list(self.findings))
        return made

    def finished(self, body: Container | Raw, path: str) -> Document:
        """The document with this body."""
        made = Document(body, self.files, path, self.profile.name, self.findings)
        if self.profile.packed_script:
            _unpack_scripts(made)
        return made

    # -- by lines
    def lines(self, lines: Lines, path: str) -> Document | None:
        """A JobGroup or a Job by its lines; None when there is something to tell, for the places are in the tree."""
        scope = self.scope("JobGroup")
        job = scope.classes["Job"]
        items: list[Item] = []
        slow = 0
        for line, plain, text in lines.segments():
            if plain is not None and "&" not in text:
                rest = iter(plain)
                read = plain_items(rest, job, line)
                if read is not None and read[0] and next(rest, None) is None:
                    items.append(job.make(read[0], None, None, line))
                    self._relieve()
                    continue
            slow += 1
            if lines.alone or slow > _SLOW + len(items) // 4 or not self._segment(text, line, scope, items):
                return None
        if lines.alone:
            return self.finished(items[0], path) if len(items) == 1 and isinstance(items[0], Container) else None
        return None if scope.repeats(items) else self.finished(scope.make(items, None, None, lines.line), path)

    def _segment(self, text: str, line: int, scope: Scope, items: list[Item]) -> bool:
        """Read some children of a group by a tree of their own; False when there is something to tell."""
        if not text.strip(" \t\n"):
            return True
        try:
            root = etree.fromstring(f"<JobGroup>{text}</JobGroup>", parser())
        except etree.XMLSyntaxError:
            return False
        self.first = line
        items += self.container(root, scope).items
        return self.findings.told == 0


def _second(element: Any, found: list[Property]) -> Any:
    """The second of the elements that these were read from; inside a wrapper: the container's."""
    names = {p.spelling or p.tag for p in found}
    there = [child for child in element if child.tag.rpartition("}")[2] in names]
    return there[1] if len(there) > 1 else element


def _path(element: Any) -> str:
    return str(element.getroottree().getpath(element))


@lru_cache(maxsize=256)
def _meant(name: str, scope: str, names: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(name, names, 1)
    return f"did you mean {close[0]}?" if close else ""


def _packed_environment(text: str) -> Iterator[Property]:
    """Moab's one text of NAME=value items, parted by ``;`` or ``~rs;``."""
    for part in text.replace("~rs;", ";").split(";"):
        name, equals, value = part.partition("=")
        if equals:
            yield accessors.Variable("Variable", value, {"name": name.strip()})


def _unpack_scripts(document: Document) -> None:
    from sssjob.moab import unpack

    for job, _ in document.jobs():
        for at, item in enumerate(job.items):
            if isinstance(item, Property) and item.spelling == "SubmitString" and job.executable is None:
                name = "Script" if not document.files else f"Script-{len(document.files) + 1}"
                document.files[name] = File(name, unpack(str(item.value)))
                job.items[at] = Property("Executable", f"#{name}", NO_ATTRIBUTES, "SubmitString")


# --- whole documents ----------------------------------------------------------------------------------------------

def _read(file: BinaryIO, most: int) -> bytes:
    """The bytes of a file, up to so many; in pieces, because asking for so many at once takes memory for all."""
    pieces = []
    while most > 0 and (piece := file.read(min(most, _PIECE))):
        pieces.append(piece)
        most -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def read_bytes(source: Source, path: str = "-", limits: Limits = LIMITS) -> bytes:
    """The bytes of a source: bytes, text, a path or an open binary file; AccessError when it cannot be read."""
    if isinstance(source, bytes):
        return source
    if isinstance(source, str):
        return source.encode("utf-8", "surrogatepass")
    try:
        if isinstance(source, Path):
            with source.open("rb") as file:
                return _read(file, limits.document_bytes + 1)
        return _read(source, limits.document_bytes + 1)
    except OSError as error:
        raise AccessError(str(source) if isinstance(source, Path) else path, error.strerror or str(error)) from error


@contextmanager
def collector_paused(pause: bool = True) -> Iterator[None]:
    """Without the garbage collector while many objects are made that all stay: half of a bulk read otherwise.

    At the end the new objects are put with the oldest generation at once (freeze, unfreeze), which spares a
    collection that would walk through all of them. Not paused, ``_relieve`` does the same every few thousand jobs:
    the collector goes on, but does not walk again and again through what was read.
    """
    paused = pause and gc.isenabled()
    if paused:
        gc.disable()
    ours = gc.get_freeze_count() == 0
    try:
        yield
    finally:
        if ours and (paused or gc.get_freeze_count()):
            gc.freeze()
            gc.unfreeze()
        if paused:
            gc.enable()


def parse_tree(source: Source, *, profile: str = "liberal", path: str = "-", limits: Limits = LIMITS,
               findings: Findings | None = None) -> Any:
    """The lxml root element of a document, parsed safely and repaired where the profile allows it.

    Raises RejectedError (not XML, DOCTYPE, encoding ...), AccessError.
    """
    row = profile_of(profile)
    found = Findings(path, limits) if findings is None else findings
    return parse_xml(read_bytes(source, path, limits), findings=found, repairs=row.liberal, limits=limits)


def read_document(source: Source, *, profile: str = "liberal", path: str = "-", limits: Limits = LIMITS,
                  policy: Policy | None = None, pause_gc: bool = False) -> Document:
    """Read a whole document; what was found is in ``document.findings`` (ask ``.rejected``).

    source: bytes, text, a Path, or an open binary file. policy: the outermost default of awarenessPolicy instead of
    Reject. Raises RejectedError when nothing can be built (not XML, no job in it, a limit), AccessError when the
    file cannot be read.
    """
    row = profile_of(profile)
    if path == "-" and isinstance(source, Path):
        path = str(source)
    data = read_bytes(source, path, limits)
    small = len(data) < _SMALL
    pool = _POOLS.setdefault(row.name, [])
    scopes = pool.pop() if pool else {}

    def reader(locate: Callable[[Any], tuple[int, int, str]]) -> _Reader:
        made = _Reader(row, Findings(path, limits), limits, policy or Policy.REJECT, locate, scopes)
        made.whole = not small and gc.get_freeze_count() == 0
        return made

    def document() -> Document:
        lines = lines_of(data, limits)
        made = None if lines is None else reader(_nowhere).lines(lines, path)
        return reader(Locator(data)).tree(data, path) if made is None else made

    if not small:
        with collector_paused(pause_gc):
            return document()
    made = document()
    if len(pool) < _POOLED and (next(_reads) % _LOOK or _held(scopes) < _KEPT):
        pool.append(scopes)
    return made


def _nowhere(element: Any) -> tuple[int, int, str]:
    """The place of a finding that only sends a document the way of the tree."""
    return 0, 0, ""


def _held(scopes: dict[str, Scope]) -> int:
    """How many texts are kept."""
    return sum(len(s.tokens) + sum(map(len, s.texts.values())) for s in scopes.values())


def _count_elements(root: Any, data: bytes, findings: Findings, limits: Limits) -> None:
    if len(data) > 4 * limits.document_elements and root.xpath("count(//*)") > limits.document_elements:
        findings.add("SSS110", "", f"more elements than the limit document_elements ({limits.document_elements})")
        raise RejectedError(list(findings))


# --- streams ------------------------------------------------------------------------------------------------------

_CHUNK: Final = 1 << 20


class _Window:
    """The bytes that a stream is reading at, with their line numbers; old ones are let go."""

    def __init__(self) -> None:
        self._recent: deque[tuple[int, bytes]] = deque(maxlen=4)
        self._next = 1

    def feed(self, chunk: bytes) -> None:
        """Take the next chunk."""
        self._recent.append((self._next, chunk))
        self._next += chunk.count(b"\n")

    @property
    def data(self) -> bytes:
        """What is here."""
        return b"".join(c for _, c in self._recent)

    @property
    def first(self) -> int:
        """The number of the first line that is here, whole or in part."""
        return self._recent[0][0] if self._recent else 1

    def place(self, element: Any) -> tuple[int, int, str]:
        """Line, column and source line of an element, as far as its text is still here."""
        return Locator(self.data, self.first)(element)


def _chunks(source: Source, path: str) -> Iterator[bytes]:
    if isinstance(source, (bytes, str)):
        source = BytesIO(source if isinstance(source, bytes) else source.encode("utf-8", "surrogatepass"))
    try:
        if isinstance(source, Path):
            with source.open("rb") as file:
                while chunk := file.read(_CHUNK):
                    yield chunk
        else:
            while chunk := source.read(_CHUNK):
                yield chunk
    except OSError as error:
        raise AccessError(str(source) if isinstance(source, Path) else path, error.strerror or str(error)) from error


def iter_job_elements(source: Source, *, path: str = "-", limits: Limits = LIMITS,
                      findings: Findings | None = None) -> Iterator[Any]:
    """The lxml elements of the jobs of a document, one at a time, in bounded memory.

    Yields each child of a JobGroup that is complete (Job, JobDefaults ...), or the Job itself when it is the root.
    An element is valid until the next is asked for. There is no limit on the whole; each child has the limits
    ``child_bytes`` and ``child_elements``. Raises RejectedError at the first fault of the XML.
    """
    found = Findings(path, limits) if findings is None else findings
    yield from _elements(source, path, limits, found, _Window())


def _elements(source: Source, path: str, limits: Limits, findings: Findings, window: _Window) -> Iterator[Any]:
    wanted = [f"{{*}}{name}" for name in ("Job", "JobDefaults", "JobsDefaults", "job", "TaskGroup")]
    feeder = etree.XMLPullParser(events=("end",), tag=wanted, resolve_entities=False, no_network=True, load_dtd=False,
                                 remove_comments=True, remove_pis=True, remove_blank_text=True)
    since, line, long = 0, 1, False
    try:
        for chunk in _chunks(source, path):
            if line == 1 and not since:
                clean_bytes(chunk, findings, limits, whole=len(chunk) < _CHUNK)
            window.feed(chunk)
            feeder.feed(chunk)
            since += len(chunk)
            long = long or long_tag(chunk, limits)
            for _, element in feeder.read_events():
                refuse_doctype(element, findings)
                if _stands_for_itself(element):
                    if long and crowded(element, limits):
                        raise _too_large("attributes", limits, findings)
                    _check_child(element, limits, findings)
                    yield element
                    _free(element)
                    since, line = 1, 2
            if since > limits.child_bytes + _CHUNK:
                raise _too_large("child_bytes", limits, findings)
        if line == 1 and not since:
            clean_bytes(b"", findings, limits)
        feeder.close()
    except etree.XMLSyntaxError as error:
        raise syntax_error(error, window.data, findings, window.first) from None


def _stands_for_itself(element: Any) -> bool:
    """Whether an element is a child of the group (or the root), not part of a job."""
    parent = element.getparent()
    if parent is None:
        return True
    return parent.tag.rpartition("}")[2].lower() in ("jobgroup", *(e.lower() for e in _ENVELOPES))


def _free(element: Any) -> None:
    """Forget an element and the siblings before it; later ones may be complete already and stay."""
    element.clear()
    parent = element.getparent()
    while (before := element.getprevious()) is not None:
        parent.remove(before)


def _too_large(name: str, limits: Limits, findings: Findings) -> RejectedError:
    findings.add("SSS110", name, f"a child of the root has more than the limit {name} ({getattr(limits, name)})")
    return RejectedError(list(findings))


def _check_child(element: Any, limits: Limits, findings: Findings) -> None:
    if len(element) > 1_000 and element.xpath("count(.//*)") > limits.child_elements:
        raise _too_large("child_elements", limits, findings)


def stream_jobs(source: Source, *, profile: str = "liberal", path: str = "-", limits: Limits = LIMITS,
                policy: Policy | None = None, findings: Findings | None = None) -> Iterator[Job | JobDefaults]:
    """The jobs of a document of any size, in bounded memory, in document order.

    JobDefaults is yielded where it stands; it may follow the jobs it holds for. Findings go into ``findings``.
    Raises as ``iter_job_elements``; nothing is repaired in a stream.
    """
    row = profile_of(profile)
    found = Findings(path, limits) if findings is None else findings
    window = _Window()
    reader = _Reader(row, found, limits, policy or Policy.REJECT, window.place, {})
    for element in _elements(source, path, limits, found, window):
        name = {"JobDefaults": "JobDefaults", "JobsDefaults": "JobDefaults"}.get(
            element.tag.rpartition("}")[2]) or reader.root_name(element.tag.rpartition("}")[2])
        if name in ("Job", "JobDefaults"):
            local = element.tag.rpartition("}")[2]
            yield reader.container(element, reader.scope(name),  # type: ignore[misc]
                                   None if local == name else local)
