"""The benchmark: every measure as a ratio to the floor, ``lxml.etree.parse`` of the same document in the same run.

``python -m bench.run [--jobs N] [--repeat N] [--check] [--only WORD]``. Times are CPU time of this process, best of
several runs. A measure whose part of sssjob is missing says so and misses its bar. With ``--check`` the exit status is
1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from lxml import etree

from bench.documents import LAYOUTS, job_documents, write_group

__all__ = ["Bench", "Measure", "main", "measures", "report", "wall"]

COLUMNS = ("Id", "User", "Project", "Queue", "State", "StartTime", "EndTime", "Charge", "Processors")
QUERIES = ("//Job[User='user7']/Id", "/JobGroup/Job/User", "count(//Job[Queue='debug'])", "sum(//Job/Charge)",
           "//Job[Requested/Processors > 16]/Id", "//Task/Node/text()")
MEMORY = """
import resource, sys
from pathlib import Path
from sssjob.xml.{module} import {function}
{before}
def peak():
    for line in open("/proc/self/status"):
        if line.startswith("VmHWM"):
            return int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = peak()
kept = {run}
print(start, peak())
"""


@dataclass(frozen=True, slots=True)
class Measure:
    """A line of the table; value None: not there (``note`` says what is missing)."""

    name: str
    value: float | None
    bar: float
    unit: str = "x"
    note: str = ""

    @property
    def missed(self) -> bool:
        """Whether the bar is missed; what is not there misses it too."""
        return self.value is None or self.value > self.bar

    def __str__(self) -> str:
        shown = "not there" if self.value is None else f"{self.value:.2f} {self.unit}"
        mark = "MISSED" if self.missed else "ok"
        return f"{self.name:<52}{shown:>14}{self.bar:>9.2f} {mark:<7}{self.note}"


@dataclass(slots=True)
class Bench:
    """The document, and how often each measure runs."""

    path: Path
    jobs: int
    repeat: int
    floor: float = 0.0

    def best(self, run: Callable[[], Any]) -> float:
        """CPU seconds, the best of several runs."""
        times = []
        for _ in range(self.repeat):
            gc.collect()
            start = time.process_time()
            made = run()
            times.append(time.process_time() - start)
            del made
        return min(times)

    def ratio(self, name: str, bar: float, run: Callable[[], Any]) -> Measure:
        """A measure against the floor."""
        return Measure(name, self.best(run) / self.floor, bar)


def _part(module: str, name: str) -> Any:
    """A function of sssjob; raises LookupError where it is not there."""
    try:
        return getattr(importlib.import_module(f"sssjob.{module}"), name)
    except (ImportError, AttributeError) as error:
        raise LookupError(f"sssjob.{module}.{name}") from error


def objects(bench: Bench) -> Iterator[Measure]:
    """Every field of every job as typed objects, all checks on."""
    read = _part("xml.reader", "read_document")
    for paused, bar in ((True, 4.0), (False, 5.5)):
        name = f"typed objects, collector {'paused' if paused else 'running'}"
        yield bench.ratio(name, bar, lambda p=paused: read(bench.path, pause_gc=p))  # type: ignore[misc]


def rows(bench: Bench) -> Iterator[Measure]:
    """Nine columns of accounting, as rows."""
    make = _part("xml.rows", "rows")
    yield bench.ratio("nine columns as rows", 1.9, lambda: list(make(bench.path, COLUMNS)))


def layouts(bench: Bench) -> Iterator[Measure]:
    """The same of jobs in other layouts, each against a tree of the same text; the slowest first."""
    read, columns = _part("xml.reader", "read_document"), _part("xml.rows", "rows")
    text = bench.path.read_text(encoding="utf-8")
    typed, tables = [], []
    for name, lay in LAYOUTS.items():
        data = lay(text).encode()
        floor = bench.best(lambda d=data: _bare(d))  # type: ignore[misc]
        whole = bench.best(lambda d=data: read(d, pause_gc=True))  # type: ignore[misc]
        typed.append(Measure(f"typed objects: {name}", whole / floor, 4.0))
        table = bench.best(lambda d=data: list(columns(d, COLUMNS)))  # type: ignore[misc]
        tables.append(Measure(f"nine columns: {name}", table / floor, 1.9 if name == "indented" else 2.5))
    for listed in (typed, tables):
        yield from sorted(listed, key=lambda measure: measure.value or 0, reverse=True)


def _bare(data: bytes) -> Any:
    """The bare tree, with the collector paused."""
    gc.disable()
    try:
        return etree.fromstring(data)
    finally:
        gc.enable()


def arrow(bench: Bench) -> Iterator[Measure]:
    """The same columns as an Arrow table."""
    make = _part("xml.rows", "arrow")
    yield bench.ratio("nine columns as Arrow", 2.3, lambda: make(bench.path, COLUMNS))


def writing(bench: Bench) -> Iterator[Measure]:
    """Writing the document that was read."""
    read, write = _part("xml.reader", "read_document"), _part("xml.writer", "write_document")
    document = read(bench.path, pause_gc=True)
    gc.freeze()
    yield bench.ratio("writing", 1.8, lambda: write(document))
    gc.unfreeze()


def validation(bench: Bench) -> Iterator[Measure]:
    """A parsed tree against the XSD."""
    validate = _part("xml.schema", "validate")
    tree = etree.parse(str(bench.path)).getroot()
    validate(etree.fromstring(b"<Job><Id>1</Id></Job>"))       # the schema is read once
    yield bench.ratio("validation of a parsed tree, XSD 1.0", 1.1, lambda: validate(tree))


def small(bench: Bench) -> Iterator[Measure]:
    """Many small documents one after another, none kept, against lxml.etree.fromstring of each."""
    read = _part("xml.reader", "read_document")
    texts = [t.encode() for t in islice(job_documents(10_000), min(bench.jobs, 10_000))]
    floor = bench.best(lambda: deque(map(etree.fromstring, texts), maxlen=0))
    whole = bench.best(lambda: deque(map(read, texts), maxlen=0))
    yield Measure(f"{len(texts)} small documents, against fromstring", whole / floor, 3.2)


def queries(bench: Bench) -> Iterator[Measure]:
    """XPath 1.0 against the same query of bare lxml on the same tree."""
    query = _part("query", "query")
    tree = etree.parse(str(bench.path)).getroot()
    for text in QUERIES:
        floor = bench.best(lambda t=text: tree.xpath(t))  # type: ignore[misc]
        found = bench.best(lambda t=text: query(t, tree))  # type: ignore[misc]
        yield Measure(f"query {text}", found / floor, 1.1)


def _memory(module: str, function: str, run: str, before: str = "") -> float:
    """Mebibytes that a fresh process grows by."""
    code = MEMORY.format(module=module, function=function, run=run, before=before)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    start, end = (int(n) for n in done.stdout.split())
    return (end - start) / 1024


def streaming(bench: Bench) -> Iterator[Measure]:
    """Memory of reading as a stream, for two sizes: it must not grow."""
    _part("xml.streaming", "stream_jobs")
    with tempfile.TemporaryDirectory() as folder:
        sizes = []
        for jobs in (bench.jobs // 4, bench.jobs):
            path = write_group(Path(folder) / "stream.xml", jobs)
            sizes.append(_memory("streaming", "stream_jobs", f"sum(1 for _ in stream_jobs(Path({str(path)!r})))"))
            yield Measure(f"streaming, {jobs} jobs", sizes[-1], 60, "MB")
        yield Measure("streaming, the larger against the smaller", sizes[1] / sizes[0], 1.25)


def kept(bench: Bench) -> Iterator[Measure]:
    """Memory of a job that is kept: jobs of a stream in a list."""
    _part("xml.streaming", "stream_jobs")
    run = f"list(stream_jobs(Path({str(bench.path)!r})))"
    yield Measure("memory of a job kept", _memory("streaming", "stream_jobs", run) * 1024 / bench.jobs, 5, "KiB")


def wall(command: list[str], repeat: int) -> float:
    """Seconds that a command takes, the best of several runs."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        subprocess.run(command, capture_output=True, check=True)
        times.append(time.perf_counter() - start)
    return min(times)


