"""Bad input, format by format: what is wrong with one record costs that one or is told, and the others go on.

Each format has a record, as a template, and for each badness what is put in place of what. A cell says what has to
come: a reason (the record is rejected), a rule (the record is taken, and that is told), ``absent`` (the value is taken
as not measured, which needs no words) or ``kept`` (it is as it should be, or other evidence stands in for it).
"""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from sssjob.cli import main
from sssjob.document.model import Job
from sssjob.translators import get
from sssjob.translators.base import ReadContext
from sssjob.translators.records.base import REASONS, Counts, RecordTranslator

HOSTS: Final = "n[1-999999999]"
MANY: Final = ",".join(f"host{n}" for n in range(30_000))


class Form(NamedTuple):
    """head, record, tail, between: of a document of records; bad: badness -> (in place of what, what, what comes)."""

    record: str
    bad: dict[str, tuple[str, str, str]]
    head: str = ""
    tail: str = ""
    between: str = ""

    def text(self, *records: str) -> str:
        return self.head + self.between.join(records) + self.tail


_UR1: Final = ('<JobUsageRecord><JobIdentity><LocalJobId>{id}</LocalJobId></JobIdentity><UserIdentity><LocalUserId>a'
'lice'
               '</LocalUserId></UserIdentity><Status>completed</Status><WallDuration>PT60S</WallDuration><CpuDuratio'
               'n>PT30S'
               '</CpuDuration><Processors>2</Processors><EndTime>2026-11-21T10:01:00Z</EndTime><StartTime>2026-11-21'
               'T10:00:'
               '00Z</StartTime><ProjectName>chem</ProjectName><Host>n1</Host></JobUsageRecord>\n')
_UR2: Final = ('<UsageRecord><SubjectIdentityBlock><LocalUserId>alice</LocalUserId><GlobalGroupAttribute type="proje'
'ct">chem'
               '</GlobalGroupAttribute></SubjectIdentityBlock><ComputeUsageBlock><CpuDuration>PT30S</CpuDuration>'
               '<WallDuration>PT60S</WallDuration><StartTime>2026-11-21T10:00:00Z</StartTime><EndTime>2026-11-21T10:'
               '01:00Z'
               '</EndTime><ExecutionHost><Hostname>n1</Hostname></ExecutionHost><Processors>2</Processors>'
               '</ComputeUsageBlock><JobUsageBlock><LocalJobId>{id}</LocalJobId><Status>completed</Status></JobUsage'
               'Block>'
               '</UsageRecord>\n')
_CAR: Final = ('<UsageRecord><JobIdentity><LocalJobId>{id}</LocalJobId></JobIdentity><UserIdentity><GroupAttribute '
               'type="project">chem</GroupAttribute><LocalUserId>alice</LocalUserId></UserIdentity><Status>completed'
               '</Status><WallDuration>PT60S</WallDuration><CpuDuration>PT30S</CpuDuration><Processors>2</Processors>'
               '<EndTime>2026-11-21T10:01:00Z</EndTime><StartTime>2026-11-21T10:00:00Z</StartTime><Host>n1</Host>'
               '</UsageRecord>\n')


def _xml(record: str, name: str) -> Form:
    return Form(record, {
        "negative": ("PT60S", "-PT60S", "absent"), "absurd": ("Processors>2<", "Processors>2e9x<", "number"),
        "no time": ("10:01:00Z", "25:61:00Z", "time"), "no zone": ("10:01:00Z", "10:01:00", "zone"),
        "clock step": ("10:01:00Z", "09:01:00Z", "SSS543"), "blanks": ("chem", "my own chem", "kept"),
        "hosts": (">n1<", f">{HOSTS}<", "kept"), "many hosts": (">n1<", f">{MANY}<", "kept"),
        "long name": ("alice", "a" * 5000, "too-long"), "half": (f"</{name}>", "", "xml"),
        "broken": ("</CpuDuration>", "</Cpu>", "xml"),
    }, "<UsageRecords xmlns='urn:x'>\n", "</UsageRecords>\n")


