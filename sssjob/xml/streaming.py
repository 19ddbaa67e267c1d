"""Jobs of XML documents of any size, one after another, in bounded memory.

Nothing is repaired in a stream, and there is no limit on the whole: each child of the group has limits of its own.
What an element means is decided by the reader of whole documents.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from lxml import etree

from sssjob.document.model import Job, JobDefaults
from sssjob.errors import AccessError, RejectedError
from sssjob.findings import Findings, Policy
from sssjob.limits import LIMITS, Limits
from sssjob.xml.encoding import clean_bytes, long_tag
from sssjob.xml.profiles import profile as profile_of
from sssjob.xml.reader import ENVELOPES, DocumentReader, Source
from sssjob.xml.xmlio import Locator, crowded, refuse_doctype, syntax_error

__all__ = ["iter_job_elements", "stream_elements", "stream_jobs"]

_CHUNK: Final = 1 << 20


class _Window:
    """The bytes that a stream is reading at, with their line numbers; old ones are let go."""

    def __init__(self) -> None:
        self._recent: deque[tuple[int, bytes]] = deque(maxlen=4)
        self._next = 1

    def feed(self, chunk: bytes) -> None:
        """Take the next chunk."""
        self._recent.append((self._next, chunk))
        self._next += chunk.count(b"\n")

    @property
    def data(self) -> bytes:
        """What is here."""
        return b"".join(c for _, c in self._recent)

    @property
    def first(self) -> int:
        """The number of the first line that is here, whole or in part."""
        return self._recent[0][0] if self._recent else 1

    def place(self, element: Any) -> tuple[int, int, str]:
        """Line, column and source line of an element, as far as its text is still here."""
        return Locator(self.data, self.first)(element)


def _chunks(source: Source, path: str) -> Iterator[bytes]:
    if isinstance(source, (bytes, str)):
        source = BytesIO(source if isinstance(source, bytes) else source.encode("utf-8", "surrogatepass"))
    try:
        if isinstance(source, Path):
            with source.open("rb") as file:
                while chunk := file.read(_CHUNK):
                    yield chunk
        else:
            while chunk := source.read(_CHUNK):
                yield chunk
    except OSError as error:
        raise AccessError(str(source) if isinstance(source, Path) else path, error.strerror or str(error)) from error


def iter_job_elements(source: Source, *, path: str = "-", limits: Limits = LIMITS,
                      findings: Findings | None = None) -> Iterator[Any]:
    """The lxml elements of the jobs of a document, one at a time, in bounded memory.

    Yields each child of a JobGroup that is complete (Job, JobDefaults ...), or the Job itself when it is the root.
    An element is valid until the next is asked for. There is no limit on the whole; each child has the limits
    ``child_bytes`` and ``child_elements``. Raises RejectedError at the first fault of the XML.
    """
    collected = Findings(path, limits) if findings is None else findings
    yield from _elements(source, path, limits, collected, _Window())


def _elements(source: Source, path: str, limits: Limits, findings: Findings, window: _Window) -> Iterator[Any]:
    tags = [f"{{*}}{name}" for name in ("Job", "JobDefaults", "JobsDefaults", "job", "TaskGroup")]
    feeder = etree.XMLPullParser(events=("end",), tag=tags, resolve_entities=False, no_network=True, load_dtd=False,
                                 remove_comments=True, remove_pis=True, remove_blank_text=True)
    since, line, long = 0, 1, False
    try:
        for chunk in _chunks(source, path):
            if line == 1 and not since:
                clean_bytes(chunk, findings, limits, whole=len(chunk) < _CHUNK)
            window.feed(chunk)
            feeder.feed(chunk)
            since += len(chunk)
            long = long or long_tag(chunk, limits)
            for _, element in feeder.read_events():
                refuse_doctype(element, findings)
                if _stands_for_itself(element):
                    if long and crowded(element, limits):
                        raise _too_large("attributes", limits, findings)
                    _check_child(element, limits, findings)
                    yield element
                    _free(element)
                    since, line = 1, 2
            if since > limits.child_bytes + _CHUNK:
                raise _too_large("child_bytes", limits, findings)
        if line == 1 and not since:
            clean_bytes(b"", findings, limits)
        feeder.close()
    except etree.XMLSyntaxError as error:
        raise syntax_error(error, window.data, findings, window.first) from None


def _stands_for_itself(element: Any) -> bool:
    """Whether an element is a child of the group (or the root), not part of a job."""
    parent = element.getparent()
    if parent is None:
        return True
    return parent.tag.rpartition("}")[2].lower() in ("jobgroup", *(e.lower() for e in ENVELOPES))


def _free(element: Any) -> None:
    """Forget an element and the siblings before it; later ones may be complete already and stay."""
    element.clear()
    parent = element.getparent()
    while (before := element.getprevious()) is not None:
        parent.remove(before)


def _too_large(name: str, limits: Limits, findings: Findings) -> RejectedError:
    findings.add("SSS110", name, f"a child of the root has more than the limit {name} ({getattr(limits, name)})")
    return RejectedError(list(findings))


def _check_child(element: Any, limits: Limits, findings: Findings) -> None:
    if len(element) > 1_000 and element.xpath("count(.//*)") > limits.child_elements:
        raise _too_large("child_elements", limits, findings)


def stream_jobs(source: Source, *, profile: str = "liberal", path: str = "-", limits: Limits = LIMITS,
                policy: Policy | None = None, findings: Findings | None = None) -> Iterator[Job | JobDefaults]:
    """The jobs of a document of any size, in bounded memory, in document order.

    JobDefaults is yielded where it stands; it may follow the jobs it holds for. Findings go into ``findings``.
    Raises as ``iter_job_elements``; nothing is repaired in a stream.
    """
    return (container for _, container in stream_elements(
        source, profile=profile, path=path, limits=limits, policy=policy, findings=findings))


def stream_elements(source: Source, *, profile: str = "liberal", path: str = "-", limits: Limits = LIMITS,
                    policy: Policy | None = None,
                    findings: Findings | None = None) -> Iterator[tuple[Any, Job | JobDefaults]]:
    """As ``stream_jobs``, each with the lxml element that it was read from (valid until the next is asked for)."""
    row = profile_of(profile)
    collected = Findings(path, limits) if findings is None else findings
    window = _Window()
    reader = DocumentReader(row, collected, limits, policy or Policy.REJECT, window.place, {})
    for element in _elements(source, path, limits, collected, window):
        name = {"JobDefaults": "JobDefaults", "JobsDefaults": "JobDefaults"}.get(
            element.tag.rpartition("}")[2]) or reader.root_name(element.tag.rpartition("}")[2])
        if name in ("Job", "JobDefaults"):
            local = element.tag.rpartition("}")[2]
            yield element, reader.container(element, reader.scope(name),  # type: ignore[misc]
                                            None if local == name else local)
