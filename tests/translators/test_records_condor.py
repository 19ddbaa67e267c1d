"""Job ClassAds of HTCondor: how ads are parted, what of them counts, universes beside the machine, bad lines."""

from __future__ import annotations

import json
import os
import re
from io import BytesIO
from pathlib import Path

import pytest

from sssjob.document.model import Document, Job, JobGroup
from sssjob.errors import UsageError
from sssjob.translators import get
from sssjob.translators.base import ReadContext, WriteContext
from sssjob.translators.recognise import recognise
from sssjob.translators.records.base import Counts, RecordTranslator, leaf
from sssjob.xml.writer import write_document

SAMPLES = os.environ.get("SSSJOB_SAMPLES")
AD = """\
ClusterId = 12
ProcId = 3
GlobalJobId = "head.example.org#12.3#1795251000"
Owner = "alice"
User = "alice@example.org"
AcctGroup = "group_chem"
QDate = 1795251000
JobStartDate = 1795251100
CompletionDate = 1795252100
JobStatus = 4
RemoteWallClockTime = 1000.0
CumulativeSuspensionTime = 100
RemoteUserCpu = 500.0
RemoteSysCpu = 20.5
ExitBySignal = false
ExitCode = 3
JobUniverse = 5
NumJobStarts = 1
RequestCpus = 4
RequestMemory = ifThenElse(MemoryUsage =!= undefined, MemoryUsage, 1)
MachineAttrCpus0 = 2
GPUsProvisioned = 1
ResidentSetSize_RAW = 2048
ImageSize_RAW = 4096
LastRemoteHost = "slot1_1@n1.example.org"
"""
BANNER = "*** Offset = 0 ClusterId = 12 ProcId = 3 Owner = \"alice\" CompletionDate = 1795252100\n"


def read(text: str | bytes, **options: str) -> tuple[list[Job], Counts, list[str]]:
    reader = get("htcondor-history")
    assert isinstance(reader, RecordTranslator) and reader.stream is not None
    context = ReadContext(options={"machine": "pool", **options})
    if isinstance(text, str):       # a blank line ends the last ad
        text = (text + "\n" * text.endswith("\n")).encode()
    stream = reader.stream(BytesIO(text), context)
    jobs = list(stream)
    assert stream.counts.read == stream.counts.given + stream.counts.rejected
    return jobs, stream.counts, [f"{f.line} {f.rule} {f.message}" for f in context.findings]


def delivered(job: Job) -> dict[str, str]:
    return {} if job.delivered is None else {p.tag: p.text for p in job.delivered.properties()}


def test_an_ad() -> None:
    (job,), _, findings = read(AD)
    assert {t: job.value(t) for t in ("Id", "GlobalJob", "User", "Project", "Machine", "SubmitTime", "StartTime",
                                      "EndTime", "StartCount", "ExitCode", "SuspendDuration", "CpuDuration")} == {
        "Id": "12.3", "GlobalJob": "head.example.org#12.3#1795251000", "User": "alice", "Project": "group_chem",
        "Machine": "pool", "SubmitTime": 1795251000, "StartTime": 1795251100, "EndTime": 1795252100, "StartCount": 1,
        "ExitCode": 3, "SuspendDuration": 100, "CpuDuration": 521}
    assert delivered(job) == {"Processors": "2", "NodeCount": "1", "Duration": "900", "Node": "n1.example.org",
                              "Resource": "1", "Memory": "2048"}
    assert findings == []


def test_names_of_any_case_and_the_last_counts() -> None:
    (job,), *_ = read(AD + "REMOTEWALLCLOCKTIME = 1001.5\nowner = \"b\\\"ob\"\nexitcode = 0\n")
    assert (job.value("User"), job.value("ExitCode"), delivered(job)["Duration"]) == ('b"ob', 0, "902")


def in_json(text: str = AD) -> dict[str, object]:
    """The ad as condor_history -json prints it."""
    made: dict[str, object] = {}
    for line in text.splitlines():
        name, _, value = line.partition(" = ")
        made[name] = (json.loads(value) if value[0] in '"0123456789' else value == "true" if value in ("true", "false")
                      else f"/Expr({value})/")
    return made


@pytest.mark.parametrize("form", ["array", "lines", "spread"])
def test_json_says_the_same(form: str) -> None:
    ads = [in_json(), in_json(AD.replace("ProcId = 3", "ProcId = 4"))]
    text = {"array": json.dumps(ads), "lines": "".join(json.dumps(ad) + "\n" for ad in ads),
            "spread": "\n [\n" + ",\n".join(json.dumps(ad, indent=1) for ad in ads) + "\n]\n"}[form]
    jobs, counts, findings = read(text)
    other, *_ = read(AD + "\n" + AD.replace("ProcId = 3", "ProcId = 4"))
    assert [write_document(j) for j in jobs] == [write_document(j) for j in other]
    assert (counts.read, counts.given, findings) == (2, 2, [])


