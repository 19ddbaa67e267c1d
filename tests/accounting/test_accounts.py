"""Accounts as objects: trees that cover what is lacking, terms of deposits, holds that end, who may use an account."""

from __future__ import annotations

import getpass
import json
import subprocess
from collections.abc import Callable
from decimal import Decimal
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.accounting.accounts import DEPTH, DepositTerm, Settings, unused
from sssjob.accounting.ledger import Ledger, LedgerError
from sssjob.accounting.rates import read_rates
from sssjob.accounting.store import open_store
from tests.accounting.conftest import Command
from tests.accounting.test_ledger import job, postgres, rates
from tests.psij.test_batch_labs import enter_lab

D = Decimal
NOW = 10**6


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.lab)])
def there(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Any:
    """A ledger in each kind of database, whose clock the test sets; replayed in the end."""
    place = str(tmp_path / "ledger.db") if request.param == "sqlite" else postgres()
    with Ledger(open_store(place), clock=clock) as made:
        yield made
        assert list(made.verify()) == []


def waiting(ident: str, *, project: str = "chem", user: str = "", machine: str = "colony", processors: int = 1) -> Any:
    """A job that asks for processors for 100 s: at 0.5 a second 50 each."""
    more = f"<User>{user}</User>" if user else ""
    job_text = job(ident, start=-1, state="Idle", project=project, more=more,
                   requested=f"<Requested><Processors>{processors}</Processors><Duration>100</Duration></Requested>")
    job_text.set("Machine", machine)
    return job_text


# --- trees --------------------------------------------------------------------------------------------------------

def test_a_parent_covers_what_its_accounts_lack(there: Ledger) -> None:
    for name, amount in (("faculty", 100), ("chem", 30), ("bio", 10)):
        there.deposit(name, D(amount))
    for name in ("chem", "bio"):
        there.configure(name, parent="faculty")
    assert {s.account.account: s.available for s in there.standings()} == {
        "bio": D(110), "chem": D(130), "faculty": D(100)}
    there.hold(waiting("1", processors=2), None, rates())                   # 100 of 130: 70 of the faculty's
    assert {s.account.account: (s.available, s.covers) for s in there.standings()} == {
        "bio": (D(40), 0), "chem": (D(30), 0), "faculty": (D(30), D(70))}
    with pytest.raises(LedgerError, match=r"account bio has 40\.000 left, 50\.000 are"):
        there.hold(waiting("2", project="bio"), None, rates())
    with pytest.raises(LedgerError, match=r"faculty has 30\.000 credits that are not held, 31"):
        there.withdraw("faculty", D(31))
    there.charge(job("1", seconds=50), None, rates())                       # it cost 50
    assert there.standing("chem").available == D(80) and there.account("faculty").balance == 100


def test_what_a_tree_has_does_not_depend_on_the_order_of_charges(tmp_path: Path, clock: Clock) -> None:
    """Nothing is moved between accounts, so every order of the same logs ends with the same."""
    ends = set()
    runs = [job("1", seconds=60), job("2", start=2000, seconds=30, project="bio"),
            job("3", start=3000, seconds=20, project="faculty")]
    for number, order in enumerate(permutations(runs)):
        with Ledger(open_store(str(tmp_path / f"{number}.db")), clock=clock) as made:
            for name, amount in (("faculty", 100), ("chem", 30), ("bio", 10)):
                made.deposit(name, D(amount))
            made.configure("chem", parent="faculty")
            made.configure("bio", parent="faculty")
            for run in order:
                made.charge(run, None, rates())
            ends.add(tuple((s.account.account, s.available, s.covers) for s in made.standings()))
    assert ends == {(("bio", D(30), D(0)), ("chem", D(30), D(0)), ("faculty", D(30), D(50)))}


def test_a_tree_has_no_circle_and_an_end(there: Ledger) -> None:
    names = [f"a{n}" for n in range(DEPTH + 1)]
    for name in names:
        there.deposit(name, D(1), new=True)
    for child, parent in zip(names[1:DEPTH], names, strict=False):
        there.configure(child, parent=parent)
    assert there.standing(names[DEPTH - 1]).available == DEPTH
    with pytest.raises(LedgerError, match="a31 cannot be the parent of a0: it is that account, or stands below it"):
        there.configure("a0", parent="a31")
    with pytest.raises(LedgerError, match=f"more than {DEPTH} accounts stand above one another"):
        there.configure(names[DEPTH], parent=names[DEPTH - 1])
    with pytest.raises(LedgerError, match="there is no account nobody in credits"):
        there.configure("a5", parent="nobody")


# --- terms --------------------------------------------------------------------------------------------------------

def test_deposits_that_end_first_are_used_first(there: Ledger, clock: Clock) -> None:
    """A job that ran within both terms is paid from the one that ends first, however late its log comes."""
    there.deposit("chem", D(100), until=NOW + 1000)
    there.deposit("chem", D(100), since=NOW, until=NOW + 500)
    there.deposit("chem", D(100), since=NOW + 2000)
    assert there.standing("chem").available == 200          # the third cannot be used yet
    clock.now = NOW + 600
    assert there.standing("chem").available == 100
    assert [(e.kind, e.amount, e.refers) for e in there.expire()] == [("expiry", D(100), 2)]
    there.charge(job("1", start=NOW, seconds=40, processors=2), None, rates())      # 40, ended at NOW + 40
    assert (there.account("chem").balance, there.standing("chem").available) == (D(160), D(100))
    assert [(e.kind, e.amount, e.refers) for e in there.expire()] == [("expiry", D(-40), 2)]
    assert there.expire() == []
    clock.now = NOW + 3000
    assert [(e.kind, e.amount, e.refers) for e in there.expire()] == [("expiry", D(100), 1)]
    assert (there.account("chem").balance, there.standing("chem").available) == (D(100), D(100))


def test_a_late_log_of_closed_books_is_paid_from_its_own_term(there: Ledger, clock: Clock) -> None:
    """The charge belongs to the next invoice, but the money is that of the time in which the job ran."""
    there.deposit("chem", D(100), since=NOW, until=NOW + 500)
    clock.now = NOW + 600
    there.expire()
    there.close(NOW + 550)
    entry = there.charge(job("1", start=NOW, seconds=40, processors=2), None, rates()).entry
    assert entry is not None and (entry.moment("end"), entry.ended) == (NOW + 550, NOW + 40)
    assert there.standing("chem").available == 0
    assert [(e.kind, e.amount) for e in there.expire()] == [("expiry", D(-40))] and there.account("chem").balance == 0


@given(terms=st.lists(st.tuples(st.integers(0, 20), st.integers(1, 10), st.integers(0, 30)), max_size=5),
       uses=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 20)), max_size=12), data=st.data())
