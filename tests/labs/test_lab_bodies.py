"""A Slurm script runs on the real Slurm, and converted on the real Grid Engine: both print the same."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from sssjob.document.model import Document, Job
from sssjob.findings import Findings, Policy
from sssjob.translators import ReadContext, WriteContext, get

pytestmark = pytest.mark.lab
SCRIPT = """\
#!/bin/bash
#SBATCH --job-name=bodies --time=2 {more}
#SBATCH --output={out}

cd "$SLURM_SUBMIT_DIR" || exit 1
pwd
case $SLURM_JOB_ID in *[!0-9]* | '') echo no number ;; *) echo a number ;; esac
echo "${{SLURM_JOB_NAME:-none}} $((SLURM_NTASKS * 2)) $SLURM_CPUS_PER_TASK"
echo "$SLURM_JOB_USER $SLURM_JOB_UID $SLURM_NNODES"
echo "$SLURM_TASKS_PER_NODE ${{SLURM_ARRAY_TASK_ID-unset}} ${{SLURM_ARRAY_TASK_MIN-unset}}"
echo "${{SLURM_ARRAY_TASK_MAX-unset}} ${{SLURM_ARRAY_TASK_STEP-unset}} ${{SLURM_ARRAY_JOB_ID:+set}}"
scontrol show hostnames "$SLURM_JOB_NODELIST" | wc -l
cat <<EOF
document $SLURM_JOB_NAME
EOF
cat <<'EOF'
quoted $SLURM_JOB_NAME
EOF
"""


def lab(name: str) -> str:
    """The directory of a lab, or skip."""
    variable = f"SSSJOB_LAB_{name.upper()}"
    folder = os.environ.get(variable)
    if folder is None:
        reason = os.environ.get(f"SSSJOB_NO_LAB_{name.upper()}", f"{variable} does not name one (make test-labs)")
        pytest.skip(f"no {name} lab: {reason}")
    return folder


def printed(folder: str, command: str, text: str, place: Path) -> str:
    """What the elements of a job print, one after another."""
    (place / "job.sh").write_text(text)
    subprocess.run(["/bin/bash", "-c", f'. "$0/env.sh" && {command} job.sh', folder], cwd=place, check=True,
                   timeout=300, stdout=subprocess.DEVNULL)     # sbatch may wait a minute for the environment of a login
    found = sorted(place.glob("out*"))
    made = "".join(file.read_text() for file in found)
    for file in found:
        file.unlink()
    return made


@pytest.mark.parametrize("body", ["shim", "translate"])
@pytest.mark.parametrize("more", ["-n 3 -N 1 -c 1", "-n 1 --array=2-4:2"], ids=["tasks", "array"])
def test_the_job_prints_the_same(more: str, body: str, tmp_path: Path) -> None:
    slurm, sge = lab("slurm"), lab("sge")
    text = SCRIPT.format(more=more, out=tmp_path / ("out.%a" if "array" in more else "out"))
    if body == "translate":     # without what cannot be renamed in its place
        text = "".join(line for line in text.splitlines(True) if "ARRAY" not in line)
    findings = Findings("job.sh")
    document = get("slurm").read(text.encode(), ReadContext("job.sh", findings))
    script = get("sge").write(document, WriteContext(findings, options={"body": body}))
    told = {(f.rule, f.subject) for f in findings if "SSS510" <= f.rule <= "SSS516"}
    assert told <= {("SSS512", "SLURM_JOB_ID"), ("SSS513", "SLURM_JOB_NAME")}
    original = printed(slurm, "sbatch --wait", text, tmp_path)
    assert printed(sge, "qsub -sync y", script.replace("@PE@", "smp"), tmp_path) == original
    assert original.startswith(f"{tmp_path}\na number\nbodies ") and original.endswith(
        "document bodies\nquoted $SLURM_JOB_NAME\n")


#: By name of the variable.
VALUES = {"A": "0,1", "B": 'say "hi"', "C": "it's", "D": r"a\b\\c", "E": " two  blanks ", "F": "$HOME `id` $(id)",
          "G": "a=b;c&d|e", "H": "'quoted'", "I": '"quoted"', "J": "1,'2,3',4", "K": "# no comment", "L": "two\nlines",
          "M": "%j {x} *?[a]", "N": "é✓"}


@pytest.mark.parametrize(("name", "command"), [("slurm", "sbatch --wait"), ("sge", "qsub -sync y")])
@pytest.mark.parametrize("export", ["true", "false"])
def test_variables_arrive_byte_for_byte(name: str, command: str, export: str, tmp_path: Path) -> None:
    """Whether a directive says them or the script exports them."""
    folder = lab(name)
    job = Job(executable="/usr/bin/env", arguments="-0", output_file=str(tmp_path / "out"), environment=VALUES)
    assert job.environment is not None
    job.environment.attributes = {"export": export}
    findings = Findings("job.xml")
    text = get(name).write(Document(job), WriteContext(findings, policy=Policy.WARN))
    assert {f.rule for f in findings} <= {"SSS502"}
    out = dict(line.split("=", 1) for line in printed(folder, command, text, tmp_path).split("\0") if "=" in line)
    assert {key: out.get(key) for key in VALUES} == VALUES


GRID = """\
#!/bin/bash
# where it starts
#$ -cwd
#$ -S /bin/bash
#$ -N bodies   # what it is called
#$ {more}
#$ {streams}
#$ -o {out}

