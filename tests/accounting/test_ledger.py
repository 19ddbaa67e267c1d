"""The ledger: what each request posts, what is posted once, and that replaying the entries gives the same balances."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sssjob.accounting.ledger import Ledger, LedgerError, Read, key_of
from sssjob.accounting.rates import RateSet, read_rates
from sssjob.accounting.store import open_store, shown
from sssjob.document.model import Job
from sssjob.errors import AccessError, UsageError
from sssjob.xml.reader import read_document
from tests.strategies import examples

D = Decimal
RATES = 'name = "site"\nversion = "{version}"\nprecision = 3\n{more}\n[[rate]]\ntype = "VBR"\nname = "Processors"\n' \
        'rate = {rate}\n'


def rates(rate: str = "0.5", version: str = "1", more: str = "") -> RateSet:
    return read_rates(RATES.format(rate=rate, version=version, more=more))


def job(ident: str = "7", *, start: int = 1000, seconds: int = 100, processors: int = 2, more: str = "",
        project: str = "chem", requested: str = "", state: str = "Completed") -> Job:
    delivered = f"<Delivered><Processors>{processors}</Processors><Duration>{seconds}</Duration></Delivered>"
    text = (f"<Job><Id>{ident}</Id><Project>{project}</Project><Machine>colony</Machine><State>{state}</State>"
            f"{f'<StartTime>{start}</StartTime>' if start >= 0 else ''}{more}{requested}"
            f"{delivered if state == 'Completed' else ''}</Job>")
    job = read_document(text.encode()).root
    assert isinstance(job, Job)
    return job


WAITING = job("9", start=-1, state="Idle", requested="<Requested><Processors>4</Processors><Duration>100</Duration>"
              "</Requested>")


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.lab)])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    """A new ledger in each kind of database; its clock goes on by one second an entry."""
    place = str(tmp_path / "ledger.db") if request.param == "sqlite" else postgres()
    ticks = iter(range(10**6, 10**7))
    with Ledger(open_store(place), clock=lambda: next(ticks)) as ledger:
        yield ledger
        assert list(ledger.verify()) == []


def postgres() -> str:
    """The URL of a new schema of the lab's database."""
    folder = os.environ.get("SSSJOB_LAB_POSTGRES")
    if folder is None:
        pytest.skip("no postgres lab: " + os.environ.get("SSSJOB_NO_LAB_POSTGRES",
                                                         "SSSJOB_LAB_POSTGRES does not name one (make test-labs)"))
    psycopg = pytest.importorskip("psycopg")
    url = f"postgresql:///postgres?host={folder}/run"
    schema = f"test_{os.urandom(8).hex()}"
    with psycopg.connect(url) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
    return f"{url}&options=-csearch_path%3D{schema}"


def kinds(ledger: Ledger) -> list[str]:
    return [f"{e.kind} {e.amount:f}" for e in ledger.entries()]


def test_a_job_is_charged_once(ledger: Ledger) -> None:
    """Reading the same log twice changes nothing (issue E, the life of money)."""
    assert ledger.charge(job(), None, rates()).outcome == "charged"
    assert ledger.charge(job(), None, rates()).outcome == "unchanged"
    assert kinds(ledger) == ["charge 100.000"]
    assert ledger.account("chem").balance == -100


