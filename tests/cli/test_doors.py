"""Every door reads every format, and what ``check`` rejects no door makes anything of: the same rule at the same place.

Two matrices: doors by formats, which come from the registry; doors by documents that are wrong.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import pytest

from sssjob import front
from sssjob.errors import RejectedError
from sssjob.findings import Findings, Policy
from sssjob.translators import ReadContext, WriteContext
from sssjob.translators.registry import BUILT_IN, get
from sssjob.xml.reader import read_document
from tests.cases import Cases
from tests.cli.conftest import Answer, Command

RATES: Final = ('name = "site"\nversion = "7"\ncurrency = "EUR"\n[[rate]]\ntype = "VBR"\nname = "Processors"\n'
                'rate = 0.5\nper = "hour"\n')
REQUEST: Final = """<Job><Name>n</Name><Machine>m</Machine><Project>p</Project><Executable>/bin/true</Executable>
<Environment export="true"/><Requested><Duration>60</Duration><Processors>1</Processors></Requested></Job>"""
OFFER: Final = """<Delivered><Processors>1</Processors><Duration>60</Duration><Project>p</Project></Delivered>"""
#: Formats of requests; one of records tells of what was, one of offers of what there is.
FORMATS: Final = tuple(name for name in BUILT_IN if get(name).kind not in ("record", "offer"))

#: Door -> its command line, FILE in the place of the document.
DOORS: Final = {
    "check": "check FILE", "show": "show FILE", "explain": "explain FILE", "query": "query //Executable FILE",
    "diff": "diff FILE FILE2", "match": "match FILE offer.xml", "offered": "match small.xml FILE",
    "convert": "convert -t sss FILE", "to a script": "convert -t slurm --policy warn FILE",
    "run": "run --policy ignore FILE -o made.xml",
    "submit": "submit --policy ignore FILE", "quote": "quote --rates rates.toml FILE",
    "charge": "charge --rates rates.toml FILE", "ledger quote": "ledger quote --rates rates.toml FILE",
    "ledger hold": "ledger hold --force --rates rates.toml FILE",
    "ledger charge": "ledger charge --rates rates.toml FILE",
}
#: Doors that make something of a document or promise something for it: they do nothing with one that is rejected.
MAKING: Final = ("convert", "to a script", "run", "submit", "quote", "charge", "ledger quote", "ledger hold",
                 "ledger charge", "match", "offered")
#: What ends a door that has read the document: the format is not to blame.
_NOT_READ: Final = re.compile(r"SSS1\d\d|no format|unknown format|is for documents|internal error|Traceback")


@pytest.fixture
def desk(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with rates, a request, an offer and a ledger and a journal of its own. What submit starts to look after
    its jobs, an interpreter, is not what is tested: it is left out."""
    monkeypatch.setattr(import_module("sssjob.run.client"), "keep", lambda entry: None)
    (place / "rates.toml").write_text(RATES)
    (place / "offer.xml").write_text(OFFER)
    (place / "small.xml").write_text("<Job><Id>s</Id></Job>")
    for name in ("SSSJOB_JOURNAL", "SSSJOB_LEDGER"):
        monkeypatch.setenv(name, "")        # what it was is put back after the test
    clear(place)
    return place


_numbers: Final = count()


def clear(desk: Path) -> None:
    """Take another ledger and journal, and remove what a door wrote."""
    number = next(_numbers)
    os.environ["SSSJOB_LEDGER"] = str(desk / f"ledger{number}.db")
    os.environ["SSSJOB_JOURNAL"] = str(desk / f"journal{number}.db")
    (desk / "made.xml").unlink(missing_ok=True)


def at(door: str, file: str, *more: str) -> Sequence[str]:
    """The command line of a door for a file."""
    words = DOORS[door].replace("FILE2", file + ".copy").replace("FILE", file).split()
    return [*words[:2], *more, *words[2:]] if words[0] == "ledger" else [words[0], *more, *words[1:]]


def put(text: str, file: str = "job") -> str:
    """Write a document, and its copy."""
    for name in (file, f"{file}.copy"):
        Path(name).write_text(text)
    return file


def spelt(name: str) -> str:
    """The request in a format."""
    document = get("sss").read(REQUEST.encode(), ReadContext())
    return get(name).write(document, WriteContext(policy=Policy.IGNORE))


