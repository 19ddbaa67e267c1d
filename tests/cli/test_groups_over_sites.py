"""``submit --sites`` of a group: jobs that do not depend on each other go each to the best site, and stay one group."""

from __future__ import annotations

import json
import sys
import time

import pytest

from sssjob.cli._top_tables import key_of
from sssjob.run import routing
from sssjob.run.journal import open_journal
from sssjob.run.overview import overview
from sssjob.run.routing import open_routes
from sssjob.xml.reader import read_document
from tests.cli.conftest import Command
from tests.cli.test_submit_sites import BOTH, OFFER, RATES, Sites, facts, listed
from tests.cli.test_submit_sites import sites as sites

JOB = ("<Job><Id>{0}</Id>{1}<Executable>/bin/sh</Executable><Arguments>-c 'echo {0} &gt;&gt; ran'</Arguments>"
       "<Requested><Processors>1</Processors><Duration>3600</Duration>{2}</Requested></Job>")
AFTER = "<Dependency designator='JobId'>{}</Dependency>"
QUEUE = "<Queue>{}</Queue>"
#: Of a group: c comes after a, the others depend on nothing; d is an array.
GROUP = ("<JobGroup awarenessPolicy='Warn'><Id>g</Id><JobDefaults><Name>all</Name></JobDefaults>"
         + JOB.format("a", "", QUEUE.format("batch")) + JOB.format("b", "", QUEUE.format("all.q"))
         + JOB.format("c", AFTER.format("a"), "")
         + JOB.format("d", "<Extension type='Scheduler' name='Array'>1-2</Extension>", QUEUE.format("all.q"))
         + "</JobGroup>")


@pytest.fixture(autouse=True)
def group(sites: Sites) -> None:
    (sites.folder / "g.xml").write_text(GROUP)
    for name, queue in (("alpha", "batch"), ("beta", "all.q")):
        offer = OFFER.format(queue, 4).replace("</Job>", "<Duration>9999</Duration></Job>")
        (sites.folder / f"{name}.xml").write_text(offer)


def jobs_of(text: str) -> dict[str, str]:
    """The jobs of a document, which is one, in their order: where each went."""
    document = read_document(text.encode())
    return {str(job.value("Id")): next((p.text for p in job.all("Extension") if p.get("name") == "Site"), "")
            for job, _ in document.jobs()}


def test_each_part_to_its_site(sssjob: Command, sites: Sites) -> None:
    """Whoever asks for the group by its Id gets all of it in one document, each job with site, reason and price."""
    (sites.folder / "rates.toml").write_text(RATES.format("r", "EUR", 1))
    for name in ("alpha", "beta"):
        profile = sites.folder / f"{name}.toml"
        profile.write_text(f"rates = 'rates.toml'\n{profile.read_text()}")
    answer = sssjob("submit", "-q", "g.xml", *BOTH)
    assert (answer.code, answer.out) == (0, "a\nb\nc\nd_1\nd_2\n"), answer.err
    answer = sssjob("wait", "g", "--timeout", "60")
    assert answer.code == 0, answer
    assert sorted(sites.ran()) == ["a", "b", "c", "d", "d"]
    assert sites.ran().index("a") < sites.ran().index("c")
    document = sssjob("status", "g").out
    assert jobs_of(document) == {"a": "alpha", "b": "beta", "c": "alpha", "d": "beta"}
    whole = read_document(document.encode())
    (body,) = whole.groups()
    assert (body.value("State"), body.attributes["awarenessPolicy"]) == ("Completed", "Warn")
    assert body.defaults is not None and body.defaults.value("Name") == "all"
    assert facts(document) == {"Site": ["alpha"], "Route": ["rank 1 of 1, preference 1, 2.02 EUR"],
                               "Price": ["1.01 EUR"]}
    records = [json.loads(line) for line in sssjob("list", "--all", "--json", "--offline").out.splitlines()]
    assert [(one["key"], one["id"], one["site"]) for one in records if "key" in one] == [
        ("@1.1", "a", "alpha"), ("@1.2", "c", "alpha"), ("@2.1", "b", "beta"), ("@3.1", "d_1", "beta"),
        ("@3.2", "d_2", "beta")]
    with open_journal() as journal:
        assert open_routes(journal) == []


