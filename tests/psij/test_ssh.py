"""Executors whose resource manager is on a host behind SSH: a stand-in for ``ssh`` runs what it is sent by sh, with
another home directory, prints what logins print, and can refuse, hang and cut the line.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from psij import InvalidJobException, JobState, StageIn, StagingMode, SubmitException
from psij.executors.batch._host import HERE, CutError, UnreachableError
from psij.executors.batch._ssh import SSHHost, host_of
from psij.executors.batch.slurm import SlurmJobExecutor
from tests.fakes import slurm, ssh
from tests.gate import until_there
from tests.psij.batch_support import Stand, a_job, ended, known, stand_in


@pytest.fixture
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the host, with its home directory, the log of what ssh was told, and perhaps its trouble."""
    ssh.install(tmp_path, tmp_path / "ssh")
    monkeypatch.setenv("PATH", f"{tmp_path / 'ssh'}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return ssh.add_host(tmp_path, "away")


@pytest.fixture
def host(away: Path) -> SSHHost:
    return SSHHost("amy@away", "GREETING='hello you'; export GREETING; echo of the setup")


@pytest.fixture
def stand(away: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    """Slurm's executor behind SSH. Commands are programs, and jobs are processes."""
    with stand_in(slurm, SlurmJobExecutor, tmp_path, monkeypatch,
                  ssh_host="amy@away", ssh_setup=f": {tmp_path}") as stand:
        stand.executor.work_directory = away / "home" / "work"
        yield stand


def trouble(away: Path, lines: str = "") -> None:
    (away / "trouble").write_text(lines)


def calls(away: Path) -> int:
    return len((away / "log").read_text().splitlines())


def test_words_and_answers_go_through_unchanged(host: SSHHost, away: Path) -> None:
    """Whatever logins print and shells would read in the words."""
    words = ["a b", "'", '"', "$HOME", "`id`", "\\", "*", "", "new\nline", "end\n", "\udcff", "-n"]
    result = host.run(["printf", "<%s>", *words], 20)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "".join(f"<{word}>" for word in words), "")
    result = host.run(["/bin/sh", "-c", "echo out; echo error >&2; cat; exit 3"], 20)
    assert (result.exit_code, result.stdout, result.stderr) == (3, "out\n", "error\n")
    assert host.run(["printenv", "GREETING", "LC_ALL", "HOME"], 20).stdout == f"hello you\nC\n{away / 'home'}\n"
    assert host.run(["/bin/sh", "-c", "echo ${LC_ALL-none}"], 20, plain=False).stdout != "C\n"
    assert host.run(["/bin/sh", "-c", "kill -9 $$"], 20).exit_code == 137
    with pytest.raises(FileNotFoundError, match="'no-such-program' is not found on amy@away"):
        host.run(["no-such-program"], 20)
    options = (away / "log").read_text().splitlines()[0]
    assert options.startswith("-T -o BatchMode=yes -o ControlMaster=auto -o ControlPath=")
    assert options.endswith(" -- amy@away exec /bin/sh -s") and "StrictHostKeyChecking" not in options


def test_what_it_is(host: SSHHost, away: Path) -> None:
    home = str(away / "home")
    assert (host.uid, host.user, host.home, host.is_here) == (os.getuid(), HERE.user, home, False)
    assert host.environ["GREETING"] == "hello you" and calls(away) == 1
    assert [str(host.place(path)) for path in ("~", "~/a", "b/../c", "/d")] == [home, f"{home}/a", f"{home}/c", "/d"]
    assert host_of(None) is HERE and host_of("h") is host_of("h") is not host_of("h", "x")
    with pytest.raises(ValueError, match="ssh_host is to be a host"):
        host_of("-oProxyCommand=x")


def test_files(host: SSHHost, away: Path) -> None:
    """They are written before the next command, and records come with its answer; nothing else is asked."""
    folder = host.place("~/w/o r k")
    texts = {"a.job": b"#!/bin/sh\necho '$x' \\\n\n", "b": b"\0\xff", "c": b"no end", "d": b"", "e": b"sssjob\nEOF\n"}
    host.make_private(folder)
    host.clear_old(folder, 0)
    for name, text in texts.items():
        host.write(folder / name, text, 0o700 if name == "b" else 0o600)
    host.remove(folder / "a.job")
    host.write(folder / "a.job", texts["a.job"])
    before = calls(away)
    assert host.run(["cat", str(folder / "a.job")], 20, look=False).stdout.encode() == texts["a.job"]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == texts
    assert [oct((folder / name).stat().st_mode & 0o777) for name in "bc"] == ["0o700", "0o600"]
    assert folder.stat().st_mode & 0o777 == 0o700
    (folder / "1.x.start").write_text("x 12\n")
    (folder / "1.x.out").write_text("out\tput")
    (folder / "2.x.ec").write_bytes(b"0\n\xff\n" * 3)
    (folder / "3.x.ec").symlink_to(folder / "2.x.ec")
    (folder / "4.nodefile").write_text("n1\n" * 30_000)
    assert host.exists(folder / "1.x.start") and not host.exists(folder / "1.y.start")
    assert (host.record(folder / "1.x.start", 99), host.tail(folder / "1.x.out", 4)) == ("x 12\n", b"put\n")
    assert host.record(folder / "2.x.ec", 99) is not None
    assert [host.record(folder / name, 99) for name in ("3.x.ec", "4.nodefile", "b")] == [None, None, None]
    assert calls(away) == before + 2            # the command, and one look
    assert host.tail(folder / "4.nodefile", 4) == b"\nn1\n" and host.tail(folder / "nothing", 4) == b""
    (folder / "1.x.start").write_text("x 12\nx 13\n")
    for name in ("a.job", "1.x.out", "b"):
        host.remove(folder / name)
    number = host.changed(folder)
    assert "a.job" not in host.names(folder) and (folder / "a.job").exists()
    host.run(["true"], 20)
    assert host.changed(folder) > number and host.record(folder / "1.x.start", 99) == "x 12\nx 13\n"
    assert sorted(host.names(folder)) == ["1.x.start", "2.x.ec", "3.x.ec", "4.nodefile", "c", "d", "e"]
    assert sorted(path.name for path in folder.iterdir()) == sorted(host.names(folder))
    host.note(folder / "5.keep", "me")
    host.run(["true"], 20)
    (folder / "5.keep" / "another").touch()
    assert host.unnote(folder / "5.keep", "me") is False
    (folder / "5.keep" / "another").unlink()
    host.note(folder / "5.keep", "me")
    assert host.unnote(folder / "5.keep", "me") is True and not (folder / "5.keep").exists()
    assert host.text(folder / "e") == "sssjob\nEOF\n" and str(host.real(folder / "3.x.ec")).endswith("2.x.ec")
    with pytest.raises(OSError, match=r"amy@away: .*No such file"):
        host.text(folder / "nothing")


def test_files_that_two_commands_write(host: SSHHost, away: Path) -> None:
    """Of two commands at a time each writes what waits, and neither is in the way of the other."""
    host.write(host.place("~/file"), b"text\n")
    meeting = away / "meeting"
    meeting.mkdir()
    (away / "bin" / "chmod").write_text(f"""#!/bin/sh
: > {meeting}/$$
while [ "$(ls {meeting} | wc -l)" -lt 2 ]; do sleep 0.01; done
PATH=/usr/bin:/bin
exec chmod "$@"
""")
    (away / "bin" / "chmod").chmod(0o755)
    with ThreadPoolExecutor() as threads:
        answers = [threads.submit(host.run, ["echo", "done"], 20) for _ in range(2)]
    assert [answer.result().stdout for answer in answers] == ["done\n"] * 2
    assert (away / "home" / "file").read_text() == "text\n" and os.listdir(away / "home") == ["file"]


def test_files_that_cannot_be_written(host: SSHHost, away: Path) -> None:
    """The command is not run, and the next one neither, until that is so no more."""
    (away / "home" / "w").write_text("")
    host.make_private(host.place("~/w/x"))
    for _ in range(2):
        with pytest.raises(OSError, match=r"files cannot be written there: .*mkdir"):
            host.run(["touch", str(away / "ran")], 20)
    (away / "home" / "w").unlink()
    assert host.run(["true"], 20).exit_code == 0 and not (away / "ran").exists()


@pytest.mark.parametrize(("lines", "error", "text"), [
    ("echo 'ssh: connect to host alpha port 22: Connection refused' >&2; exit 255", UnreachableError,
     "amy@away: You have no mail; ssh: connect to host alpha port 22: Connection refused"),
    ("sleep 30", UnreachableError, "amy@away: ssh gave no answer in 1 s"),
    ("read -r greeting; eval \"$greeting\"; exit 255", CutError, "amy@away: the line was lost: You have no mail"),
    ("read -r greeting; eval \"$greeting\"; head -c 300 | /bin/sh -s; exit 255", CutError, "the line was lost"),
    ("read -r greeting; eval \"$greeting\"; /bin/sh -s | head -n 2; exit 255", CutError, "the line was lost"),
    ("read -r greeting; eval \"$greeting\"; sleep 30", subprocess.TimeoutExpired, "touch"),
])
def test_lines_that_are_lost(host: SSHHost, away: Path, lines: str, error: type[Exception], text: str) -> None:
    """It is always known whether nothing was run; a script that did not come whole is not run in part."""
    host.write(host.place("~/file"), b"x\n" * 500)
    trouble(away, lines)
    with pytest.raises(error) as raised:
        host.run(["touch", str(away / "ran")], 1 if "sleep" in lines else 20)
    assert text in str(raised.value)
    assert not (away / "ran").exists() or "head -n 2" in lines
    assert not (away / "home" / "file").exists() or "head -n 2" in lines
    trouble(away)
    host.run(["true"], 20)
    assert (away / "home" / "file").read_bytes() == b"x\n" * 500       # it was not forgotten


def test_jobs(stand: Stand, away: Path) -> None:
    """From the submission to the end, with paths of the host; nothing is left there."""
    job = a_job("echo $HOME; pwd; exit 4", stdout_path=Path("~/out"), directory=Path("sub"))
    (away / "home" / "sub").mkdir()
    stand.executor.submit(job)
    status = ended(job)
    assert (status.state, status.exit_code) == (JobState.FAILED, 4)
    assert known(job)["nodes"] and known(job)["sources"]["exit_code"] == "exit-file"
    assert (away / "home" / "out").read_text() == f"{away / 'home'}\n{away / 'home' / 'sub'}\n"
    stand.executor.host.run(["true"], 20)
    assert stand.files() == []
    with pytest.raises(InvalidJobException, match="a: a link cannot lead to amy@away or back"):
        stand.executor.submit(a_job("true", stage_in={StageIn("a", Path("b"), StagingMode.LINK)}))


def test_one_round_for_all_jobs(stand: Stand, away: Path) -> None:
    jobs = [a_job("sleep 600") for _ in range(5)]
    stand.executor.submit_all(jobs)
    for job in jobs:
        assert job.wait(target_states=[JobState.ACTIVE]) is not None
    before = calls(away)
    asked = len(stand.lab.calls("squeue"))
    time.sleep(1.5)
    rounds = len(stand.lab.calls("squeue")) - asked
    assert rounds and calls(away) - before <= rounds + 1
    for job in jobs:
        job.cancel()
    assert {ended(job).state for job in jobs} == {JobState.CANCELED}


def test_a_lost_line_is_no_end(stand: Stand, away: Path) -> None:
    """Jobs keep their states while nothing is heard, and their ends are learnt afterwards."""
    jobs = [a_job(f"{until_there(away / 'go')}; exit {code}") for code in (0, 5)]
    for job in jobs:
        stand.executor.submit(job)
        assert job.wait(target_states=[JobState.ACTIVE]) is not None
    trouble(away, "exit 255")
    (away / "go").touch()
    until = time.monotonic() + 20
    while stand.executor.hears()[1] is None:
        assert time.monotonic() < until
        time.sleep(0.05)
    time.sleep(2.5)         # longer than lost_after
    assert [job.status.state for job in jobs] == [JobState.ACTIVE] * 2
    with pytest.raises(SubmitException) as raised:
        stand.executor.submit(a_job("true"))
    assert raised.value.transient and len(stand.lab.calls("sbatch")) == 2
    trouble(away)
    assert [(ended(job).state, job.status.exit_code) for job in jobs] == [
        (JobState.COMPLETED, 0), (JobState.FAILED, 5)]


def test_a_cut_between_a_submission_and_its_answer(stand: Stand, away: Path) -> None:
    """The job is found by its tag; it is not made twice."""
    job = a_job("sleep 600")
    assert stand.executor.host.home == str(away / "home")       # asked once
    trouble(away, f"rm {away}/trouble; read -r greeting; eval \"$greeting\"; /bin/sh -s >/dev/null 2>&1; exit 255")
    stand.executor.submit(job)
    assert len(stand.lab.calls("sbatch")) == 1 and job.native_id == stand.lab.jobs()[0]["id"]
    job.cancel()
    assert ended(job).state is JobState.CANCELED
