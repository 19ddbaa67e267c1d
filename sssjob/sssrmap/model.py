"""The messages of SSSRMAP as values: an ``Envelope`` with a ``Request`` or a ``Response`` and what these are made of.

Each class names the attributes of its element once, in ``ATTRIBUTES`` (XML name, name in Python, type, in the order of
writing); reader and writer follow from it. The parts of a message keep their order, because order is data
here: conditions are joined in it. What is not understood is kept (``extra`` attributes, ``Foreign`` elements).
Source: SSSRMAP message format 3.0.4 and the schema ``sssrmap3.xsd`` that Gold ships.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, TypeVar

from sssjob.document.element import Raw
from sssjob.document.model import Document
from sssjob.errors import SSSJobError
from sssjob.findings import Policy
from sssjob.limits import LIMITS, Limits
from sssjob.sssrmap._carried import content_of
from sssjob.sssrmap.statuses import outcome_of

__all__ = ["ACTIONS", "CONJUNCTIONS", "GET_OPS", "SAFE", "SET_OPS", "WHERE_OPS", "Count", "Data", "Envelope", "File",
           "Foreign", "Get", "MessageError", "Object", "Option", "Part", "Request", "Response", "Set", "Signature",
           "Status", "Token", "Where"]

Attributes = tuple[tuple[str, str], ...]
#: XML name, name in Python, type of the value.
Row = tuple[str, str, Literal["text", "whole", "truth"]]
P = TypeVar("P")

_OBJECT: Final = re.compile(r"<(JobGroup|Job)[\s>]")
GET_OPS: Final = ("Sort", "Tros", "Count", "Sum", "Average", "Max", "Min", "GroupBy")
SET_OPS: Final = ("Assign", "Inc", "Dec")
WHERE_OPS: Final = ("EQ", "NE", "LT", "LE", "GT", "GE", "Match")
CONJUNCTIONS: Final = ("And", "Or", "AndNot", "OrNot")
ACTIONS: Final = ("Query", "Submit", "Create", "Modify", "Delete", "Undelete", "Start", "Signal", "Cancel", "Suspend",
                  "Resume", "Checkpoint", "Requeue", "Quote", "Reserve", "Charge", "Refund", "Balance", "Deposit",
                  "Withdraw", "Transfer")
#: Actions that change nothing.
SAFE: Final = ("Query", "Balance")


class MessageError(SSSJobError, ValueError):
    """A message that cannot be taken, as the Status that its sender is answered. code: three digits."""

    def __init__(self, code: str, message: str) -> None:
        self.code, self.message = code, message
        super().__init__(code, message)

    def __str__(self) -> str:
        return f"{self.message} (SSSRMAP status {self.code})"

    @property
    def status(self) -> Status:
        """The Status for the Response."""
        return Status.of(self.code, self.message)


@dataclass(frozen=True, slots=True)
class Foreign:
    """An element that is not understood. markup: as it stood, as XML."""

    markup: str


@dataclass(frozen=True, slots=True)
class Object:
    """The kind of object that a request is about: Job, Node, Account ... alias: what Get and Where call it."""

    ATTRIBUTES: ClassVar[tuple[Row, ...]] = (("join", "join", "text"), ("alias", "alias", "text"))
    name: str
    join: str | None = None
    alias: str | None = None
    extra: Attributes = ()


@dataclass(frozen=True, slots=True)
class Get:
    """A property that is asked for. name: a name or path; op: one of GET_OPS; units: of the answer; alias: the name of
    the answer's element."""

    ATTRIBUTES: ClassVar[tuple[Row, ...]] = (
        ("object", "object", "text"), ("name", "name", "text"), ("op", "op", "text"), ("units", "units", "text"),
        ("alias", "alias", "text"))
    name: str
    op: str | None = None
    object: str | None = None
    units: str | None = None
    alias: str | None = None
    extra: Attributes = ()


@dataclass(frozen=True, slots=True)
class Set:
    """A property that is given a value. op: one of SET_OPS (None: Assign)."""

    ATTRIBUTES: ClassVar[tuple[Row, ...]] = (("name", "name", "text"), ("op", "op", "text"), ("units", "units", "text"))
    name: str
    value: str = ""
    op: str | None = None
    units: str | None = None
    extra: Attributes = ()


