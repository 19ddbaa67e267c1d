"""Speed of what is asked for: the Request of a plain job, its totals, whether an offer meets it, what it costs, the
checks of meaning, writing; ``sssjob explain``, ``match``, ``show`` and ``check`` of one file from a cold start.

``python -m bench.request [--seconds S] [--cold N] [--check] [--only WORD]``. Microseconds are CPU time of this process,
the best of five rounds; the cold starts are CPU time (user and system) of a new process, the best of N.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import Final

from bench.documents import job_documents
from bench.run import Measure
from bench.scripts import each
from sssjob.accounting.pricing import Charge, quote
from sssjob.accounting.rates import read_rates
from sssjob.conversion.intake import gate
from sssjob.findings import Findings
from sssjob.request import Offer, Offers, match, request_of, verdicts
from sssjob.translators import ReadContext, get
from sssjob.validation import check
from sssjob.xml.reader import read_document
from sssjob.xml.writer import write_document

__all__ = ["main", "measures"]

_ASKED: Final = ("<Processors>8</Processors><Memory units=\"MB\">512</Memory><Duration>3600</Duration>"
                 "<Partition>batch</Partition>")
_JOB: Final = ("<Job><Id>1</Id><Name>plain</Name><User>amy</User><Executable>/bin/true</Executable>"
               f"<InitialWorkingDirectory>/home/amy</InitialWorkingDirectory><Requested>{_ASKED}</Requested></Job>")
#: The same as a person says it, and a job whose totals have to be worked out.
_BARE: Final = f"<Job><Id>1</Id><User>amy</User><Executable>/bin/true</Executable>{_ASKED}</Job>"
_GROUP: Final = ("<Job><Id>1</Id><Executable>/bin/true</Executable><Duration>3600</Duration><TaskGroup><TaskCount>8"
                 "</TaskCount><TaskDistribution type=\"TasksPerNode\">2</TaskDistribution><Requested>"
                 "<Memory units=\"GB\" metric=\"PerNode\">4</Memory></Requested></TaskGroup></Job>")
_RATES: Final = Path(__file__).parent.parent / "examples" / "rates.toml"
_START: Final = 1_700_000_000   # its rates go by the time of day
_OFFER: Final = f"<Job><Id>offer</Id><Delivered>{_ASKED}</Delivered></Job>"
#: Milliseconds.
_COLD: Final = 250
_SMALL: Final = 200     # generated documents, half of them elaborate


def warm(seconds: float) -> Iterator[Measure]:
    """Microseconds of one call, in this process."""
    document, offered = (read_document(text.encode()) for text in (_JOB, _OFFER))
    job, offer = next(document.jobs())[0], next(offered.jobs())[0]
    block, given = next(job.containers("Requested")), next(offer.containers("Delivered"))
    assert match(job, offer).met
    many = [read_document(text.encode()) for text in islice(job_documents(_SMALL), _SMALL)]

    bare, group = (next(read_document(text.encode()).jobs())[0] for text in (_BARE, _GROUP))
    rates = read_rates(_RATES.read_bytes(), str(_RATES))
    assert all(isinstance(quote(one, rates, start=_START), Charge) for one in (bare, group))

    def all_checked() -> None:
        for one in many:
            check(one, Findings())

    def all_written() -> None:
        for one in many:
            write_document(one)

    for name, bar, times, run in (
            ("Request of a plain job", 60, 1, lambda: request_of(job)),
            ("the same with its totals", 200, 1, lambda: request_of(job).totals),
            ("match of a Requested and what was offered", 60, 1, lambda: match(block, given)),
            ("match of a job and an offer", 120, 1, lambda: match(job, offer)),
            ("the gate, a plain job", 60, 1, lambda: gate(document)),
            ("checks of meaning, half of the jobs elaborate", 180, len(many), all_checked),
            ("quote of a job that asks for single amounts", 200, 1, lambda: quote(bare, rates, start=_START)),
            ("quote of a job with a task group", 500, 1, lambda: quote(group, rates, start=_START)),
            ("writing a plain job", 25, 1, lambda: write_document(document)),
            ("writing, half of the jobs elaborate", 60, len(many), all_written)):
        yield Measure(name, each(run, seconds) * 1000 / times, bar, "us")


def sites(seconds: float) -> Iterator[Measure]:
    """Milliseconds that the offers of sites cost: 5,000 queues held against one job, documents of many kinds held
    against 20 sites, and the nodes of a large Slurm."""
    random = Random(1)
    job = next(read_document(_JOB.encode()).jobs())[0]
    queues = [_queue(random, site, number) for site in range(100) for number in range(50)]
    offers = Offers(queues)
    few = Offers(_queue(random, site, number) for site in range(20) for number in range(10))
    verdicts(job, offers)           # what they have in common is worked out once
    jobs = [next(read_document(text.encode()).jobs())[0] for text in islice(job_documents(_SMALL), _SMALL)]
    durations = iter(range(1, 1 << 30))

    def new_request() -> None:
        asked = _JOB.replace("3600", str(next(durations))).replace(">512<", f">{random.randrange(10**6)}<")
        verdicts(next(read_document(asked.encode()).jobs())[0], offers)

    def documents() -> None:
        for one in jobs:
            verdicts(one, few)

    yield Measure("one document, 100 sites with 50 queues", each(new_request, seconds), 50, "ms")
    yield Measure("the same, offers that nobody has asked before", each(lambda: verdicts(job, Offers(queues)), seconds),
                  50, "ms")
    yield Measure("a document, 20 sites with 10 queues", each(documents, seconds) / len(jobs), 1, "ms")
    nodes = [{"name": f"n{number:05}", "partitions": ["batch", "long"], "cpus": 8 << number % 3, "real_memory": 16000,
              "features": ["ib"], "state": ["IDLE"], "gres": "gpu:a100:4(S:0-1)"} for number in range(10_000)]
    answer = json.dumps({"nodes": nodes, "meta": {}}).encode()

    def read_offers() -> float:
        begin = time.process_time()
        get("sinfo-json").read(answer, ReadContext())
        return time.process_time() - begin

    yield Measure("offers of 10,000 nodes of Slurm", min(read_offers() for _ in range(3)) * 1000, 1000, "ms")


def _queue(random: Random, site: int, number: int) -> Offer:
    """The offer of a queue, of which hardly two are alike."""
    nodes, processors = random.randint(1, 2000), random.choice((32, 48, 64, 128))
    text = (f"<Job><Machine>m{site}</Machine><Queue>q{number}.{site % 7}</Queue><Partition>batch</Partition><NodeCount>"
            f"{nodes}</NodeCount><Processors>{nodes * processors}</Processors><Memory units=\"MB\" metric=\"PerNode\">"
            f"{random.choice((64_000, 128_000, 192_000, 515_000))}</Memory><Duration>{3600 * random.randint(1, 72)}"
            f"</Duration><Feature>{random.choice('abcdefgh')}</Feature></Job>")
    return Offer.of(next(read_document(text.encode()).jobs())[0])


def cold(repeat: int) -> Iterator[Measure]:
    """Milliseconds of CPU of a command that reads one file."""
    with tempfile.TemporaryDirectory() as folder:
        job, offer = Path(folder) / "job.xml", Path(folder) / "offer.xml"
        job.write_text(_JOB, "utf-8")
        offer.write_text(_OFFER, "utf-8")
        for command, files in (("explain", (job,)), ("match", (job, offer)), ("show", (job,)), ("check", (job,))):
            spent = min(_spent([sys.executable, "-m", "sssjob", command, *map(str, files)]) for _ in range(repeat))
            yield Measure(f"sssjob {command}, cold", spent * 1000, _COLD, "ms")


def _spent(command: list[str]) -> float:
    """CPU seconds, user and system, of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measures(seconds: float, repeat: int) -> Iterator[Measure]:
    """Every measure, one after another."""
    yield from warm(seconds)
    yield from sites(seconds)
    yield from cold(repeat) if repeat else ()


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    options = argparse.ArgumentParser(prog="bench.request", description="requests and matching, CPU time")
    options.add_argument("--seconds", type=float, default=0.5, help="for each measure (default: 0.5)")
    options.add_argument("--cold", type=int, default=7, metavar="N", help="cold starts of each command (default: 7)")
    options.add_argument("--check", action="store_true", help="exit status 1 when a bar is missed")
    options.add_argument("--only", default="", metavar="WORD", help="print the measures whose name holds the word")
    given = options.parse_args(arguments)
    missed = False
    print(f"{'measure':<52}{'value':>14}{'bar':>9}")
    for measure in measures(given.seconds, given.cold):
        if given.only in measure.name:
            print(measure, flush=True)
            missed |= measure.missed
    return int(missed and given.check)


if __name__ == "__main__":
    sys.exit(main())
