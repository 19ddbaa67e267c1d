"""Scripts that we write for Slurm under the real sbatch: it takes every option of them.

``sbatch --test-only`` reads a script as it would for a job and asks the controller, which does not know the queues and
accounts of other sites: what it answers begins with ``allocation failure``, and the script was read until then.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from sssjob.errors import RejectedError
from sssjob.findings import Policy
from sssjob.translators import ReadContext, WriteContext, get
from tests.translators.test_scripts_matrix import SAMPLES

pytestmark = pytest.mark.lab
#: Only the site can say whether these are right: its users, groups and resources.
SITE = ("--uid specification", "--gid specification", "generic resource (gres) specification")


@pytest.fixture(scope="module")
def lab() -> Path:
    folder = os.environ.get("SSSJOB_LAB_SLURM")
    if folder is None:
        pytest.skip("no slurm lab: " + os.environ.get(
            "SSSJOB_NO_LAB_SLURM", "SSSJOB_LAB_SLURM does not name one (make test-labs)"))
    return Path(folder)


def refusal(lab: Path, folder: Path, text: str) -> str:
    """What ``sbatch --test-only`` says of a script that it cannot read; empty where it can."""
    (folder / "job").write_bytes(text.encode("utf-8", "surrogateescape"))
    command = f". {shlex.quote(str(lab))}/env.sh && exec sbatch --test-only job"
    made = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True, timeout=60,
                          env={"PATH": os.environ["PATH"], "HOME": str(folder)}, errors="replace")
    known = made.returncode == 0 or "allocation failure" in made.stderr or any(word in made.stderr for word in SITE)
    return "" if known else made.stderr


@pytest.mark.parametrize(("name", "path"), SAMPLES, ids=[f"{n}-{p.stem}" for n, p in SAMPLES])
def test_sbatch_takes_what_is_written(lab: Path, tmp_path: Path, name: str, path: Path) -> None:
    context = ReadContext(policy=Policy.WARN)
    try:
        document = get(name).read(path.read_bytes(), context)
    except RejectedError:
        pytest.skip(f"{path.name} is refused")
    if any(f.rule == "SSS505" and "wants #!" in f.message for f in context.findings):
        pytest.skip("a script without #!, which sbatch refuses as it is; it is told")
    if any(f.kind == "template" for f in context.findings):
        pytest.skip("a template with placeholders")
    if sum(1 for _ in document.jobs()) != 1:
        pytest.skip("several jobs are several scripts")
    text = get("slurm").write(document, WriteContext(policy=Policy.WARN))
    assert refusal(lab, tmp_path, text) == "", text


def submission(lab: Path, folder: Path, text: str) -> str:
    """What sbatch says of a script that is really handed in; empty where it takes it."""
    (folder / "job").write_text(text)
    command = f". {shlex.quote(str(lab))}/env.sh && id=$(sbatch --hold --parsable job) && scancel $id"
    done = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True, timeout=60, check=False,
                          env={"PATH": os.environ["PATH"], "HOME": str(folder)})
    return "" if done.returncode == 0 else done.stderr


def test_a_heterogeneous_job_is_no_array(lab: Path, tmp_path: Path) -> None:
    """The controller says so, to which --test-only does not hand such a job; what is made of two kinds of nodes is
    taken, without the array that was dropped."""
    parts = "#!/bin/sh\n#SBATCH -N 1 -o /dev/null{}\n#SBATCH hetjob\n#SBATCH -N 1\ntrue\n"
    assert submission(lab, tmp_path, parts.format("")) == ""
    assert "array" in submission(lab, tmp_path, parts.format(" -a 1-3"))
    document = get("torque").read(b"#!/bin/sh\n#PBS -t 1-3\n#PBS -l nodes=1:ppn=2+1:ppn=1\ntrue\n", ReadContext())
    text = get("slurm").write(document, WriteContext(policy=Policy.WARN))
    assert "hetjob" in text and submission(lab, tmp_path, text) == ""


@pytest.mark.parametrize(("source", "directive"), [
    ("pbspro", "#PBS -a 12312359"), ("torque", "#PBS -a 01010000.30"), ("sge", "#$ -a 06302359"),
    ("lsf", "#BSUB -b 6:30:08:00 -t 7:01:20:00"), ("slurm", "#SBATCH --begin=02.29-7:05")])
def test_a_day_without_a_year_is_taken(lab: Path, tmp_path: Path, source: str, directive: str) -> None:
    document = get(source).read(f"#!/bin/sh\n{directive}\ntrue\n".encode(), ReadContext())
    text = get("slurm").write(document, WriteContext(policy=Policy.WARN))
    assert "--begin=" in text and submission(lab, tmp_path, text) == ""
