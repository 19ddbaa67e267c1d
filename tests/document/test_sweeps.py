"""Sweeps: what their texts mean, what the jobs look like that one job stands for, and that every door counts them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.cli import main
from sssjob.document.failures import FailurePolicyError
from sssjob.document.model import Document, File
from sssjob.document.sweeps import Sweep, expand, jobs_in
from sssjob.findings import Findings
from sssjob.limits import LIMITS
from sssjob.validation import check
from sssjob.xml.reader import read_document
from sssjob.xml.writer import write_document
from tests.strategies import examples

FILES = {"f": File("f", "one\n\n  two words \n"), "none": File("none", "\n"), "range": File("range", "1..\n")}


def sweep(text: str) -> str:
    return f'<Extension type="Scheduler" name="Sweep">{text}</Extension>'


def job(*items: str, text: str = "x=1..3") -> str:
    return f"<Job><Id>a</Id><Executable>/bin/echo</Executable>{''.join(items)}{sweep(text)}</Job>"


def expanded(text: str, files: dict[str, File] | None = None) -> tuple[Document, list[str]]:
    findings = Findings()
    document = read_document(text.encode())
    document.files.update(files or {})
    return expand(document, findings), [f.message for f in findings]


def values(text: str) -> list[str]:
    return [" ".join(f"{name}={value}" for name, value in row.items()) for row in Sweep.of(text, FILES).rows()]


@pytest.mark.parametrize(("text", "rows"), [
    ("x=1..3", ["x=1", "x=2", "x=3"]),
    ("x=3..1", ["x=3", "x=2", "x=1"]),
    ("x=1..6..2,9", ["x=1", "x=3", "x=5", "x=9"]),
    ("x=008..010", ["x=008", "x=009", "x=010"]),
    ("x=-01..01", ["x=-01", "x=00", "x=01"]),
    ("x=0.1..0.3..0.1", ["x=0.1", "x=0.2", "x=0.3"]),
    ("x=1..2..0.5", ["x=1.0", "x=1.5", "x=2.0"]),
    ("x=1,2 y=a,b", ["x=1 y=a", "x=1 y=b", "x=2 y=a", "x=2 y=b"]),
    ("zip(x=1..2 y=a,b) z=p,q", ["x=1 y=a z=p", "x=1 y=a z=q", "x=2 y=b z=p", "x=2 y=b z=q"]),
    ("x=#f", ["x=one", "x=two words"]),
    ("x=1..2.txt", ["x=1..2.txt"]),
    ("x=a=b", ["x=a=b"]),
    ("x=-5,1-10,1-,..,../1,1.2.3", ["x=-5", "x=1-10", "x=1-", "x=..", "x=../1", "x=1.2.3"]),
    ("x=#range", ["x=1.."]),
])
def test_what_a_text_means(text: str, rows: list[str]) -> None:
    assert values(text) == rows


@pytest.mark.parametrize(("text", "message"), [
    ("", "Sweep has no values"),
    ("x", "Sweep, column 1, 'x': is not of the form NAME=VALUES"),
    ("x=1  2y=1", "Sweep, column 6, '2y=1': is not of the form"),
    ("x=", "an empty value stands there"),
    ("x=1,,2", "an empty value stands there"),
    ("x=1..3..0", "no step of 0 leads from 1 to 3"),
    ("x=1..3..-1", "no step of -1 leads from 1 to 3"),
    *((f"x=a,{half}", f"{half!r} is no whole range such as 1..10 or 1..10..2") for half in (
        "1..", "..5", "-1..", "1..5..", "..5..2", "1...3", "1..3..1..1", "+1..3", "1..1.", "0.1..1..0.0000000001",
        "1..1000000000000000")),
    ("x=1..10001", "has 10001 values, more than 10000 (limit sweep_jobs)"),
    ("x=1..999999999999999", "(limit sweep_jobs)"),
    ("x=1..200 y=1..51", "Sweep makes 10200 jobs, more than 10000 (limit sweep_jobs)"),
    ("zip(x=1..3 y=a,b)", "zip needs as many values of each name: x has 3, y has 2"),
    ("zip()", "zip() has no values"),
    ("x=1 x=2", "x has values twice"),
    ("zip(x=1 x=2)", "x has values twice"),
    ("jobid=1", "jobid already means something in names of files"),
    ("x=#g", "there is no File 'g' in the document"),
    ("x=#none", "x has no values"),
])
def test_what_is_wrong_is_named_with_its_place(text: str, message: str) -> None:
    with pytest.raises(FailurePolicyError) as told:
        Sweep.of(text, FILES)
    assert message in str(told.value)


@settings(max_examples=examples(200))
@given(st.text(st.sampled_from("xyz=.,#0123456789-()zip \n"), max_size=40))
def test_any_text_is_a_sweep_within_its_limits_or_a_named_fault(text: str) -> None:
    limits = replace(LIMITS, sweep_jobs=50)
    try:
        sweep = Sweep.of(text, FILES, limits)
    except FailurePolicyError as error:
        assert 1 <= error.column <= max(len(text), 1)
    else:
        rows = list(sweep.rows())
        assert len(rows) == sweep.size <= 50 and all(tuple(row) == sweep.names for row in rows)


_SECOND = ("<Job><Id>sim-010</Id><Name>{b}</Name><Executable>/opt/{b}</Executable>"
           "<Arguments>-n10${x}{x}{print}{echo;}</Arguments><OutputFile>{{b}}-{jobid}-{index:2}</OutputFile>"
           "<InitialWorkingDirectory>/w/10</InitialWorkingDirectory>"
           '<Environment><Variablename="X">10</Variable></Environment>'
           "<TaskGroup><Arguments>10</Arguments></TaskGroup></Job>")


def test_every_text_of_the_job_takes_the_values() -> None:
    """Braces in names of files keep their own tokens; a shell's variables and doubled braces are no places."""
    document, findings = expanded("""<Job><Id>sim-{x:3}</Id><Name>{y}</Name><Executable>/opt/{y}</Executable>
        <Arguments>-n {x} ${x} {{x}} {{print}} { echo; }</Arguments><OutputFile>{y}-{jobid}-{index:2}</OutputFile>
        <InitialWorkingDirectory>/w/{x}</InitialWorkingDirectory>
        <Environment><Variable name="X">{x}</Variable></Environment>
        <TaskGroup><Arguments>{x}</Arguments></TaskGroup>
        """ + sweep("zip(x=9..10 y=a,{b})") + "</Job>")
    assert findings == []
    jobs = [job for job, _ in document.jobs()]
    assert "".join(write_document(Document(jobs[1])).split()) == _SECOND
    assert [str(job.value("Id")) for job in jobs] == ["sim-009", "sim-010"]
    assert document.root.value("Id") == "sim"       # type: ignore[union-attr]


