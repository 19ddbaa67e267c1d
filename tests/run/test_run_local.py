"""Documents run with real processes on this machine."""

from __future__ import annotations

import io
import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from sssjob.conversion.intake import gate
from sssjob.document.model import Document, Job, JobGroup
from sssjob.errors import UsageError
from sssjob.findings import Findings, Policy
from sssjob.run import Outcome, Progress, run
from sssjob.xml.reader import read_document

PIPELINE = Path(__file__).parents[2] / "examples" / "pipeline.xml"


def document(text: str) -> Document:
    return read_document(text.encode())


def shell(script: str, *more: str, name: str = "a") -> str:
    quoted = script.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return (f"<Job><Id>{name}</Id><Executable>/bin/sh</Executable><Arguments>-c '{quoted}'</Arguments>"
            f"<Environment export='true'/>{''.join(more)}</Job>")


def group(*jobs: str) -> str:
    return f"<JobGroup><Id>g</Id>{''.join(jobs)}</JobGroup>"


def after(name: str, condition: str = "OnSuccess", code: int | None = None, designator: str = "JobId") -> str:
    stated = "" if code is None else f" code='{code}'"
    return f"<Dependency condition='{condition}' designator='{designator}'{stated}>{name}</Dependency>"


def ran(text: str, where: Path, *, timeout: float | None = None, resume: bool = False) -> Outcome:
    return run(document(text), cwd=where, timeout=timeout, resume=resume)


def words(outcome: Outcome) -> dict[str, str]:
    return {job.label: job.word for job in outcome.jobs}


def job_of(outcome: Outcome, name: str = "a") -> Job:
    return next(job for job, _ in outcome.document.jobs() if job.value("Id") == name)


def root_group(outcome: Outcome) -> JobGroup:
    assert isinstance(outcome.document.root, JobGroup)
    return outcome.document.root


# --- one job --------------------------------------------------------------------------------------------------------

def test_facts_of_a_job(tmp_path: Path) -> None:
    before = int(time.time())
    out = ran(shell("echo hello; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"), tmp_path)
    job = job_of(out)
    assert (out.exit_code, out.origin) == (0, "job")
    assert (job.value("State"), job.value("ExitCode"), job.value("StartCount")) == ("Completed", 0, 1)
    for tag in ("SubmitTime", "StartTime", "EndTime"):
        assert before <= int(str(job.value(tag))) <= time.time()
    assert job.delivered is not None
    assert [p.tag for p in job.delivered.properties()][:3] == ["Duration", "Processors", "NodeCount"]
    assert job.delivered.value("Processors") == 1
    native = [p.text for p in job.all("Extension") if p.get("type") == "LRM" and p.get("name") == "NativeId"]
    assert len(native) == 1 and native[0].isdigit()
    assert (tmp_path / "job-a.out").read_text() == "hello\n"
    assert job.first("StatusMessage") is None


def test_exit_code_is_passed_on(tmp_path: Path) -> None:
    out = ran(shell("exit 200"), tmp_path)
    assert (out.exit_code, out.origin, job_of(out).value("ExitCode")) == (200, "job", 200)
    assert out.results[-1] == {"kind": "result", "origin": "job", "exit_code": 200}


def test_signal_is_no_exit_code(tmp_path: Path) -> None:
    out = ran(shell("kill -9 $$"), tmp_path)
    job = job_of(out)
    assert out.exit_code == 137
    assert job.first("ExitCode") is None
    assert [p.text for p in job.all("Extension") if p.get("name") == "ExitSignal"] == ["9"]
    assert str(job.value("StatusMessage")).startswith("signal:")


def test_missing_executable(tmp_path: Path) -> None:
    out = ran("<Job><Executable>/no/such/program</Executable></Job>", tmp_path)
    job = next(job for job, _ in out.document.jobs())
    assert out.exit_code == 5
    assert out.origin == "sssjob"
    assert (job.value("State"), job.first("StartTime")) == ("Completed", None)
    assert str(job.value("StatusMessage")).startswith("launch:")


