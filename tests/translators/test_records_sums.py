"""Sums over jobs as rows of a table: messages of APEL, aggregated CAR, what is rejected, no job of any of them."""

from __future__ import annotations

import json
import os
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from sssjob.cli import main
from sssjob.translators import get
from sssjob.translators.base import ReadContext, WriteContext
from sssjob.translators.recognise import recognise
from sssjob.translators.records.base import RecordTranslator, leaf
from sssjob.translators.records.stream import opened, pieces
from sssjob.translators.records.sums import SUMS

SAMPLES = os.environ.get("SSSJOB_SAMPLES")
DOCS = (Path(__file__).parents[2] / "docs" / "records.md").read_text()
MESSAGE = """APEL-summary-job-message: v0.2
Site: S
Month: 3
Year: 2026
GlobalUserName: None
VO: atlas
VOGroup: /atlas
VORole: Role=production
SubmitHost: ce
InfrastructureType: grid
ServiceLevelType: HEPSPEC
ServiceLevel: 11.4
NodeCount: 1
Processors: 8
EarliestEndTime: 1795251000
LatestEndTime: 1795252000
WallDuration: 100
CpuDuration: 90
NumberOfJobs: 7
%%
"""
ROW = {"site": "S", "month": "2026-03", "vo": "atlas", "vo_group": "/atlas", "vo_role": "Role=production",
       "submit_host": "ce", "infrastructure": "grid", "benchmark": "HEPSPEC 11.4", "nodes": 1, "processors": 8,
       "earliest_end": 1795251000, "latest_end": 1795252000, "wall_s": 100, "cpu_s": 90, "jobs": 7}
CAR = """<a:SummaryRecords xmlns:a="http://eu-emi.eu/namespaces/2012/11/aggregatedcomputerecord" xmlns:u="urn:u">
<a:SummaryRecord><a:Site>S</a:Site><a:Month>3</a:Month><a:Year>2026</a:Year><a:UserIdentity><a:Group>atlas</a:Group>
<a:GroupAttribute u:type="vo-group">/atlas</a:GroupAttribute><a:GroupAttribute u:type="vo-role">Role=production
</a:GroupAttribute></a:UserIdentity><a:SubmitHost>ce</a:SubmitHost><a:Infrastructure u:type="grid"/>
<a:EarliestEndTime>2026-11-21T08:50:00Z</a:EarliestEndTime><a:LatestEndTime>2026-11-21T09:06:40Z</a:LatestEndTime>
<a:WallDuration>PT100S</a:WallDuration><a:CpuDuration>PT90S</a:CpuDuration><a:ServiceLevel u:type="HEPSPEC">11.4
</a:ServiceLevel><a:NumberOfJobs>7</a:NumberOfJobs><a:NodeCount>1</a:NodeCount><a:Processors>8</a:Processors>
</a:SummaryRecord></a:SummaryRecords>"""


def rows(data: str | bytes) -> tuple[list[dict[str, Any]], dict[str, Any], list[str]]:
    reader, writer = get("apel-summary"), get("jsonl")
    reading, writing = ReadContext(), WriteContext()
    raw = data.encode() if isinstance(data, str) else data
    stream = opened(reader, BytesIO(raw), reading, writer)
    text = "".join(str(p) for p in pieces(stream, writer, writing, "x", reader))
    counts = stream.counts.record()
    assert counts["read"] == stream.counts.given + stream.counts.rejected
    return list(map(json.loads, text.splitlines())), counts, [f"{f.rule} {f.message}" for f in reading.findings]


def account(capsys: pytest.CaptureFixture[str], *line: str) -> tuple[int, str, str]:
    code = main(["account", *line])
    return code, *capsys.readouterr()


