"""What findings mean for the job: every rule about one says it, every option that a dialect keeps is judged, and what
breaks the job is told before what only looks different."""

from __future__ import annotations

from pathlib import Path

import pytest

import sssjob
from sssjob.cli import main
from sssjob.consequences import CONSEQUENCES, PROPERTIES, consequence_of, meaning, worst_first
from sssjob.document.vocabulary import ELEMENTS
from sssjob.findings import RULES, Findings, Policy
from sssjob.translators.registry import get
from sssjob.translators.scripts.rows import dialect_of

Output = pytest.CaptureFixture[str]
DIALECTS = ("slurm", "pbspro", "torque", "flux", "htcondor", "lsf", "sge", "cobalt")
#: What reports of a script lead to that is no property of a job.
OTHERS = {"JobGroup", "comments", "Requested", "directive", "script", "--ignore-pbs", "TaskGroup", "Environment"}


def test_every_rule_about_scripts_says_what_it_means() -> None:
    silent = [rule.id for rule in RULES.values() if "SSS501" <= rule.id < "SSS540" and not rule.consequence]
    assert silent == []
    assert {rule.consequence for rule in RULES.values()} == {"", *CONSEQUENCES, "lost", "changed"}
    assert all(meaning(rule.consequence) for rule in RULES.values() if rule.consequence)


def test_properties_are_those_of_the_vocabulary() -> None:
    known = {element.name for element in ELEMENTS}
    assert [name for name in PROPERTIES if name.partition(" ")[0] not in known | OTHERS] == []


@pytest.mark.parametrize("name", DIALECTS)
def test_what_a_job_can_do_without_are_options_of_the_dialect(name: str) -> None:
    get(name)
    dialect = dialect_of(name)
    assert dialect is not None
    options = {option.lstrip("-") for option in dialect.known} | {begin.rstrip() for begin in dialect.open}
    assert [option for option in dialect.consequences if option.partition(".")[0] not in options] == []


@pytest.mark.parametrize(("rule", "subject", "policy", "consequence"), [
    ("SSS501", "Extension Array", Policy.WARN, "breaks"), ("SSS502", "Extension Array", Policy.WARN, "looks"),
    ("SSS501", "Memory", Policy.WARN, "breaks"), ("SSS502", "Memory", Policy.WARN, "costs"),
    ("SSS501", "Extension Comment", Policy.REJECT, "looks"), ("SSS501", "ResourceLimit CPUTime", Policy.WARN, "costs"),
    ("SSS501", "Extension somebody's", Policy.WARN, "breaks"), ("SSS510", "X", Policy.WARN, "breaks"),
    ("SSS522", "--time", Policy.WARN, "breaks"), ("SSS540", "line", Policy.WARN, "")])
def test_the_rule_and_the_property_say_it(rule: str, subject: str, policy: Policy, consequence: str) -> None:
    finding = Findings().add(rule, subject, "is so", policy=policy)
    assert finding is not None
    assert finding.consequence == consequence
    assert finding.record().get("consequence", "") == consequence


def test_a_note_never_breaks_a_job() -> None:
    assert {consequence_of(rule.consequence, "Memory", "info") for rule in RULES.values()} == {"", "looks"}


def test_the_order() -> None:
    warned = [worst_first("warning", word) for word in (*CONSEQUENCES, "")]
    assert [worst_first("error", ""), *warned] == [0, 1, 2, 3, 4]


LINES = """#!/bin/bash
#SBATCH --comment=x
#SBATCH --hint=nomultithread
#SBATCH --array=1-4
#SBATCH --mem=3G
./a
"""
TOLD = [
    "SSS501 warning [breaks] --array 1-4: dropped, Flux has no arrays of jobs, whose elements are submitted one by "
    "one: seq 1 1 4 | xargs -I@ flux batch --env=SLURM_ARRAY_TASK_ID=@ SCRIPT",
    "SSS501 warning [breaks] --mem 3G: Memory: dropped, Flux has no place for it",
    "SSS501 warning [costs] --hint nomultithread: dropped, Flux has no place for it",
    "SSS501 warning [looks] --comment x: Extension Comment: dropped, Flux has no place for it"]


