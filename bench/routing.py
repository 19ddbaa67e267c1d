"""What it costs to send a document to one of many sites: ``python -m bench.routing [--documents N] [--check]``.

Each site has a profile, offers of three queues, and rates of its own, all from files. Of every document, each another
text, all that ``submit --sites`` does of itself is measured: it is read, held against all offers, priced by all rates,
ranked, and its route is written to the journal. No manager is asked. CPU time of one process, the best of some rounds.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Final

from bench.run import Measure
from sssjob.cli._options import Session
from sssjob.cli._routing import Choice, routed
from sssjob.cli._sending import candidates
from sssjob.findings import Policy
from sssjob.run.journal import Journal, open_journal
from sssjob.run.routing import Promise, begin

__all__ = ["main"]

_BAR_MS: Final = 1.0
_SITES: Final = 20
_QUEUES: Final = ("short", "batch", "long")
_ROUND: Final = 50          # documents of a round
_XML: Final = ("<Job><Id>{n}</Id><Name>plain {n}</Name><User>amy</User><Executable>/bin/true</Executable>"
               "<Arguments>{n}</Arguments><InitialWorkingDirectory>/home/amy</InitialWorkingDirectory><Requested>"
               "<Processors>{processors}</Processors><Memory units=\"MB\">{memory}</Memory>"
               "<Duration>{seconds}</Duration></Requested></Job>\n")
_SCRIPT: Final = ("#!/bin/bash\n#SBATCH --job-name=plain{n}\n#SBATCH --ntasks={processors}\n#SBATCH --mem={memory}M\n"
                  "#SBATCH --time={minutes}\nsrun ./simulate {n}\n")
_OFFER: Final = ("<Job><Id>QUEUE</Id><Delivered><Queue>QUEUE</Queue><NodeCount>{nodes}</NodeCount><Processors>"
                 "{processors}</Processors><Memory units=\"GB\">{memory}</Memory><Duration>SECONDS</Duration>"
                 "</Delivered></Job>")
_RATES: Final = """name = "{site}"
version = "1"
currency = "EUR"
precision = 2

[[rate]]
type = "VBR"
name = "Processors"
rate = 0.0{number:02}
per = "hour"

[[rate]]
type = "VBR"
name = "Memory"
units = "GB"
rate = 0.000{number:02}
per = "hour"
"""


def write_sites(folder: Path) -> tuple[str, ...]:
    """Write the sites; the values of ``--offers`` that name them."""
    words = []
    for number in range(1, _SITES + 1):
        site = f"site{number:02}"
        (folder / f"{site}.toml").write_text(f'name = "{site}"\nmanager = "slurm"\nrates = "{site}-rates.toml"\n')
        (folder / f"{site}-rates.toml").write_text(_RATES.format(site=site, number=number))
        there = _OFFER.format(nodes=number, processors=number * 16, memory=number * 64)
        offers = "".join(there.replace("QUEUE", queue).replace("SECONDS", str(3600 * 12 ** place))
                         for place, queue in enumerate(_QUEUES))
        (folder / f"{site}.xml").write_text(f"<JobGroup><Id>{site}</Id>{offers}</JobGroup>\n")
        words.append(f"{folder / site}.toml={folder / site}.xml")
    return tuple(words)


def texts(template: str, count: int) -> list[bytes]:
    """Documents of which no two are alike."""
    random = Random(7)
    return [template.format(n=n, processors=random.randint(1, 64), memory=random.randint(100, 9000),
                            seconds=random.randint(60, 80_000), minutes=random.randint(1, 2000)).encode()
            for n in range(count)]


def route_all(journal: Journal, choice: Choice, session: Session, documents: Sequence[bytes]) -> float:
    """CPU seconds a document, of the round in which they were least."""
    best = float("inf")
    for first in range(0, len(documents), _ROUND):
        several = documents[first:first + _ROUND]
        started = time.process_time()
        chosen = []
        for data in several:
            routings = routed(session, "job", data, choice, False, {}, True)
            assert routings is not None and routings[0].places
            chosen.append(list(candidates(routings[0].places, choice)))
        with journal.together():        # as they are submitted together
            for places in chosen:
                begin(journal, places, policy=Policy.REJECT, directory=Path.cwd(), promise=Promise())
        best = min(best, (time.process_time() - started) / len(several))
    return best


def main(arguments: list[str] | None = None) -> int:
    """The table; 1 with ``--check`` when a bar is missed."""
    parser = argparse.ArgumentParser(prog="bench.routing")
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    missed = False
    with tempfile.TemporaryDirectory() as folder:
        offers = write_sites(Path(folder))
        for name, template in (("documents", _XML), ("scripts", _SCRIPT)):
            session = Session(quiet=True)
            choice = Choice(session, "", offers)
            with open_journal(Path(folder) / f"{name}.db") as journal:
                seconds = route_all(journal, choice, session, texts(template, options.documents))
            measure = Measure(f"{name} over {_SITES} sites of {len(_QUEUES)} queues", seconds * 1000, _BAR_MS, "ms")
            print(measure, flush=True)
            missed |= measure.missed
    return int(missed and options.check)


if __name__ == "__main__":
    sys.exit(main())
