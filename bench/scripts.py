"""Speed of scripts: conversions a second of one process, every dialect into every other; one file from a cold start;
whole trees.

``python -m bench.scripts [--seconds S] [--files N] [--from NAME ...] [--check]``. The scripts (``bench/headers.py``)
have 20 directives; once with a body that is only kept, once with one whose variables and commands are the manager's.
Times are CPU time of this process, the best of five rounds; the cold start is wall-clock time of a new one. Trees:
``bench/trees.py``.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from bench.headers import BODIES, HEADERS
from bench.run import Measure, report, wall
from bench.trees import measures as trees
from sssjob.conversion.intake import gate
from sssjob.findings import Policy
from sssjob.translators import ReadContext, WriteContext, get

__all__ = ["each", "main", "pairs", "processes"]

_PLAIN: Final = b"mpirun ./a.out\n"
#: Milliseconds: 2,000 scripts a second and core, of one process; with a body that has to be looked at; a cold start.
_BAR, _BODY_BAR, _COLD = 0.5, 0.8, 250


def convert(text: bytes, source: str, target: str) -> str:
    """One script, as ``sssjob convert`` does it."""
    context = ReadContext("script.sh")
    document = get(source).read(text, context)
    assert not gate(document).rejected
    return get(target).write(document, WriteContext(context.findings, policy=Policy.WARN))


def each(run: Callable[[], object], seconds: float) -> float:
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


def pairs(sources: Sequence[str], seconds: float, *, variables: bool) -> Iterator[Measure]:
    """Milliseconds of CPU a script, source by source. variables: the body uses those of the manager (HTCondor's
    description has no body)."""
    for source in sources:
        if variables and source not in BODIES:
            continue
        text = HEADERS[source].replace(b"{body}", BODIES[source] if variables else _PLAIN)
        for target in HEADERS:
            spent = each(lambda text=text, source=source, target=target: convert(  # type: ignore[misc]
                text, source, target), seconds)
            yield Measure(f"{source} to {target}", spent, _BODY_BAR if variables else _BAR, "ms")


def processes(files: int) -> Iterator[Measure]:
    """The cold start; a tree in one process and in two."""
    text = HEADERS["slurm"].replace(b"{body}", _PLAIN)
    command = [sys.executable, "-m", "sssjob", "convert", "-q", "-f", "slurm", "-t", "pbspro"]
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "a.sh"
        script.write_bytes(text)
        yield Measure("sssjob convert of one file, cold", wall([*command, str(script)], 7) * 1000, _COLD, "ms")
    yield from trees(files)


def _table(title: str, measures: Iterator[Measure]) -> bool:
    """Print conversions a second, a line for each source, ``!`` where the bar is missed; whether one is."""
    print(f"\n{title}, conversions a second" + "".join(f"\n{'':<9}" + "".join(f"{name:>10}" for name in HEADERS)))
    missed, source = False, ""
    for measure in measures:
        assert measure.value is not None
        first = measure.name.split()[0]
        print(("\n" if source else "") + f"{first:<9}" if first != source else "",
              f"{1000 / measure.value:>8.0f}{'!' if measure.missed else ' '}", end="", flush=True)
        missed, source = missed or measure.missed, first
    print()
    return missed


def main(arguments: list[str] | None = None) -> int:
    """Print the tables."""
    options = argparse.ArgumentParser(prog="bench.scripts", description="conversions of scripts, CPU time")
    options.add_argument("--seconds", type=float, default=0.5, help="for each pair (default: 0.5)")
    options.add_argument("--from", dest="sources", nargs="+", choices=list(HEADERS), default=list(HEADERS),
                         help="dialects that are read (default: all)")
    options.add_argument("--check", action="store_true", help="exit status 1 when a bar is missed")
    options.add_argument("--files", type=int, default=4000, help="of the tree (default: 4000; 0: no processes)")
    given = options.parse_args(arguments)
    missed = _table("plain bodies", pairs(given.sources, given.seconds, variables=False))
    missed |= _table("variables of the manager in the body", pairs(given.sources, given.seconds, variables=True))
    if given.files:
        print()
        missed |= report(processes(given.files))
    return int(missed and given.check)


if __name__ == "__main__":
    sys.exit(main())