def test_what_breaks_the_job_is_told_first(tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "a.sh").write_text(LINES)
    assert main(["convert", "-f", "slurm", "-t", "flux", str(tmp_path / "a.sh")]) == 0
    assert [line.partition(": ")[2] for line in capsys.readouterr().err.splitlines()] == TOLD


def test_beside_a_hunk_the_worst_reason_stands_first(tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "a.sh").write_text(LINES)
    assert main(["convert", "-f", "slurm", "-t", "flux", "--diff", "-q", str(tmp_path / "a.sh")]) == 0
    hunk = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("@@"))
    assert [reason.split("[")[1].split("]")[0] for reason in hunk.split("; ")] == ["breaks", "breaks", "costs", "looks"]


@pytest.mark.parametrize(("word", "text", "status"), [
    ("breaks", LINES, 1), ("costs", LINES.replace("array", "licenses"), 1),
    ("breaks", "#!/bin/bash\n#SBATCH --hint=nomultithread\n./a\n", 0),
    ("costs", "#!/bin/bash\n#SBATCH --hint=nomultithread\n./a\n", 1),
    ("costs", "#!/bin/bash\n#SBATCH --comment=x\n./a\n", 0), ("looks", "#!/bin/bash\n#SBATCH --comment=x\n./a\n", 1)])
def test_the_exit_status_of_a_conversion(tmp_path: Path, capsys: Output, word: str, text: str, status: int) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.sh").write_text(text)
    convert = ["convert", "-f", "slurm", "-t", "flux", "--fail-on", word, "-q"]
    assert main([*convert, str(tmp_path / "in" / "a.sh")]) == status
    assert main([*convert, str(tmp_path / "in"), "--out", str(tmp_path / "out")]) == status
    assert (tmp_path / "out" / "a.sh").exists()         # it says something of the result, it refuses none


def test_the_table_of_a_tree_begins_with_the_worst(tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "in").mkdir()
    for name in ("a.sh", "b.sh"):
        (tmp_path / "in" / name).write_text(LINES)
    (tmp_path / "in" / "c.sh").write_text("#!/bin/bash\n#SBATCH --comment=x\n./a\n")
    assert main(["convert", "-f", "slurm", "-t", "flux", str(tmp_path / "in"), "--out", str(tmp_path / "out")]) == 0
    rows = [line.split() for line in capsys.readouterr().out.split("files\n")[-1].splitlines()]
    assert [(row[0], row[-2], row[-1]) for row in rows if row[0] in CONSEQUENCES] == [
        ("breaks", "2", "2"), ("breaks", "2", "2"), ("costs", "2", "2"), ("looks", "3", "3")]


@pytest.mark.parametrize("name", ["csv", "jsonl", "ur1", "ur2", "car", "apel", "swf"])
def test_what_a_record_has_no_place_for_breaks_no_job(name: str) -> None:
    """The job has ended."""
    document = sssjob.read("<Job><Id>7</Id><User>ann</User><State>Completed</State><SubmitTime>1</SubmitTime>"
                           "<StartTime>2</StartTime><EndTime>62</EndTime><ExitCode>3</ExitCode><Shell>/bin/sh</Shell>"
                           "<Machine>m</Machine><Extension type='x' name='y'>z</Extension><Delivered>"
                           "<Processors>4</Processors><Duration>60</Duration></Delivered></Job>")
    options = {"site": "S"} if name in ("car", "apel") else None
    findings = sssjob.convert(document, to=name, policy="warn", options=options).findings
    assert any(finding.rule == "SSS501" for finding in findings)
    assert {finding.consequence for finding in findings} == {""}
