"""Settings for all tests: in CI the property tests draw the same examples every time, elsewhere new ones. The journal
and the ledger of each test are its own."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("explore", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "explore")

# In the background of a script SIGINT is ignored, and would be in every command that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def journal(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the journal of this test is; nothing is made there unless a command does."""
    path = tmp_path_factory.getbasetemp() / f"{os.urandom(8).hex()}.db"
    monkeypatch.setenv("SSSJOB_JOURNAL", str(path))
    monkeypatch.setenv("SSSJOB_LEDGER", str(path.with_suffix(".ledger")))
    return path