pwd
case $JOB_ID in *[!0-9]* | '') echo no number ;; *) echo a number ;; esac
echo "$JOB_NAME $((NSLOTS * 2)) $NHOSTS ${{REQUEST}}"
echo "$SGE_TASK_ID $SGE_TASK_FIRST $SGE_TASK_LAST $SGE_TASK_STEPSIZE"
echo "$SGE_O_LOGNAME $SGE_O_HOME $SGE_O_WORKDIR"
echo "an error of $JOB_NAME" >&2
"""


@pytest.mark.parametrize("body", ["shim", "translate"])
@pytest.mark.parametrize("streams", ["-j y", "-e {out}.err"], ids=["joined", "apart"])
@pytest.mark.parametrize("more", ["-pe smp 3", "-t 3-7:2"], ids=["slots", "array"])
def test_a_job_of_grid_engine_prints_the_same(more: str, streams: str, body: str, tmp_path: Path) -> None:
    """Variables and streams, one file for both or one each, for every element of an array."""
    slurm, sge = lab("slurm"), lab("sge")
    out = str(tmp_path / ("out.$TASK_ID" if "-t" in more else "out"))
    text = GRID.format(more=more, out=out, streams=streams.format(out=out))
    if "-t" in more:
        text = text.replace("$NHOSTS", "")
    else:                       # "undefined" there, which only a shim says
        text = "".join(line for line in text.splitlines(True) if "TASK_ID" not in line)
    findings = Findings("job.sh")
    script = get("slurm").write(get("sge").read(text.encode(), ReadContext("job.sh", findings)),
                                WriteContext(findings, options={"body": body}))
    assert script.index("# where it starts") < script.index("#SBATCH") and "  # what it is called" in script
    assert not {f.rule for f in findings} & {"SSS510", "SSS511", "SSS514", "SSS516"}
    original = printed(sge, "LOGNAME=$(id -un) qsub -sync y", text, tmp_path)       # SGE_O_LOGNAME is the submitter's
    assert original.count("an error of bodies") == (3 if "-t" in more else 1)
    assert printed(slurm, "sbatch --wait", script, tmp_path) == original


DRIVER = """\
#!/bin/bash
ID=$(sbatch --parsable first.sh)
NAME=second
sbatch --dependency=afterany:$ID -J "$NAME" --time=2 next.sh one 'two  words'
"""


def test_a_driver_submits_to_the_other_manager(tmp_path: Path) -> None:
    """The jobs of a script that drives others run in the same order, with the same names and arguments."""
    slurm, sge = lab("slurm"), lab("sge")
    scripts = {"first.sh": "#!/bin/bash\n#SBATCH -o /dev/null\ncd {place}\necho \"$SLURM_JOB_NAME\" > first\n",
               "next.sh": "#!/bin/bash\n#SBATCH -o /dev/null\ncd {place}\n"
                          "{{ cat first; echo \"$SLURM_JOB_NAME\"; printf '<%s>' \"$@\"; }} > part && mv part done\n"}
    printed_by: dict[str, str] = {}
    for name, folder in (("slurm", slurm), ("sge", sge)):
        place = tmp_path / name
        place.mkdir()
        for file, text in (*scripts.items(), ("driver.sh", DRIVER)):
            document = get("slurm").read(text.format(place=place).encode() if file != "driver.sh" else text.encode(),
                                         ReadContext(file, Findings(file)))
            findings = Findings(file)
            script = get(name).write(document, WriteContext(findings, options={"body": "translate"}))
            (place / file).write_text(script)
            assert not [f for f in findings if f.rule == "SSS511"]
        subprocess.run(["/bin/bash", "-c", '. "$0/env.sh" && bash driver.sh', folder], cwd=place, check=True,
                       timeout=120, stdout=subprocess.DEVNULL)
        until = time.monotonic() + 240
        while not (place / "done").exists() and time.monotonic() < until:
            time.sleep(0.2)
        printed_by[name] = (place / "done").read_text()
    assert printed_by["slurm"] == printed_by["sge"] == "first.sh\nsecond\n<one><two  words>"
