"""A user who writes sacct's delimiter into the name of a job neither leaves the accounts nor pays from another one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.document.model import Job
from sssjob.findings import Findings
from sssjob.translators.base import ReadContext
from sssjob.translators.records import htcondor_history
from sssjob.translators.records.base import RecordTranslator
from sssjob.translators.records.sacct import TRANSLATOR

_LATE = "JobID|State|Start|End|ElapsedRaw|AllocTRES|Cluster|JobName|Account|User|Partition|Reservation"
_EARLY = "JobID|JobName|Account|User|Cluster|State|Start|End|ElapsedRaw|AllocTRES|Comment"


_EXTRACT = ("ClusterId", "JobBatchName", "Owner", "AcctGroup", "RemoteWallClockTime", "JobStartDate", "CompletionDate",
            "Cmd")


def _read(text: str, reader: RecordTranslator = TRANSLATOR, **options: str) -> tuple[
        list[Job], dict[str, int], Findings]:
    from io import BytesIO

    context = ReadContext(options={"timezone": "UTC", **options})
    assert reader.stream is not None
    stream = reader.stream(BytesIO(text.encode()), context)
    return list(stream), dict(stream.counts.reasons), context.findings


def _late(name: str) -> str:
    return f"7|COMPLETED|2026-01-05T10:00:00|2026-01-05T11:00:00|3600|cpu=8,node=1|helix|{name}|chem|ann|std|"


def _early(name: str, comment: str = "") -> str:
    return (f"7|{name}|chem|ann|helix|COMPLETED|2026-01-05T10:00:00|2026-01-05T11:00:00|3600|cpu=8,node=1|"
            f"{comment}")


def _whose(jobs: list[Job]) -> list[tuple[str | None, ...]]:
    return [(job.name, job.project, job.user, job.machine) for job in jobs]


@pytest.mark.parametrize("name", ["x|bio", "x|bio|eve", "|", "||||"])
@pytest.mark.parametrize("closed", ["", "|"], ids=["parsable2", "parsable"])
def test_a_row_whose_last_column_is_empty_keeps_its_account(name: str, closed: str) -> None:
    """A job called ``x|bio`` was charged to bio: the empty last column was taken for the end of the line."""
    jobs, reasons, findings = _read(f"{_LATE}{closed}\n{_late(name)}{closed}\n")
    assert _whose(jobs) == [(name, "chem", "ann", "helix")] and not reasons
    assert [f.message for f in findings] == ["the delimiter stands in jobname, which takes it"]


@pytest.mark.parametrize(("name", "comment"), [
    ("x|bio", ""), ("x|bio|eve|colony", ""), ("a", "b|c"), ("a|b", "c|d"), ("||||||||", "")])
def test_two_free_texts(name: str, comment: str) -> None:
    """The columns between them have forms, so that there is one way to part the row."""
    jobs, reasons, _ = _read(f"{_EARLY}\n{_early(name, comment)}\n")
    assert _whose(jobs) == [(name, "chem", "ann", "helix")] and not reasons


def test_a_whole_row_in_a_name_is_refused() -> None:
    """Two ways fit: the row is rejected, and the message says how to print the log."""
    name = "x|bio|eve|helix|COMPLETED|2026-01-05T10:00:00|2026-01-05T10:00:01|1|cpu=1"
    jobs, reasons, findings = _read(f"{_EARLY}\n{_early(name)}\n")
    assert not jobs and reasons == {"columns": 1}
    assert [f.message for f in findings] == [
        "record rejected: columns: 19 columns, not 11, and a delimiter that is part of a text cannot be told: print "
        "the log with another --delimiter, and name it with the option delimiter"]


@pytest.mark.parametrize("closed", ["", "|"], ids=["parsable2", "parsable"])
def test_columns_by_option_say_nothing_of_the_end_of_a_line(closed: str) -> None:
    columns = _EARLY.replace("|", ",")
    jobs, reasons, _ = _read(f"{_early('a|b')}{closed}\n{_early('plain')}{closed}\n", columns=columns)
    assert [job.name for job in jobs] == ["a|b", "plain"] and not reasons


def test_a_first_line_that_a_user_wrote_is_found_out() -> None:
    """It looks like one of --parsable, by which bio pays; the next one, which does not end so, is rejected and told."""
    columns, plain = _LATE.replace("|", ","), _late("plain").replace("std|", "std|r1")
    jobs, reasons, _ = _read(f"{plain}\n{_late('x|bio')}\n", columns=columns)
    assert [job.project for job in jobs] == ["chem", "chem"] and not reasons
    _, reasons, findings = _read(f"{_late('x|bio')}\n{plain}\n", columns=columns)
    assert reasons == {"columns": 1}
    assert [f.message for f in findings] == [
        "record rejected: columns: the line does not end with the delimiter, as one before it did, of which a name may "
        "hold it: print the log with another --delimiter, and name it with the option delimiter"]


@pytest.mark.parametrize("state", ["COMPLETED", "NEVER_HEARD_OF"])
def test_lines_of_parsable_without_a_header(state: str) -> None:
    """Whatever a column holds, and where the name stands late."""
    row = _late("plain").replace("COMPLETED", state)
    jobs, reasons, _ = _read(f"{row}|\n{row}|\n", columns=_LATE.replace("|", ","))
    assert [job.project for job in jobs] == ["chem", "chem"] and not reasons


def test_more_delimiters_than_a_name_can_hold() -> None:
    jobs, reasons, _ = _read(f"{_EARLY}\n{_early('|' * 5000)}\n")
    assert not jobs and reasons == {"columns": 1}


_texts = st.text(st.sampled_from("a|:= 1-,"), max_size=12)


@given(_texts, _texts)
def test_nobody_else_pays(name: str, comment: str) -> None:
    """Whatever a user writes: the job is his project's, or the row is rejected."""
    jobs, reasons, _ = _read(f"{_EARLY}\n{_early(name, comment)}\n")
    assert {(job.project, job.user) for job in jobs} <= {("chem", "ann")}
    assert len(jobs) + sum(reasons.values()) == 1


