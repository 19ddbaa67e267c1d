"""docs/python.md tells the truth: its examples are run, in order, as one session beside the examples."""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.forks import command

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "python.md"


def test_examples_are_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    text = "\n".join(re.findall(r"^```pycon\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL))
    session = doctest.DocTestParser().get_doctest(text, {}, "python.md", str(PAGE), 0)
    assert len(session.examples) > 40
    texts: list[str] = []
    doctest.DocTestRunner(verbose=False).run(session, out=texts.append)
    assert "".join(texts) == ""
    waited = subprocess.run([*command(), "wait", "later"], env=dict(os.environ), capture_output=True, text=True)
    assert waited.returncode == 0, waited.stderr


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", PAGE.read_text()):
        assert (PAGE.parent / target).exists(), target