@pytest.mark.parametrize(("text", "message"), [
    (job("<Arguments>{y} {x}</Arguments>"), "Arguments names {y}, which has no values; {{y}} means the"),
    (job("<Arguments>{jobid} {x}</Arguments>"), "Arguments names {jobid}, which has no values"),
    (job(), "no text of the job names {x}: the jobs would be the same"),
    (job("<Arguments>{x} {y}</Arguments>", "<Name>n</Name>", text="x=1,2 y=a,b").replace("<Id>a", "<Id>a{x}"),
     "Id 'a{x}' names several jobs alike; let it name all values"),
    (job("<Arguments>{x}</Arguments>", sweep("x=1")), "Sweep stands there twice"),
])
def test_names_that_do_not_fit(text: str, message: str) -> None:
    document, findings = expanded(text)
    assert len(findings) == 1 and message in findings[0]
    assert len(list(document.jobs())) == 1


def test_a_group_with_a_sweep_in_it() -> None:
    """Who depended on the sweep depends on all of its jobs; the others stay as they are."""
    document, findings = expanded(f"""<JobGroup><Id>g</Id>{job("<Arguments>{x}</Arguments>")}
        <Job><Id>b</Id><Executable>/bin/true</Executable><Dependency condition="OnSuccess">a</Dependency></Job>
        </JobGroup>""")
    assert findings == []
    *some, last = (one for one, _ in document.jobs())
    assert [str(one.value("Id")) for one in some] == ["a_1", "a_2", "a_3"]
    assert [p.text for p in last.all("Dependency")] == ["a_1", "a_2", "a_3"]


