"""``sssjob convert --verify`` on a real Slurm and a real Grid Engine: it agrees where the jobs print the same, streams
that no option names included, and tells what differs where they do not."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from tests.labs.test_lab_bodies import lab

pytestmark = pytest.mark.lab
SLURM = """\
#!/bin/bash
#SBATCH --time=2 {more}
echo "$SLURM_JOB_NAME in $SLURM_SUBMIT_DIR"
echo "job $SLURM_JOB_ID" > "note.$SLURM_JOB_ID"
mkdir -p "parts/${{SLURM_ARRAY_TASK_ID:-0}}"
echo "part ${{SLURM_ARRAY_TASK_ID:-none}}" > "parts/${{SLURM_ARRAY_TASK_ID:-0}}/text"
{last}
"""
GRID = """\
#!/bin/bash
#$ -S /bin/bash -cwd -N graded
{more}
echo "$JOB_NAME has $NSLOTS"
echo "complaint of $JOB_NAME" >&2
date > /dev/null
echo $JOB_ID > id
{last}
"""


def verified(text: str, source: str, target: str, place: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """A conversion that is proved."""
    folders = [lab(name) for name in ("slurm", "sge")]
    (place / "graded.sh").write_text(text)
    user = pwd.getpwuid(os.getuid())
    command = '. "$0/env.sh" && . "$1/env.sh" && shift && exec "$@"'
    return subprocess.run(
        ["/bin/bash", "-c", command, *folders, sys.executable, "-m", "sssjob", "convert", "-f", source, "-t", target,
         "graded.sh", "-o", "converted.sh", "--verify", "--verify-timeout", "200", *more],
        cwd=place, capture_output=True, text=True, check=False, timeout=400,
        env={**os.environ, "USER": user.pw_name, "HOME": user.pw_dir, "SSSJOB_POLLING_INTERVAL": "1"})


@pytest.mark.parametrize(("text", "source", "target"), [
    (SLURM.format(more="", last="echo end"), "slurm", "sge"),
    (SLURM.format(more="--export=ALL", last="exit 7"), "slurm", "sge"),
    (GRID.format(more="#$ -l h_rt=60", last="exit 0"), "sge", "slurm"),
    (GRID.format(more="#$ -j y", last="exit 3"), "sge", "slurm"),
], ids=["slurm", "slurm-fails", "sge", "sge-fails"])
def test_both_leave_the_same(text: str, source: str, target: str, tmp_path: Path) -> None:
    done = verified(text, source, target, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "verify: both runs ended alike and left the same" in done.stderr
    assert ("both failed" in done.stderr) == ("exit 7" in text or "exit 3" in text)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["converted.sh", "graded.sh"]


def test_elements_of_an_array_are_compared_one_by_one(tmp_path: Path) -> None:
    text = SLURM.format(more="--array=2-4:2", last='[ "$SLURM_ARRAY_TASK_ID" = 2 ] || echo fourth')
    done = verified(text.replace('echo "job $SLURM_JOB_ID" > "note.$SLURM_JOB_ID"', ""), "slurm", "sge", tmp_path)
    assert done.returncode == 0, done.stderr


def test_output_in_the_home_directory_is_compared_and_stays(tmp_path: Path) -> None:
    """Where a job of Grid Engine starts that says nothing of a directory."""
    home, name = Path(pwd.getpwuid(os.getuid()).pw_dir), f"home{os.getpid()}"
    done = verified(f"#!/bin/bash\n#$ -S /bin/bash -N {name}\necho out; echo error >&2\n", "sge", "slurm", tmp_path)
    written = list(home.glob(f"{name}.*"))
    for path in written:
        path.unlink()
    assert done.returncode == 0, done.stderr
    assert len(written) == 2 and all(f"some of its output is in {path}, and stays" in done.stderr for path in written)


def test_what_differs_is_told_and_kept(tmp_path: Path) -> None:
    """The commands are not touched, so they find nothing of Slurm on Grid Engine."""
    text = SLURM.format(more="", last="exit ${SLURM_NTASKS:-5}")
    done = verified(text, "slurm", "sge", tmp_path, "--body", "keep")
    assert done.returncode == 1, done.stderr
    assert "note." in done.stderr and "standard output and errors: it differs" in done.stderr
    (kept,) = tmp_path.glob(".sssjob-verify-*")
    assert str(kept) in done.stderr and (kept / "original" / "parts" / "0" / "text").read_text() == "part none\n"
