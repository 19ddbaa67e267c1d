"""A plugin of pytest: with ``--processes N`` tests are collected once, and N processes that are forked then run them.

pytest-xdist has every worker collect all tests anew and send several messages for each, which is a sixth of what the
whole suite takes. Here the processes have the tests already, and the servers of ``tests.forks``. Each has a share of
the tests in the order of collection, so that fixtures of modules serve many tests, and takes half of the longest one
when its own is done. One that dies fails the test that it ran, and another takes its place. Not for ``--pdb`` and
coverage.

While the whole suite is collected, which one process does, others do what can be done beside it: the servers start,
and the assertions of test files are rewritten, which in a fresh clone is half of the time until the first test.
"""

from __future__ import annotations

import atexit
import os
import random
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from io import StringIO
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from _pytest._io import TerminalWriter
from _pytest.assertion import rewrite

__all__ = ["Shares", "rewrite_ahead"]

#: Processes that rewrite test files while another one collects, at most: more would wait for that one.
_REWRITERS = 3


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("general").addoption(
        "--processes", type=int, default=0, metavar="N", help="fork N processes that run the tests")


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Collect the whole suite, while the servers start and other processes rewrite test files.

    They begin with the last file, and this one with the first. It reads what they have written, where it meets them.
    """
    config = session.config
    pids: list[int] = []
    if config.option.processes and not config.option.collectonly and (
            config.args_source is pytest.Config.ArgsSource.TESTPATHS):
        from tests import forks

        forks.shared()
        paths = [path for folder in config.args for path in sorted(Path(folder).rglob("test_*.py"), reverse=True)]
        count = 0 if sys.dont_write_bytecode else min((os.cpu_count() or 1) - 1, _REWRITERS)
        for number in range(count):
            pid = os.fork()
            if not pid:
                try:
                    rewrite_ahead(config, paths[number::count])
                finally:
                    os._exit(0)         # what this one has not written pytest does, and tells why it cannot
            pids.append(pid)
    try:
        return (yield)
    finally:
        for pid in pids:
            os.waitpid(pid, 0)


def rewrite_ahead(config: pytest.Config, paths: Iterable[Path]) -> None:
    """Have the bytecode of test files, with their assertions rewritten, where pytest looks for it.

    pytest itself looks whether it is of this version of the file, and else writes it anew.
    """
    state = config.stash[rewrite.assertstate_key]
    for path in paths:
        folder = rewrite.get_cache_dir(path)
        bytecode = folder / (path.stem + rewrite.PYC_TAIL)
        fresh = bytecode.exists() and bytecode.stat().st_mtime >= path.stat().st_mtime
        if not fresh and rewrite.try_makedirs(folder):
            source_hash, code = rewrite._rewrite_test(path, config)
            rewrite._write_pyc(state, code, source_hash, bytecode)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    count = min(session.config.option.processes, len(session.items))
    if count < 1 or session.config.option.collectonly or session.testsfailed:
        return None
    from tests import forks

    forks.shared()          # the servers are those of all,
    forks.command()         # and so is the program, which none may write while another runs it
    _Run(session, count).to_the_end()
    return True


class Shares:
    """Which test a process is to run: the next of its share of the tests, or of half of the longest one of another.

    count: of tests, whose numbers are given. processes: how many shares there are.
    """

    def __init__(self, count: int, processes: int) -> None:
        self._shares = [deque(range(count * n // processes, count * (n + 1) // processes)) for n in range(processes)]

    def next(self, process: int) -> int | None:
        """The number of a test; None when there are no more."""
        if not self._shares[process]:
            longest = max(self._shares, key=len)
            self._shares[process] = deque(reversed([longest.pop() for _ in range((len(longest) + 1) // 2)]))
        return self._shares[process].popleft() if self._shares[process] else None

    def put_back(self, process: int, number: int) -> None:
        """Have a test run after all."""
        self._shares[process].appendleft(number)


class _Process:
    """One that runs tests. share: which is its own. running: the test that it has begun, and the one after that."""

    def __init__(self, share: int, pipe: Connection, pid: int) -> None:
        self.share, self.pipe, self.pid = share, pipe, pid
        self.running: deque[int | None] = deque()


class _Run:
    """All tests of a session, run by ``count`` processes."""

    def __init__(self, session: pytest.Session, count: int) -> None:
        self.session, self.hook = session, session.config.hook
        self.shares = Shares(len(session.items), count)
        self.started = 0
        factory = session.config._tmp_path_factory          # type: ignore[attr-defined]
        self.folder: Path = factory.getbasetemp()
        self.processes: list[_Process] = []
        for share in range(count):
            self.start(share)

    def start(self, share: int) -> None:
        """Fork a process, and tell it its first two tests: fixtures go by what comes next."""
        ours, theirs = Pipe()
        folder = self.folder / f"p{self.started}"
        self.started += 1
        pid = os.fork()
        if not pid:
            ours.close()
            for process in self.processes:
                process.pipe.close()
            _run_tests(self.session, theirs, folder)
        theirs.close()
        process = _Process(share, ours, pid)
        self.processes.append(process)
        for _ in range(2):
            self.give(process)

    def give(self, process: _Process) -> None:
        """Tell a process one more test, or that there is none, once."""
        if not process.running or process.running[-1] is not None:
            number = self.shares.next(process.share)
            process.running.append(number)
            with suppress(BrokenPipeError, ConnectionResetError):       # it has died, which its pipe tells
                process.pipe.send(number)

    def to_the_end(self) -> None:
        """Tell pytest what the processes report. Raises as pytest's own loop does."""
        try:
            while self.processes:
                for pipe in wait([process.pipe for process in self.processes]):
                    self.take(next(process for process in self.processes if process.pipe is pipe))
                if self.session.shouldfail:
                    raise self.session.Failed(self.session.shouldfail)
                if self.session.shouldstop:
                    raise self.session.Interrupted(self.session.shouldstop)
        finally:
            for process in self.processes:
                process.pipe.close()        # which ends it behind the test that it runs
            for process in self.processes:
                os.waitpid(process.pid, 0)

    def take(self, process: _Process) -> None:
        """Take what a process sends: warnings, or the reports of a test; or nothing more, at its end."""
        try:
            what, content = process.pipe.recv()
        except (EOFError, ConnectionResetError):
            self.bury(process)
            return
        if what == "warning":
            self.hook.pytest_warning_recorded.call_historic(kwargs=content)
            return
        process.running.popleft()
        self.give(process)
        self.tell([report if isinstance(report, pytest.TestReport) else
                   self.hook.pytest_report_from_serializable(config=self.session.config, data=report)
                   for report in content])

    def tell(self, reports: Sequence[pytest.TestReport]) -> None:
        nodeid, location = reports[0].nodeid, reports[0].location       # an item would work its location out anew
        self.hook.pytest_runtest_logstart(nodeid=nodeid, location=location)
        for report in reports:
            self.hook.pytest_runtest_logreport(report=report)
        self.hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)

    def bury(self, process: _Process) -> None:
        """A process has ended: because there are no more tests, or it has died in the midst of one."""
        self.processes.remove(process)
        process.pipe.close()
        status = os.waitstatus_to_exitcode(os.waitpid(process.pid, 0)[1])
        numbers = [number for number in process.running if number is not None]
        if not numbers:
            return
        item = self.session.items[numbers[0]]
        self.tell([pytest.TestReport(item.nodeid, item.location, dict.fromkeys(item.keywords, 1), "failed",
                                     f"the process that ran it has ended with status {status}", "call")])
        for number in numbers[1:]:
            self.shares.put_back(process.share, number)
        self.start(process.share)


