"""Means of the resource managers beside amounts: addresses of mail, names, streams that are closed, rules of placing,
limits, and task groups with commands of their own."""

from __future__ import annotations

import pytest

from sssjob.document.model import Job
from sssjob.findings import Findings, Policy
from sssjob.translators import ReadContext, WriteContext, get
from sssjob.xml.reader import read_document

ADDRESS = {"slurm": "--mail-user={}", "pbspro": "-M {}", "torque": "-M {}", "lsf": "-u {}", "sge": "-M {}",
           "cobalt": "-M {}", "htcondor": "notify_user = {}"}


def written(name: str, body: str, **options: str) -> tuple[str, list[tuple[str, str]]]:
    findings = Findings("x")
    document = read_document(f"<Job>{body}</Job>" if "<Executable>" in body else
                             f"<Job><Executable>/bin/true</Executable>{body}</Job>")
    text = get(name).write(document, WriteContext(findings, policy=Policy.WARN, options=options))
    return text, [(f.kind, f.subject) for f in findings]


def job(name: str, script: str) -> Job:
    return next(j for j, _ in get(name).read(script.encode(), ReadContext(policy=Policy.WARN)).jobs())


@pytest.mark.parametrize("name", ADDRESS)
@pytest.mark.parametrize("uri", ["a@b.c", "smtp://a@b.c", "SMTP://a@b.c/", "mailto:a@b.c"])
def test_mail_goes_to_the_authority(name: str, uri: str) -> None:
    text, findings = written(name, f"<NotificationList uri='{uri}'>JobEnd</NotificationList>")
    assert f"{ADDRESS[name].format('a@b.c')}\n" in text
    assert "dropped" not in dict(findings)


@pytest.mark.parametrize("name", ADDRESS)
@pytest.mark.parametrize("uri", ["http://b.c/x", "xmpp://a@b.c", "smtp://a@b.c/inbox", "mailto:"])
def test_other_ways_to_notify_are_told(name: str, uri: str) -> None:
    text, findings = written(name, f"<NotificationList uri='{uri}'>JobEnd</NotificationList>")
    assert "b.c" not in text
    assert (("dropped", "NotificationList/@uri") in findings) is (uri != "mailto:")


@pytest.mark.parametrize("name", [*ADDRESS, "flux"])
def test_the_name_of_a_group_is_not_that_of_the_job(name: str) -> None:
    text, findings = written(name, "<Name>mine</Name><TaskGroup><Name>other</Name></TaskGroup>")
    assert "mine" in text and "other" not in text and ("dropped", "Name") in findings
    text, findings = written(name, "<TaskGroup><Name>other</Name></TaskGroup>")
    assert "other" not in text and ("dropped", "Name") in findings


@pytest.mark.parametrize(("name", "expected"), [
    ("slurm", ["--input=/dev/null", "--output=/dev/null", "--error=/dev/null"]), ("pbspro", ["-o /dev/null"]),
    ("torque", ["-e /dev/null", "exec < /dev/null"]), ("lsf", ["-i /dev/null", "-oo /dev/null", "-eo /dev/null"]),
    ("sge", ["-i /dev/null", "-o /dev/null", "-e /dev/null"]), ("cobalt", ["-i /dev/null", "-e /dev/null"]),
    ("flux", ["--input=/dev/null", "--output=/dev/null"]), ("htcondor", ["input = /dev/null", "error = /dev/null"])])
def test_a_stream_that_is_closed_at_once(name: str, expected: list[str]) -> None:
    text, findings = written(name, "<InputFile redirectList='Close'/><OutputFile redirectList='Close'/>"
                               "<ErrorFile redirectList='Close'/>")
    assert [one for one in expected if f"{one}\n" not in text] == [] and "dropped" not in dict(findings)


@pytest.mark.parametrize(("rule", "word"), [("RoundRobin", "cyclic"), ("Pack", "block"), ("Cyclic", "cyclic")])
def test_rules_of_placing(rule: str, word: str) -> None:
    text, findings = written("slurm", f"<TaskDistribution type='Rule'>{rule}</TaskDistribution>")
    assert f"#SBATCH --distribution={word}\n" in text and findings == []
    back = job("slurm", text).task_groups[0].first("TaskDistribution")
    assert back is not None and back.get("type") == "Rule" and back.text == {
        "cyclic": "RoundRobin", "block": "Pack"}[word]
    assert ("dropped", "TaskDistribution") in written("pbspro", f"<TaskDistribution>{rule}</TaskDistribution>")[1]


@pytest.mark.parametrize("lines", ["-m cyclic:block", "-m plane=4", "-m cyclic --ntasks-per-node=2"])
def test_other_ways_of_placing_are_kept(lines: str) -> None:
    job_text = job("slurm", f"#!/bin/sh\n#SBATCH {lines}\nhostname\n")
    kept = [p for p in job_text.properties() if p.get("name") == "distribution"]
    assert [p.text for p in kept] == [lines.split()[1]]


LIMITS = ("<ResourceLimit name='CoreFileSize'>1048576</ResourceLimit><ResourceLimit name='stacksize' type='Soft'>"
          "8388608</ResourceLimit><ResourceLimit name='OpenFiles' type='Hard'>99</ResourceLimit>")