@dataclass(frozen=True, slots=True)
class Where:
    """A condition. op: one of WHERE_OPS (None: EQ); conj: one of CONJUNCTIONS (None: And), to the condition before;
    group: brackets that open before it (positive) or close after it (negative); subject: the other object whose
    property ``value`` names, in a join; units: of the value."""

    ATTRIBUTES: ClassVar[tuple[Row, ...]] = (
        ("object", "object", "text"), ("name", "name", "text"), ("op", "op", "text"), ("conj", "conj", "text"),
        ("group", "group", "whole"), ("subject", "subject", "text"), ("units", "units", "text"))
    name: str
    value: str = ""
    op: str | None = None
    conj: str | None = None
    group: int | None = None
    object: str | None = None
    subject: str | None = None
    units: str | None = None
    extra: Attributes = ()


@dataclass(frozen=True, slots=True)
class Option:
    """Something that the action is told beside. op: Not, or None."""

    ATTRIBUTES: ClassVar[tuple[Row, ...]] = (("name", "name", "text"), ("op", "op", "text"), ("conj", "conj", "text"))
    name: str
    value: str = ""
    op: str | None = None
    conj: str | None = None
    extra: Attributes = ()


@dataclass(frozen=True, slots=True)
class Data:
    """What a message carries: job objects, or objects of the other side. content: XML (of type xml, the default), or
    escaped text; without white space between the objects, which old clients cannot read."""

    ATTRIBUTES: ClassVar[tuple[Row, ...]] = (("name", "name", "text"), ("type", "type", "text"))
    content: str = ""
    name: str | None = None
    type: str | None = None
    extra: Attributes = ()

    @classmethod
    def of(cls, document: Document, profile: str = "3.1") -> Data:
        """The jobs of a document, with the names of a profile. Raises RejectedError for what it has no name for."""
        return cls(content_of(document, profile))

    def document(self, *, profile: str = "liberal", policy: Policy | None = None, limits: Limits | None = None
                 ) -> Document:
        """The job objects as a document; what is not understood is in its findings. Raises RejectedError."""
        from sssjob.xml.reader import read_document

        alone = _is_one_object(self.content)
        document = read_document(self.content if alone else f"<Data>{self.content}</Data>", profile=profile,
                                 policy=policy, limits=limits or LIMITS)
        if alone:
            document.root = Raw("Data", children=[document.root], line=1)
        return document


def _is_one_object(content: str) -> bool:
    """Whether the content of Data is a Job or JobGroup and nothing else, which is a document of its own: that is read
    without a tree. Where the text alone does not tell, it is not."""
    start = _OBJECT.match(content)
    if start is None or not content.endswith(f"</{start[1]}>"):
        return False
    return content.count(f"</{start[1]}>") == 1 == len(re.findall(rf"<{start[1]}[\s/>]", content))


@dataclass(frozen=True, slots=True)
class File:
    """A File beside the objects; ``#id`` in Executable names it."""

    ATTRIBUTES: ClassVar[tuple[Row, ...]] = tuple(
        (name, name, "text") for name in ("id", "name", "compressed", "encoded", "owner", "mode"))
    id: str
    text: str = ""
    name: str | None = None
    compressed: str | None = None
    encoded: str | None = None
    owner: str | None = None
    mode: str | None = None
    extra: Attributes = ()


@dataclass(frozen=True, slots=True)
class Count:
    """A number of objects; in answers about money the amount."""

    value: int


@dataclass(frozen=True, slots=True)
class Status:
    """How a request ended. value: Success, Warning or Failure; code: three digits. None: was not said."""

    value: str | None = None
    code: str | None = None
    message: str | None = None
    foreign: tuple[Foreign, ...] = ()

    @classmethod
    def of(cls, code: str, message: str | None = None) -> Status:
        """The Status of a code, with the Value that belongs to it."""
        return cls(outcome_of(code), code, message)

    @property
    def succeeded(self) -> bool:
        """Whether what was asked was done: old clients go by the Value, and take none for a failure."""
        return self.value in ("Success", "Warning")

    @property
    def exit_status(self) -> int:
        """What Gold's clients exit with: the code divided by ten."""
        return int(self.code or "999") // 10


Part = Object | Get | Set | Where | Option | Data | File | Count | Status | Foreign


class _Parts:
    """What Request and Response have in common: parts in their order."""

    __slots__ = ()
    parts: tuple[Part, ...]

    def all(self, kind: type[P]) -> tuple[P, ...]:
        """The parts of a kind, in their order."""
        return tuple(part for part in self.parts if isinstance(part, kind))

    @property
    def count(self) -> int | None:
        """The number that Count states, or None."""
        return next((part.value for part in self.parts if isinstance(part, Count)), None)

    @property
    def data(self) -> Data | None:
        """The first Data, or None."""
        return next((part for part in self.parts if isinstance(part, Data)), None)


