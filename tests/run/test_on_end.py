"""What is promised for the end of a job is done by whichever client is there, at least once, and known by its key."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from sssjob.cli import _top_tables, list_
from sssjob.cli.log import said
from sssjob.errors import UsageError
from sssjob.limits import LIMITS
from sssjob.run import on_end
from sssjob.run.client import Client
from sssjob.run.listing import Filter
from sssjob.run.on_end import Hook, hook_of
from sssjob.xml.reader import read_document
from sssjob.xml.twin import from_json
from tests.forks import command
from tests.gate import until_there
from tests.run.support import Desk, after, desk_on, group, shell

#: A command that writes down what it is told.
TELL = ("/bin/sh -c 'cat > \"doc.$SSSJOB_ID\"; echo \"$SSSJOB_KEY $SSSJOB_ID $SSSJOB_NATIVE_ID $SSSJOB_STATE "
        "$SSSJOB_OUTCOME ${SSSJOB_EXIT_CODE-none} $SSSJOB_IDEMPOTENCY_KEY\" >> told'")


def submit(desk: Desk, text: str, *hooks: str) -> None:
    submission = desk.client().submit(read_document(text.encode()), desk.executor, cwd=desk.folder,
                                      on_end=[hook_of(one) for one in hooks])
    assert submission is not None


def told(desk: Desk) -> list[list[str]]:
    return sorted(line.split(" ") for line in desk.text("told").splitlines())


class Receiver:
    """A web server on this machine. answers: statuses to give, the last one for ever."""

    def __init__(self, *answers: int) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        left = list(answers)
        got = self.got

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                got.append((dict(self.headers), body))
                self.send_response(left.pop(0) if len(left) > 1 else left[0])
                self.send_header("Location", "/elsewhere")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook/secret"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self) -> Receiver:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


def test_any_client_runs_the_command_once_for_each_job(desk: Desk) -> None:
    submit(desk, group(shell("true", name="well"), shell("exit 3", name="badly"),
                       shell("true", after("badly"), name="never")), TELL)
    desk.wait("g")
    for _ in range(2):
        client = desk.client()
        client.look([client.journal.entry(number) for number in client.journal.unkept()])
    desk.left()         # this machine: by the process that looks after the jobs
    native = {name: desk.job(name).row.native_id or "" for name in ("well", "badly", "never")}
    token = desk.client().journal.entry(1).token
    key = hook_of(TELL).id
    assert told(desk) == [
        ["@1.1", "well", native["well"], "Completed", "done", "0", f"{token}.1.{key}"],
        ["@1.2", "badly", native["badly"], "Completed", "failed", "3", f"{token}.2.{key}"],
        ["@1.3", "never", native["never"], "Completed", "skipped", "none", f"{token}.3.{key}"]]
    document = read_document(desk.text("doc.badly").encode())
    assert [job.value("ExitCode") for job, _ in document.jobs()] == [3]
    entry = desk.client().journal.entry(1)
    assert entry.ended is not None and not entry.folder.exists()
    assert [said(event) for event in entry.events() if event.kind == "hook"] == [
        "--on-end: done"] * 3


def test_a_run_does_not_end_before(desk: Desk) -> None:
    desk.run(shell("true"), on_end=[hook_of(TELL)])
    assert [line[4] for line in told(desk)] == ["done"]


def test_one_that_hangs_does_not_keep_a_submission_from_being_looked_after(desk: Desk,
                                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that looks after jobs of this machine says that it has begun; that it waits for something is no
    reason to say that nobody looks after them, nor that a manager does not answer."""
    monkeypatch.setattr("sssjob.run.keeper._READY_S", 10.0)
    hangs = "/bin/sh -c 'until test -e go; do sleep 0.05; done; echo >> told'"
    if desk.executor == "local":
        submit(desk, shell("true"), hangs)
        client = desk.client()
        assert client.look([client.journal.entry(1)], 5)[1]
        (desk.folder / "go").touch()
    else:
        submit(desk, shell("true"), hangs)
        threading.Timer(3, (desk.folder / "go").touch).start()
        client = desk.client()
        assert client.look([client.journal.entry(1)], 2)[1]
    assert desk.wait("a") == {"a": ("done", 0)}
    desk.left()
    assert desk.text("told") == "\n"