def test_what_is_left_of_deposits(terms: list[tuple[int, int, int]], uses: list[tuple[int, int]],
                                  data: st.DataObject) -> None:
    """Against a purse that is opened second by second; in any order of the uses."""
    given_terms = [DepositTerm(number, since, since + long, D(amount))
                   for number, (since, long, amount) in enumerate(terms)]
    purse = {term.entry: term.amount for term in given_terms}
    for second in range(41):
        wanted = sum((D(amount) for moment, amount in uses if moment == second), D(0))
        for term in sorted(given_terms, key=lambda term: (term.until, term.entry)):
            if term.since <= second < term.until:
                taken = min(wanted, purse[term.entry])
                purse[term.entry] -= taken
                wanted -= taken
    shuffled = data.draw(st.permutations(uses))
    assert unused(given_terms, [(moment, D(amount)) for moment, amount in shuffled]) == purse


# --- who may use it -----------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("changes", "why"), [
    ({"closed": True}, "account chem is closed"),
    ({"users": ("bob",)}, "User ann may not use account chem"),
    ({"machines": ("other",)}, "Machine colony may not use account chem"),
    ({"per_user": D(60)}, r"User ann has 10\.000 left of account chem, 50\.000 are"),
])
def test_who_may_not_use_an_account(there: Ledger, changes: dict[str, Any], why: str) -> None:
    there.deposit("chem", D(500))
    there.hold(waiting("1", user="ann"), None, rates())
    there.configure("chem", **changes)
    with pytest.raises(LedgerError, match=why):
        there.hold(waiting("2", user="ann"), None, rates())
    if "per_user" not in changes:
        with pytest.raises(LedgerError, match=f"no quote: {why}"):
            there.quote(waiting("2", user="ann"), None, rates())
        posted = there.charge(job("2", more="<User>ann</User>"), None, rates())
        assert (posted.outcome, posted.detail) == ("charged", why)
    else:
        there.hold(waiting("3", user="bob"), None, rates())
        there.hold(waiting("2", user="ann"), None, rates(), force=True)