@dataclass(frozen=True, slots=True)
class Request(_Parts):
    """What is asked. action: Query, Submit ...; actor: who asks; chunking: the answer may come in pieces, of
    ``chunk_size`` objects; policy: the awarenessPolicy that holds for the request."""

    ATTRIBUTES: ClassVar[tuple[Row, ...]] = (
        ("id", "id", "text"), ("action", "action", "text"), ("actor", "actor", "text"),
        ("chunking", "chunking", "truth"), ("chunkSize", "chunk_size", "whole"), ("awarenessPolicy", "policy", "text"))
    action: str | None = None
    actor: str | None = None
    parts: tuple[Part, ...] = ()
    id: str | None = None
    chunking: bool | None = None
    chunk_size: int | None = None
    policy: str | None = None
    extra: Attributes = ()

    @property
    def objects(self) -> tuple[Object, ...]:
        """The kinds of objects; several are joined."""
        return self.all(Object)

    def option(self, name: str) -> str | None:
        """The value of an Option, or None."""
        return next((part.value for part in self.parts if isinstance(part, Option) and part.name == name), None)

    def refusal(self) -> Status | None:
        """The Status of a request that lacks what every request has (311, 312) or has what its action does not take
        (318, 740); None: it is complete."""
        if not self.action or not self.actor:
            return Status.of("312", f"No {'actor' if self.action else 'action'} specified in the request.")
        if not self.objects:
            return Status.of("311", "No object specified in the request.")
        if self.action != "Query" and self.all(Get):
            return Status.of("318", "Get is for the action Query only")
        if self.action not in ("Create", "Modify") and self.all(Set):
            return Status.of("318", "Set is for the actions Create and Modify only")
        if self.action != "Query" and len(self.objects) > 1:
            return Status.of("740", "Several objects are for the action Query only")
        return None


@dataclass(frozen=True, slots=True)
class Response(_Parts):
    """What is answered. chunk_num counts the pieces of an answer from 1; chunk_max: 0 on the last one, -1 while more
    follow, else their number; both None: the answer is whole."""

    ATTRIBUTES: ClassVar[tuple[Row, ...]] = (
        ("id", "id", "text"), ("chunkNum", "chunk_num", "whole"), ("chunkMax", "chunk_max", "whole"),
        ("actor", "actor", "text"))
    parts: tuple[Part, ...] = ()
    actor: str | None = None
    chunk_num: int | None = None
    chunk_max: int | None = None
    id: str | None = None
    extra: Attributes = ()

    @property
    def status(self) -> Status:
        """The Status. Raises MessageError (321) where there is none, or no Code in it."""
        stated = next((part for part in self.parts if isinstance(part, Status)), None)
        if stated is None or stated.code is None:
            raise MessageError("321", f"the response has no {'Status' if stated is None else 'Code in its Status'}")
        return stated

    @property
    def last(self) -> bool:
        """Whether no piece of the answer follows."""
        return self.chunk_max in (None, 0) or self.chunk_max == self.chunk_num


@dataclass(frozen=True, slots=True)
class Token:
    """SecurityToken: type Symmetric (a shared key) or Password (of the actor ``name``)."""

    ATTRIBUTES: ClassVar[tuple[Row, ...]] = (("type", "type", "text"), ("name", "name", "text"))
    type: str | None = None
    name: str | None = None
    text: str = ""
    extra: Attributes = ()


@dataclass(frozen=True, slots=True)
class Signature:
    """DigestValue and SignatureValue in base64, as they stand; None: absent. The methods are algorithms' names."""

    digest: str | None = None
    value: str | None = None
    token: Token | None = None
    digest_method: str | None = None
    value_method: str | None = None


@dataclass(frozen=True, slots=True)
class Envelope:
    """A message. body: a Request, a Response, or what else stands there (None: nothing). attributes: of Envelope."""

    body: Request | Response | Foreign | None
    signature: Signature | None = None
    attributes: Attributes = ()

    @property
    def request(self) -> Request:
        """The Request. Raises MessageError (720) where there is none."""
        if not isinstance(self.body, Request):
            raise MessageError("720", "the Body has no Request")
        return self.body

    @property
    def response(self) -> Response:
        """The Response. Raises MessageError (321) where there is none."""
        if not isinstance(self.body, Response):
            raise MessageError("321", "the Body has no Response")
        return self.body
