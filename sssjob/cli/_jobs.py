"""The jobs of documents and accounting logs, one after another, for commands that only look at them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from sssjob.cli._files import Source, emit, opened
from sssjob.cli._findings import say
from sssjob.cli._log_findings import LogFindings
from sssjob.cli._options import Session
from sssjob.cli._recognised import recognised
from sssjob.conversion.converting import AUTO, Options
from sssjob.findings import Findings, escape
from sssjob.translators.base import ReadContext

if TYPE_CHECKING:
    from sssjob.accounting._sacct_totals import SacctTotals
    from sssjob.document.model import Job, JobDefaults
    from sssjob.translators.records.base import Counts
    from sssjob.translators.records.sums import Summary


def jobs_of(session: Session, source: str, name: str, options: Options, read: list[Counts],
            columns: SacctTotals | None = None) -> Iterator[tuple[Job, JobDefaults | None] | Summary]:
    """The jobs of one source, or the sums over jobs, its findings reported as they come. read: its counts are
    appended; columns: adds up what it can of outputs of sacct, whose other jobs are given."""
    from sssjob.translators.records.base import RecordTranslator

    context = ReadContext(name, Findings(name), session.profile, session.policy, options=options.view({}))
    with opened(name) as file:
        reader, recognised_source = recognised(session, Source(file, name), source, of_documents=False)
        if not (isinstance(reader, RecordTranslator) and reader.stream is not None):
            large = session.large(recognised_source, checked=False) if reader.name == "sss" else None
            if large is not None:
                if not large.findings.rejected:
                    yield from large.jobs()
                return
            document = reader.read(recognised_source.whole(), context)
            if source != AUTO:
                options.check(reader.name)
            session.report(context.findings)
            if not context.findings.rejected:
                yield from document.jobs()
            return
        stream = (columns.of(recognised_source.stream(), context) if columns is not None and reader.name == "sacct" else
                  (reader.sums or reader.stream)(recognised_source.stream(), context))
        with LogFindings(session, context.findings) as log_findings:
            for job in stream:
                log_findings.take()
                yield (job, None) if reader.sums is None else cast("Summary", job)
        read.append(stream.counts)
        if session.as_json:
            emit(json.dumps({"type": "records", "file": name, **stream.counts.record()}) + "\n")
        elif not session.quiet:
            say(f"{escape(name)}: {stream.counts}")
