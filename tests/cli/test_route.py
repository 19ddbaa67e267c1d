"""``sssjob route``: which offers of which sites meet a document, in which order, and why the others do not."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Command

RATES = ("name = 'r'\nversion = '1'\ncurrency = 'EUR'\nprecision = 2\n"
         "[[rate]]\ntype = 'VBR'\nname = 'Processors'\nrate = {}\nper = 'hour'\n")
OFFER = "<Job><Id>{0}</Id><Queue>{0}</Queue><NodeCount>{1}</NodeCount><Processors>{2}</Processors>" \
        "<Duration>{3}</Duration></Job>"


@pytest.fixture
def sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script and two sites: alpha with two queues, beta, which calls its queue otherwise."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.sh").write_text("#!/bin/sh\n#SBATCH -N 2 -n 8 -t 30 -p batch\ndate\n")
    (tmp_path / "alpha.toml").write_text("name = 'alpha'\n")
    (tmp_path / "beta.toml").write_text("name = 'beta'\n[map.Queue]\nbatch = 'long'\n")
    (tmp_path / "alpha.xml").write_text(
        "<JobGroup><Id>alpha</Id>" + OFFER.format("batch", 4, 16, 3600) + OFFER.format("debug", 1, 4, 60)
        + "</JobGroup>")
    (tmp_path / "beta.xml").write_text(OFFER.format("long", 100, 6400, 86400))
    return tmp_path


BOTH = ("--offers", "alpha.toml=alpha.xml", "--offers", "beta.toml=beta.xml")
NO_RATES = "no price (the profile names no rates)"
DEBUG = ("-  alpha, debug: not met: Duration = 1800: offered 60 (more than is offered); NodeCount = 2: offered 1 (more "
         "than is offered); Queue = batch: offered debug; Processors >= 8: offered 4 (8 tasks)\n")


def test_in_the_order_given(sssjob: Command, sites: Path) -> None:
    """Each site is asked with its own names of queues."""
    answer = sssjob("route", "-q", "job.sh", *BOTH)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out == (f"1. alpha, batch: met, preference 1, {NO_RATES}\n"
                          f"2. beta, beta.xml: met, preference 1, {NO_RATES}\n{DEBUG}")


def test_what_is_wrong_with_the_document_is_told_once(sssjob: Command, sites: Path) -> None:
    """It is read for each site, with its own names."""
    (sites / "job.sh").write_text("#!/bin/sh\n#SBATCH -n 8 -t 30\n#SBATCH --parsable\ndate\n")
    lines = sssjob("route", "job.sh", *BOTH).err.splitlines()
    assert lines and len(set(lines)) == len(lines)
    assert sum("SBATCH that Slurm obeys" in line for line in lines) == 1


def test_the_cheaper_first_and_no_price_last(sssjob: Command, sites: Path) -> None:
    (sites / "dear.toml").write_text(RATES.format("1"))
    (sites / "cheap.toml").write_text(RATES.format("0.5"))
    with (sites / "alpha.toml").open("a") as profile:
        profile.write("rates = 'dear.toml'\n")
    (sites / "beta.toml").write_text("name = 'beta'\nrates = 'cheap.toml'\n[map.Queue]\nbatch = 'long'\n")
    (sites / "gamma.toml").write_text("name = 'gamma'\n")
    (sites / "gamma.xml").write_text(OFFER.format("batch", 2, 8, 1800))
    answer = sssjob("route", "-q", "job.sh", "--offers", "gamma.toml=gamma.xml", *BOTH)
    assert answer.out == ("1. beta, beta.xml: met, preference 1, 2.00 EUR\n"
                          "2. alpha, batch: met, preference 1, 4.00 EUR\n"
                          f"3. gamma, gamma.xml: met, preference 1, {NO_RATES}\n{DEBUG}")
    (sites / "cheap.toml").write_text(RATES.format("0.5").replace("EUR", "CHF"))
    lines = sssjob("route", "-q", "job.sh", *BOTH).out.splitlines()
    assert [line.partition(",")[0] for line in lines] == ["1. alpha", "2. beta", "-  alpha"]


def test_the_price_of_the_queue(sssjob: Command, sites: Path) -> None:
    """Where the rates name queues, the document is quoted for each of those that meet it."""
    (sites / "rates.toml").write_text(RATES.format("1") + "[[rate]]\ntype = 'NBM'\nname = 'Queue'\ninstance = 'debug'\n"
                                      "rate = 3\n")
    (sites / "alpha.toml").write_text("name = 'alpha'\nrates = 'rates.toml'\n")
    (sites / "job.xml").write_text("<Job><Id>1</Id><Requested><Processors>4</Processors><Duration>60</Duration>"
                                   "</Requested></Job>")
    lines = sssjob("route", "-q", "job.xml", *BOTH[:2]).out.splitlines()
    assert lines == ["1. alpha, batch: met, preference 1, 0.07 EUR", "2. alpha, debug: met, preference 1, 0.20 EUR"]


def test_preferences_before_prices(sssjob: Command, sites: Path) -> None:
    (sites / "job.xml").write_text(
        "<Job><Id>1</Id><Requested><Processors>4</Processors>"
        "<Queue preference='3' group='+1'>long</Queue><Queue preference='1' group='-1'>batch</Queue>"
        "</Requested></Job>")
    (sites / "beta.toml").write_text("name = 'beta'\n")
    records = [json.loads(line) for line in sssjob("route", "--json", "job.xml", *BOTH).out.splitlines()]
    assert [(record["rank"], record["site"], record["offer"], record["met"]) for record in records] == [
        (1, "beta", "beta.xml", True), (2, "alpha", "batch", True), (None, "alpha", "debug", False)]
    assert [record["score"] for record in records[:2]] == [0.75, 0.25]


def test_what_is_to_be_left_out_is_said_last(sssjob: Command, sites: Path) -> None:
    (sites / "job.xml").write_text("<Job><Id>1</Id><Requested><Feature>ib</Feature>"
                                   "<Processors>9000</Processors></Requested></Job>")
    lines = sssjob("route", "-q", "job.xml", *BOTH[2:]).out.splitlines()
    assert lines[1] == "     it would meet with Processors 6400 instead of 9000; without Feature = ib"
    (sites / "job.xml").write_text("<Job><Id>1</Id><Requested><Feature>ib</Feature></Requested></Job>")
    lines = sssjob("route", "-q", "job.xml", *BOTH[2:]).out.splitlines()
    assert lines[1] == "     it would meet without Feature = ib"


def test_explain_and_none_that_meets(sssjob: Command, sites: Path) -> None:
    (sites / "job.xml").write_text("<Job><Id>1</Id><Requested><Processors>9000</Processors></Requested></Job>")
    answer = sssjob("route", "-q", "--explain", "job.xml", "--offers", "beta.toml=beta.xml")
    assert answer.code == 1
    assert answer.out == ("-  beta, beta.xml: not met: Processors = 9000: offered 6400 (more than is offered)\n"
                          "     it would meet with Processors 6400 instead of 9000\n"
                          "     - Processors = 9000: offered 6400 (more than is offered)\n")
    assert answer.out.replace("     - Processors = 9000: offered 6400 (more than is offered)\n", "") == sssjob(
        "route", "-q", "job.xml", "--offers", "beta.toml=beta.xml").out
    (record,) = map(json.loads, sssjob("route", "--json", "job.xml", "--offers", "beta.toml=beta.xml").out.splitlines())
    assert (record["changes"], record["value"]) == (["Processors 6400 instead of 9000"], None)
    (sites / "job.xml").write_text("<Job><Id>1</Id>" + "<TaskGroup><NodeCount>101</NodeCount></TaskGroup>" * 101
                                   + "</Job>")
    assert "     no change of single values meets\n" in sssjob(
        "route", "-q", "job.xml", "--offers", "beta.toml=beta.xml").out


def test_what_would_go_out(sssjob: Command, sites: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the best offer, with its queue where the document names none, as a dry run of submit prints it."""
    (sites / "alpha.toml").write_text("name = 'alpha'\nmanager = 'slurm'\n")
    (sites / "job.sh").write_text("#!/bin/sh\n#SBATCH -n 20 -t 30\ndate\n")
    (sites / "beta.toml").write_text("name = 'beta'\nmanager = 'pbs'\n")
    routed = sssjob("route", "-q", "--dry-run", "job.sh", *BOTH)
    assert (routed.code, "#PBS -q long" in routed.out) == (0, True)
    monkeypatch.setenv("SSSJOB_QUEUE", "long")
    direct = sssjob("submit", "-q", "--dry-run", "--site", "beta.toml", "job.sh")
    assert _without_ids(routed.out) == _without_ids(direct.out)
    assert sssjob("route", "-q", "--dry-run", "job.sh", "--offers", "alpha.toml=alpha.xml").code == 1