@pytest.mark.parametrize("name", FORMATS)
def test_every_door_reads_every_format(sssjob: Command, desk: Path, name: str) -> None:
    """What it answers is the door's own matter (a script has no Machine, and nothing was delivered); that it was read
    shows in that nothing is said against the format and that no finding is about the text."""
    file = put(spelt(name))
    with Cases() as case:
        for door in DOORS:
            clear(desk)
            with case(door):
                answer = sssjob(*at(door, file, *(() if door == "offered" else ("-f", name))))  # an offer is recognised
                assert answer.code in (0, 1) and not _NOT_READ.search(answer.err), answer.err
                if door in ("check", "show", "explain", "query", "convert", "run", "submit", "diff"):
                    assert answer.code == 0, answer.err
                if door == "run":
                    jobs = read_document(Path("made.xml").read_bytes()).jobs()
                    assert [job.value("State") for job, _ in jobs] == ["Completed"]


@pytest.mark.parametrize("name", FORMATS)
def test_formats_are_recognised_at_doors(sssjob: Command, desk: Path, name: str) -> None:
    """As ``convert`` does it: with its sentence where two formats fit."""
    file = put(spelt(name))
    reply = sssjob("convert", "-q", "-t", "sss", file)
    for door in ("check", "show", "explain", "quote"):
        answer = sssjob(*at(door, file))
        assert (answer.code == 2) == (reply.code == 2)
        assert reply.code != 2 or answer.err.splitlines()[-1] == reply.err.splitlines()[-1]


@pytest.mark.parametrize("door", ["check", "show", "query", "charge", "ledger charge"])
def test_doors_that_look_at_facts_read_records(sssjob: Command, desk: Path, door: str) -> None:
    """A log of one job, recognised."""
    log = put("JobID|Account|State|Start|End|ElapsedRaw|AllocCPUS\n"
              "1|p|COMPLETED|2026-11-17T10:00:00|2026-11-17T10:01:00|60|1\n")
    Path("site.toml").write_text('name = "s"\nmachine = "m"\ntimezone = "UTC"\n')
    answer = sssjob(*at(door, log, "--site", "site.toml"))
    assert answer.code in (0, 1) and "sacct: it begins with columns of sacct" in answer.err, answer.err


@pytest.mark.parametrize("door", ["check", "show", "explain", "query", "quote", "convert"])
def test_a_script_from_standard_input(sssjob: Command, desk: Path, monkeypatch: pytest.MonkeyPatch, door: str) -> None:
    script = b"#!/bin/sh\n#BSUB -n 1 -W 1\ntrue\n"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(script)))
    answer = sssjob(*at(door, "-"))
    assert answer.err.startswith("-: lsf: 1 line of #BSUB that LSF obeys") and answer.code == 0, answer.err


# --- one gate -------------------------------------------------------------------------------------------------------

_AMOUNTS: Final = "<Machine>m</Machine><Project>p</Project>"


def job(text: str) -> str:
    """A job that is charged, held and run but for what is wrong with it."""
    return (f"<Job>\n  <Id>a</Id>\n  {_AMOUNTS}\n  {text}\n  <Requested>\n    <Duration>60</Duration>\n"
            "    <Processors>1</Processors>\n  </Requested>\n</Job>\n")


RUN: Final = "<Executable>/bin/true</Executable>"


def asking(text: str) -> str:
    """A job that asks for just this, beside a Duration."""
    return job(RUN).replace("    <Processors>1</Processors>", f"    {text}")


def tasks(text: str) -> str:
    """A job with one task group."""
    return job(f"{RUN}<TaskGroup>\n    {text}\n  </TaskGroup>").replace("    <Processors>1</Processors>\n", "")


