"""One way in for texts of all formats, and the gate."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from sssjob.conversion.converting import Options
from sssjob.conversion.intake import format_of, gate, take
from sssjob.errors import FormatError, UsageError
from sssjob.limits import LIMITS
from sssjob.translators.scripts import reading

SCRIPTS = sorted((Path(__file__).parents[1] / "fixtures/scripts").glob("*/*.s*"))


@pytest.mark.parametrize(("text", "name"), [
    (b"<Job><Id>1</Id></Job>", "sss"), (b'{"Job": {}}', "sss-json"), (b"#!/bin/sh\n#SBATCH -n 1\n", "slurm"),
    # what nobody knows, but a reader of documents can tell more of
    (b"<Jbo/>", "sss"), (b'{"jbo": 1}', "sss-json"), (b"", "sss"), (b" \n", "sss"),
    (gzip.compress(b"<Job/>", mtime=0), "sss"),
    ("<Job/>".encode("utf-16"), "sss"), ("<Job/>".encode("cp037"), "sss"), (b"\xef\xbb\xbf<Jbo/>", "sss"),
])
def test_formats(text: bytes, name: str) -> None:
    assert format_of(text)[0].name == name


@pytest.mark.parametrize("text", [b"hello", b"#!/bin/sh\ndate\n", b"#PBS -N x\n#SBATCH -n 2\n",
                                  "gr\u00fc\u00df".encode() * 400])
def test_a_text_of_no_format_or_of_two(text: bytes) -> None:
    with pytest.raises(FormatError, match="name one with --from"):
        take(text)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_script_that_was_recognised_is_not_parted_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, name = path.read_bytes(), path.parent.name
    named = take(data, path.name, source=name)
    with monkeypatch.context() as patch:
        patch.setattr(reading, "lines_of", None)
        recognised = take(data, path.name)
    assert recognised.reader.name == name
    assert (recognised.document, list(recognised.findings)) == (named.document, list(named.findings))


def test_of_a_script_that_is_too_large_to_be_recognised_whole_all_is_read() -> None:
    text = b"#!/bin/sh\n#SBATCH -n 1\n" + b"#" * LIMITS.script_bytes + b"\ndate\n"
    assert take(text).document.files["Script"].text.endswith("\ndate\n")


def test_options_are_those_of_the_format() -> None:
    with pytest.raises(UsageError, match="no option 'zone' of slurm"):
        take(b"#!/bin/sh\n#SBATCH -n 1\n", source="slurm", options=Options({"zone": "x"}))


def test_the_gate_has_the_place() -> None:
    """Line, column and source line of a document in XML, whoever asks."""
    text = b"<Job>\n  <Executable>#Script</Executable>\n</Job>\n"
    found = list(gate(take(text, "a.xml").document))
    assert [(f.rule, f.rejects, f.place, bool(f.excerpt)) for f in found] == [("SSS311", True, "a.xml:2:3", True)]


@pytest.mark.parametrize("command", ["explain", "match", "show", "check"])
def test_a_document_needs_no_other_format(command: str) -> None:
    """Commands on one document start fast: nothing of scripts, specifications or records is imported."""
    code = ("import sys, runpy\n"
            "try:\n    from sssjob.cli import main; main(sys.argv[1:])\n"
            "finally:\n    print([m for m in sys.modules if m.startswith('sssjob.translators.') and m.split('.')[2] in "
            "('scripts', 'records', 'bodies') or m in ('psij', 'sssjob.translators.specs.psij')])")
    files = ["examples/hello.xml"] * (2 if command == "match" else 1)
    process = subprocess.run([sys.executable, "-c", code, command, *files], capture_output=True, text=True, check=True)
    assert process.stdout.splitlines()[-1] == "[]"
