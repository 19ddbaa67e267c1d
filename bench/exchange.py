"""What exchange costs: ``python -m bench.exchange [--rows N] [--repeat N] [--check]``.

CPU time of this process, best of several runs: queries over the rows of a journal; a message with jobs against the
document of the same jobs; and submissions at the desk of a server, whose jobs nobody starts, each durable before it is
acknowledged.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final
from unittest import mock

from bench.run import Measure
from sssjob.run.journal import Journal, Row, open_journal
from sssjob.serve.access import User
from sssjob.serve.desk import Desk
from sssjob.sssrmap import Data, Envelope, Object, Request, read_message, write_message
from sssjob.sssrmap.answering import answer
from sssjob.sssrmap.sentences import request_of
from sssjob.sssrmap.sources import JournalSource
from sssjob.xml.reader import read_document
from sssjob.xml.writer import write_document

__all__ = ["main"]

_QUERY_MS: Final = 100.0        # of 10,000 rows
_RATIO: Final = 1.5             # of a message to its document
_SUBMITS: Final = 500.0         # a second
_QUERIES: Final = ("Query Job Where State=Running Get Id,State",
                   "Query Job Where State=Running And Name~'name*' Get Sort(Id),State", "Query Job Get Id,State,Name")
_JOB: Final = ("<Job><Id>j{0}</Id><Name>name</Name><User>amy</User><Executable>/bin/true</Executable><Requested>"
               "<Processors>4</Processors><Memory units='MB'>512</Memory><Duration>3600</Duration></Requested></Job>")


def fill(journal: Journal, folder: Path, jobs: int) -> None:
    """A journal with submissions of a hundred jobs, of which a tenth runs."""
    for number in range(jobs // 100):
        rows = [Row(0, n, f"j{number}.{n}", f"name{n}", f"j{number}.{n}", executor="slurm",
                    state="Running" if n % 10 == 0 else "Idle") for n in range(100)]
        journal.add(f"t{number}", "slurm", "<JobGroup/>", folder, "Reject", None, rows)


def seconds(act: Callable[[], object], repeat: int) -> float:
    """CPU seconds of something, the least of several."""
    least = float("inf")
    for _ in range(repeat):
        before = time.process_time()
        act()
        least = min(least, time.process_time() - before)
    return least


def ratio(act: Callable[[], object], floor: Callable[[], object], repeat: int) -> float:
    """CPU time of something as a multiple of that of something else, in turns, the least of each."""
    pairs = [(seconds(act, 1), seconds(floor, 1)) for _ in range(2 * repeat)]
    return min(one for one, _ in pairs) / min(other for _, other in pairs)


def messages(repeat: int) -> list[Measure]:
    """A message with a thousand jobs, read and written, against the document."""
    group = f"<JobGroup>{''.join(_JOB.format(n) for n in range(1000))}</JobGroup>"
    document = read_document(group.encode())
    text = write_message(Envelope(Request("Submit", "amy", (Object("Job"), Data.of(document))))).encode()

    def read() -> None:
        data = read_message(text).request.data
        assert data is not None
        data.document()

    def write() -> None:
        write_message(Envelope(Request("Submit", "amy", (Object("Job"), Data.of(document)))))

    return [
        Measure("message read, to its document", ratio(read, lambda: read_document(group.encode()), repeat), _RATIO,
                "times"),
        Measure("message written, to its document", ratio(write, lambda: write_document(document), repeat), _RATIO,
                "times")]


def submits(folder: Path, repeat: int) -> float:
    """Submissions a CPU second."""
    user, count = User("amy", frozenset({"submit"})), 100
    with mock.patch("sssjob.run.client.keep"):
        desk = Desk(folder / "desk.db", ("local",), folder)
        least = seconds(lambda: [desk.submit(user, _JOB.format(n).encode()) for n in range(count)], repeat)
        desk.close()
    return count / least


def main(arguments: list[str] | None = None) -> int:
    """The table; 1 with ``--check`` when a bar is missed."""
    parser = argparse.ArgumentParser(prog="bench.exchange")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    measures: list[Measure] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with open_journal(folder / "journal.db") as journal:
            fill(journal, folder, options.rows)
            for text in _QUERIES:
                request = request_of(text, "amy")
                used = seconds(partial(answer, request, JournalSource(journal), now=int(time.time())), options.repeat)
                measures.append(Measure(f"{text}, {options.rows} rows", used * 1000, _QUERY_MS, "ms"))
        measures += messages(options.repeat)
        rate = submits(folder, options.repeat)
    for measure in measures:
        print(measure)
    print(f"submissions a CPU second: {rate:.0f} (bar {_SUBMITS:.0f}{', MISSED' if rate < _SUBMITS else ''})")
    return int(options.check and (rate < _SUBMITS or any(measure.missed for measure in measures)))


if __name__ == "__main__":
    sys.exit(main())