FORMS: Final[dict[str, Form]] = {
    "sacct": Form(
        "{id}|job|alice|chem|COMPLETED|2026-11-21T10:00:00|2026-11-21T10:01:00|60|2|00:30|0:0|n1|0\n", {
            "negative": ("|60|", "|-60|", "kept"), "absurd": ("|2|", "|2e9x|", "number"),
            "no time": ("10:01:00", "25:61:00", "time"), "clock step": ("10:01:00", "09:01:00", "SSS543"),
            "blanks": ("chem", "my own chem", "kept"), "hosts": ("|n1|", f"|{HOSTS}|", "kept"),
            "many hosts": ("|n1|", f"|{MANY}|", "kept"), "long name": ("alice", "a" * 5000, "too-long"),
            "half": ("|n1|0\n", "\n", "columns"), "bytes": ("chem", "ch\u00e9m", "SSS542"),
            "more CPU time": ("00:30", "9-00:00:30", "SSS541")},
        "JobID|JobName|User|Account|State|Start|End|ElapsedRaw|AllocCPUS|TotalCPU|ExitCode|NodeList|Suspended\n"),
    "sacct-json": Form(
        '{{"job_id": {id}, "user": "alice", "account": "chem", "state": {{"current": "COMPLETED"}}, "nodes": "n1", "'
        'time": '
        '{{"start": 1795255200, "end": 1795255260, "elapsed": 60}}, "tres": {{"allocated": [{{"type": "cpu", "count"'
        ': 2}}]}},'
        ' "exit_code": {{"return_code": 1}}}}', {
            "negative": ('"elapsed": 60', '"elapsed": -60', "kept"),
            "no time": ("1795255260", "99999999999999999", "time"), "clock step": ("1795255260", "1795250000",
            "SSS543"),
            "blanks": ("chem", "my own chem", "kept"), "hosts": ('"n1"', f'"{HOSTS}"', "kept"),
            "long name": ("alice", "a" * 5000, "too-long"), "bytes": ("chem", "ch\u00e9m", "SSS542")},
        '{"meta": {}, "jobs": [\n', "]}\n", ",\n"),
    "pbs-acct": Form(
        '11/21/2026 10:01:00;E;{id}.head;user=alice account="chem" ctime=1795255200 start=1795255200 end=1795255260 '
        "exec_host=n1/0*2 Exit_status=0 resources_used.walltime=00:01:00 resources_used.cput=00:00:30\n", {
            "negative": ("walltime=00:01:00", "walltime=-5", "kept"), "absurd": ("Exit_status=0", "Exit_status=x",
            "number"),
            "no time": ("end=1795255260", "end=99999999999999999", "time"),
            "clock step": ("end=1795255260", "end=1795250000", "SSS543"), "blanks": ('"chem"', '"my own chem"', "kept"),
            "hosts": ("n1/0*2", "n1/0-999999999999", "SSS541"), "long name": ("alice", "a" * 5000, "too-long"),
            "half": (";E;2.head;", "\n", "columns"), "bytes": ("chem", "ch\u00e9m", "SSS542"),
            "unknown type": (";E;", ";W;", "type"), "no job": (";E;", ";L;", "no-job")}),
    "sge-acct": Form(
        "all.q:n1:users:alice:job:{id}:sge:0:1795255200:1795255200:1795255260:0:0:60:20:10:0:0:0:0:0:0:0:0:0:0:0:0:0"
        ":0:0:chem:"
        "defaultdepartment:NONE:2:0:30:0:0:NONE:0:NONE:0:0:0\n", {
            "negative": (":60:20:", ":-60:20:", "kept"), "absurd": (":NONE:2:0:", ":NONE:2x:0:", "number"),
            "no time": (":1795255260:", ":99999999999999999:", "time"), "clock step": (":1795255260:", ":1795250000:",
            "SSS543"),
            "blanks": (":chem:", ":my own chem:", "kept"), "long name": ("alice", "a" * 5000, "too-long"),
            "half": (":chem:defaultdepartment", "\nx:chem:", "columns"), "bytes": ("chem", "ch\u00e9m", "SSS542")}),
    "lsf-acct": Form(
        '"JOB_FINISH" "9.11" 1795255260 {id} 500 33816578 1 1795255200 0 0 1795255200 "alice" "normal" "" "" "" "hea'
        'd" "/home" '
        '"" "" "" "x" 0 2 "n1" "n1" 64 1.0 "job" "sleep" 20.0 10.0 0 0 -1 0 0 0 0 0 0 0 -1 0 0 0 0 0 -1 "" "chem" 0 '
        '2 "" "" 0 1024 '
        '2048 "" "" ""\n', {
            "negative": (" 20.0 10.0 ", " -1 -1 ", "absent"), "absurd": (" 64 1.0 ", " 6x 1.0 ", "number"),
            "no time": (" 1795255260 ", " 99999999999999999 ", "time"), "clock step": (" 1795255260 ", " 1795250000 ",
            "SSS543"),
            "blanks": ('"chem"', '"my own chem"', "kept"), "long name": ("alice", "a" * 5000, "too-long"),
            "quote": ('"chem"', '"my ""own"" chem"', "kept"), "half": (' "chem" 0 2', "\n", "columns+type"),
            "bytes": ("chem", "ch\u00e9m", "SSS542")}),
    "htcondor-history": Form(
        'ClusterId = {id}\nProcId = 0\nOwner = "alice"\nAcctGroup = "chem"\nJobStatus = 4\nJobStartDate = 1795255200\n'
        'CompletionDate = 1795255260\nRemoteWallClockTime = 60.0\nRemoteUserCpu = 20.0\nRemoteSysCpu = 10.0\nExitByS'
        'ignal = '
        'false\nExitCode = 0\nRequestCpus = 2\nLastRemoteHost = "slot1@n1"\n\n', {
            "negative": ("= 60.0", "= -60.0", "kept"), "absurd": ("= 4\n", "= 4x\n", "number"),
            "no time": ("1795255260", "99999999999999999", "time"), "clock step": ("1795255260", "1795250000",
            "SSS543"),
            "blanks": ("chem", "my own chem", "kept"), "hosts": ("slot1@n1", f"slot1@{HOSTS}", "kept"),
            "long name": ("alice", "a" * 5000, "too-long"), "half": ("RequestCpus = 2", "RequestCp", "columns"),
            "bytes": ("chem", "ch\u00e9m", "SSS542"), "more CPU time": ("= 20.0", "= 2e9", "SSS541")}),
    "cobalt-acct": Form(
        '11/21/2026 10:01:00;E;{id};user=alice account="chem" ctime=1795255200.5 start=1795255200.5 end=1795255260.5 '
        "exec_host=n1 Exit_status=0 Resource_List.ncpus=2 resource=m resources_used.walltime=60.0\n", {
            "negative": ("walltime=60.0", "walltime=-60.0", "kept"), "absurd": ("ncpus=2", "ncpus=2x", "number"),
            "no time": ("end=1795255260.5", "end=99999999999999999", "time"),
            "clock step": ("end=1795255260.5", "end=1795250000", "SSS543"), "blanks": ('"chem"', '"my own chem"',
            "kept"),
            "quote": ('"chem"', '"my \\"own\\" chem"', "kept"), "hosts": ("exec_host=n1", f"exec_host={HOSTS}", "kept"),
            "long name": ("alice", "a" * 5000, "too-long"), "half": (";E;2;", "\n", "columns"),
            "bytes": ("chem", "ch\u00e9m", "SSS542"), "unknown type": (";E;", ";W;", "type")}),
    "flux-jobs": Form(
        '{{"id": {id}, "username": "alice", "bank": "chem", "state": "INACTIVE", "result": "COMPLETED", "returncode"'
        ': 0, '
        '"t_submit": 1795255200.5, "t_run": 1795255200.5, "t_cleanup": 1795255260.5, "ncores": 2, "nodelist": "n1"}}', {
            "negative": ('"ncores": 2', '"ncores": -2', "absent"), "absurd": ('"ncores": 2', '"ncores": "x"', "number"),
            "no time": ("1795255260.5", "1e17", "time"), "clock step": ("1795255260.5", "1795250000", "SSS543"),
            "blanks": ("chem", "my own chem", "kept"), "hosts": ('"n1"', f'"{HOSTS}"', "kept"),
            "long name": ("alice", "a" * 5000, "too-long"), "bytes": ("chem", "ch\u00e9m", "SSS542")},
        '{"jobs": [\n', "]}\n", ",\n"),
    "flux-eventlog": Form(
        '{{"id": {id}, "events": [{{"timestamp": 1795255200.5, "name": "submit", "context": {{"userid": 7}}}}, {{"ti'
        'mestamp": '
        '1795255200.5, "name": "alloc"}}, {{"timestamp": 1795255260.5, "name": "finish", "context": {{"status": 0}}}}, '
        '{{"timestamp": 1795255261, "name": "clean"}}], "jobspec": {{"attributes": {{"system": {{"bank": "chem"'
        '}}}}}}, "R": '
        '{{"version": 1, "execution": {{"R_lite": [{{"rank": "0", "children": {{"core": "0-1"}}}}], "nodelist": ["n1'
        '"]}}}}}}\n',
        {"absurd": ('"status": 0', '"status": 65536', "number"), "no time": ("1795255260.5", "1e17", "time"),
         "clock step": ("1795255260.5", "1795250000", "SSS543"), "blanks": ("chem", "my own chem", "kept"),
         "hosts": ('"rank": "0"', '"rank": "0-99999999"', "json"), "long name": ("chem", "a" * 5000, "too-long"),
         "half": ('"events": [', '"events": \n[', "json+columns"), "bytes": ("chem", "ch\u00e9m", "SSS542")}),
    "swf": Form(
        " {id} 100 0 60 2 15 -1 2 3600 -1 1 6 1 -1 1 1 -1 -1\n", {
            "negative": (" 60 2 15 ", " -1 2 15 ", "absent"), "absurd": (" 60 2 15 ", " 60 2x 15 ", "number"),
            "no time": (" 100 0 ", " 99999999999999999 0 ", "time"), "half": (" 15 -1", "\n", "columns")},
        "; UnixStartTime: 1795255200\n"),
    "ur1": _xml(_UR1, "WallDuration"), "ur2": _xml(_UR2, "JobUsageBlock"), "car": _xml(_CAR, "UserIdentity"),
    "apel": Form(
        "Site: S\nLocalJobId: {id}\nLocalUserId: alice\nVO: chem\nWallDuration: 60\nCpuDuration: 30\nProcessors: 2\n"
        "StartTime: "
        "1795255200\nEndTime: 1795255260\n%%\n", {
            "negative": ("WallDuration: 60", "WallDuration: -60", "absent"), "absurd": ("Processors: 2",
            "Processors: 2x", "number"),
            "no time": ("1795255260", "99999999999999999", "time"), "clock step": ("1795255260", "1795250000",
            "SSS543"),
            "blanks": ("chem", "my own chem", "kept"), "long name": ("alice", "a" * 5000, "too-long"),
            "half": ("Processors: 2", "Processors", "columns"), "bytes": ("chem", "ch\u00e9m", "SSS542")},
        "APEL-individual-job-message: v0.3\n"),
}
CELLS: Final = [(name, badness) for name, form in FORMS.items() for badness in form.bad]
_XML: Final = ("ur1", "ur2", "car")


