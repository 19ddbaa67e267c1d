"""What each resource manager tells a job about itself, taken from what was recorded; and how it reaches other nodes.

Each row of ``ROWS`` says what its texts are: recorded on a running system, or constructed after a manual.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from psij import JobExecutor, JobSpec, ResourceSpecV1
from psij.executors.batch.lrm import LrmExecutor
from psij.surroundings import Told

HERE = Path(__file__).parent / "fixtures" / "told"
AD = 'Cpus = 4\nTotalCpus = 16.0\nMemory = 2048\nDisk = 1000000\nName = "slot1@n"\n'
R_BEGIN, R_END = 1795251063, 1795251363


@dataclass(frozen=True)
class Row:
    """environment: a recorded file of NAME=value, or variables. answers: what commands print."""

    executor: str
    evidence: str
    told: Mapping[str, int | str]
    environment: str | Mapping[str, str] = ""
    answers: Mapping[str, str | Path] = field(default_factory=dict)
    host: str = "head"


ROWS = [
    Row("slurm", "recorded of 22.05.8", {
        "native_id": "1", "processors": 1, "node_processors": 4, "memory_bytes": 100 << 20, "wall_seconds": 600,
        "start_time": 1795248551}, "slurm-environment.txt",
        {"scontrol": 'case "$2" in job) cat "$T/slurm-job.txt" ;; node) cat "$T/slurm-node.txt" ;; esac'}),
    Row("sge", "recorded of 8.1.9", {"native_id": "1", "processors": 2, "wall_seconds": 300}, "sge-environment.txt",
        {"qstat": f'cat "{HERE.parents[2] / "fixtures" / "gridengine-8.1.9" / "qstat-j.txt"}"'}),
    Row("pbs", "recorded of OpenPBS 23.06.06", {
        "native_id": "0.head", "wall_seconds": 300, "memory_bytes": 100 << 20, "start_time": 1795249471},
        "pbs-environment.txt", {"qstat": 'cat "$T/pbs-qstat-f.txt"'}),
    Row("pbs", "constructed: NCPUS is in the manual, and not in what was recorded", {
        "native_id": "7.s", "processors": 6}, {"PBS_JOBID": "7.s", "NCPUS": "6"}, {"qstat": "exit 153"}),
    Row("flux", "recorded of 0.88", {"start_time": R_BEGIN, "wall_seconds": R_END - R_BEGIN},
        {}, {"flux": 'case "$*" in "getattr jobid") echo 5 ;; "--parent job info 5 R") cat "$T/flux-R.json" ;; esac'}),
    Row("flux", "constructed: a job without a limit", {},
        {}, {"flux": """echo '{"execution": {"starttime": 0.0, "expiration": 0.0}}'"""}),
    Row("pbs_classic", "constructed after the source of pbs_mom", {
        "native_id": "7.s", "processors": 8, "wall_seconds": 3600},
        {"PBS_JOBID": "7.s", "PBS_NUM_PPN": "8", "PBS_WALLTIME": "3600"}),
    Row("lsf", "constructed after the manual", {"native_id": "12", "processors": 4},
        {"LSB_JOBID": "12", "LSB_MCPU_HOSTS": "launch 1 head.example.org 4 other 2"}),
    Row("cobalt", "constructed after the manual", {"native_id": "9", "start_time": 1000, "wall_seconds": 600},
        {"COBALT_JOBID": "9", "COBALT_STARTTIME": "1000", "COBALT_ENDTIME": "1600"}),
    Row("htcondor", "constructed after the source of the prototype that reads the machine ad", {
        "processors": 4, "node_processors": 16, "memory_bytes": 2 << 30, "scratch_bytes": 1000000 << 10},
        {"_CONDOR_MACHINE_AD": "ad"}, {"ad": AD}),
]


def executor(name: str) -> LrmExecutor:
    made = JobExecutor.get_instance(name)
    assert isinstance(made, LrmExecutor)
    return made


def command(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\nT={shlex.quote(str(HERE))}\n{text}\n")
    (folder / name).chmod(0o755)


def shell(text: str, folder: Path, environment: Mapping[str, str], *arguments: str) -> str:
    """What text prints for sh, with commands of the folder before others."""
    process = subprocess.run(["/bin/sh", "-c", text, "sh", *arguments], cwd=folder, capture_output=True, text=True,
                             check=True, env={"PATH": f"{folder}:/usr/bin:/bin", "TZ": "UTC", **environment})
    assert process.stderr == ""
    return process.stdout


def recorded(name: str, folder: Path) -> dict[str, str]:
    lines = (HERE / name).read_text().splitlines()
    pairs = dict(line.split("=", 1) for line in lines if "=" in line)
    (folder / "hosts").write_text("".join(f"{line}\n" for line in lines if "=" not in line))
    return pairs | {name: str(folder / "hosts") for name in ("PE_HOSTFILE", "PBS_NODEFILE") if name in pairs}


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.executor}: {row.evidence}" for row in ROWS])
def test_what_is_told(row: Row, tmp_path: Path) -> None:
    for name, text in row.answers.items():
        if name == "ad":
            (tmp_path / name).write_text(str(text))
        else:
            command(tmp_path, name, str(text))
    command(tmp_path, "uname", f"echo {row.host}")
    known = recorded(row.environment, tmp_path) if isinstance(row.environment, str) else row.environment
    told: Told = executor(row.executor)._TOLD
    words = [f'printf "%s=%s\\n" {name} "{word}"' for name, (word, _) in told.words.items()]
    said = dict(line.split("=", 1) for line in shell("\n".join([told.lines, *words]), tmp_path, known).splitlines())
    found = {name: text if name == "native_id" else int(text) * told.words[name][1]
             for name, text in said.items() if name == "native_id" or (text.isdigit() and int(text))}
    if row.executor == "sge":       # of ulimit, which is that of this process
        found = {name: value for name, value in found.items() if name not in ("cpu_seconds", "memory_bytes")}
    assert found == row.told


def test_every_executor_that_tells_has_a_row() -> None:
    names = ("slurm", "sge", "pbs", "pbs_classic", "lsf", "cobalt", "htcondor", "flux", "nqsv")
    assert {name for name in names if executor(name)._TOLD.words} == {row.executor for row in ROWS}


# Other nodes

#: executor -> (commands that stand in for its own, variables): each writes "host: words" to the log
LAUNCHERS: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "slurm": ({"srun": 'h=one; for w; do case $w in --het-group=1) h=two ;; esac; done\n'
                       'while case $1 in --*) : ;; *) false ;; esac; do shift; done; echo "$h: $*" >>log'},
              {"SLURM_HET_SIZE": "2", "SLURM_JOB_NUM_NODES": "1", "SLURM_JOB_NUM_NODES_HET_GROUP_1": "1"}),
    "sge": ({"qrsh": 'test "$1 $2" = "-inherit -nostdin" && h=$3 && shift 3 && echo "$h: $*" >>log'},
            {"PE_HOSTFILE": "hosts"}),
    "pbs": ({"pbsdsh": 'test "$1" = -- && shift && for h in one two; do echo "$h: $*" >>log; done'}, {}),
    "pbs_classic": ({"pbsdsh": 'test "$1" = -u && shift && for h in one two; do echo "$h: $*" >>log; done'}, {}),
    "lsf": ({"blaunch": 'test "$1 $2" = "-no-shell -z" && l=$3 && shift 3 &&\n'
                        'for h in $l; do echo "$h: $*" >>log; done'},
            {"LSB_DJOB_HOSTFILE": "hosts"}),
    "flux": ({"flux": 'test "$1 $2" = "exec --noinput" && shift 2 && for h in one two; do echo "$h: $*" >>log; done'},
             {}),
}


@pytest.mark.parametrize("name", LAUNCHERS)
def test_a_command_on_every_node(name: str, tmp_path: Path) -> None:
    commands, variables = LAUNCHERS[name]
    for one, text in commands.items():
        command(tmp_path, one, text)
    (tmp_path / "hosts").write_text("one 2 q UNDEFINED\ntwo 2 q UNDEFINED\n" if name == "sge" else "two\none\none\n")
    shell(executor(name)._TOLD.each_node, tmp_path, variables, "/bin/sh", "file.mjf", "make", "/tmp/mjf-1")
    first = [] if name == "sge" else ["one: /bin/sh file.mjf make /tmp/mjf-1"]      # its own has made the first one
    assert sorted((tmp_path / "log").read_text().splitlines()) == [*first, "two: /bin/sh file.mjf make /tmp/mjf-1"]


def test_where_nothing_can_it_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    from psij import Job
    from sssjob.mjf import provider

    provider._tell_once.cache_clear()
    spread = Job(JobSpec("true", resources=ResourceSpecV1(node_count=2, processes_per_node=1)))
    for name in ("cobalt", "cobalt", "htcondor", "slurm"):
        spread._candidate = executor(name)
        provider.Provider().around(spread, executor(name)._told(spread.spec or JobSpec("true")))
    assert [r.getMessage().split()[0] for r in caplog.records] == ["CobaltJobExecutor", "HTCondorJobExecutor"]
    page = (Path(__file__).parents[2] / "docs" / "mjf.md").read_text()
    assert all(f"`{name}`" in page.partition("Jobs of several nodes")[2].partition("\n\n")[0]
               for name in ("cobalt", "htcondor", "nqsv", *LAUNCHERS))


def test_nothing_waits_for_other_nodes_for_ever(tmp_path: Path) -> None:
    """What reaches other nodes hangs: the job goes on without them."""
    from psij import Job
    from sssjob.mjf import script
    from sssjob.mjf.provider import Provider

    spread = Job(JobSpec("true", resources=ResourceSpecV1(node_count=2, processes_per_node=1)))
    before, script._EACH_S = script._EACH_S, 1      # type: ignore[misc]
    try:
        around = Provider(root=str(tmp_path)).around(spread, Told("", {}, "sleep 600"))
    finally:
        script._EACH_S = before                     # type: ignore[misc]
    text = f"_psij_files={tmp_path}/7\n{around.before}\ncat $JOBFEATURES/jobstart_secs\n{around.after}"
    process = subprocess.run(["/bin/bash", "-c", text], capture_output=True, text=True, timeout=120,
                             env={"PATH": os.environ["PATH"]})
    assert process.stdout.strip().isdigit() and list(tmp_path.iterdir()) == []
