"""What a site says of its jobs: the VO by project, the benchmark by machine and queue; and counts of jobs."""

from __future__ import annotations

import re

import pytest

from sssjob.document.model import Delivered, Document, Job, JobGroup
from sssjob.errors import UsageError
from sssjob.findings import Policy
from sssjob.translators import get
from sssjob.translators.base import WriteContext
from sssjob.translators.records.base import leaf

VO = "chem:atlas,bio : biomed,*:ops"
BENCHMARK = "HEPscore23 15.3; colony=HEPscore23 18.1; colony/gpu=HEPscore23 22.5"


def job(ident: str = "1", project: str = "chem", queue: str = "q", machine: str = "colony", group: str = "g",
        end: int = 1795254632, **grid: str) -> Job:
    return Job([leaf("Id", ident), leaf("User", "u"), leaf("Group", group), leaf("Project", project),
                leaf("Machine", machine), leaf("Queue", queue), leaf("State", "Completed"), leaf("StartTime", end - 60),
                leaf("EndTime", end), leaf("CpuDuration", 50),
                *(leaf("Extension", text, {"type": "Grid", "name": name}) for name, text in grid.items()),
                Delivered([leaf("Processors", 2), leaf("Duration", 60)])])


def write(name: str, *jobs: Job, **options: str) -> tuple[str, list[str]]:
    context = WriteContext(policy=Policy.WARN, options={"site": "S", "created": "4000000000"} | options)
    text = get(name).write(Document(JobGroup([leaf("Id", "g"), *jobs])), context)
    return text, [f"{f.rule} {f.subject}" for f in context.findings]


@pytest.mark.parametrize("name", ["apel", "apel-summary", "car", "car-summary"])
@pytest.mark.parametrize(("one", "organisation"), [
    (job(), "atlas"), (job(project="bio"), "biomed"), (job(project="x", group="chem"), "atlas"),
    (job(project="x"), "ops"), (job(VO="cms"), "cms"), (job(FQAN="/lhcb/Role=x"), None),
])
def test_the_vo_of_a_project(name: str, one: Job, organisation: str | None) -> None:
    """Only where the job says none; an FQAN says it too."""
    text, findings = write(name, one, vo=VO)
    assert re.findall(r"(?:^VO: |<(?:urf:)?Group>)([^<\n]*)", text, re.MULTILINE) == [organisation] * bool(organisation)
    assert ("SSS503 Extension VO" in findings) == (organisation in ("atlas", "biomed", "ops"))


@pytest.mark.parametrize("name", ["apel", "apel-summary", "car", "car-summary"])
@pytest.mark.parametrize(("one", "figure"), [
    (job(), "18.1"), (job(queue="gpu"), "22.5"), (job(machine="other", queue="gpu"), "15.3"),
    (job(ServiceLevel="hepspec 9"), "9"),
])
def test_the_benchmark_of_a_machine_and_queue(name: str, one: Job, figure: str) -> None:
    text, _ = write(name, one, benchmark=BENCHMARK)
    assert re.findall(r"(?:^ServiceLevel: |<(?:urf:)?ServiceLevel [^>]*>)([^<\n]*)", text, re.MULTILINE) == [figure]


def test_what_no_entry_is_for_is_told() -> None:
    text, findings = write("apel", job(machine="other", project="x"), benchmark="colony=hepspec 9", vo="chem:atlas")
    assert "VO: " not in text and "ServiceLevel" not in text
    assert {"SSS504 Extension ServiceLevel", "SSS504 Extension VO"} <= set(findings)


@pytest.mark.parametrize(("option", "text"), [
    ("vo", "chem"), ("vo", "chem:"), ("vo", ":atlas"), ("vo", "a:x,a:y"), ("vo", ""), ("benchmark", "x"),
    ("benchmark", "=hepspec 9"), ("benchmark", "hepspec 9; hepspec 10"), ("benchmark", "c=hepspec"),
    ("benchmark", "c=d=hepspec 9 8"), ("benchmark", "hepspec 9;"),
])
def test_options_that_say_nothing(option: str, text: str) -> None:
    with pytest.raises(UsageError, match=f"{option} is "):
        write("apel", job(), **{option: text})


def test_counts_of_jobs() -> None:
    """By submit host and month (UTC); as many as the messages have. Jobs that name no host are told to the receiver as
    it keeps them, else its count of them is another one."""
    hosted = job("4")
    hosted.add("SubmitHost", "ce.example.org")
    waiting = Job([leaf("Id", "5"), leaf("State", "Idle"), leaf("Machine", "colony")])
    jobs = [job("1"), job("2"), job("3", end=1798761599), job("6", end=1798761600), hosted, waiting]
    text, findings = write("apel-sync", *jobs)
    assert text == """APEL-sync-message: v0.1
Site: S
Month: 11
SubmitHost: None
Year: 2026
NumberOfJobs: 2
%%
Site: S
Month: 12
SubmitHost: None
Year: 2026
NumberOfJobs: 1
%%
Site: S
Month: 1
SubmitHost: None
Year: 2027
NumberOfJobs: 1
%%
Site: S
Month: 11
SubmitHost: ce.example.org
Year: 2026
NumberOfJobs: 1
%%
"""
    assert "SSS546 Job" in findings and write("apel", *jobs)[0].count("%%") == 5
