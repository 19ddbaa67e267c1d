"""The contributors' book: whoever follows it gets what it promises.

The blocks of ``docs/contributing/dialect.md`` that name a file are put together, registered as an installed plug-in and
held to the same laws as the built-in dialects and readers.
"""

from __future__ import annotations

import ast
import gzip
import re
import sys
import tomllib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from sssjob import findings
from sssjob.cli import main
from sssjob.derive.coverage import PROBES, cell
from sssjob.derive.options import KEPT, read_as
from sssjob.document.model import Document
from sssjob.errors import RejectedError
from sssjob.findings import Findings, Policy
from sssjob.rules import RULES, Rule
from sssjob.translators import ReadContext, WriteContext, get, registry
from sssjob.translators import lint as lint_module
from sssjob.translators.lint import Check, lint
from sssjob.translators.records.base import REASONS, RecordTranslator
from sssjob.translators.scripts import rows
from tests.cases import Cases
from tests.docs.test_words import undocumented
from tests.translators import test_scripts_matrix as matrix

BOOK = Path(__file__).parents[2] / "docs" / "contributing"
BLOCK = re.compile(r"^```\w+ file=(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def files() -> dict[str, str]:
    """Name and text of each file that the chapter builds; blocks of one file follow each other as the formatter of the
    project wants it."""
    texts: dict[str, str] = {}
    for name, text in BLOCK.findall((BOOK / "dialect.md").read_text()):
        texts[name] = f"{texts[name]}\n\n{text}" if name in texts else text
    return texts


FILES = files()
SCRIPTS = [name for name in FILES if name.endswith(".sh")]
NAMES = ("oar", "oar-jobs")


@pytest.fixture(scope="module", autouse=True)
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder with the plug-in of the chapter, installed for as long as these tests run."""
    folder = tmp_path_factory.mktemp("plugin")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    project = tomllib.loads(FILES["pyproject.toml"])["project"]
    entries = project["entry-points"][registry.GROUP]
    modules = tomllib.loads(FILES["pyproject.toml"])["tool"]["setuptools"]["py-modules"]
    # else setuptools refuses to build it
    assert sorted(modules) == sorted({place.partition(":")[0] for place in entries.values()})
    info = folder / f"sssjob_oar-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    (info / "entry_points.txt").write_text("\n".join(
        [f"[{registry.GROUP}]", *(f"{name} = {place}" for name, place in entries.items())]))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield folder
    for name in NAMES:
        registry._loaded.pop(name, None)
        rows._DIALECTS.pop(name, None)
    for module in [name for name in sys.modules if name.startswith("sssjob_oar")]:
        del sys.modules[module]


def script(prefix: str, *directives: str) -> bytes:
    return "".join(["#!/bin/sh\n", *(f"{prefix} {text}\n" for text in directives), "./a\n"]).encode()


def written(to: str, document: Document) -> tuple[list[str], Findings]:
    """The directives of the script that a document becomes, and what was told on the way."""
    context = WriteContext(Findings("s"), policy=Policy.WARN)
    text = get(to).write(document, context)
    return [line for line in text.splitlines() if re.match(r"#(OAR|SBATCH) ", line)], context.findings


def test_the_modules_keep_to_what_those_of_sssjob_keep_to() -> None:
    """Else the last step of the chapter, in which they become modules of sssjob, fails."""
    assert [(name, undocumented(ast.parse(text))) for name, text in FILES.items() if name.endswith(".py")] == [
        ("sssjob_oar.py", []), ("sssjob_oar_jobs.py", [])]


def test_the_chapter_registers_what_it_builds() -> None:
    assert set(NAMES) <= set(registry.names())
    assert [get(name).title for name in NAMES] == ["OAR batch script", "OAR jobs"]


# --- the dialect --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", SCRIPTS)
def test_the_dialect_reads_what_it_writes(plugin: Path, name: str) -> None:
    matrix.test_written_reads_the_same("oar", plugin / name)
    matrix.test_document_goes_through_xml("oar", plugin / name)


@pytest.mark.parametrize("name", SCRIPTS)
def test_its_scripts_go_to_every_dialect(plugin: Path, name: str) -> None:
    document = matrix.sample("oar", plugin / name)
    with Cases() as case:
        for to in (*matrix.FORMATS, "oar"):
            with case(to):
                matrix.check_laws("oar", document, to)


def test_scripts_of_every_dialect_come_to_it() -> None:
    with Cases() as case:
        for name, path in matrix.SAMPLES:
            try:
                document = matrix.read(name, path.read_bytes())
            except RejectedError:
                continue
            with case(f"{name} {path.name}"):
                matrix.check_laws(name, document, "oar")


def expected() -> Iterator[tuple[str, list[str], str, list[str]]]:
    """(source, its directives, target, directives) of each paragraph of the chapter's table of expectations."""
    for paragraph in FILES["expected.txt"].strip().split("\n\n"):
        by_format: dict[str, list[str]] = {}
        for line in paragraph.splitlines():
            name, _, directive = line.partition(" ")
            by_format.setdefault(name, []).extend([directive.strip()] if directive.strip() else [])
        (source, options), (target, directives) = by_format.items()
        yield source, options, target, directives


@pytest.mark.parametrize(("source", "options", "target", "directives"), list(expected()))
def test_what_the_manual_says(source: str, options: list[str], target: str, directives: list[str]) -> None:
    """What is written, or, where nothing is, that a finding says so."""
    text = "\n".join(["#!/bin/sh", *options, "./a", ""])
    lines, findings = written(target, get(source).read(text.encode(), ReadContext(policy=Policy.WARN)))
    assert lines == directives
    assert directives or any(f.kind == "dropped" for f in findings)


def test_each_option_is_a_property_or_a_named_gap() -> None:
    dialect = rows.dialect_of("oar")
    assert dialect is not None
    kept = {attribute for attribute, options in dialect.examples.items() if KEPT in read_as("oar", options)}
    assert kept == set(dialect.gaps) and not set(dialect.without) & set(dialect.examples)
    for options in dialect.examples.values():
        document = get("oar").read(script("#OAR", options), ReadContext())
        lines, findings = written("oar", document)
        assert [str(f) for f in findings if f.kind == "dropped"] == []
        assert get("oar").read(script("#OAR", *(line[5:] for line in lines)), ReadContext()).root == document.root


@pytest.mark.parametrize(("text", "rules"), [
    (b"#!/bin/sh\n#OAR --nmae x\n", ["SSS505"]),
    (b"#!/bin/sh\n#OAR -a x\n", ["SSS505"]),
    (b"#!/bin/sh\n#OAR-n x\n", ["SSS506"]),
    (b"./a\n#OAR -n x\n", ["SSS506"]),
    (b"#!/bin/sh\n#OAR -n a\n#OAR -n b\n", ["SSS524"]),
    (b"#!/bin/sh\n#OAR -t a\n#OAR -t b\n", []),
    (b"#!/bin/sh\n./a\n#OAR -n x\n", ["SSS521"]),
    (b"#!/bin/sh\n#OAR -n x\necho $SLURM_JOB_ID\n", ["SSS535"]),
])
def test_lint_checks_its_scripts(text: bytes, rules: list[str]) -> None:
    assert [f.rule for f in lint("oar", text)] == rules


@pytest.mark.parametrize("name", ["with blank ", "", "a\nb"])
def test_no_value_is_written_that_reads_as_another(name: str) -> None:
    document = get("oar").read(script("#OAR", "-n x"), ReadContext())
    job = next(job for job, _ in document.jobs())
    job.set_as_is("Name", name)
    lines, findings = written("oar", document)
    assert lines == [] and ([f.subject for f in findings if f.kind == "dropped"] == ["Name"] or not name)


def test_nothing_is_lost_in_silence() -> None:
    """As the coverage page shows it of a dialect that is built in."""
    assert not {label for label, inside in PROBES.items() if cell(get("oar"), inside) == "silent"}


# --- the reader of records ----------------------------------------------------------------------------------------

def records(data: bytes) -> tuple[Document, Findings]:
    context = ReadContext("jobs.jsonl", options={"machine": "grid"})
    return get("oar-jobs").read(data, context), context.findings


def test_records_become_jobs() -> None:
    document, findings = records(FILES["jobs.jsonl"].encode())
    jobs = [{name: str(job.value(name)) for name in ("Id", "User", "State", "StartTime", "ExitCode") if job.value(name)
             is not None} for job, _ in document.jobs()]
    assert jobs == [
        {"Id": "42", "User": "ada", "State": "Completed", "StartTime": "1760000060", "ExitCode": "1"},
        {"Id": "43", "User": "ada", "State": "Completed"}]
    assert [(f.rule, f.line) for f in findings] == [("SSS540", 3)]


@pytest.mark.parametrize("data", [
    b"", b"\n", b"{", b"[]", b'{"job_id": 1}', b"\xff\xfe\x00", b'{"job_id": 1, "state": "Terminated", "cores": "x"}',
    b'{"job_id": 1, "state": "Terminated", "start_time": "yesterday"}', b"[" * 100_000, b'{"job_id": 1e999}',
    b'{"job_id": "' + b"x" * 70_000 + b'", "state": "Running"}', gzip.compress(b"{}", mtime=0), *(
        FILES["jobs.jsonl"].encode()[:at] for at in range(0, 400, 13))])
def test_nothing_stops_the_reader(data: bytes) -> None:
    """Whatever comes in: each line becomes a job or is rejected with a reason, and the counts add up."""
    translator = get("oar-jobs")
    assert isinstance(translator, RecordTranslator) and translator.stream is not None
    stream = translator.stream(BytesIO(data), ReadContext("x"))
    jobs, counts = list(stream), stream.counts
    assert counts.read == counts.given + counts.rejected and counts.jobs == len(jobs)
    assert set(counts.reasons) <= set(REASONS) - {"unread"}


# --- a rule -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("directives", "expected"), [
    (("-N 1", "-J test"), [("SSS599", "warning", 3, 9, "--job-name test: the name says nothing")]),
    (("-J testing",), []),
])
def test_the_rule_of_the_book(monkeypatch: pytest.MonkeyPatch, directives: tuple[str, ...],
                              expected: list[object]) -> None:
    blocks = dict[str, Any]()
    exec("\n".join(text for _, text in BLOCK.findall((BOOK / "rule.md").read_text())), blocks)
    monkeypatch.setitem(RULES, "SSS599", Rule(*blocks["ROW"]))
    monkeypatch.setitem(findings._BY_RULE, "SSS599", ("warning", "meaning", "looks"))
    monkeypatch.setattr(lint_module, "CHECKS", (*lint_module.CHECKS, Check("SSS599", blocks["says_nothing"])))
    found = lint("slurm", script("#SBATCH", *directives))
    assert [(f.rule, f.severity, f.line, f.column, f.message) for f in found] == expected


# --- the commands -------------------------------------------------------------------------------------------------

def test_the_commands_of_the_chapter(plugin: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    rates = tmp_path / "rates.toml"
    rates.write_text('name = "grid"\nversion = "1"\ncurrency = "EUR"\n[[rate]]\ntype = "VBR"\nname = "Processors"\n'
                     'rate = "0.5"\nper = "hour"\n')

    def run(*words: object) -> tuple[int, str]:
        status = main([str(word) for word in words])
        return status, capsysbinary.readouterr().out.decode()

    for form in ("oar", "auto"):
        status, text = run("convert", "-f", form, "-t", "slurm", plugin / SCRIPTS[0])
        assert status == 0 and "#SBATCH --nodes=2\n" in text
    status, text = run("charge", "-f", "oar-jobs", "--option", "machine=grid", "--rates", rates, plugin / "jobs.jsonl")
    assert status in (0, 1) and "4.00" in text      # 8 processors for an hour
    assert run("lint", "-f", "oar", plugin / SCRIPTS[0])[0] == 0
