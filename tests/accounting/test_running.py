"""Jobs that still run are charged for what they have used; what is charged in parts adds up to the whole."""

from __future__ import annotations

import tempfile
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.accounting.ledger import Ledger
from sssjob.accounting.store import open_store
from sssjob.document.model import Job
from tests.accounting.conftest import Command
from tests.accounting.support import document, rate_set
from tests.strategies import examples

D = Decimal
RATES = rate_set('precision = 3\nVBR Processors 0.125\nNBF Queue=gpu 1')
HEADER = "JobID|Cluster|Account|User|Start|End|ElapsedRaw|State|AllocTRES|ExitCode\n"


def record(ident: int, processors: int, lasted: int | None, state: str = "Running") -> Job:
    """What a log says of a run: how long it has lasted, or that it is over."""
    start = 1000 * ident
    end = f"<EndTime>{start + (lasted or 0)}</EndTime><ExitCode>0</ExitCode>" if state == "Completed" else ""
    ran = "" if lasted is None else f"<Duration>{lasted}</Duration>"
    (job, _), = document(f"<Id>{ident}</Id><Project>p</Project><Machine>m</Machine><Queue>gpu</Queue><State>{state}"
                         f"</State><StartTime>{start}</StartTime>{end}<Delivered><Processors>{processors}</Processors>"
                         f"{ran}</Delivered>").jobs()
    return job


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[Job], Decimal]:
    """Records of some runs in any order, some of them again, and what they come to: by the longest that was written of
    each run, or by its end."""
    records, whole = list[Job](), Decimal(0)
    for ident in range(1, draw(st.integers(1, 4)) + 1):
        processors, spans = draw(st.integers(1, 9)), draw(st.lists(st.integers(1, 900), min_size=1, max_size=5))
        records += [record(ident, processors, lasted, draw(st.sampled_from(("Running", "Suspended"))))
                    for lasted in spans]
        lasted = max(spans)
        if draw(st.booleans()):
            lasted = draw(st.integers(lasted, 999))
            records.append(record(ident, processors, lasted, "Completed"))
        records += [record(ident, processors, None)] * draw(st.integers(0, 1))
        whole += 1 + Decimal(processors * lasted) / 8
    again = draw(st.lists(st.sampled_from(records), max_size=4))
    return draw(st.permutations([*records, *again])), whole


@settings(max_examples=examples(60), deadline=None)
@given(log=logs(), cut=st.integers(0, 30))
def test_parts_add_up_to_the_whole(log: tuple[list[Job], Decimal], cut: int) -> None:
    """Whatever the order and the number of batches; the entries of an account are what the last records come to."""
    records, whole = log
    with tempfile.TemporaryDirectory() as folder, Ledger(open_store(str(Path(folder) / "l.db"))) as ledger:
        for some in (records[:cut], records[cut:]):
            for posted in ledger.charges([(job, None) for job in some], RATES, running=True):
                assert posted.outcome in ("charged", "superseded", "unchanged") or posted.reason == "not-ended"
        assert ledger.account("p").balance == -whole
        assert -sum(entry.change for entry in ledger.entries("p", "")) == whole
        assert list(ledger.verify()) == []


def test_it_has_to_be_asked_for(tmp_path: Path) -> None:
    """Without it a record of a running job charges nothing, and takes nothing back of what was charged with it; a hold
    stays until the end."""
    with Ledger(open_store(str(tmp_path / "l.db"))) as ledger:
        (waiting, _), = document("<Id>1</Id><Project>p</Project><Machine>m</Machine><State>Idle</State><Requested>"
                                 "<Processors>2</Processors><Duration>800</Duration></Requested>").jobs()
        ledger.hold(waiting, None, RATES, force=True)
        assert ledger.charge(record(1, 2, 80), None, RATES).reason == "not-ended"
        assert ledger.charge(record(1, 2, 80), None, RATES, running=True).outcome == "charged"
        for job in (record(1, 2, 160), record(1, 2, 80), record(1, 2, None)):
            assert ledger.charge(job, None, RATES).outcome == "unchanged"
        assert (ledger.account("p").balance, ledger.account("p").held) == (D(-21), D(200))
        assert ledger.charge(record(1, 2, 800, "Completed"), None, RATES).outcome == "superseded"
        assert (ledger.account("p").balance, ledger.account("p").held) == (D(-201), D(0))
        dearer = rate_set("precision = 3\nVBR Processors 0.5")
        assert ledger.charge(record(2, 1, 8), None, RATES, running=True).outcome == "charged"
        assert ledger.charge(record(2, 1, 8), None, dearer, recharge=True).outcome == "superseded"
        assert ledger.account("p").balance == -205


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2, 1)])
def test_daily_dumps(tmp_path: Path, sssjob: Command, order: tuple[int, ...]) -> None:
    """What sacct prints each day, in any order: a job of three days is charged each day for what it has used."""
    rows = ["9|c|p|u|2026-01-01T00:00:00|Unknown|3600|RUNNING|cpu=2|0:0", "9|c|p|u|2026-01-01T00:00:00|Unknown|86400|"
            "RUNNING|cpu=2|0:0", "9|c|p|u|2026-01-01T00:00:00|2026-01-03T00:00:00|172800|COMPLETED|cpu=2|0:0"]
    (tmp_path / "r.toml").write_text('name = "r"\nversion = "1"\n[[rate]]\ntype = "VBR"\nname = "Processors"\n'
                                     'rate = 1\nper = "hour"\n')
    charged = []
    for n in order:
        (tmp_path / "day").write_text(HEADER + rows[n] + "\n")
        answer = sssjob("ledger", "charge", "-f", "sacct", "--option", "timezone=UTC", "--rates", "r.toml", "--running",
                        "--ledger", "l.db", "day")
        assert answer.code == 0, answer.err
        with Ledger(open_store("l.db")) as ledger:
            charged.append(int(-ledger.account("p").balance))
    assert charged == {(0, 1, 2): [2, 48, 96], (2, 1, 0): [96, 96, 96], (1, 0, 2, 1): [48, 48, 96, 96]}[order]
