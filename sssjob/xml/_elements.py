"""One element to one typed object: containers, leaves, attributes, and what is told about them.

One pass over the children of each element. A property whose text was seen before is not read again: properties are
immutable and shared, so the second ``<Queue>batch</Queue>`` costs one look-up (``_scopes``). Whatever has to be
told is a finding; the kinds that awarenessPolicy governs follow the nearest policy (section 9.0). Whole documents are
the business of ``sssjob.xml.reader``, streams that of ``sssjob.xml.streaming``.
"""

from __future__ import annotations

import difflib
import gc
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from typing import Any, Final

from sssjob.document import kinds
from sssjob.document.element import NO_ATTRIBUTES, Container, Item, Property, Raw
from sssjob.document.lexical import LexicalError
from sssjob.document.values import attribute_text, invisible, known_unit, typed
from sssjob.document.vocabulary import (
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
from sssjob.errors import RejectedError
from sssjob.findings import Findings, Policy, Severity
from sssjob.limits import Limits
from sssjob.xml._scopes import NOTHING, Scope, Texts, scope_of, texts_of
from sssjob.xml.profiles import Profile

_XSI: Final = "{http://www.w3.org/2001/XMLSchema-instance}"
#: Jobs after which what was read is taken out of the collector's sight.
_RELIEF: Final = 2_000


class ElementReader:
    """Turns elements into objects for one document: profile, policy, findings and caches."""

    __slots__ = ("_aliases", "_jobs", "default", "findings", "limits", "locate", "once", "profile", "relieved",
                 "scopes", "whole")

    def __init__(self, profile: Profile, findings: Findings, limits: Limits, default: Policy,
                 locate: Callable[[Any], tuple[int, int, str]], scopes: dict[str, Scope],
                 once: set[tuple[str, str]] | None = None) -> None:
        self.profile = profile
        self.findings = findings
        self.limits = limits
        self.default = default
        self.locate = locate
        self._jobs = 0
        self.whole = False          # reading a whole document: everything made stays
        self.relieved = False       # some of it is out of the collector's sight
        self.scopes = scopes
        self._aliases: dict[tuple[str, str], Texts] = {}
        self.once: set[tuple[str, str]] = set() if once is None else once       # rule and subject told already

    # -- scopes
    def scope(self, container: str) -> Scope:
        """The scope of a container with the caches of this document."""
        scope = self.scopes.get(container)
        if scope is None:
            scope = self.scopes[container] = scope_of(container, self.profile.aliases).fresh()
            scope.classes = {tag: self.scope(name) for tag, name in scope.containers.items()}
            if not self.profile.liberal and not CONTAINERS[container].category:
                scope.single |= {n for n, e in in_scope(container).items() if e.once_in_text}
        return scope

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
        if (rule, subject) not in self.once:
            self.once.add((rule, subject))
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
            if tag[0] == "{":           # names mean the same in any namespace
                tag = tag.rpartition("}")[2]
            texts = texts_of(tag)
            if texts is None:
                inner = scope.classes.get(tag)
                if inner is None:
                    self.other(child, tag, child.items(), scope, items, depth)
                else:
                    append(self.container(child, inner, None if tag == inner.name else tag, depth + 1))
            else:
                attributes = child.items()
                if attributes:
                    texts = texts.sets.get(tuple(attributes), NOTHING)
                leaf = texts[child.text]
                if leaf is None or len(child):
                    self.other(child, tag, attributes, scope, items, depth)
                else:
                    append(leaf)
            if child.tail is not None:
                stray = child.tail if stray is None else stray + child.tail
        container = scope.make(items, None, None, element.sourceline, spelling)
        if spelling is not None and spelling in CONTAINERS[scope.name].aliases and spelling != self.profile.root:
            self.tell_once("SSS306", element, spelling, f"{spelling} read as {scope.name}", severity="info")
        if scope.name == "Job":
            self.relieve()
        own = element.items()
        if own:
            container.attributes = self.own_attributes(element, own, scope)
        if not items:
            self._without_items(element, container)
            return container
        if stray is not None and stray.strip():
            self.tell("SSS107", element, container.tag, f"{container.tag} holds text beside its elements: "
                      f"{stray.strip()[:40]!r}")
        if scope.single and scope.repeats(items):
            self._repeated(element, scope, container)
        return container

    def child(self, child: Any, scope: Scope, items: list[Any], depth: int = 0) -> None:
        """Add what one child of a container is to its items."""
        tag = child.tag.rpartition("}")[2]
        inner = scope.classes.get(tag)
        if inner is None:
            self.other(child, tag, child.items(), scope, items, depth)
        else:
            items.append(self.container(child, inner, None if tag == inner.name else tag, depth + 1))

    def relieve(self) -> None:
        """Every few thousand jobs, take what was read out of the collector's sight; the end of the read undoes it."""
        self._jobs += 1
        if self._jobs % _RELIEF == 0 and self.whole and gc.isenabled():
            self.relieved = self.relieved or gc.get_freeze_count() == 0
            self.whole = self.relieved          # else a program has frozen something, which stays so
            if self.relieved:
                gc.freeze()

    def _without_items(self, element: Any, container: Container) -> None:
        text = (element.text or "").strip()
        row = CONTAINERS[container.tag]
        if text and row.reference and not len(element):
            container.reference = text
        elif text and not len(element) and container.tag == "Environment" and self.profile.packed_script:
            container.items.extend(_packed_environment(text))
        elif text and not len(element):
            self.tell("SSS107", element, container.tag, f"{container.tag} holds text where elements are expected")
        elif container.tag == "Environment" and container.attributes:
            return          # its export says something
        elif row.reference or not (self.profile.liberal or container.tag == "Environment"):
            self.tell("SSS309", element, container.tag,
                      f"{container.tag} is empty: neither a reference nor a definition")
        else:
            self.tell_once("SSS204", element, container.tag, f"{container.tag} is empty", severity="info")

    def own_attributes(self, element: Any, own: list[tuple[str, str]], scope: Scope) -> dict[str, str]:
        """The attributes of a container, as they are kept."""
        self._count_attributes(element, own)
        return dict(self._attribute(element, scope.name, name, text, scope.own) for name, text in own)

    def _count_attributes(self, element: Any, own: list[tuple[str, str]]) -> None:
        if len(own) > self.limits.attributes:
            self.tell("SSS110", element, element.tag, f"{len(own)} attributes, more than the limit attributes "
                      f"({self.limits.attributes})")
            raise RejectedError(list(self.findings))

    def _repeated(self, element: Any, scope: Scope, container: Container) -> None:
        """More than one of what stands once: an alias beside its name, or a real contradiction."""
        by_name: dict[str, list[Property]] = {}
        for item in container.items:
            if isinstance(item, Property) and item.tag in scope.single:
                by_name.setdefault(item.tag, []).append(item)
        for name, same in by_name.items():
            if len(same) < 2:
                continue
            plain = [p for p in same if p.spelling is None]
            if plain and len(plain) < len(same):
                self._shadowed(element, container, plain[0], [p for p in same if p.spelling is not None])
            metrics = {p.attributes.get("metric") for p in same}
            measured = in_scope(scope.name)[name].attributes == CONSUMABLE and len(metrics) == len(same)
            if not self.profile.liberal:
                self.tell("SSS304", _second(element, same), name, f"{len(same)} {name} in one {container.tag}; one may "
                          "stand there", severity="error")
            elif len(plain) != 1 and not measured and any(p.value != same[0].value for p in same):
                self.tell("SSS304", _second(element, same), name,
                          f"{len(same)} {name} in one {container.tag}; the first "
                          "is used")

    def _shadowed(self, element: Any, container: Container, plain: Property, others: list[Property]) -> None:
        for other in others:
            if other.value != plain.value:
                self.tell("SSS307", element, plain.tag, f"{other.spelling} {other.text!r} differs from {plain.tag} "
                          f"{plain.text!r}; {plain.tag} is used")
            at = next(i for i, item in enumerate(container.items) if item is other)
            container.items[at] = Raw(other.spelling or other.tag, other.attributes, other.text, line=container.line)

    # -- what is not in the cache
    def other(self, child: Any, tag: str, attributes: list[tuple[str, str]], scope: Scope, items: list[Item],
              depth: int) -> None:
        """Add what a child is that no cache knows. tag: without its namespace."""
        before = self.findings.told
        again = self._aliases.get((scope.name, tag))
        if again is not None and not attributes and not len(child):
            leaf = again[child.text]
            if leaf is not None:
                items.append(leaf)
                return
        local = tag
        if depth > self.limits.depth:
            self.tell("SSS110", child, local, f"nested deeper than the limit depth ({self.limits.depth})")
            raise RejectedError(list(self.findings))
        row_and_alias = scope.rows.get(local)
        if row_and_alias is None:
            self._not_here(child, local, scope, items, depth)
            return
        row, alias = row_and_alias
        if len(child):
            if row.name == "Node" and alias is not None:
                self._transparent(child, scope, items, depth)
                return
            self.tell("SSS201", child, local, f"{local} holds elements where {row.type} is expected")
            items.append(self._raw(child, depth))
            return
        item = self._leaf(child, row, alias, attributes, scope)
        if item is None:
            return
        items.append(item)
        if alias is not None and (scope.name, tag) not in self._aliases:
            self._aliases[scope.name, tag] = texts_of(row, alias)
        if isinstance(item, Property) and before == self.findings.told:
            texts = scope.texts.get(tag)
            if texts is not None and attributes:
                texts.with_attributes(tuple(attributes), item.attributes)

    def _transparent(self, child: Any, scope: Scope, items: list[Item], depth: int) -> None:
        local = child.tag.rpartition("}")[2]
        self.tell_once("SSS306", child, local, f"{local} is read as what it wraps", severity="info")
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
            items.append(kinds.Extension("Extension", child.text or "", {"name": local, "type": HOMELESS[local]},
                                             local))
        else:
            self.unknown(child, local, scope)
            items.append(self._raw(child, depth))

    def _other_case(self, child: Any, local: str, canonical: str, scope: Scope, items: list[Item],
                    depth: int) -> None:
        self.tell_once("SSS310", child, local, f"{local} read as {canonical}")
        if canonical in scope.containers:
            items.append(self.container(child, scope.classes[canonical], local, depth + 1))
            return
        row, _ = scope.rows[canonical]
        leaf = self._leaf(child, row, local, child.items(), scope)
        if leaf is not None:
            items.append(leaf)

    def unknown(self, child: Any, local: str, scope: Scope) -> None:
        """Tell of an element that is not known where it stands."""
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
        if policy is not Policy.REJECT:
            critical = next((e for e in child.iter() if isinstance(e.tag, str)
                             and Policy.of(e.get("awarenessPolicy", "")) is Policy.REJECT), None)
            if critical is not None:        # what is around it may go, it may not
                name = critical.tag.rpartition("}")[2]
                rule, policy, hint, child = "SSS301", Policy.REJECT, "", critical
                local, message = name, f"unknown element {name} in {local}, which says awarenessPolicy Reject"
        self.findings.add(rule, local, message, policy=policy, path=lambda: _path(child), hint=hint,
                          place=lambda: self.locate(child))

    def _raw(self, element: Any, depth: int) -> Raw:
        """An element kept whole; mixed content included."""
        if depth > self.limits.depth:
            self.tell("SSS110", element, element.tag, f"nested deeper than the limit depth ({self.limits.depth})")
            raise RejectedError(list(self.findings))
        self._count_attributes(element, element.items())
        raw = Raw(element.tag, dict(element.items()), element.text or "", line=element.sourceline)
        for child in element:
            raw.children.append(self._raw(child, depth + 1))
            if child.tail:
                raw.children.append(child.tail)
        return raw

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
        return kinds.CLASSES.get(name, Property)(name, value, kept, alias)

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
        for attribute in row.attributes:
            if attribute.required and attribute.name not in kept:
                self.tell("SSS208", child, row.name, f"{row.name} lacks the attribute {attribute.name}")
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
            canonical, note, valid = attribute_text(row, text, self.profile.liberal)
        except LexicalError as error:
            self.tell("SSS207", element, name, f"{owner}: attribute {name}: {error}")
            return row.name, text
        if note:
            self.tell("SSS202", element, name, f"{owner}: attribute {name}: {note}")
        if not valid:
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
            close = difflib.get_close_matches(local, allowed, 1) or _within(local, allowed)
            message, hint = f"{owner}: unknown attribute {local}", f"did you mean {close[0]}?" if close else ""
        self.tell("SSS302", element, local, message, hint)


def _within(name: str, allowed: Iterable[str]) -> list[str]:
    """The longest of these names that a name has in it, where it is short: ``code`` in ``exitCode``."""
    containing = [word for word in allowed if len(word) > 2 and word.lower() in name.lower()]
    return sorted(containing, key=len)[-1:]


def _second(element: Any, same: list[Property]) -> Any:
    """The second of the elements that these were read from; inside a wrapper: the container's."""
    names = {p.spelling or p.tag for p in same}
    children = [child for child in element if child.tag.rpartition("}")[2] in names]
    return children[1] if len(children) > 1 else element


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
            yield kinds.Variable("Variable", value, {"name": name.strip()})
