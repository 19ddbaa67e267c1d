"""What a module of a dialect, also a third party's, may rely on: what it states about itself is picked up everywhere,
and what it could state wrongly is refused when it is imported."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from sssjob.document.model import Document
from sssjob.findings import Findings, Policy
from sssjob.lrm.variables import Facts
from sssjob.translators import ReadContext, WriteContext, get
from sssjob.translators.lint import lint
from sssjob.translators.scripts import rows
from sssjob.translators.scripts.base import Dialect, Row, dialect_of, table, translator
from sssjob.translators.scripts.body import all_facts
from sssjob.translators.scripts.examples import examples, gaps, without
from sssjob.translators.scripts.streams import streams


def plain(name: str = "mine", **more: object) -> Dialect:
    """A dialect whose directives are spelled as those of Cobalt are, with rows of its own."""
    cobalt = dialect_of("cobalt")
    assert cobalt is not None
    return replace(cobalt, name=name, title="Mine", tokens={"{jobid}": "%jobid%", "{name}": "%n"},
                   rows=table((Row("--jobname", "Name"), streams("--output", "--error", "--inputfile"))),
                   spellings=(), folders=True, **more)  # type: ignore[arg-type]


@pytest.fixture
def known() -> Iterator[dict[str, Dialect]]:
    """The dialects that are known by name; the one that a test adds goes again."""
    yield rows._DIALECTS
    rows._DIALECTS.pop("mine", None)


def script(*directives: str) -> bytes:
    return "".join(["#!/bin/sh\n", *(f"#COBALT {text}\n" for text in directives), "./a\n"]).encode()


def said(document: Document) -> dict[str, str]:
    job = next(job for job, _ in document.jobs())
    return {tag: str(job.value(tag)) for tag in ("InputFile", "OutputFile", "ErrorFile") if job.value(tag)}


def test_streams_are_spelled_by_the_tokens(known: dict[str, Dialect]) -> None:
    """A token of the dialect is a token of the document; a literal brace stays one; nothing is doubled."""
    mine = translator(plain())
    text = script("-o a.%jobid%.%n", "-e b{c}%x", "-i in").decode()
    document = mine.read(text.encode(), ReadContext())
    assert said(document) == {"InputFile": "in", "OutputFile": "a.{jobid}.{name}", "ErrorFile": "b{{c}}%x"}
    assert mine.write(document, WriteContext()) == (
        "#!/bin/sh\n#COBALT -o a.%jobid%.%n\n#COBALT -e b{c}%x\n#COBALT -i in\n./a\n")


@pytest.mark.parametrize("tag", ["InputFile", "OutputFile", "ErrorFile"])
def test_a_plain_row_cannot_hold_file_names(tag: str) -> None:
    with pytest.raises(ValueError, match=f"{tag} wants common.streams"):
        replace(plain(), rows=(Row("--stdout", tag),))


@pytest.mark.parametrize(("source", "directives", "expected", "words"), [
    ("slurm", "#SBATCH -o f\n", ["#COBALT -o f", "#COBALT -e f"],
     "ErrorFile: without one Slurm sends both streams to one file"),
    ("slurm", "#SBATCH -o f\n#SBATCH -e g\n", ["#COBALT -o f", "#COBALT -e g"], ""),
    # the stream that leads has no file: it goes into that of the manager, never into the file of the one that follows
    ("pbspro", "#PBS -j oe\n#PBS -e b\n", ["#COBALT -o %jobid%.output", "#COBALT -e %jobid%.output"],
     "ErrorFile: both streams are sent to %jobid%.output, which Mine itself makes for OutputFile"),
])
def test_streams_that_the_source_joins(known: dict[str, Dialect], source: str, directives: str, expected: list[str],
                                       words: str) -> None:
    document = get(source).read(f"#!/bin/sh\n{directives}./a\n".encode(), ReadContext())
    context = WriteContext(Findings("s"), policy=Policy.WARN)
    text = translator(plain()).write(document, context)
    assert [line for line in text.splitlines() if line.startswith("#COBALT")] == expected
    assert any(words in f.message for f in context.findings if f.subject == "ErrorFile") is bool(words)
    if source == "pbspro":
        bare = WriteContext(Findings("s"), policy=Policy.WARN)
        assert "#COBALT" not in translator(plain(files=())).write(document, bare)
        assert "keeps both streams apart" in next(f.message for f in bare.findings if f.subject == "ErrorFile")


def test_what_a_dialect_brings_is_on_the_pages(known: dict[str, Dialect]) -> None:
    translator(plain(examples={"job name": "--jobname x"}, gaps={"own": "only it knows"}, without={"stdin": "no"}))
    assert "mine" in known
    assert examples()["job name"]["mine"] == "--jobname x" and examples()["job name"]["cobalt"] == "--jobname x"
    assert gaps()["own"] == "only it knows" and without()["stdin"] == {"mine": "no"}


def test_lint_knows_its_variables(known: dict[str, Dialect], monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable of a dialect that brought its table is foreign in the scripts of others, not in its own."""
    mine = plain(body=Facts("mine", "Mine", ("MINE_",), {"MINE_ID": "job_id"}, {}, {}))
    translator(mine)
    assert all_facts()["mine"].variables == {"MINE_ID": "job_id"}
    findings = lint("slurm", b"#!/bin/sh\n#SBATCH -n 1\necho $MINE_ID\n")
    assert [f.message for f in findings if f.rule == "SSS535"] == [
        "MINE_ID is a variable of Mine; Slurm does not set it"]


def test_slots_and_folders_are_facts_of_a_dialect() -> None:
    slots = {name for name in ("slurm", "pbspro", "torque", "lsf", "sge", "cobalt", "htcondor", "flux")
             if (dialect := dialect_of(name)) is not None and dialect.slots}
    assert slots == {"lsf", "sge"}