@pytest.mark.parametrize(("name", "command", "taken"), [
    ("x|bio", "a.sh", True), ("|", "", True), ("x", "a|b|c", True), ("x|", "|", False), ("x", "a||", True),
    ("x|eve|bio|100|1700000000|1700000100", "a.sh", False)])
def test_an_extract_of_htcondor(name: str, command: str, taken: bool) -> None:
    """Attributes that are neither numbers nor names may hold it; a row that could be two people's is refused."""
    line = f"7|{name}|ann|chem|100|1700000000|1700000100|{command}\n"
    jobs, reasons, findings = _read(line, htcondor_history.TRANSLATOR, columns=",".join(_EXTRACT), machine="helix")
    assert _whose(jobs) == ([(name or None, "chem", "ann", "helix")] if taken else []), findings
    assert reasons == ({} if taken else {"columns": 1})
    assert any("SSS542" in str(finding) for finding in findings) is taken


@given(name=_texts, command=_texts)
def test_nobody_else_pays_by_an_extract(name: str, command: str) -> None:
    """Whatever a user writes into the texts that are his."""
    line = f"7|{name}|ann|chem|100|1700000000|1700000100|{command}\n"
    jobs, _, _ = _read(line, htcondor_history.TRANSLATOR, columns=",".join(_EXTRACT), machine="helix")
    assert [(job.project, job.user) for job in jobs] in ([("chem", "ann")], [])


def test_a_line_end_in_an_extract_is_told() -> None:
    """What stands between the pieces may be forged, and only a piece shows it."""
    text = "7|x\n8|y|bob|bio|100|1700000000|1700000100|z\nq|ann|chem|100|1700000000|1700000100|a.sh\n"
    _, reasons, findings = _read(text, htcondor_history.TRANSLATOR, columns=",".join(_EXTRACT), machine="helix")
    assert reasons == {"columns": 2} and any("rows beside it part of that text" in str(f) for f in findings)