def test_what_a_user_has_used(there: Ledger) -> None:
    there.deposit("chem", D(500))
    there.hold(waiting("1", user="ann"), None, rates())
    assert there.used_by("chem", "", "ann") == 50
    entry = there.charge(job("1", more="<User>ann</User>"), None, rates()).entry
    assert entry is not None and there.used_by("chem", "", "ann") == 100
    there.refund(entry.number, D(30))
    assert there.used_by("chem", "", "ann") == 70
    there.charge(job("1", more="<User>ann</User>"), None, rates("1", "2"), recharge=True)
    assert there.used_by("chem", "", "ann") == 170


@pytest.mark.parametrize(("closed", "refused"), [(True, ("deposit", "credit", "transfer")), (False, ())])
def test_nothing_is_put_into_a_closed_account(there: Ledger, closed: bool, refused: tuple[str, ...]) -> None:
    there.deposit("chem", D(5))
    there.deposit("bio", D(5))
    there.configure("chem", closed=closed)
    acts: dict[str, Callable[[], object]] = {
        "deposit": lambda: there.deposit("chem", D(1)), "credit": lambda: there.credit("chem", D(1)),
        "transfer": lambda: there.transfer("bio", "chem", D(1)), "withdraw": lambda: there.withdraw("chem", D(1)),
        "adjust": lambda: there.adjust("chem", D(1), reason="why")}
    for name, act in acts.items():
        if name in refused:
            with pytest.raises(LedgerError, match="account chem is closed"):
                act()
        else:
            act()


def test_amounts_by_hand_have_the_digits_of_the_account(there: Ledger) -> None:
    there.deposit("chem", D("5.123"))
    there.configure("chem", digits=2)
    acts: list[Callable[[], object]] = [
        lambda: there.deposit("chem", D("1.001")), lambda: there.withdraw("chem", D("1.001")),
        lambda: there.adjust("chem", D("-1.001"), reason="why")]
    for act in acts:
        with pytest.raises(LedgerError, match=r"1\.001 has more than 2 digits behind the point"):
            act()
    there.deposit("chem", D("1.000"))
    there.configure("chem", digits=0)
    assert there.settings("chem").digits == 0
    with pytest.raises(LedgerError, match=r"0\.5 has more than 0 digits"):
        there.deposit("chem", D("0.5"))


@pytest.mark.parametrize(("currency", "digits"), [("JPY", 0), ("EUR", 2), ("BHD", 3), ("CLF", 4), ("SU", 24), ("", 24)])
def test_amounts_by_hand_have_the_digits_of_the_currency(there: Ledger, currency: str, digits: int) -> None:
    """Half a yen could be put in; a unit of the site has as many digits as there are. What the rates made finer can
    still be taken out, and an account may say that it has more."""
    there.deposit("chem", D(1), currency)
    there.deposit("chem", D(1).scaleb(-digits), currency)
    if digits == 24:
        return
    finer = D(1).scaleb(-digits - 1)
    for act in (there.deposit, there.withdraw, there.credit):
        with pytest.raises(LedgerError, match=f"more than {digits} digits behind the point, those of {currency}"):
            act("chem", finer, currency)
    there.charge(job("1"), None, read_rates(
        f'name = "r"\nversion = "1"\ncurrency = "{currency}"\nprecision = {digits + 1}\n'
        f'rate = [{{ type = "NBR", name = "Project", instance = "chem", rate = {finer / 100:f} }}]'))
    there.withdraw("chem", finer, currency)
    there.configure("chem", currency, digits=24)
    there.deposit("chem", D(1).scaleb(-24), currency)


# --- holds that end -----------------------------------------------------------------------------------------------

def test_a_hold_ends_by_itself(there: Ledger, clock: Clock) -> None:
    there.deposit("chem", D(60))
    there.hold(waiting("1"), None, rates(), expires=NOW + 10)
    with pytest.raises(LedgerError, match="a hold ends in the future"):
        there.hold(waiting("2"), None, rates(), expires=NOW)
    assert there.standing("chem").available == 10
    clock.now = NOW + 10
    assert there.standing("chem").available == 60
    there.hold(waiting("1"), None, rates(), expires=NOW + 20)           # the same job again
    assert [e.kind for e in there.entries()] == ["deposit", "hold", "release", "hold"]
    clock.now = NOW + 30
    assert [e.kind for e in there.expire()] == ["release"]
    assert there.account("chem").held == 0


