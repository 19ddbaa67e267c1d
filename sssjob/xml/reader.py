"""From XML to typed objects: whole documents, streams of jobs, and the trees that queries run on.

``_elements`` makes the objects; here is where they come from. Jobs are read from the text of a document, cut into
pieces (``_pieces``); a job in which something takes thought is read from a tree, as is a document that cannot be cut.
Streams are read job by job.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, Final

from sssjob.document.element import NO_ATTRIBUTES, Container, Property, Raw
from sssjob.document.model import Document, File
from sssjob.document.values import unlike
from sssjob.errors import AccessError, RejectedError
from sssjob.findings import Findings, Policy
from sssjob.limits import LIMITS, Limits
from sssjob.xml._aside import AsideTree, InOrder
from sssjob.xml._elements import ElementReader
from sssjob.xml._pieces import PieceLevel, Text, Thought, cut, plain_text, read, start_of
from sssjob.xml._scopes import Scope, Start
from sssjob.xml._shapes import Documents
from sssjob.xml._trial import Trial
from sssjob.xml.places import Places
from sssjob.xml.profiles import Profile
from sssjob.xml.profiles import profile as profile_of
from sssjob.xml.xmlio import Locator
from sssjob.xml.xmlio import parse_tree as parse_xml

__all__ = ["ENVELOPES", "DocumentReader", "Source", "collector_paused", "parse_tree", "read_bytes", "read_document"]

Source = bytes | str | Path | BinaryIO

_ROOTS: Final = ("Job", "JobGroup", "TaskGroup", "Requested", "Delivered")
ENVELOPES: Final = ("Envelope", "Body", "Request", "Response", "Data")
_PIECE: Final = 1 << 24     # bytes asked for at a time
_SMALL: Final = 100_000     # bytes of a document whose scopes are pooled
_POOLED: Final = 4          # scopes of a profile that are kept
_LOOK: Final = 100          # reads after which it is looked whether these have grown
_KEPT: Final = 50_000       # texts that they may hold then
_reads: Final = count(1)
#: Profile -> scopes with what small documents left there, which make the next several times as fast (popped while in
#: use, so threads do not share). Now and then they start anew, for they must not grow without end.
_POOLS: Final[dict[str, list[tuple[dict[str, Scope], Documents]]]] = {}


class _Roots(PieceLevel):
    """What may stand where jobs stand: each of them a container."""

    __slots__ = ("classes", "trial")

    def __init__(self, trial: Callable[[], Trial], classes: dict[str, Scope]) -> None:
        super().__init__()
        self.trial = trial
        self.classes = classes

    def leaf(self, head: str, text: str) -> tuple[Any, Any]:
        """No property stands here."""
        raise Thought

    def inner(self, head: str) -> tuple[Scope, Start]:
        """The scope of a job or another root."""
        return self.trial().start(self.classes["Job"], head, self.classes)


class DocumentReader(ElementReader):
    """Turns documents into objects: envelopes, Files, and what is read as text."""

    __slots__ = ("_trial", "files", "text")

    def __init__(self, profile: Profile, findings: Findings, limits: Limits, default: Policy,
                 locate: Callable[[Any], tuple[int, int, str]], scopes: dict[str, Scope]) -> None:
        super().__init__(profile, findings, limits, default, locate, scopes)
        self.files: dict[str, File] = {}
        self.text: Text | None = None       # the jobs of an envelope
        self._trial: Trial | None = None

    def trial(self) -> Trial:
        """Who tries what a text says; made when something is new."""
        if self._trial is None:
            self._trial = Trial(self)
        return self._trial

    # -- envelopes
    def envelope(self, element: Any, depth: int = 0) -> Raw:
        """An SSSRMAP message: everything as it is, with the jobs in it as objects and the Files taken aside."""
        if depth > self.limits.depth:
            self.tell("SSS110", element, element.tag, f"nested deeper than the limit depth ({self.limits.depth})")
            raise RejectedError(list(self.findings))
        raw = Raw(element.tag, dict(element.items()), element.text or "", line=element.sourceline)
        if self.text is not None and self.text.name == "Data" == element.tag.rpartition("}")[2]:
            text, self.text = self.text, None
            child = InOrder(element)
            cut(text, self._roots(), self.limits.depth, lambda number, *_: self._inside(raw, depth, child(number)),
                raw.children, self.relieve)
            return raw
        for child in element:
            self._inside(raw, depth, child)
        return raw

    def _inside(self, envelope: Raw, depth: int, child: Any) -> None:
        """Add a child of an envelope."""
        local = child.tag.rpartition("}")[2]
        name = self.root_name(local)
        if local == "File" and child.get("id"):
            self._file(child)
        elif name == local == "JobGroup" and self.text is not None and self.text.name == local:
            envelope.children.append(self.group(self.text, lambda: child, InOrder(child)))
        elif name is not None and (len(child) or envelope.tag == "Data"):
            envelope.children.append(self.container(child, self.scope(name), None if local == name else local))
        else:
            envelope.children.append(self.envelope(child, depth + 1))
            if (child.tail or "").strip():
                envelope.children.append(child.tail)

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
        if self.findings:
            self.text = None        # the text was repaired
        _count_elements(root, data, self.findings, self.limits)
        local = root.tag.rpartition("}")[2]
        name = self.root_name(local)
        if name is not None:
            body: Container | Raw = self.container(root, self.scope(name), None if local == name else local)
        elif local in ENVELOPES:
            body = self.envelope(root)
        else:
            hint = "--profile mam reads usage records" if local == "UsageRecord" else ""
            self.tell("SSS109", root, local, f"{local} is not the root of a job document{unlike(local)}", hint)
            raise RejectedError(list(self.findings))
        document = self.finished(body, path)
        if isinstance(body, Raw) and not any(True for _ in document.bodies()):
            self.tell("SSS109", root, local, f"{local} holds no job")
            raise RejectedError(list(self.findings))
        return document

    def finished(self, body: Container | Raw, path: str) -> Document:
        """The document with this body."""
        document = Document(body, self.files, path, self.profile.name, self.findings, policy=self.default)
        if self.profile.packed_script:
            _unpack_scripts(document)
        return document

    # -- as text
    def read(self, text: Text, data: bytes, path: str) -> Document:
        """The document, read as text. Raises Thought when all of it has to be read as a tree."""
        name = self.root_name(text.name)
        trial = self.trial
        for root in () if "JobGroup" in self.scopes else _ROOTS:
            self.scope(root)
        for scope in self.scopes.values():
            scope.trial = trial
        if name is None:
            self.text = start_of(text, "JobGroup") or start_of(text, "Data")
            return self.tree(data, path)
        tree = AsideTree(text, data, self.limits)
        if name == text.name == "JobGroup":
            body: Container = self.group(text, tree.root, tree.child)
        else:
            (body,), _ = read(text.text[text.begin:].rstrip(), self._roots(), text.first, self.limits.depth)
        tree.check()
        return self.finished(body, path)

    def _roots(self) -> _Roots:
        """What may stand where jobs stand."""
        job = self.scope("Job")
        roots = job.above
        if not isinstance(roots, _Roots):
            names = [*_ROOTS, "UsageRecord", "job", "jobgroup"]
            roots = job.above = _Roots(self.trial, {
                n: self.scope(name) for n in names if (name := self.root_name(n)) is not None})
        roots.trial = self.trial
        return roots

    def group(self, text: Text, root: Callable[[], Any], child: Callable[[int], Any]) -> Container:
        """A JobGroup whose text this is; root, child: its elements, for what takes thought. Raises Thought."""
        scope = self.scope("JobGroup")
        items: list[Any] = []
        cut(text, scope, self.limits.depth, lambda number, *_: self.child(child(number), scope, items), items,
            self.relieve)
        if not items or scope.repeats(items):
            raise Thought
        container = scope.make(items, None, None, text.line)
        if text.attributes:
            container.attributes = self.own_attributes(root(), root().items(), scope)
        return container

    def forget(self) -> None:
        """Keep nothing in the scopes that holds for this document only."""
        for scope in self.scopes.values():
            scope.trial = None
            if self.once:
                scope.forget()


def _unpack_scripts(document: Document) -> None:
    from sssjob.document.moab import unpack

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
    collection that would walk through all of them. Not paused, ``relieve`` does the same every few thousand jobs:
    the collector goes on, but does not walk again and again through what was read. To ask what a program has frozen
    walks through all of that, and so is asked only where something would be frozen.
    """
    paused = pause and gc.isenabled()
    ours = paused and gc.get_freeze_count() == 0
    if paused:
        gc.disable()
    try:
        yield
    finally:
        if ours:
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
    collected = Findings(path, limits) if findings is None else findings
    return parse_xml(read_bytes(source, path, limits), findings=collected, repairs=row.liberal, limits=limits)


