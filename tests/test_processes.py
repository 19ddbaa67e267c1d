"""Work on many files in several processes: whatever ends one of them, no file is left halfway and no process behind."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sssjob.processes import Stopped, Stops, in_order, processes, stoppable

NAMES = [f"{n:03}" for n in range(120)]
SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


def echo(name: str) -> str:
    return f"{name} {os.getpid() != FIRST}"


def signalled(name: str) -> str:
    """A signal to the first process while a file is made, and the file all the same."""
    if name == "007":
        os.kill(FIRST, NUMBER)
    Path(name).write_text("whole")
    return name


FIRST, NUMBER = os.getpid(), signal.SIGTERM


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Processes are copies of this one, which may have threads of other tests."""
    monkeypatch.setattr("sssjob.processes.threading.active_count", lambda: 1)
    monkeypatch.setattr(sys.modules[__name__], "FIRST", os.getpid())
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_results_come_in_order(alone: None, jobs: int) -> None:
    """From one process or several; the collector sees everything again afterwards."""
    gc.unfreeze()           # whatever a test before has left: what is frozen may go while this one runs
    assert list(in_order(echo, str, NAMES, jobs, Stops())) == [f"{n} {jobs > 1}" for n in NAMES]
    assert gc.get_freeze_count() == 0
    assert list(in_order(echo, str, [], jobs, Stops())) == []


@pytest.mark.parametrize(("asked", "files", "made"), [(None, 3, 1), (3, 2, 2), (3, 100, 3), (1, 9999, 1), (4, 0, 1)])
def test_how_many_processes(asked: int | None, files: int, made: int) -> None:
    assert processes(asked, files) == made
    assert processes(None, 10**6) == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("number", SIGNALS, ids=lambda n: n.name)
def test_a_signal_ends_the_work_between_two_files(
        alone: None, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, jobs: int) -> None:
    monkeypatch.setattr(sys.modules[__name__], "NUMBER", number)
    done: list[str] = []
    with pytest.raises((KeyboardInterrupt, Stopped)) as caught, stoppable() as stops:
        for name in in_order(signalled, str, NAMES, jobs, stops):
            done.append(name)
    assert getattr(caught.value, "status", 130) == SIGNALS[number]
    assert len(done) < len(NAMES) and done == NAMES[:len(done)]
    assert {p.read_text() for p in Path().iterdir()} == {"whole"} and Path("007").exists()
    assert jobs > 1 or len(list(Path().iterdir())) == 8
    assert signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler)


def test_a_signal_that_is_ignored_stays_ignored(alone: None) -> None:
    """As under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stoppable():
            os.kill(os.getpid(), signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


ORPHANS = """
import os, signal, sys
from pathlib import Path
from sssjob.processes import Stops, in_order
FIRST = os.getpid()
def work(name):
    if name == "7":
        os.kill(FIRST, signal.SIGKILL)
    Path(sys.argv[1], name).write_text("whole")
    return name
print(list(in_order(work, str, [str(n) for n in range(1000)], 2, Stops())))
"""


def test_no_process_outlives_the_first(tmp_path: Path) -> None:
    """Killed, so that it can end nobody: the others end by themselves, which closes their standard output."""
    done = subprocess.run([sys.executable, "-c", ORPHANS, str(tmp_path)], capture_output=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL and done.stdout == b""
    assert {p.read_text() for p in tmp_path.iterdir()} == {"whole"} and len(list(tmp_path.iterdir())) < 1000


DEATHS = """
import os, signal, sys, time
from pathlib import Path
from sssjob import processes
from sssjob.processes import Stops, in_order
processes._GRACE_S = 0.5
folder = Path(sys.argv[1])
def work(name):
    if name == "7" or (name == "9" and not (folder / "9").exists()):
        (folder / name).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if name == "hang":
        (folder / "pid").write_text(str(os.getpid()))
        time.sleep(1000)
    if name == "wrong":
        while not (folder / "pid").exists():
            time.sleep(0.01)
        raise ValueError("wrong")
    return name
"""


def program(text: str, folder: Path) -> str:
    """What a program prints that may take copies of itself, having no threads."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", DEATHS + text, str(folder)], capture_output=True,
                          text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("jobs", [2, 5])
def test_a_process_that_is_killed_costs_its_name_alone(tmp_path: Path, jobs: int) -> None:
    """A name over which one process ends is tried once more, and given up when the second one ends too."""
    names = [str(n) for n in range(200)]
    assert program(f"print(*in_order(work, 'died {{}}'.format, {names!r}, {jobs}, Stops()), sep=',')", tmp_path) == (
        ",".join("died 7" if name == "7" else name for name in names) + "\n")


def test_a_process_that_does_not_end_is_killed(tmp_path: Path) -> None:
    """After the grace: what another one raised reaches the caller, and the one that hangs is gone."""
    out = program("try:\n list(in_order(work, str, ['hang', 'wrong'], 2, Stops()))\n"
                  "except ValueError as error:\n print(error)\n", tmp_path)
    assert out == "wrong\n"
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