# --- the commands -------------------------------------------------------------------------------------------------

def test_an_account_from_the_shell(ledger: Command) -> None:
    for name in ("faculty", "chem"):
        ledger(f"deposit {name} 3 --currency EUR --until 2040-01-01T00:00Z")
    answer = ledger("account chem --parent faculty --users ann,bob --machines colony --per-user 100 --digits 2")
    assert answer.out == (
        "3: account chem in EUR: parent faculty, users ann bob, machines colony, per user 100, digits 2\n")
    assert ledger("account chem").out == (
        "account chem\n  parent: faculty\n  users: ann, bob\n  machines: colony\n  per user: 100\n  digits: 2\n"
        "  balance: 3 EUR\n  available: 6 EUR\n")
    ledger("account chem --users all --machines all --per-user any --digits any --parent none --close --reason over")
    assert ledger("account chem").out == (
        "account chem\n  closed: yes\n  digits: 24\n  balance: 3 EUR\n  available: 3 EUR\n")
    assert json.loads(ledger("account chem --json").out)["settings"] == {"closed": True, "digits": 24}
    assert ledger("expire").out == ""
    assert "hashes, balances, holds" in ledger("verify").out


@pytest.mark.parametrize(("words", "why"), [
    ("account nobody", "there is no account 'nobody'\n"),
    ("account Chem", "there is no account 'Chem'; did you mean chem (EUR)?\n"),
    ("account chem --parent CHEM", "there is no account CHEM in EUR; did you mean chem (EUR)?\n"),
    ("balance cehm", "there is no account 'cehm'; did you mean chem (EUR)?\n"),
    ("usage chemm", "there is no account 'chemm'; did you mean chem (EUR)?\n"),
    ("statement chem --currency USD", "there is no account 'chem' in USD; did you mean chem (EUR)?\n"),
    ("invoice CHEM 2026", "there is no account 'CHEM'; did you mean chem (EUR)?\n"),
    ("deposit Chem 1 --currency EUR", "did you mean chem (EUR)? --new opens another one\n"),
    ("account chem --digits x", "--digits 'x' is no number from 0 to 24, or any"),
    ("account chem --per-user x", "'x' is no amount, as 12.50"),
    ("account chem --per-user -1", "the limit of a user is not below 0"),
    ("account chem --parent chem", "chem cannot be the parent of chem"),
    ("deposit chem 1 --currency EUR --from 2030-01-01T00:00Z --until 2029-01-01T00:00Z", "a term ends after it begins"),
    ("withdraw chem 1", "there is no account chem in credits; did you mean chem (EUR)?\n"),
    ("transfer chen bio 1 --currency EUR --new", "there is no account chen in EUR; did you mean chem (EUR)?\n"),
    ("deposit chem 1 --currency EUR --until noon", "--until: 'noon' is neither epoch seconds nor a time"),
])
def test_wrong_words(ledger: Command, words: str, why: str) -> None:
    ledger("deposit chem 3 --currency EUR")
    answer = ledger(words)
    assert answer.code in (1, 2) and why in answer.err, answer


def test_the_gate_of_a_submit_filter(ledger: Command) -> None:
    """One line and an exit status, whatever the answer."""
    ledger("deposit chem 1.5 --currency EUR")
    gate = "gate waiting.xml --rates rates.toml"
    assert ledger(f"{gate} --dry-run") == (0, "accepted: 1.00 EUR of account chem, 1.5 EUR available\n", "")
    assert ledger(f"{gate} --expires 2040-01-01T00:00Z") == (
        0, "accepted: 1.00 EUR of account chem, hold 2, 0.50 EUR available\n", "")
    assert ledger(gate) == (1, "refused: entry 2 holds for job 1.head already\n", "")
    assert ledger("release --job 1.head --machine colony").out.startswith("3: release of entry 2 1.00 EUR")
    ledger("withdraw chem 1 --currency EUR")
    assert ledger(gate) == (1, "refused: account chem has 0.50 left, 1.00 are asked for\n", "")
    assert json.loads(ledger(f"{gate} --json").out) == {
        "type": "gate", "accepted": False, "why": "account chem has 0.50 left, 1.00 are asked for"}
    assert ledger(f"{gate} --account-by User").out == (
        "refused: it has no User, which names the account (--account-by)\n")


