"""Detached signatures of documents: who holds a key says what a document says, and when.

What is signed is the digest of the canonical form, so that every document that says the same verifies: indented
otherwise, with names of an older release, as JSON. The key is one that both sides have (HMAC with SHA-256); whoever can
verify can sign. The signature is a JSON object::

    {"type": "sssjob-signature", "version": 1, "digest": "...", "signer": "amy", "time": 1795256003, "value": "..."}
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sssjob.document.element import Container
from sssjob.document.model import Document
from sssjob.errors import SSSJobError, UsageError
from sssjob.findings import escape
from sssjob.limits import LIMITS, Limits
from sssjob.xml._faults import members_once, parse_fault
from sssjob.xml.canonical import digest

__all__ = ["DocumentSignature", "SignatureError", "read_signature", "sign_document", "verify_document"]

_TYPE: Final = "sssjob-signature"
_MEMBERS: Final[Mapping[str, type]] = {"type": str, "version": int, "digest": str, "signer": str, "time": int,
                                       "value": str}
_MOST: Final = 64 << 10         # octets of a signature


class SignatureError(SSSJobError, ValueError):
    """A signature that is not one of a document and a key."""


@dataclass(frozen=True, slots=True)
class DocumentSignature:
    """A signature. digest: of the canonical form, in hexadecimal; time: epoch seconds; value: in hexadecimal."""

    digest: str
    signer: str
    time: int
    value: str = ""

    def record(self) -> dict[str, Any]:
        """As a JSON object."""
        return {"type": _TYPE, "version": 1, "digest": self.digest, "signer": self.signer, "time": self.time,
                "value": self.value}

    def _signed(self, key: bytes) -> str:
        stated = {name: value for name, value in self.record().items() if name != "value"}
        octets = json.dumps(stated, sort_keys=True, separators=(",", ":")).encode("ascii")
        return hmac.new(key, octets, hashlib.sha256).hexdigest()


def sign_document(document: Document | Container, key: bytes, *, signer: str, time: int) -> DocumentSignature:
    """The signature of a document. signer: who signs, as it is shown to who verifies; time: epoch seconds. Raises
    UsageError for a signer that is nobody, or too long to be read again."""
    if not signer.strip() or len(signer) > LIMITS.identifier:
        raise UsageError(f"{escape(signer)!r} is no name of a signer")
    unsigned = DocumentSignature(digest(document), signer, time)
    return DocumentSignature(unsigned.digest, signer, time, unsigned._signed(key))


def read_signature(data: bytes, path: str = "-", limits: Limits = LIMITS) -> DocumentSignature:
    """The signature of a JSON text. Raises UsageError for what is none."""
    if len(data) > _MOST:
        raise UsageError(f"{path}: longer than {_MOST} octets, and no signature")
    try:
        members = json.loads(data.decode("utf-8"), object_pairs_hook=members_once)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is no signature: {escape(parse_fault(error), 100)}") from None
    if not isinstance(members, dict) or members.keys() != _MEMBERS.keys() or members["type"] != _TYPE or members[
            "version"] != 1 or not all(type(members[name]) is type_ for name, type_ in _MEMBERS.items()):
        raise UsageError(f"{path} is no signature of version 1 (members: {', '.join(_MEMBERS)})")
    if not 0 <= members["time"] < limits.moment or len(members["signer"]) > limits.identifier:
        raise UsageError(f"{path}: its time or its signer is beyond a limit")
    return DocumentSignature(members["digest"], members["signer"], members["time"], members["value"])


def verify_document(document: Document | Container, signature: DocumentSignature, key: bytes) -> None:
    """Raise SignatureError unless a signature is of this key and of a document that says the same."""
    if not hmac.compare_digest(signature.value.encode("utf-8", "surrogatepass"), signature._signed(key).encode()):
        raise SignatureError("the signature is of another key, or was changed")
    if signature.digest != digest(document):
        raise SignatureError(f"the document says something else than what {escape(signature.signer, 60)} signed")
