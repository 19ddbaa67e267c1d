"""Tests that are run by several forked processes: each once, with what it prints and leaves, whatever they do."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

from tests.forks import shared
from tests.side_by_side import Shares, rewrite_ahead

ROOT = Path(__file__).parents[1]
TESTS = '''
import os, signal, warnings
import pytest

@pytest.fixture(scope="module")
def module():
    yield
    with open(os.environ["NOTES"], "a") as file:
        print("module", file=file)

@pytest.mark.parametrize("n", range(40))
def test_each(n, module, tmp_path, capfd):
    (tmp_path / "a").write_text("")
    with open(os.environ["NOTES"], "a") as file:
        print("test", n, tmp_path, file=file)

def test_killed():
    os.kill(os.getpid(), signal.SIGKILL)

def test_wrong():
    print("what it printed", flush=True)
    os.write(1, b"what it wrote" + bytes([10]))
    assert [1] == [2]

def test_skipped():
    pytest.skip("no reason")

def test_warned():
    warnings.warn("be warned")
'''


@pytest.mark.parametrize("processes", [1, 3, 7])
@pytest.mark.parametrize("count", [0, 1, 5, 40])
def test_each_test_is_run_once(count: int, processes: int) -> None:
    shares = Shares(count, processes)
    given = [number for turn in range(2 * count + processes) if (
        number := shares.next(turn // 2 % processes)) is not None]
    assert sorted(given) == list(range(count))
    assert [shares.next(process) for process in range(processes)] == [None] * processes


def test_a_share_is_in_order_and_half_of_another_too() -> None:
    shares = Shares(12, 2)
    assert [shares.next(0) for _ in range(9)] == [0, 1, 2, 3, 4, 5, 9, 10, 11]
    shares.put_back(0, 11)
    assert [shares.next(0) for _ in range(5)] == [11, 7, 8, 6, None]


def test_files_are_rewritten_where_pytest_looks_for_them(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """Of a file that is newer than its bytecode too; what can't be compiled is left to pytest, which says why."""
    path = tmp_path / "test_some.py"
    bytecode = tmp_path / "__pycache__" / f"test_some{rewrite.PYC_TAIL}"
    for number in (1, 2):
        path.write_text(f"number = {number}\nassert number == 3\n")
        os.utime(path, (number, number) if number == 1 else None)
        rewrite_ahead(pytestconfig, [path])
        code = rewrite._read_pyc(path, bytecode)
        assert code is not None
        with pytest.raises(AssertionError, match=f"assert {number} == 3"):
            exec(code, {})
        os.utime(bytecode, (5, 5))
    path.write_text("assert (")
    with pytest.raises(SyntaxError):
        rewrite_ahead(pytestconfig, [path])


def run(folder: Path, *options: str) -> tuple[int, str, list[str]]:
    """Status and output of pytest, and the lines that the tests note."""
    (folder / "test_some.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("[pytest]\n")
    notes = folder / "notes"
    notes.touch()
    done = subprocess.run([sys.executable, "-m", "pytest", "-p", "tests.side_by_side", "-p", "no:cacheprovider",
                           "--rootdir", str(folder), *options, str(folder / "test_some.py")], text=True, timeout=120,
                          capture_output=True, cwd=ROOT, env={
                              "PATH": "/usr/bin:/bin", "NOTES": str(notes), "TMPDIR": str(folder), **shared()})
    return done.returncode, done.stdout + done.stderr, notes.read_text().splitlines()


def test_what_they_tell(tmp_path: Path) -> None:
    """One that dies fails its test, and the others go on; what a test prints is not mixed with that of others."""
    status, out, notes = run(tmp_path, "--processes", "3", "-q", "-rsw")
    tests = [note.split() for note in notes if note.startswith("test")]
    assert sorted(int(number) for _, number, _ in tests) == list(range(40))
    assert len({path for *_, path in tests}) == 40
    assert 1 <= notes.count("module") <= 4      # one of them may be the process that is killed
    assert (status, out.splitlines()[-1].split(" in ")[0]) == (
        1, "2 failed, 41 passed, 1 skipped, 1 warning")
    assert "the process that ran it has ended with status -9" in out and "UserWarning: be warned" in out
    assert re.search(r"-+ Captured stdout call -+\nwhat it printed\nwhat it wrote\n[=-]+ ", out)
    assert "SKIPPED [1]" in out and "no reason" in out


def test_it_stops_at_a_failure(tmp_path: Path) -> None:
    status, out, _ = run(tmp_path, "--processes", "2", "-x", "-q", "-k", "wrong or each")
    assert status == 1 and "stopping after 1 failures" in out and "1 failed" in out


KILLED = """
import os, signal
from tests import forks
with open(os.devnull, "rb") as null:
    command = forks.Forked(["module", "tests.test_side_by_side"], os.getcwd(), {}, [null.fileno(), 1, 1])
if os.fork():
    print("run", os.getpid(), flush=True)
else:
    print("copy", os.getpid(), flush=True)
signal.pause()
"""


def main() -> None:
    """Be a command, which ends when it is killed."""
    print(f"server {os.getppid()}\ncommand {os.getpid()}", flush=True)
    signal.pause()


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="processes can't be watched on this system")
def test_the_server_of_a_run_that_is_killed_ends(tmp_path: Path) -> None:
    """With what it has forked, though a copy of the run goes on, which holds all that the run held."""
    with subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True, cwd=ROOT,
                          env={"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path)}) as run:
        assert run.stdout is not None
        pids = {name: int(pid) for name, pid in (next(run.stdout).split() for _ in range(4))}
        watched = [os.pidfd_open(pids[name]) for name in ("server", "command")]
        run.kill()
        try:
            for one in watched:
                assert select.select([one], [], [], 60)[0] == [one]
                os.close(one)
        finally:
            os.kill(pids["copy"], signal.SIGKILL)