#: Document that ``check`` rejects -> rule, line.
BAD: Final = {
    "a script that is not there": (job("<Executable>#Script</Executable>"), "SSS311", 4),
    "a range that goes down": (job(f'{RUN}<Node aggregation="Range">n[9-3]</Node>'), "SSS407", 4),
    "a range of a million million": (job(f'{RUN}<Node aggregation="Range">n[1-1000000000000]</Node>'), "SSS110", 4),
    "a cycle": (f"<JobGroup><Id>g</Id><Job><Id>a</Id>{RUN}\n<Dependency>b</Dependency></Job>"
                f"<Job><Id>b</Id>{RUN}<Dependency>a</Dependency></Job></JobGroup>", "SSS410", 2),
    "a job that waits for itself": (job(f"{RUN}<Dependency>a</Dependency>"), "SSS410", 4),
    "a group without Id": (f"<JobGroup><Job><Id>a</Id>{RUN}</Job></JobGroup>", "SSS305", 1),
    "one Id twice": (f"<JobGroup><Id>g</Id><Job><Id>a</Id>{RUN}</Job><Job><Id>a</Id>{RUN}</Job></JobGroup>", "SSS308",
                     1),
    "at least 16 and at most 8": (asking("<Processors op='GE'>16</Processors><Processors op='LE'>8</Processors>"),
                                  "SSS423", 7),
    "a queue that is wanted and not": (asking("<Queue>a</Queue><Queue op='NE'>a</Queue>"), "SSS423", 7),
    "more nodes than processors": (asking("<Processors>16</Processors><NodeCount>20</NodeCount>"), "SSS423", 7),
    "nodes that hold fewer": (asking("<NodeCount>2</NodeCount><Processors metric='PerNode'>4</Processors>"
                                     "<Processors>16</Processors>"), "SSS423", 7),
    "no processors": (asking("<Processors>0</Processors>"), "SSS423", 7),
    "no nodes": (asking("<NodeCount op='LE'>0</NodeCount>"), "SSS423", 7),
    "no time": (job(RUN).replace(">60<", ">0<"), "SSS423", 6),
    "no tasks": (tasks("<TaskCount>0</TaskCount>"), "SSS423", 5),
    "less than nothing": (asking("<Memory>-1</Memory>"), "SSS205", 7),
    "processors of no machine": (asking("<Processors>999999999999</Processors>"), "SSS110", 7),
    "processors of no machine, multiplied": (tasks("<TaskCount>999999999</TaskCount><TaskDefaults><Requested>"
                                                   "<Processors>999</Processors></Requested></TaskDefaults>"),
                                             "SSS110", 5),
    "tasks of a node of no machine": (tasks("<TaskDistribution type='TasksPerNode'>9999999999999</TaskDistribution>"),
                                      "SSS110", 5),
    "GPUs of no machine": (asking(f"<Resource name='GPU'>1{'0' * 30}</Resource>"), "SSS110", 7),
    "a start that no calendar has": (job(f"{RUN}<EligibleTime>1{'0' * 30}</EligibleTime>"), "SSS110", 4),
    "a deadline that no calendar has": (job(f"{RUN}<DeadlineTime>1{'0' * 30}</DeadlineTime>"), "SSS110", 4),
    "no number": (asking("<Processors>NaN</Processors>"), "SSS201", 7),
    "digits of another script": (asking("<Processors>\u0663</Processors>"), "SSS201", 7),
    "memory of no machine": (asking("<Memory units='YB'>999</Memory>"), "SSS110", 7),
    "an end before the start": (job(f"{RUN}<EligibleTime>2000</EligibleTime><DeadlineTime>1000</DeadlineTime>"),
                                "SSS423", 4),
    "a job that is over without Id": (f"<Job><State>Completed</State>{RUN}</Job>", "SSS305", 1),
}
#: Document that ``check`` warns of -> rule, line.
DOUBTFUL: Final = {
    "three tasks drawn, four counted": (tasks("<TaskCount>4</TaskCount>\n<TaskDistribution type='Geometry'>{1}{2}{3}"
                                              "</TaskDistribution>"), "SSS414", 6),
    "three nodes drawn, two counted": (tasks("<NodeCount>2</NodeCount>\n<TaskDistribution>{1}{2}{3}"
                                             "</TaskDistribution>"), "SSS414", 6),
    "counts of two levels": (tasks("<TaskCount>9</TaskCount>\n<TaskDistribution>2</TaskDistribution>").replace(
        "</Duration>", "</Duration><NodeCount>2</NodeCount>"), "SSS414", 6),
    "two tasks on a processor": (tasks("<TaskCount>2</TaskCount>").replace(
        "</Duration>", "</Duration>\n<Processors>1</Processors>"), "SSS414", 9),
    "more nodes than tasks": (tasks("<TaskCount>2</TaskCount>").replace(
        "</Duration>", "</Duration><NodeCount>4</NodeCount>"), "SSS414", 5),
    "two names for four nodes": (asking('<Processors>4</Processors><NodeCount>4</NodeCount>\n'
                                        '<Node op="EQ" aggregation="List">n1,n2</Node>'), "SSS414", 8),
    "two names for one node": (asking("<NodeCount>1</NodeCount><Processors>1</Processors><Node>n1</Node>\n"
                                      "<Node>n2</Node>"), "SSS414", 8),
    "an executable to be fetched": (job("<Executable>http://a/b.sh</Executable>"), "SSS425", 4),
    "a state that nobody knows": (job(f"{RUN}<State>Wibble</State>"), "SSS424", 4),
}
#: Door in Python -> what it does with a text, and the findings that it gives.
PYTHON: Final[dict[str, Callable[[str, Findings], object]]] = {
    "check": lambda text, found: found.extend(front.check(text)),
    "write": lambda text, found: front.write(front.read(text), findings=found),
    "convert": lambda text, found: found.extend(front.convert(text, "sss").findings),
    "match": lambda text, found: front.match(text, OFFER), "offered": lambda text, found: front.match(OFFER, text),
    "explain": lambda text, found: front.explain(text, findings=found),
    "quote": lambda text, found: front.quote(text, RATES),
    "query": lambda text, found: front.query("//Job", text, policy="Reject"),
    "run": lambda text, found: found.extend(front.run(text, policy="Ignore").findings),
    "submit": lambda text, found: front.submit(text, policy="Ignore"),
}


