"""Public scripts (``SSSJOB_SAMPLES``): all are read, and refused only where the real submit command refuses them."""

from __future__ import annotations

import json
import os
from itertools import cycle
from pathlib import Path
from typing import Final

import pytest

from sssjob.errors import RejectedError
from sssjob.findings import Findings, Policy
from sssjob.translators import ReadContext, WriteContext, get
from sssjob.translators.registry import SCRIPT_FORMATS

SAMPLES: Final = Path(os.environ.get("SSSJOB_SAMPLES") or "/nowhere") / "scripts-corpus"
#: Refused where no real command has been asked -> why it would refuse.
REFUSED: Final = {
    "flux/001-fractale.sh": "--noodles is no option",
    "htcondor/006-tutorial-bwa.sub": "its executable is empty: a blank of a tutorial that is to be filled in",
    "torque/002-ppe-icon-model.sh": "long options are those of NQSV, for getopt of Torque's qsub a dash is no option",
    "torque/004-ppe-icon-model.sh": "long options are those of NQSV",
    "torque/007-nest-gpu.sh": "long options are those of NQSV",
}
#: Taken here, refused by the command -> why.
TAKEN: Final = {
    "slurm/002-articles.sh": "a placeholder of a template stands for the number of nodes; it is kept and told",
    "slurm/010-fedfa.sh": "a generic resource that the machine of the recording has not",
    "sge/002-asteroidroutingproblem.sh": "a placeholder of a template stands for a number; it is kept and told",
}
SCRIPTS: Final = sorted(path for name in SCRIPT_FORMATS for path in (SAMPLES / name).glob("*.s[hu]*")
                        if path.suffix != ".json")
no_samples = pytest.mark.skipif(not SCRIPTS, reason="SSSJOB_SAMPLES names no folder with scripts-corpus")


def _accepted(path: Path) -> bool:
    """What the real command said, as far as it was asked and is to be followed."""
    if f"{path.parent.name}/{path.name}" in TAKEN:
        return True
    for recorded in path.parent.glob(f"{path.name}.*.json"):
        return bool(json.loads(recorded.read_text())["accepted"])
    return f"{path.parent.name}/{path.name}" not in REFUSED


@no_samples
def test_scripts_are_refused_as_by_the_real_command() -> None:
    said = {}
    for path in SCRIPTS:
        context = ReadContext(path.name, Findings(path.name))
        try:
            get(path.parent.name).read(path.read_bytes(), context)
            said[path] = True
        except RejectedError:
            said[path] = False
    assert {p.name for p, taken in said.items() if taken != _accepted(p)} == set()


@no_samples
def test_every_script_is_written_for_every_system() -> None:
    """What a reader took, every writer takes, whatever is to become of bodies."""
    bodies = cycle(("keep", "shim", "translate"))
    for path in SCRIPTS:
        document = get(path.parent.name).read(path.read_bytes(), ReadContext(path.name, policy=Policy.WARN))
        for target, body in zip(SCRIPT_FORMATS if len(list(document.jobs())) == 1 else (), bodies, strict=False):
            assert get(target).write(document, WriteContext(policy=Policy.WARN, options={"body": body}))