def test_jobs_together_take_few_statements(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a batch costs beside its rows is the same for one job and for many: no statement is a job's own, not even
    where all of them are charged already, by these rates or by others."""
    statements: list[str] = []

    def counted(run: Callable[..., Any]) -> Callable[..., Any]:
        def call(sql: str, values: Sequence[Any] = ()) -> Any:
            statements.append(sql)
            return run(sql, values)

        return call

    ledger.charge(job("first"), None, rates())
    for name in ("execute", "many"):
        monkeypatch.setattr(ledger.store, name, counted(getattr(ledger.store, name)))
    counts = []
    for some in (1, 40):
        jobs = [(job(f"{some}-{n}"), None) for n in range(some)]
        for outcome, prices in (("charged", rates()), ("unchanged", rates()), ("other-rates", rates("0.7"))):
            ledger.charge(job("first"), None, prices)
            statements.clear()
            assert {posted.outcome for posted in ledger.charges(jobs, prices)} == {outcome}
            counts.append(len(statements))
    assert counts[:3] == counts[3:]


def test_a_batch_that_is_undone_keeps_nothing(tmp_path: Path) -> None:
    """Rates that only a refused batch brought are not taken for kept: the next batch by them keeps them."""
    place = str(tmp_path / "ledger.db")
    with Ledger(open_store(place)) as ledger:
        ledger.charges([(job("1"), None)], rates(), read=Read("sacct", "UTC"))
        with pytest.raises(LedgerError, match="were read in the zone UTC"):
            ledger.charges([(job("2"), None)], rates("0.7"), read=Read("sacct", "Europe/Berlin"))
        ledger.charges([(job("3"), None)], rates("0.7"))
    with Ledger(open_store(place)) as ledger:
        assert list(ledger.verify()) == []
        assert kinds(ledger) == ["charge 100.000", "charge 140.000"]


def test_another_record_supersedes(ledger: Ledger) -> None:
    ledger.charge(job(), None, rates())
    posted = ledger.charge(job(seconds=60), None, rates())
    assert posted.outcome == "contradicts" and posted.detail == "Delivered/Duration 100 and 60"
    assert kinds(ledger) == ["charge 100.000"]
    posted = ledger.charge(job(seconds=60), None, rates(), supersede=True)
    assert posted.outcome == "superseded"
    assert kinds(ledger) == ["charge 100.000", "reversal 100.000", "charge 60.000"]
    assert [e.refers for e in ledger.entries()] == [0, 1, 0]
    assert ledger.account("chem").balance == -60


def test_a_run_is_a_job_of_its_own(ledger: Ledger) -> None:
    """The natural key is Machine, Id and StartTime: every attempt is charged."""
    for start in (1000, 5000):
        ledger.charge(job(start=start), None, rates())
    assert kinds(ledger) == ["charge 100.000"] * 2


@pytest.mark.parametrize("starts", [(1000, 5000), (5000, 1000), (5000, 1000, 5000)])
def test_only_the_last_attempt(ledger: Ledger, starts: tuple[int, ...]) -> None:
    """In whatever order they come."""
    last = rates(more='attempts = "last"')
    posted = [ledger.charge(job(start=start), None, last) for start in starts]
    assert [one.reason for one in posted] == ["" if start == 5000 or starts[0] == 1000 else "earlier-attempt"
                                              for start in starts]
    assert kinds(ledger) == (["charge 100.000"] if starts[0] == 5000 else
                             ["charge 100.000", "reversal 100.000", "charge 100.000"])
    assert ledger.account("chem").balance == -100


@pytest.mark.parametrize(("more", "message", "reason"), [
    ('attempts = "committed"', "preempted: PREEMPTED", "not-committed"),
    ('attempts = "committed"', "requeued", "not-committed"),
    ('system_faults = "free"', "node-failure: NODE_FAIL", "system-fault"),
    ('system_faults = "free"', "preempted: PREEMPTED", ""),
    ('attempts = "committed"', "timeout: TIMEOUT", ""),
    ("", "node-failure: NODE_FAIL", ""),
])
def test_who_pays_for_attempts_in_vain(ledger: Ledger, more: str, message: str, reason: str) -> None:
    one = job(more=f"<StatusMessage>{message}</StatusMessage>")
    assert ledger.charge(one, None, rates(more=more)).reason == reason


def test_other_rates_leave_old_charges_alone(ledger: Ledger) -> None:
    ledger.charge(job(), None, rates())
    dearer = rates("1", "2")
    assert ledger.charge(job(), None, dearer).outcome == "other-rates"
    assert ledger.charge(job(), None, dearer, recharge=True).outcome == "superseded"
    assert kinds(ledger) == ["charge 100.000", "reversal 100.000", "charge 200.000"]


def test_a_hold_ends_with_the_charge(ledger: Ledger) -> None:
    ledger.deposit("chem", D(250))
    ledger.hold(WAITING, None, rates())
    account = ledger.account("chem")
    assert (account.balance, account.held, account.available) == (D(250), D(200), D(50))
    ledger.charge(job("9"), None, rates())
    account = ledger.account("chem")
    assert (account.balance, account.held, account.available) == (D(150), D(0), D(150))
    assert kinds(ledger) == ["deposit 250", "hold 200.000", "release 200.000", "charge 100.000"]


def test_a_hold_under_the_id_ends_with_the_charge_under_the_native_id(ledger: Ledger) -> None:
    """A document is held before it runs, and gets the id of the resource manager only then."""
    ledger.hold(WAITING, None, rates(), force=True)
    ledger.charge(job("9", more='<Extension type="LRM" name="NativeId">4711</Extension>'), None, rates())
    assert kinds(ledger) == ["hold 200.000", "release 200.000", "charge 100.000"]


def element(index: int, *, seconds: int = 100, start: int = 1000, state: str = "Completed") -> Job:
    of_array = "".join(f"<Extension type='LRM' name='{name}'>{text}</Extension>"
                       for name, text in (("ArrayId", "9"), ("ArrayIndex", index)))
    return job(f"9_{index}", start=start, seconds=seconds, more=of_array, state=state)


def test_a_hold_of_an_array_lessens_with_its_elements(ledger: Ledger) -> None:
    """Elements in any order, read again, put back into the queue, or never started: what is held is for those alone
    that have not ended."""
    array = job("9", start=-1, state="Idle", requested="<Requested><Processors>2</Processors><Duration>100</Duration>"
                "</Requested>", more="<Extension type='Scheduler' name='Array'>1-4%2</Extension>")
    ledger.deposit("chem", D(1000))
    ledger.hold(array, None, rates(), expires=2 * 10**6)
    assert ledger.account("chem").held == D(400)
    ledger.charges([(element(n), None) for n in (3, 1)], rates())
    assert ledger.account("chem").held == D(200)
    ledger.charges([(element(n), None) for n in (3, 1, 3)], rates())
    ledger.charge(element(3, start=5000), None, rates(), supersede=True)
    assert ledger.account("chem").held == D(200)
    (held,) = ledger.holds()
    assert (held.job, held.document["elements"], held.document["expires"]) == ("9", "2,4", 2 * 10**6)
    ledger.charge(element(2, start=-1, seconds=0), None, rates())       # it never started
    assert ledger.account("chem").held == D(100)
    ledger.charge(element(4, seconds=30), None, rates())
    assert ledger.account("chem").held == 0 and list(ledger.holds()) == []


@pytest.mark.parametrize("reason", ["preempted: PREEMPTED", "requeued", "node-failure: NODE_FAIL", ""])
def test_a_hold_stays_while_its_job_goes_on(ledger: Ledger, reason: str) -> None:
    """A run that was put back is charged, and the job waits again for what it asked for."""
    ledger.hold(WAITING, None, rates(), force=True)
    why = f"<StatusMessage>{reason}</StatusMessage>" if reason else ""
    assert ledger.charge(job("9", more=why), None, rates()).outcome == "charged"
    assert len(list(ledger.holds())) == (reason[:3] in ("pre", "req"))
    assert ledger.charge(job("9", start=5000), None, rates()).outcome == "charged"
    assert list(ledger.holds()) == []


def test_a_hold_ends_when_the_job_never_starts(ledger: Ledger) -> None:
    ledger.hold(WAITING, None, rates(), force=True)
    never = job("9", start=-1, more="<EndTime>5</EndTime>")
    never.items = [i for i in never.items if i.tag != "Delivered"]
    assert ledger.charge(never, None, rates()).reason == "not-started"
    assert kinds(ledger) == ["hold 200.000", "release 200.000"]


def test_what_an_account_does_not_have_is_not_held(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match=r"account chem has 0 left, 200\.000 are asked for"):
        ledger.hold(WAITING, None, rates())
    ledger.credit("chem", D(200))
    ledger.hold(WAITING, None, rates())
    with pytest.raises(LedgerError, match="entry 2 holds for job 9 already"):
        ledger.hold(WAITING, None, rates())
    ledger.release(2)
    with pytest.raises(LedgerError, match="entry 2 holds nothing any more"):
        ledger.release(2)


def test_a_quote_keeps_its_rates(ledger: Ledger) -> None:
    entry, _ = ledger.quote(WAITING, None, rates(), expires=2000)
    promised = f"<Quote>quote-{entry.number}</Quote>"
    ledger.charge(job(more=promised), None, rates("9", "2"))                            # by 0.5
    ledger.charge(job("8", more=promised, start=2000), None, rates("9", "2"))           # it started too late
    ledger.charge(job("6", more=promised, project="physics"), None, rates("9", "2"))    # another's quote
    assert kinds(ledger) == ["quote 200.000", "charge 100.000", "charge 1800.000", "charge 1800.000"]


def test_refunds_add_up_to_the_charge(ledger: Ledger) -> None:
    ledger.charge(job(), None, rates())
    ledger.refund(1, D(30), reason="slow disk")
    with pytest.raises(LedgerError, match=r"entry 1 has 70\.000 left to give back, not 71"):
        ledger.refund(1, D(71))
    with pytest.raises(LedgerError, match="entry 2 is no charge but a refund"):
        ledger.refund(2)
    posted = ledger.charge(job(seconds=60), None, rates(), supersede=True)
    assert posted.outcome == "superseded" and ledger.account("chem").balance == -30
    assert ledger.entry(3).document == {"reason": "superseded by another record", "refunded": "30", "end": 1100}


def test_a_token_is_used_once(ledger: Ledger) -> None:
    for _ in range(2):
        assert ledger.deposit("chem", D("0.1"), token="bank 1").number == 1
    with pytest.raises(LedgerError, match="token bank 1 has made entry 1, which is something else"):
        ledger.deposit("chem", D("0.2"), token="bank 1")
    ledger.charge(job(), None, rates())
    assert ledger.refund(2, token="r").number == ledger.refund(2, token="r").number == 3


def test_a_statement_opens_and_closes(ledger: Ledger) -> None:
    for amount in ("5", "0.1", "0.2"):
        ledger.deposit("chem", D(amount))
    ledger.credit("chem", D(7))
    ledger.adjust("chem", D("-0.3"), reason="typing error")
    times = [e.time for e in ledger.entries()]
    made = ledger.statement("chem", since=times[1], until=times[4])
    assert (made.opening, [e.kind for e in made.entries], made.closing) == (D(5), ["deposit"] * 2, D("5.3"))
    whole = ledger.statement("chem")
    assert (whole.opening, len(whole.entries), whole.closing) == (D(0), 4, D(5))


def test_rows_that_nobody_asks_for_any_more(tmp_path: Path) -> None:
    """``ledger export | head`` ended with a traceback: the rows were closed after the database."""
    ledger = Ledger(open_store(str(tmp_path / "l.db")))
    for _ in range(3):
        ledger.deposit("chem", D(1))
    rows = iter(ledger.store.execute("SELECT * FROM entries"))
    next(rows)
    ledger.store.close()
    assert isinstance(rows, Generator)
    rows.close()


@pytest.mark.parametrize(("call", "message"), [
    (lambda x: x.deposit("chem", D(0)), "0 is not above 0"),
    (lambda x: x.deposit("chem", D("-1")), "-1 is not above 0"),
    (lambda x: x.deposit("chem", D(10) ** 60), "at most 60 digits"),
    (lambda x: x.deposit("chem", D("1e-25")), "24 behind the point"),
    (lambda x: x.deposit("", D(1)), "is no account"),
    (lambda x: x.deposit("a\nb", D(1)), "is no account"),
    (lambda x: x.credit("chem", D(-1)), "not below 0"),
    (lambda x: x.adjust("chem", D(1), reason=" "), "needs a reason"),
    (lambda x: x.adjust("chem", D(0), reason="x"), "adjusts nothing"),
    (lambda x: x.refund(5), "there is no entry 5"),
    (lambda x: x.release(5), "there is no entry 5"),
    (lambda x: x.quote(job(state="Running"), None, rates()), "no quote: no-duration"),
    (lambda x: x.hold(Job(), None, rates()), "it has no Id"),
])
def test_refusals_post_nothing(ledger: Ledger, call: Callable[[Ledger], object], message: str) -> None:
    with pytest.raises(LedgerError, match=message):
        call(ledger)
    assert kinds(ledger) == []


def test_what_a_job_is_charged_under() -> None:
    """NativeId before Id (decisions 18); no Machine, no charge (decisions 61)."""
    native = '<Extension type="LRM" name="NativeId">55.srv</Extension>'
    assert key_of(job(more=native, start=1_700_000_000_000)) == ("colony", "55.srv", 1_700_000_000)
    with pytest.raises(LedgerError, match="beyond all calendars"):
        key_of(job(start=10 ** 25))
    nameless = read_document(b"<Job><Id>1</Id></Job>").root
    assert isinstance(nameless, Job)
    with pytest.raises(LedgerError, match="names no Machine"):
        key_of(nameless)


@pytest.mark.parametrize("statement", ["UPDATE entries SET amount = '1'", "DELETE FROM entries"])
def test_entries_are_kept(ledger: Ledger, statement: str) -> None:
    ledger.deposit("chem", D(5))
    with pytest.raises(AccessError, match="entries of a ledger are kept"):
        ledger.store.execute(statement)


@pytest.mark.parametrize(("forgery", "message"), [
    ("UPDATE entries SET amount = '5' WHERE number = 1", "entry 1 is not what was written"),
    ("DELETE FROM entries WHERE number = 2", "entry 2 is missing"),
    ("DELETE FROM entries WHERE number = 3", "the last entries are missing"),
    ("UPDATE accounts SET balance = '1000'", "account chem in credits: the balance is not that of the entries"),
    ("UPDATE accounts SET balance = 'x'", "account chem: what is kept of it is no amount"),
    ("UPDATE entries SET amount = 'abc' WHERE number = 2", "entry 2 is not what was written"),
    ("UPDATE entries SET kind = 'bogus' WHERE number = 2", "entry 2 is not what was written"),
    ("UPDATE entries SET document = '{' WHERE number = 2", "entry 2 is not what was written"),
    ("UPDATE entries SET document = '[]' WHERE number = 2", "entry 2 is not what was written"),
    ("UPDATE entries SET document = '{\"charge\": 5}' WHERE number = 2", "what is stored of the charge is not whole"),
    ("UPDATE charges SET content = 'x'", "the charges in force are not those of the entries"),
    ("UPDATE charges SET rates = 'x'", "the charges in force are not those of the entries"),
    ("DELETE FROM charges", "the charges in force are not those of the entries"),
    ("DELETE FROM holds", "the holds are not those of the entries"),
    ("UPDATE rates SET text = replace(text, '0.5', '0.6')", "the stored job and rates give another charge"),
])
def test_verify_sees_what_was_changed(tmp_path: Path, forgery: str, message: str) -> None:
    with Ledger(open_store(str(tmp_path / "l.db"))) as ledger:
        ledger.deposit("chem", D(4))
        ledger.charge(job(), None, rates())
        ledger.hold(WAITING, None, rates(), force=True)
        assert list(ledger.verify()) == []
        for verb in ("UPDATE", "DELETE"):
            ledger.store.execute(f"DROP TRIGGER entries_{verb}")
        ledger.store.execute(forgery)
    with Ledger(open_store(str(tmp_path / "l.db"))) as ledger:
        assert any(message in found for found in ledger.verify())


def test_a_ledger_without_its_head(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "l.db")) as store:
        store.execute("DELETE FROM head")
    with pytest.raises(AccessError, match="without its head"):
        open_store(str(tmp_path / "l.db"))


def test_nothing_of_a_batch_that_fails(ledger: Ledger) -> None:
    def jobs() -> Iterator[tuple[Job, None]]:
        yield job(), None
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ledger.charges(jobs(), rates())
    assert kinds(ledger) == []


def test_several_writers(tmp_path: Path) -> None:
    """Each reads the same log: every job is charged once, and the chain of hashes holds."""
    place = str(tmp_path / "l.db")
    jobs = [(job(str(n)), None) for n in range(30)]
    outcomes: list[str] = []

    def write() -> None:
        with Ledger(open_store(place)) as mine:
            outcomes.extend(mine.charge(one, None, rates()).outcome for one, _ in jobs)

    threads = [threading.Thread(target=write) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (outcomes.count("charged"), outcomes.count("unchanged")) == (30, 60)
    with Ledger(open_store(place)) as ledger:
        assert list(ledger.verify()) == [] and ledger.account("chem").balance == -3000


def test_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text").write_text("not a database" * 99)
    with pytest.raises(AccessError, match="not a database"):
        open_store(str(tmp_path / "text"))
    with pytest.raises(AccessError, match="there is no ledger"):
        open_store(str(tmp_path / "none"), create=False)
    with pytest.raises(UsageError, match="no ledger can be kept at mysql://"):
        open_store("mysql://x")
    with pytest.raises(AccessError, match=r"127\.0\.0\.1"):
        open_store("postgresql://u:secret@127.0.0.1:1/x?connect_timeout=2")
    assert shown("postgresql://u:secret@h:1/x") == "postgresql://u:***@h:1/x"
    monkeypatch.setenv("SSSJOB_LEDGER", str(tmp_path / "mine.db"))
    open_store().close()
    assert (tmp_path / "mine.db").stat().st_mode & 0o777 == 0o600
    import sqlite3
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE t (x)")
    other.close()
    with pytest.raises(AccessError, match="is a database of something else"):
        open_store(str(tmp_path / "other.db"))


@pytest.mark.parametrize(("damage", "message"), [
    (lambda whole: whole[:-16384], "the file is cut off, 16384 bytes of it are missing: bring back a copy"),
    (lambda whole: whole[:20000], "the file is cut off, [0-9]+ bytes of it are missing"),
    (lambda whole: whole[:50], "malformed|not a database"),
    (lambda whole: b"", "the file is empty, there is no ledger in it"),
    (lambda whole: whole[:16384] + bytes(len(whole) - 16384), "malformed"),
    (lambda whole: whole.replace(b"CREATE TABLE holds", b"CREATE TABLE \xffolds", 1), "malformed|decode"),
    (lambda whole: whole.replace(b"ON entries (refers)", b"ON entries (\xffefers)", 1), "malformed|decode"),
])
def test_a_file_that_is_not_whole(tmp_path: Path, damage: Callable[[bytes], bytes], message: str) -> None:
    """Where only the last pages were gone, ``balance`` printed what stood in the others, and ``verify`` had an internal
    error."""
    place = tmp_path / "ledger.db"
    with Ledger(open_store(str(place))) as ledger:
        ledger.store.execute("PRAGMA synchronous = OFF")
        for _ in range(30):
            ledger.deposit("chem", D(1), "EUR", reason="x" * 1600)
    place.write_bytes(damage(place.read_bytes()))
    with pytest.raises(AccessError, match=message), Ledger(open_store(str(place), create=False)) as ledger:
        list(ledger.verify())


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    """Arguments of a command may be any bytes."""
    with Ledger(open_store(str(tmp_path / "ledger.db"))) as ledger:
        for use in (lambda: ledger.deposit("chem", D(1), "\udc80"), lambda: list(ledger.entries(job="\udc80"))):
            with pytest.raises(UsageError, match=r"^\\u\{DC80\} has bytes that are no UTF-8, which no ledger can hold"):
                use()
        assert list(ledger.entries()) == []


class Money(RuleBasedStateMachine):
    """Random requests against a model of two numbers an account."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        store = open_store(f"{self.folder.name}/ledger.db")
        store.execute("PRAGMA synchronous = OFF")
        self.ledger = Ledger(store)
        self.balance: dict[str, D] = {}
        self.held: dict[tuple[str, str], D] = {}
        self.charged: dict[tuple[str, int], tuple[str, int]] = {}
        self.refunded: dict[tuple[str, int], D] = {}

    accounts = st.sampled_from(["chem", "physics"])
    amounts = st.decimals("0.001", "1000", places=3)
    idents = st.sampled_from(["1", "2", "3"])

    @initialize()
    def start(self) -> None:
        self.balance = {"chem": D(0), "physics": D(0)}

    @rule(account=accounts, amount=amounts)
    def deposit(self, account: str, amount: D) -> None:
        self.ledger.deposit(account, amount)
        self.balance[account] += amount

    @rule(account=accounts, amount=amounts)
    def adjust(self, account: str, amount: D) -> None:
        self.ledger.adjust(account, -amount, reason="test")
        self.balance[account] -= amount

    @rule(account=accounts, ident=idents, start=st.integers(1, 2), seconds=st.integers(1, 3))
    def charge(self, account: str, ident: str, start: int, seconds: int) -> None:
        self.ledger.charge(job(ident, start=start, seconds=seconds, project=account), None, rates(), supersede=True)
        before = self.charged.get((ident, start))
        self.held = {k: v for k, v in self.held.items() if k[0] != ident or before == (account, seconds)}
        if before == (account, seconds):        # the same again: what was refunded stays refunded
            return
        kept = D(0)
        if before is not None:                  # what was refunded is kept, all of it where all was
            refunded = self.refunded[ident, start]
            self.balance[before[0]] += before[1] - refunded
            kept = D(seconds) if refunded == before[1] else min(refunded, D(seconds))
        self.charged[ident, start], self.refunded[ident, start] = (account, seconds), kept
        self.balance[account] -= seconds - kept

    @rule(account=accounts, ident=idents)
    def hold(self, account: str, ident: str) -> None:
        one = job(ident, start=-1, state="Idle", project=account,
                  requested="<Requested><Processors>2</Processors><Duration>7</Duration></Requested>")
        try:
            self.ledger.hold(one, None, rates())
        except LedgerError:
            return
        self.held[ident, account] = D(7)

    @precondition(lambda self: self.charged)
    @rule(data=st.data())
    def refund(self, data: st.DataObject) -> None:
        entry = data.draw(st.sampled_from([e.number for e in self.ledger.entries() if e.kind == "charge"]))
        try:
            made = self.ledger.refund(entry, D("0.5"))
        except LedgerError:
            return
        self.balance[made.account] += D("0.5")
        self.refunded[made.job, made.start] += D("0.5")

    def teardown(self) -> None:
        self.ledger.store.close()
        self.folder.cleanup()

    @invariant()
    def adds_up(self) -> None:
        for name, balance in self.balance.items():
            found = self.ledger.account(name)
            assert found.balance == balance == self.ledger.statement(name).closing
            assert found.held == sum((v for (_, owner), v in self.held.items() if owner == name), D(0))
        assert list(self.ledger.verify(recharge=False)) == []


TestMoney = Money.TestCase
TestMoney.settings = settings(max_examples=examples(15), stateful_step_count=15, deadline=None,
                              suppress_health_check=list(HealthCheck))