@pytest.mark.parametrize(("text", "reasons", "jobs"), [
    (json.dumps([in_json(), 5, {}, in_json() | {"JobStatus": 99}, in_json()]), {"json": 1, "id": 1, "number": 1}, 2),
    (json.dumps([in_json(), in_json()])[:-30], {"torn": 1}, 1),
    (json.dumps([in_json(), {f"a{n}": 1 for n in range(10_001)}]), {"too-long": 1}, 1),
    ('[{"ClusterId": 1,}, 5, 5, 5, 5, 5, 5, 5]', {"json": 1}, 0), ("[" * 100_000, {"json": 1}, 0),
    (json.dumps([in_json() | {"Owner": 'a"\\"b'}]), {}, 1),
])
def test_json_that_is_wrong(text: str, reasons: dict[str, int], jobs: int) -> None:
    records, counts, _ = read(text)
    assert (counts.record()["reasons"], len(records)) == (reasons, jobs)
    assert reasons != {} or records[0].value("User") == 'a"\\"b'


EXTRACT = "head#12.3#1795251000|alice|1000|500|20|1795251100|1795252100|2048|4096|4\n"


@pytest.mark.parametrize("line", [EXTRACT, EXTRACT.replace("|4\n", "|4|1.5\n")])
def test_the_extract_with_bars(line: str) -> None:
    (job,), counts, findings = read(line)
    assert {t: job.value(t) for t in ("Id", "SubmitHost", "User", "StartTime", "EndTime", "CpuDuration", "State",
                                      "ExitCode")} == {
        "Id": "12.3", "SubmitHost": "head", "User": "alice", "StartTime": 1795251100, "EndTime": 1795252100,
        "CpuDuration": 520, "State": "Completed", "ExitCode": None}
    assert delivered(job) == {"Processors": "4", "Duration": "1000", "Memory": "2048"}
    assert (counts.given, findings) == (1, [])
    assert [p.text for p in job.all("Extension") if p.get("name") == "cputmult"] == (["1.5"] if "1.5" in line else [])


@pytest.mark.parametrize(("factor", "target", "durations"), [
    ("1.5", "apel", ["1500", "780"]), ("1.5", "apel-summary", ["1500", "780"]), ("1.5", "car", ["PT1500S", "PT780S"]),
    ("1.5", "ur2", ["PT1000S", "PT520S"]), ("1.0", "apel", ["1000", "520"]), ("0.3335", "apel", ["334", "173"]),
    ("-2", "apel", ["1000", "520"]), ("1e9", "apel", ["1000", "520"]), ("x", "apel", ["1000", "520"])])
def test_the_multiplier_of_the_extract(factor: str, target: str, durations: list[str]) -> None:
    """APEL's own parser multiplies durations by it; records for the same receiver said less."""
    jobs, *_ = read(EXTRACT.replace("|4\n", f"|4|{factor}\n"))
    context = WriteContext(options={"site": "S"})
    text = get(target).write(Document(JobGroup([leaf("Id", "g"), *jobs])), context)
    shown = re.findall(r"(?:Wall|Cpu)Duration(?::| [^>]*>|>) ?(\w+)", text)
    assert sorted(shown) == sorted(durations)
    messages = [finding.message for finding in context.findings if "cputmult" in finding.message]
    assert messages == {"1.5": ["durations are multiplied by Extension cputmult, as APEL's parser does"], "1.0": [],
                    "0.3335": ["durations are multiplied by Extension cputmult, as APEL's parser does"]}.get(
        factor if target != "ur2" else "", ["no place for Extension cputmult"])


def test_columns_of_autoformat() -> None:
    options = {"columns": "ClusterId,ProcId,Owner,JobStatus,ExitCode,RemoteWallClockTime,JobStartDate"}
    for delimiter, sign in (("blank", "  "), ("tab", "\t"), ("comma", ","), (";", ";")):
        line = sign.join(("12", "3", "alice", "4", "undefined" if sign == "," else "2", "10.0", "1795251100"))
        (job, _), counts, _ = read(f"{line}\n{line}\n12{sign}3\n", delimiter=delimiter, **options)
        assert [job.value(t) for t in ("Id", "User", "ExitCode")] == ["12.3", "alice", None if sign == "," else 2]
        assert counts.record()["reasons"] == {"columns": 1}


@pytest.mark.parametrize("options", [{"columns": "a,,b"}, {"columns": "a,A"}, {"delimiter": "="}, {"delimiter": ""}])
def test_options_that_are_wrong(options: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=r"columns|delimiter"):
        read("", **options)


