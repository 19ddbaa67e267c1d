"""Memory and CPU time of commands on a JobGroup that is too large to be held: ``python -m bench.large --jobs 1000000``.

The document is that of ``bench.documents``. Each command runs in a process of its own; the exit status is 1 where one
takes more than the bar, or ends with a status that says that it failed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from bench.documents import write_group

_BAR: Final = 150       # MB that a command may take, whatever the number of jobs
_RATES: Final = Path(__file__).resolve().parent.parent / "examples" / "rates.toml"
_COMMANDS: Final = (
    ("check",), ("charge", "--rates", str(_RATES), "-o", os.devnull), ("quote", "--rates", str(_RATES)), ("account",),
    ("convert", "-t", "sss", "-o", os.devnull), ("convert", "-t", "sss-json", "-o", os.devnull),
    ("convert", "-t", "jsonl", "-o", os.devnull), ("convert", "-t", "csv", "-o", os.devnull), ("show", "--json"),
)


def measure(command: tuple[str, ...], path: Path) -> tuple[int, float, float]:
    """Exit status, CPU seconds and peak memory in MB of one command on a document."""
    child = subprocess.Popen([sys.executable, "-m", "sssjob", command[0], "-q", *command[1:], str(path)],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> int:
    """Measure all commands, or those whose words hold ``--only``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100_000, help="jobs of the document (default: 100,000)")
    parser.add_argument("--only", default="", help="commands whose words hold this")
    given = parser.parse_args()
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        path = write_group(Path(folder) / "group.xml", given.jobs)
        for command in _COMMANDS:
            shown = " ".join(word for word in command if "/" not in word)
            if given.only not in shown:
                continue
            status, seconds, peak = measure(command, path)
            missed += peak > _BAR or status < 0
            print(f"{shown:32} {seconds:8.1f} s {peak:8.0f} MB (bar {_BAR} MB), exit status {status}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
