"""Speed of scripts: conversions a second of one process, by dialect, one file from a cold start, and whole trees.

``python -m bench.scripts [--seconds S] [--files N] [--check]``. The script has a header of 20 directives, a third of
which do not carry over just so, so that findings are made as they are with real scripts; once with a body that is only
kept, once with one whose variables and commands are the manager's. Times are CPU time of this process; the cold start
and trees are wall-clock time of new ones.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from bench.run import Measure, wall
from sssjob.findings import Policy
from sssjob.translators import ReadContext, WriteContext, get
from sssjob.translators.registry import BUILT_IN

__all__ = ["SCRIPT", "main", "measures"]

SCRIPT: Final = b"""#!/bin/bash
#SBATCH --job-name=cfd
#SBATCH --account=phys
#SBATCH --partition=batch
#SBATCH --qos=normal
#SBATCH --time=01:30:00
#SBATCH --nodes=2
#SBATCH --ntasks=16
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=2
#SBATCH --mem=4G
#SBATCH --constraint=ib
#SBATCH --array=1-10
#SBATCH --dependency=afterok:11
#SBATCH --begin=2026-01-01T00:00:00
#SBATCH --requeue
#SBATCH --chdir=/scratch/x
#SBATCH --output=cfd.o%j
#SBATCH --error=cfd.e%j
#SBATCH --mail-type=FAIL,END
#SBATCH --mail-user=me@example.org

module load gcc
{body}"""
#: What runs in a job -> its last lines.
BODIES: Final = {"": b"mpirun ./a.out\n", ", variables in the body": b"cd $SLURM_SUBMIT_DIR\necho $SLURM_JOB_ID\n"
                 b"srun -n 4 ./a.out\n"}
#: Milliseconds: 2,000 scripts a second and core, of one process; with a body that has to be looked at; a cold start.
_BARS: Final = {"": 0.5, ", variables in the body": 0.8}
_COLD: Final = 250


def convert(text: bytes, source: str, target: str) -> str:
    """One script, as ``sssjob convert`` does it."""
    context = ReadContext("script.sh")
    document = get(source).read(text, context)
    return get(target).write(document, WriteContext(context.findings, policy=Policy.WARN))


def _each(run: Callable[[], object], seconds: float) -> float:
    """CPU milliseconds of one call, the best of five rounds."""
    run()
    best = float("inf")
    for _ in range(5):
        gc.collect()
        count, start = 0, time.process_time()
        while (spent := time.process_time() - start) < seconds / 5:
            for _ in range(20):
                run()
            count += 20
        best = min(best, spent / count)
    return best * 1000


def measures(seconds: float = 2.0, files: int = 4000) -> Iterator[Measure]:
    """Milliseconds of CPU a script; the cold start; a tree in one process and in one for each core."""
    for label, body in BODIES.items():
        text = SCRIPT.replace(b"{body}", body)
        for target in (name for name, module in BUILT_IN.items() if ".scripts." in module):
            spent = _each(lambda text=text, target=target: convert(text, "slurm", target), seconds)  # type: ignore[misc]
            yield Measure(f"slurm to {target}{label}", spent, _BARS[label], "ms", f"{1000 / spent:.0f} a second")
    text = SCRIPT.replace(b"{body}", BODIES[""])
    command = [sys.executable, "-m", "sssjob", "convert", "-q", "-f", "slurm", "-t", "pbspro"]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        tree.mkdir()
        for number in range(files):
            (tree / f"{number}.sh").write_bytes(text)
        yield Measure("sssjob convert of one file, cold", wall([*command, str(tree / "0.sh")], 7) * 1000, _COLD, "ms")
        cores = len(os.sched_getaffinity(0))
        command += [str(tree), "--out", str(Path(folder) / "out"), "--jobs"]
        one, all_of = (wall([*command, str(jobs)], 3) for jobs in (1, cores))
        yield Measure(f"a tree of {files} files", one / files * 1000, 1.0, "ms", f"{files / one:.0f} a second")
        if cores > 1:
            yield Measure(f"the same in {cores} processes, against one", all_of / one, 1.4 / cores)


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    options = argparse.ArgumentParser(prog="bench.scripts", description="conversions of scripts, CPU time")
    options.add_argument("--seconds", type=float, default=2.0, help="for each measure (default: 2)")
    options.add_argument("--check", action="store_true", help="exit status 1 when a bar is missed")
    options.add_argument("--files", type=int, default=4000, help="of the tree (default: 4000)")
    given = options.parse_args(arguments)
    missed = False
    print(f"{'measure':<52}{'value':>14}{'bar':>9}")
    for measure in measures(given.seconds, given.files):
        print(measure, flush=True)
        missed = missed or measure.missed
    return int(missed and given.check)


if __name__ == "__main__":
    sys.exit(main())