def _without_ids(text: str) -> str:
    """What is printed, without the names that are drawn anew each time."""
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|sssjob-\w{8}", "ID", text)


SBATCH = """#!/bin/sh
case "$*" in --test-only*) ;; *) exit 9 ;; esac
grep -q partition=debug && { echo "sbatch: error: no" >&2; exit 1; }
echo "sbatch: Job 33 to start at $(date -d @"$(cat "$(dirname "$0")"/start)" +%Y-%m-%dT%H:%M:%S) using 2 processors \\
on nodes n[2-3] in partition batch" >&2
"""


def test_when_it_would_start(sssjob: Command, sites: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slurm is asked for an estimate of the script that would go out; a queue of Grid Engine is one with enough idle
    hosts. performanceFactor weighs the delay against the preference, else it only decides between equals."""
    bin = sites / "bin"
    bin.mkdir()
    fixtures = Path(__file__).parents[1] / "fixtures"
    slurm, sge = fixtures / "slurm-22.05.8" / "machine", fixtures / "gridengine-8.1.9" / "machine"
    for name, text in (("sbatch", SBATCH), ("scontrol", f"#!/bin/sh\ncat {slurm}/show-$3.txt\n"),
                       ("qhost", f"#!/bin/sh\ncat {sge}/qhost-q.xml\n"),
                       ("qconf", f"#!/bin/sh\n[ $1 = -sql ] && exec echo all.q\ncat {sge}/qconf-sq.txt\n")):
        (bin / name).write_text(text)
        (bin / name).chmod(0o755)
    (bin / "start").write_text(str(int(time.time()) + 7200))
    monkeypatch.setenv("PATH", f"{bin}:/usr/bin:/bin")
    (sites / "alpha.toml").write_text("name = 'alpha'\nmanager = 'slurm'\n")
    (sites / "beta.toml").write_text("name = 'beta'\nmanager = 'sge'\n[queues.\"all.q\"]\nduration = 9000\n")
    wishes = "<Queue preference='-1'>batch</Queue>"
    job = "<Job><Id>1</Id><Executable>/bin/true</Executable><Requested><Processors{}>1</Processors>" \
          "<Duration>600</Duration>{}</Requested></Job>"

    def meeting(factor: str, asked: str) -> list[str]:
        (sites / "job.xml").write_text(job.format(factor, asked))
        answer = sssjob("route", "-q", "job.xml", "--starts", "--sites", "alpha.toml,beta.toml")
        return [line for line in answer.out.splitlines() if not line.startswith("- ")]

    lines = meeting("", wishes)
    assert lines[0].startswith("1. alpha, batch: met, preference 1, ") and " starts in 7" in lines[0]
    assert any(line.endswith("start not known (sbatch: error: no)") for line in lines)
    assert any("beta, all.q: met, preference 0, " in line and line.endswith("starts in 0 s") for line in lines)
    # two hours are twelve Durations: a factor of 0.1 takes off 1.2
    lines = meeting(" performanceFactor='0.1'", wishes)
    assert lines[0].startswith("1. beta, all.q: met, preference 0, ")
    assert any(re.search(r"alpha, batch: met, preference 1, value -0\.(19|2)", line) for line in lines[1:])
    # without preferences the earlier one of equals, and those of which nothing is known last
    lines = meeting("", "")
    assert lines[0].startswith("1. beta, all.q") and "start not known" in lines[-1]


def test_what_starts_at_once_starts_now(sssjob: Command, sites: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Managers answer one after the other: that is no delay, which a performanceFactor would weigh against a price."""
    bin = sites / "bin"
    bin.mkdir()
    slurm = Path(__file__).parents[1] / "fixtures" / "slurm-22.05.8" / "machine"
    for name, text in (("sbatch", SBATCH.replace('"$(cat "$(dirname "$0")"/start)"', "$(date +%s)")),
                       ("scontrol", f"#!/bin/sh\ncat {slurm}/show-$3.txt\n")):
        (bin / name).write_text(text)
        (bin / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin}:/usr/bin:/bin")
    (sites / "alpha.toml").write_text("name = 'alpha'\nmanager = 'slurm'\n")
    (sites / "here.toml").write_text("name = 'here'\nmanager = 'local'\n")
    (sites / "job.xml").write_text(
        "<Job><Id>1</Id><Executable>/bin/true</Executable><Requested><Processors performanceFactor='0.9'>1</Processors>"
        "<Duration>2</Duration></Requested></Job>")
    answer = sssjob("route", "--json", "job.xml", "--starts", "--sites", "alpha.toml,here.toml")
    records = [record for record in map(json.loads, answer.out.splitlines()) if record["starts_in"] is not None]
    assert len(records) == 4 and {(record["value"], record["starts_in"]) for record in records} == {(1.0, 0)}



def test_a_start_that_the_offer_states(sssjob: Command, sites: Path) -> None:
    """As a site that publishes GLUE 2.0 does; files without one have no start."""
    glue2 = (Path(__file__).parents[1] / "fixtures" / "arc-constructed" / "machine" / "glue2.xml").read_text()
    (sites / "glue2.xml").write_text(glue2.replace(
        "<FreeSlots>40", "<EstimatedAverageWaitingTime>600</EstimatedAverageWaitingTime><FreeSlots>40"))
    (sites / "job.xml").write_text("<Job><Id>1</Id><Requested><Processors>1</Processors><Duration>60</Duration>"
                                   "</Requested></Job>")
    answer = sssjob("route", "-q", "job.xml", "--starts", "--offers", "alpha.toml=alpha.xml", "--offers",
                    "beta.toml=glue2.xml")
    lines = answer.out.splitlines()
    assert re.fullmatch(r"1\. beta, main: met, preference 1, .*, starts in (5\d\d|600) s", lines[0]), lines
    assert "alpha, batch: met" in lines[1] and "start not known (its manager is not asked)" in lines[1]
    (sites / "glue2.xml").write_text(glue2.replace(
        "<FreeSlots>40", "<EstimatedAverageWaitingTime>soon</EstimatedAverageWaitingTime><FreeSlots>40"))
    assert "EstimatedAverageWaitingTime 'soon' is no number" in sssjob(
        "route", "job.xml", "--offers", "beta.toml=glue2.xml").err


def test_sites_that_read_it_otherwise_are_asked_for_what_they_read(sssjob: Command, sites: Path) -> None:
    """Sites that read the document alike share one reading; a map, a unit or a zone makes another one."""
    (sites / "job.sh").write_text("#!/bin/sh\n#BSUB -n 4 -q batch -M 2000 -W 10\ndate\n")
    offer = ("<Job><Id>{0}</Id><Queue>{0}</Queue><NodeCount>1</NodeCount><Processors>4</Processors>"
             "<Memory units='MB'>100</Memory><Duration>3600</Duration></Job>")
    words = []
    for name, more in (("a", ""), ("b", ""), ("c", "[lsf]\nunit_for_limits = 'MB'\n"),
                       ("d", "[map.Queue]\nbatch = 'x'\n")):
        (sites / f"{name}.toml").write_text(f"name = '{name}'\nmanager = 'lsf'\nmachine = '{name}'\n{more}")
        (sites / f"{name}.xml").write_text(offer.format("x" if name == "d" else "batch"))
        words += ["--offers", f"{name}.toml={name}.xml"]
    records = [json.loads(line) for line in sssjob("route", "-q", "--json", "job.sh", *words).out.splitlines()]
    assert {one["site"]: one["met"] for one in records} == {"a": True, "b": True, "c": False, "d": True}


def test_many_sites_at_once_are_what_each_is_alone(sssjob: Command, sites: Path) -> None:
    """Sites whose offers are held against the document together, and whose rates price it one after the other, get the
    verdict, the score and the price that they get alone: without rates too, by rates that name queues, and by some that
    cannot price it."""
    (sites / "job.xml").write_text(
        "<Job><Id>1</Id><Requested><Processors>8</Processors><Memory units='GB'>2</Memory><Duration>1800</Duration>"
        "<Queue preference='2'>fast</Queue><Queue preference='1'>slow</Queue></Requested></Job>")
    memory = "[[rate]]\ntype = 'VBR'\nname = 'Memory'\nunits = '{}'\nrate = 0.001\nper = 'hour'\n"
    queue = "[[rate]]\ntype = 'NBM'\nname = 'Queue'\ninstance = 'fast'\nrate = 3\n"
    words = []
    for name, processors, rates in (("a", 8, RATES.format("1")), ("b", 4, RATES.format("2") + memory.format("MB")),
                                    ("c", 16, RATES.format("3") + queue), ("d", 8, RATES.format("1") + memory.format(
                                        "GB")), ("e", 80, None), ("f", 8, RATES.format("1") + memory.format("J"))):
        (sites / f"{name}.toml").write_text(f"name = '{name}'\n{'' if rates is None else f'rates = {name!r}'}\n")
        (sites / name).write_text(rates or "")
        offers = "".join(OFFER.format(label, 4, processors, 3600).replace("<Duration>", "<Memory units='GB'>4</Memory>"
                                                                          "<Duration>") for label in ("slow", "fast"))
        (sites / f"{name}.xml").write_text(f"<JobGroup><Id>{name}</Id>{offers}</JobGroup>")
        words.append(("--offers", f"{name}.toml={name}.xml"))

    def places(*of: tuple[str, str]) -> list[dict[str, object]]:
        """What is said of each place, without its rank."""
        text = sssjob("route", "-q", "--json", "job.xml", *(word for pair in of for word in pair)).out
        return [{**json.loads(line), "rank": None} for line in text.splitlines()]

    alone = [place for pair in words for place in places(pair)]
    key = "{0[site]} {0[offer]}".format
    assert sorted(places(*words), key=key) == sorted(alone, key=key)
    assert [place["price"] for place in sorted(alone, key=key) if place["met"]] == [
        "4.00", "4.00", "36.00", "12.00", "4.00", "4.00", None, None, None, None]