def start(bench: Bench) -> Iterator[Measure]:
    """``sssjob --version`` above the bare interpreter."""
    _part("cli", "main")
    repeat = max(5, bench.repeat)
    bare = wall([sys.executable, "-c", "pass"], repeat)
    whole = wall([sys.executable, "-m", "sssjob", "--version"], repeat)
    yield Measure("sssjob --version above the interpreter", (whole - bare) * 1000, 100, "ms")


def measures(bench: Bench, only: str = "") -> Iterator[Measure]:
    """All measures, one after another."""
    for part in (objects, rows, layouts, arrow, writing, validation, small, queries, streaming, kept, start):
        if only and only not in part.__name__:
            continue
        try:
            yield from part(bench)
        except LookupError as error:
            yield Measure(part.__name__, None, 0.0, note=f"needs {error.args[0]}")
        except Exception as error:
            yield Measure(part.__name__, None, 0.0, note=f"failed: {type(error).__name__}: {str(error)[:60]}")


def report(measures: Iterable[Measure]) -> bool:
    """Print a table of measures, each when it is there; whether one misses its bar."""
    print(f"{'measure':<52}{'value':>14}{'bar':>9}")
    missed = False
    for measure in measures:
        print(measure, flush=True)
        missed |= measure.missed
    return missed


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    options = argparse.ArgumentParser(prog="bench.run", description="ratios against lxml.etree.parse")
    options.add_argument("--jobs", type=int, default=100_000)
    options.add_argument("--repeat", type=int, default=3)
    options.add_argument("--only", default="", help="measures whose name holds this word")
    options.add_argument("--check", action="store_true", help="exit status 1 when a bar is missed")
    given = options.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(write_group(Path(folder) / "group.xml", given.jobs), given.jobs, given.repeat)
        bench.floor = bench.best(lambda: etree.parse(str(bench.path)))
        print(f"{given.jobs} jobs, {bench.path.stat().st_size / 1e6:.1f} MB; floor: lxml.etree.parse "
              f"{bench.floor:.3f} s CPU")
        missed = report(measures(bench, given.only))
    return int(missed and given.check)


if __name__ == "__main__":
    sys.exit(main())
