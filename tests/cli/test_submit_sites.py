"""``submit --sites``: to the best site, to the next where that refuses a document or has it wait, and only once."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from sssjob.run.journal import open_journal
from sssjob.run.routing import open_routes
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
    found = Sites(tmp_path, *(lab.install(str(fake.__file__), fake.COMMANDS, tmp_path / name, tmp_path / "bin")
                              for name, fake in (("alpha", slurm), ("beta", sge))))
    found.offer("batch")
    yield found
    found.alpha.close()
    found.beta.close()


def listed(sssjob: Command, *options: str) -> list[tuple[object, ...]]:
    """Site, queue, outcome of all jobs in the journal."""
    records = [json.loads(line) for line in sssjob("list", "--all", "--json", "--offline", *options).out.splitlines()]
    return [(one.get("site"), one["queue"], one["outcome"]) for one in records]


def test_to_the_best_one(sssjob: Command, sites: Sites) -> None:
    answer = sssjob("submit", "-q", "job.xml", *BOTH)
    assert (answer.code, answer.out) == (0, "one\n"), answer.err
    assert sssjob("wait", "one", "--timeout", "30").code == 0
    assert (sites.ran(), len(sites.alpha.jobs()), sites.beta.jobs()) == (["one"], 1, [])
    assert listed(sssjob) == listed(sssjob, "--site", "alpha") == [("alpha", "batch", "done")]
    assert listed(sssjob, "--site", "beta") == []
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
    reason = "alpha, nosuch: refused: "
    assert reason in answer.err and "Invalid partition name specified" in answer.err
    assert sssjob("wait", "one", "--timeout", "30").code == 0
    assert (sites.ran(), sites.alpha.jobs(), len(sites.beta.jobs())) == (["one"], [], 1)
    assert listed(sssjob) == [("alpha", "nosuch", "failed"), ("beta", "all.q", "done")]
    assert f"routed to beta: rank 2 of 2, preference 1, no price (the profile names no rates); {reason}" in sssjob(
        "log", "one").out
    first = sssjob("route", "-q", "job.xml", *BOTH).out.splitlines()
    assert first[0].startswith("1. beta, ") and "refused 100% of late" in first[1]


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
    (("job.xml", "--executor", "slurm"), "--sites and --offers take one FILE, and go without"),
    (("job.xml", "--token", "x"), "--sites and --offers take one FILE, and go without"),
    (("job.xml", "job.xml"), "--sites and --offers take one FILE, and go without"),
])
def test_refusals(sssjob: Command, sites: Sites, options: tuple[str, ...], message: str) -> None:
    answer = sssjob("submit", *options, *BOTH)
    assert (answer.code, message in answer.err) == (2, True)


def test_options_of_sites_alone(sssjob: Command, sites: Sites) -> None:
    for options in (("--starts",), ("--reroute-after", "5")):
        answer = sssjob("submit", "job.xml", *options)
        assert (answer.code, "go with --sites" in answer.err) == (2, True)
    (sites.folder / "alpha.toml").write_text("name = 'alpha'\n")
    answer = sssjob("submit", "job.xml", "--offers", "alpha.toml=alpha.xml")
    assert (answer.code, "manager is missing" in answer.err) == (2, True)
