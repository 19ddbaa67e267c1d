"""The settings for all tests: a hang is a failure, and a summary says why tests were skipped, reason by reason."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

#: Words that start pytest with the plugin that the settings name, and no other that is installed.
PYTEST, ALONE = (sys.executable, "-m", "pytest", "-p", "pytest_timeout"), {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
TESTS = """
import pytest, time
@pytest.mark.parametrize("n", range(3))
def test_elsewhere(n):
    pytest.skip("no lab")
def test_by_root():
    pytest.skip("root reads everything")
@pytest.mark.timeout(0.2)
def test_hangs():
    time.sleep(60)
@pytest.mark.lab
def test_lab(request):
    print(request.node.get_closest_marker("timeout").args)
    assert False
@pytest.mark.lab
@pytest.mark.timeout(5)
def test_quick_lab(request):
    assert request.node.get_closest_marker("timeout").args == (5,)
"""


@pytest.fixture
def answer(tmp_path: Path) -> str:
    """What pytest says of the tests above, under our settings."""
    root = Path(__file__).parents[1]
    (tmp_path / "conftest.py").write_text((root / "tests" / "conftest.py").read_text())
    (tmp_path / "test_some.py").write_text(TESTS)
    options = ["-q", "-c", str(root / "pyproject.toml"), "-p", "no:cacheprovider", f"--rootdir={tmp_path}"]
    done = subprocess.run([*PYTEST, *options, str(tmp_path)], capture_output=True, text=True, check=False,
                          env=os.environ | ALONE)
    return done.stdout


def test_a_hang_is_a_failure_and_skips_are_counted_by_reason(answer: str) -> None:
    assert "Failed: Timeout (>0.2s)" in answer and "(900,)" in answer
    assert "(-rs lists the places) " in answer and "    3  no lab\n    1  root reads everything\n" in answer
    assert "SKIPPED" not in answer and "2 failed, 1 passed, 4 skipped" in answer


@pytest.mark.parametrize(("words", "lab", "collected"), [
    ([], {}, 1), ([], {"SSSJOB_NO_LAB_SGE": "no Debian"}, 2), (["tests"], {}, 4), (["-m", "sweep"], {}, 2)])
def test_files_for_real_clusters_and_sweeps_are_left_out_unless_asked_for(
        words: list[str], lab: dict[str, str], collected: int, tmp_path: Path) -> None:
    root, tests = Path(__file__).parents[1], tmp_path / "tests"
    tests.mkdir()
    (tests / "conftest.py").write_text((root / "tests" / "conftest.py").read_text())
    for name in ("test_some.py", "test_lab_some.py"):
        (tests / name).write_text("import pytest\ndef test_one(): pass\n@pytest.mark.sweep\ndef test_all(): pass\n")
    (tmp_path / "pyproject.toml").write_text((root / "pyproject.toml").read_text())
    surroundings = {name: value for name, value in os.environ.items() if "_LAB_" not in name}
    done = subprocess.run([*PYTEST, "-q", "-p", "no:cacheprovider", *words], cwd=tmp_path, capture_output=True,
                          text=True, check=False, env=surroundings | ALONE | lab)
    assert f"{collected} passed" in done.stdout, done.stdout
    left_out = "not collected: tests/labs/test_lab_*.py, for real clusters (make test-labs)" in done.stdout
    assert left_out == (not words and not lab)
    assert ("deselected: sweeps over many moments, seeds and places (make test-sweeps)" in done.stdout) == (not words)