def test_job_without_id_gets_the_native_one(tmp_path: Path) -> None:
    out = ran("<Job><Executable>/bin/true</Executable></Job>", tmp_path)
    job = next(job for job, _ in out.document.jobs())
    assert job.value("Id") == next(p.text for p in job.all("Extension"))


def test_what_never_ran_is_a_sound_document(tmp_path: Path) -> None:
    """A job that was not started, or that nobody could start, has an Id too, for a Completed job without one is an
    error: else neither ``check`` nor ``charge`` took what ``run`` had written."""
    outcome = ran(group("<Job><Executable>/no/such/file</Executable></Job>",
                        "<Job><Name>later</Name><Executable>/bin/true</Executable>" + after(
                            "first", designator="JobName") + "</Job>",
                        "<Job><Name>first</Name><Executable>/bin/false</Executable></Job>"), tmp_path)
    ids = [job.value("Id") for job, _ in outcome.document.jobs()]
    assert (ids[:2], str(ids[2]).isdigit()) == (["job-1", "later"], True)
    assert not any(f.rejects for f in gate(outcome.document))


def test_a_file_named_by_an_id_that_is_not_known_yet(tmp_path: Path) -> None:
    """The file is named before the manager gives the job its id; a number gets its zeros."""
    out = ran("<Job><Executable>/bin/true</Executable><OutputFile>o.{jobid:7}</OutputFile></Job>", tmp_path)
    assert [f.message for f in out.findings if "{jobid}" in f.message] == [
        "job-1: {jobid} is job-1 here: the name is needed before local gives the job its id"]
    assert (tmp_path / "o.00job-1").is_file()