@pytest.mark.parametrize(("target", "unknown"), [
    ("a-1", False), ("a", False), ("a-{x}", False), ("a-{y}", False), ("a-{z}", True), ("a-7", True), ("a-", True)])
def test_a_dependency_on_jobs_of_a_sweep(target: str, unknown: bool) -> None:
    """By the Ids that they will have, which values of another sweep may name."""
    varied = f"<Arguments>{{y}}{{z}}</Arguments><Dependency>{target}</Dependency>{sweep('y=2..3 z=3..4')}"
    single = f"<Dependency>{target}</Dependency>" if "{y" not in target and "{z" not in target else ""
    text = (f"<JobGroup><Id>g</Id><Job><Id>a-{{x}}</Id>{sweep('x=1..3')}</Job><Job><Id>b</Id>{varied}</Job>"
            f"<Job><Id>c</Id>{single}</Job></JobGroup>").encode()
    findings = Findings()
    check(read_document(text), findings)
    rules = [finding.rule for finding in findings if finding.rule == "SSS411"]
    assert rules == ["SSS411"] * (1 + bool(single)) if unknown else rules == []


def test_values_of_a_file_that_comes_with_the_document() -> None:
    document, findings = expanded(job("<Arguments>'{x}'</Arguments>", text="x=#f"), FILES)
    assert findings == [] and [str(one.value("Arguments")) for one, _ in document.jobs()] == ["'one'", "'two words'"]
    assert [len(list(jobs_in(document, Findings())))] == [2]


def test_a_document_without_a_sweep_is_left_alone() -> None:
    document = read_document(b"<Job><Id>a</Id><Executable>/bin/awk</Executable><Arguments>{print}</Arguments></Job>")
    assert expand(document, Findings()) is document


# --- the doors

RATES = """name = "r"
version = "1"
currency = "EUR"
[[rate]]
type = "VBR"
name = "Processors"
rate = "1"
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SSSJOB_JOURNAL", str(tmp_path / "journal.db"))
    Path("job.xml").write_text(job("<Arguments>{x}</Arguments><OutputFile>out-{x}</OutputFile>",
                                   "<Requested><Processors>2</Processors><Duration>60</Duration></Requested>"))
    Path("offer.xml").write_text(job("<Name>{x}</Name><Processors>2</Processors><Duration>60</Duration>"))
    Path("rates.toml").write_text(RATES)
    return "job.xml"


def test_every_door_counts_all_jobs(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    def said(*words: str) -> str:
        assert main([*words, "-q"]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    assert said("check", file) == ""
    assert said("explain", file).count("Job a_") == 3
    assert said("show", "--json", file).count('"type": "job"') == 3
    quoted = [json.loads(line) for line in said("quote", "--json", file, "--rates", "rates.toml").splitlines()]
    assert quoted[-1]["jobs"] == 3, quoted[-1]
    assert said("match", "offer.xml", "offer.xml").count(": met") == 3
    assert said("run", "--dry-run", file).count("/bin/echo") == 3
    assert said("run", file).count("<ExitCode>0</ExitCode>") == 3
    assert sorted(path.read_text() for path in Path().glob("out-*")) == ["1\n", "2\n", "3\n"]


@pytest.mark.parametrize(("text", "rule"), [
    (job("<Arguments>{y}{x}</Arguments>"), "SSS426"),
    (f"<JobGroup><Id>g</Id><JobDefaults>{sweep('x=1')}</JobDefaults><Job><Id>a</Id></Job></JobGroup>", "SSS426"),
])
def test_every_door_refuses_what_is_no_sweep_once(file: str, capsys: pytest.CaptureFixture[str], text: str,
                                                  rule: str) -> None:
    Path(file).write_text(text)
    for words in (["check"], ["run"], ["submit"], ["explain"], ["run", "--dry-run"]):
        assert main([*words, file]) == 1
        err = capsys.readouterr().err
        assert err.count(rule) == 1, (words, err)


def test_a_sweep_has_no_place_in_a_script(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "-t", "slurm", file]) == 1
    assert "SSS501 error Extension Sweep: dropped, Slurm has no place for it" in capsys.readouterr().err
