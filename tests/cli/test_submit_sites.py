"""``submit --sites``: to the best site, to the next where that refuses a document or has it wait, and only once."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sssjob.run.facts import PLACED
from sssjob.run.journal import open_journal
from sssjob.run.routing import open_routes
from sssjob.xml.reader import read_document
from tests import forks
from tests.cli.conftest import Command
from tests.fakes import lab, sge, slurm

OFFER = "<Job><Id>{0}</Id><Queue>{0}</Queue><NodeCount>{1}</NodeCount><Processors>{1}</Processors></Job>"
BOTH = ("--offers", "alpha.toml=alpha.xml", "--offers", "beta.toml=beta.xml")
RUN = "[run]\npolling_interval = 0.2\nlost_after = 2\naccounting_delay = 1\n"


@dataclass
class Sites:
    """Two sites: alpha with Slurm, beta with Grid Engine."""

    folder: Path
    alpha: lab.Lab
    beta: lab.Lab

    def offer(self, *queues: str) -> None:
        """What alpha offers."""
        jobs = "".join(OFFER.format(queue, 4) for queue in queues)
        (self.folder / "alpha.xml").write_text(f"<JobGroup><Id>alpha</Id>{jobs}</JobGroup>")

    def ran(self) -> list[str]:
        """What the jobs wrote."""
        path = self.folder / "ran"
        return path.read_text().split() if path.exists() else []


@pytest.fixture
def sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sites]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SSSJOB_JOURNAL", str(tmp_path / "journal.db"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "job.xml").write_text(
        "<Job><Id>one</Id><Executable>/bin/sh</Executable><Arguments>-c 'echo one >> ran'</Arguments></Job>")
    for name, manager in (("alpha", "slurm"), ("beta", "sge")):
        (tmp_path / f"{name}.toml").write_text(f"name = '{name}'\nmanager = '{manager}'\n{RUN}")
    (tmp_path / "beta.xml").write_text(OFFER.format("all.q", 2))
    sites = Sites(tmp_path, *(lab.install(str(fake.__file__), fake.COMMANDS, tmp_path / name, tmp_path / "bin")
                              for name, fake in (("alpha", slurm), ("beta", sge))))
    sites.offer("batch")
    yield sites
    sites.alpha.close()
    sites.beta.close()


def listed(sssjob: Command, *options: str) -> list[tuple[object, ...]]:
    """Site, queue, outcome of all jobs in the journal."""
    records = [json.loads(line) for line in sssjob("list", "--all", "--json", "--offline", *options).out.splitlines()]
    return [(one.get("site"), one["queue"], one["outcome"]) for one in records]


def test_to_the_best_one(sssjob: Command, sites: Sites) -> None:
    answer = sssjob("submit", "-q", "job.xml", *BOTH)
    assert (answer.code, answer.out) == (0, "one\n"), answer.err
    assert sssjob("wait", "one", "--timeout", "30").code == 0
    assert (sites.ran(), len(sites.alpha.jobs()), sites.beta.jobs()) == (["one"], 1, [])
    assert listed(sssjob) == listed(sssjob, "--site", "alpha") == listed(sssjob, "--site", "alpha.toml") == [
        ("alpha", "batch", "done")]
    assert listed(sssjob, "--site", "beta.toml") == []
    assert "alpha" in sssjob("list", "--all", "--offline", "--sort", "site").out
    assert sssjob("status", "one", "--sources").out.startswith("one (@1.1, site alpha)\n")
    assert json.loads(sssjob("status", "one", "--json").out)["site"] == "alpha"
    log = sssjob("log", "one").out
    assert "routed to alpha: rank 1 of 2, preference 1, no price (the profile names no rates)" in log
    with open_journal() as journal:
        assert open_routes(journal) == []


def test_refused_at_submit(sssjob: Command, sites: Sites) -> None:
    """An offer that lies: the next site is tried, the reason is told and kept, and counts the next time."""
    sites.offer("nosuch")
    answer = sssjob("submit", "job.xml", *BOTH)
    assert (answer.code, answer.out) == (0, "one\n"), answer.err
    reason = "alpha, nosuch: refused: sbatch: error: Batch job submission failed: Invalid partition name specified"
    assert f"sssjob: {reason}\n" in answer.err
    assert sssjob("wait", "one", "--timeout", "30").code == 0
    assert (sites.ran(), sites.alpha.jobs(), len(sites.beta.jobs())) == (["one"], [], 1)
    assert listed(sssjob) == [("alpha", "nosuch", "failed"), ("beta", "all.q", "done")]
    assert sssjob("ask", "Query Job Get Site, Outcome").out.split()[3:] == ["alpha", "failed", "beta", "done"]
    assert f"routed to beta: rank 2 of 2, preference 1, no price (the profile names no rates); {reason}" in sssjob(
        "log", "one").out
    first = sssjob("route", "-q", "job.xml", *BOTH).out.splitlines()
    assert first[0].startswith("1. beta, ") and "refused 100% of late" in first[1]
    with open_journal() as journal, journal.changing() as connection:      # two days later
        connection.execute("UPDATE submissions SET time = time - 172800")
    assert sssjob("route", "-q", "job.xml", *BOTH).out.startswith("1. alpha, ")


def test_a_refusal_of_several_lines_is_one_reason(sssjob: Command, sites: Sites) -> None:
    sbatch = sites.folder / "bin" / "sbatch"
    sbatch.unlink()
    sbatch.write_text("#!/bin/sh\nexec >&2\necho sbatch: error: invalid partition specified: x; echo\n"
                      "echo sbatch: error: refused; exit 1\n")
    sbatch.chmod(0o755)
    reason = "alpha, batch: refused: sbatch: error: invalid partition specified: x; sbatch: error: refused"
    assert f"sssjob: {reason}\n" in sssjob("submit", "job.xml", *BOTH).err
    assert f"; {reason}\n" in sssjob("log", "one").out


def test_findings_name_the_file(sssjob: Command, sites: Sites) -> None:
    """What is submitted is a text made of the file: its lines are nobody's."""
    err = sssjob("submit", "job.xml", *BOTH).err
    assert "job.xml:/Job: SSS503 info one: stdout goes to job-one.out\n" in err
    assert not any(line.startswith("-:") for line in err.splitlines())


