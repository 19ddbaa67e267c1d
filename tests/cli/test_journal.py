"""The commands on the journal, each in a process of its own: on this machine and on stand-ins for resource managers."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig
from sssjob.cli import main
from sssjob.cli._journal import ended_badly
from sssjob.findings import Policy
from sssjob.run.client import Client
from sssjob.run.journal import open_journal
from sssjob.xml.reader import read_document
from tests.cli.conftest import Answer
from tests.fakes import sge, slurm
from tests.fakes.lab import Lab, install
from tests.forks import Command
from tests.gate import until_there
from tests.psij.test_batch_labs import enter_lab

FAKES = {"slurm": slurm, "sge": sge}
BY_CANCEL = (5, 143, 137)       # whether there is a word on the signal depends on the resource manager


def shell(script: str, *more: str, name: str | None = "a") -> str:
    quoted = script.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    stated = "" if name is None else f"<Id>{name}</Id>"
    return (f"<Job>{stated}<Executable>/bin/sh</Executable><Arguments>-c '{quoted}'</Arguments>"
            f"<Environment export='true'/>{''.join(more)}</Job>")


def after(name: str, condition: str = "OnSuccess") -> str:
    return f"<Dependency condition='{condition}' designator='JobId'>{name}</Dependency>"


def group(*jobs: str) -> str:
    return f"<JobGroup><Id>g</Id>{''.join(jobs)}</JobGroup>"


GATE = until_there()      # a job that goes on when the test says so


class Site:
    """A folder with a journal, and an executor: this machine, a stand-in, or (real) a lab."""

    def __init__(self, executor: str, folder: Path, real: bool = False) -> None:
        self.executor, self.folder = executor, folder
        self.environment = {**os.environ, "SSSJOB_JOURNAL": str(folder / "state" / "journal.db"), "HOME": str(folder),
                            "PYTHONWARNINGS": "error"}
        self.lab: Lab | None = None
        if executor in FAKES and not real:
            fake = FAKES[executor]
            self.lab = install(str(fake.__file__), fake.COMMANDS, folder / "lab", folder / "bin")
            self.environment["PATH"] = f"{folder / 'bin'}:{os.environ['PATH']}"

    def start(self, *arguments: object) -> Command:
        return Command([str(a) for a in arguments], self.folder, self.environment)

    def __call__(self, *arguments: object) -> Answer:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=180)
        return Answer(process.wait(), out, err)

    def submit(self, text: str, *options: object) -> list[str]:
        """Submit a document; the ids that are printed."""
        (self.folder / "job.xml").write_text(text)
        code, out, err = self("submit", "job.xml", "--executor", self.executor, "-q", "--policy", "ignore", *options)
        assert (code, err) == (0, "")
        return out.split()

    def records(self, *arguments: object) -> list[dict[str, Any]]:
        code, out, err = self(*arguments, "--json")
        assert (code, err) == (0, "")
        return [json.loads(line) for line in out.splitlines()]

    @property
    def journal(self) -> Path:
        return Path(self.environment["SSSJOB_JOURNAL"])

    def keepers(self) -> list[int]:
        """The processes that look after jobs of this machine: those that write their log."""
        pids = []
        for path in Path("/proc").glob("[0-9]*/fd/1"):
            with suppress(OSError):
                log = path.readlink()
                if log.name == "keeper.log" and log.is_relative_to(f"{self.journal}.d"):
                    pids.append(int(path.parts[2]))
        return pids


@pytest.fixture(params=["local", "slurm", "sge", pytest.param("slurm lab", marks=pytest.mark.lab),
                        pytest.param("sge lab", marks=pytest.mark.lab)])
def site(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    executor, _, lab = request.param.partition(" ")
    if lab:
        enter_lab(executor, monkeypatch)
    site = Site(executor, tmp_path, real=bool(lab))
    yield site
    if site.lab is not None:
        site.lab.close()
    for pid in site.keepers():
        os.kill(pid, signal.SIGKILL)


def eventually(true: Callable[[], object], seconds: float = 90) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until
        time.sleep(0.05)


def follows(process: Command) -> bool:
    """Whether a command has come so far that it looks after signals, which a Python that starts does not."""
    mask = re.search(r"^SigCgt:\t(\w+)", Path(f"/proc/{process.pid}/status").read_text(), re.MULTILINE)
    return mask is not None and bool(int(mask[1], 16) >> (signal.SIGTERM - 1) & 1)


# --- one job

def test_submitted_by_one_followed_by_others(site: Site) -> None:
    assert site.submit(shell(f"{GATE}; echo hi; exit 3")) == ["a"]
    eventually(lambda: site.records("list")[0]["state"] == "Running")
    listed = site.records("list")[0]
    cluster = listed["cluster"]         # that of a lab is its own
    assert site.lab is None or cluster == ("fake (head:6817)" if site.executor == "slurm" else None)
    assert {name: listed[name] for name in list(listed)[:10]} | {"native_id": None} == {
        "id": "a", "key": "@1.1", "native_id": None, "name": None, "executor": site.executor, "cluster": cluster,
        "state": "Running", "outcome": None, "exit_code": None, "message": None}
    assert listed["native_id"]
    code, out, err = site("status", "a")
    assert (code, err, "<State>Running</State>" in out, "<StartTime>" in out) == (0, "", True, True)
    (site.folder / "go").touch()
    code, out, err = site("wait", "a", "--timeout", 120)
    assert (code, out, err) == (3, "", "")
    code, out, _ = site("status", f"{site.executor}:{listed['native_id']}")
    assert code == 0
    for text in ("<Id>a</Id>", "<State>Completed</State>", "<ExitCode>3</ExitCode>", "<Delivered>", "<Duration>",
                 f'<Extension type="LRM" name="NativeId">{listed["native_id"]}</Extension>'):
        assert text in out
    assert (site.folder / "job-a.out").read_text() == "hi\n"
    assert (site("list").out, [r["outcome"] for r in site.records("list", "--all")]) == ("", ["failed"])
    assert list(site.journal.with_name("journal.db.d").iterdir()) == []
    work = site.folder / ".psij" / "work" / site.executor
    assert [p.name for p in work.glob("*")] == []


def test_a_job_without_an_id_gets_the_native_one(site: Site) -> None:
    made = site.submit(shell("true", name=None))
    if site.executor == "local":
        made = [site.records("list", "--all")[0]["id"]]
    assert site("wait", made[0]).code == 0
    assert site.records("list", "--all")[0]["native_id"] == made[0]
    assert site("status", "job-1") == site("status", made[0])       # that is what all messages called it
    assert site("status", "job-2").code == 5


def test_a_job_without_an_id_is_found_by_its_name(site: Site) -> None:
    """Of several that were called alike the newest is meant, where all have ended."""
    for word in ("first", "second"):
        site.submit(shell(f"echo {word}", "<Name>ebb</Name>", name=None))
        assert site("wait", "ebb").code == 0
    assert "echo second" in site("status", "ebb").out and (site.folder / "job-ebb.out").read_text() == "second\n"


def test_sources_and_log(site: Site) -> None:
    site.submit(shell("exit 4"))
    assert site("wait", "a").code == 4
    code, out, _ = site("status", "a", "--sources")
    rows = dict(line.split(None, 1) for line in out.splitlines()[3:] if line)
    source = {"local": "measured", "slurm": "exit-file", "sge": "exit-file"}[site.executor]
    assert code == 0 and re.fullmatch(rf"4 +{source} +[\d.]+ s", rows["ExitCode"])
    assert {"State", "SubmitTime", "StartTime", "EndTime", "NativeId", "Delivered/Duration"} <= set(rows)
    facts = site.records("status", "a")[0]["facts"]
    assert {"fact": "ExitCode", "value": "4", "source": source}.items() <= next(
        f for f in facts if f["fact"] == "ExitCode").items()
    assert site.records("status", "a")[0]["disagreements"] == []
    code, out, _ = site("status", "a", "--annotate")
    assert code == 0 and out.count('type="SSSJob"') == len(facts)
    assert re.search(f'<Extension type="SSSJob" name="Source.ExitCode">{source}</Extension>', out)
    assert 'type="SSSJob"' not in site("status", "a").out
    for other in ("--sources", "--json"):
        assert site("status", "a", "--annotate", other).code == 2
    code, out, _ = site("log", "a")
    lines = [line.split("  ", 3)[3] for line in out.splitlines()]
    assert lines[0].startswith("about to be submitted by process ") and lines[1].startswith("submitted: native id ")
    assert lines[-1].startswith("ended: failed, exit code 4")
    events = site.records("log", "a")
    assert [e["kind"] for e in events if e["kind"] != "status"] == ["intent", "native", "ended"]
    assert events[0]["time"] <= events[-1]["time"]


def test_the_log_has_words_for_every_event() -> None:
    from sssjob.cli.log import _WORDS
    from sssjob.run.replaying import _CHANGES

    assert _WORDS.keys() == {*_CHANGES, "note"}


def test_cancel(site: Site) -> None:
    site.submit(group(shell("sleep 60"), shell("echo no > no", after("a"), name="b")))
    eventually(lambda: site.records("list")[0]["state"] == "Running")
    assert site("cancel", "g").code == 0
    assert site("wait", "g", "--timeout", 120).code in BY_CANCEL
    rows = site.records("list", "--all")
    assert [r["outcome"] for r in rows] == ["canceled", "canceled"] and not (site.folder / "no").exists()
    assert site("cancel", "g").code == 0            # nothing happens to jobs that have ended
    assert "<StatusMessage>cancel" in site("status", "a").out


def test_timeout_of_wait(site: Site) -> None:
    site.submit(shell(f"{GATE}; exit 7"))
    code, out, err = site("wait", "a", "--timeout", "0.5", "--json")
    assert (code, json.loads(err.splitlines()[-1])) == (6, {"kind": "result", "origin": "sssjob", "exit_code": 6})
    assert json.loads(out)["outcome"] is None
    (site.folder / "go").touch()
    code, out, err = site("wait", "a", "--json")
    assert (code, json.loads(err.splitlines()[-1])) == (7, {"kind": "result", "origin": "job", "exit_code": 7})
    assert site("wait", "a", "--no-job-code").code == 0


def test_interrupting_a_wait_ends_no_job(site: Site) -> None:
    site.submit(shell(f"{GATE}; exit 7"))
    waiting = site.start("wait", "a")
    eventually(lambda: follows(waiting))
    waiting.send_signal(signal.SIGINT)
    _, err = waiting.communicate(timeout=120)
    assert (waiting.returncode, "they go on" in err) == (130, True)
    (site.folder / "go").touch()
    assert site("wait", "a").code == 7


# --- groups

def test_a_group_goes_on_with_other_clients(site: Site) -> None:
    site.submit(group(shell("exit 1"), shell("date +%s > b", after("a", "OnFailure"), name="b"),
                      shell("echo c > c", after("b"), name="c"), shell("true", after("a"), name="d")))
    assert site("wait", "g", "--timeout", 120).code == 0
    assert [(r["id"], r["outcome"]) for r in site.records("list", "--all")] == [
        ("a", "failed"), ("b", "done"), ("c", "done"), ("d", "skipped")]
    assert (site.folder / "c").read_text() == "c\n"
    out = site("status", "g").out
    assert "<State>Completed</State>\n</JobGroup>" in out and "dependency: OnSuccess a does not hold" in out


def test_status_moves_a_group_on(site: Site) -> None:
    site.submit(group(shell("true"), shell("echo b > b", after("a"), name="b")))
    eventually(lambda: site("status", "g").code == 0 and (site.folder / "b").exists())
    eventually(lambda: site.records("list") == [])


def test_a_job_of_a_group_alone(site: Site) -> None:
    text = group(shell("true"), shell("true", name="b")).replace(
        "</Id><Job>", "</Id><JobDefaults><OutputFile>both</OutputFile></JobDefaults><Job>", 1)
    site.submit(text)
    assert site("wait", "g").code == 0
    out = site("status", "b").out
    assert out.startswith("<Job>\n") and "<Id>b</Id>" in out and "<OutputFile>both</OutputFile>" in out
    assert "<Id>a</Id>" not in out


def test_scripts_in_the_document_outlive_the_client(site: Site) -> None:
    text = shell("true").replace("<Executable>/bin/sh</Executable><Arguments>-c 'true'</Arguments>",
                                 "<Executable>#Script</Executable>")
    site.submit(f"<Request action='Submit'><Object>Job</Object><Data>{text}</Data><File id='Script'>"
                "#!/bin/sh\nsleep 1\necho script; exit 9</File></Request>")
    assert site("wait", "a").code == 9
    assert (site.folder / "job-a.out").read_text() == "script\n"


def test_held_by_the_user(site: Site) -> None:
    site.submit(shell("exit 2", "<Hold>User</Hold>"))
    waiting = site.start("wait", "a")
    eventually(lambda: follows(waiting))
    shown = site.records("list")[0]["state"]
    assert shown == "Hold" or (shown == "Idle" and site.executor != "local")     # the stand-ins do not tell
    out = site("status", "a").out       # by then the queue may have told that it is held
    assert f"<State>{shown}</State>" in out or "<State>Hold</State>" in out
    waiting.send_signal(signal.SIGUSR1)
    waiting.communicate(timeout=120)
    assert waiting.returncode == 2


def test_holds_by_id(site: Site) -> None:
    """One of two jobs is released; a job that waits in the queue, or in the journal, is held."""
    hold = "<Hold>User</Hold>"
    site.submit(group(shell("exit 2", hold), shell("exit 3", hold, name="b")))
    assert site("release", "a") == (0, "", "")
    assert site("wait", "a").code == 2
    assert site("hold", "a") == (5, "", "sssjob: a: it has ended\n")
    assert [row["state"] for row in site.records("list")] in (["Hold"], ["Idle"])
    assert site.records("release", "b")[0]["answer"] == "done"
    assert site("wait", "b").code == 3
    assert site("hold", "b", "a") == (5, "", "sssjob: b and 1 more: it has ended\n")     # a line for each of 200 jobs
    out = site("log", "b").out
    assert out.index("it is to be released") < out.index("  released\n") < out.index("ended: failed")
    site.submit(group(shell(GATE, name="c"), shell("exit 4", hold, after("c"), name="d")))
    assert site("hold", "d") == (0, "", "") and site("release", "d") == (0, "", "")
    (site.folder / "go").touch()
    assert site("wait", "d").code == 4


def test_run_again(site: Site) -> None:
    """A job that runs goes on as another attempt, where the manager can do that; one that has ended is another job."""
    requeued = "<Extension type='Scheduler' name='Requeue'>true</Extension>"
    site.submit(shell(f"echo run >> runs; {GATE}; exit 3", requeued))
    eventually(lambda: site.records("list")[0]["state"] == "Running" and (site.folder / "runs").exists())
    answer = site("rerun", "a")
    if site.executor == "local":
        assert answer == (5, "", "sssjob: a: the executor local has no means by which a job that was submitted could "
                                 "be run again\n")
    elif answer.code == 5:
        refusal = r"sssjob: a: Job \d+ cannot be run again: The job \d+ .*not re(run+|start)able\.?\n"
        assert re.fullmatch(refusal, answer.err)
    else:
        assert answer == (0, "", "")
        eventually(lambda: (site.folder / "runs").read_text() == "run\nrun\n")
    (site.folder / "go").touch()
    assert site("wait", "a").code == 3
    assert site("rerun", "@1.1") == (0, "a\n", "")
    assert site("wait", "a").code == 3
    assert [row["key"] for row in site.records("list", "--all")] == ["@1.1", "@2.1"]


def test_findings_about_a_job_that_is_run_again_name_its_submission(site: Site) -> None:
    """They named lines of a text that nobody sees: `-:6`."""
    site.submit(shell("true", "<Requested><Machine preference='2'>elsewhere</Machine></Requested>"), "--policy", "warn")
    assert site("wait", "a").code == 0
    answer = site("rerun", "a")
    assert answer[:2] == (0, "a\n") and (answer.err != "" or site.executor != "local")
    assert {line.split(" ")[0] for line in answer.err.splitlines()} <= {"@1:/Job/Requested/Machine:"}
    site("wait", "a")


def test_what_was_promised_is_promised_again(site: Site) -> None:
    """A job that runs again has the hooks of the first one, and those that are asked for."""
    site.submit(shell("exit 3"), "--on-end", "sh -c 'echo $SSSJOB_KEY first >> ends'")
    assert site("wait", "a").code == 3
    assert site("rerun", "--on-end", "sh -c 'echo $SSSJOB_KEY second >> ends'", "a") == (0, "a\n", "")
    assert site("wait", "@2.1").code == 3
    eventually(lambda: sorted((site.folder / "ends").read_text().splitlines()) == [
        "@1.1 first", "@2.1 first", "@2.1 second"])
    site.submit(shell("true", "<Hold>User</Hold>", name="held"))
    answer = site("rerun", "--on-end", "true", "held")
    assert (answer.code, answer.out) == (2, "") and "@3.1 has not" in answer.err
    site("cancel", "held")


def test_list(site: Site) -> None:
    """What is listed, in words and as JSON; the filters are options."""
    site.submit(group(shell("exit 3", name="x"), shell("true", after("x"), name="y")))
    assert site("wait", "g").code == 3
    assert site("list") == (0, "", "")
    titles, _, *jobs, last = site("list", "--all").out.splitlines()
    assert {"id", "key", "executor", "state", "submitted", "time", "why"} <= set(titles.split())
    assert [line.split()[:2] for line in jobs if not line.startswith(" ")] == [["x", "@1.1"], ["y", "@1.2"]]
    assert last == "2 jobs: 1 failed, 1 skipped"
    assert [row["id"] for row in site.records("list", "--state", "skipped", "--offline")] == ["y"]
    record = site.records("list", "--all", "--name", "x", "--since", "1h", "--executor", site.executor, "--group", "g",
                          "--sort=-elapsed")[0]
    assert record["elapsed"] == record["end_time"] - record["start_time"]
    assert site("list", "--since", "soon") == (
        2, "", "sssjob: 'soon' is no time, as 2026-11-22, 2026-11-22T10:00 or 3d (ago)\n")
    assert site("list", "--watch", "--json").code == 2


def test_files_are_submitted_together_or_not_at_all(site: Site) -> None:
    for name, text in {"one": shell("true", name="one"), "two": shell("true", name="two"), "bad": "<Job>"}.items():
        (site.folder / f"{name}.xml").write_text(text)
    options = ["--executor", site.executor, "-q", "--policy", "ignore"]
    assert site("submit", "one.xml", "bad.xml", *options).code == 1
    assert site.records("list", "--all") == []
    assert site("submit", "one.xml", "two.xml", *options)[:2] == (0, "one\ntwo\n")
    assert site("wait", "one", "two").code == 0


def test_what_is_rejected_leaves_nothing(site: Site) -> None:
    (site.folder / "job.xml").write_text(shell("true", "<Hold>System</Hold>", "<Colour>red</Colour>"))
    code, out, err = site("submit", "job.xml", "--executor", site.executor)
    assert (code, out, "SSS" in err) == (1, "", True)
    assert not site.journal.exists() or site.records("list", "--all") == []
    assert list(site.folder.glob("state/journal.db.d/*")) == []


# --- several clients, and clients that die

def test_two_clients_wait_for_one_job(site: Site) -> None:
    site.submit(shell(f"{GATE}; exit 6"))
    waiting = [site.start("wait", "a") for _ in range(2)]
    eventually(lambda: all(map(follows, waiting)))
    (site.folder / "go").touch()
    for one in waiting:
        one.communicate(timeout=120)
    assert [one.returncode for one in waiting] == [6, 6]
    assert [e["kind"] for e in site.records("log", "a")].count("ended") == 1


def test_many_clients_at_once(site: Site) -> None:
    """E46: no job is lost or doubled."""
    for n in range(3):
        (site.folder / f"{n}.xml").write_text(group(shell(f"echo {n} >> ran", name=f"a{n}"),
                                                    shell(f"echo b{n} >> ran", after(f"a{n}"), name=f"b{n}")))
    running = [site.start("submit", f"{n}.xml", "--executor", site.executor, "-q", "--policy", "ignore")
               for n in range(3)]
    assert [p.wait(180) for p in running] == [0, 0, 0]
    others = [site.start(*words) for words in (["wait", "@1", "@2", "@3"], ["wait", "@3"], ["status", "@1"], ["list"])]
    for p in [*running, *others]:
        p.communicate(timeout=180)
    assert [p.returncode for p in others] == [0, 0, 0, 0]
    assert sorted((site.folder / "ran").read_text().split()) == sorted(["0", "1", "2", "b0", "b1", "b2"])
    if site.lab is not None:
        assert len(site.lab.jobs()) == 6


def test_a_waiting_client_is_killed_and_another_takes_over(site: Site) -> None:
    site.submit(group(shell(GATE), shell("echo b >> b", after("a"), name="b")))
    first, second = site.start("wait", "g"), site.start("wait", "g")
    eventually(lambda: follows(first) and follows(second))
    first.kill()
    first.communicate()
    for pid in site.keepers():
        os.kill(pid, signal.SIGKILL)
    (site.folder / "go").touch()
    second.communicate(timeout=120)
    assert (second.returncode, (site.folder / "b").read_text()) == (0, "b\n")


def test_a_killed_run_is_found_in_the_journal(site: Site) -> None:
    (site.folder / "job.xml").write_text(group(shell(f"echo a >> ran; {GATE}; exit 3"),
                                               shell("echo b >> ran", after("a", "OnFailure"), name="b")))
    running = site.start("run", "job.xml", "--executor", site.executor, "-q", "--policy", "ignore")
    eventually(lambda: (site.folder / "ran").exists())
    running.kill()
    running.communicate()
    assert [r["id"] for r in site.records("list")] == ["a", "b"]
    (site.folder / "go").touch()
    assert site("wait", "g", "--timeout", 120).code == 0
    assert [(r["outcome"], r["exit_code"]) for r in site.records("list", "--all")] == [("failed", 3), ("done", 0)]
    assert (site.folder / "ran").read_text().split() == ["a", "b"]


def test_cancel_reaches_a_run_of_another_client(site: Site) -> None:
    (site.folder / "job.xml").write_text(shell("echo a > ran; sleep 60"))
    running = site.start("run", "job.xml", "--executor", site.executor, "-q", "--policy", "ignore")
    eventually(lambda: (site.folder / "ran").exists())
    assert site("cancel", "a").code == 0
    out, _ = running.communicate(timeout=120)
    assert running.returncode in BY_CANCEL and "<StatusMessage>cancel" in out


@pytest.mark.parametrize("site", ["slurm"], indirect=True)
def test_an_interrupted_submit_is_finished_by_the_next_client(site: Site) -> None:
    assert site.lab is not None
    lab = site.lab
    (site.folder / "job.xml").write_text(group(*(shell("true", name=f"j{n}") for n in range(24))))
    running = site.start("submit", "job.xml", "--executor", "slurm", "-q", "--policy", "ignore")
    eventually(lambda: len(lab.jobs()) > 2)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=120)
    assert (running.returncode, len(out.split()), "interrupted: " in err) == (130, 24, True)
    assert len(lab.jobs()) < 24
    assert site("wait", "g", "--timeout", "120").code == 0
    assert len(lab.jobs()) == 24


@pytest.mark.parametrize("site", ["local"], indirect=True)
def test_jobs_of_another_machine_are_left_to_it(site: Site) -> None:
    site.submit(shell(f"echo a >> ran; {GATE}; exit 3"))
    eventually(lambda: (site.folder / "ran").exists())
    os.kill(site.keepers()[0], signal.SIGKILL)
    (site.folder / "go").touch()
    with open_journal(site.journal) as journal:
        journal._connection.execute("UPDATE submissions SET client = 'elsewhere:1'")
    answer = site("wait", "a", "--timeout", "3")
    assert (answer.code, "is on the host elsewhere" in answer.err) == (4, True)
    assert site.keepers() == []
    with open_journal(site.journal) as journal:
        journal._connection.execute("UPDATE submissions SET client = ?", (f"{os.uname().nodename}:1",))
    assert site("wait", "a").code == 3


@pytest.mark.parametrize("site", ["local"], indirect=True)
def test_a_restart_of_the_machine(site: Site) -> None:
    """A job that may have begun before it is not run again; how it ended is not known, and nobody says he knows."""
    (site.folder / "job.xml").write_text(group(shell("echo a >> ran", name="a"), shell("sleep 60", name="b")))
    running = site.start("run", "job.xml", "--executor", "local", "-q", "--policy", "ignore")
    eventually(lambda: len(site.records("list", "--offline")) and (site.folder / "ran").exists())
    eventually(lambda: any(e["kind"] == "native" for e in site.records("log", "b")))
    running.kill()
    running.communicate()
    with open_journal(site.journal) as journal:
        journal._connection.execute("DELETE FROM events WHERE kind NOT IN ('intent', 'native') OR (job = 0 AND "
                                    "kind = 'native')")
        for number, data in journal._connection.execute("SELECT number, data FROM events").fetchall():
            journal._connection.execute("UPDATE events SET data = ? WHERE number = ?", (
                json.dumps(json.loads(data) | {"boot": "another"}), number))
    for record in site.folder.glob("state/journal.db.d/*/records/*"):
        pid = record.read_text().split("\n")[1].split()[0]
        if Path(f"/proc/{pid}").exists():
            os.kill(int(pid), signal.SIGKILL)
        record.unlink()
    assert site("wait", "g", "--timeout", "60").code == 5
    out = site("status", "g").out
    assert "<StatusMessage>lost: the machine was started anew" in out and "<ExitCode>" not in out
    assert (site.folder / "ran").read_text() == "a\n"


# --- this machine

@pytest.mark.parametrize("site", ["local"], indirect=True)
def test_a_killed_keeper_loses_nothing(site: Site) -> None:
    site.submit(group(shell(f"echo a >> ran; {GATE}; exit 3"),
                      shell("echo b >> ran", after("a", "OnFailure"), name="b")))
    eventually(lambda: (site.folder / "ran").exists())
    keepers = site.keepers()
    assert len(keepers) == 1
    os.kill(keepers[0], signal.SIGKILL)
    (site.folder / "go").touch()
    time.sleep(2)                       # the job ends while nobody looks
    assert site("wait", "g").code == 0
    assert [(r["outcome"], r["exit_code"]) for r in site.records("list", "--all")] == [("failed", 3), ("done", 0)]
    assert (site.folder / "ran").read_text().split() == ["a", "b"]
    eventually(lambda: site.keepers() == [])


@pytest.mark.parametrize("site", ["local"], indirect=True)
def test_time_limits_hold_after_the_keeper(site: Site) -> None:
    site.submit(shell("echo a > ran; sleep 60", "<Requested><Duration>3</Duration></Requested>"))
    eventually(lambda: (site.folder / "ran").exists())
    os.kill(site.keepers()[0], signal.SIGKILL)
    start = time.monotonic()
    site("wait", "a", "--timeout", "60")
    assert time.monotonic() - start < 55
    assert "<StatusMessage>timeout: the time limit was reached" in site("status", "a").out


@pytest.mark.parametrize("site", ["local"], indirect=True)
def test_killed_by_a_signal(site: Site) -> None:
    site.submit(shell("kill -9 $$"))
    assert site("wait", "a").code == 137
    out = site("status", "a").out
    assert '<Extension type="LRM" name="ExitSignal">9</Extension>' in out and "<ExitCode>" not in out


# --- jobs of others

@pytest.mark.parametrize("site", ["slurm", "sge"], indirect=True)
def test_attach(site: Site) -> None:
    site.submit(shell(f"{GATE}; exit 8"))
    native_id = site.records("list")[0]["native_id"]
    other = Site(site.executor, site.folder, real=True)
    other.environment = {**site.environment, "SSSJOB_JOURNAL": str(site.folder / "other.db")}
    assert other("attach", native_id, "--executor", site.executor)[:2] == (0, f"{native_id}\n")
    (site.folder / "go").touch()
    assert other("wait", native_id).code == 8
    assert other("attach", f"{site.executor}:{native_id}").code == 0        # it has ended; that is still known
    assert site("wait", "a").code == 8
    assert other("attach", native_id).code == 2


@pytest.mark.parametrize("site", ["local"], indirect=True)
def test_attach_a_process(site: Site) -> None:
    sleeper = subprocess.Popen(["sleep", "60"])
    assert site("attach", f"local:{sleeper.pid}").code == 0
    assert site("cancel", sleeper.pid).code == 0
    sleeper.wait(10)
    assert site.records("list", "--all")[0]["outcome"] == "canceled"
    code, _, err = site("attach", "local:999999999")
    assert (code, "no such process" in err) == (5, True)


@pytest.mark.parametrize("site", ["slurm"], indirect=True)
def test_attach_a_job_that_nobody_knows(site: Site, monkeypatch: pytest.MonkeyPatch,
                                        capsys: pytest.CaptureFixture[str]) -> None:
    for name, value in site.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(Client.look, "__defaults__", (0.01,))       # two polls that say nothing would be an end
    code, (out, err) = main(["attach", "slurm:4711"]), capsys.readouterr()
    assert (code, out) == (4, "4711\n") and "nothing is known yet" in err and "sssjob wait" in err, err
    for thread in threading.enumerate():
        if thread.name == "psij-slurm-queue":
            thread.join(20)         # it asks the stand-in, which is there no longer than this test


# --- resource managers that fail

@pytest.mark.parametrize("site", ["local"], indirect=True)
def test_why_there_is_no_code(site: Site) -> None:
    """A job that could not be started: run and wait say why, for their exit status is 5 for many reasons."""
    (site.folder / "job.xml").write_text("<Job><Id>a</Id><Executable>/no/such</Executable></Job>")
    code, _, err = site("run", "job.xml", "-q", "-o", "done.xml")
    assert (code, err) == (5, "sssjob: a: launch: cannot start /no/such: No such file or directory\n")
    assert site("wait", "a", "-q")[::2] == (5, err)


@pytest.mark.parametrize("site", ["slurm"], indirect=True)
def test_words_of_a_manager_stand_in_one_line(site: Site) -> None:
    assert site.lab is not None
    site.lab.fault("sbatch", exit=1, stderr="sbatch: error: bad\nsbatch: error: Batch job submission failed: Invalid "
                                                 "account")
    (site.folder / "job.xml").write_text(shell("true"))
    code, _, err = site("run", "job.xml", "--executor", "slurm", "-q", "-o", "done.xml")
    assert code == 5 and "sbatch: error: bad; sbatch: error: Batch job submission failed" in err and "u{" not in err


@pytest.mark.parametrize("site", ["slurm"], indirect=True)
@pytest.mark.parametrize(("fault", "code"), [
    ({"exit": 1, "stderr": "sbatch: error: Batch job submission failed: Invalid account"}, 5),
    ({"exit": 1, "stderr": "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy "
                           "(job submit limit, user's size and/or time limits)"}, None),
])
def test_a_refused_job(site: Site, fault: dict[str, Any], code: int | None) -> None:
    assert site.lab is not None
    site.lab.fault("sbatch", **fault)
    (site.folder / "job.xml").write_text(group(shell("true"), shell("true", after("a"), name="b")))
    out, _, err = site("submit", "job.xml", "--executor", "slurm", "-q", "--policy", "ignore", "--retries", "0")
    assert out in (4, 5) and code in (None, out)
    assert fault["stderr"] in err
    assert [(r["outcome"], r["native_id"]) for r in site.records("list", "--all")] == [
        ("failed", None), ("skipped", None)]
    assert site("wait", "g").code == 5 and site.lab.jobs() == []


@pytest.mark.parametrize("site", ["slurm"], indirect=True)
def test_a_full_queue_is_told_and_is_no_failure(site: Site) -> None:
    """Another status than that of a job that was refused: who submits this again runs it twice."""
    assert site.lab is not None
    site.lab.set(most=1)
    (site.folder / "job.xml").write_text(group(*(shell("sleep 600", name=name) for name in "abc")))
    code, out, err = site("submit", "job.xml", "--executor", "slurm", "-q")
    held = "sssjob: @1.2 and 1 more are held back: the queue is full: "
    assert (code, out) == (7, "a\nb\nc\n") and err.startswith(held) and "`sssjob wait`" in err
    assert site("list").err.startswith(held)
    assert site("cancel", "g").code == 0 and len(site.lab.jobs()) == 1


@pytest.mark.parametrize("site", ["slurm", "local"], indirect=True)
def test_a_request_that_is_made_twice_is_one(site: Site) -> None:
    """The ids and the status of the first time; another document or executor under the same token is refused."""
    (site.folder / "job.xml").write_text(group(shell("echo a >> ran"), shell("echo b >> ran", after("a"), name="b")))
    first = site("submit", "job.xml", "--executor", site.executor, "-q", "--token", "nightly 7")
    assert (first.code, first.out) == (0, "a\nb\n")
    assert site("wait", "g", "-q").code == 0
    again = site("submit", "job.xml", "--executor", site.executor, "-q", "--token", "nightly 7")
    assert (again.code, len(again.out.splitlines())) == (0, 2)
    assert (site.folder / "ran").read_text() == "a\nb\n"
    assert len(site.records("list", "--all")) == 2
    (site.folder / "other.xml").write_text(shell("echo c >> ran"))
    code, _, err = site("submit", "other.xml", "--executor", site.executor, "-q", "--token", "nightly 7")
    assert code == 2 and "the token is that of @1" in err
    assert site("submit", "job.xml", "--executor", "fluxexec", "-q", "--token", "nightly 7").code == 2
    assert site("submit", "job.xml", "other.xml", "-q", "--token", "x").code == 2
    assert site("submit", "job.xml", "--dry-run", "--token", "x").code == 2
    assert len(site.records("list", "--all")) == 2


@pytest.mark.parametrize("site", ["slurm"], indirect=True)
def test_a_request_goes_on_with_what_is_still_to_be_submitted(site: Site) -> None:
    """As a script does that takes 7 for a reason to ask again."""
    assert site.lab is not None
    site.lab.set(most=0)
    (site.folder / "job.xml").write_text(shell("exit 3"))
    words = ("submit", "job.xml", "--executor", "slurm", "-q", "--token", "x")
    assert site(*words)[:2] == (7, "a\n") and site(*words)[:2] == (7, "a\n") and not site.lab.jobs()
    site.lab.set(most=5)
    assert site(*words)[:2] == (0, "a\n") and len(site.lab.jobs()) == 1
    assert site("wait", "a", "-q").code == 3


@pytest.mark.parametrize("site", ["slurm"], indirect=True)
def test_a_cap_is_told_and_fine(site: Site) -> None:
    assert site.lab is not None
    (site.folder / "job.xml").write_text(group(*(shell("sleep 1", name=name) for name in "ab")))
    code, _, err = site("submit", "job.xml", "--executor", "slurm", "-q", "--max-queued", "1")
    assert (code, err) == (0, "sssjob: @1.2 is held back: of its submission no more than 1 may be in flight; submitted "
                              "when there is room, by any client (`sssjob wait`)\n")
    assert site("wait", "g", "-q", "--max-queued", "2").code == 0
    assert site("submit", "job.xml", "--max-queued", "0").code == 2


@pytest.mark.parametrize("site", ["slurm"], indirect=True)
def test_silence(site: Site) -> None:
    """What was known before is printed when the time for an answer is over."""
    assert site.lab is not None
    site.submit(shell(GATE))
    site.lab.fault("squeue", times=-1, exit=1, stderr="slurm_load_jobs error: Unable to contact slurm controller")
    site.lab.fault("sacct", times=-1, exit=1, stderr="sacct: error: Problem talking to the database")
    code, out, err = site("status", "a", "--timeout", "1.5")
    assert (code, "<Id>a</Id>" in out, "does not answer" in err) == (4, True, True)
    code, out, err = site("list", "--timeout", "1.5")
    assert (code, "a" in out, "does not answer" in err) == (4, True, True)
    assert site("list", "--offline").code == 0
    assert site("list", "--offline", "--timeout", "1").code == 2
    code, out, err = site("cancel", "a", "--timeout", "0.5")
    assert (code, "not ended yet: a" in err) == (4, True)
    site.lab.heal("squeue")
    site.lab.heal("sacct")
    assert site("wait", "a").code in BY_CANCEL


@pytest.mark.parametrize("site", ["slurm"], indirect=True)
def test_silence_while_submitting(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows whether the job exists: it is neither given up nor submitted again."""
    assert site.lab is not None
    config = BatchSchedulerExecutorConfig(work_directory=site.folder / "work", command_timeout=30, lost_after=1)
    monkeypatch.setenv("PATH", site.environment["PATH"])
    monkeypatch.chdir(site.folder)
    site.lab.set(wait=9.0)              # a job that runs leaves a record by which it is found
    for command in ("squeue", "sacct"):
        site.lab.fault(command, times=-1, exit=1, stderr="no answer")
    site.lab.fault("sbatch", after=True, exit=1, stderr="sbatch: error: Socket timed out on send/recv operation")
    with open_journal(site.journal) as journal:
        client = Client(journal, config=config)
        submission = client.submit(read_document(shell("exit 5").encode()), "slurm", policy=Policy.IGNORE)
        assert submission is not None and ended_badly([submission], False) == 7
        assert (submission.jobs[0].word, submission.jobs[0].row.outcome) == ("running", None)
        _, done = client.wait(["a"], 3)
        assert not done
        for command in ("squeue", "sacct"):
            site.lab.heal(command)
        jobs, done = client.wait(["a"], 120)
        assert done and jobs[0].row.exit_code == 5 and len(site.lab.jobs()) == 1
        assert any("found by its tag" in str(e.data) for e in journal.entry(1).events())