@pytest.mark.parametrize(("name", "options", "lines"), [
    ("slurm", [], ["ulimit -c 2048", "ulimit -S -s 8192", "ulimit -H -n 99"]),
    ("pbspro", [], ["ulimit -c 2048", "ulimit -S -s 8192", "ulimit -H -n 99"]),
    ("lsf", ["-C 1MB", "-S 8MB"], ["ulimit -H -n 99"]),
    ("sge", ["-l h_core=1M", "-l s_stack=8M"], ["ulimit -H -n 99"])])
def test_limits_are_options_or_commands_and_come_back(name: str, options: list[str], lines: list[str]) -> None:
    text, findings = written(name, LIMITS)
    assert [one for one in options if f"{one}\n" not in text] == []
    assert text.endswith("".join(f"{line}\n" for line in [*lines, "/bin/true"]))
    assert [kind for kind, _ in findings] == ["approximated"] * len(lines)
    back = job(name, text)
    found = {p.get("name"): p.text for p in back.properties() if p.tag == "ResourceLimit"}
    assert found == {"CoreFileSize": "1048576", "StackSize": "8388608", "OpenFiles": "99"}
    assert "ulimit" not in next(f.text for f in get(name).read(text.encode(), ReadContext()).files.values())


@pytest.mark.parametrize(("first", "line", "bytes_"), [
    ("#!/bin/sh", "ulimit -c 2", 1024), ("#!/bin/bash", "ulimit -c 2", 2048),
    ("#!/usr/bin/env bash", "ulimit -S -f 1", 1024)])
def test_blocks_are_those_of_the_shell(first: str, line: str, bytes_: int) -> None:
    script = f"{first}\n{line}\nhostname\n"
    limit = job("slurm", script).first("ResourceLimit")
    assert limit is not None and limit.text == str(bytes_)
    for body in ("shim", "keep"):
        document = get("slurm").read(script.encode(), ReadContext())
        assert get("slurm").write(document, WriteContext(options={"body": body})) == script


@pytest.mark.parametrize("script", [
    "#!/bin/sh\nulimit -c unlimited\nhostname\n", "#!/bin/sh\necho\nulimit -c 0\n", "#!/bin/csh\nulimit -c 0\nls\n",
    "#!/bin/sh\nulimit -c 0 # none\nls\n", "#!/bin/sh\n ulimit -c 0\nls\n", "ulimit -c 0\nls\n"])
def test_other_commands_stay_in_the_script(script: str) -> None:
    assert job("slurm", script).first("ResourceLimit") is None


def test_what_the_shell_cannot_limit_is_told() -> None:
    text, told = written("slurm", "<ResourceLimit name='MaxProcesses'>5</ResourceLimit><ResourceLimit name='MaxDisk'>"
                                  "5</ResourceLimit><ResourceLimit name='CPUTime'>many</ResourceLimit>")
    assert "ulimit" not in text
    assert told == [("dropped", f"ResourceLimit {name}") for name in ("MaxProcesses", "MaxDisk", "CPUTime")]


GROUPS = ("<TaskGroup><TaskCount>1</TaskCount><Executable>/bin/a</Executable><Arguments>-x 'b c'</Arguments>"
          "</TaskGroup><TaskGroup><TaskCount>12</TaskCount><Executable>/bin/b</Executable><OutputFile>o.{jobid}"
          "</OutputFile><InitialWorkingDirectory>/d</InitialWorkingDirectory><Environment><Variable name='A'>1 2"
          "</Variable></Environment></TaskGroup>")


@pytest.mark.parametrize(("name", "line"), [
    ("slurm", "srun --het-group=0 /bin/a -x 'b c' : --het-group=1 --chdir=/d --output=o.%j env 'A=1 2' /bin/b"),
    ("pbspro", "mpirun -n 1 /bin/a -x 'b c' : -n 12 -wdir /d env 'A=1 2' /bin/b"),
    ("torque", "mpirun -n 1 /bin/a -x 'b c' : -n 12 -wdir /d env 'A=1 2' /bin/b"),
    ("lsf", "mpirun -n 1 /bin/a -x 'b c' : -n 12 -wdir /d env 'A=1 2' /bin/b")])
def test_groups_with_their_own_commands_start_side_by_side(name: str, line: str) -> None:
    text, findings = written(name, GROUPS)
    assert text.endswith(f"\n{line}\n")
    assert "dropped" not in dict(findings)
    assert (("approximated", "OutputFile") in findings) is (name != "slurm")


@pytest.mark.parametrize("name", ["sge", "cobalt", "flux"])
def test_where_one_command_is_started_what_the_others_have_is_told(name: str) -> None:
    findings = Findings("x")
    get(name).write(read_document(f"<Job>{GROUPS}</Job>"), WriteContext(findings))
    assert sorted(f.subject for f in findings if f.rejects) == ["Executable", "InitialWorkingDirectory", "Variable"]
    assert [f.kind for f in findings if f.subject in ("Arguments", "OutputFile")] == ["approximated"] * 2


def test_one_command_for_all_groups_stays_one() -> None:
    text, _ = written("slurm", "<Executable>/bin/a</Executable><TaskGroup><TaskCount>1</TaskCount></TaskGroup>"
                               "<TaskGroup><TaskCount>2</TaskCount></TaskGroup>")
    assert text.endswith("\nsrun --het-group=0,1 /bin/a\n")
