"""What exchange costs: ``python -m bench.exchange [--rows N] [--repeat N] [--check]``.

CPU time of this process, best of several runs: queries over the rows of a journal; a message with jobs against the
document of the same jobs; and submissions at the desk of a server and over HTTP, whose jobs nobody starts, each durable
before it is acknowledged. What they take by the clock is that of the disk too.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final
from unittest import mock

from bench.run import Measure
from sssjob.run.journal import Journal, open_journal
from sssjob.run.rows import Row
from sssjob.serve import running
from sssjob.serve.access import Audit, Pace, User, Users
from sssjob.serve.counter import Workers
from sssjob.serve.desk import Desk, Order
from sssjob.serve.web import Server
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
_QUEUES: Final = ("batch", "debug", "long", "gpu")


def job_text(number: int) -> str:
    """A job, which differs from others as those of one group do: in its name, sizes, time, queue and environment."""
    return (f"<Job><Id>j{number}</Id><Name>step-{number % 97}</Name><User>amy</User><Executable>/bin/true</Executable>"
            f"<Arguments>--input /data/run-{number}.in</Arguments><Environment><Variable name='SEED'>{number * 7919}"
            f"</Variable><Variable name='OMP_NUM_THREADS'>{1 << number % 4}</Variable></Environment><Requested>"
            f"<Processors>{1 + number % 48}</Processors><Memory units='MB'>{512 * (1 + number % 31)}</Memory>"
            f"<Duration>{600 + 60 * (number % 180)}</Duration><Queue>{_QUEUES[number % 4]}</Queue></Requested></Job>")


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
    group = f"<JobGroup>{''.join(job_text(n) for n in range(1000))}</JobGroup>"
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


def submits(folder: Path, repeat: int, together: int) -> float:
    """Submissions a CPU second at the desk. together: so many come at once."""
    user, count = User("amy", frozenset({"submit"})), 128
    with mock.patch("sssjob.run.client.keep"):
        desk = Desk(folder / f"desk{together}.db", ("local",), folder)
        orders = [Order(user, job_text(n).encode()) for n in range(count)]
        least = seconds(lambda: [desk.enter(orders[n:n + together]) for n in range(0, count, together)], repeat)
        desk.close()
    return count / least


def served(folder: Path, clients: int, count: int) -> tuple[float, float]:
    """Submissions a second, by the clock and by the CPU time of the server, that are acknowledged over HTTP.

    Clients are in a process of their own, each with one connection, and ask again when they are answered.
    """
    token = "T" * 32
    users = Users({hashlib.sha256(token.encode()).hexdigest(): User("amy", frozenset({"submit"}))})
    workers = Workers(partial(Desk, folder / f"served{clients}.db", ("local",), folder))
    server = Server(workers, users, Audit(None), Pace(1e6, 1_000_000), Pace(1e6, 1_000_000), 3600.0)
    with mock.patch("sssjob.run.client.keep"), running.listener("127.0.0.1", 0, False) as listening:
        process = running.process_of(server, running.Listening(listening, None, clients + 10))
        thread = threading.Thread(target=process.run, kwargs={"sockets": [listening]})
        thread.start()
        port = str(listening.getsockname()[1])
        try:
            command = [sys.executable, "-m", "bench.exchange", "--client", port, token, str(clients)]
            subprocess.run([*command, str(2 * clients)], check=True, capture_output=True)     # it is warm then
            used = time.process_time()
            answer = subprocess.run([*command, str(count)], check=True, capture_output=True, text=True)
            used = time.process_time() - used
        finally:
            process.should_exit = True
            thread.join()
            workers.close()
    return count / float(answer.stdout), count / used


async def client(port: int, token: str, clients: int, count: int) -> float:
    """Submit a number of jobs over several connections; the seconds that it took."""
    rest = iter(range(count))

    async def one() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in rest:
            body = job_text(number).encode()
            writer.write(b"POST /v1/jobs HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nContent-Type: "
                         b"application/xml\r\nContent-Length: %d\r\n\r\n%s" % (token.encode(), len(body), body))
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: ([0-9]+)", head)
            assert head.startswith(b"HTTP/1.1 201 ") and length is not None, head
            await reader.readexactly(int(length[1]))
        writer.close()

    begun = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(clients)))
    return time.perf_counter() - begun


def main(arguments: list[str] | None = None) -> int:
    """The table; 1 with ``--check`` when a bar is missed."""
    parser = argparse.ArgumentParser(prog="bench.exchange")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--client", nargs=4, metavar="WORD", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.client:
        port, token, clients, count = options.client
        print(asyncio.run(client(int(port), token, int(clients), int(count))))
        return 0
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
        rates = [(f"at the desk, {number} at once, a CPU second", submits(folder, options.repeat, number))
                 for number in (1, 64)]
        for clients in (1, 8, 64):
            clock, used = served(folder, clients, 20 * clients + 200)
            rates += [(f"over HTTP, {clients} clients, a second of the clock", clock),
                      (f"over HTTP, {clients} clients, a CPU second of the server", used)]
    measures += [Measure(f"submissions {name}", 1000 / rate, 1000 / _SUBMITS, "ms") for name, rate in rates]
    for measure in measures:
        print(measure)
    return int(options.check and any(measure.missed for measure in measures))


if __name__ == "__main__":
    sys.exit(main())