def read(name: str, data: bytes) -> tuple[list[Job], Counts, set[str]]:
    """Jobs, counts, and the rules of what is told."""
    reader = get(name)
    assert isinstance(reader, RecordTranslator) and reader.stream is not None
    context = ReadContext(options={"machine": "m"} | ({} if name in _XML else {"timezone": "UTC"}))
    stream = reader.stream(BytesIO(data), context)
    jobs = list(stream)
    assert stream.counts.read == stream.counts.given + stream.counts.rejected
    return jobs, stream.counts, {f.rule for f in context.findings if f.severity != "info"}


def ids(jobs: list[Job]) -> list[object]:
    return [job.value("Id") for job in jobs]


def document(name: str, badness: str | None = None) -> str:
    """A good record, one that is bad, another good one."""
    form = FORMS[name]
    made = [form.record.format(id=n) for n in (1, 2, 3)]
    if badness is not None:
        old, new, _ = form.bad[badness]
        assert old in made[1]
        made[1] = made[1].replace(old, new, 1)
    return form.text(*made)


def raw(text: str) -> bytes:
    """Foreign bytes are those of Latin 1."""
    return text.encode("latin-1")


@pytest.mark.parametrize("name", FORMS)
def test_good_records(name: str) -> None:
    jobs, counts, findings = read(name, raw(document(name)))
    assert (len(jobs), counts.rejected, findings) == (3, 0, set())
    for job in jobs:
        assert job.delivered is not None
        assert (job.delivered.value("Processors"), job.delivered.value("Duration")) == (2, 60)


