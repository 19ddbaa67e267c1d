"""A user who writes line ends into the name of a job does not put rows of other people's jobs into the accounts."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.accounting import cuts
from sssjob.accounting.columnar import SacctTable, blocks
from sssjob.findings import Findings
from sssjob.translators.base import ReadContext
from sssjob.translators.records.sacct import TRANSLATOR
from tests.accounting.support import rate_set

HEADER = "JobID|JobName|Account|User|Cluster|Submit|Start|End|ElapsedRaw|State|AllocTRES|ExitCode"
RATES = 'VBR Processors 0.01'
FORGED = "999|f|victim|eve|helix|1795000000|1795000200|1795000260|60|COMPLETED|cpu=64,node=1|0:0"


def row(ident: int, name: str = "job", account: str = "chem") -> str:
    start = 1795000000 + ident
    return f"{ident}|{name}|{account}|ann|helix|1795000000|{start}|{start + 60}|60|COMPLETED|cpu=8,node=1|0:0"


def log(*rows: str, header: str = HEADER) -> bytes:
    return "\n".join((header, *rows, "")).encode()


Read = tuple[list[str], dict[str, int], list[tuple[int, str]]]


def by_rows(data: bytes, keeping: bool = False) -> tuple[Read, list[str]]:
    """((ids, reasons, findings), the lines to come again)."""
    context = ReadContext("log", Findings("log"))
    assert TRANSLATOR.stream is not None
    stream = TRANSLATOR.stream(BytesIO(data), context)
    if keeping:
        stream.keep()
    ids = [str(job.value("Id")) for job in stream]
    counts = stream.counts
    assert counts.read == counts.given + counts.rejected
    return (ids, dict(counts.reasons), [(f.line, f.message) for f in context.findings]), stream.kept


def by_columns(data: bytes) -> tuple[Read, int]:
    """(ids, reasons, findings; how many jobs did not need the reader)."""
    table = SacctTable(context := ReadContext("log", Findings("log")), rate_set(RATES))
    ids = [cells["id"] for batch in table.batches(BytesIO(data)) for cells in batch.to_pylist()]
    return (ids, dict(table.counts.reasons), [(f.line, f.message) for f in context.findings]), table.plain


def both(data: bytes) -> Read:
    """What is read row by row, which is what is read by columns."""
    pytest.importorskip("pyarrow")
    as_rows, _ = by_rows(data)
    assert by_columns(data)[0] == as_rows
    return as_rows


def test_a_row_between_two_pieces_is_told_with_its_lines() -> None:
    """The victim paid for 64 processors of a job that never was."""
    ids, reasons, findings = both(log(row(1), row(2, f"a\n{FORGED}\n{FORGED}\nb"), row(3)))
    assert (ids, reasons) == (["1", "3"], {"columns": 2, "between": 2})
    assert findings == [
        (3, "record rejected: columns: 2 columns, not 12"),
        (4, "record rejected: between: lines 4 to 5 stand between the pieces of a row that a line end in a text has "
            "broken, and may be part of that text: read the output of sacct --json, or a log without that column "
            "(2 records)"),
        (6, "record rejected: columns: 11 columns, not 12")]


@pytest.mark.parametrize("name", [
    f"\n{FORGED}\n", f"a|b|c\n{FORGED}\nd", f"a\n{FORGED}\nb|c|d", f"a\n\n{FORGED}\n \nb", f"a\n{FORGED}\nb\nc",
    f"a\nb\n{FORGED}\nc", f"a\nx\ny\n{FORGED}\nc", f"a\n{HEADER.replace('Account|User', 'User|Account')}\nb",
    f"a\n{FORGED}\n999.batch||victim||helix|1795000000|1795000200|1795000260|60|COMPLETED|cpu=64,node=1|0:0\nb",
    f"{row(2, 'a', 'eve')[2:-4]}\n|0:0\n{FORGED}\nb", f"a\n{FORGED.replace('|f|', '|f|g|')}\nb",
], ids=range(11))
def test_hostile_names(name: str) -> None:
    """Pieces with delimiters, of several lines, with blank ones, a header that exchanges columns, steps, and a first
    piece that makes a row with the second one, so that the third is nobody's."""
    ids, reasons, _ = both(log(row(1), row(2, name), row(3), row(4)))
    assert ids == ["1", "3", "4"] and "between" in reasons


def test_an_end_without_a_beginning_is_told() -> None:
    """The first piece was made a row by one more delimiter: what stands before the last one may be that user's."""
    broken = f"{row(2)}|x|\n{FORGED}||\n"
    text = log(f"{row(1)}||", f"{broken}|", f"{row(3)}||", header=f"{HEADER}|SubmitLine|Comment")
    ids, reasons, findings = both(text)
    assert (ids, reasons) == (["1", "2", "999", "3"], {"columns": 1})
    assert findings[-1] == (5, "the line may be the end of a row that a line end in a text has broken, and rows before "
                            "it part of that text: read the output of sacct --json, or a log without that column")


def test_pieces_with_as_many_columns_as_a_row() -> None:
    """Only their ids say that they are none."""
    ids, reasons, _ = both(log(row(1), f"x{row(2)}", FORGED, f"y{row(3)}", row(4)))
    assert (ids, reasons) == (["1", "4"], {"id": 2, "between": 1})


