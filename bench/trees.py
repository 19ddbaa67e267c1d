"""Speed of whole trees: ``sssjob convert`` of a folder in one process and in several, by CPU time.

``python -m bench.trees [--files N] [--check]``. What is measured is the CPU time of a new ``sssjob`` and of all
processes that it starts, less that for an empty tree: how much faster several processes are on as many cores follows
from how much more all of them take than one. Trees lie in memory where there is a place for that (/dev/shm), and every
run writes into a new folder: to replace a file costs a file system more than to make one.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench.headers import HEADERS
from bench.run import Measure, report

__all__ = ["main", "measures"]

#: Milliseconds of CPU: the start, a file; how many times as fast two processes are on two cores.
_START, _FILE, _SCALE = 500, 1.0, 1.7
_MEMORY: Final = "/dev/shm"
_ROUNDS: Final = 5


def measures(files: int = 4000) -> Iterator[Measure]:
    """The start, a file in one process, and two processes against one."""
    text = HEADERS["slurm"].replace(b"{body}", b"mpirun ./a.out\n")
    with tempfile.TemporaryDirectory(dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None) as folder:
        for name, count in (("none", 0), ("tree", files)):
            (Path(folder) / name).mkdir()
            for number in range(count):
                (Path(folder) / name / f"{number}.sh").write_bytes(text)
        start, one, two = (min(_spent(Path(folder), tree, jobs) for _ in range(_ROUNDS))
                           for tree, jobs in (("none", 1), ("tree", 1), ("tree", 2)))
    yield Measure("a tree without a file, CPU", start * 1000, _START, "ms")
    each = (one - start) / files
    yield Measure(f"a file of a tree of {files}, CPU", each * 1000, _FILE, "ms", f"{1 / each:.0f} a second")
    scale = 2 * (one - start) / (two - start)
    yield Measure("two processes against one, of its time", 1 / scale, 1 / _SCALE, "x",
                  f"{scale:.2f} times as fast on two cores")


def _spent(folder: Path, tree: str, jobs: int) -> float:
    """CPU seconds of one conversion of a tree, all processes together."""
    with tempfile.TemporaryDirectory(dir=folder) as out:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "sssjob", "convert", "-q", "-f", "slurm", "-t", "pbspro",
                        str(folder / tree), "--out", f"{out}/out", "--jobs", str(jobs)], check=True,
                       stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    options = argparse.ArgumentParser(prog="bench.trees", description="conversion of whole trees, CPU time")
    options.add_argument("--files", type=int, default=4000, help="of the tree (default: 4000)")
    options.add_argument("--check", action="store_true", help="exit status 1 when a bar is missed")
    given = options.parse_args(arguments)
    return int(report(measures(given.files)) and given.check)


if __name__ == "__main__":
    sys.exit(main())