def test_refused_everywhere(sssjob: Command, sites: Sites) -> None:
    sites.offer("nosuch")
    sites.beta.fault("qsub", stderr="Unable to run job: job rejected: no\n", exit=1, times=-1)
    answer = sssjob("submit", "job.xml", *BOTH, "--retries", "0")
    assert answer.code == 5
    assert [outcome for _, _, outcome in listed(sssjob)] == ["failed", "failed"]
    with open_journal() as journal:
        assert open_routes(journal) == []


def test_one_that_waits_too_long_is_moved(sssjob: Command, sites: Sites) -> None:
    """The cancel is proved before the next submission; whoever waits for the job waits for it where it goes."""
    sites.alpha.set(wait=1e6)
    assert sssjob("submit", "-q", "job.xml", *BOTH, "--reroute-after", "1").code == 0
    assert [job["end"] for job in sites.alpha.jobs()] == [None]
    answer = sssjob("wait", "@1", "--timeout", "60")
    assert answer.code == 0
    assert (sites.ran(), len(sites.alpha.jobs()), len(sites.beta.jobs())) == (["one"], 1, 1)
    (cancelled,) = sites.alpha.jobs()
    assert cancelled["canceled"] and cancelled["end"] <= sites.beta.jobs()[0]["submit"] + 0.1
    assert listed(sssjob) == [("alpha", "batch", "canceled"), ("beta", "all.q", "done")]
    assert "alpha, batch: waited longer than 1 s" in sssjob("log", "@2.1").out


