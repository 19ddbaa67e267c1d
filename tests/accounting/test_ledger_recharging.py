"""``sssjob ledger recharge``, and what becomes of jobs for which the rates have no price."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.accounting.conftest import LEDGER_RATES, Command

HEADER = "JobID|Cluster|Account|User|Partition|Submit|Start|End|ElapsedRaw|State|AllocTRES|ExitCode\n"
#: Id -> (project, queue, hours from the beginning of 2026 to the end).
JOBS: Mapping[int, tuple[str, str, int]] = {
    1: ("chem", "std", 10), 2: ("chem", "gpu", 740), 3: ("bio", "std", 743), 4: ("bio", "gpu", 745),
    5: ("chem", "std", 744), 6: ("bio", "std", 1000)}
ZONE = "--option timezone=UTC"
DEARER = LEDGER_RATES.replace("0.5", "0.75")
WRONG = LEDGER_RATES + 'required = true\nunits = "kWh"\n'.replace("units", "resource_type")


def row(number: int, state: str = "COMPLETED") -> str:
    """A row of a job of two processors that ran for an hour, so it costs 1.00 by the rates of the tests."""
    project, queue, hour = JOBS[number]
    start, end = 1767225600 + 3600 * (hour - 1), 1767225600 + 3600 * hour
    return f"{number}|colony|{project}|ann|{queue}|{start}|{start}|{end}|3600|{state}|cpu=2,node=1|0:0\n"


def charges(ledger: Command) -> dict[str, str]:
    """The charge in force of each job."""
    rows = map(json.loads, ledger("export -t jsonl -q").out.splitlines())
    return {record["id"]: f"{record['charge']:.2f}" for record in rows if "id" in record}


@pytest.mark.parametrize(("options", "expected"), [
    ("", {1, 2, 3, 4, 5, 6}),
    ("--since 2026-02-01 --timezone UTC", {4, 5, 6}),
    ("--until 2026-02-01T00:00Z", {1, 2, 3}),
    ("--since 2026-02-01T01:00+01:00 --until 2026-02-02T00:00Z", {4, 5}),
    ("--where Project=chem", {1, 2, 5}),
    ("--where Queue!=gpu --where Project=bio", {3, 6}),
    ("--where Project=bio --where Project=chem --where Queue=gpu --until 2026-02-01T00:00Z", {2}),
    ("--where User=nobody", set()),
])
def test_some_are_charged_anew(ledger: Command, tmp_path: Path, options: str, expected: set[int]) -> None:
    """By the time of their end, project and queue; the others keep the charge that they have. Nothing is posted twice,
    and nothing by a dry run."""
    (tmp_path / "s.txt").write_text(HEADER + "".join(map(row, JOBS)))
    (tmp_path / "dearer.toml").write_text(DEARER)
    assert ledger(f"charge -f sacct {ZONE} s.txt --rates rates.toml -q").code == 0
    line = f"recharge --rates dearer.toml {options}"
    count = len(expected)
    nothing = ["0 jobs", "none of the charges in force that the options choose was made by other rates", "before: 0"]
    counted = [f"{count} job{'s' * (count != 1)}: {count} superseded; {count * 1.5:.2f} EUR",
               f"before: {count}.00 EUR"] if count else nothing
    dry = ledger(f"{line} --dry-run")
    assert (dry.code, dry.err.splitlines()) == (0, [*counted[:-1], f"{counted[-1]}; nothing was posted"])
    assert charges(ledger) == {str(number): "1.00" for number in JOBS}
    assert [message for message in ledger(line).err.splitlines() if "overdrawn" not in message] == counted
    assert charges(ledger) == {str(number): "1.50" if number in expected else "1.00" for number in JOBS}
    assert ledger(line).err.splitlines() == nothing
    assert ledger("verify").code == 0


def test_refunds_stay_and_books_stay_closed(ledger: Command, tmp_path: Path) -> None:
    """What was refunded of a charge is refunded of the one in its place, all of it where all was; a job of closed books
    is corrected on the next invoice; the zone by which a log was read is known of the new charge too."""
    (tmp_path / "s.txt").write_text(HEADER + row(1) + row(2) + row(3))
    (tmp_path / "dearer.toml").write_text(DEARER)
    ledger(f"charge -f sacct {ZONE} s.txt --rates rates.toml -q")
    ledger("refund --job 1 --amount 0.25")
    ledger("refund --job 2")
    ledger("close 2026-02-01T00:00Z")
    invoice = ledger("invoice chem 2026-01 --timezone UTC").out
    assert ledger("recharge --rates dearer.toml -q").code == 0
    balances = {record["account"]: record["balance"] for record in map(
        json.loads, ledger("balance --json").out.splitlines())}
    assert balances == {"bio": "-1.50", "chem": "-1.25"}
    assert ledger("invoice chem 2026-01 --timezone UTC").out == invoice
    corrections = ledger("invoice chem 2026-02 --timezone UTC").out.splitlines()
    assert corrections[-1] == ",,,0.50,,,to be paid"
    assert ledger("rezone colony Europe/Berlin --from sacct").out.startswith("3 ") and not charges(ledger)
    assert ledger("verify").code == 0


def test_a_charge_stays_where_the_rates_have_no_price(ledger: Command, tmp_path: Path) -> None:
    """Wrong rates give no money back: neither those of a recharge, nor those of a record that says more of a run."""
    (tmp_path / "s.txt").write_text(HEADER + row(1) + row(2))
    (tmp_path / "wrong.toml").write_text(WRONG)
    ledger(f"charge -f sacct {ZONE} s.txt --rates rates.toml -q")
    answer = ledger("recharge --rates wrong.toml --where Queue=gpu")
    assert (answer.code, answer.err.splitlines()[1:]) == (1, [
        "sssjob: 1 charges stay, because these rates have no price for their jobs (amount-missing 1)",
        "1 job: 1 not (amount-missing 1)", "before: 0"])
    again = ledger(f"charge -f sacct {ZONE} s.txt --rates wrong.toml --recharge")
    assert again.code == 1 and "2 jobs, not charged: amount-missing 2: mend the rates or the log" in again.err
    with_cpu_time = row(1).replace("1|", "1|00:30:00|", 1)
    (tmp_path / "more.txt").write_text(HEADER.replace("JobID", "JobID|TotalCPU") + with_cpu_time)
    assert ledger(f"charge -f sacct {ZONE} more.txt --rates wrong.toml").code == 1
    assert charges(ledger) == {"1": "1.00", "2": "1.00"}
    assert ledger(f"charge -f sacct {ZONE} more.txt --rates rates.toml").err.endswith("1 job: 1 superseded; 1.00 EUR\n")


def test_resume_waits_for_rates_that_have_a_price(ledger: Command, tmp_path: Path) -> None:
    """A log is not gone on behind while some of its jobs could not be charged by wrong rates: the status is 1 each
    time, and with right rates all of them are charged, each once."""
    log = tmp_path / "s.txt"
    log.write_text(HEADER + row(1))
    (tmp_path / "wrong.toml").write_text(WRONG)
    (tmp_path / "late.toml").write_text(LEDGER_RATES.replace("[[rate]]", '[[price_list]]\nvalid_from = 2026-02-01\n'
                                                             "[[price_list.rate]]").replace(
                                                                 "currency", 'timezone = "UTC"\ncurrency'))
    line = f"charge -f sacct {ZONE} s.txt --resume --rates"
    for rates, reason in (("wrong.toml", "amount-missing"), ("late.toml", "no-rates")):
        answer = ledger(f"{line} {rates} -q")
        assert answer.code == 1 and f"s.txt: 1 job, not charged: {reason} 1: mend the rates or the log" in answer.err
    with open(log, "a") as file:
        file.write(row(4))
    assert ledger(f"{line} late.toml").code == 1 and charges(ledger) == {"4": "1.00"}
    assert ledger(f"{line} rates.toml").code == 0 and charges(ledger) == {"1": "1.00", "4": "1.00"}
    assert ledger(f"{line} wrong.toml").code == 0       # all of the log was charged
    with open(log, "a") as file:
        file.write(row(6) + row(2))
    assert ledger(f"{line} wrong.toml --skip-rejected").code == 1
    assert ledger(f"{line} rates.toml").code == 0       # the last job of sacct comes again: steps may follow
    assert charges(ledger).keys() == {"1", "2", "4"}


def test_jobs_that_cost_nothing_are_told_when_the_rates_change(ledger: Command, tmp_path: Path) -> None:
    """Rates of GPUs have no price for the other jobs: that is an error only of rates that never charged a job. When
    rates come that may have a price for them, it is said once how many they were."""
    log = tmp_path / "s.txt"
    log.write_text(HEADER + row(1))
    (tmp_path / "gpu.toml").write_text(LEDGER_RATES.replace("Processors", "GPU"))
    line = f"charge -f sacct {ZONE} s.txt --resume --rates"
    assert ledger(f"{line} gpu.toml").code == 1
    with open(log, "a") as file:
        file.write(row(2).replace("cpu=2", "cpu=2,gres/gpu=1"))
    assert ledger(f"{line} gpu.toml").code == 0 and charges(ledger) == {"2": "0.50"}
    with open(log, "a") as file:
        file.write(row(3))
    assert ledger(f"{line} gpu.toml").code == 0
    told = "sssjob: s.txt: the rates have changed; those of before had no price for 2 jobs: if these are to cost " \
           "something now, charge the log without --resume"
    assert told in ledger(f"{line} rates.toml").err.splitlines()
    assert told not in ledger(f"{line} rates.toml").err.splitlines()
    assert ledger(f"charge -f sacct {ZONE} s.txt --rates rates.toml").code == 0
    assert charges(ledger) == {"1": "1.00", "2": "0.50", "3": "1.00"}


@pytest.mark.parametrize(("options", "message"), [
    ("--where Queu=gpu", "no property 'Queu' to add up by"), ("--where Queue", "'Queue' is no condition"),
    ("--since 2026-02-01", "--since: '2026-02-01' has no zone"), ("--until x", "--until: 'x' is neither"),
])
def test_wrong_choices_are_refused(ledger: Command, options: str, message: str) -> None:
    ledger("deposit chem 1 --currency EUR")
    answer = ledger(f"recharge --rates rates.toml {options}")
    assert answer.code == 2 and message in answer.err


def test_no_ledger_is_made(ledger: Command, tmp_path: Path) -> None:
    assert ledger("recharge --rates rates.toml").code == 3 and not (tmp_path / "ledger.db").exists()


def test_a_log_that_should_not_have_been_charged(ledger: Command, tmp_path: Path) -> None:
    """There was a refund of each job, and no way to charge it for the right machine."""
    columns = HEADER.replace("|Cluster", "")
    (tmp_path / "s.txt").write_text(columns + "".join(map(row, JOBS)).replace("|colony", ""))
    line = f"charge -q -f sacct {ZONE} s.txt --rates rates.toml --option machine="
    assert ledger(f"{line}tset").code == 0
    assert ledger("refund --job 3 --amount 0.25").code == ledger("close 2026-02-01T00:00Z").code == 0
    bill = ledger("invoice bio 2026-01 --timezone UTC").out
    answer = ledger(f"{line}test")
    assert answer.code == 1 and "take-back reverses its charges" in answer.err
    take_back = "take-back --where Machine=tset --reason typo"
    dry = ledger(f"{take_back} --where Queue=gpu --dry-run")
    assert (dry.code, dry.err) == (0, "2 charges taken back; 2.00 EUR; nothing was posted\n")
    assert dry.out.splitlines() == ["2: charge 1.00 EUR, account chem for job 2 of tset",
                                    "4: charge 1.00 EUR, account bio for job 4 of tset"]
    assert len(charges(ledger)) == len(JOBS)
    assert ledger(take_back).err == "6 charges taken back; 6.00 EUR\n"
    assert charges(ledger) == {} and ledger(take_back).err == "0 charges taken back\n"
    balances = map(json.loads, ledger("balance --json").out.splitlines())
    assert {account["account"]: account["balance"] for account in balances} == {"bio": "0.00", "chem": "0.00"}
    assert ledger("invoice bio 2026-01 --timezone UTC").out == bill
    assert ledger("invoice bio 2026-02 --timezone UTC").out.splitlines()[-1] == ",,,-0.75,,,to be paid"
    assert ledger(f"{line}test").code == 0
    assert charges(ledger) == dict.fromkeys(map(str, JOBS), "1.00")
    assert "hashes, balances, holds" in ledger("verify").out


@pytest.mark.parametrize(("options", "why"), [
    ("--reason typo", "which charges? Name them with --where, --since or --until"),
    ("--where Queue=gpu", "charges are taken back for a reason"),
    ("--where Queu=gpu --reason typo", "no property 'Queu' to add up by; did you mean Queue?"),
    ("--since noon --reason typo", "--since: 'noon' is neither epoch seconds"),
])
def test_nothing_is_taken_back(ledger: Command, tmp_path: Path, options: str, why: str) -> None:
    (tmp_path / "s.txt").write_text(HEADER + "".join(map(row, JOBS)))
    ledger(f"charge -f sacct {ZONE} s.txt --rates rates.toml -q")
    answer = ledger(f"take-back {options}")
    assert answer.code in (1, 2) and why in answer.err
    assert len(charges(ledger)) == len(JOBS)
