"""``convert --from auto``: records are recognised by how they begin and then read as a stream, of a pipe too."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from sssjob.cli._files import Source
from sssjob.errors import RejectedError
from sssjob.limits import LIMITS, Limits
from sssjob.translators.recognise import begun
from tests.cli.conftest import Command

HEADER = b"JobID|User|State|NCPUS|ElapsedRaw\n"
ROW = b"7|alice|COMPLETED|4|3600\n"
LARGE = HEADER + ROW * 8000


class Pipe(io.RawIOBase):
    """What cannot go back; it keeps how much was taken of it."""

    def __init__(self, data: bytes) -> None:
        self.data, self.taken = data, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        made = self.data[self.taken:self.taken + len(buffer)]
        buffer[:len(made)] = made
        self.taken += len(made)
        return len(made)


@pytest.mark.parametrize("size", [0, 10, 1 << 16, len(LARGE) + 1])
def test_what_was_looked_at_comes_again(size: int) -> None:
    for read in (Source.whole, lambda s: s.stream().read(), lambda s: b"".join(s.stream())):
        source = Source(io.BufferedReader(Pipe(LARGE)), "x")
        assert source.head(size) == LARGE[:size]
        assert read(source) == LARGE
    source = Source(io.BytesIO(LARGE), "x")
    with pytest.raises(RejectedError, match="document_bytes = 100 bytes"):
        source.whole(Limits(document_bytes=100))


def test_records_are_recognised_by_their_beginning() -> None:
    head = LARGE[:LIMITS.recognise_bytes]
    found = begun(head)
    assert found is not None and found[0].name == "sacct" and found[1].why.startswith("it begins with columns of sacct")
    assert begun(b"#!/bin/sh\n#SBATCH -p x\n") is None             # a script takes all of the text
    assert begun(b"<Job><Id>1</Id></Job>") is None                  # and so does a document
    assert begun(b"#!/bin/sh\n") is None


def test_a_long_log_is_read_piece_by_piece(sssjob: Command, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first rows are out before the last are read."""
    pipe = Pipe(LARGE)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(pipe)))
    seen: list[int] = []
    from sssjob.cli import convert

    monkeypatch.setattr(convert, "emit", lambda text, output="-": seen.append(pipe.taken))
    code, _, err = sssjob("convert", "-t", "csv", "-")
    assert code == 0 and err.endswith("8000 records read: 8000 given as 8000 jobs, 0 rejected\n")
    assert seen[0] < len(LARGE) == pipe.taken


def test_the_same_with_and_without_a_format(sssjob: Command, place: Path) -> None:
    Path("log").write_bytes(LARGE)
    named, found = (sssjob("convert", "-q", *options, "-t", "csv", "log") for options in (("-f", "sacct"), ()))
    assert named == found and named.out.count("\n") == 8001


def test_a_format_that_is_no_stream_gets_all_of_it(sssjob: Command, place: Path) -> None:
    """What was looked at is not lost where the jobs are then read whole."""
    Path("log").write_bytes(LARGE)
    named, found = (sssjob("convert", "-q", *options, "-t", "sss-json", "log") for options in (("-f", "sacct"), ()))
    assert named == found and named.out.count('"Id"') >= 8000


@pytest.mark.parametrize("data", [b"", b"\0" * 70_000, b"#" * 70_000, b"<" * 70_000, LARGE[:70_000] + b"\0"],
                         ids=lambda data: str(data[:2]))
def test_bad_input_has_a_status(data: bytes, sssjob: Command, place: Path) -> None:
    Path("x").write_bytes(data)
    assert sssjob("convert", "-q", "-t", "csv", "x").code in (0, 1, 2)
    assert sssjob("convert", "-t", "csv", "nowhere").code == 3


def test_an_unknown_format_is_told_before_the_file(sssjob: Command, place: Path) -> None:
    assert sssjob("convert", "-f", "nothing", "-t", "sss", "nowhere").code == 2


@pytest.mark.parametrize("door", ["check", "show", "explain", "convert -t slurm", "convert -t sss", "query //Job",
                                  "account -f auto", "run --dry-run --executor local"])
@pytest.mark.parametrize(("text", "status"), [('{"a": 1}', 1), ("<a/>", 1), ("", 1), ("\0", 1), ("hello\n", 2)])
def test_what_nobody_knows_is_the_same_at_every_door(door: str, text: str, status: int, tmp_path: Path,
                                                     sssjob: Command) -> None:
    """XML, JSON and bytes that are no text are taken for documents, which say what is wrong with them."""
    (tmp_path / "it").write_text(text)
    if text == "<a/>" and door.startswith("query"):
        pytest.skip("a query is about XML as it stands, whatever it is")
    answer = sssjob(*door.split(), str(tmp_path / "it"))
    assert (answer.code, answer.out) == (status, "")
