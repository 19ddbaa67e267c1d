"""Records on the command line and as tables: streams, counts, and what has no column."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from io import RawIOBase
from itertools import islice
from pathlib import Path

import pytest

from sssjob.cli import main
from sssjob.errors import UsageError
from sssjob.findings import Policy
from sssjob.translators import get
from sssjob.translators.base import ReadContext, WriteContext
from sssjob.translators.records import csv, jsonl, pbs_acct, sacct
from sssjob.translators.records.base import REASONS
from sssjob.translators.records.stream import texts
from sssjob.translators.records.table import COLUMNS
from sssjob.xml.reader import read_document
from tests.forks import command

FIXTURES = Path(__file__).parents[1] / "fixtures"
SACCT = FIXTURES / "slurm-22.05.8" / "records" / "sacct.psv"
PBS = FIXTURES / "openpbs-23.06.06" / "records" / "accounting.log"
DOCS = Path(__file__).parents[2] / "docs" / "records.md"
SAMPLES = os.environ.get("SSSJOB_SAMPLES")


def convert(data: bytes, *arguments: str) -> tuple[int, str, str]:
    done = subprocess.run([*command(), "convert", *arguments], input=data, capture_output=True,
                          check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_standard_input_as_a_stream() -> None:
    code, out, err = convert(SACCT.read_bytes(), "-f", "sacct", "-t", "sss", "--option", "timezone=UTC")
    assert code == 0 and err.endswith("-: 81 records read: 81 given as 41 jobs, 0 rejected\n")
    streamed = read_document(out)
    context = ReadContext(options={"timezone": "UTC"})
    assert [j for j, _ in streamed.jobs()] == [j for j, _ in sacct.TRANSLATOR.read(SACCT.read_bytes(), context).jobs()]


def test_counts_for_machines_and_status_of_nothing_taken() -> None:
    code, out, err = convert(b"one\ntwo\n", "-f", "pbs-acct", "-t", "jsonl", "--json")
    assert code == 1 and out == ""
    assert json.loads(err.splitlines()[-1]) == {"type": "counts", "file": "-", "read": 2, "given": 0, "rejected": 2,
                                                "jobs": 0, "reasons": {"columns": 2}}


#: A value of each option of writing.
VALUES = {"created": "1795251610", "site": "S", "benchmark": "HEPscore23 15.3", "origin": "1795000000",
          "fields": "id,user", "guard": "yes"}
WRITTEN = [(name, option, VALUES.get(option, "0.3")) for row in DOCS.read_text().splitlines()
           if row.startswith("| `") and row.count("|") == 4 and any(w in row for w in ("written", "CSV"))
           for name in re.findall(r"`([\w-]+)`", row.split("|")[1])
           for option in re.findall(r"`([a-z]+)[`=]", row.split("|")[3]) if (name, option) != ("jsonl", "guard")]


@pytest.mark.parametrize(("name", "option", "value"), WRITTEN)
def test_options_of_writing_that_the_docs_name(capsys: pytest.CaptureFixture[str], name: str, option: str,
                                               value: str) -> None:
    """``site`` of car and ur2 was asked for when the first job came, and refused before that."""
    code = main(["convert", "-f", "pbs-acct", str(PBS), "-t", name, "--option", f"{option}={value}", "-o", os.devnull])
    assert "no option" not in capsys.readouterr().err and code in (0, 1)     # swf: no job may begin before its origin


def test_strict_and_unknown_options() -> None:
    good = b"JobID|State\n1|PENDING\n"
    assert convert(good + b"x|y\n", "-f", "sacct", "-t", "jsonl")[0] == 0
    assert convert(good + b"x|y\n", "-f", "sacct", "-t", "jsonl", "--strict")[0] == 1
    code, out, err = convert(good, "-f", "sacct", "-t", "csv", "--option", "zone=UTC")
    assert (code, out) == (2, "") and "no option 'zone' of sacct or csv" in err
    code, out, err = convert(b"JobID|Submit\n1|2026-01-01T00:00:00\n", "-f", "sacct", "-t", "csv")
    assert code == 2 and out == "" and "names no zone" in err
    code, out, err = convert(good, "-f", "csv", "-t", "sss")
    assert code == 2 and "can be written, not read" in err


def test_to_a_file(tmp_path: Path) -> None:
    target = tmp_path / "jobs.csv"
    assert convert(b"JobID|State\n1|PENDING\n", "-f", "sacct", "-t", "csv", "-o", str(target))[:2] == (0, "")
    assert target.read_text().splitlines()[1].startswith(",1,")
    assert convert(b"", "-f", "sacct", "-t", "csv", str(tmp_path / "none"))[0] == 3


class Endless(RawIOBase):
    """A pipe that never ends, and how much was taken from it."""

    def __init__(self, line: bytes) -> None:
        super().__init__()
        self.line, self.taken = line, 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        self.taken += 1
        return self.line * 100


def test_nothing_is_gathered() -> None:
    pipe = Endless(b"11/21/2026 08:20:28;E;2.s;start=100 end=110 Exit_status=0 exec_host=n/0\n")
    assert pbs_acct.TRANSLATOR.stream is not None
    stream = pbs_acct.TRANSLATOR.stream(pipe, ReadContext())    # type: ignore[arg-type]  # what a pipe has of it
    pieces: Iterator[str] = texts(stream, get("sss"), WriteContext(), "log")
    assert sum(piece.count("<Job>") for piece in islice(pieces, 10)) == 2560
    assert pipe.taken <= 28


def test_table_has_the_documented_columns() -> None:
    text = DOCS.read_text(encoding="utf-8")
    for c in COLUMNS:
        assert f"| `{c.name}` | {c.unit} | {c.source} |" in text
    for reason, why in REASONS.items():
        assert f"| `{reason}` | {why} |" in text


def test_rows_of_a_heterogeneous_job() -> None:
    document = sacct.TRANSLATOR.read(SACCT.read_bytes(), ReadContext(options={"timezone": "UTC"}))
    context = WriteContext(options={"fields": "id,part,processors,wall_s,mem_total_bytes"})
    rows = [json.loads(line) for line in jsonl.TRANSLATOR.write(document, context).splitlines()]
    assert [r for r in rows if r["id"] == "10"] == [
        {"id": "10", "part": "10+0", "processors": 1, "wall_s": 3, "mem_total_bytes": 100 << 20},
        {"id": "10", "part": "10+1", "processors": 2, "wall_s": 3, "mem_total_bytes": 200 << 20}]
    assert {f.subject for f in context.findings} >= {"Extension MaxVMSize"}
    assert csv.TRANSLATOR.write(document, context).splitlines()[1] == "1,,1,4,104857600"


def test_table_refuses_what_it_does_not_know() -> None:
    document = sacct.TRANSLATOR.read(b"JobID|JobName|Comment\n1|=cmd()|x\n", ReadContext())
    with pytest.raises(UsageError, match="no column 'x'"):
        csv.TRANSLATOR.write(document, WriteContext(options={"fields": "x"}))
    assert csv.TRANSLATOR.write(document, WriteContext(options={"fields": "name"})) == "name\n=cmd()\n"
    assert csv.TRANSLATOR.write(document, WriteContext(options={"fields": "name", "guard": "yes"})) == "name\n'=cmd()\n"
    context = WriteContext(policy=Policy.REJECT)
    csv.TRANSLATOR.write(document, context)
    assert context.findings.rejected


@pytest.mark.skipif(SAMPLES is None, reason="SSSJOB_SAMPLES names no folder of samples")
@pytest.mark.parametrize(("name", "path", "options", "read", "jobs", "reasons"), [
    ("sacct", "slurm/habrok-sacct-37col.psv", {"timezone": "Europe/Amsterdam"}, 97, 40, {}),
    ("sacct", "slurm/xdmod-sacct-26col.log", {
        "timezone": "America/New_York", "columns": "JobID,JobIDRaw,Cluster,Partition,QOS,Account,Group,GID,User,UID,"
        "Submit,Eligible,Start,End,Elapsed,ExitCode,State,NNodes,NCPUS,ReqCPUS,ReqMem,ReqTRES,AllocTRES,Timelimit,"
        "NodeList,JobName"}, 5, 5, {}),
    ("sacct", "slurm/apel-sacct-15col.log", {
        "timezone": "UTC", "columns": "JobID,JobName,User,Account,Start,End,Elapsed,CPUTimeRAW,Partition,NCPUS,NNodes,"
        "NodeList,MaxRSS,MaxVMSize,State"}, 4, 1, {"orphan": 2, "number": 1}),
    ("sacct-json", "slurm/sarc-mila_1706227200.json", {}, 7, 7, {}),
    ("pbs-acct", "pbs/apel-torque.log", {}, 3, 3, {}),
    ("pbs-acct", "pbs/hnormalise-torque.log", {}, 3, 3, {}),
    ("pbs-acct", "pbs/pbsparse-openpbs.log", {}, 1, 1, {}),
    ("pbs-acct", "pbs/xdmod-pbs.log", {}, 4, 4, {}),
    ("sge-acct", "sge/apel-accounting", {}, 2, 2, {}),
    ("sge-acct", "sge/xdmod-accounting", {}, 1, 1, {}),
    ("sge-acct", "sge/xdmod-uge-accounting", {}, 1, 1, {}),
    ("lsf-acct", "lsf/apel-lsb.acct", {}, 1, 1, {}),
    ("lsf-acct", "lsf/xdmod-lsb.acct", {}, 1, 1, {}),
    ("swf", "swf/accasim-a.swf", {}, 14, 14, {}),
])
def test_public_samples(name: str, path: str, options: dict[str, str], read: int, jobs: int,
                        reasons: dict[str, int]) -> None:
    from sssjob.translators.records.base import RecordTranslator

    reader = get(name)
    assert isinstance(reader, RecordTranslator) and reader.stream is not None
    with (Path(str(SAMPLES)) / "accounting-samples" / path).open("rb") as file:
        stream = reader.stream(file, ReadContext(path, options=options))
        made = sum(1 for _ in stream)
    assert (stream.counts.read, made, dict(stream.counts.reasons)) == (read, jobs, reasons)


def test_parquet(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    target = tmp_path / "jobs.parquet"
    code, out, err = convert(SACCT.read_bytes(), "-f", "sacct", "-t", "parquet", "--option", "timezone=UTC",
                             "-o", str(target))
    assert (code, out) == (0, "") and err.endswith("81 records read: 81 given as 41 jobs, 0 rejected\n")
    table = parquet.read_table(target)
    assert table.column_names == [c.name for c in COLUMNS]
    rows = [json.loads(line) for line in convert(SACCT.read_bytes(), "-f", "sacct", "-t", "jsonl", "--option",
                                                 "timezone=UTC")[1].splitlines()]
    assert [{k: v for k, v in row.items() if v is not None} for row in table.to_pylist()] == rows
    assert table.schema.field("start").metadata == {b"unit": b"epoch s"}


def test_parquet_of_a_document_and_what_does_not_fit(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    text = (b"<JobGroup><Id>g</Id><Job><Id>1</Id><Charge>1.0000000001</Charge></Job><Job><Id>2</Id><Charge>2.5</Charge>"
            b"</Job></JobGroup>")
    target = tmp_path / "jobs.parquet"
    code, _, err = convert(text, "-f", "sss", "-t", "parquet", "--policy", "warn", "--option", "fields=id,charge",
                           "-o", str(target))
    assert code == 0 and "a value does not fit into column charge" in err
    assert [(r["id"], str(r["charge"])) for r in parquet.read_table(target).to_pylist()] == [
        ("1", "None"), ("2", "2.500000000")]
    with pytest.raises(UsageError, match="parquet is no text"):
        get("parquet").write(sacct.TRANSLATOR.read(b"JobID\n1\n", ReadContext()), WriteContext())


# -- privacy
@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("key").write_text("a key of sixteen bytes or more")
    Path("p.toml").write_text('key_file = "key"\n[properties]\nUser = "pseudonym"\nName = "redact"\n')
    Path("log").write_bytes(PRIVATE)


PRIVATE = b"JobID|JobName|User|State|AdminComment\n1|SECRET|SECRET|COMPLETED|x\n2|b|SECRET|PENDING|x\n"


@pytest.mark.usefixtures("private")
@pytest.mark.parametrize("target", ["sss", "csv", "jsonl", "ur1"])
def test_names_in_records_are_gone(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["convert", "log", "-f", "sacct", "-t", target, "--privacy", "p.toml"]
    if target == "ur1":         # holds when it was made, else now
        words += ["--option", "created=1795251000"]
    assert (main(words), main([*words, "-o", "out"])) == (0, 0)
    text = capsys.readouterr().out
    assert text == Path("out").read_text() and "SECRET" not in text and text.count("u-") == 2


@pytest.mark.usefixtures("private")
@pytest.mark.parametrize(("words", "message"), [
    (("-f", "sacct", "-t", "sss-json"), "--privacy is for records: sacct or sss-json is no format of them"),
    (("-f", "slurm", "-t", "sss"), "--privacy is for records: slurm or sss"),
    (("-f", "sacct", "-t", "sss", "--explain"), "without --explain"),
    (("-f", "sacct", "-t", "sss", "--out", "d"), "without --out"),
])
def test_where_names_would_stay_it_is_refused(words: tuple[str, ...], message: str,
                                             capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "log", *words, "--privacy", "p.toml"]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and message in captured.err


@pytest.mark.usefixtures("private")
def test_a_wrong_profile_converts_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    Path("p.toml").write_text("least = 0\n")
    assert main(["convert", "log", "-f", "sacct", "-t", "csv", "--privacy", "p.toml"]) == 1
    captured = capsys.readouterr()
    assert captured.out == "" and "least" in captured.err