def test_totals_of_sums(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Jobs count as many as they are; times are those of all together, sizes those of each."""
    second = MESSAGE.split("\n", 1)[1].replace("WallDuration: 100", "WallDuration: 3600")
    (tmp_path / "m.txt").write_text(MESSAGE + second)
    (tmp_path / "car.xml").write_text(CAR)
    (tmp_path / "n.txt").write_text("APEL-summary-job-message: v0.3\nSite: S\nMonth: 3\nYear: 2026\n"
                                    "NormalisedWallDuration: 5\nNumberOfJobs: 2\n%%\n")
    code, out, err = account(capsys, "-f", "auto", *(str(tmp_path / n) for n in ("m.txt", "car.xml", "n.txt")), "--by",
                             "Extension:VO", "--by", "queue", "--every", "year", "--json")
    total, whole = (json.loads(line) for line in out.splitlines()[-2:])
    assert (code, total["key"]) == (0, {"Extension:VO": "atlas", "Queue": "-"})
    assert [json.loads(line)["format"] for line in err.splitlines()] == ["apel-summary", "car-summary", "apel-summary"]
    assert (total["period"], total["jobs"], total["wall_h"], total["processor_h"], total["cpu_h"]) == (
        "2026", 21, round(3800 / 3600, 4), round(8 * 3800 / 3600, 4), 0.075)
    assert whole["left_out"] == {"in sums without WallDuration": 2}


def test_names_are_not_folded_in_a_pipe(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    name = "a-site-with-a-name-" * 8
    (tmp_path / "m.txt").write_text(MESSAGE.replace("Site: S", f"Site: {name}"))
    out = account(capsys, "-f", "apel-summary", str(tmp_path / "m.txt"), "--by", "Extension:Site")[1]
    assert out.splitlines()[2].split()[:2] == [name, "7"]


@pytest.mark.parametrize("option", [("--every", "day"), ("--spread",), ("--rates", "r.toml"), ("--privacy", "p.toml")])
def test_what_sums_do_not_tell_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path, option: tuple[str, ...],
                                          monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.txt").write_text(MESSAGE)
    rates = 'name = "n"\nversion = "1"\n[[rate]]\ntype = "VBR"\nname = "Processors"\nrate = 1\n'
    (tmp_path / "r.toml").write_text(rates)
    (tmp_path / "p.toml").write_text("least = 2\n")
    code, out, err = account(capsys, "-f", "apel-summary", "m.txt", *option)
    assert (code, out) == (2, "") and f"{option[0]}" in err and "is for jobs; a sum tells the month" in err


@pytest.mark.parametrize("text", [MESSAGE, CAR], ids=["message", "car"])
def test_a_sum(text: str) -> None:
    records, counts, findings = rows(text)
    assert (records, findings) == ([ROW], [])
    assert (counts["given"], counts["jobs"]) == (1, 7)
    assert [t.name for t, _ in recognise(text.encode())] == ["apel-summary" if text is MESSAGE else "car-summary"]


def test_what_is_written_is_read() -> None:
    jobs = (b"JobID|User|State|Start|End|ElapsedRaw|TotalCPU|AllocCPUS\n" + b"".join(
        b"%d|a|COMPLETED|2026-11-%02dT10:00:00|2026-11-%02dT10:01:00|60|00:30|2\n" % (n, n, n) for n in range(1, 6)))
    document = get("sacct").read(jobs, ReadContext(options={"timezone": "UTC"}))
    text = get("apel-summary").write(document, WriteContext(options={"site": "S", "benchmark": "hepspec 2"}))
    records, counts, _ = rows(text)
    (row,) = records
    assert [row[k] for k in ("site", "month", "jobs", "wall_s", "cpu_s")] == ["S", "2026-11", 5, 300, 150]
    assert counts["jobs"] == 5


LOG = (b"JobID|User|State|Start|End|ElapsedRaw|TotalCPU|AllocCPUS|Partition|Cluster\n" + b"".join(
    b"%d|a|%s|2026-%02d-0%dT10:00:00|2026-%02d-0%dT10:01:00|60|00:30|%d|%s|c\n" % (
        n, b"RUNNING" if n == 9 else b"COMPLETED", 10 + n % 2, n, 10 + n % 2, n, 1 + n // 4, b"x" if n < 7 else b"y")
    for n in range(1, 10)))


def written(target: str, **options: str) -> tuple[str, list[str]]:
    document = get("sacct").read(LOG, ReadContext(options={"timezone": "UTC"}))
    context = WriteContext(options={"site": "S", **options})
    text = get(target).write(document, context)
    return text, [f"{f.rule} {f.subject}" for f in context.findings]


@pytest.mark.parametrize("target", ["apel-summary", "car-summary", "apel-sync"])
def test_a_run_is_counted_once(target: str) -> None:
    """Days of a log overlap: its jobs were sent twice, where the receiver knows single jobs by their names."""
    head, *lines = LOG.splitlines(keepends=True)
    texts = []
    for data in (LOG, b"".join([head, *lines, *lines[3:6]])):
        context = WriteContext(options={"site": "S"})
        texts.append(get(target).write(get("sacct").read(data, ReadContext(options={"timezone": "UTC"})), context))
    assert texts[0] == texts[1]
    assert [f.rule for f in context.findings if "another one tells" in f.message] == ["SSS546"]


def test_aggregated_records_are_written() -> None:
    """In the order of the example of the record; what it has no place for is told, the empty UserIdentity stands."""
    text, told = written("car-summary", benchmark="HEPSPEC 11.4")
    first = text.split("\n")[2]
    assert text.startswith('<?xml version="1.0" encoding="UTF-8"?>\n<SummaryRecords xmlns="http://eu-emi.eu/namespaces/2012'
                           '/11/aggregatedcomputerecord" xmlns:urf="http://eu-emi.eu/namespaces/2012/11/computerecord">\n')
    assert first == (
        "<SummaryRecord><Site>S</Site><Month>11</Month><Year>2026</Year><UserIdentity/><MachineName>c</MachineName>"
        '<Queue>x</Queue><Infrastructure urf:type="local"/><EarliestEndTime>2026-11-01T10:01:00Z</EarliestEndTime>'
        "<LatestEndTime>2026-11-03T10:01:00Z</LatestEndTime><WallDuration>PT120S</WallDuration><CpuDuration>PT60S</CpuDuration>"
        '<ServiceLevel urf:type="HEPSPEC">11.4</ServiceLevel><NumberOfJobs>2</NumberOfJobs><Processors>1</Processors>'
        "</SummaryRecord>")
    assert {"SSS546 Job", "SSS502 Job", "SSS503 Extension Site", "SSS503 Extension Infrastructure"} <= set(told)


@pytest.mark.parametrize("target", ["car-summary", "apel-summary"])
def test_what_is_written_adds_up(target: str) -> None:
    text, _ = written(target, benchmark="HEPSPEC 11.4")
    records, counts, findings = rows(text)
    assert (findings, counts["jobs"], counts["rejected"]) == ([], 8, 0)
    assert [sum(row[name] for row in records) for name in ("jobs", "wall_s", "cpu_s")] == [8, 480, 240]
    assert {row["benchmark"] for row in records} == {"HEPSPEC 11.4"}
    assert {row.get("queue") for row in records} == ({"x", "y"} if target == "car-summary" else {None})


def test_what_only_the_grid_knows_is_in_aggregated_records() -> None:
    facts = {"VO": "atlas & <co>", "VOGroup": "/atlas", "VORole": "Role=x", "Infrastructure": "grid",
             "Middleware": "arc", "ServiceLevel": "HEPSPEC 11.4, HEPscore23 15.3", "Site": "T"}
    document = get("sacct").read(LOG, ReadContext(options={"timezone": "UTC"}))
    for job, _ in document.jobs():
        job.put("GlobalUser", [leaf("GlobalUser", "/DC=x/CN=y")])
        job.put("Extension", [leaf("Extension", text, {"name": name, "type": "Grid"}) for name, text in facts.items()])
    context = WriteContext()
    text = get("car-summary").write(document, context)
    assert ('<UserIdentity><GlobalUserName urf:type="opensslCompat">/DC=x/CN=y</GlobalUserName>'
            '<Group>atlas &amp; &lt;co&gt;</Group><GroupAttribute urf:type="vo-group">/atlas</GroupAttribute>'
            '<GroupAttribute urf:type="vo-role">Role=x</GroupAttribute></UserIdentity>') in text
    assert '<Infrastructure urf:type="grid"/><Middleware urf:name="arc"/>' in text
    assert ("SSS501", "Extension ServiceLevel") in {(f.rule, f.subject) for f in context.findings}
    row = rows(text)[0][0]
    assert [row[k] for k in ("site", "global_user", "vo", "vo_group", "vo_role", "infrastructure", "benchmark")] == [
        "T", "/DC=x/CN=y", "atlas & <co>", "/atlas", "Role=x", "grid", "HEPSPEC 11.4"]


def test_no_job_comes_of_an_aggregated_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "c.xml").write_text(CAR)
    assert main(["convert", str(tmp_path / "c.xml"), "-t", "sss"]) == 1
    assert "an aggregated record is a sum over many jobs" in capsys.readouterr().err
    assert main(["convert", str(tmp_path / "c.xml"), "-q", "-t", "csv", "--option", "fields=site,jobs"]) == 0
    assert capsys.readouterr().out == "site,jobs\nS,7\n"
    assert main(["convert", str(tmp_path / "c.xml"), "-q", "-t", "car-summary"]) == 1


@pytest.mark.parametrize("options", [{"version": "0.2"}, {"created": "1"}])
def test_options_that_aggregated_records_do_not_have(options: dict[str, str], tmp_path: Path,
                                                     capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log").write_bytes(LOG)
    (name,) = options
    assert main(["convert", str(tmp_path / "log"), "-f", "sacct", "-t", "car-summary", "--option", "site=S", "--option",
                 f"{name}={options[name]}"]) == 2
    assert f"no option '{name}' of" in capsys.readouterr().err


def test_normalised_messages() -> None:
    text = MESSAGE.replace("summary-job-message: v0.2", "normalised-summary-message: v0.4").replace(
        "WallDuration: 100\nCpuDuration: 90", "NormalisedWallDuration: {hepspec: 5, HEPscore23: 6}\n"
        "NormalisedCpuDuration: {hepspec: 1}\nWallDuration: 100")
    ((made,), *_) = rows(text)
    assert (made["normalised_wall"], made["normalised_cpu"]) == ("hepspec 5, HEPscore23 6", "hepspec 1")


@pytest.mark.parametrize(("old", "new", "reason"), [
    ("Site: S", "Site: None", "id"), ("Month: 3", "Month: 13", "time"), ("Month: 3", "Month: x", "number"),
    ("Year: 2026\n", "", "id"), ("NumberOfJobs: 7", "NumberOfJobs: 0", "number"), ("Jobs: 7", "Jobs: -7", "number"),
    ("WallDuration: 100\n", "", "number"), ("WallDuration: 100", "WallDuration: P1Y", "number"),
    ("VO: atlas", "VO: " + "x" * 2000, "too-long"), ("ServiceLevel: 11.4", "ServiceLevel: {a}", "number"),
    ("EarliestEndTime: 1795251000", "EarliestEndTime: soon", "time"), ("VO: atlas", "VO", "columns"),
    ("APEL-summary-job-message: v0.2", "APEL-individual-job-message: v0.2", "type"),
    ("APEL-summary-job-message: v0.2", "APEL-sync-message: v0.1", "no-job"),
    ("APEL-summary-job-message: v0.2\n", "", "header"), ("%%\n", "", "torn"),
])
def test_what_is_rejected(old: str, new: str, reason: str) -> None:
    assert old in MESSAGE
    records, counts, _ = rows(MESSAGE.replace(old, new))
    assert (records, counts["reasons"]) == ([], {reason: 1})


def test_keys_without_a_column_are_told() -> None:
    assert rows(MESSAGE.replace("VO:", "New: 1\nVO:"))[2] == ["SSS545 no place for New"]


def test_one_broken_record_costs_that_one_only() -> None:
    record = CAR[CAR.index("<a:SummaryRecord>"):CAR.index("</a:SummaryRecords>")]
    many = CAR.replace(record, record + record.replace("</a:Year>", "") + record)
    records, counts, _ = rows(many[:-60])
    assert records == [ROW] and counts["reasons"] == {"torn": 1, "xml": 1}


def test_no_job_comes_of_a_sum(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m").write_text(MESSAGE)
    words = ["convert", str(tmp_path / "m"), "-f", "apel-summary", "-t"]
    assert main([*words, "sss"]) == 1 and "rejected: summary" in capsys.readouterr().err
    assert main([*words, "csv", "--option", "fields=site,jobs"]) == 0
    assert capsys.readouterr().out == "site,jobs\nS,7\n"
    assert main([*words, "csv", "--option", "fields=charge"]) == 2
    (tmp_path / "p.toml").write_text("least = 2\n")
    assert main([*words, "csv", "--privacy", str(tmp_path / "p.toml")]) == 2
    assert "for records of jobs, not for sums" in capsys.readouterr().err


def test_parquet(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "m").write_text(MESSAGE)
    assert main(["convert", str(tmp_path / "m"), "-f", "apel-summary", "-t", "parquet", "-o", str(tmp_path / "p")]) == 0
    (row,) = parquet.read_table(tmp_path / "p").to_pylist()
    assert {k: v for k, v in row.items() if v is not None} == ROW


def test_the_docs_name_every_column() -> None:
    assert [c.name for c in SUMS.columns if f"| `{c.name}` | {c.unit} | {c.source} |" not in DOCS] == []


@pytest.mark.skipif(SAMPLES is None, reason="SSSJOB_SAMPLES names no folder of samples")
def test_samples() -> None:
    folder = Path(SAMPLES or "") / "accounting-samples"
    reader = get("apel-summary")
    assert isinstance(reader, RecordTranslator)
    found = {path.name: rows(path.read_bytes())[1] for path in (*(folder / "apel-messages").iterdir(),
                                                                folder / "car" / "apel-aur1.xml")}
    assert {name: (c["given"], c["jobs"], c["reasons"]) for name, c in found.items()} == {
        "msg0.txt": (0, 0, {"type": 2}), "msg2.txt": (1, 100, {}), "msg4.txt": (1, 3, {}),
        "msg6.txt": (0, 0, {"no-job": 1}), "msg8.txt": (0, 0, {"no-job": 1}), "apel-aur1.xml": (1, 1, {})}
