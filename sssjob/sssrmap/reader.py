"""From XML to messages: ``read_message``.

The text goes through the hardened parser of job documents (no DOCTYPE, no entities, nothing fetched). Names count with
the namespace of SSSRMAP, by prefix or default, and without one. Two profiles: ``3.1`` holds to the message format, and
what is not understood is rejected unless awarenessPolicy says otherwise; ``gold`` takes what Gold's clients and servers
send to each other, who pass over what they do not know.
"""

from __future__ import annotations

import re
from typing import Any, Final, Literal

from lxml import etree

from sssjob.errors import RejectedError, UsageError
from sssjob.findings import Findings, Policy, escape
from sssjob.limits import LIMITS, Limits
from sssjob.sssrmap._carried import cut, form_of
from sssjob.sssrmap.model import (
    CONJUNCTIONS,
    GET_OPS,
    SET_OPS,
    WHERE_OPS,
    Count,
    Data,
    Envelope,
    File,
    Foreign,
    Get,
    MessageError,
    Object,
    Option,
    Part,
    Request,
    Response,
    Set,
    Signature,
    Status,
    Token,
    Where,
)
from sssjob.xml.writer import escaped
from sssjob.xml.xmlio import parse_tree

__all__ = ["NAMESPACE", "PROFILES", "Profile", "read_message", "status_of"]

Profile = Literal["3.1", "gold"]
#: Profile -> what holds for what is not understood where no awarenessPolicy is stated.
PROFILES: Final[dict[str, Policy]] = {"3.1": Policy.REJECT, "gold": Policy.IGNORE}
NAMESPACE: Final = "http://www.scidac.org/ScalableSystems/SSSRMAP"

_OF_REQUEST: Final[dict[str, type[Any]]] = {
    c.__name__: c for c in (Object, Get, Set, Where, Option, Data, File, Count)}
_OF_RESPONSE: Final[dict[str, type[Any]]] = {c.__name__: c for c in (Status, Count, Data, File)}
_TRUTHS: Final = {"true": True, "false": False}
#: (class, attribute) -> the values that are known.
_KNOWN: Final = {("Get", "op"): GET_OPS, ("Set", "op"): SET_OPS, ("Where", "op"): WHERE_OPS, ("Option", "op"): ("Not",),
                 ("Where", "conj"): CONJUNCTIONS, ("Option", "conj"): CONJUNCTIONS}
_WHOLE: Final = re.compile("[+-]?[0-9]{1,18}")
_ON_ENVELOPE: Final = frozenset(("type", "component", "name", "version", "count"))


def read_message(source: bytes | str, *, profile: str = "3.1", policy: Policy | None = None, limits: Limits = LIMITS,
                 path: str = "-", findings: Findings | None = None) -> Envelope:
    """The message of a text. policy: instead of the profile's, for what is not understood; findings: takes it.

    Raises RejectedError for what is no XML or beyond a limit, and MessageError (242) for what is no Envelope with a
    Body. What is not understood is no error here: ask ``status_of(findings)`` whether to go on.
    """
    if profile not in PROFILES:
        raise UsageError(f"unknown profile {profile!r} of messages (known: {', '.join(PROFILES)})")
    data = source.encode("utf-8", "surrogatepass") if isinstance(source, str) else source
    noted = Findings(path, limits) if findings is None else findings
    if len(data) > limits.message_bytes:
        noted.add("SSS110", "message", f"the message has {len(data)} bytes, more than the limit message_bytes "
                                       f"({limits.message_bytes})")
        raise RejectedError(list(noted))
    carried = cut(data, limits)
    if carried is not None:
        data = carried[0]
    root = parse_tree(data, findings=noted, repairs=False, limits=limits)
    if b"xmlns" in data or b"\0" in data:       # in an encoding of ASCII letters no name has a namespace without it
        _unqualify(root)
    content = None if carried is None else carried[1]
    return _Reader(noted, policy or PROFILES[profile], limits, content).envelope(root)


