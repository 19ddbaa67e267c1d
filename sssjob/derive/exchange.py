"""What SSSRMAP demands, for ``docs/reference/conformance.md``.

The published text of the protocol gives no more than its table of contents today. A sentence here is what the schema
that was shipped with Gold says, or what several implementations of it send and take: Gold, Maui, Slurm's former client
and the C library. MUST is what they fail without, SHOULD what one of them does without.
"""

from __future__ import annotations

from typing import Final

from sssjob.derive.statements import Statement, numbered

__all__ = ["EXCHANGE"]

_ANSWERING: Final = "sssjob/sssrmap/answering.py::answer"
_BANK: Final = "sssjob/serve/bank.py::answer"
_FACE: Final = "sssjob/serve/rmap.py::Exchange"
_FRAMES: Final = "sssjob/sssrmap/framing.py::Receiver"
_MESSAGE: Final = "sssjob/sssrmap/reader.py::read_message"
_SIGNING: Final = "sssjob/sssrmap/signing.py::verify"
_WRITER: Final = "sssjob/sssrmap/writer.py::write_message"

_TEXT: Final = {
    "SSSRMAP Envelope": (
        ("MUST", "names are read with the namespace and without it", _MESSAGE),
        ("MUST", "names are written without a namespace, empty elements with an end tag", _WRITER),
        ("MUST", "a root that is no Envelope, and an Envelope without a Body, are refused (242)", _MESSAGE),
        ("SHOULD", "EncryptedData, whose cipher is not fit for use any more, is refused (434)", _MESSAGE),
    ),
    "SSSRMAP Request": (
        ("MUST", "a Request names an object (311), an action and an actor (312)", "sssjob/sssrmap/model.py::Request"),
        ("MUST", "what is not understood is rejected (710), warned of (100) or passed over, as awarenessPolicy says",
         "sssjob/sssrmap/reader.py::status_of"),
        ("MUST", "a File beside Data is what a job there names by #Id", _FACE),
        ("SHOULD", "jobs in Data have the names of the release that the receiver knows",
         "sssjob/sssrmap/model.py::Data"),
    ),
    "SSSRMAP Response": (
        ("MUST", "a Response without Status or Code is no answer (321)", _MESSAGE),
        ("MUST", "Count is the number of objects, or the amount of money", _ANSWERING),
        ("MUST", "an answer comes in pieces where chunking is asked for, the last of which says so", _ANSWERING),
        ("MUST", "every code has its meaning", "sssjob/sssrmap/statuses.py"),
    ),
    "SSSRMAP Conditions": (
        ("MUST", "conj and group mean what they mean to Gold", "sssjob/sssrmap/conditions.py"),
        ("MUST", "Get selects, sorts, counts and groups", _ANSWERING),
        ("MUST", "a name alone is the property anywhere below the object, a path leads there", _ANSWERING),
        ("SHOULD", "an operator that is not known is an error, not equality", _ANSWERING),
        ("MAY", "objects are joined", "sssjob/sssrmap/joining.py"),
    ),
    "SSSRMAP Actions": (
        ("MUST", "Job: Submit", _FACE), ("MUST", "Job: Cancel", _FACE), ("MUST", "Job: Query", _FACE),
        ("MUST", "Job: Modify", _FACE), ("MUST", "Job: Start and Requeue", _FACE),
        ("MUST", "Job: Suspend, Resume and Signal", _FACE),
        ("MUST", "Job: Quote, Reserve, Charge and Refund; Account: Deposit, Withdraw, Transfer and Balance", _BANK),
        ("SHOULD", "an action that is not done is refused by name (313), and one of another object (740)", _FACE),
    ),
    "SSSRMAP Wire": (
        ("MUST", "chunks are taken in each of the forms that clients send", _FRAMES),
        ("MUST", "the head of a reply is the one that old clients count", "sssjob/sssrmap/framing.py::framed_head"),
        ("MUST", "a frame is refused by the code and the status of HTTP that Gold gives", _FRAMES),
        ("SHOULD", "framing that can be read in two ways is refused", _FRAMES),
    ),
    "SSSRMAP Signature": (
        ("MUST", "the digest is that of Body in the form that Gold's library gives it, or of its octets", _SIGNING),
        ("MUST", "the value is the HMAC of the digest by the shared key, or by the password of the actor", _SIGNING),
        ("MUST", "everything that is wrong with a signature is 424", _SIGNING),
        ("SHOULD", "SHA-1 is taken only where that is allowed", _SIGNING),
    ),
}

EXCHANGE: Final[tuple[Statement, ...]] = tuple(
    statement for section, rows in _TEXT.items() for statement in numbered(section, rows))