def test_one_that_has_begun_stays(sssjob: Command, sites: Sites) -> None:
    assert sssjob("submit", "-q", "job.xml", *BOTH, "--reroute-after", "0.1").code == 0
    time.sleep(1)
    assert sssjob("wait", "one", "--timeout", "30").code == 0
    assert (sites.ran(), len(sites.alpha.jobs()), sites.beta.jobs()) == (["one"], 1, [])


def test_one_that_its_user_cancels_goes_nowhere(sssjob: Command, sites: Sites) -> None:
    sites.alpha.set(wait=1e6)
    assert sssjob("submit", "-q", "job.xml", *BOTH, "--reroute-after", "600").code == 0
    sssjob("cancel", "one")
    sssjob("list", "--all")
    assert listed(sssjob) == [("alpha", "batch", "canceled")]
    assert (sites.ran(), sites.beta.jobs()) == ([], [])
    with open_journal() as journal:
        assert open_routes(journal) == []


def test_nothing_meets(sssjob: Command, sites: Sites) -> None:
    (sites.folder / "job.xml").write_text("<Job><Id>one</Id><Executable>x</Executable><Processors>9</Processors></Job>")
    answer = sssjob("submit", "-q", "job.xml", *BOTH)
    assert (answer.code, listed(sssjob)) == (1, [])
    assert "it would meet with Processors 4 instead of 9" in answer.out


def test_what_would_go_out(sssjob: Command, sites: Sites) -> None:
    answer = sssjob("submit", "-q", "job.xml", *BOTH, "--dry-run")
    assert (answer.code, "#SBATCH --partition=batch" in answer.out, listed(sssjob)) == (0, True, [])


@pytest.mark.parametrize(("options", "message"), [
    (("job.xml", "--executor", "slurm"), "say where jobs go, and go without --site and --executor"),
    (("job.xml", "--token", "x", "--dry-run"), "goes without --dry-run"),
])
def test_refusals(sssjob: Command, sites: Sites, options: tuple[str, ...], message: str) -> None:
    answer = sssjob("submit", *options, *BOTH)
    assert (answer.code, message in answer.err) == (2, True)


def test_a_request_of_that_name_is_made_once(sssjob: Command, sites: Sites) -> None:
    """Also of several files, and of another document not at all."""
    (sites.folder / "two.xml").write_text((sites.folder / "job.xml").read_text().replace("one", "two"))
    for _ in range(2):
        answer = sssjob("submit", "-q", "job.xml", "two.xml", *BOTH, "--token", "mine")
        assert (answer.code, answer.out) == (0, "one\ntwo\n"), answer.err
    assert sssjob("submit", "-q", "two.xml", *BOTH, "--token", "mine").code == 0         # one of its own
    assert sssjob("wait", "@1", "@2", "@3", "--timeout", "60").code == 0
    assert sorted(sites.ran()) == ["one", "two", "two"]
    answer = sssjob("submit", "-q", "two.xml", "job.xml", *BOTH, "--token", "mine")
    assert (answer.code, "the request 'mine 1' was made for another document" in answer.err) == (2, True)
    sites.alpha.fault("sbatch", stderr="no\n", exit=1, times=-1)
    sites.beta.fault("qsub", stderr="no\n", exit=1, times=-1)
    for _ in range(2):
        answer = sssjob("submit", "job.xml", *BOTH, "--token", "nowhere", "--retries", "0")
        assert (answer.code, "no site took it" in answer.err) == (5, True)


def test_what_the_document_is_to_be_and_what_is_done_at_its_end(sssjob: Command, sites: Sites) -> None:
    (sites.folder / "job.xml").write_text(
        "<JobGroup><Id>g</Id><Job><Id>bad</Id><Executable>/bin/false</Executable></Job><Job><Id>many</Id>"
        "<Executable>/bin/sleep</Executable><Arguments>600</Arguments>"
        "<Extension type='Scheduler' name='Array'>1-2</Extension></Job></JobGroup>")
    answer = sssjob("submit", "-q", "job.xml", *BOTH, "--fail-fast", "--expand-arrays", "--on-end",
                    "sh -c 'echo $SSSJOB_ID >> ends'")
    assert answer.out.splitlines()[0] == "bad" and len(answer.out.splitlines()) == 3, answer
    sssjob("wait", "g", "--timeout", "60")
    assert sorted((sites.folder / "ends").read_text().split()) == ["bad", "many_1", "many_2"]
    assert {outcome for _, _, outcome in listed(sssjob)[1:]} == {"canceled"}