def _run_tests(session: pytest.Session, pipe: Connection, folder: Path) -> None:
    """Run tests in a process that was forked for it, which ends then. folder: for its files."""
    status = 1
    try:
        _become(session.config, folder)
        sender = _Sender(session.config)
        session.config.pluginmanager.register(sender)
        sender.send = pipe.send         # not before: pytest tells a new plugin of all earlier warnings
        number = pipe.recv()
        while number is not None:
            following = pipe.recv()
            item = session.items[number]
            session.config.hook.pytest_runtest_protocol(
                item=item, nextitem=None if following is None else session.items[following])
            sender.send_reports()
            number = following
        status = 0
    except EOFError:            # the other side has stopped
        status = 2
    except KeyboardInterrupt:   # so is the other side
        status = 2
    except BaseException:
        traceback.print_exc()
    finally:
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()
        atexit._run_exitfuncs()
        os._exit(status)


def _become(config: pytest.Config, folder: Path) -> None:
    """What pytest keeps for one process is this one's own: files, what is captured, and nothing is printed."""
    random.seed()
    manager = config.pluginmanager
    manager.unregister(name="terminalreporter")
    silent = SimpleNamespace(_tw=TerminalWriter(StringIO()))        # pytest-timeout writes there
    manager.register(silent, "terminalreporter")
    capture: Any = manager.get_plugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture()
    folder.mkdir(mode=0o700)
    factory = config._tmp_path_factory          # type: ignore[attr-defined]
    factory._given_basetemp = factory._basetemp = folder


class _Sender:
    """Keeps the reports of a test until it has ended. Of one that passed only that of its call goes out, unless more
    than results is shown: those of its fixtures would take as long as the rest of what is told."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._whole = config.option.durations is not None or bool(config.option.xmlpath) or "P" in (
            config.option.reportchars)
        self.send: Callable[[Any], None] = lambda _: None
        self._reports: list[Any] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Of one that passed as it is, which takes half of the time; what others hold may be anything."""
        self._reports.append(report if report.passed else self._config.hook.pytest_report_to_serializable(
            config=self._config, report=report))

    def pytest_warning_recorded(self, warning_message: Any, when: str, nodeid: str, location: Any) -> None:
        self.send(("warning", {"warning_message": warning_message, "when": when, "nodeid": nodeid,
                                "location": location}))

    def send_reports(self) -> None:
        reports, self._reports = self._reports, []
        if not self._whole and all(isinstance(report, pytest.TestReport) for report in reports):    # they passed
            reports = [report for report in reports if report.when == "call"] or reports
        self.send(("reports", reports))