def test_rows_between_two_broken_rows_stay() -> None:
    """A user whose names have two lines does not keep the jobs of others out of the accounts."""
    ids, reasons, _ = both(log(row(1, "a\nb"), row(2), row(3, "c\n\nd\ne"), row(4), row(5, "f\ng"), row(6)))
    assert (ids, reasons) == (["2", "4", "6"], {"columns": 7})


def test_rows_between_two_lines_that_are_rows_in_several_ways_stay() -> None:
    """They are rejected for their delimiters, and nothing of them is missing."""
    name = row(0, account="bio")[2:]
    rows = (f"{text}|" for text in (row(1, name), row(2), row(3, name), row(4)))
    ids, reasons, _ = both(log(*rows, header=f"{HEADER}|Comment"))
    assert (ids, reasons) == (["2", "4"], {"columns": 2})


@pytest.mark.parametrize("cut", ["7", "7|jo", row(7)[:-8]])
def test_a_piece_alone_rejects_itself_only(cut: str) -> None:
    """At the end of a log that is cut, between two logs that are one file, and far from other pieces."""
    far = [row(n) for n in range(10, 30)]
    for rows, ids in (((row(1), row(2), cut), "1 2"), ((row(1), cut, row(2)), "1 2"),
                      ((cut, *far, cut), " ".join(map(str, range(10, 30))))):
        read, reasons, _ = both(log(*rows))
        assert read == ids.split() and set(reasons) == {"columns"}


def test_the_reach_is_that_of_the_longest_text() -> None:
    """Behind a piece as many lines are held back as a name can have; with a comment, more."""
    rows = ["7|jo", *(row(n) for n in range(10, 30)), "8|jo"]
    assert both(log(*rows))[1] == {"columns": 2}
    longer = [f"{text}|" if text.count("|") > 1 else text for text in rows]
    assert both(log(*longer, header=f"{HEADER}|Comment"))[1] == {"columns": 2, "between": 20}


_LINE = st.one_of(st.sampled_from(["", "a", "a|b", " ", "9", "9|x", "|", "x|" * 11, "\u00e9", "JobID", "7.batch|x"]),
                  st.just(FORGED), st.just(HEADER.replace("Account|User", "User|Account")))


@given(st.lists(st.lists(_LINE, min_size=1, max_size=5), min_size=1, max_size=3))
def test_no_forged_row_between_two_pieces_is_taken(names: list[list[str]]) -> None:
    """By rows and by columns alike: the first line of a name ends a piece, and the last one begins another, so that the
    jobs of others are there and the forged ones are not."""
    broken = [row(100 + n, "\n".join(["p", *lines, "q"])) for n, lines in enumerate(names)]
    spaced = [text for n, broken_row in enumerate(broken) for text in (
        broken_row, *(row(1000 + 100 * n + k) for k in range(30)))]
    ids, _, _ = both(log(row(1), *spaced))
    assert ids[0] == "1" and "999" not in ids
    assert set(ids) >= {str(1000 + 100 * n + k) for n in range(len(names)) for k in range(15, 30)}


@pytest.mark.parametrize("size", [300, 500, 700])
def test_a_piece_at_the_end_of_a_block(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The block behind it goes to the reader as well, and those behind that go by columns again."""
    monkeypatch.setattr("sssjob.accounting.columnar.blocks", lambda file, job: blocks(file, job, size))
    for before in range(6):
        data = log(*(row(n) for n in range(1, 2 + before)), row(50, f"a\n{FORGED}\n{FORGED}\nb"),
                   *(row(n) for n in range(60, 90)))
        ids, reasons, _ = both(data)
        assert ids == [str(n) for n in (*range(1, 2 + before), *range(60, 90))] and reasons["between"] == 2
        assert by_columns(data)[1] > 10


def test_a_log_is_not_cut_within_a_broken_row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Processes that read a log in parts take no forged row either, wherever the middle of the log is."""
    monkeypatch.setattr(cuts, "LEAST", 1000)
    file = tmp_path / "log"
    for before in range(96, 106):
        file.write_bytes(data := log(*(row(n) for n in range(before)), row(500, f"a\n{FORGED}\n{FORGED}\nb"),
                                     *(row(n) for n in range(600, 700))))
        parts = cuts.cut(str(file), "sacct", {}, 2)
        ids: list[str] = []
        for part in parts:
            with cuts.opened_part(str(file), part) as opened:
                ids += by_rows(opened.read())[0][0]
        assert len(parts) == 2 and ids == by_rows(data)[0][0]


def test_a_log_that_goes_on_behind_a_piece() -> None:
    """The last piece and what stands behind it come again before the next part of the log."""
    text = log(row(1), row(2, f"a\n{FORGED}\nb"), row(3), *(row(n) for n in range(10, 30))).decode().splitlines()
    whole = by_rows(log(*text[1:]))[0][0]
    for at in range(1, len(text)):
        (ids, _, _), kept = by_rows(log(*text[1:at]), keeping=True)
        (more, _, _), _ = by_rows("\n".join((*kept, *text[at:], "")).encode())
        assert sorted(set(ids + more), key=int) == whole
