"""The jobs of documents and accounting logs, one after another, for commands that only look at them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sssjob.cli._findings import say
from sssjob.cli._options import Session, bounded
from sssjob.cli._prices import hinted, options_of
from sssjob.cli._recognised import Looked
from sssjob.conversion.converting import AUTO
from sssjob.findings import Findings, escape

if TYPE_CHECKING:
    from sssjob.document.model import Job, JobDefaults

__all__ = ["jobs_of"]


def jobs_of(session: Session, names: Sequence[str], options: Sequence[str],
            looked: Looked) -> Iterator[tuple[str, Job, JobDefaults | None]]:
    """(file, job, defaults) of every job of the files, read in the format of the session; findings are reported on the
    way, and so are the counts of a log. A file that cannot be read is told, and the next one goes on."""
    from sssjob.translators.base import ReadContext
    from sssjob.translators.records._packed import unpacked
    from sssjob.translators.records.base import RecordTranslator
    from sssjob.translators.registry import get

    source = looked.format(session, names) if session.source == AUTO else session.source
    reader = get(source)
    given = options_of(reader, options)
    for name in names:
        with session.tolerant(name), bounded(name), hinted(session, name, source):
            if isinstance(reader, RecordTranslator) and reader.stream is not None:
                context = ReadContext(name, Findings(name), session.profile, session.policy,
                                      options=given.view(session.defaults(reader)))
                with looked.opened(name) as file:
                    jobs = reader.stream(unpacked(file), context)
                    for job in jobs:
                        session.report(context.findings)
                        yield name, job, None
                    session.report(context.findings)
                    if not (session.quiet or session.as_json):
                        say(f"{escape(name)}: {jobs.counts}")
            else:
                before = session.errors
                document = session.read(name, looked.whole(name), source=source, options=given, facts=True)
                if session.errors == before:
                    yield from ((name, job, defaults) for job, defaults in document.jobs())