def test_findings_name_the_jobs_of_the_whole_group(sssjob: Command, sites: Sites) -> None:
    """Each part is a document of its own, in which its jobs have other numbers."""
    findings = [json.loads(line) for line in sssjob("submit", "g.xml", *BOTH, "--json").err.splitlines()]
    assert [(one["path"], one["message"]) for one in findings if ": stdout goes to " in one.get("message", "")] == [
        (f"/JobGroup/Job[{number}]", f"{name}: stdout goes to job-{name}.out")
        for number, name in ((1, "a"), (3, "c"), (2, "b"), (4, "d_1"))]


def test_what_depends_on_what_decides_alone(sssjob: Command, sites: Sites) -> None:
    """`route` says of each part where it would go, and the dry run what goes out there; nothing is submitted."""
    answer = sssjob("route", "-q", "g.xml", *BOTH)
    lines = answer.out.splitlines()
    assert (answer.code, lines[0], lines[3], lines[6]) == (0, "a, c:", "b:", "d:")
    assert [line.partition(":")[0] for line in lines[1:3] + lines[4:6]] == [
        "1. alpha, alpha.xml", "-  beta, beta.xml", "1. beta, beta.xml", "-  alpha, alpha.xml"]
    records = [json.loads(line) for line in sssjob("route", "-q", "g.xml", *BOTH, "--json").out.splitlines()]
    assert [(one["jobs"], one["site"], one["rank"]) for one in records] == [
        (jobs, *place) for jobs, *places in ((["a", "c"], "alpha", "beta"), (["b"], "beta", "alpha"),
                                             (["d"], "beta", "alpha")) for place in zip(places, (1, None), strict=True)]
    rehearsed = sssjob("submit", "-q", "g.xml", *BOTH, "--dry-run")
    assert rehearsed.code == 0 and rehearsed.out.startswith("a, c: alpha\n") and "\nb: beta\n" in rehearsed.out
    assert rehearsed.out.count("#SBATCH --partition=batch") == 2 and listed(sssjob) == []
    assert sssjob("route", "-q", "g.xml", *BOTH, "--dry-run").out.count("-q all.q") == rehearsed.out.count("-q all.q")
    together = sssjob("route", "-q", "g.xml", *BOTH, "--together")
    assert together.code == 1 and together.out.count("not met") == 2


@pytest.mark.parametrize("option", ["--together", "--fail-fast", "--max-queued=1"])
def test_what_is_to_stay_together_does(sssjob: Command, sites: Sites, option: str) -> None:
    (sites.folder / "g.xml").write_text(
        "<JobGroup><Id>g</Id>" + JOB.format("a", "", "") + JOB.format("b", "", "") + "</JobGroup>")
    assert sssjob("submit", "-q", "g.xml", *BOTH, option).out == "a\nb\n"
    assert sssjob("wait", "@1", "--timeout", "60").code == 0
    assert sorted(sites.ran()) == ["a", "b"]


def test_one_that_fits_nowhere_keeps_all_back(sssjob: Command, sites: Sites) -> None:
    (sites.folder / "g.xml").write_text(GROUP.replace("all.q", "gone", 1))
    answer = sssjob("submit", "-q", "g.xml", *BOTH)
    assert answer.code == 1 and answer.out.startswith("b:\n-  alpha, alpha.xml: not met: ") and "a, c" not in answer.out
    assert listed(sssjob) == []
    with open_journal() as journal:
        assert open_routes(journal) == []


@pytest.mark.parametrize("policy", ["Reject", "Warn"])
def test_one_that_cannot_be_planned_keeps_all_back(sssjob: Command, sites: Sites, policy: str) -> None:
    """A mistake in one part is no reason to have half of a group."""
    text = GROUP.replace("'Warn'", f"'{policy}'").replace("<Id>b</Id>", f"<Id>b</Id>{AFTER.format('nowhere')}")
    (sites.folder / "g.xml").write_text(text)
    answer = sssjob("submit", "-q", "g.xml", *BOTH)
    assert (answer.code, answer.out, listed(sssjob)) == (5, "", []), answer
    assert "beta, beta.xml: not submitted: b depends on nowhere" in answer.err
    assert "nothing is submitted, for no site can take b\n" in answer.err
    with open_journal() as journal:
        assert open_routes(journal) == []


def test_a_part_that_every_site_refuses_is_told(sssjob: Command, sites: Sites) -> None:
    """The others run; the group is what became of all of them."""
    sites.beta.fault("qsub", stderr="Unable to run job: job rejected: no\n", exit=1, times=-1)
    answer = sssjob("submit", "-q", "g.xml", *BOTH, "--retries", "0")
    assert (answer.code, answer.out) == (5, "a\nc\n"), answer
    assert "no site took it: b\n" in answer.err and "no site took it: d\n" in answer.err
    answer = sssjob("wait", "g", "--timeout", "60")
    assert answer.code != 0 and sites.ran() == ["a", "c"]
    assert jobs_of(sssjob("status", "g").out) == {"a": "alpha", "b": "beta", "c": "alpha", "d": "beta"}


