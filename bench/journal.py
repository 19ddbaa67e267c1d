"""What a journal with many jobs costs: ``python -m bench.journal [--jobs N] [--check]``.

The jobs are those of submissions of a thousand, and all but the last submission have ended. Each command runs in a
process of its own; seconds are CPU time, interpreter and imports included. No document is read for a list.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from bench.run import Measure
from sssjob.run.journal import open_journal
from sssjob.run.rows import Row

__all__ = ["main"]

_BAR_S: Final = 0.5
_GROUP: Final = 1000            # jobs of a submission


def fill(path: Path, jobs: int) -> None:
    """Write a journal."""
    with open_journal(path) as journal:
        last = max(jobs // _GROUP, 1)
        for number in range(1, last + 1):
            word = None if number == last else "done"
            rows = [Row(0, n, f"s{number}j{n}", None, f"s{number}j{n}", state="Completed" if word else "Running",
                        outcome=word) for n in range(_GROUP)]
            jobs_text = "".join(f"<Job><Id>{row.id}</Id></Job>" for row in rows)
            entry = journal.add(f"{number:016x}", "slurm", f"<JobGroup>{jobs_text}</JobGroup>", path.parent, "Reject",
                                f"g{number}", rows)
            if word is not None:
                entry.flush(ended=True)


def _seconds(path: Path, *words: str) -> float:
    """CPU seconds of a command."""
    child = subprocess.Popen([sys.executable, "-m", "sssjob", *words], stdout=subprocess.DEVNULL,
                             env={**os.environ, "SSSJOB_JOURNAL": str(path)})
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"{words} ended with {child.returncode}")
    return usage.ru_utime + usage.ru_stime


def main(arguments: list[str] | None = None) -> int:
    """The table; 1 with ``--check`` when a bar is missed."""
    parser = argparse.ArgumentParser(prog="bench.journal")
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        fill(path, options.jobs)
        measure = Measure(f"list, of {options.jobs} jobs {_GROUP} open", min(
            _seconds(path, "list", "--offline") for _ in range(options.repeat)), _BAR_S, "s")
    print(measure)
    return int(measure.missed and options.check)


if __name__ == "__main__":
    sys.exit(main())