@pytest.mark.parametrize(("begins", "timeout", "code", "why"), [
    ("kill -INT $PPID", 90.0, 130, "interrupted"), ("kill -TERM $PPID", 90.0, 143, "terminated"),
    (":", 3.0, 0, "timeout")])
def test_a_run_is_left_while_one_hangs(desk: Desk, begins: str, timeout: float, code: int, why: str) -> None:
    """The jobs have ended: none is cancelled, nobody waits for the time that a cancel may take, and the next client
    does what was stopped."""
    hook = f"/bin/sh -c 'test -e again && echo >> told && exit; touch again; {begins}; exec sleep 60'"
    client = desk.client()
    outcome = client.run(read_document(shell("true").encode()), desk.executor, cwd=desk.folder, timeout=timeout,
                         on_end=[hook_of(hook)])
    assert (outcome.exit_code, [job.word for job in outcome.jobs]) == (code, ["done"])
    assert [f.message for f in client.findings if "--on-end" in f.message] == [
        f"{why}: all jobs have ended, but --on-end /bin/sh has not; it was stopped, and the next client begins it anew"]
    assert desk.text("told") == ""
    client = desk.client()
    client.look([client.journal.entry(number) for number in client.journal.unkept()])
    desk.left()
    assert desk.text("told") == "\n"


def test_a_run_without_a_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sssjob.run import run

    monkeypatch.chdir(tmp_path)
    run(read_document(shell("true").encode()), on_end=[hook_of("/bin/sh -c 'cat > \"$SSSJOB_OUTCOME\"'")])
    assert "<Id>a</Id>" in (tmp_path / "done").read_text()


def test_who_waits_may_promise_it_too_and_the_same_is_done_once(desk: Desk) -> None:
    submit(desk, shell("sleep 0.5"), TELL)
    for _ in range(2):
        jobs, done = desk.client().wait(["a"], 60, [hook_of(TELL), hook_of("/bin/sh -c 'echo $SSSJOB_KEY >> more'")])
        assert done and jobs[0].word == "done"
    assert (len(told(desk)), desk.text("more")) == (1, "@1.1\n")
    assert desk.client().journal.entry(1).ended is not None


def test_a_request_that_is_repeated_promises_it_too(desk: Desk) -> None:
    """The jobs are those of the first one, which promised nothing: what the second one promised was forgotten."""
    for hooks in ((), (TELL,), (TELL,)):
        desk.client().submit(read_document(shell("true").encode()), desk.executor, cwd=desk.folder, request="r",
                             on_end=[hook_of(hook) for hook in hooks])
        desk.wait("a")
        desk.left()             # whoever still looks after it may have looked for promises before this one came
    assert len(told(desk)) == 1


def test_a_job_that_had_ended_before_anybody_asked(slurm: Desk) -> None:
    slurm.submit(shell("true"))
    slurm.wait("a")
    slurm.client().wait(["a"], 60, [hook_of(TELL)])
    assert [line[:2] for line in told(slurm)] == [["@1.1", "a"]]
    assert slurm.client().journal.unkept() == []


def submit_another(client: Client) -> None:
    """On another cluster than the job that has ended."""
    with client.journal.changing() as connection:
        connection.execute("UPDATE submissions SET cluster = 'far'")
    client.submit(read_document(shell("true", name="b").encode()), "slurm")


@pytest.mark.parametrize("comes", [
    lambda client: client.look([client.journal.entry(1)]), _top_tables.refreshed, submit_another,
    lambda client: list_._listed(client, False, Filter(), False, None)], ids=["look", "top", "submit", "list"])
def test_a_client_that_was_killed_is_followed_by_one_that_does_it_again(
        slurm: Desk, comes: Callable[[Client], object]) -> None:
    """At least once, with the same key, by whatever client comes next."""
    killing = "/bin/sh -c 'echo $SSSJOB_IDEMPOTENCY_KEY >> keys; test -e again || { touch again; kill -9 $PPID; }'"
    submit(slurm, shell(until_there()), killing)        # it ends when the client that is to be killed follows it
    pid = os.fork()
    if pid == 0:
        slurm.client().wait(["a"], 60)
        os._exit(0)
    (slurm.folder / "go").touch()
    assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGKILL
    assert slurm.client().journal.unkept() == [1]
    comes(slurm.client())
    keys = slurm.text("keys").split()
    assert len(keys) == 2 and len(set(keys)) == 1
    assert slurm.client().journal.unkept() == []