RATES = ("name = '{0}'\nversion = '1'\ncurrency = '{1}'\nprecision = 2\n[[rate]]\ntype = 'VBF'\nname = 'Processors'\n"
         "rate = {2}\n[[rate]]\ntype = 'VBR'\nname = 'Processors'\nrate = 0.01\nper = 'hour'\n")


def facts(text: str) -> dict[str, list[str]]:
    """The Extensions of the first job by which a router says what it did."""
    job = next(iter(read_document(text.encode()).jobs()))[0]
    return {name: [p.text for p in job.all("Extension") if p.get("name") == name] for name in PLACED}


def test_where_it_is_and_why_and_its_price(sssjob: Command, sites: Sites) -> None:
    """The document says so from its submission to its bill; a document that goes elsewhere says nothing of it."""
    (sites.folder / "job.xml").write_text((sites.folder / "job.xml").read_text().replace(
        "</Job>", "<Requested><Processors>1</Processors><Duration>3600</Duration></Requested></Job>"))
    for name, currency, fee, queue in (("alpha", "EUR", 1, "nosuch"), ("beta", "CHF", 2, "all.q")):
        (sites.folder / f"{name}-rates.toml").write_text(RATES.format(name, currency, fee))
        offer = OFFER.format(queue, 4).replace("</Job>", "<Duration>9999</Duration></Job>")
        (sites.folder / f"{name}.xml").write_text(offer)
        with (sites.folder / f"{name}.toml").open("r+") as file:
            text = file.read()
            file.seek(0)
            file.write(f"rates = '{name}-rates.toml'\n{text}")
    assert sssjob("submit", "-q", "job.xml", *BOTH).code == 0
    assert sssjob("wait", "one", "--timeout", "60").code == 0
    document = sssjob("status", "@2").out
    promise = facts(document)
    assert promise["Site"] == ["beta"] and promise["Price"] == ["2.01 CHF"]
    assert promise["Route"][0] == "rank 2 of 2, preference 1, 2.01 CHF"
    assert promise["Route"][1].startswith("alpha, nosuch: refused: ") and len(promise["Route"]) == 2
    assert facts(sssjob("status", "@1").out)["Site"] == ["alpha"]
    (sites.folder / "done.xml").write_text(document)
    shown = sssjob("show", "done.xml").out
    assert "beta" in shown and "2.01 CHF" in shown and "rank 2 of 2" in shown
    charged = sssjob("charge", "done.xml", "--sites", "alpha.toml,beta.toml")
    assert charged.code == 0 and "beta: 1 job: 1 charged, 2.00 CHF" in charged.err, charged
    assert '<Charge units="CHF">2.00</Charge>' in charged.out
    for sites_named, status, message in (
            ("alpha.toml", 0, "no-rates (it was run at beta, which is none of --sites)"), (",", 2, "names no site"),
            ("alpha.toml,alpha.toml", 2, "two profiles are called alpha")):
        answer = sssjob("charge", "done.xml", "--sites", sites_named)
        assert message in answer.err and answer.code == status, answer
    assert sssjob("charge", "done.xml", "--sites", "beta.toml", "--rates", "beta-rates.toml").code == 2
    assert sssjob("charge", "job.xml", "--sites", "beta.toml").err.count("it does not say at which site") == 1
    assert sssjob("submit", "-q", "done.xml", "--site", "beta.toml").code == 0
    assert facts(sssjob("status", "@3").out) == {"Site": ["beta"], "Route": [], "Price": []}


