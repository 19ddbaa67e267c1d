"""The laws, for every script format and every script: reading what was written gives the same, writing what was read is
a fixed point, and what does not carry over is named."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sssjob.document.model import Document, Job, Property
from sssjob.errors import RejectedError
from sssjob.findings import Findings, Policy
from sssjob.translators import ReadContext, WriteContext, get, names
from sssjob.translators.registry import BUILT_IN, SCRIPT_FORMATS
from sssjob.translators.scripts.base import dialect_of
from sssjob.xml.reader import read_document
from sssjob.xml.writer import write_document
from tests.cases import Cases

#: Those of installed plug-ins are held to the laws too.
FORMATS = tuple(name for name in names() if name in SCRIPT_FORMATS or (name not in BUILT_IN and dialect_of(name)))
FIXTURES = Path(__file__).parents[1] / "fixtures" / "scripts"


def _samples() -> Iterator[tuple[str, Path]]:
    """Those of the project, and public ones below ``SSSJOB_SAMPLES`` or its ``scripts-corpus``, a folder for each
    format."""
    public = Path(os.environ.get("SSSJOB_SAMPLES") or FIXTURES)
    for folder in (FIXTURES, public, public / "scripts-corpus"):
        for name in FORMATS:
            yield from ((name, path) for path in sorted((folder / name).glob("*.s[hu]*")) if path.suffix != ".json")


SAMPLES = list(dict.fromkeys(_samples()))
each_sample = pytest.mark.parametrize(("name", "path"), SAMPLES, ids=[f"{n}-{p.stem}" for n, p in SAMPLES])


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


@each_sample
def test_written_reads_the_same(name: str, path: Path) -> None:
    document = sample(name, path)
    text, findings = write(name, document)
    again = read(name, text.encode("utf-8", "surrogateescape"))
    if not any(f.kind == "dropped" for f in findings):
        assert again.root == document.root
    if "Script" in document.files and document.files["Script"].text.startswith("#!"):
        assert again.files == document.files


@each_sample
def test_document_goes_through_xml(name: str, path: Path) -> None:
    document = sample(name, path)
    again = read_document(write_document(document).encode(), profile="3.1")
    assert [str(f) for f in again.findings or () if f.rejects] == []
    assert again.root == document.root and again.files == document.files
    assert write(name, again)[0] == write(name, document, layout="canonical")[0]


@each_sample
def test_what_is_written_in_every_format(name: str, path: Path) -> None:
    """It is a fixed point, what it says of the job comes back or is told, and it has all lines of the body."""
    document = sample(name, path)
    with Cases() as case:
        for to in FORMATS:
            with case(to):
                check_laws(name, document, to)


def check_laws(name: str, document: Document, to: str) -> None:
    """What is written of a document for another format obeys the laws. name: the format that it was read from."""
    text, findings = write(to, document)
    read_again = read(to, text.encode("utf-8", "surrogateescape"))
    assert write(to, read_again)[0] == text
    assert lost_without_a_word(name, document, read_again, findings) == []
    assert lost_lines(document, to, text, findings) == []


def leaves(document: Document) -> dict[str, str]:
    """Option properties by tag and name; a command may come back as the script that starts it."""
    leaves: dict[str, str] = {}
    for item in job(document).items:
        if isinstance(item, Property) and item.tag not in ("Executable", "Arguments") and item.get(
                "name") != "Dialect":
            label = " ".join(filter(None, (item.tag, item.get("name"))))
            text = re.sub(r":1(?!\d)", "", item.text) if label.endswith("Array") else item.text     # a step of one
            leaves[label] = leaves.get(label, "") + f"{text} {sorted(item.attributes.items())};"
    return leaves


def lost_without_a_word(name: str, document: Document, elsewhere: Document, findings: Findings) -> list[str]:
    """Every property of the job that comes back otherwise, and is not the subject of a finding of the first step.

    elsewhere: what the other format reads of what was written in it.
    """
    text, on_the_way_back = write(name, elsewhere)
    back = read(name, text.encode("utf-8", "surrogateescape"))
    subjects = {f.subject for f in findings}
    subjects |= {f"Extension {f.subject.lstrip('-')}" for f in document.findings or ()
                 if f.rule in ("SSS504", "SSS505")}
    subjects |= {f.subject for f in on_the_way_back if "of root alone" in f.message or "-j oe says" in f.message
                 or "the job is no array; its index" in f.message}
    before, after = leaves(document), leaves(back)
    return [label for label, value in before.items() if after.get(label) != value
            and not {label, label.split()[0]} & subjects]


def lost_lines(document: Document, to: str, text: str, findings: Findings) -> list[str]:
    """The lines of the body that are gone, but for the first one, where the shell that an option names takes its place
    and a finding says so."""
    script = document.files.get("Script")
    body = [] if script is None else script.content().decode("utf-8", "surrogateescape").splitlines()
    if any(f.subject == "Shell" and "the first line of the script says it" in f.message for f in findings):
        del body[0]
    beside = get(to).files
    texts = beside(document, WriteContext(Findings("s"))).values() if beside is not None else (text,)
    kept = [line for one in texts for line in one.splitlines()]
    return [line for line in body if line not in kept and f"#{line}" not in kept]
