"""Signatures of messages: made as old peers make them, and verified over what was read.

DigestValue is the digest of Body, SignatureValue its HMAC with a key that both sides have. Two hashes: SHA-1, which is
the only one of SSSRMAP 3.0, and SHA-256, of the same form. Which one was used is told by the length of the digest, for
old peers do not look at ``method``.

What is digested is Body, in one of two forms: the octets as they came, which Maui signs and verifies; or Body written
again as libxml2 writes it, which Gold does. The place of Body in the octets is told by a parser, never searched for.
Source: SSSRMAP wire protocol 3.0.4, "DigestValue, SignatureValue" and "SecurityToken"; recordings of Gold 2.2.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from xml.parsers import expat

from lxml import etree

from sssjob.errors import UsageError
from sssjob.findings import escape
from sssjob.sssrmap._carried import form_of
from sssjob.sssrmap.model import Envelope, MessageError, Request, Signature, Token
from sssjob.sssrmap.writer import body_of

__all__ = ["HASHES", "Keys", "sign", "verify"]

#: Name of a hash, as ``method`` says it -> name in hashlib.
HASHES: Final = {"SHA1": "sha1", "SHA256": "sha256"}
_OF_SIZE: Final = {hashlib.new(name).digest_size: method for method, name in HASHES.items()}
_NOBODY: Final = secrets.token_bytes(32)        # the key of actors without a password: nobody has it


@dataclass(frozen=True, slots=True)
class Keys:
    """Who may sign. shared: the key of the token type Symmetric (None: nobody has it); passwords: by actor, of the
    token type Password; hashes: those of HASHES that are taken."""

    shared: bytes | None = field(default=None, repr=False)
    passwords: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    hashes: Collection[str] = ("SHA256",)


def sign(message: Envelope, key: bytes, *, method: str = "SHA256", actor: str | None = None) -> Envelope:
    """The message with its Signature. actor: whose password the key is; None: the key is shared.

    With SHA1 letters of Latin-1 count as one octet each, as Gold has it; beyond Latin-1 Gold fails.
    Raises UsageError for a method that is not of HASHES.
    """
    if method not in HASHES:
        raise UsageError(f"unknown method {method!r} of signatures (known: {', '.join(HASHES)})")
    body = body_of(message)
    octets = body.encode("utf-8")
    if method == "SHA1":
        octets = next(_encoded(body, "latin-1", "utf-8"))
    digest = hashlib.new(HASHES[method], octets).digest()
    token = Token("Symmetric") if actor is None else Token("Password", actor)
    stated = None if method == "SHA1" else method       # as old clients send it
    return replace(message, signature=Signature(
        _base64(digest), _base64(_mac(key, digest, method)), token, stated, stated))


def verify(data: bytes, message: Envelope, keys: Keys) -> str:
    """Raise MessageError (424) unless a message is signed by one of the keys; gives the type of its token.

    data: the octets that the message was read from.
    """
    signature = message.signature
    if signature is None:
        raise _refused("Message not signed -- No signature found")
    if signature.digest is None or signature.value is None:
        raise _refused(f"No {'digest' if signature.digest is None else 'signature'} value found")
    digest = _octets(signature.digest)
    method = _OF_SIZE.get(len(digest))
    if method is None or not any(hmac.compare_digest(digest, hashlib.new(HASHES[method], octets).digest())
                                 for octets in _signed(data)):
        raise _refused("Incoming digest does not match calculated digest")
    if method not in keys.hashes:
        raise _refused(f"Signatures with {method} are not taken, {' and '.join(keys.hashes)} is")
    type_, key = _key(message, signature, keys)
    if not hmac.compare_digest(_octets(signature.value), _mac(key, digest, method)):
        raise _refused("Incoming MAC does not match calculated MAC")
    return type_


def _key(message: Envelope, signature: Signature, keys: Keys) -> tuple[str, bytes]:
    """The type of the token and its key. An actor without a password has a key that nobody knows."""
    token = signature.token or Token("Symmetric")
    if token.type == "Symmetric":
        return "Symmetric", _NOBODY if keys.shared is None else keys.shared
    if token.type != "Password":
        raise _refused(f"Unsupported security token type ({escape(token.type or '', 40)})")
    if not token.name:
        raise _refused("Token name must be specified in Password authentication")
    if not isinstance(message.body, Request) or token.name != message.body.actor:
        raise _refused("Token name must match request actor in Password authentication")
    return "Password", keys.passwords.get(token.name, _NOBODY)


def _signed(data: bytes) -> Iterator[bytes]:
    """What may have been digested: Body as it came, and in the form of libxml2, whose letters Gold has in Latin-1."""
    start, end = _Place(data).body
    yield data[start:end]
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, strip_cdata=False)
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError:
        raise _refused("Message is not well-formed") from None
    yield from _encoded(form_of(next(child for child in root if _is(child, "Body"))), "utf-8", "latin-1")


def _is(element: Any, name: str) -> bool:
    return isinstance(element.tag, str) and etree.QName(element).localname == name


class _Place:
    """Finds Body in the octets of a message, with a second parser; body: where it begins and ends.

    A message with a second Body or Signature, a DOCTYPE, or another encoding than UTF-8 has no signature that counts:
    what is signed and what is read could differ.
    """

    def __init__(self, data: bytes) -> None:
        self.body = (0, 0)
        self._depth = 0
        self._seen: set[str] = set()
        self._parser = parser = expat.ParserCreate("UTF-8")
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.StartDoctypeDeclHandler = self._doctype
        parser.XmlDeclHandler = self._declaration
        self._data = data
        if b"\0" in data[:4] or data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise _refused("Message is not in UTF-8")
        try:
            parser.Parse(data, True)
        except expat.ExpatError:
            raise _refused("Message is not well-formed UTF-8") from None
        if not self.body[1]:
            raise _refused("Message body cannot be empty")

    def _start(self, name: str, attributes: object) -> None:
        self._depth += 1
        local = name.rpartition(":")[2]
        if self._depth == 2 and local in ("Body", "Signature"):
            if local in self._seen:
                raise _refused(f"Message has a second {local}")
            self._seen.add(local)
            if local == "Body":
                self.body = (self._parser.CurrentByteIndex, len(self._data))

    def _end(self, name: str) -> None:
        self._depth -= 1
        if self._depth == 1 and name.rpartition(":")[2] == "Body":
            at = self._parser.CurrentByteIndex      # of its end tag; where it has none, behind the element
            tagged = self._data.startswith(b"</%b" % name.encode(), at)
            self.body = (self.body[0], self._data.index(b">", at) + 1 if tagged else at)

    def _doctype(self, *_: object) -> None:
        raise _refused("Message has a document type declaration")

    def _declaration(self, version: str, encoding: str | None, standalone: int) -> None:
        if (encoding or "utf-8").lower() not in ("utf-8", "utf8", "us-ascii", "ascii"):
            raise _refused("Message is not in UTF-8")


def _encoded(text: str, *encodings: str) -> Iterator[bytes]:
    """The octets of a text in those of some encodings that have all of its letters."""
    for encoding in encodings:
        try:
            yield text.encode(encoding)
        except UnicodeEncodeError:
            continue


def _mac(key: bytes, digest: bytes, method: str) -> bytes:
    return hmac.new(key, digest, HASHES[method]).digest()


def _base64(octets: bytes) -> str:
    return base64.b64encode(octets).decode("ascii")


def _octets(text: str) -> bytes:
    """What a text in base64 holds; nothing where it is none: no white space is taken, as Gold takes none."""
    try:
        return base64.b64decode(text.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        return b""


def _refused(reason: str) -> MessageError:
    return MessageError("424", f"Failed authenticating message: ({reason}).")
