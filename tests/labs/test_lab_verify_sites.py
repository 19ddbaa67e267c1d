"""``sssjob convert --verify`` between a real Slurm and a real Grid Engine that are both behind a real SSH server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.labs.test_lab_behind_ssh import Away, away
from tests.labs.test_lab_verify import GRID, SLURM

pytestmark = pytest.mark.lab
__all__ = ["away"]


@pytest.mark.parametrize(("source", "target", "text", "code"), [
    ("slurm", "sge", SLURM.format(more="", last="exit 7"), 0),
    ("sge", "slurm", GRID.format(more="#$ -l h_rt=60", last='echo "$PWD" > place'), 0),
    ("sge", "slurm", GRID.format(more="", last='[ -n "$SGE_ROOT" ] && echo root > root; exit 0'), 1),
], ids=["slurm", "sge", "differs"])
def test_between_sites(away: Away, source: str, target: str, text: str, code: int) -> None:
    """Nothing is left there or here where nothing differs, and otherwise all of it is in both places."""
    Path("graded.sh").write_text(text)
    done = away.sssjob("convert", "-f", source, "-t", target, "graded.sh", "-o", "converted.sh", "--verify",
                       "--verify-timeout", "200", "--site", f"{source}.toml", "--to-site", f"{target}.toml")
    assert done.returncode == code, done.stderr
    kept = [sorted(place.glob(".sssjob-verify-*")) for place in (Path(), away.there)]
    if code:
        assert "\nroot: original (Grid Engine, sge) left it, converted (Slurm, slurm) did not\n" in done.stderr
        assert [(folder / "original" / "root").read_text() for (folder,) in kept] == ["root\n", "root\n"]
    else:
        assert kept == [[], []] and "verify: both runs ended alike and left the same" in done.stderr