@pytest.mark.parametrize("site", ["slurm"], indirect=True)
def test_an_answer_that_is_lost(site: Site) -> None:
    """E06: the submit command fails, but the job exists."""
    assert site.lab is not None
    site.lab.fault("sbatch", after=True, exit=1, stderr="sbatch: error: Batch job submission failed: Socket timed out "
                                                        "on send/recv operation")
    assert site.submit(shell("exit 5")) == ["a"]
    assert site("wait", "a").code == 5
    assert len(site.lab.jobs()) == 1


# --- the journal itself

@pytest.mark.parametrize("site", ["local"], indirect=True)
def test_a_journal_that_cannot_be_used(site: Site) -> None:
    site.journal.parent.mkdir()
    site.journal.write_text("no journal" * 1000)
    (site.folder / "job.xml").write_text(shell("echo ran"))
    for words in (["submit", "job.xml", "-q", "--policy", "ignore"], ["list"], ["status", "a"], ["wait", "a"],
                  ["cancel", "a"], ["log", "a"], ["attach", "local:1"]):
        code, out, err = site(*words)
        assert (code, out, err.count("\n")) == (3, "", 1)
        assert err.startswith(f"sssjob: {site.journal}: the journal cannot be used: ")
    code, out, err = site("run", "job.xml", "--policy", "ignore")
    assert code == 0 and "a run that is killed will leave no trace" in err
    assert site("run", "job.xml", "--policy", "ignore", "--executor", "slurm").code == 3


