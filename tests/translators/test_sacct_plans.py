"""Rows of sacct by plans: the reader makes the same of them, tells the same, and counts the same, as row by row."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from io import BytesIO
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.year import HEADER, jobs_of
from sssjob.document.outlines import Outlines
from sssjob.translators.base import ReadContext
from sssjob.translators.records import sacct
from sssjob.translators.records._sacct_plans import RowPlans
from tests.strategies import examples
from tests.translators.test_records_again import assert_same

COLUMNS = HEADER.split("|")
MORE = ("WorkDir", "UID", "WCKey", "Comment", "DerivedExitCode", "Planned", "Elapsed", "CPUTimeRAW", "AllocCPUS",
        "Reason", "Timelimit", "UserCPU", "MaxRSS", "ConsumedEnergy", "Reservation", "Room")
#: As they end, as they are while they run, and as they end where they were suspended.
ENDED = [dict(zip(COLUMNS, line.split("|"), strict=True)) for line, _ in jobs_of(60)]
RUNNING = [row | {"State": "RUNNING", "End": "Unknown", "ExitCode": "0:0", "TotalCPU": "00:00:00"} for row in ENDED]
SUSPENDED = [row | {"Suspended": "00:00:30", "ElapsedRaw": str(int(row["ElapsedRaw"]) - 30)} for row in ENDED
             if int(row["ElapsedRaw"]) > 60]
ROWS = [*ENDED, *RUNNING[::3], *SUSPENDED[::3]]
#: Beside what stands in the rows, for any column.
ODD = ("", "0", "00", "0:0", "None", "Unknown", "1", "7", "007", "-1", "4294967295", "99999999999999999999", "a b ",
       "x|y", "ü", "<&>", "a" * 1100, "1K", "4Gc", "16Gn", "0n", "1.5G", "INVALID", "1-02:03:04", "00:10", "01:02.500",
       "x:y", "2026-10-25T02:30:00", "2026-03-29T02:30:00", "1790000000", "2026-01-01T00:00:00", "RUNNING", "PENDING",
       "CANCELLED by 7", "COMPLETED", "FAILED", "127:0", "0:9", "n[1-3]", "n1,m2", "n[1-", "None assigned", "Priority",
       "cpu=1,mem=4G,node=1", "cpu=8,gres/gpu:a100=2,gres/gpu=3,node=1", "billing=0,cpu=4,license/x=2,mem=1M,node=2",
       "gres/gpu=2,cpu=4", "cpu=0", "mem=4X", "energy=7", "12_3", "12+0", "12.batch", "12_3.0", "UNLIMITED",
       "Partition_Limit")


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """Rows with some columns in any order, of which a few texts are odd, some rows twice, and steps among them."""
    columns = ["JobID", *draw(st.lists(st.sampled_from([*COLUMNS[1:], *MORE]), max_size=30, unique=True))]
    lines = ["|".join(columns)]
    for _ in range(draw(st.integers(1, 5))):
        row = dict(draw(st.sampled_from(ROWS)))
        for column in draw(st.lists(st.sampled_from(columns), max_size=2)):
            row[column] = draw(st.sampled_from(ODD))
        line = "|".join([row.get(column, "") for column in columns])
        lines += [line] * draw(st.integers(1, 3))
        if draw(st.booleans()):
            row |= {"JobID": f"{row['JobID']}.{draw(st.sampled_from(['batch', '0']))}", "TotalCPU": "00:07"}
            lines.append("|".join([row.get(column, "") for column in columns]))
    return "\n".join([*lines, ""]).encode()


@settings(max_examples=examples(60), deadline=None)
@given(logs())
def test_any_rows(data: bytes) -> None:
    assert_same("sacct", data)


def test_a_log_of_a_site() -> None:
    """Each row as it is, and each column made odd in turn."""
    lines = [line for line, _ in jobs_of(100)]
    assert_same("sacct", "\n".join((HEADER, *lines, "")).encode())
    rows = [[row[column] if column != odd else text for column in COLUMNS]
            for odd in COLUMNS for text in ODD for row in ROWS[::40]]
    assert_same("sacct", "\n".join((HEADER, *map("|".join, rows), "")).encode())


@pytest.mark.parametrize("header", [HEADER, HEADER.replace("|Cluster|", "|Room|"),
                                    HEADER.replace("ElapsedRaw", "Elapsed")])
def test_rows_of_a_site_have_plans(header: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or nothing would be held against anything here. The outline that a row is given is the one that its job has."""
    planned, outlines, of = list[bool](), Outlines(), RowPlans.of

    def noted(plans: RowPlans, row: list[str], ident: str, number: int) -> object:
        """As it is, noted."""
        result = of(plans, row, ident, number)
        planned.append(result is not None)
        if result is not None:
            outlined, walked = result.outlined(), outlines.of(result.job())
            assert walked is not None
            for place, field in enumerate(walked.outline.fields):
                assert place in walked.outline.slots or (walked.values[place], field.value_class in (int, Decimal)) == (
                    outlined.values[place], isinstance(outlined.values[place], int))
            assert [field[:3] for field in walked.outline.fields] == [field[:3] for field in outlined.outline.fields]
        return result

    monkeypatch.setattr(RowPlans, "of", noted)
    lines = [line for line, _ in jobs_of(600, 86400)]
    if "ElapsedRaw" not in header:
        at = header.split("|").index("Elapsed")
        rows = [line.split("|") for line in lines]
        lines = ["|".join([*row[:at], f"{int(row[at]) // 60}:{int(row[at]) % 60:02}", *row[at + 1:]]) for row in rows]
    log = "\n".join((header, *lines, "")).encode()
    assert sacct.TRANSLATOR.stream is not None
    assert len(list(sacct.TRANSLATOR.stream(BytesIO(log), ReadContext(options={"timezone": "UTC"})))) == 600
    assert sum(planned) > 580     # of each new text of counts the reader has the first


