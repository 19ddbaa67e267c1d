"""Three unlike sites, two of them behind a real SSH server, take routed jobs while the router is killed, the line is
cut and one site is drained: none is lost, none runs twice, and each document says where it ran, why and for how much.

``SSSJOB_LAB_JOBS`` is how many (1000 for the whole of it)."""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from sssjob.xml.reader import read_document
from tests.labs.test_lab_behind_ssh import PROFILE, Away, away
from tests.psij.test_batch_labs import LABS

pytestmark = pytest.mark.lab
__all__ = ["away"]

JOBS = int(os.environ.get("SSSJOB_LAB_JOBS", "18"))
KILLS = 4
QUEUES = {"slurm": "batch", "sge": "all.q", "desk": "desk"}
RATES = ("name = '{0}'\nversion = '1'\ncurrency = 'EUR'\nprecision = 2\n[[rate]]\ntype = 'VBF'\nname = 'Processors'\n"
         "rate = {1}\n")
OFFER = ("<Job><Id>{0}</Id><Queue>{0}</Queue><NodeCount>1</NodeCount><Processors>4</Processors>"
         "<Duration>600</Duration></Job>")
JOB = """<Job><Id>job{0}</Id><Executable>/bin/sh</Executable><Arguments>-c 'echo job{0} &gt;&gt; {1}/ran'</Arguments>
<OutputFile>/dev/null</OutputFile><ErrorFile>/dev/null</ErrorFile>
<Requested><Processors>1</Processors><Duration>60</Duration><Queue preference='3' group='+1'>{2}</Queue>
<Queue preference='2'>{3}</Queue><Queue preference='1' group='-1'>{4}</Queue></Requested></Job>"""


@pytest.fixture
def sites(away: Away) -> Iterator[Away]:
    """The profiles of the three, with rates and what they offer, and the documents."""
    for price, (name, queue) in enumerate(QUEUES.items(), 1):
        Path(f"{name}-rates.toml").write_text(RATES.format(name, price))
        profile = "name = 'desk'\nmanager = 'local'\n" if name == "desk" else PROFILE.format(
            name=name, manager=name, lab=os.environ[LABS[name]], there=away.there)
        Path(f"{name}.toml").write_text(f"rates = '{name}-rates.toml'\n{profile}")
        Path(f"{name}.xml").write_text(OFFER.format(queue))
    queues = list(QUEUES.values())
    for number in range(JOBS):
        order = [queues[(number + more) % 3] for more in range(3)]
        Path(f"{number:04}.xml").write_text(JOB.format(number, away.there, *order))
    yield away
    _drain("up")


def _drain(state: str) -> None:
    """Have Slurm's partition take no jobs, or take them again."""
    lab = os.environ[LABS["slurm"]]
    subprocess.run(["/bin/bash", "-c", f". {lab}/env.sh && scontrol update PartitionName=batch State={state}"],
                   check=True, capture_output=True)


def test_all_that_may_happen(sites: Away) -> None:
    words = ["submit", "-q", *sorted(map(str, Path(".").glob("[0-9]*.xml"))), "--token", "all", "--reroute-after", "30"]
    for name in QUEUES:
        words += ["--offers", f"{name}.toml={name}.xml"]
    draw = random.Random(19)
    for kill in range(KILLS):
        router = sites.begin(*words)
        time.sleep(draw.uniform(4, 4 + JOBS / 40))
        if kill == 1:
            _drain("drain")
        if kill == 2:
            sites.cut()
            time.sleep(8)
            sites.mend()
        router.kill()
        router.communicate()
    _drain("up")
    until = time.monotonic() + 120 + JOBS
    while (status := sites.sssjob(*words).returncode) == 7:     # of some nobody knew yet whether they were submitted
        assert time.monotonic() < until
    assert status == 0
    while any(record["outcome"] is None for record in sites.records()):
        assert time.monotonic() < until
        time.sleep(1)
    ran = Counter((sites.there / "ran").read_text().split())
    assert ran == Counter(f"job{number}" for number in range(JOBS))
    done = [record for record in sites.records() if record["outcome"] == "done"]
    assert Counter(record["id"] for record in done) == ran
    assert {record["site"] for record in done} == set(QUEUES), sites.sssjob("log", "@1").stdout
    prices = {name: f"{price}.00 EUR" for price, name in enumerate(QUEUES, 1)}
    for start in range(0, len(done), 50):
        some = done[start:start + 50]
        text = sites.sssjob("status", *(record["key"] for record in some)).stdout
        for record, document in zip(some, filter(str.strip, text.split("</Job>\n")), strict=True):
            job = next(iter(read_document(f"{document}</Job>".encode()).jobs()))[0]
            facts = {name: [p.text for p in job.all("Extension") if p.get("name") == name]
                     for name in ("Site", "Route", "Price")}
            assert (facts["Site"], facts["Price"]) == ([record["site"]], [prices[record["site"]]]), facts
            assert facts["Route"][0].startswith(f"rank {len(facts['Route'])} of 3, preference "), facts


LINKED = """<Job><Id>{0}</Id><Executable>/bin/sh</Executable>
<Arguments>-c 'echo {0} &gt;&gt; {1}/ran; sleep 2'</Arguments>
<OutputFile>/dev/null</OutputFile><ErrorFile>/dev/null</ErrorFile>{2}
<Requested><Processors>1</Processors><Duration>60</Duration></Requested></Job>"""
WAITS = "<Dependency condition='OnSuccess'>{0}</Dependency>"


def test_a_group_in_parts_with_dependencies_inside(sites: Away) -> None:
    """Three chains of two jobs, each as wide as a site: what one takes is not free for the next one, so that they go to
    two managers behind SSH; each second job runs after its first, at the same site; the submitter is killed on the way.
    """
    jobs = "".join(LINKED.format(f"{name}{number}", sites.there, WAITS.format(f"{name}1") if number == 2 else "")
                   for name in "abc" for number in (1, 2))
    Path("g.xml").write_text(f"<JobGroup><Id>g</Id>{jobs}</JobGroup>")
    words = ["submit", "-q", "g.xml", "--token", "linked", "--reroute-after", "300"]
    for name in ("slurm", "sge"):
        profile = Path(f"{name}.toml").read_text().replace(f"rates = '{name}-rates.toml'\n", "")
        Path(f"{name}.toml").write_text(profile)        # where prices are equal the turn decides
        Path(f"{name}.xml").write_text(OFFER.format(QUEUES[name]).replace(">4</Processors>", ">1</Processors>"))
        words += ["--offers", f"{name}.toml={name}.xml"]
    killed = sites.begin(*words)
    time.sleep(3)
    killed.kill()
    killed.communicate()
    until = time.monotonic() + 120
    while (answer := sites.sssjob(*words)).returncode == 7:
        assert time.monotonic() < until
    assert (answer.returncode, answer.stdout.split()) == (0, ["a1", "a2", "b1", "b2", "c1", "c2"]), answer
    answer = sites.sssjob("wait", "g", "--timeout", "120")
    assert answer.returncode == 0, answer
    ran = (sites.there / "ran").read_text().split()
    assert sorted(ran) == ["a1", "a2", "b1", "b2", "c1", "c2"]
    assert all(ran.index(f"{name}1") < ran.index(f"{name}2") for name in "abc")
    document = read_document(sites.sssjob("status", "g").stdout.encode())
    where = {str(job.value("Id")): next(p.text for p in job.all("Extension") if p.get("name") == "Site")
             for job, _ in document.jobs()}
    assert where == {"a1": "slurm", "a2": "slurm", "b1": "sge", "b2": "sge", "c1": "slurm", "c2": "slurm"}
