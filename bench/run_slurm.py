"""What submitting a group costs on top of the submit commands themselves, on a real Slurm; and a soak on the stand-in.

``python -m bench.run_slurm [--jobs N] [--repeat N] [--commands N] [--check]`` needs a lab
(``SSSJOB_LAB_SLURM`` names the directory of its ``env.sh``, docs/labs.md); without one it says so and measures nothing.
The jobs are held and cancelled afterwards. No two of them ask for the same: arguments, variables, memory, time limits,
names and projects differ.

Ours and the bare commands take turns: these submit the scripts that ours has left, one after another in the same
process. What ours takes more is told as a part of what the bare commands take, of several rounds the least: CPU time of
this process against that of this process and of the commands that it started, and wall time against wall time, which
says little on a busy machine, where nothing can be done while a command runs. The bare commands run one after another;
of ours two run at a time, or as many as ``--commands`` says (the setting submit_commands). An array of as many elements
is submitted by one command; its whole time is told in parts of that of as many commands.

``python -m bench.run_slurm --soak N`` runs N short jobs on the stand-in and prints memory, threads and descriptors on
the way; status 1 where one of them has grown.
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, NamedTuple

from bench.run import Measure, report
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig
from psij.executors.batch.slurm import SlurmJobExecutor
from sssjob.run.client import Client
from sssjob.run.journal import Entry, open_journal
from sssjob.users import user_name
from sssjob.xml.reader import read_document

__all__ = ["main", "measures", "soak"]

BAR = 0.10          # of the time of the commands
_JOB = "<Job><Id>j{}</Id><Environment export='true'/><Executable>/bin/true</Executable>{}</Job>"
_DIFFERENT = """<Job><Id>j{n}</Id><Name>case-{n}</Name><Project>{project}</Project>
<Executable>/bin/echo</Executable><Arguments>--case {n} --of '{of} cases'</Arguments>
<Environment export='true'><Variable name='CASE'>{n}</Variable><Variable name='SEED'>{seed}</Variable></Environment>
<OutputFile>case-{n}.out</OutputFile><Hold>User</Hold>
<Requested><Processors>{processors}</Processors><Memory units='MB'>{memory}</Memory><Duration>{seconds}</Duration>
</Requested></Job>"""
_GROWTH_KB = 1.0    # a finished job may leave behind: its row, its outcome, its facts in the document
_EVERY = 1000


def enter(folder: str) -> None:
    """Take over the environment of a lab."""
    shown = subprocess.run(["/bin/bash", "-c", '. "$0/env.sh" && env -0', folder], stdout=subprocess.PIPE, check=True)
    for variable in shown.stdout.decode().split("\0")[:-1]:
        key, _, value = variable.partition("=")
        if key not in ("_", "PWD", "SHLVL", "OLDPWD"):
            os.environ[key] = value


def _group(jobs: int) -> str:
    """Jobs of which each asks for something else."""
    return "".join(_DIFFERENT.format(n=n, of=jobs, project=("physics", "chem")[n % 2], seed=7919 * n % 10_007,
                                     processors=1 + n % 4, memory=50 + n, seconds=300 + 60 * (n % 17))
                   for n in range(jobs))


def _array(jobs: int) -> str:
    return _JOB.format("", f"<Hold>User</Hold><Extension type='Scheduler' name='Array'>1-{jobs}</Extension>")


def _submit(text: str, jobs: int, folder: Path, commands: int = 2) -> tuple[float, float, Path, list[str]]:
    """Wall and CPU seconds of a submission, where its scripts are, and native ids."""
    document = read_document(f"<JobGroup><Id>g</Id>{text}</JobGroup>".encode())
    config = BatchSchedulerExecutorConfig(
        work_directory=folder / "work", queue_polling_interval=600, initial_queue_polling_delay=600, keep_files=True,
        submit_commands=commands)
    with open_journal(folder / "journal.db") as journal:
        client = Client(journal, config=config)
        wall, cpu = time.perf_counter(), time.process_time()
        submission = client.submit(document, "slurm", cwd=folder)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    assert submission is not None, [str(f) for f in client.findings]
    ids = [str(job.row.native_id) for job in submission.jobs]
    assert len(set(ids)) == jobs and "None" not in ids
    return wall, cpu, folder / "work" / "slurm", ids


def _bare(folder: Path) -> tuple[float, float, float, list[str]]:
    """Wall seconds, CPU seconds of this process and of its commands, of the bare commands, one after another, on the
    scripts that ours left; and native ids."""
    scripts = sorted(folder.glob("*.job"))
    children, wall, cpu, ids = _of_children(), time.perf_counter(), time.process_time(), []
    for script in scripts:
        done = subprocess.run(["sbatch", "--parsable", str(script)], capture_output=True, text=True, check=True)
        ids.append(done.stdout.strip())
    return time.perf_counter() - wall, time.process_time() - cpu, _of_children() - children, ids


def _of_children() -> float:
    """CPU seconds of the commands that this process has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class _Round(NamedTuple):
    """Of one round, in seconds a job: what ours takes more, what the bare commands take, and what an array takes."""

    wall: float
    cpu: float
    bare_wall: float
    bare_cpu: float
    array_wall: float
    array_cpu: float


