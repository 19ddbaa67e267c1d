"""``--from auto`` of commands that read many files: what each is by how it begins, and nothing of it is lost."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, BinaryIO

from sssjob.cli._files import Source, opened
from sssjob.cli._options import Session
from sssjob.conversion.converting import AUTO
from sssjob.conversion.intake import format_of
from sssjob.errors import AccessError, UsageError
from sssjob.findings import escape
from sssjob.limits import LIMITS
from sssjob.translators.registry import get

if TYPE_CHECKING:
    from sssjob.translators.base import Translator
    from sssjob.translators.recognise import Fit


def recognised(session: Session, source_file: Source, source: str, of_documents: bool = True
               ) -> tuple[Translator, Source]:
    """The format of a file, which is reported where it is ``auto``, and the file as it is to be read from now on.

    of_documents: whether the format of a document, and of what is taken for one, is reported too.
    Raises UsageError where none or several fit."""
    if source != AUTO:
        return get(source), source_file
    from sssjob.translators.recognise import begun
    from sssjob.translators.records._packed import LONGEST, PackedError, packing, unpacked

    if packing(source_file.head(LONGEST)) is not None:
        source_file = Source(unpacked(source_file.stream()), source_file.name)
    try:
        head = source_file.head(LIMITS.recognise_bytes)
    except PackedError as error:
        raise AccessError(escape(source_file.name), str(error)) from None
    fit = None
    if len(head) == LIMITS.recognise_bytes:
        fit = begun(head, source_file.name) or _group(head, source_file.name)
    if fit is None:
        data = source_file.whole()
        source_file = Source(io.BytesIO(data), source_file.name)
        reader, why = format_of(data, source_file.name)
        if reader.kind != "document" or (of_documents and why):
            session.recognised(source_file.name, reader, why)
        return reader, source_file
    if of_documents or fit[0].kind != "document":
        session.recognised(source_file.name, fit[0], fit[1].why)
    return fit[0], source_file


def _group(head: bytes, name: str) -> tuple[Translator, Fit] | None:
    """The format of a JobGroup in XML that begins so, of which no more has to be looked at."""
    from sssjob.translators.recognise import recognise
    from sssjob.xml._parts import frame_of

    return next(iter(recognise(head, name)), None) if frame_of(head) is not None else None


class Looked:
    """Files that were looked at before they are read: those that can be read only once are kept."""

    def __init__(self) -> None:
        self._kept: dict[str, Source] = {}
        self._files = ExitStack()

    def format(self, session: Session, names: Sequence[str]) -> str:
        """The one format of all files. UsageError where there are several."""
        formats: dict[str, str] = {}
        for name in names:
            with ExitStack() as files:
                reader, source_file = recognised(session, Source(files.enter_context(opened(name)), name), AUTO,
                                                 of_documents=False)
                if not os.path.isfile(name):
                    self._kept[name] = source_file
                    self._files.push(files.pop_all())
            formats.setdefault(reader.name, name)
        if len(formats) > 1:
            (this, first), (other, second) = list(formats.items())[:2]
            raise UsageError(f"{escape(first)} is {this}, but {escape(second)} is {other}: one format at a time")
        return next(iter(formats))

    @property
    def kept(self) -> list[str]:
        """The files that can be read only once, here."""
        return list(self._kept)

    @contextmanager
    def opened(self, name: str) -> Iterator[BinaryIO]:
        """A file from its beginning."""
        kept = self._kept.pop(name, None)
        if kept is not None:
            yield kept.stream()
            return
        with opened(name) as file:
            yield file

    def whole(self, name: str) -> bytes:
        """All of a file. Raises RejectedError (SSS110) when it is too large."""
        with self.opened(name) as file:
            return Source(file, name).whole()

    def close(self) -> None:
        """Close what was kept."""
        self._files.close()
