"""Settings for all tests: in CI the property tests draw the same examples every time, elsewhere new ones. The journal
and the ledger of each test are its own."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("explore", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "explore")

# In the background of a script SIGINT is ignored, and would be in every command that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


#: Seconds after which a test that runs is a failure (the others: ``timeout`` in pyproject.toml): of those on real
#: clusters, whose queues have a pace of their own, and of those that take minutes anyway.
TIME_LIMITS = {"lab": 900, "soak": 7200}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give tests of another kind a time limit of their own, unless they state one."""
    for item in items:
        longer = [limit for name, limit in TIME_LIMITS.items() if item.get_closest_marker(name)]
        if longer and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(max(longer)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how many tests were skipped for which reason; ``-rs`` lists each place instead."""
    if set(config.option.reportchars) & set("sSaA"):
        return
    reasons = Counter(_reason(report) for report in terminalreporter.stats.get("skipped", ()))
    if reasons:
        terminalreporter.section("skipped (-rs lists the places)", sep="-")
        for reason, count in reasons.most_common():
            terminalreporter.write_line(f"{count:5}  {reason}")


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    said = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return said.removeprefix("Skipped: ")


@pytest.fixture(autouse=True)
def built_in_formats() -> Iterator[None]:
    """Formats of third parties that a test installs are gone after it: a name is looked up among packages once."""
    yield
    registry = sys.modules.get("sssjob.translators.registry")
    if registry is not None:
        for name in registry._loaded.keys() - registry.BUILT_IN.keys():
            del registry._loaded[name]


@pytest.fixture(autouse=True)
def journal(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the journal of this test is; nothing is made there unless a command does."""
    path = tmp_path_factory.getbasetemp() / f"{os.urandom(8).hex()}.db"
    monkeypatch.setenv("SSSJOB_JOURNAL", str(path))
    monkeypatch.setenv("SSSJOB_LEDGER", str(path.with_suffix(".ledger")))
    return path