@pytest.mark.parametrize(("command", "message"), [
    ("/bin/sh -c 'echo no good; exit 4'", "--on-end /bin/sh: exit code 4: no good"),
    ("/bin/sh -c 'kill -9 $$'", "--on-end /bin/sh: ended by signal 9"),
    ("/bin/sh -c 'sleep 60'", "--on-end /bin/sh: it took longer than 0.3 s (hook_seconds) and was ended"),
])
def test_what_goes_wrong_is_told_and_changes_no_job(
        slurm: Desk, monkeypatch: pytest.MonkeyPatch, command: str, message: str) -> None:
    import dataclasses

    monkeypatch.setattr("sssjob.run.on_end.LIMITS", dataclasses.replace(LIMITS, hook_seconds=0.3))
    submit(slurm, shell("true"), command)
    client = slurm.client()
    jobs, done = client.wait(["a"], 60)
    assert done and (jobs[0].word, jobs[0].plan.job.value("StatusMessage")) == ("done", None)
    assert [(f.rule, f.severity, f.message) for f in client.findings] == [("SSS602", "warning", f"a: {message}")]
    assert slurm.client().journal.unkept() == []       # it is not tried again


def test_a_program_that_has_gone(slurm: Desk) -> None:
    submit(slurm, shell("true"), "/bin/true")
    hook = Hook("0", ("/nowhere/at-all",))
    done = on_end.ran(hook, b"", {}, slurm.folder, threading.Event())
    assert (done.error, done.transient) == ("cannot be run: No such file or directory", False)


def test_the_document_is_posted(slurm: Desk) -> None:
    with Receiver(200) as receiver:
        submit(slurm, shell("exit 3"), receiver.url)
        slurm.wait("a")
        (headers, body), = receiver.got
    entry = slurm.client().journal.entry(1)
    assert (headers["Content-Type"], headers["Idempotency-Key"]) == (
        "application/json", f"{entry.token}.1.{hook_of(receiver.url).id}")
    assert [job.value("ExitCode") for job, _ in from_json(body).jobs()] == [3]
    assert entry.ended is not None


