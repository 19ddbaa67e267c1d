"""``sssjob charge``: what delivered jobs cost."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import click

from sssjob.accounting import Charge, RateSet, Uncharged, charge
from sssjob.accounting.amounts import Reason
from sssjob.cli._complete import files
from sssjob.cli._files import Results, Source, logs_of, once
from sssjob.cli._findings import problem, say
from sssjob.cli._options import Session, common, format_option, output_option, reading
from sssjob.cli._prices import PricedJobs, hinted, load, options_of, page, rates_of, rates_option, tell_unsaid
from sssjob.cli._privacy import load_privacy, privacy_option
from sssjob.cli._profiles import load_site
from sssjob.cli._recognised import Looked
from sssjob.conversion.converting import AUTO
from sssjob.document.element import new_property
from sssjob.document.model import Document, Job, JobDefaults
from sssjob.errors import UsageError
from sssjob.findings import Findings, escape
from sssjob.translators.registry import get

if TYPE_CHECKING:
    from sssjob.accounting.privacy import Privacy
    from sssjob.validation.large import Large

__all__ = ["command"]

_ANY: Final = "*"       # in place of a site: of whatever site a job is


@click.command("charge")
@click.argument("names", metavar="FILE...", nargs=-1, required=True, shell_complete=files)
@rates_option
@click.option("--sites", metavar="SITE,SITE...", default="",
              help="Charge each job by the rates of the site where it was run: names or files of profiles.")
@format_option
@click.option("--itemise", is_flag=True, help="Print the items of every charge instead of the document.")
@click.option("--jobs", type=click.IntRange(1, 1024), default=1, metavar="N",
              help="Processes for the logs (default: 1).")
@click.option("--dask", metavar="ADDRESS", help="Spread the logs over the Dask cluster of this scheduler.")
@privacy_option("What names become in a table (TOML).")
@output_option
@common
@reading
def command(session: Session, names: tuple[str, ...], rates_file: str | None, sites: str, options: tuple[str, ...],
            itemise: bool, jobs: int, dask: str | None, privacy_file: str | None, output: str) -> int:
    """Charge the jobs of FILE (- is standard input) for what was delivered to them: documents or accounting logs.

    A document comes back with Charge written into it. Of accounting logs a table is made, one row a job: CSV, Parquet
    where --output ends in .parquet, or a Parquet file for each log where it is a folder. A job that cannot be charged
    is reported with the reason.
    """
    if sites and rates_file is not None:
        raise UsageError("--rates and --sites both say by which rates jobs are charged")
    paths = _rates_of_sites(sites) if sites else {_ANY: rates_of(session, rates_file)}
    names = logs_of(names)
    once([*names, *dict.fromkeys(paths.values()), *([] if privacy_file is None else [privacy_file])])
    privacy = load_privacy(privacy_file)
    with closing(Looked()) as looked:
        source = looked.format(session, names) if session.source == AUTO else session.source
        return _charged(session, names, paths, source, options, itemise, jobs, dask, privacy, output, looked)


def _rates_of_sites(sites: str) -> dict[str, str]:
    """Site -> the file of its rates. sites: with commas between them. Raises UsageError, SiteError, AccessError."""
    paths: dict[str, str] = {}
    for name in filter(None, map(str.strip, sites.split(","))):
        site, path = load_site(name)
        assert site is not None
        if site.rates is None:
            raise UsageError(f"{path}: rates is missing: the jobs of {escape(site.name)} cannot be charged")
        if site.name in paths:
            raise UsageError(f"--sites: two profiles are called {escape(site.name)}")
        paths[site.name] = os.path.join(os.path.dirname(path), site.rates)
    if not paths:
        raise UsageError("--sites names no site")
    return paths


def _charged(session: Session, names: tuple[str, ...], paths: Mapping[str, str], source: str, options: tuple[str, ...],
             itemise: bool, jobs: int, dask: str | None, privacy: Privacy | None, output: str, looked: Looked) -> int:
    from sssjob.translators.records.base import RecordTranslator

    reader = get(source)
    read_options = options_of(reader.name, options)
    loaded = {name: load(session, path) for name, path in paths.items()}
    rates = {name: table for name, table in loaded.items() if table is not None}
    if len(rates) < len(loaded):
        return 1
    if isinstance(reader, RecordTranslator) and reader.stream is not None:
        if _ANY not in rates:
            raise UsageError("--sites is for documents: a record does not say at which site its job was run")
        if itemise:
            raise UsageError("--itemise is for documents; a table has no room for it (see sssjob ledger)")
        from sssjob.cli._charge_tables import charge_logs

        all_options = {**session.defaults(reader), **read_options.given}
        return charge_logs(session, names, rates[_ANY], source, all_options, output, jobs, dask, looked, privacy)
    if len(names) > 1 or jobs > 1 or dask is not None:
        raise UsageError(f"several files, --jobs and --dask are for accounting logs (-f), not for {source}")
    if privacy is not None:
        raise UsageError(f"--privacy is for tables of accounting logs (-f), not for {source}")
    file = names[0]
    charging = _DocumentCharges(session, file, rates, itemise)
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
class _DocumentCharges:
    """Charging the jobs of one document. rates: by site, those of ``_ANY`` for all jobs. tallies, earlier: likewise."""

    session: Session
    file: str
    rates: Mapping[str, RateSet]
    itemise: bool
    jobs: int = 0
    tallies: dict[str, PricedJobs] = field(default_factory=dict)
    items: Results = field(default_factory=Results)
    earlier: dict[str, set[int]] = field(default_factory=dict)

    def of_document(self, document: Document, output: str) -> int:
        """A document that was read whole; gives the exit status."""
        from sssjob.xml.writer import write_document

        self._look(document)
        for job, defaults in document.jobs():
            self._charge(job, defaults)
        findings, text = Findings(self.file), Results()
        if self._writes(output) and self.jobs:
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

        self.earlier = {site: earlier_runs(document, rates) for site, rates in self.rates.items()}

    def _charge(self, job: Job, defaults: JobDefaults | None) -> None:
        """Charge the next job and write the charge into it."""
        from sssjob.accounting.attempts import EARLIER

        site = _ANY if _ANY in self.rates else _site_of(job) or ""
        rates = self.rates.get(site)
        if rates is None:
            why = (f"it was run at {escape(site)}, which is none of --sites" if site
                   else "it does not say at which site it was run")
            result: Charge | Uncharged = Uncharged(Reason.NO_RATES, why)
        else:
            result = EARLIER if self.jobs in self.earlier[site] else charge(job, rates, defaults)
        self.jobs += 1
        if site not in self.tallies:
            rates = rates or next(iter(self.rates.values()))
            self.tallies[site] = PricedJobs(self.session, self.file, "charged", rates)
        record = self.tallies[site].add(job, result)
        if self.itemise or self.session.as_json:
            self.items.add(page([record], as_json=self.session.as_json, itemise=True))
        if isinstance(result, Uncharged):
            self.session.warnings += 1
        else:
            _fill(self.session, self.file, job, result)

    def _end(self, text: Results, findings: Findings, output: str) -> int:
        """Write what was made, and the counts; gives the exit status."""
        session = self.session
        for tally in self.tallies.values():
            tell_unsaid(session, self.file, tally.unsaid, tally.done)
        if not self.jobs:
            problem(f"{self.file}: there is no job", as_json=session.as_json, status=1)
            return 1
        if self.itemise or session.as_json:
            counts = [{**tally.record(), **({} if site == _ANY else {"site": site or None})}
                      for site, tally in self.tallies.items()]
            self.items.add(page(counts, as_json=session.as_json, itemise=True))
            self.items.emit()
        if self._writes(output):
            session.report(findings)
            text.emit(output)
        if not (session.as_json or session.quiet):
            for site, tally in self.tallies.items():
                say(str(tally) if site == _ANY else f"{escape(site) or 'no site'}: {tally}")
        return session.status()


def _site_of(job: Job) -> str | None:
    """The site at which a job was run, None where it does not say so."""
    return next((p.text for p in job.all("Extension") if (p.get("type"), p.get("name")) == ("LRM", "Site")), None)


def _fill(session: Session, file: str, job: Job, new_charge: Charge) -> None:
    """Write the charge into the job; another one that stood there is told."""
    new = new_property("Charge", new_charge.amount, {"units": new_charge.currency} if new_charge.currency else {})
    old = job.first("Charge")
    if old is not None and (old.value, old.get("units")) != (new.value, new.get("units")):
        findings = Findings(file)
        findings.add("SSS606", "Charge", f"Charge {old.text} becomes {new.text}", within=job, path="/Job/Charge",
                     item=old)
        session.report(findings, again=False)
    job.set_as_is("Charge", new)
