"""Records that contradict themselves: what is taken, and that it is told."""

from __future__ import annotations

from io import BytesIO

import pytest

from sssjob.document.model import Job
from sssjob.findings import Findings
from sssjob.translators import ReadContext
from sssjob.translators.registry import get

PBS = "01/31/2025 23:00:00;E;7.srv;{} start=1738360800 end=1738361800 exec_host=n1/0*4 {} Exit_status=0\n"
COBALT = "03/01/2026 10:00:00;E;5;user=u resources_used.nodect=1 {} start=1738360800 end=1738361800 {}\n"


def read(text: str, source: str) -> tuple[list[Job], list[str]]:
    """The jobs, and what is told of them."""
    context = ReadContext(findings=Findings("-"), options={"machine": "m", "timezone": "UTC"})
    jobs = list(get(source).stream(BytesIO(text.encode()), context))        # type: ignore[attr-defined]
    return jobs, [f.message for f in context.findings if f.rule in ("SSS541", "SSS542", "SSS543")]


@pytest.mark.parametrize(("form", "source"), [(PBS, "pbs-acct"), (COBALT, "cobalt-acct")])
@pytest.mark.parametrize(("first", "last", "names"), [
    ("queue=w", "queue=q", ["queue"]), ('account="a b"', 'account="c"', ["account"]),
    ("resources_used.walltime=00:00:01 queue=q", "resources_used.walltime=00:16:40 queue=r",
     ["resources_used.walltime", "queue"]),
    ("queue=q", "queue=q", []), ("queue=q", "project=q", [])])
def test_an_attribute_with_several_values(form: str, source: str, first: str, last: str, names: list[str]) -> None:
    """A job name or an argument of the submission may forge an attribute; the manager's own comes last."""
    (job,), told = read(form.format(first, last), source)
    ident = job.value("Id")
    assert told == [f"job {ident}: {name} stands in one record with several values, of which somebody may have forged "
                    "one; the last one is taken" for name in names]
    if "queue" in names:
        assert job.value("Queue") == last[-1]


@pytest.mark.parametrize("source", ["pbs-acct", "cobalt-acct"])
def test_one_record_among_many(source: str) -> None:
    """The lines around it are of one form, which has each attribute once; only the odd one is told."""
    form = PBS if source == "pbs-acct" else COBALT
    lines = [form.format("queue=q", "resources_used.walltime=00:16:40")] * 3
    lines.insert(2, form.format("queue=w queue=q", "resources_used.walltime=00:16:40"))
    _, findings = read("".join(line.replace(";7.srv;", f";{n}.srv;").replace(";5;", f";{n};")
                               for n, line in enumerate(lines)), source)
    assert len(findings) == 1 and findings[0].startswith("job 2")


@pytest.mark.parametrize(("columns", "texts", "expected", "spans"), [
    ("Elapsed", "00:09:00", "Elapsed says 540", ["100"]), ("ElapsedRaw", "540", "ElapsedRaw says 540", ["100"]),
    ("Elapsed|ElapsedRaw", "00:09:00|540", "ElapsedRaw says 540", ["100"]),
    ("Elapsed|ElapsedRaw", "00:09:00|", "Elapsed says 540", ["100"]),
    ("Elapsed|Suspended", "00:09:00|00:00:10", "Elapsed says 540", ["100"])])
def test_times_of_sacct(columns: str, texts: str, expected: str, spans: list[str]) -> None:
    """A finding names the column that the log has."""
    text = f"JobID|State|Start|End|{columns}\n1|COMPLETED|1795000000|1795000100|{texts}\n"
    (job,), messages = read(text, "sacct")
    span = "End - Start - Suspended says 90" if "Suspended" in columns else "End - Start says 100"
    assert messages == [f"Duration: {expected}, {span}; {expected.partition(' ')[0]} is taken"]
    assert [p.text for p in job.all("Extension") if p.get("name") == "Elapsed"] == spans


def test_an_end_before_the_start() -> None:
    """No time lies between them, so none is kept."""
    (job,), messages = read("JobID|State|Start|End|Elapsed\n1|COMPLETED|1795000100|1795000000|00:00:05\n", "sacct")
    assert [p.text for p in job.all("Extension") if p.get("name") == "Elapsed"] == []
    assert messages[-1] == "job 1 ends 100 s before it starts"


@pytest.mark.parametrize("before", ["", 'account="chem" '], ids=["no account", "an account"])
@pytest.mark.parametrize("chosen", [
    "jobname=x account=evil", "project=x account=evil jobname=y", "jobname=x queue=q account=evil user=eve group=h",
    "jobname=x account=evil queue=w"])
def test_a_job_is_not_whose_its_name_says(before: str, chosen: str) -> None:
    """OpenPBS writes the owner before the texts that he chooses: ``qsub -P 'x account=evil'`` made evil pay."""
    text = (f"02/01/2026 02:00:00;E;7.srv;user=ann group=g {before}{chosen} queue=q ctime=1738353600 qtime=1738353600 "
            "start=1738360800 exec_host=n1/0*8 end=1738364400 Exit_status=0 resources_used.walltime=01:00:00\n")
    (job,), findings = read(text, "pbs-acct")
    assert (job.user, job.group, job.project, job.queue) == ("ann", "g", "chem" if before else None, "q")
    assert ("job 7.srv: account stands inside the project or the name of the job, where a user has written it; it is "
            "not taken") in findings


def test_torque_writes_the_account_behind_the_owner() -> None:
    """An account that is the manager's counts, also where the record says less of the job."""
    text = ("02/01/2026 02:00:00;E;7.srv;user=ann group=g jobname=x queue=q ctime=1738353600 qtime=1738353600 "
            "etime=1738353600 start=1738360800 owner=ann@h account=chem exec_host=n1/0 end=1738364400 Exit_status=0 "
            "resources_used.walltime=01:00:00\n")
    (job,), findings = read(text, "pbs-acct")
    assert (job.project, findings) == ("chem", [])