def test_slurm_takes_no_more_jobs_of_what_is_used_up(ledger: Command, tmp_path: Path,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands are printed; with --run sacctmgr gets them, and one that fails ends it in a sentence."""
    for name, amount in (("chem", "1.5"), ("bio", "2")):
        ledger(f"deposit {name} {amount} --currency EUR")
    ledger("withdraw bio 2 --currency EUR")
    commands = [f"sacctmgr --immediate modify account where name={name} cluster=c1 set GrpSubmitJobs={most}\n"
                for name, most in (("bio", "0"), ("chem", "-1"))]
    assert ledger("enforce --currency EUR --cluster c1").out == "".join(commands)
    manager = tmp_path / "bin" / "sacctmgr"
    manager.parent.mkdir()
    manager.write_text('#!/bin/sh\necho "$@" >> "$0.log"\ncase "$*" in *chem*) echo " Nothing modified"; exit 1;; '
                       '*down*) echo "no database" >&2; exit 1;; esac\n')
    manager.chmod(0o755)
    monkeypatch.setenv("PATH", f"{manager.parent}:/usr/bin:/bin")
    assert ledger("enforce --currency EUR --cluster c1 --run").code == 0
    assert manager.with_suffix(".log").read_text() == "".join(c.removeprefix("sacctmgr ") for c in commands)
    ledger("deposit down 2 --currency EUR")
    answer = ledger("enforce --currency EUR --run")
    assert answer.code == 3 and answer.err.endswith("no database\n") and "name=down" in answer.err
    monkeypatch.setenv("PATH", "/nowhere")
    assert "sacctmgr" in ledger("enforce --currency EUR --run").err


def test_limits_without_a_currency_and_with_odd_names(ledger: Command) -> None:
    """Without --currency no account was stopped, in silence; a name with a comma stopped the stopping of all."""
    ledger("deposit chem 1 --currency EUR")
    command = "sacctmgr --immediate modify account where name=chem set GrpSubmitJobs=-1\n"
    assert ledger("enforce") == (0, command, "")
    assert ledger("enforce --currency USD") == (2, "", "sssjob: there is no account in USD\n")
    ledger("deposit a,b 1 --currency EUR --new")
    assert ledger("enforce") == (
        1, command, "sssjob: account 'a,b' is no name that sacctmgr takes: nothing is said of it\n")
    ledger("deposit chem 1 --new")
    assert ledger("enforce") == (
        2, "", "sssjob: accounts are kept in credits and EUR; name one with --currency\n")


def test_settings_are_as_they_were_written() -> None:
    settings = Settings("up", ("a",), (), D("1.50"), 2, True)
    assert settings.record() == {"parent": "up", "users": ("a",), "machines": (), "per_user": "1.50", "digits": 2,
                                 "closed": True}
    assert Settings().record() == {}


@pytest.mark.lab
def test_real_slurm_takes_no_job_of_what_is_used_up(ledger: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """sbatch refuses the jobs of an account of which nothing is available, and takes them again after a deposit."""
    enter_lab("slurm", monkeypatch)
    me = getpass.getuser()

    def told(*words: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, capture_output=True, text=True, input=text, timeout=60, check=False)

    def submitted() -> str:
        done = told("sbatch", "--parsable", "--hold", "-A", "spent", text="#!/bin/sh\n:\n")
        if done.returncode == 0:
            told("scancel", done.stdout.split(";")[0].strip())
        return done.stderr

    manager = ("sacctmgr", "-i", "-Q")
    assert told(*manager, "add", "account", "spent").returncode == 0
    try:
        assert told(*manager, "add", "user", me, "account=spent").returncode == 0
        ledger("deposit spent 1 --currency EUR")
        assert ledger("enforce --currency EUR --run").code == 0 and submitted() == ""
        ledger("withdraw spent 1 --currency EUR")
        for _ in range(2):      # the second time nothing is to be changed
            assert ledger("enforce --currency EUR --run").code == 0
        assert "AssocGrpSubmitJobsLimit" in submitted()
        ledger("deposit spent 1 --currency EUR")
        assert ledger("enforce --currency EUR --run").code == 0 and submitted() == ""
    finally:
        told(*manager, "delete", "user", me, "account=spent")
        told(*manager, "delete", "account", "spent")
