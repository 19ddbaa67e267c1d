"""``sssjob charge``: what delivered jobs cost."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from sssjob.cli._complete import files
from sssjob.cli._files import Results, Source, once
from sssjob.cli._findings import problem, say
from sssjob.cli._options import Session, common, format_option, output_option, reading
from sssjob.cli._prices import Tally, hinted, load, options_of, page, rates_of, rates_option
from sssjob.cli._recognised import Looked
from sssjob.conversion.converting import AUTO
from sssjob.errors import UsageError
from sssjob.findings import Findings

if TYPE_CHECKING:
    from sssjob.accounting import Charge, RateSet
    from sssjob.document.model import Document, Job, JobDefaults
    from sssjob.validation.large import Large

__all__ = ["command"]


@click.command("charge")
@click.argument("names", metavar="FILE...", nargs=-1, required=True, shell_complete=files)
@rates_option
@format_option
@click.option("--itemise", is_flag=True, help="Print the items of every charge instead of the document.")
@click.option("--jobs", type=click.IntRange(1, 1024), default=1, metavar="N",
              help="Processes for the logs (default: 1).")
@click.option("--dask", metavar="ADDRESS", help="Spread the logs over the Dask cluster of this scheduler.")
@output_option
@common
@reading
def command(session: Session, names: tuple[str, ...], rates_file: str | None, options: tuple[str, ...],
            itemise: bool, jobs: int, dask: str | None, output: str) -> int:
    """Charge the jobs of FILE (- is standard input) for what was delivered to them: documents or accounting logs.

    A document comes back with Charge written into it. Of accounting logs a table is made, one row a job: CSV, Parquet
    where --output ends in .parquet, or a Parquet file for each log where it is a folder. A job that cannot be charged
    is reported with the reason.
    """
    rates_path = rates_of(session, rates_file)
    once([*names, rates_path])
    with closing(Looked()) as looked:
        source = looked.format(session, names) if session.source == AUTO else session.source
        return _charged(session, names, rates_path, source, options, itemise, jobs, dask, output, looked)


def _charged(session: Session, names: tuple[str, ...], rates_file: str, source: str, options: tuple[str, ...],
             itemise: bool, jobs: int, dask: str | None, output: str, looked: Looked) -> int:
    from sssjob.translators.records.base import RecordTranslator
    from sssjob.translators.registry import get

    reader = get(source)
    read_options = options_of(reader, options)
    rates = load(session, rates_file)
    if rates is None:
        return 1
    if isinstance(reader, RecordTranslator) and reader.stream is not None:
        if itemise:
            raise UsageError("--itemise is for documents; a table has no room for it (see sssjob ledger)")
        from sssjob.cli._charge_tables import charge_logs

        all_options = {**session.defaults(reader), **read_options.given}
        return charge_logs(session, names, rates, source, all_options, output, jobs, dask, looked)
    if len(names) > 1 or jobs > 1 or dask is not None:
        raise UsageError(f"several files, --jobs and --dask are for accounting logs (-f), not for {source}")
    file = names[0]
    charging = _Charging(session, file, rates, itemise)
    with looked.opened(file) as opened:
        source_file = Source(opened, file)
        large = session.large(source_file) if source == "sss" else None
        if large is not None:
            read_options.check(source)
            return 1 if session.errors else charging.of_large(large, output)
        with hinted(session, file, source):
            document = session.read(file, source_file.whole(), source=source, options=read_options, facts=True)
    return 1 if session.errors else charging.of_document(document, output)


@dataclass(slots=True)
class _Charging:
    """Charging the jobs of one document."""

    session: Session
    file: str
    rates: RateSet
    itemise: bool
    tally: Tally = field(init=False)
    items: Results = field(default_factory=Results)
    earlier: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.tally = Tally(self.session, self.file, "charged", self.rates)

    def of_document(self, document: Document, output: str) -> int:
        """A document that was read whole; gives the exit status."""
        from sssjob.xml.writer import write_document

        self._look(document)
        for job, defaults in document.jobs():
            self._charge(job, defaults)
        findings, text = Findings(self.file), Results()
        if self._writes(output) and self.tally.jobs:
            text.add(write_document(document, findings=findings))
        return self._end(text, findings, output)

    def of_large(self, large: Large, output: str) -> int:
        """The same section by section."""
        from sssjob.validation._group_writing import GroupWriter

        self._look(large)
        findings, text = Findings(self.file), Results()
        writer = GroupWriter(large, "3.1", findings, None) if self._writes(output) else None
        text.add(writer.start() if writer is not None else "")
        for section in large.sections():
            with section.placed():
                for job, defaults in section.jobs():
                    self._charge(job, defaults)
            text.add(writer.section(section) if writer is not None else "")
        text.add(writer.end() if writer is not None else "")
        return self._end(text, findings, output)

    def _writes(self, output: str) -> bool:
        """Whether the document comes back."""
        return output != "-" or not (self.itemise or self.session.as_json)

    def _look(self, document: Document | Large) -> None:
        """Where only the last attempt at a job is charged, see which that is."""
        from sssjob.accounting.attempts import earlier_runs

        self.earlier = earlier_runs(document, self.rates)

    def _charge(self, job: Job, defaults: JobDefaults | None) -> None:
        """Charge the next job and write the charge into it."""
        from sssjob.accounting import Uncharged, charge
        from sssjob.accounting.attempts import EARLIER

        result = EARLIER if self.tally.jobs in self.earlier else charge(job, self.rates, defaults)
        record = self.tally.add(job, result)
        if self.itemise or self.session.as_json:
            self.items.add(page([record], as_json=self.session.as_json, itemise=True))
        if isinstance(result, Uncharged):
            self.session.warnings += 1
        else:
            _fill(self.session, self.file, job, result)

    def _end(self, text: Results, findings: Findings, output: str) -> int:
        """Write what was made, and the counts; gives the exit status."""
        session, tally = self.session, self.tally
        if not tally.jobs:
            problem(f"{self.file}: there is no job", as_json=session.as_json, status=1)
            return 1
        if self.itemise or session.as_json:
            self.items.add(page([tally.record()], as_json=session.as_json, itemise=True))
            self.items.emit()
        if self._writes(output):
            session.report(findings)
            text.emit(output)
        if not (session.as_json or session.quiet):
            say(str(tally))
        return session.status()


def _fill(session: Session, file: str, job: Job, new_charge: Charge) -> None:
    """Write the charge into the job; another one that stood there is told."""
    from sssjob.document.element import new_property

    new = new_property("Charge", new_charge.amount, {"units": new_charge.currency} if new_charge.currency else {})
    old = job.first("Charge")
    if old is not None and (old.value, old.get("units")) != (new.value, new.get("units")):
        findings = Findings(file)
        findings.add("SSS606", "Charge", f"Charge {old.text} becomes {new.text}", within=job, path="/Job/Charge",
                     item=old)
        session.report(findings, again=False)
    job.set_as_is("Charge", new)