@pytest.mark.parametrize(("name", "badness"), CELLS)
def test_one_bad_record(name: str, badness: str) -> None:
    good = ids(read(name, raw(document(name)))[0])
    jobs, counts, findings = read(name, raw(document(name, badness)))
    comes = FORMS[name].bad[badness][2]
    if reasons := set(comes.split("+")) & REASONS.keys():
        assert (set(counts.reasons), ids(jobs)) == (reasons, [good[0], good[2]])
        return
    assert (counts.rejected, ids(jobs)) == (0, good)
    assert findings - {"SSS541"} == ({comes} if comes.startswith("SSS") else set()) - {"SSS541"}
    assert comes != "SSS541" or comes in findings
    if comes == "absent":
        amounts = [j.delivered.value("Duration") if j.delivered else None for j in jobs]
        assert amounts[0] == amounts[2] == 60
        assert (amounts[1], read_of(jobs[1])) != (amounts[0], read_of(jobs[0]))


def read_of(job: Job) -> tuple[object, ...]:
    return (job.value("CpuDuration"), job.delivered.value("Processors") if job.delivered else None)


@pytest.mark.parametrize(("name", "badness"), [
    (name, badness) for name, badness in CELLS if badness in ("absurd", "clock step", "half", "blanks", "no time")])