def told(answer: Answer, severity: str) -> set[tuple[str, ...]]:
    """(place, rule) of every finding of a severity."""
    return {(match[1], match[2]) for match in re.finditer(rf"^(\S+): (SSS\d+) {severity} ", answer.err, re.MULTILINE)}


@pytest.mark.parametrize(("text", "rule", "line"), BAD.values(), ids=BAD)
def test_what_check_rejects_every_door_rejects(sssjob: Command, desk: Path, text: str, rule: str, line: int) -> None:
    """With the same findings; what looks only may still show it, and nothing is written, run or promised."""
    file = put(text)
    wrong = told(sssjob("check", file), "error")
    assert (f"job:{line}", rule) in {(place.rsplit(":", 1)[0], r) for place, r in wrong}
    with Cases() as case:
        for door in DOORS:
            clear(desk)
            with case(door):
                policy = ["--policy", "reject"] if door in ("query", "run", "submit") else []
                answer = sssjob(*at(door, file), *policy)
                assert (answer.code, told(answer, "error") >= wrong) == (1, True), answer.err
                if door in MAKING:
                    assert answer.out == "" and not Path("made.xml").exists()


@pytest.mark.parametrize(("text", "rule", "line"), DOUBTFUL.values(), ids=DOUBTFUL)
def test_what_check_doubts_every_door_doubts(sssjob: Command, desk: Path, text: str, rule: str, line: int) -> None:
    """With the same findings, and none of them an error for it."""
    file = put(text)
    doubts = told(sssjob("check", file), "warning")
    assert (f"job:{line}", rule) in {(place.rsplit(":", 1)[0], r) for place, r in doubts}
    with Cases() as case:
        for door in DOORS:
            clear(desk)
            with case(door):
                answer = sssjob(*at(door, file), *(["--policy", "reject"] if door == "query" else []))
                assert told(answer, "warning") >= doubts, answer.err
                assert {r for _, r in told(answer, "error")} <= {"SSS603"}, answer.err
                assert answer.err.count(rule) == (2 if door == "diff" else 1), answer.err


@pytest.mark.parametrize(("text", "rule", "line"), (BAD | DOUBTFUL).values(), ids=BAD | DOUBTFUL)
def test_every_door_in_python_has_the_same_gate(sssjob: Command, desk: Path, text: str, rule: str, line: int) -> None:
    """As the commands: RejectedError with the same findings, or none; what gives findings gives the doubts too."""
    bad = any(text == one for one, _, _ in BAD.values())
    with Cases() as case:
        for door, opened in PYTHON.items():
            clear(desk)
            with case(door):
                findings = Findings()
                try:
                    opened(text, findings)
                    all_found = list(findings)
                except RejectedError as error:
                    all_found = list(error.findings)
                    assert bad or any(f.rule == "SSS603" for f in all_found)
                else:
                    assert not bad or door in ("check", "explain")
                places = {(f.rule, f.line, f.severity) for f in all_found}
                if bad or door in ("check", "write", "convert", "explain"):
                    assert (rule, line, "error" if bad else "warning") in places, places