def status_of(findings: Findings, others: Findings | None = None) -> Status:
    """What the sender of a message is answered about what was not understood in it (section 9.0 of the job object):
    710 where it rejects, Warning 100 where it warns, with all names in the Message; else 000.

    others: findings of the job objects that the message carries.
    """
    all_found = [*findings, *(others or ())]
    rejecting = [f for f in all_found if f.rejects]
    chosen = rejecting or [f for f in all_found if f.kind in ("unknown", "dropped")]
    if not chosen:
        return Status.of("000")
    names = ", ".join(dict.fromkeys(escape(f.subject, 80) for f in chosen if f.subject))
    messages = "; ".join(dict.fromkeys(escape(f.message, 200) for f in chosen[:5]))
    return Status.of("710" if rejecting else "100", f"not understood: {names or 'the message'} ({messages})")


def _unqualify(root: Any) -> None:
    """Take the namespace of SSSRMAP from all names that have it."""
    prefix = f"{{{NAMESPACE}}}"
    qualified = [e for e in root.iter(f"{prefix}*")]
    for element in qualified:
        element.tag = element.tag[len(prefix):]
    if qualified:
        etree.cleanup_namespaces(root)


class _Reader:
    """Turns elements into parts of a message, and tells what it does not understand."""

    def __init__(self, findings: Findings, policy: Policy, limits: Limits, content: str | None = None) -> None:
        self.findings, self.policy, self.limits = findings, policy, limits
        self.content = content      # of Data, where it is not in the tree

    def tell(self, rule: str, element: Any, subject: str, message: str) -> None:
        """Record a finding about an element."""
        self.findings.add(rule, subject, message, policy=self.policy, line=element.sourceline or 0)

    def envelope(self, root: Any) -> Envelope:
        """The Envelope of the root: any name that ends so is taken, as Gold does."""
        if not _name(root).endswith("Envelope"):
            raise MessageError("242", f"The root element is {escape(_name(root), 60)} but should be Envelope.")
        bodies = root.findall("Body")
        if not bodies:
            encrypted = root.find("EncryptedData") is not None
            raise MessageError("434" if encrypted else "242", "Encrypted messages are not taken." if encrypted else
                               "The Envelope has no Body.")
        for child in root:
            if child is not bodies[0] and child.tag != "Signature":
                self.tell("SSS301" if child.tag != "Body" else "SSS304", child, _name(child),
                          f"{_name(child)} is not read where it stands in Envelope")
        for name, _ in root.items():
            if name not in _ON_ENVELOPE:
                self.tell("SSS302", root, name, f"Envelope has no attribute {name}")
        signature = root.find("Signature")
        return Envelope(self.body(bodies[0]), None if signature is None else self.signature(signature),
                        tuple(root.items()))

    def body(self, body: Any) -> Request | Response | Foreign | None:
        """The first thing in a Body; nobody does a second one."""
        if not len(body):
            return None
        for child in body[1:]:
            self.tell("SSS304", child, _name(child), f"a second element in Body, {_name(child)}, is not read")
        first = body[0]
        if first.tag == "Request":
            return self.request(first, body)
        if first.tag == "Response":
            return Response(self.parts(first, _OF_RESPONSE), **self.values(first, Response))
        self.tell("SSS301", first, _name(first), f"Body holds {_name(first)}, which is neither Request nor Response")
        return Foreign(form_of(first))

    def request(self, element: Any, body: Any) -> Request:
        """A Request, with what an older form says as attributes: the object here, actor and chunking on Body."""
        stated = Policy.of(element.get("awarenessPolicy", ""))
        self.policy = stated or self.policy
        older = dict(element.items())
        name = older.pop("object", None)
        for attribute, value in body.items():
            if attribute in ("actor", "chunking"):
                older.setdefault(attribute, value)
            else:
                self.tell("SSS302", body, attribute, f"Body has no attribute {attribute}")
        if name is not None:
            self.findings.add("SSS306", "object", "object as an attribute of Request read as Object",
                              line=element.sourceline or 0)
        parts = self.parts(element, _OF_REQUEST)
        return Request(parts=parts if name is None else (Object(name), *parts),
                       **self.values(element, Request, older))

    def parts(self, element: Any, kinds: dict[str, type[Any]]) -> tuple[Part, ...]:
        """The parts of a Request or Response."""
        if len(element) > self.limits.conditions:
            self.findings.add("SSS110", element.tag, f"{element.tag} has {len(element)} parts, more than the limit "
                                                     f"conditions ({self.limits.conditions})")
            raise RejectedError(list(self.findings))
        return tuple(self.part(child, kinds) for child in element)

    def part(self, element: Any, kinds: dict[str, type[Any]]) -> Part:
        """One part."""
        kind = kinds.get(element.tag)
        if kind is None:
            self.tell("SSS301", element, _name(element), f"{element.getparent().tag} has no element {_name(element)}")
            return Foreign(form_of(element))
        if kind is Data:
            content = _content(element) if self.content is None else self.content
            return Data(content, **self.values(element, Data))
        if kind is Status:
            return self.status(element)
        for child in element:
            self.tell("SSS301", child, _name(child), f"{element.tag} has no element {_name(child)}")
        text = element.text or ""
        if kind is Count:
            return self.count(element, text)
        values = self.values(element, kind)
        if kind is Object:
            return Object(text.strip(), **values)
        if kind is not File and not values.get("name"):
            self.tell("SSS208", element, "name", f"{element.tag} has no name")
        values.setdefault("id" if kind is File else "name", "")
        if kind is not Get:
            values["text" if kind is File else "value"] = text
        part: Part = kind(**values)
        return part

    def count(self, element: Any, text: str) -> Part:
        """A Count; a part that is not understood where it is no number."""
        self.values(element, Count)
        value = _value(text, "whole")
        if value is not None:
            return Count(value)
        self.tell("SSS201", element, "Count", f"Count is {escape(text, 40)!r}, which is no whole number")
        return Foreign(form_of(element))

    def status(self, element: Any) -> Status:
        """A Status. What else stands in it is kept: the message format lets it."""
        own = {child.tag: child.text or "" for child in reversed(element) if child.tag in ("Value", "Code", "Message")}
        return Status(own.get("Value"), own.get("Code"), own.get("Message"),
                      tuple(Foreign(form_of(c)) for c in element if c.tag not in own))

    def signature(self, element: Any) -> Signature:
        """A Signature, as it stands."""
        digest, value, token = (element.find(name) for name in ("DigestValue", "SignatureValue", "SecurityToken"))
        texts = [None if e is None else e.text or "" for e in (digest, value)]
        methods = [None if e is None else e.get("method") for e in (digest, value)]
        return Signature(texts[0], texts[1],
                         None if token is None else Token(text=token.text or "", **self.values(token, Token)),
                         methods[0], methods[1])

    def values(self, element: Any, kind: type[Any], attributes: dict[str, str] | None = None) -> dict[str, Any]:
        """The attributes of an element by their names in Python; those that are not understood in ``extra``."""
        rows = {xml: (python, type_) for xml, python, type_ in getattr(kind, "ATTRIBUTES", ())}
        values: dict[str, Any] = {}
        extra: list[tuple[str, str]] = []
        for name, text in (dict(element.items()) if attributes is None else attributes).items():
            row = rows.get(name)
            value = None if row is None else text if row[1] == "text" else _value(text, row[1])
            if row is None or value is None:
                extra.append((name, text))
                self.tell("SSS302" if row is None else "SSS207", element, name,
                          f"{element.tag} has no attribute {name}" if row is None else
                          f"{name} of {element.tag} is {escape(text, 40)!r}, which is no {row[1]}")
                continue
            words_known = _KNOWN.get((kind.__name__, name))
            if words_known is not None and text not in words_known:
                self.tell("SSS203", element, name,
                          f"{name} of {element.tag} is {escape(text, 40)!r} (known: {', '.join(words_known)})")
            values[row[0]] = value
        return values | ({"extra": tuple(extra)} if extra else {})


def _value(text: str, kind: str) -> int | bool | None:
    """A whole number, or True or False in any case; None for what is neither."""
    if kind == "truth":
        return _TRUTHS.get(text.strip().lower())
    digits = text.strip()
    return int(digits) if _WHOLE.fullmatch(digits) else None


def _content(element: Any) -> str:
    """What stands in Data, as XML without what surrounds it."""
    pieces = [escaped(element.text or "")]
    for child in element:
        pieces.append(form_of(child))
        pieces.append(escaped(child.tail or ""))
    return "".join(pieces)


def _name(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]
