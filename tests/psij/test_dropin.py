"""Programs written for psij-python run unchanged, each in a process of its own.

With PSIJ_PEER=PYTHON, the interpreter of an environment that has psij-python, they run there too, with the same output.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import psij

REPO = Path(psij.__file__).resolve().parents[1]
PROGRAMS = Path(__file__).resolve().parent / "dropin"
PEER = os.environ.get("PSIJ_PEER")

no_peer = pytest.mark.skipif(PEER is None, reason="PSIJ_PEER does not name an interpreter that has psij-python")

OUTPUT = {
    "getting_started": """\
executor local
NEW None None
COMPLETED 0 True True
native id True True
output 1970
COMPLETED 0 job-0 problem
FAILED 1 job-1 problem
FAILED 2 job-2 problem
COMPLETED ['rank', 'rank', 'rank', 'rank'] ['localhost', 'localhost', 'localhost', 'localhost']
""",
    "callbacks": """\
job [QUEUED, ACTIVE, COMPLETED]
function ['ACTIVE', 'FAILED', 'QUEUED']
executor ['ACTIVE', 'ACTIVE', 'ACTIVE', 'COMPLETED', 'COMPLETED', 'FAILED', 'QUEUED', 'QUEUED', 'QUEUED']
at the end COMPLETED FAILED 1 COMPLETED
""",
    "throttle": """\
submitted 20 ended 20 at once 4
{'COMPLETED'} 20
""",
    "control": """\
no time None
target ACTIVE
listed True
attached ACTIVE
canceled True CANCELED
follower True
twice InvalidJobException True
attach twice InvalidJobException True
nothing InvalidJobException True
name ValueError True
version ValueError True
counts InvalidJobException True
never SubmitException True
transient True no
same True
""",
    "plugin": """\
known True True
mysite 0.3.0 MySiteExecutor
[QUEUED, ACTIVE, FAILED] 4 None True
['good day, world', 'sourced', ''] post True
FAILED 'no such module\\n' 3
Unable to load executor True
""",
}


def output(program: str, python: str, folder: Path, path: list[Path]) -> str:
    """What a program prints, run in an empty folder with the plug-in of a third party on its path."""
    site = folder / "site"
    shutil.copytree(PROGRAMS / "mysite", site / "mysite")
    (site / "psij-descriptors").mkdir()
    shutil.copy(PROGRAMS / "descriptors.py", site / "psij-descriptors" / "mysite_descriptors.py")
    shutil.copy(PROGRAMS / f"{program}.py", folder / "program.py")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [site, *path])), "HOME": str(folder)}
    done = subprocess.run([python, "program.py"], cwd=folder, env=environment, capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("program", OUTPUT)
def test_program(program: str, tmp_path: Path) -> None:
    assert output(program, sys.executable, tmp_path, [REPO]) == OUTPUT[program]


@no_peer
@pytest.mark.parametrize("program", OUTPUT)
def test_program_with_psij_python(program: str, tmp_path: Path) -> None:
    assert output(program, str(PEER), tmp_path, []) == OUTPUT[program]


def test_examples_of_the_page(tmp_path: Path) -> None:
    """The code in docs/psij.md, each block under the name in its first line."""
    page = (REPO / "docs" / "psij.md").read_text(encoding="utf-8")
    for name, text in re.findall(r"```(?:python|bash)\n# (\S+)\n(.*?)```", page, re.DOTALL):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "use.py").write_text(
        "from pathlib import Path\nfrom psij import *\n"
        "config = JobExecutorConfig('log', 'work')\n"
        "executor = JobExecutor.get_instance('ours', config=config)\n"
        "job = Job(JobSpec('/bin/sh', ['-c', 'exit 3'], launcher='timed'))\n"
        "executor.submit(job)\njob.wait()\n"
        "print(job.status.exit_code, job.status.state, Path('log').read_text().split(' ', 2)[2])\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path / "site"), str(REPO)])}
    printed = [subprocess.run([sys.executable, program], cwd=tmp_path, env=environment, capture_output=True, text=True,
                              timeout=60).stdout.splitlines() for program in ("first.py", "use.py")]
    assert printed[0] == ["QUEUED", "ACTIVE", "COMPLETED"]
    assert (tmp_path / "greeting").read_text() == "hello you\n"
    assert printed[1][0] == "3 FAILED run /bin/sh" and [line.split(" ", 2)[2].replace("took 1", "took 0")
                                                             for line in printed[1][1:-1]] == [
        "exit code 3", "took 0 s"]