def test_a_tree_has_the_same_gate(sssjob: Command, desk: Path) -> None:
    Path("in").mkdir()
    Path("in/bad.xml").write_text(BAD["a script that is not there"][0])
    Path("in/good.xml").write_text(job(RUN))
    answer = sssjob("convert", "-q", "-t", "slurm", "--policy", "warn", "in", "--out", "out")
    assert answer.code == 1 and "bad.xml:4:3: SSS311 error" in answer.err
    assert [p.name for p in sorted(Path("out").iterdir())] == ["good.sbatch"]


def test_records_are_facts(sssjob: Command, desk: Path) -> None:
    """Two records of one Id are two runs: converting them is not refused."""
    log = put("JobID|Account|State|Start|End|ElapsedRaw|AllocCPUS\n" +
              "1|p|COMPLETED|2026-11-17T10:00:00|2026-11-17T10:01:00|60|1\n" * 2)
    assert sssjob("convert", "-q", "-f", "sacct", "--option", "timezone=UTC", "-t", "csv", log).code == 0


# --- Ids ------------------------------------------------------------------------------------------------------------

def test_ids_are_given_where_a_ledger_needs_them(sssjob: Command, desk: Path) -> None:
    """The Name, else the place in the document; never that of another job; told, and written with the quote."""
    Path("a.xml").write_text(REQUEST)
    answer = sssjob("ledger", "quote", "--rates", "rates.toml", "a.xml", "-o", "quoted.xml")
    assert answer.code == 0 and "a.xml:1: SSS503 info Id: the job has none, it is called n" in answer.err
    assert "<Id>n</Id>" in Path("quoted.xml").read_text()
    assert "for job n of m" in sssjob("ledger", "hold", "--force", "--rates", "rates.toml", "a.xml").out


def test_a_site_names_the_machine_of_a_script(sssjob: Command, desk: Path) -> None:
    Path("site.toml").write_text('name = "s"\nmachine = "alpha"\n')
    Path("a.sh").write_text("#!/bin/sh\n#BSUB -n 1 -W 1 -P p\ntrue\n")
    hold = ("ledger", "hold", "--force", "--rates", "rates.toml", "a.sh")
    assert "names no Machine" in sssjob(*hold).err
    assert "for job job-1 of alpha" in sssjob(*hold, "--site", "site.toml").out


# --- many offers ----------------------------------------------------------------------------------------------------

def test_a_verdict_for_each_offer(sssjob: Command, desk: Path) -> None:
    """One is enough, with --all every one is needed; the jobs of a group are offers of their own."""
    Path("wanted.xml").write_text("<Job><Id>a</Id><Requested><Processors op='GE'>4</Processors></Requested></Job>")
    Path("sites.xml").write_text("<JobGroup><Id>s</Id>" + "".join(
        f"<Job><Id>n{n}</Id><Delivered><Processors>{n}</Processors></Delivered></Job>" for n in (2, 8)) + "</JobGroup>")
    line = ("match", "wanted.xml", "sites.xml", "offer.xml")
    verdicts = ("sites.xml, n2: not met\n  - Processors >= 4: offered 2 (more than is offered)\nsites.xml, n8: met\n"
                "offer.xml: not met\n  - Processors >= 4: offered 1 (more than is offered)\n")
    assert sssjob(*line) == (0, verdicts, "")
    assert sssjob(*line, "--all")[:2] == (1, verdicts)
    assert sssjob("match", "wanted.xml", "offer.xml", "offer.xml").code == 1


def test_offers_as_json(sssjob: Command, desk: Path) -> None:
    Path("wanted.xml").write_text("<Job><Id>a</Id><Requested><Processors>1</Processors></Requested></Job>")
    out = sssjob("match", "--json", "wanted.xml", "offer.xml", "small.xml").out
    assert [(r["type"], r["offer"], r["met"]) for r in map(json.loads, out.splitlines())] == [
        ("result", "offer.xml", True), ("result", "small.xml", False)]