def _round(jobs: int, folder: Path, commands: int) -> _Round:
    wall, cpu, scripts, ids = _submit(_group(jobs), jobs, folder, commands)
    bare, bare_cpu, command_cpu, more = _bare(scripts)
    assert len(more) == jobs
    for start in range(0, 2 * jobs, 500):
        subprocess.run(["scancel", *[*ids, *more][start:start + 500]], check=False)
    (folder / "array").mkdir()
    whole, whole_cpu, one, ids = _submit(_array(jobs), jobs, folder / "array")
    assert len(list(one.glob("*.job"))) == 1
    subprocess.run(["scancel", ids[0].partition("_")[0]], check=False)
    return _Round(*(seconds / jobs for seconds in (
        wall - bare, cpu - bare_cpu, bare, bare_cpu + command_cpu, whole, whole_cpu)))


def measures(jobs: int, repeat: int, commands: int) -> Iterator[Measure]:
    """The cost of a submission in parts of that of its commands."""
    rounds = []
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as name:
            os.chdir(name)
            gc.collect()
            rounds.append(_round(jobs, Path(name), commands))
            os.chdir("/")
    best = min(rounds, key=lambda one: one.cpu / one.bare_cpu)
    yield Measure(f"{jobs} different jobs, our CPU time of sbatch's", best.cpu / best.bare_cpu, BAR,
                  note=f"{best.cpu * 1000:.2f} ms a job beside {best.bare_cpu * 1000:.2f} of a bare sbatch")
    best = min(rounds, key=lambda one: one.wall / one.bare_wall)
    yield Measure(f"{jobs} different jobs, our wall time of sbatch's", best.wall / best.bare_wall, BAR,
                  note=f"{best.bare_wall * 1000:.1f} ms a bare sbatch")
    yield Measure(f"an array of {jobs}, its CPU time of as many sbatch's",
                  min(one.array_cpu / one.bare_cpu for one in rounds), BAR, note="one sbatch")
    yield Measure(f"an array of {jobs}, its wall time of as many sbatch's",
                  min(one.array_wall / one.bare_wall for one in rounds), BAR)


# --- the soak -----------------------------------------------------------------------------------------------------