@pytest.mark.parametrize("site", ["alpha", "gamma"])
def test_what_is_run_at_a_site_is_charged_by_its_rates(sssjob: Command, sites: Sites, site: str,
                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    """An array says so once, for the whole; a run by no profile takes it away. gamma is this machine, where jobs are
    run without a journal if there can be none."""
    (sites.folder / "rates.toml").write_text(RATES.format(site, "EUR", 1))
    manager = "local" if site == "gamma" else "slurm"
    (sites.folder / f"{site}.toml").write_text(
        f"name = '{site}'\nmanager = '{manager}'\nrates = 'rates.toml'\n{RUN}")
    (sites.folder / "many.xml").write_text(
        "<JobGroup><Id>g</Id><Job><Id>one</Id><Executable>/bin/true</Executable></Job><Job><Id>many</Id>"
        "<Executable>/bin/true</Executable><Extension type='Scheduler' name='Array'>1-2</Extension></Job></JobGroup>")
    if site == "gamma":
        monkeypatch.setenv("SSSJOB_JOURNAL", "/dev/null/j.db")
    assert sssjob("run", "-q", "many.xml", "--site", f"{site}.toml", "-o", "done.xml").code == 0
    named = [[p.text for p in job.all("Extension") if p.get("name") == "Site"]
            for job, _ in read_document((sites.folder / "done.xml").read_bytes()).jobs()]
    assert named == [[site], [site]]
    charged = sssjob("charge", "done.xml", "--sites", f"{site}.toml")
    assert charged.code == 0 and f"{site}: 2 jobs: 2 charged" in charged.err, charged
    assert sssjob("run", "-q", "done.xml", "--executor", "local", "-o", "again.xml").code == 0
    assert 'name="Site"' not in (sites.folder / "again.xml").read_text()


def test_many_over_three_sites(sssjob: Command, sites: Sites, monkeypatch: pytest.MonkeyPatch) -> None:
    """The router is killed again and again, a site refuses all from some time on, another one has what it took wait:
    each job runs once, and each document says where, why there and for how much."""
    queues = ("batch", "all.q", "desk")
    (sites.folder / "gamma.toml").write_text("name = 'gamma'\nmanager = 'local'\nrates = 'rates.toml'\n")
    (sites.folder / "rates.toml").write_text(RATES.format("r", "EUR", 1))
    for name in ("alpha", "beta"):
        profile = sites.folder / f"{name}.toml"
        profile.write_text(f"rates = 'rates.toml'\n{profile.read_text()}")
    for name, queue in zip(("alpha", "beta", "gamma"), queues, strict=True):
        (sites.folder / f"{name}.xml").write_text(
            OFFER.format(queue, 4).replace("</Job>", "<Duration>99</Duration></Job>"))
    files = []
    for number in range(6):
        first, second, third = (queues[(number + more) % 3] for more in range(3))
        files.append(f"{number}.xml")
        (sites.folder / files[-1]).write_text(
            f"<Job><Id>job{number}</Id><Executable>/bin/sh</Executable><Arguments>-c 'echo job{number} &gt;&gt; ran'"
            "</Arguments><Requested><Processors>1</Processors><Duration>60</Duration>"
            f"<Queue preference='3' group='+1'>{first}</Queue><Queue preference='2'>{second}</Queue>"
            f"<Queue preference='1' group='-1'>{third}</Queue></Requested></Job>")
    words = ["submit", "-q", *files, *BOTH, "--offers", "gamma.toml=gamma.xml", "--token", "all",
             "--reroute-after", "1"]
    sites.alpha.set(wait=1e6)
    draw = random.Random(19)
    for kill in range(20):
        with forks.Command(words, sites.folder, os.environ | forks.shared()) as router:
            if kill < 5:
                time.sleep(draw.uniform(0.05, 0.6))
            else:
                router.communicate(60)
        with open_journal() as journal:
            taken = journal.ask("SELECT 1 FROM jobs j JOIN submissions s ON s.number = j.submission WHERE "
                                "s.site = 'beta' AND j.native_id IS NOT NULL", {})
        if taken:           # what it took runs there
            sites.beta.fault("qsub", stderr="Unable to run job: job rejected: no\n", exit=1, times=-1)
        if kill >= 5:
            break
    assert router.returncode == 0
    until = time.monotonic() + 60
    while open_ones := [one for one in listed_records(sssjob, "--timeout", "20") if one["outcome"] is None]:
        assert time.monotonic() < until, open_ones
    assert sorted(sites.ran()) == [f"job{number}" for number in range(6)]
    records = listed_records(sssjob, "--offline")
    done = {one["id"]: one for one in records if one["outcome"] == "done"}
    assert sorted(done) == sorted(sites.ran())
    assert {one["site"] for one in done.values()} == {"beta", "gamma"}       # all that waited at alpha was moved
    for name, one in done.items():
        route = facts(sssjob("status", one["key"]).out)
        assert (route["Site"], route["Price"], route["Route"][0].partition(",")[0]) == (
            [one["site"]], ["1.00 EUR"], f"rank {len(route['Route'])} of 3"), name
    (sites.folder / "done.xml").write_text(sssjob("status", done["job0"]["key"]).out)
    assert "1 charged, 1.00 EUR" in sssjob("charge", "done.xml", "--sites", "alpha.toml,beta.toml,gamma.toml").err


def listed_records(sssjob: Command, *options: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in sssjob("list", "--all", "--json", *options).out.splitlines()]


#: Of jobs: numbers would be native ids too, and then a job is called by its key.
NAMES = "abcdefgh"


def test_many_go_together(sssjob: Command, sites: Sites) -> None:
    """What waits too long is moved together: the managers are asked as often as for one; and one process looks after
    all jobs that go out together on this machine."""
    (sites.folder / "gamma.toml").write_text("name = 'gamma'\nmanager = 'local'\n")
    (sites.folder / "gamma.xml").write_text(OFFER.format("desk", 4))
    files = [f"{name}.xml" for name in NAMES]
    for file in files:
        (sites.folder / file).write_text((sites.folder / "job.xml").read_text().replace("one", file.partition(".")[0])
                                         .replace("ran", "ran; echo $PPID >> keepers"))
    words = ["submit", "-q", *files, "--offers", "alpha.toml=alpha.xml", "--offers", "gamma.toml=gamma.xml",
             "--reroute-after", "1", "--token", "all"]      # not yet while they are submitted
    sites.alpha.set(wait=1e6)
    assert sssjob(*words).out.split() == list(NAMES)
    time.sleep(1.1)
    before = len(sites.alpha.calls("squeue"))
    assert sssjob(*words).code == 0
    assert sssjob("wait", *(f"@{number}" for number in range(9, 17)), "--timeout", "60").code == 0
    assert sorted(sites.ran()) == list(NAMES)
    assert [outcome for site, _, outcome in listed(sssjob) if site == "alpha"] == ["canceled"] * 8
    assert len(sites.alpha.calls("squeue")) - before < 16
    assert len(set((sites.folder / "keepers").read_text().split())) == 1


def test_one_that_cannot_be_read_leaves_those_before_it(sssjob: Command, sites: Sites) -> None:
    (sites.folder / "two.xml").write_text((sites.folder / "job.xml").read_text().replace("one", "two"))
    answer = sssjob("submit", "-q", "job.xml", "nowhere.xml", "two.xml", *BOTH)
    assert (answer.code, answer.out) == (3, "one\n")
    assert "nowhere.xml" in answer.err
    assert len(listed(sssjob)) == 1


def test_options_of_sites_alone(sssjob: Command, sites: Sites) -> None:
    for options in (("--starts",), ("--reroute-after", "5")):
        answer = sssjob("submit", "job.xml", *options)
        assert (answer.code, "go with --sites" in answer.err) == (2, True)
    (sites.folder / "alpha.toml").write_text("name = 'alpha'\n")
    answer = sssjob("submit", "job.xml", "--offers", "alpha.toml=alpha.xml")
    assert (answer.code, "manager is missing" in answer.err) == (2, True)