@pytest.mark.parametrize("text", [AD, json.dumps([in_json()]), EXTRACT])
def test_it_is_recognised(text: str) -> None:
    assert [t.name for t, _ in recognise(text.encode())] == ["htcondor-history"]


@pytest.mark.parametrize("mark", ["\n", BANNER, "\r\n\r\n"])
def test_what_parts_ads(mark: str) -> None:
    jobs, counts, _ = read(mark + AD + mark + AD.replace("ProcId = 3", "ProcId = 4") + mark)
    assert [j.value("Id") for j in jobs] == ["12.3", "12.4"] and counts.read == 2


@pytest.mark.parametrize(("more", "state", "message", "code", "signal"), [
    ("ExitBySignal = TRUE\nExitSignal = 9\n", "Completed", "signal: 9", None, "9"),
    ('JobStatus = 3\nCompletionDate = 0\nEnteredCurrentStatus = 1795252000\nRemoveReason = "by alice"\n', "Completed",
     "cancel: by alice", None, None),
    ('JobStatus = 5\nHoldReason = "no file"\n', "Hold", "no file", None, None),
    ("JobStatus = 2\n", "Running", None, None, None),
])
def test_states(more: str, state: str, message: str | None, code: int | None, signal: str | None) -> None:
    (job,), *_ = read(AD + more)
    found = next((p.text for p in job.all("Extension") if p.get("name") == "ExitSignal"), None)
    assert [job.value(t) for t in ("State", "StatusMessage", "ExitCode")] == [state, message, code]
    assert found == signal


@pytest.mark.parametrize("universe", [7, 12])
def test_universes_beside_the_machine_deliver_nothing(universe: int) -> None:
    (job,), *_ = read(AD + f"JobUniverse = {universe}\n")
    assert not job.delivered
    assert ("htcondor", "RemoteWallClockTime", "1000") in [
        (p.get("type"), p.get("name"), p.text) for p in job.all("Extension")]


def test_evidence_that_disagrees() -> None:
    assert any("SSS541 Duration" in f for f in read(AD + "RemoteWallClockTime = 500.0\n")[2])
    assert not read(AD + "RemoteWallClockTime = 500.0\nNumJobStarts = 2\n")[2]
    assert any("SSS541 Processors" in f for f in read(AD + "CpusProvisioned = 8\n")[2])
    assert any("SSS541 CpuDuration" in f for f in read(AD + "RemoteUserCpu = 99999999.0\n")[2])


def test_bad_ads_cost_themselves_only() -> None:
    text = (AD + "\n" + AD + "no attribute\n\n" + AD + "JobStatus = 99\n\n"
            + AD.replace("ClusterId", "C").replace("GlobalJobId", "G") + "\n" + AD
            + "QDate = 99999999999999999\n\n" + "".join(f"a{n} = 1\n" for n in range(10_001)) + "\n" + AD + "x")
    jobs, counts, findings = read(text)
    assert len(jobs) == 1
    assert counts.record()["reasons"] == {"columns": 1, "id": 1, "number": 1, "time": 1, "too-long": 1, "torn": 1}
    assert [f.split()[0] for f in findings] == ["27", "54", "81", "107", "134", "10136"]


@pytest.mark.parametrize("broken", [0, 1, 2])
def test_a_broken_row_of_the_extract_costs_itself_only(broken: int) -> None:
    """All rows behind it were taken for attributes of one ad, and counted as the one record that was rejected."""
    rows = [f"ce#{number}.0#1|ann|100|90|5|1700000000|1700000100|2048|4096|2" for number in range(3)]
    rows[broken] = f"ce#{broken}.0#1|bob\n|100|90|5|1700000000|1700000100|2048|4096|2"
    jobs, counts, _ = read("\n".join([*rows, ""]))
    assert [job.value("Id") for job in jobs] == [f"{number}.0" for number in range(3) if number != broken]
    assert counts.read == counts.given + counts.rejected and counts.given == 2 and set(counts.reasons) == {"columns"}


def test_an_ad_that_nothing_ends_is_told() -> None:
    assert "no blank line ends the last ad" in read(AD.encode())[2][0]


def test_other_encodings() -> None:
    (job,), _, findings = read(AD.replace("alice", "Jos\u00e9").encode("latin-1") + b"\n")
    assert job.value("User") == "Jos\\xe9" and "SSS542" in findings[0]


@pytest.mark.skipif(SAMPLES is None, reason="SSSJOB_SAMPLES names no folder of samples")
def test_samples() -> None:
    folder = Path(SAMPLES or "") / "accounting-samples" / "htcondor"
    by_file = {path.name[-8:]: [(j.value("Id"), delivered(j).get("Duration")) for j in read(path.read_bytes())[0]]
               for path in sorted(folder.glob("gratia-*"))}
    assert by_file["377260.0"] == [("377260.0", "910")] and all(len(jobs) == 1 for jobs in by_file.values())
