"""The README and the page of a centre's year tell the truth: their console examples are run and compared, their links
lead somewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import forks

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
CENTRE = (ROOT / "docs" / "centre.md").read_text()
SITES = (ROOT / "docs" / "sites.md").read_text()
SCRIPTS = (ROOT / "docs" / "scripts.md").read_text()
BODIES = (ROOT / "docs" / "bodies.md").read_text()


def examples(page: str) -> list[tuple[str, str]]:
    """(command, output) of every ``$`` line in a console block."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            while command.endswith("\\"):
                line, _, output = output.partition("\n")
                command = command[:-1] + line
            if not command.startswith("make "):
                found.append((command, output))
    return found


@pytest.mark.parametrize(("page", "least"), [(README, 5), (CENTRE, 15), (SITES, 4), (SCRIPTS, 2), (BODIES, 2)],
                         ids=["README", "centre", "sites", "scripts", "bodies"])
def test_examples_are_true(page: str, least: int, tmp_path: Path) -> None:
    place = tmp_path / "bin"
    place.mkdir()
    (place / "sssjob").write_text(forks.program("sssjob"))
    (place / "sssjob").chmod(0o755)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    environment = {**os.environ, "PATH": f"{place}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "COLUMNS": "100",
                   "LC_ALL": "C.UTF-8", "SSSJOB_LEDGER": str(tmp_path / "centre.db")}
    assert len(examples(page)) >= least
    for command, output in examples(page):
        process = subprocess.run(["/bin/sh", "-c", command], cwd=tmp_path, env=environment, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert process.stdout == output, command


def test_the_python_example_runs(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (code,) = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    process = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
                             capture_output=True, text=True)
    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout.splitlines()[0] == "hello.1 Completed 0"


@pytest.mark.parametrize("name", ["README.md", "docs/architecture.md", "docs/cli.md", "docs/centre.md", "docs/sites.md",
                                  "CHANGELOG.md"])
def test_links_lead_somewhere(name: str) -> None:
    page = ROOT / name
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_the_rates_of_the_page_are_those_of_the_examples() -> None:
    assert f"```toml\n{(ROOT / 'examples' / 'centre' / 'rates.toml').read_text()}```" in CENTRE