def test_streams_environment_and_tokens(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("from stdin\n")
    text = shell('cat; echo "$WHO and ${HOME}"; echo bad >&2', """
        <Name>my name</Name><InputFile>in.txt</InputFile>
        <OutputFile redirectList='Append'>{name}-{jobid}.log</OutputFile>
        <ErrorFile redirectList='Merge'/>""").replace(
            "<Environment export='true'/>", "<Environment export='false'><Variable name='WHO'>${HOME}</Variable>"
            "<Variable name='HOME'>/h</Variable></Environment>")
    assert ran(text, tmp_path).exit_code == 0
    assert ran(text, tmp_path).exit_code == 0
    once = "from stdin\n${HOME} and /h\nbad\n"
    assert (tmp_path / "my_name-a.log").read_text() == once * 2


def test_output_is_overwritten_unless_appended(tmp_path: Path) -> None:
    for _ in range(2):
        ran(shell("echo one", "<OutputFile>o</OutputFile>", "<ErrorFile redirectList='Close'/>"), tmp_path)
    assert (tmp_path / "o").read_text() == "one\n"
    assert [p.name for p in tmp_path.iterdir()] == ["o"]


@pytest.mark.parametrize(("more", "lines"), [
    ("<OutputFile>o</OutputFile>", 3), ("<OutputFile redirectList='Append'>o</OutputFile>", 4),
    ("<OutputFile>o</OutputFile><ErrorFile>{pwd}/o</ErrorFile>", 3)])
def test_task_groups_share_an_output_file(tmp_path: Path, more: str, lines: int) -> None:
    """Both run at the same time: the second neither empties the file nor writes over what the first has written."""
    (tmp_path / "o").write_text("old\n")
    more = more.replace("{pwd}", str(tmp_path))
    wait_for_other = "echo early; touch $$.up; while [ $(ls *.up | wc -l) -lt 2 ]; do sleep 0.02; done; "
    text = shell(f"{wait_for_other}mkdir late 2> none || exit 0; echo late", more, "<TaskGroup/><TaskGroup/>")
    ran(text, tmp_path)
    assert sorted((tmp_path / "o").read_text().split()) == ["early", "early", "late", "old"][:lines]


def test_resource_limit(tmp_path: Path) -> None:
    limits = "<ResourceLimit name='OpenFiles' type='Soft'>33</ResourceLimit><ResourceLimit name='OpenFiles' " \
             "type='Hard'>44</ResourceLimit><ResourceLimit name='CoreFileSize'>0</ResourceLimit>"
    ran(shell("ulimit -Sn; ulimit -Hn; ulimit -c", limits, "<OutputFile>o</OutputFile>"), tmp_path)
    assert (tmp_path / "o").read_text().split() == ["33", "44", "0"]


def test_script_that_comes_along(tmp_path: Path) -> None:
    request = """<Request action='Submit'><Object>Job</Object><Data><Job><Executable>#Script</Executable>
        <Arguments>x 'y z'</Arguments><OutputFile>o</OutputFile></Job></Data>
        <File id='Script'>#!/bin/sh
echo "$# $2"; ls -ld "$0" | cut -c1-10; echo "$0"
</File></Request>"""
    assert ran(request, tmp_path).exit_code == 0
    count, mode, path = (tmp_path / "o").read_text().splitlines()
    assert (count, mode) == ("2 y z", "-rwx------")
    assert not os.path.exists(path)


def test_time_limit(tmp_path: Path) -> None:
    out = ran(shell("sleep 20", "<Requested><Duration>1</Duration></Requested>"), tmp_path)
    job = job_of(out)
    assert out.exit_code == 143
    assert str(job.value("StatusMessage")).startswith("timeout:")
    assert job.delivered is not None and job.delivered.value("Duration") in (1, 2)


def test_eligible_time_is_waited_for(tmp_path: Path) -> None:
    due = int(time.time()) + 2
    out = ran(shell("true", f"<EligibleTime>{due}</EligibleTime>"), tmp_path)
    assert int(str(job_of(out).value("StartTime"))) >= due


def test_held_jobs_wait_for_the_user(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGUSR1)
    start = time.time()
    threading.Timer(1, os.kill, (os.getpid(), signal.SIGUSR1)).start()
    out = ran(group(shell("true", "<Hold>User</Hold>", name="h"), shell("true", name="f"),
                    shell("true", after("h"), name="l")), tmp_path, timeout=120)
    assert (out.exit_code, words(out)) == (0, {"h": "done", "f": "done", "l": "done"})
    assert time.time() - start >= 1
    assert int(str(job_of(out, "f").value("StartTime"))) <= int(str(job_of(out, "h").value("StartTime")))
    assert job_of(out, "h").value("Hold") == "User" and signal.getsignal(signal.SIGUSR1) is before


def test_held_jobs_are_given_up_with_the_time_limit(tmp_path: Path) -> None:
    out = ran(shell("true", "<Hold>User</Hold><EligibleTime>1</EligibleTime>"), tmp_path, timeout=0.5)
    assert (out.exit_code, words(out)) == (6, {"a": "skipped"})
    assert job_of(out).value("StatusMessage") == "cancel: timeout before it was started"


# --- groups ---------------------------------------------------------------------------------------------------------

def test_conditions(tmp_path: Path) -> None:
    out = ran(group(
        shell("true", after("bad", "OnSuccess"), name="no"),
        shell("exit 3", name="bad"),
        shell("true", after("bad", "OnFailure"), name="answer"),
        shell("true", after("bad", "OnExit", 3), name="three"),
        shell("true", after("bad", "OnExit", 4), name="four"),
        shell("true", after("no", "OnExit"), name="after-skipped"),
        shell("true", after("both", designator="JobName"), name="named"),
        shell("true", "<Name>both</Name>", name="b1"), shell("true", "<Name>both</Name>", name="b2"),
    ), tmp_path)
    assert words(out) == {"no": "skipped", "bad": "failed", "answer": "done", "three": "done", "four": "skipped",
                          "after-skipped": "skipped", "named": "done", "b1": "done", "b2": "done"}
    skipped = job_of(out, "no")
    assert skipped.value("State") == "Completed"
    assert skipped.value("StatusMessage") == "dependency: OnSuccess bad does not hold"
    assert skipped.first("StartTime") is None and skipped.first("ExitCode") is None
    assert root_group(out).value("State") == "Completed"
    assert out.exit_code == 0


def test_unanswered_failure_is_the_exit_code(tmp_path: Path) -> None:
    out = ran(group(shell("true", name="x"), shell("exit 7", name="y"), shell("exit 8", name="z")), tmp_path)
    assert (out.exit_code, out.origin) == (7, "job")


def test_independent_jobs_run_side_by_side(tmp_path: Path) -> None:
    """Each waits for the others to be there."""
    (tmp_path / "there").mkdir()
    meets = "cd {}/there; : > {}; until test $(ls | wc -l) = 5; do sleep 0.05; done"
    out = ran(group(*(shell(meets.format(tmp_path, n), name=f"j{n}") for n in range(5))), tmp_path, timeout=60)
    assert out.exit_code == 0


def test_task_groups_and_tasks(tmp_path: Path) -> None:
    out = ran(shell('echo $ROLE', """<ErrorFile redirectList='Close'/>
        <TaskGroup><TaskCount>1</TaskCount><OutputFile>m</OutputFile>
          <Environment><Variable name='ROLE'>master</Variable></Environment></TaskGroup>
        <TaskGroup><TaskCount>3</TaskCount><OutputFile>s</OutputFile>
          <Environment><Variable name='ROLE'>slave</Variable></Environment></TaskGroup>"""), tmp_path)
    assert out.exit_code == 0
    assert (tmp_path / "m").read_text() == "master\n"
    assert (tmp_path / "s").read_text() == "slave\n" * 3
    groups = job_of(out).task_groups
    assert all(g.delivered is not None and g.delivered.value("NodeCount") == 1 for g in groups)


def test_first_failing_task_group_counts(tmp_path: Path) -> None:
    part = "<TaskGroup><Executable>/bin/sh</Executable><Arguments>-c 'exit {0}'</Arguments></TaskGroup>"
    out = ran(f"<Job><Id>a</Id>{part.format(0)}{part.format(4)}{part.format(5)}</Job>", tmp_path)
    assert out.exit_code == 4


def test_earlier_results_go_and_resume_keeps_successes(tmp_path: Path) -> None:
    done = ("<State>Completed</State><ExitCode>0</ExitCode><EndTime>5</EndTime>"
            "<Delivered><Duration>9</Duration></Delivered>")
    text = group(shell("echo again", done, name="a"), shell("true", after("a"), name="b"))
    out = ran(text, tmp_path)
    assert [f.rule for f in out.findings if f.rule == "SSS601"] == ["SSS601"]
    assert words(out) == {"a": "done", "b": "done"}
    assert int(str(job_of(out).value("EndTime"))) > 5
    kept = ran(text, tmp_path, resume=True)
    assert words(kept) == {"a": "kept", "b": "done"}
    assert job_of(kept).value("EndTime") == 5


# --- stopping and refusing ------------------------------------------------------------------------------------------

def test_timeout_cancels_everything(tmp_path: Path) -> None:
    start = time.monotonic()
    out = ran(group(shell("sleep 30", name="x"), shell("true", after("x"), name="y")), tmp_path, timeout=0.5)
    assert time.monotonic() - start < 25
    assert (out.exit_code, out.origin) == (6, "sssjob")
    assert words(out) == {"x": "canceled", "y": "skipped"}
    assert str(job_of(out, "x").value("StatusMessage")).startswith("cancel:")


def test_interrupt_cancels_and_writes_the_facts(tmp_path: Path) -> None:
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    out = ran(group(shell("sleep 30", name="x"), shell("true", after("x"), name="y")), tmp_path)
    assert (out.exit_code, out.origin) == (130, "sssjob")
    assert words(out) == {"x": "canceled", "y": "skipped"}
    assert root_group(out).value("State") == "Completed"


@pytest.mark.parametrize(("number", "code", "why"), [
    (signal.SIGTERM, 143, "terminated"), (signal.SIGHUP, 129, "hangup")])
def test_other_signals_are_like_an_interrupt(tmp_path: Path, number: signal.Signals, code: int, why: str) -> None:
    before = signal.getsignal(number)
    threading.Timer(0.5, os.kill, (os.getpid(), number)).start()
    out = ran(group(shell("sleep 60"), shell("true", after("a"), name="b")), tmp_path)
    assert (out.exit_code, out.origin, out.stopped) == (code, "sssjob", why)
    assert str(job_of(out, "b").value("StatusMessage")) == f"cancel: {why} before it was started"
    assert signal.getsignal(number) is before


def test_planned_is_asked_before_anything_starts(tmp_path: Path) -> None:
    texts: list[str] = []

    def planned(findings: Findings) -> bool:
        texts.extend(f.rule for f in findings)
        return False

    text = shell("touch started", "<Requested><Processors>5000</Processors></Requested>")
    out = run(document(text), cwd=tmp_path, planned=planned)
    assert (out.exit_code, out.origin, out.jobs) == (1, "sssjob", [])
    assert "SSS604" in texts and not (tmp_path / "started").exists()


def test_nothing_starts_when_a_finding_rejects(tmp_path: Path) -> None:
    text = group(shell("touch started", name="x"), shell("true", "<Hold>System</Hold>", name="y"))
    out = ran(text, tmp_path)
    assert (out.exit_code, out.origin, out.jobs) == (1, "sssjob", [])
    assert not (tmp_path / "started").exists()
    assert out.document == document(text)
    warned = run(document(text), cwd=tmp_path, policy=Policy.WARN)
    assert warned.exit_code == 0 and (tmp_path / "started").exists()


def test_unknown_executor() -> None:
    with pytest.raises(UsageError, match="nowhere"):
        run(document("<Job><Executable>/bin/true</Executable></Job>"), "nowhere", findings=Findings())


class Gone(io.StringIO):
    """A terminal that was closed."""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        raise OSError(5, "Input/output error")


def test_terminal_that_goes_away_does_not_end_the_run(tmp_path: Path) -> None:
    out = run(document(shell("exit 3")), cwd=tmp_path, progress=Progress(stream=Gone()))
    assert (out.exit_code, out.origin, job_of(out).value("ExitCode")) == (3, "job", 3)


def test_no_job_is_left_behind_by_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("sssjob.run.facts.record", fail)
    with pytest.raises(ZeroDivisionError):
        ran(shell("exec sleep 60"), tmp_path)
    end = time.monotonic() + 60
    while time.monotonic() < end and _lives_in(tmp_path):
        time.sleep(0.05)
    assert not _lives_in(tmp_path)


def _lives_in(folder: Path) -> bool:
    """Whether a process has the directory of the job."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):         # it has ended meanwhile
            if os.readlink(process / "cwd") == str(folder):
                return True
    return False


def test_progress_is_told(tmp_path: Path) -> None:
    progress = Progress(shown=False)
    run(document(group(shell("true", name="x"), shell("exit 1", name="y"))), cwd=tmp_path, progress=progress)
    assert progress.states == {"x": "done", "y": "failed"}
    assert progress.line() == "2 of 2 jobs ended, 1 failed"


def test_pipeline_example(tmp_path: Path) -> None:
    out = run(read_document(PIPELINE), cwd=tmp_path)
    assert out.exit_code == 0
    assert words(out) == {**dict.fromkeys(("prepare", "compress", "checksum", "stamp", "verify", "recover", "ranks"),
                                          "done"), "inspect": "failed", "never": "skipped"}
    assert (tmp_path / "work" / "verify.out").read_text() == "data.txt: OK\nverified\n"
    assert not [f for f in out.findings if f.rejects]
