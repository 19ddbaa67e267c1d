"""Settings for all tests: in CI the property tests draw the same examples every time, elsewhere new ones;
SSSJOB_EXAMPLES says how many. The journal and the ledger of each test are its own."""

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Generator, Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

EXAMPLES = int(os.environ.get("SSSJOB_EXAMPLES") or 20)
#: How long an example takes to draw says how busy the machine is.
_PATIENT = [HealthCheck.too_slow]
settings.register_profile("ci", max_examples=EXAMPLES, derandomize=True, deadline=None, print_blob=True,
                          suppress_health_check=_PATIENT)
settings.register_profile("explore", max_examples=EXAMPLES, deadline=None, suppress_health_check=_PATIENT)
settings.load_profile("ci" if os.environ.get("CI") else "explore")

# In the background of a script SIGINT is ignored, and SIGHUP under nohup: so it would be in every command that a test
# starts and interrupts, and a test that sends itself one would wait for the end of its job.
for _number, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)


# Folders that tests make themselves, as for each example of a property, lie where those that pytest makes do: in memory
# (``tests/place.py``), where a journal that is flushed for each example waits for no disk.
tempfile.tempdir = os.environ.get("PYTEST_DEBUG_TEMPROOT", tempfile.tempdir)


#: Seconds after which a test that runs is a failure (the others: ``timeout`` in pyproject.toml): of those on real
#: clusters, whose queues have a pace of their own, and of those that take minutes anyway.
TIME_LIMITS = {"lab": 900, "soak": 7200}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the files that only hold tests on real clusters out of a run of the whole suite that has no cluster."""
    left_out = collection_path.name.startswith("test_lab_") and not _labs_are_asked_for(config)
    return left_out or None


def _labs_are_asked_for(config: pytest.Config) -> bool:
    """Whether a path or ``-m`` chooses the tests, or the surroundings name a cluster or why there is none."""
    return bool(config.args_source is not pytest.Config.ArgsSource.TESTPATHS or config.option.markexpr or any(
        name.startswith(("SSSJOB_LAB_", "SSSJOB_NO_LAB_")) for name in os.environ))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage among thousands of tests that stay; nor is it often looked for there later.

    They are not frozen: the product, which asks how many objects are, would count them whenever it reads a document.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.unfreeze()
        gc.set_threshold(*gc.get_threshold()[:2], 1000)
        gc.enable()


def _sweeps_are_asked_for(config: pytest.Config) -> bool:
    """Whether a path or ``-m`` chooses the tests, or the surroundings ask for all that takes long."""
    return bool(config.args_source is not pytest.Config.ArgsSource.TESTPATHS or config.option.markexpr
                or os.environ.get("SSSJOB_SOAK") == "1")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave sweeps out of a run of the whole suite. Give tests of another kind a time limit of their own, unless they
    state one; begin with the longest tests."""
    if not _sweeps_are_asked_for(config):
        sweeps = [item for item in items if item.get_closest_marker("sweep")]
        config.hook.pytest_deselected(items=sweeps)
        items[:] = [item for item in items if not item.get_closest_marker("sweep")]
    for item in items:
        longer = [limit for name, limit in TIME_LIMITS.items() if item.get_closest_marker(name)]
        if longer and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(max(longer)))
    workers = config.getoption("processes", 0) or int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1))
    items[:] = _longest_first(items, workers)


def _longest_first(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """The tests in an order in which each worker, which begins with an equal share of them, has some of the slow ones
    first: the last seconds are those of small tests, which the workers take from each other."""
    slow = [item for item in items if item.get_closest_marker("slow")]
    others = [item for item in items if not item.get_closest_marker("slow")]
    ordered: list[pytest.Item] = []
    for worker in range(workers):
        ordered += slow[worker::workers]
        until = len(items) * (worker + 1) // workers - len(ordered)
        ordered += others[:until]
        del others[:until]
    return ordered + others


#: A quiet run of more tests than ``MANY`` shows one of so many that end well: it fits on a screen.
MANY, ONE_OF = 2000, 40
_ended_well = count(1)


@pytest.hookimpl(wrapper=True)
def pytest_report_teststatus(report: pytest.TestReport | pytest.CollectReport, config: pytest.Config) -> Generator[
        None, tuple[str, str, str], tuple[str, str, str]]:
    """Leave most dots out where there are many; a test that fails is shown always."""
    category, letter, word = yield
    session = getattr(config.pluginmanager.get_plugin("terminalreporter"), "_session", None)
    if letter and category in ("passed", "skipped") and config.get_verbosity() < 0 and (
            session is not None and session.testscollected > MANY and next(_ended_well) % ONE_OF):
        letter = ""
    return category, letter, word


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how many tests were skipped for which reason; ``-rs`` lists each place instead."""
    if not _labs_are_asked_for(config):
        terminalreporter.write_line("not collected: tests/labs/test_lab_*.py, for real clusters (make test-labs)")
    if not _sweeps_are_asked_for(config):
        terminalreporter.write_line("deselected: sweeps over many moments, seeds and places (make test-sweeps)")
    if set(config.option.reportchars) & set("sSaA"):
        return
    reasons = Counter(_reason(report) for report in terminalreporter.stats.get("skipped", ()))
    if reasons:
        terminalreporter.section("skipped (-rs lists the places)", sep="-")
        for reason, times in reasons.most_common():
            terminalreporter.write_line(f"{times:5}  {reason}")


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    said = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return said.removeprefix("Skipped: ")


@pytest.fixture(autouse=True, scope="session")
def settings_of_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No settings but those of a test; where processes that start local jobs keep how these end: they outlive it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PSIJ_RUN_DIRECTORY", str(tmp_path_factory.getbasetemp() / "psij-run"))
        for name in ("SSSJOB_CONFIG", "XDG_CONFIG_DIRS", "PSIJ_CONFIG"):
            patch.setenv(name, os.devnull)
        yield


@pytest.fixture(autouse=True)
def journal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the journal of this test is; nothing is made there unless a command does. Formats of third parties that a
    test installs are gone after it: a name is looked up among packages once.

    One fixture and no other that it asks for: what each test pays is paid thousands of times.
    """
    path = tmp_path_factory.getbasetemp() / f"{os.urandom(8).hex()}.db"
    os.environ["SSSJOB_JOURNAL"] = str(path)
    os.environ["SSSJOB_LEDGER"] = str(path.with_suffix(".ledger"))
    yield path
    registry = sys.modules.get("sssjob.translators.registry")
    if registry is not None:
        for name in registry._loaded.keys() - registry.BUILT_IN.keys():
            del registry._loaded[name]