@pytest.mark.parametrize("site", ["slurm"], indirect=True)
def test_full_disk_submits_nothing(site: Site) -> None:
    assert site.lab is not None
    site.submit(shell("true", name="before"))
    (site.folder / "job.xml").write_text(shell(f"true {'x' * 100000}"))
    line = f"ulimit -f 60; exec {sys.executable} -m sssjob submit job.xml --executor slurm -q --policy ignore"
    made = subprocess.run(["bash", "-c", line], cwd=site.folder, env=site.environment, capture_output=True, text=True)
    assert (made.returncode, made.stdout, "the journal cannot be used" in made.stderr) == (3, "", True)
    assert len(site.lab.jobs()) == 1 and site("wait", "before").code == 0


@pytest.mark.parametrize("site", ["local"], indirect=True)
@pytest.mark.parametrize("words", [["status", "nope"], ["wait", "@7"], ["log", "@7.1"], ["cancel", "slurm:7"]])
def test_a_job_that_nobody_knows(site: Site, words: list[str]) -> None:
    code, out, err = site(*words)
    assert (code, out, f"there is no job {words[1]!r}" in err) == (5, "", True)


@pytest.mark.parametrize("site", ["slurm"], indirect=True)
@pytest.mark.parametrize("shift", [-7200.0, 7200.0])
def test_clocks_that_are_set(site: Site, shift: float) -> None:
    """E37: what the journal has written lies an hour off; nothing is submitted twice, nothing is given up."""
    site.submit(group(shell("sleep 1; exit 3"), shell("true", after("a", "OnFailure"), name="b")))
    with open_journal(site.journal) as journal:
        journal._connection.execute("UPDATE events SET time = time + ?", (shift,))
        journal._connection.execute("UPDATE submissions SET time = time + ?", (shift,))
    assert site("wait", "g").code == 0
    assert all(f["age"] >= 0 for r in site.records("status", "g") for f in r["facts"])
    assert site.lab is not None and len(site.lab.jobs()) == 2


@pytest.mark.parametrize("site", ["local"], indirect=True)
@pytest.mark.parametrize(("words", "expected"), [
    (["submit", "job.xml", "--executor", "nope"], "nope"), (["attach", "12"], "whose job is it?"), (["status"], "ID"),
    (["wait", "a", "--timeout", "inf"], "no number of seconds"),
])
def test_usage(site: Site, words: list[str], expected: str) -> None:
    (site.folder / "job.xml").write_text(shell("true"))
    code, out, err = site(*words)
    assert (code, out, expected in err) == (2, "", True)
