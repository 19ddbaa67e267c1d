"""What a translator is: a name, and text to document and back. It opens no file and starts no process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from sssjob.document.model import Document
from sssjob.findings import Findings, Policy
from sssjob.limits import LIMITS, Limits

if TYPE_CHECKING:
    from sssjob.conversion.site import Site
    from sssjob.translators.recognise import Fit, Sample
    from sssjob.translators.scripts.reading import Unremarkable
    from sssjob.validation.large import Large

__all__ = ["Kind", "ReadContext", "Translator", "WriteContext"]

Kind = Literal["document", "script", "spec", "record", "offer"]


@dataclass(slots=True)
class ReadContext:
    """What a reader is told: where the text comes from, how strictly to take it, and where findings go.

    policy: the outermost default of awarenessPolicy, None for the specification's Reject; options: those of the
    format, by name; site: what only the site knows, None where nobody said. remarks: only the findings and the options
    are wanted of a script, not its document, and this knows the options that nothing is to be said about. sample: the
    same text as it was recognised, which need not be parted again.
    """

    path: str = "-"
    findings: Findings = field(default_factory=Findings)
    profile: str = "liberal"
    policy: Policy | None = None
    limits: Limits = LIMITS
    options: Mapping[str, str] = field(default_factory=dict)
    site: Site | None = None
    remarks: Unremarkable | None = None
    sample: Sample | None = None


@dataclass(slots=True)
class WriteContext:
    """What a writer is told: where findings go, the profile of names, the policy for what the target cannot say,
    the options of the format, by name, what only the site knows, the ids that jobs got there (old -> new), and how the
    file will be called, without a suffix (empty: after the job)."""

    findings: Findings = field(default_factory=Findings)
    profile: str = "3.1"
    policy: Policy | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    site: Site | None = None
    ids: Mapping[str, str] = field(default_factory=dict)
    name: str = ""


@dataclass(frozen=True, slots=True)
class Translator:
    """A format: its name and title, the suffixes of its files, and the two functions.

    read(data, context) and write(document, context) put findings into ``context.findings``; a document's own
    findings are the same object after reading. One that a format does not offer raises UsageError.

    recognise(sample): what shows that a text is of the format, None where nothing does; without it ``--from auto``
    never finds the format. files(document, context): the files that one job takes, name -> text, where one text does
    not hold it; the first is what ``write`` gives. pieces(large, context): the text that ``write`` gives of a document
    that is read part by part, piece by piece; None: it takes the whole. marks: recognise is asked only of a text that
    has one of these in it; empty: of every text. one_job: a text holds one job, and ``write`` refuses several.
    """

    name: str
    title: str
    kind: Kind
    read: Callable[[bytes, ReadContext], Document]
    write: Callable[[Document, WriteContext], str]
    suffixes: tuple[str, ...] = ()
    recognise: Callable[[Sample], Fit | None] | None = None
    files: Callable[[Document, WriteContext], Mapping[str, str]] | None = None
    pieces: Callable[[Large, WriteContext], Iterator[str] | Iterator[bytes]] | None = None
    marks: tuple[str, ...] = ()
    one_job: bool = False