def test_the_same_request_is_made_once(sssjob: Command, sites: Sites) -> None:
    for _ in range(2):
        assert sssjob("submit", "-q", "g.xml", *BOTH, "--token", "mine").out == "a\nb\nc\nd_1\nd_2\n"
    assert sssjob("wait", "g", "--timeout", "60").code == 0
    assert sorted(sites.ran()) == ["a", "b", "c", "d", "d"]
    (sites.folder / "g.xml").write_text(GROUP.replace("<Id>c</Id>", "<Id>e</Id>"))
    answer = sssjob("submit", "-q", "g.xml", *BOTH, "--token", "mine")
    assert (answer.code, "was made for another document" in answer.err) == (2, True)


def test_a_part_that_waits_too_long_is_moved_alone(sssjob: Command, sites: Sites) -> None:
    """Whoever waits for the group waits for the part where it goes, and sees each job once."""
    sites.alpha.set(wait=1e6)
    (sites.folder / "g.xml").write_text(
        "<JobGroup><Id>g</Id>" + JOB.format("a", "", "") + JOB.format("b", "", QUEUE.format("all.q")) + "</JobGroup>")
    assert sssjob("submit", "-q", "g.xml", *BOTH, "--reroute-after", "0.5").out == "a\nb\n"
    assert sssjob("wait", "g", "--timeout", "60").code == 0
    assert sorted(sites.ran()) == ["a", "b"]
    assert listed(sssjob) == [("alpha", "batch", "canceled"), ("beta", "all.q", "done"), ("beta", "all.q", "done")]
    document = sssjob("status", "g").out
    assert jobs_of(document) == {"a": "beta", "b": "beta"}
    assert facts(document)["Route"][1] == "alpha, batch: waited longer than 0.5 s"


@pytest.mark.parametrize("killed", [False, True])
def test_the_whole_group_is_cancelled(sssjob: Command, sites: Sites, monkeypatch: pytest.MonkeyPatch, killed: bool
                                      ) -> None:
    """Also the parts that a client which was killed had not submitted yet; nothing of it runs afterwards."""
    sites.alpha.set(wait=1e6)
    sites.beta.set(wait=1e6)
    with monkeypatch.context() as patch:
        if killed:
            patch.setattr(routing, "_submitted", lambda client, routes, findings_of, submitted=routing._submitted:
                          submitted(client, routes[:1], findings_of) and sys.exit(9))
        sssjob("submit", "-q", "g.xml", *BOTH)
    sssjob("cancel", "g")
    sssjob("list")
    assert [outcome for _, _, outcome in listed(sssjob)] == ["canceled"] * 5
    assert sites.ran() == []


def test_the_group_is_run_again_as_one(sssjob: Command, sites: Sites) -> None:
    """Twice, for what is run again is a group as well."""
    assert sssjob("submit", "-q", "g.xml", *BOTH).code == 0
    assert sssjob("wait", "g", "--timeout", "60").code == 0
    for times in (2, 3):
        assert sorted(sssjob("rerun", "g").out.split()) == ["a", "b", "c", "d_1", "d_2"]
        assert sssjob("wait", "g", "--timeout", "60").code == 0
        assert sorted(sites.ran()) == sorted(["a", "b", "c", "d", "d"] * times)
    assert sorted(jobs_of(sssjob("status", "g").out)) == ["a", "b", "c", "d"]


def test_two_groups_of_one_name_are_two(sssjob: Command, sites: Sites) -> None:
    sites.alpha.set(wait=1e6)
    for _ in range(2):
        assert sssjob("submit", "-q", "g.xml", *BOTH).code == 0
    answer = sssjob("wait", "g", "--timeout", "1")
    assert (answer.code, "'g' is the name of several jobs that have not ended" in answer.err) == (2, True)
    sssjob("cancel", "@1", "@2", "@3")
    sssjob("cancel", "g")
    assert {outcome for _, _, outcome in listed(sssjob)} <= {"canceled", "done"}


def test_together_is_of_sites_alone(sssjob: Command, sites: Sites) -> None:
    answer = sssjob("submit", "g.xml", "--together")
    assert (answer.code, "--together go with --sites" in answer.err) == (2, True)