def read_document(source: Source, *, profile: str = "liberal", path: str = "-", limits: Limits = LIMITS,
                  policy: Policy | None = None, pause_gc: bool = False,
                  once: set[tuple[str, str]] | None = None) -> Document:
    """Read a whole document; what was found is in ``document.findings`` (ask ``.rejected``).

    source: bytes, text, a Path, or an open binary file. policy: the outermost default of awarenessPolicy instead of
    Reject. once: takes rule and subject of what is told once a document. Raises RejectedError when nothing can be built
    (not XML, no job in it, a limit), AccessError when the file cannot be read.
    """
    row = profile_of(profile)
    if path == "-" and isinstance(source, Path):
        path = str(source)
    data = read_bytes(source, path, limits)
    small = len(data) < _SMALL
    pool = _POOLS.setdefault(row.name, [])
    scopes, shapes = pool.pop() if pool else ({}, Documents())
    readings: list[DocumentReader] = []

    def reader() -> DocumentReader:
        """A reader for one try at the document."""
        reading = DocumentReader(row, Findings(path, limits), limits, policy or Policy.REJECT, Locator(data), scopes)
        reading.whole = not small
        readings.append(reading)
        if once is not None:
            once.clear()
            reading.once = once
        return reading

    def document() -> Document:
        """The document by the quick way, or by the tree where that gives way."""
        text = plain_text(data, limits)
        whole = None if text is None else _as_text(reader(), text, data, path)
        whole = reader().tree(data, path) if whole is None else whole
        whole.places = Places(whole.root, data, path, whole.findings)
        return whole

    if not small:
        try:
            with collector_paused(pause_gc):
                return document()
        finally:
            if any(reading.relieved for reading in readings):
                gc.freeze()
                gc.unfreeze()
    usual = limits is LIMITS and not row.packed_script      # what a shape tells depends on nothing else
    body = _by_shape(shapes, data) if usual else None
    if body is not None:
        result = Document(body, {}, path, row.name, Findings(path, limits), policy=policy or Policy.REJECT)
        result.places = Places(body, data, path, result.findings)
    else:
        result = document()
        reported = result.findings is not None and bool(result.findings.told)
        if usual and isinstance(result.root, Container) and not (result.files or reported):
            shapes.learn(data.decode("utf-8", "replace"), data, result.root, scopes)
    if len(pool) < _POOLED and (next(_reads) % _LOOK or _held(scopes) < _KEPT):
        pool.append((scopes, shapes))
    return result


def _by_shape(shapes: Documents, data: bytes) -> Container | None:
    """The root of a document, where documents of its shape were read before."""
    try:
        return shapes.read(data.decode())
    except UnicodeDecodeError:
        return None


def _as_text(reader: DocumentReader, text: Text, data: bytes, path: str) -> Document | None:
    """The document, read as text; None when all of it has to be read as a tree."""
    try:
        return reader.read(text, data, path)
    except Thought:
        return None
    finally:
        reader.forget()


def _held(scopes: dict[str, Scope]) -> int:
    """How many texts are kept."""
    return sum(len(s.known) + sum(map(len, s.texts.values())) for s in scopes.values())


def _count_elements(root: Any, data: bytes, findings: Findings, limits: Limits) -> None:
    if len(data) > 4 * limits.document_elements and root.xpath("count(//*)") > limits.document_elements:
        findings.add("SSS110", "", f"more elements than the limit document_elements ({limits.document_elements})")
        raise RejectedError(list(findings))
