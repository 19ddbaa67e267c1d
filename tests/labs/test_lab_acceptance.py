"""What our judges say is refused, put to the real sbatch and qsub."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.lrm.test_acceptance import REFUSED, TAKEN, Options

pytestmark = pytest.mark.lab
#: How each asks whether a script is taken; a job of Grid Engine that is taken is held, and deleted.
COMMANDS = {"slurm": "sbatch --test-only job", "sge": "qsub -h -terse job"}


def answer(name: str, options: Options, folder: Path) -> tuple[int, str]:
    """Status and words of the submit command for a script with these options."""
    lab = os.environ.get(f"SSSJOB_LAB_{name.upper()}")
    if lab is None:
        pytest.skip(f"no {name} lab: " + os.environ.get(f"SSSJOB_NO_LAB_{name.upper()}", "none is named"))
    lines = [f"#SBATCH {option}" + ("" if value is None else f"={value}") if name == "slurm" else
             f"#$ {option} " + (value or "") for option, value in options]
    (folder / "job").write_text("\n".join(["#!/bin/sh", *lines, "true", ""]))
    command = f". {shlex.quote(lab)}/env.sh && {COMMANDS[name]}"
    process = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True, timeout=60,
                             env={"PATH": os.environ["PATH"], "HOME": str(folder)}, errors="replace")
    if name == "sge" and process.returncode == 0:
        subprocess.run(["sh", "-c", f". {shlex.quote(lab)}/env.sh && qdel {process.stdout.partition('.')[0].strip()}"],
                       capture_output=True, timeout=60, check=False)
    return process.returncode, process.stdout + process.stderr


@pytest.mark.parametrize(("name", "options"), [(name, options) for name, options, _ in REFUSED if name in COMMANDS],
                         ids=lambda value: str(value)[:60])
def test_what_the_judge_refuses_is_refused(name: str, options: Options, tmp_path: Path) -> None:
    status, words = answer(name, options, tmp_path)
    assert status != 0, words


@pytest.mark.parametrize("options", [options for name, options in TAKEN if name == "slurm"],
                         ids=lambda value: str(value)[:60])
def test_what_the_judge_of_slurm_takes_is_read(options: Options, tmp_path: Path) -> None:
    status, words = answer("slurm", options, tmp_path)
    assert status == 0 or "partition" in words, words