def test_strict_stops(name: str, badness: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 1, where anything was rejected or told; without it the rest is charged or converted, status 0."""
    (tmp_path / "log").write_bytes(raw(document(name, badness)))
    words = ["convert", str(tmp_path / "log"), "-f", name, "-t", "jsonl", "--option", "machine=m", "--option",
             "timezone=UTC", "--option", "fields=id"]
    strict = main([*words, "--strict", "--policy", "ignore"])
    told = FORMS[name].bad[badness][2]
    assert strict == (told not in ("kept", "absent"))
    assert main([*words, "--policy", "ignore"]) == 0
    assert capsys.readouterr().out.count('"id"') >= 2


@pytest.mark.parametrize("name", FORMS)
def test_the_input_ends_inside_a_record(name: str) -> None:
    """Wherever it ends: what was whole before comes, and of the rest nothing is made up."""
    text = document(name).rstrip()
    good = ids(read(name, raw(document(name)))[0])
    at = text.rindex(FORMS[name].record.format(id=3).strip()[:12])
    for cut in range(at + 13, len(text) - 40, 29):
        jobs, counts, findings = read(name, raw(text[:cut]))
        assert ids(jobs)[:2] == good[:2] and len(jobs) <= 3
        assert counts.rejected or "SSS542" in findings, text[cut - 40:cut]


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_encodings(name: str, encoding: str) -> None:
    if encoding == "utf-16" and name == "htcondor-history":
        encoding = "utf-16-le"
        data = b"\xff\xfe" + document(name).encode(encoding)
    else:
        data = document(name).encode(encoding)
    assert ids(read(name, data)[0]) == ids(read(name, raw(document(name)))[0])


@pytest.mark.parametrize("name", FORMS)
def test_records_that_come_twice(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                 monkeypatch: pytest.MonkeyPatch) -> None:
    """Duplicates are charged once; of two that contradict each other the first stays charged,
    and the other is told, until somebody says which is right."""
    form = FORMS[name]
    one = form.record.format(id=1)
    other = one.replace(*_CONFLICT[name])
    assert other != one
    (tmp_path / "rates.toml").write_text('name = "s"\nversion = "1"\n[[rate]]\ntype = "VBR"\nname = "Processors"\nra'
    'te = 1\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SSSJOB_LEDGER", str(tmp_path / "ledger.db"))
    counts = []
    for records in ((one, one), (one, other), (other,)):
        (tmp_path / "log").write_text(form.text(*records))
        main(["ledger", "charge", "log", "-f", name, "--rates", "rates.toml", "--json", "--option", "machine=m",
        "--option",
              "timezone=UTC", "--account-by", "User"])
        said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        counts.append({k: v for k, v in said[-1].items() if k in ("charged", "unchanged", "contradicts", "not")})
    assert counts == [{"charged": 1, "unchanged": 1}, {"unchanged": 1, "contradicts": 1}, {"contradicts": 1}]
    assert main(["ledger", "verify"]) == 0


#: What another record of the same run says otherwise.
_CONFLICT: Final = {
    "sacct": ("|60|", "|50|"), "sacct-json": ('"elapsed": 60', '"elapsed": 50'), "pbs-acct": ("=00:01:00", "=00:00:50"),
    "sge-acct": (":60:20:", ":50:20:"), "lsf-acct": (" 1795255260 ", " 1795255250 "), "htcondor-history": ("= 60.0",
    "= 50.0"),
    "cobalt-acct": ("walltime=60.0", "walltime=50.0"), "flux-jobs": ("1795255260.5", "1795255250.5"),
    "flux-eventlog": ("1795255260.5", "1795255250.5"), "swf": (" 60 2 15 ", " 50 2 15 "), "ur1": ("PT60S", "PT50S"),
    "ur2": ("PT60S", "PT50S"), "car": ("PT60S", "PT50S"), "apel": ("WallDuration: 60", "WallDuration: 50"),
}
