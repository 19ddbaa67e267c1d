"""The laws, for every script format and every script: reading what was written gives the same, writing what was read is
a fixed point, and what does not carry over is named."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sssjob.document.model import Document, Job, Property
from sssjob.errors import RejectedError
from sssjob.findings import Findings, Policy
from sssjob.translators import ReadContext, WriteContext, get
from sssjob.translators.registry import BUILT_IN
from sssjob.xml.reader import read_document
from sssjob.xml.writer import write_document

FORMATS = tuple(name for name, module in BUILT_IN.items() if ".scripts." in module)
FIXTURES = Path(__file__).parents[1] / "fixtures" / "scripts"


def _samples() -> Iterator[tuple[str, Path]]:
    """Those of the project, and public ones below ``SSSJOB_SAMPLES`` or its ``scripts-corpus``, a folder for each
    format."""
    public = Path(os.environ.get("SSSJOB_SAMPLES") or FIXTURES)
    for folder in (FIXTURES, public, public / "scripts-corpus"):
        for name in FORMATS:
            yield from ((name, path) for path in sorted((folder / name).glob("*.s[hu]*")) if path.suffix != ".json")


SAMPLES = list(dict.fromkeys(_samples()))
PAIRS = [pytest.param(name, path, to, id=f"{name}-{path.stem}-{to}") for name, path in SAMPLES for to in FORMATS]


def read(name: str, data: bytes) -> Document:
    return get(name).read(data, ReadContext(policy=Policy.WARN))


def sample(name: str, path: Path) -> Document:
    try:
        return read(name, path.read_bytes())
    except RejectedError:
        pytest.skip(f"{path.name} is refused")


def write(name: str, document: Document, **options: str) -> tuple[str, Findings]:
    context = WriteContext(Findings("s"), options=options)
    text = get(name).write(document, context)
    return text, context.findings


def job(document: Document) -> Job:
    return next(j for j, _ in document.jobs())


@pytest.mark.parametrize(("name", "path"), SAMPLES, ids=[f"{n}-{p.stem}" for n, p in SAMPLES])
def test_written_reads_the_same(name: str, path: Path) -> None:
    document = sample(name, path)
    text, findings = write(name, document)
    again = read(name, text.encode("utf-8", "surrogateescape"))
    if not any(f.kind == "dropped" for f in findings):
        assert again.root == document.root
    if "Script" in document.files and document.files["Script"].text.startswith("#!"):
        assert again.files == document.files


@pytest.mark.parametrize(("name", "path"), SAMPLES, ids=[f"{n}-{p.stem}" for n, p in SAMPLES])
def test_document_goes_through_xml(name: str, path: Path) -> None:
    document = sample(name, path)
    again = read_document(write_document(document).encode(), profile="3.1")
    assert [str(f) for f in again.findings or () if f.rejects] == []
    assert again.root == document.root and again.files == document.files
    assert write(name, again)[0] == write(name, document, layout="canonical")[0]


@pytest.mark.parametrize(("name", "path", "to"), PAIRS)
def test_writing_is_a_fixed_point(name: str, path: Path, to: str) -> None:
    text, _ = write(to, sample(name, path))
    again, _ = write(to, read(to, text.encode("utf-8", "surrogateescape")))
    assert again == text


def leaves(document: Document) -> dict[str, str]:
    """Option properties by tag and name; a command may come back as the script that starts it."""
    found: dict[str, str] = {}
    for item in job(document).items:
        if isinstance(item, Property) and item.tag not in ("Executable", "Arguments") and item.get(
                "name") != "Dialect":
            label = " ".join(filter(None, (item.tag, item.get("name"))))
            found[label] = found.get(label, "") + f"{item.text} {sorted(item.attributes.items())};"
    return found


@pytest.mark.parametrize(("name", "path", "to"), PAIRS)
def test_there_and_back_loses_what_was_named(name: str, path: Path, to: str) -> None:
    """Every property of the job that comes back otherwise is the subject of a finding of the first step."""
    document = sample(name, path)
    text, findings = write(to, document)
    back = read(name, write(name, read(to, text.encode("utf-8", "surrogateescape")))[0].encode(
        "utf-8", "surrogateescape"))
    told = {f.subject for f in findings}
    before, after = leaves(document), leaves(back)
    assert [label for label, value in before.items() if after.get(label) != value
            and not {label, label.split()[0]} & told] == []


@pytest.mark.parametrize(("name", "path", "to"), PAIRS)
def test_no_line_is_lost(name: str, path: Path, to: str) -> None:
    """But the first one, where the shell that an option names takes its place and a finding says so."""
    document = sample(name, path)
    text, findings = write(to, document)
    script = document.files.get("Script")
    body = [] if script is None else script.content().decode("utf-8", "surrogateescape").splitlines()
    if any(f.subject == "Shell" and "the first line of the script says it" in f.message for f in findings):
        del body[0]
    beside = get(to).files
    texts = beside(document, WriteContext(Findings("s"))).values() if beside is not None else (text,)
    kept = [line for one in texts for line in one.splitlines()]
    assert [line for line in body if line not in kept and f"#{line}" not in kept] == []
