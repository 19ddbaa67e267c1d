"""Scripts of Grid Engine under the real qsub: what it reads in a script it reads in the one that we write from it, and
it takes what is written from scripts of other systems."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sssjob.conversion.site import read_site
from sssjob.errors import RejectedError
from sssjob.findings import Policy
from sssjob.translators import ReadContext, WriteContext, get
from tests.translators.sge_listing import canonical, listing, said

pytestmark = pytest.mark.lab
FIXTURES = Path(__file__).parents[1] / "fixtures" / "scripts"
RECORDED: dict[str, Any] = json.loads((FIXTURES / "qsub-8.1.9.json").read_text())["cases"]
SCRIPTS = [(path.parent.name, path) for path in sorted(FIXTURES.glob("*/*.sh"))]
SITE = read_site('name = "lab"\n[sge.pe.smp]\nallocation_rule = "$pe_slots"\n'
                 '[sge.pe.mpi]\nallocation_rule = "$fill_up"\n[sge.pe.pairs]\nallocation_rule = 2\n')


@pytest.fixture(scope="module")
def lab() -> Path:
    folder = os.environ.get("SSSJOB_LAB_SGE")
    if folder is None:
        pytest.skip("no sge lab: " + os.environ.get(
            "SSSJOB_NO_LAB_SGE", "SSSJOB_LAB_SGE does not name one (make test-labs)"))
    return Path(folder)


def verified(lab: Path, folder: Path, text: str, *arguments: str) -> tuple[bool, dict[str, object]]:
    """Whether ``qsub -verify`` takes a script, and the fields that it lists."""
    (folder / "job").write_bytes(text.encode("utf-8", "surrogateescape"))
    command = f". {shlex.quote(str(lab))}/env.sh && exec qsub -verify {shlex.join(arguments)} job"
    process = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True, timeout=60,
                             env={"PATH": os.environ["PATH"], "HOME": str(folder), "TERM": "dumb"}, errors="replace")
    fields = listing(process.stdout, text)
    if fields.get("job_name") == "job":
        del fields["job_name"]
    if fields.get("mail_list", "").endswith("@localhost"):
        del fields["mail_list"]
    if fields.get("cwd") == str(folder):
        fields["cwd"] = "."
    if "SGE_CELL=" in fields.get("env_list", ""):
        fields["env_list"] = "(whole submission environment)"
    return process.returncode == 0, canonical(fields)



@pytest.mark.parametrize("case", RECORDED)
def test_reading_for_reading(lab: Path, tmp_path: Path, case: str) -> None:
    script, arguments = RECORDED[case]["script"], RECORDED[case].get("arguments", [])
    taken, fields = verified(lab, tmp_path, script, *arguments)
    assert taken is RECORDED[case]["accepted"]
    try:
        context = ReadContext(case, options={"set": shlex.join(arguments)})
        document = get("sge").read(script.encode(), context)
    except RejectedError:
        return
    written = get("sge").write(document, WriteContext())
    if taken and case not in ("o-66",):
        again, ours = verified(lab, tmp_path, written)
        assert again and ours == fields


@pytest.mark.parametrize(("name", "path"), SCRIPTS, ids=[f"{n}-{p.stem}" for n, p in SCRIPTS])
def test_qsub_takes_what_is_written(lab: Path, tmp_path: Path, name: str, path: Path) -> None:
    document = get(name).read(path.read_bytes(), ReadContext(policy=Policy.WARN, site=SITE))
    text = get("sge").write(document, WriteContext(policy=Policy.WARN, site=SITE))
    taken, fields = verified(lab, tmp_path, text)
    assert taken
    assert fields == canonical(said(line for line in text.splitlines() if line.startswith("#$")))


@pytest.mark.parametrize("page", [
    "#$ -soft -l h_rt=60\n# hard again\n#$ -l h_vmem=1G\n#$ -N x # a name\n",
    "#$ -l h_vmem=1G -soft -q all.q -hard -l h_rt=60\n\n#$ -soft -l arch=lx-amd64\n#$ -q all.q\n",
    "#$ -q all.q\n#$ -clear\n# what is forgotten\n#$ -soft -q all.q\n./a\n#$ -l h_rt=60 -m e\n",
])
def test_pages_keep_what_is_soft(lab: Path, tmp_path: Path, page: str) -> None:
    """-soft and -hard count for the rest of their line; directives that stay in their places say the same to qsub."""
    text = f"#!/bin/sh\n{page}true\n"
    written = get("sge").write(get("sge").read(text.encode(), ReadContext()), WriteContext())
    taken, fields = verified(lab, tmp_path, text)
    assert taken and verified(lab, tmp_path, written) == (True, fields)