def test_an_offer_that_is_refused_keeps_no_other_from_its_verdict(sssjob: Command, desk: Path) -> None:
    Path("wanted.xml").write_text("<Job><Id>a</Id><Requested><Processors>1</Processors></Requested></Job>")
    answer = sssjob("match", "wanted.xml", "broken.xml", "nowhere.xml", "offer.xml")
    assert (answer.code, answer.out) == (3, "offer.xml: met\n") and "broken.xml" in answer.err


@pytest.mark.parametrize("line", [
    "explain FILE", "quote --rates rates.toml FILE", "match many.xml FILE", "convert -t slurm --out made FILE",
    "split FILE -d parts", "diff FILE many.xml", "submit --dry-run --policy ignore --executor local FILE"])
def test_a_job_that_has_no_id_is_called_alike_at_every_door(sssjob: Command, desk: Path, line: str) -> None:
    """It was `number 2`, `2` and `job-2`, and its output went to `job-job-2.out`."""
    for name, seconds in (("several.xml", 60), ("many.xml", 70)):
        (desk / name).write_text("<JobGroup><Id>g</Id>" + 2 * (
            f"<Job><Executable>/bin/a</Executable><Requested><Duration>{seconds}</Duration></Requested></Job>")
            + "</JobGroup>")
    answer = sssjob(*line.replace("FILE", "several.xml").split())
    called = set(re.findall(r"(?<![\w-])(?:number |job-)*2(?=[:. ])", answer.out + answer.err)) - {"2"}
    assert called == {"job-2"}, answer


# --- the places of a script
_SCRIPT: Final = """#!/bin/sh
#SBATCH -N 2 --ntasks-per-node=4
#SBATCH -p a,b
#SBATCH --gres=gpu:a100:2 -o out.%j
#SBATCH -w n[9-3]
hostname
"""
#: Door -> the lines and columns of its findings that are about a directive, beside those of the list of nodes.
_DOORS_OF_A_SCRIPT: Final = {
    "convert -t psij --policy warn": {"3:9", "4:9", "4:27"},
    "convert -t jsdl --policy warn": {"2:14", "3:9", "4:9", "4:27"},
    "convert -t sge --policy warn": {"2:9", "2:14", "4:9"},
    "run --executor local --policy warn --dry-run": {"3:9", "4:9", "4:27"},
}


@pytest.mark.parametrize("door", _DOORS_OF_A_SCRIPT)
def test_findings_about_a_script_name_the_directive_at_every_door(sssjob: Command, place: Path, door: str) -> None:
    (place / "job.sh").write_text(_SCRIPT.replace("#SBATCH -w n[9-3]\n", ""))
    answer = sssjob(*door.split(), "job.sh")
    assert set(re.findall(r"^job\.sh:(\d+:\d+): ", answer.err, re.M)) == _DOORS_OF_A_SCRIPT[door], answer.err


def test_a_name_that_xml_cannot_hold_has_no_query(sssjob: Command, desk: Path) -> None:
    """A script may have it; the tree that the query is asked of cannot (it was an internal error)."""
    (desk / "job.sh").write_text("#!/bin/sh\n#SBATCH -J a\x1bb\nhostname\n")
    answer = sssjob("query", "//Executable", "job.sh")
    assert (answer.code, answer.out) == (1, "")
    assert told(answer, "error") == told(sssjob("check", "job.sh"), "error") == {("job.sh", "SSS201")}


@pytest.mark.parametrize("door", ["check", "convert -t psij", "convert -t sss", "run --executor local", "match",
                                  "quote --rates rates.toml"])
def test_what_is_wrong_in_a_script_has_one_place(sssjob: Command, desk: Path, door: str) -> None:
    (desk / "job.sh").write_text(_SCRIPT)
    answer = sssjob(*door.split(), "job.sh", *(["offer.xml"] if door == "match" else []))
    wrong = [line for line in answer.err.splitlines() if line.startswith("job.sh:5:9: ")]
    assert len(wrong) == 1 and "SSS407 error Node: 'n[9-3]'" in wrong[0], answer.err
