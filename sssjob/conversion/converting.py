"""One conversion: the text of one format to the text of another, through the job object. The command line and the
processes that work on whole trees do the same thing here; no file is opened and nothing is printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from sssjob.errors import RejectedError, SSSJobError, UsageError
from sssjob.findings import Findings, Policy
from sssjob.limits import LIMITS
from sssjob.translators.base import ReadContext, Translator, WriteContext
from sssjob.translators.registry import get

if TYPE_CHECKING:
    from sssjob.conversion.site import Site
    from sssjob.document.model import Document
    from sssjob.translators.recognise import Sample
    from sssjob.validation.large import Large

__all__ = ["AUTO", "Conversion", "Options", "gate", "singles"]

#: The name of a source format that stands for the one that is recognised.
AUTO: Final = "auto"


def gate(document: Document, profile: str = "liberal") -> Findings:
    """What the checks of meaning find in a document that was read: where one of them rejects, nothing may be made of
    it."""
    from sssjob.validation import check

    findings = Findings(document.path)
    check(document, findings, profile)
    return findings


class Options:
    """The options of formats, which remember those that were asked for: all others do not exist."""

    def __init__(self, given: Mapping[str, str] | None = None) -> None:
        self.given = dict(given or {})
        self.asked: set[str] = set()

    def view(self, defaults: Mapping[str, str]) -> Mapping[str, str]:
        """The options as one format sees them. defaults: those of the site, which nobody has to ask for."""
        return _View(self, defaults)

    def bodies(self, *formats: Translator) -> None:
        """Take what is to become of bodies where one of the formats is of scripts, whether or not the body of this one
        has anything that asks for it. Raises UsageError for a word that is no mode."""
        if "body" in self.given and any(format.kind == "script" for format in formats):
            from sssjob.translators.scripts.body import mode_of

            try:
                mode_of(self.given["body"])
            except ValueError as error:
                raise UsageError(f"--option: {error}") from error
            self.asked.add("body")

    def check(self, *formats: str) -> None:
        """Refuse an option that no format has asked for."""
        for name in self.given:
            if name not in self.asked:
                raise UsageError(f"no option {name!r} of {' or '.join(dict.fromkeys(formats))}")


class _View(Mapping[str, str]):
    def __init__(self, options: Options, defaults: Mapping[str, str]) -> None:
        self.options, self.all = options, {**defaults, **options.given}

    def __getitem__(self, key: str) -> str:
        self.options.asked.add(key)
        return self.all[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.all)

    def __len__(self) -> int:
        return len(self.all)


@dataclass(slots=True)
class Conversion:
    """What a conversion is told; it can be sent to another process.

    source: a format, or ``auto``; policy: None leaves it to the document, all other formats carry over what they
    can; profile, to_profile: names to read and to write with; ids: of jobs, there -> here. site: of what is read, and
    of what is written unless ``to_site`` says which.
    """

    source: str
    target: str
    policy: Policy | None = None
    profile: str = "liberal"
    to_profile: str = "3.1"
    options: Options = field(default_factory=Options)
    site: Site | None = None
    ids: Mapping[str, str] = field(default_factory=dict)
    to_site: Site | None = None

    @property
    def destination(self) -> Site | None:
        """The site that the result is for."""
        return self.site if self.to_site is None else self.to_site

    @property
    def writer(self) -> Translator:
        """The format that is written."""
        return get(self.target)

    def reader(self, data: bytes | Sample, path: str) -> tuple[Translator, str]:
        """The format of a text and, where it was recognised, why. UsageError where none or several fit."""
        if self.source != AUTO:
            return get(self.source), ""
        from sssjob.translators.recognise import guess

        translator, fit = guess(data, path)
        return translator, fit.why

    def reading(self, reader: Translator, path: str, sample: Sample | None = None) -> ReadContext:
        """The context to read with. sample: the text, where it was recognised by it: it is not parted again."""
        if sample is not None and (self.source != AUTO or len(sample.data) > LIMITS.script_bytes):
            sample = None               # it was not looked at, or not at all of it
        return ReadContext(path, Findings(path), self.profile, self.policy, options=self._view(reader, self.site),
                           site=self.site, sample=sample)

    def read(self, reader: Translator, data: bytes, context: ReadContext) -> Document:
        """The document of a text, in the names of the site that it is for. Raises RejectedError."""
        document = reader.read(data, context)
        document.facts = reader.kind == "record"
        if reader.kind == "script" and reader.name == self.target and self.to_site is None:
            context.findings.drop("SSS504")     # what an option means to another manager, which nothing asks
        if self.destination is not None:
            self.destination.rename(document)
        return document

    def gate(self, reader: Translator, document: Document) -> Findings:
        """What the gate finds in a document that was read, which is not to be written where one of them rejects.
        Records pass: they are facts, which nobody is to carry out, and their reader looks at each on its own."""
        if reader.kind == "record":
            return Findings(document.path)
        findings = gate(document, self.profile)
        if reader.kind == "script":
            findings.drop("SSS411")         # jobs that a script waits for are elsewhere; the writer tells of their ids
        return findings

    def carrying(self, reader: Translator) -> Policy | None:
        """The policy to write with: only documents carry one of their own (decisions 13)."""
        return self.policy or (None if reader.kind == "document" else Policy.WARN)

    def writing(self, findings: Findings, policy: Policy | None, name: str = "") -> WriteContext:
        """The context to write with."""
        site = self.destination
        return WriteContext(findings, self.to_profile, policy, self._view(self.writer, site), site, self.ids, name)

    def _view(self, translator: Translator, site: Site | None) -> Mapping[str, str]:
        return self.options.view({} if site is None else site.defaults(translator.name, translator.kind))

    def text(self, document: Document, context: WriteContext) -> str:
        """The one text of a document. UsageError for an option that is wrong."""
        written = self._guarded(self.writer.write, document, context)
        assert isinstance(written, str)
        return written if written.endswith("\n") else written + "\n"

    def pieces(self, large: Large, context: WriteContext) -> Iterator[str] | Iterator[bytes] | None:
        """The text of a document that is read part by part, piece by piece; None where the format takes the whole."""
        from sssjob.translators.records.base import RecordTranslator, effective_jobs

        writer = self.writer
        pieces: Iterator[str] | Iterator[bytes] | None = None
        if writer.pieces is not None:
            pieces = self._guarded(writer.pieces, large, context)
        elif isinstance(writer, RecordTranslator) and (write := writer.blobs or writer.texts) is not None:
            pieces = self._guarded(lambda document, writing: write(effective_jobs(document), writing), large, context)
        return pieces

    def refuse_many(self, file: BinaryIO, path: str) -> None:
        """Refuse a document of any size at its second job where one text holds one. Raises RejectedError; what else is
        wrong in it is left to the reader. file: read from its start, and put back there."""
        from sssjob.document.model import Job
        from sssjob.xml.streaming import stream_jobs

        several = False
        with suppress(RejectedError):
            stream = stream_jobs(file, profile=self.profile, path=path, policy=Policy.IGNORE)
            jobs = (job for job in stream if isinstance(job, Job) and job.reference is None)
            several = next(islice(jobs, 1, None), None) is not None
        file.seek(0)
        if several:
            from sssjob.translators.scripts.writing import refuse_jobs

            refuse_jobs(Findings(path), "several")

    @property
    def in_pieces(self) -> bool:
        """Whether the format can be written piece by piece."""
        writer = self.writer
        if writer.kind != "record":
            return writer.pieces is not None
        from sssjob.translators.records.base import RecordTranslator

        return writer.pieces is not None or (
            isinstance(writer, RecordTranslator) and (writer.blobs or writer.texts) is not None)

    def files(self, document: Document, context: WriteContext) -> dict[str, str]:
        """The files of a document of one job, name -> text. Without ``files`` of the format one, which has the name of
        the context and the format's first suffix."""
        writer = self.writer
        if writer.files is None:
            return {context.name + (writer.suffixes[0] if writer.suffixes else ".txt"): self.text(document, context)}
        return dict(self._guarded(writer.files, document, context))

    def _guarded(self, function: Any, document: Document | Large, context: WriteContext) -> Any:
        context.findings.places = document.places
        try:
            return function(document, context)
        except ValueError as error:
            if isinstance(error, SSSJobError) or not self.options.given:
                raise
            raise UsageError(f"--option: {error}") from error


def singles(document: Document) -> Iterator[tuple[str, Document]]:
    """(name, document) of every job, defaults folded in: named by Id, else Name (decisions 47)."""
    from sssjob.document.arrays import label_of
    from sssjob.document.inherit import effective

    for number, (job, defaults) in enumerate(document.jobs()):
        whole = job if defaults is None else effective(job, defaults).fold()
        yield label_of(job, number), replace(document, root=whole, findings=None)