@pytest.mark.parametrize("rows", [RUNNING, SUSPENDED])
def test_rows_that_run_or_were_suspended_have_plans(rows: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
                                                    ) -> None:
    """All of them, once the reader has seen their texts."""
    planned, of = list[bool](), RowPlans.of

    def noted(plans: RowPlans, row: list[str], ident: str, number: int) -> object:
        """As it is, noted."""
        result = of(plans, row, ident, number)
        planned.append(result is not None)
        return result

    monkeypatch.setattr(RowPlans, "of", noted)
    log = "\n".join([HEADER, *["|".join(row.values()) for row in rows * 2], ""]).encode()
    assert_same("sacct", log)
    assert all(planned[len(rows):2 * len(rows)])


def test_times_of_days_that_nobody_has_seen() -> None:
    """Are those of the zone, and wait for other evidence around the hours that come twice or never."""
    zone = ZoneInfo("Europe/Berlin")
    for day in ("2026-03-27", "2026-03-29", "2026-07-01", "2026-10-25", "2026-10-27", "2024-02-29"):
        for clock in ("00:00:00", "02:30:00", "23:59:59"):
            moment = sacct.Rows(ReadContext(options={"timezone": "Europe/Berlin"})).plain_moment(f"{day}T{clock}")
            assert moment == (None if day in ("2026-03-29", "2026-10-25") else int(
                datetime.fromisoformat(f"{day}T{clock}").replace(tzinfo=zone).timestamp()))
    reading = sacct.Rows(ReadContext(options={"timezone": "Europe/Berlin"}))
    for odd in ("2026-02-30T10:00:00", "2026-W10-1T10:00:00", "20260301T1:10:00:00", "2026-01-01 10:00:00",
                "2026-01-01T24:00:00", "9999-12-31T23:59:59"):
        assert reading.plain_moment(odd) is None
    assert sacct.Rows(ReadContext()).plain_moment("2026-07-01T00:00:00") is None