@pytest.mark.parametrize(("rates", "places"), [
    (("", ""), ["alpha", "beta", "alpha", "beta", "alpha"]),
    (("1", "2"), ["alpha"] * 5),            # the price decides before the turn
])
def test_what_a_part_takes_is_not_free_for_the_next_one(sssjob: Command, sites: Sites, rates: tuple[str, str],
                                                        places: list[str]) -> None:
    """Jobs of three processors over two sites of four: by turns, where nothing else decides."""
    for name, rate in zip(("alpha", "beta"), filter(None, rates), strict=False):
        (sites.folder / f"{name}-rates.toml").write_text(RATES.format("r", "EUR", rate))
        profile = sites.folder / f"{name}.toml"
        profile.write_text(f"rates = '{name}-rates.toml'\n{profile.read_text()}")
    jobs = "".join(JOB.format(name, "", "").replace(">1</Processors>", ">3</Processors>") for name in "abcde")
    # f waits for a, and is where that is; it takes nothing while a runs
    jobs += JOB.format("f", AFTER.format("a"), "")
    (sites.folder / "g.xml").write_text(f"<JobGroup><Id>g</Id>{jobs}</JobGroup>")
    best = [json.loads(line) for line in sssjob("route", "-q", "g.xml", *BOTH, "--json").out.splitlines()]
    assert [one["site"] for one in best if one["rank"] == 1] == places
    if not rates[0]:
        assert [one["turn"] for one in best if one["rank"] == 1] == [0, 0, 1, 1, 2]
        last = sssjob("route", "-q", "g.xml", *BOTH).out.splitlines()[-2]
        assert last.startswith("1. alpha, ") and last.endswith("room in turn 3 of the group")


@pytest.mark.parametrize(("factor", "places"), [("", "alpha alpha"), (' performanceFactor="0.5"', "alpha beta")])
def test_a_part_goes_to_a_dearer_place_where_its_factor_says_so(sssjob: Command, sites: Sites, factor: str,
                                                                places: str) -> None:
    """The example of docs/sites.md: an hour of waiting takes off half of the value of the cheap place."""
    for name, rate in (("alpha", "1"), ("beta", "2")):
        (sites.folder / f"{name}-rates.toml").write_text(RATES.format("r", "EUR", rate))
        profile = sites.folder / f"{name}.toml"
        profile.write_text(f"rates = '{name}-rates.toml'\n{profile.read_text()}")
        (sites.folder / f"{name}.xml").write_text(
            "<Job><Id>q</Id><Queue>q</Queue><Processors>4</Processors><Duration>7200</Duration>"
            '<Extension type="Scheduler" name="EstimatedWait">0</Extension></Job>')
    jobs = "".join(f"<Job><Id>{name}</Id><Executable>/bin/true</Executable><Requested><Processors{factor}>4"
                   "</Processors><Duration>3600</Duration></Requested></Job>" for name in "ab")
    (sites.folder / "g.xml").write_text(f"<JobGroup><Id>g</Id>{jobs}</JobGroup>")
    rows = [json.loads(line) for line in sssjob("route", "-q", "g.xml", *BOTH, "--starts", "--json").out.splitlines()]
    assert " ".join(one["site"] for one in rows if one["rank"] == 1) == places
    assert [(one["turn"], one["value"], one["starts_in"]) for one in rows if one["site"] == "alpha"] == [
        (0, 1, 0), (1, 0.5 if factor else 1, 3600)]


def test_the_parts_of_a_group_are_one_line_of_top(sssjob: Command, sites: Sites) -> None:
    """Also when one of them has ended, and whatever is wished for is for all of them."""
    (sites.folder / "g.xml").write_text(GROUP.replace("echo b", "sleep 30; echo b"))
    assert sssjob("submit", "-q", "g.xml", *BOTH).code == 0
    assert sssjob("wait", "a", "c", "d", "--timeout", "60").code == 0
    with open_journal() as journal:
        (line,) = overview(journal, time.time())
    assert (key_of(line), line.name, line.executors, line.done, line.queued + line.running) == (
        "@1 @2 @3", "g", ["slurm", "sge"], 4, 1)
    table = sssjob("top", "--once").out
    assert table.count("@1 @2 @3  g") == 1 and "1 job: " in table
    sssjob("cancel", *key_of(line).split(), "--timeout", "30")
    assert sssjob("top", "--once").out == "no job waits or runs\n"
