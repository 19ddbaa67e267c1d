"""What a translator is: a name, and text to document and back. It opens no file and starts no process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from sssjob.findings import Findings, Policy
from sssjob.limits import LIMITS, Limits
from sssjob.model import Document

__all__ = ["Kind", "ReadContext", "Translator", "WriteContext"]

Kind = Literal["document", "script", "spec", "record"]


@dataclass(slots=True)
class ReadContext:
    """What a reader is told: where the text comes from, how strictly to take it, and where findings go.

    policy: the outermost default of awarenessPolicy, None for the specification's Reject; options: those of the
    format, by name.
    """

    path: str = "-"
    findings: Findings = field(default_factory=Findings)
    profile: str = "liberal"
    policy: Policy | None = None
    limits: Limits = LIMITS
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class WriteContext:
    """What a writer is told: where findings go, the profile of names, the policy for what the target cannot say,
    and the options of the format, by name."""

    findings: Findings = field(default_factory=Findings)
    profile: str = "3.1"
    policy: Policy | None = None
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Translator:
    """A format: its name and title, the suffixes of its files, and the two functions.

    read(data, context) and write(document, context) put findings into ``context.findings``; a document's own
    findings are the same object after reading. One that a format does not offer raises UsageError.
    """

    name: str
    title: str
    kind: Kind
    read: Callable[[bytes, ReadContext], Document]
    write: Callable[[Document, WriteContext], str]
    suffixes: tuple[str, ...] = ()