def test_an_answer_that_may_be_another_one_later_is_waited_for_by_the_next_client(
        slurm: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    with Receiver(503, 429, 204) as receiver:
        submit(slurm, shell("true"), receiver.url)
        client = slurm.client()
        client.wait(["a"], 60)
        assert [f.message.replace(str(receiver.server.server_port), "PORT") for f in client.findings] == [
            "a: --on-end http://127.0.0.1:PORT/...: the answer is HTTP status 503; tried again in 5 s at the soonest, "
            "by any client"]
        assert slurm.client().journal.unkept() == [1]
        look(slurm)
        assert len(receiver.got) == 1           # not yet
        real = time.time
        for later in (10, -7200):               # who has set the clock back does not wait until it has caught up
            monkeypatch.setattr("sssjob.run.on_end.time.time", lambda later=later: real() + later)
            look(slurm)
        assert [headers["Idempotency-Key"] for headers, _ in receiver.got] == [
            receiver.got[0][0]["Idempotency-Key"]] * 3
    assert slurm.client().journal.unkept() == []


def look(desk: Desk) -> None:
    client = desk.client()
    client.look([client.journal.entry(1)])


@pytest.mark.parametrize("status", [302, 307, 404])
def test_other_answers_are_final_and_redirections_not_followed(slurm: Desk, status: int) -> None:
    with Receiver(status) as receiver:
        submit(slurm, shell("true"), receiver.url)
        client = slurm.client()
        client.wait(["a"], 60)
        assert len(receiver.got) == 1 and slurm.client().journal.unkept() == []
        assert [f.message.rpartition(": ")[2] for f in client.findings] == [f"the answer is HTTP status {status}"]


def test_nobody_there(slurm: Desk) -> None:
    done = on_end.posted(hook_of("http://127.0.0.1:1/secret"), b"{}", "key")
    assert (done.error, done.transient) == ("cannot be reached: Connection refused", True)


def test_an_answer_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its lines came in time, and the client waited for as long as they came."""
    monkeypatch.setattr("sssjob.run.on_end.LIMITS", replace(LIMITS, hook_post_seconds=0.3))
    left = threading.Event()

    def drip(server: socket.socket) -> None:
        line, _ = server.accept()
        with line, suppress(OSError):
            line.sendall(b"HTTP/1.1 200 OK\r\n")
            while not left.wait(0.05):
                line.sendall(b"X: y\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=drip, args=(server,))
        thread.start()
        done = on_end.posted(hook_of(f"http://127.0.0.1:{server.getsockname()[1]}/x"), b"{}", "key")
        left.set()
        thread.join()
    assert (done.error, done.transient) == ("there is no answer within 0.3 s", True)


def test_secrets_of_a_url_are_not_told(slurm: Desk, monkeypatch: pytest.MonkeyPatch,
                                       capsys: pytest.CaptureFixture[str]) -> None:
    from sssjob.cli import main

    monkeypatch.setenv("SSSJOB_JOURNAL", str(slurm.folder / "journal.db"))
    submit(slurm, shell("true"), "http://127.0.0.1:1/token?key=secret", "http://127.0.0.1:1/token?key=another")
    client = slurm.client()
    client.wait(["a"], 60)
    main(["log", "a"])
    main(["log", "a", "--json"])
    shown = capsys.readouterr()
    everything = f"{shown.out}{shown.err}{[str(f) for f in client.findings]}"
    assert "secret" not in everything and "token" not in everything and "http://127.0.0.1:1/..." in everything
    assert all(f"http://127.0.0.1:1/... ({number} of 2): cannot be reached" in everything for number in (1, 2))
    assert all(json.loads(line) for line in shown.out.splitlines() if line.startswith("{"))


@pytest.mark.parametrize(("text", "message"), [
    ("", "a command or a URL"), ("'", "No closing quotation"), ("no-such-program-here x", "there is no program"),
    ("ftp://host/x", "only URLs of http and https"), ("file:///etc/passwd", "only URLs of http and https"),
    ("https://", "no whole URL"), ("https:///x", "no whole URL"), ("http://host:99999/", "no whole URL"),
    ("http://host/a b", "no whole URL"), ("http://host/\n", "no whole URL"),
    ("https://me:pass@host/", "user or a password"),
])
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        hook_of(text)


def test_no_shell_is_started_but_one_that_is_named(slurm: Desk) -> None:
    submit(slurm, shell("true"), "/usr/bin/env touch '$HOME;x'")
    slurm.wait("a")
    assert (slurm.folder / "$HOME;x").exists()


def test_commands_have_it(tmp_path: Path) -> None:
    """On this machine, each in a process of its own."""
    (tmp_path / "a.xml").write_text(shell("sleep 0.3"))
    environment = {**os.environ, "SSSJOB_JOURNAL": str(tmp_path / "journal.db")}

    def sssjob(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command(), *words], cwd=tmp_path, env=environment, text=True,
                              capture_output=True, check=False, timeout=120)

    assert sssjob("submit", "a.xml", "--on-end", TELL).stdout == "a\n"
    assert sssjob("wait", "a", "--on-end", "/bin/sh -c 'echo w >> more'").returncode == 0
    assert sssjob("run", "a.xml", "-o", "out.xml", "--on-end", "/bin/sh -c 'echo r >> more'").returncode == 0
    until = time.monotonic() + 60
    while len((tmp_path / "told").read_text().splitlines() if (tmp_path / "told").exists() else []) < 1:
        assert time.monotonic() < until
        time.sleep(0.1)
    assert (tmp_path / "more").read_text() == "w\nr\n"
    refused = sssjob("run", "a.xml", "--on-end", "gopher://host/")
    assert (refused.returncode, refused.stdout) == (2, "") and "only URLs of http and https" in refused.stderr


def test_what_a_run_on_this_machine_could_not_post_is_posted_by_the_next_client(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with desk_on("local", tmp_path, monkeypatch) as desk, Receiver(503, 204) as receiver:
        desk.run(shell("true"), on_end=[hook_of(receiver.url)])
        assert desk.client().journal.unkept() == [1]
        assert desk.client().journal.entry(1).folder.exists()
        real = time.time
        monkeypatch.setattr("sssjob.run.on_end.time.time", lambda: real() + 10)
        desk.submit(shell("true", name="b"))
        desk.wait("b")
        look(desk)
        assert len(receiver.got) == 2
        assert not desk.client().journal.unkept() and not desk.client().journal.entry(1).folder.exists()