class _Instant(SlurmJobExecutor):
    """Slurm whose commands are answered from memory: each job has ended by the next question."""

    number = 0
    submitted: ClassVar[dict[str, tuple[str, int]]] = {}      # by native id: the script, and when

    def _run_submit(self, command: list[str]) -> str:
        type(self).number += 1
        self.submitted[str(self.number)] = command[-1], int(time.time())
        return f"{self.number}\n"

    def _run_command(self, cmd: list[str]) -> str:
        if "squeue" in cmd:
            return "JOBID|STATE|REASON|SUBMIT_TIME|START_TIME|END_TIME|CPUS|NODES|NODELIST|PARTITION|QOS\n"
        if "sacct" in cmd:
            fields = cmd[cmd.index("-o") + 1].split(",")
            wanted = cmd[cmd.index("-j") + 1].split(",")
            rows = ("|".join(_record(one, fields, *self.submitted[one])) for one in wanted)
            return "\n".join(["|".join(fields), *rows, ""])
        return ""


class _InstantClient(Client):
    """A client of that Slurm."""

    instant: ClassVar[_Instant]

    def backend(self, entry: Entry) -> _Instant:
        """That of all submissions."""
        return self.instant


def _record(native_id: str, fields: list[str], script: str, submitted: int) -> Iterator[str]:
    known = {"JobID": native_id, "State": "COMPLETED", "ExitCode": "0:0", "Submit": str(submitted),
             "Start": str(submitted), "End": str(submitted + 1), "ElapsedRaw": "1", "NCPUS": "1", "NNodes": "1",
             "NodeList": "node1", "TotalCPU": "00:00.010", "Suspended": "00:00:00", "Partition": "batch",
             "User": user_name(), "UID": str(os.getuid()), "SubmitLine": f"sbatch --parsable {script}"}
    return (known.get(field, "") for field in fields)


def _standing() -> tuple[int, int, int]:
    """Kilobytes of memory in use, threads, descriptors."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024, threading.active_count(), len(os.listdir("/proc/self/fd"))


def soak(jobs: int) -> int:
    """Groups of a thousand short jobs, one after another; 1 where something grows with their number."""
    seen = []
    with tempfile.TemporaryDirectory() as name:
        config = BatchSchedulerExecutorConfig(work_directory=Path(name) / "work", queue_polling_interval=0.2,
                                              initial_queue_polling_delay=0.05, accounting_delay=1)
        _InstantClient.instant = _Instant(config=config)
        with open_journal(Path(name) / "journal.db") as journal:
            for start in range(0, jobs, _EVERY):
                text = "".join(_JOB.format(n, "") for n in range(start, min(start + _EVERY, jobs)))
                client = _InstantClient(journal, config=config)
                made = client.submit(read_document(f"<JobGroup><Id>g{start}</Id>{text}</JobGroup>".encode()), "slurm",
                                     cwd=Path(name))
                assert made is not None
                ended, _ = client.wait([f"g{start}"], 600)
                assert {job.word for job in ended} == {"done"}, [job.outcome for job in ended if job.word != "done"][:1]
                del made, ended, client
                seen.append(_standing())
                kilobytes, threads, descriptors = seen[-1]
                print(f"after {start + _EVERY} jobs: {kilobytes} KB, {threads} threads, {descriptors} descriptors",
                      flush=True)
    first, last = seen[min(2, len(seen) - 1)], seen[-1]
    grown = (last[0] - first[0]) / max(jobs - 3 * _EVERY, 1)
    print(f"{grown:.3f} KB a job")
    return int(grown > _GROWTH_KB or last[1] > first[1] + 2 or last[2] > first[2] + 2)


def main(arguments: list[str] | None = None) -> int:
    """The table; 1 with ``--check`` when a bar is missed."""
    parser = argparse.ArgumentParser(prog="bench.run_slurm")
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--commands", type=int, default=2)
    parser.add_argument("--soak", type=int, metavar="N")
    options = parser.parse_args(arguments)
    if options.soak:
        return soak(options.soak)
    folder = os.environ.get("SSSJOB_LAB_SLURM")
    if folder is None:
        print("submitting to Slurm: skipped, SSSJOB_LAB_SLURM names no lab (docs/labs.md)")
        return 0
    enter(folder)
    missed = report(measures(options.jobs, options.repeat, options.commands))
    return int(missed and options.check)


if __name__ == "__main__":
    sys.exit(main())
