"""Speed of lint: ``sssjob lint`` of a folder of scripts that all differ, in one process, by CPU time.

``python -m bench.lint [--files N] [--check]``. The scripts are those of ``bench/headers.py``, each with names and
amounts of its own and half of them with a body that uses variables of its manager. What is measured is the CPU time of
a new ``sssjob`` less that for a folder with one file, the least of five rounds.
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
from random import Random
from typing import Final

from bench.headers import BODIES, HEADERS
from bench.run import Measure, report

__all__ = ["main", "measures", "scripts"]

#: Files a second.
_BAR: Final = 5_000
_PLAIN: Final = b"mpirun ./a.out\n"
_ROUNDS: Final = 5


def scripts(dialect: str, count: int, seed: int = 1) -> Iterator[bytes]:
    """Scripts of a dialect, of which no two have the same names, times and amounts."""
    random = Random(seed)
    bodies = _PLAIN, BODIES.get(dialect, _PLAIN)
    for number in range(count):
        own = b"%x" % random.getrandbits(28)
        text = HEADERS[dialect].replace(b"{body}", bodies[number % 2])
        for before, after in ((b"cfd", b"c" + own), (b"phys", b"p" + own), (b"/scratch/x", b"/scratch/" + own),
                              (b"me@", b"u" + own + b"@"), (b"01:30", b"%02d:%02d" % (random.randrange(1, 24),
                                                                                     random.randrange(60))),
                              (b"4G", b"%dG" % random.randrange(1, 500)), (b"11", b"%d" % random.randrange(1, 10**6))):
            text = text.replace(before, after)
        yield text


def measures(files: int = 4000) -> Iterator[Measure]:
    """Milliseconds of CPU a file: of Slurm, and of all dialects mixed, each recognised by what stands in it."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        for title, dialects in (("Slurm", ["slurm"]), ("all dialects", list(HEADERS))):
            one, all_ = Path(folder) / f"{title}-1", Path(folder) / title
            for place, count in ((one, 1), (all_, files)):
                place.mkdir()
                sources = [scripts(dialect, count) for dialect in dialects]
                for number in range(count):
                    (place / f"{number}.sh").write_bytes(next(sources[number % len(sources)]))
            each = (_spent(all_) - _spent(one)) / (files - 1)
            yield Measure(f"lint of a file, {title}", each * 1000, 1000 / _BAR, "ms", f"{1 / each:.0f} a second")


def _spent(folder: Path) -> float:
    """CPU seconds of lint of a folder, the least of several rounds."""
    def once() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "sssjob", "lint", "-q", "--exit-zero", "--jobs", "1", str(folder)],
                       check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return min(once() for _ in range(_ROUNDS))


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    options = argparse.ArgumentParser(prog="bench.lint", description="lint of a folder, CPU time")
    options.add_argument("--files", type=int, default=4000, help="of the folder (default: 4000)")
    options.add_argument("--check", action="store_true", help="exit status 1 when a bar is missed")
    given = options.parse_args(arguments)
    return int(report(measures(given.files)) and given.check)


if __name__ == "__main__":
    sys.exit(main())
