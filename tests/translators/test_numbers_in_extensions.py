"""Extensions that hold numbers hold any text: what is no number is told, and no text ends a writer or another door."""

from __future__ import annotations

from typing import Final
from xml.sax.saxutils import quoteattr

import pytest

from sssjob.conversion.compare import differences
from sssjob.conversion.intake import gate
from sssjob.document.element import new_property
from sssjob.request import Offer, match
from sssjob.translators.registry import BUILT_IN
from sssjob.translators.scripts.rows import Dialect, dialect_of
from tests.cases import Cases
from tests.laws.documents import job_of, read, request_in
from tests.laws.test_amounts import written
from tests.laws.test_meaning import FORMATS

#: A digit that is none of those of numbers, more digits than an int takes, digits of another script, no digit.
TEXTS: Final = ("\u00b2", "9" * 5000, "\u0663", "x", "-1")
NAMES: Final = ("Array", "ChunkCount", "CpusPerGPU", "MinDuration", "Nice", "Signal", "ThreadsPerCore", "Umask")
DIALECTS: Final = tuple(dialect for name in BUILT_IN if (dialect := dialect_of(name)) is not None)
PLACES: Final = ("{}", "<TaskGroup>{}</TaskGroup>")


@pytest.mark.parametrize("name", NAMES)
def test_no_text_ends_a_door(name: str) -> None:
    with Cases() as case:
        for text in TEXTS:
            for place in PLACES:
                extension = f"<Extension name='{name}' type='Scheduler'>{text}</Extension>"
                document = read(f"<Job><Executable>/bin/a</Executable>{place.format(extension)}</Job>")
                with case((text[:9], place)):
                    gate(document)
                    assert request_in(document).totals.copies == 1
                    assert differences(document, document)[0] == []
                    for target in FORMATS:
                        written(target, document)


@pytest.mark.parametrize("target", ["slurm", "pbspro", "torque", "sge", "htcondor"])
@pytest.mark.parametrize("text", TEXTS[:-1])
def test_a_nice_value_that_is_no_number_is_told_and_not_written(target: str, text: str) -> None:
    job = "<Job>\n<Executable>/bin/a</Executable>\n{}</Job>"
    extension = f"<Extension name='Nice' type='Scheduler'>{text}</Extension>\n"
    output, findings = written(target, read(job.format(extension)))
    assert output == written(target, read(job.format("")))[0]
    assert [(f.line, f.rule, f.message) for f in findings if f.severity == "warning"] == [
        (3, "SSS501", f"Extension Nice: dropped, {text[:80]!r} is no whole number")]


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_no_text_of_an_option_that_was_kept_ends_a_writer(dialect: Dialect) -> None:
    """Every option of a dialect, as an Extension of its type."""
    with Cases() as case:
        for name in sorted({name.lstrip("-") for row in dialect.rows for name in row.names}):
            for text in TEXTS[:2]:
                document = read(f"<Job><Executable>/bin/x</Executable><Extension name={quoteattr(name)} "
                                f"type='{dialect.name}'>{text}</Extension></Job>")
                with case((name, text[:9])):
                    for target in (dialect.name, "flux-jobspec", "psij"):
                        written(target, document)


@pytest.mark.parametrize("place", PLACES)
def test_each_chunk_has_a_processor(place: str) -> None:
    """Of ``-l select=3``; an offer of one met it, and it could not be quoted, for nothing seemed to be asked for."""
    document = read("<Job>" + place.format("<Extension name='ChunkCount' type='Scheduler'>3</Extension>") + "</Job>")
    assert [match(job_of(document), Offer.of([new_property("Processors", count)])).met for count in (2, 3)] == [
        False, True]
