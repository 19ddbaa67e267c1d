"""Logs that are read in parts: whatever the parts, the jobs are those of the whole log, each once."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.accounting.sources import Source
from sssjob.errors import AccessError
from sssjob.translators import ReadContext, get
from sssjob.translators.records.base import RecordTranslator
from tests.strategies import examples

FIXTURES = Path(__file__).parents[1] / "fixtures"
#: One suspended, one requeued and one that waits; the job of a day that ends on the next.
_LINES = [
    ("Q", "1", "queue=q"), ("S", "1", "user=a group=g ctime=1 start=5 exec_host=n/0"), ("z", "1", ""), ("r", "1", ""),
    ("Q", "2", "queue=q"), ("E", "1", "user=a group=g ctime=1 start=5 end=60 Exit_status=0 resources_used.walltime=9"),
    ("S", "2", "user=b group=g ctime=2 start=6 exec_host=n/0"),
    ("R", "2", "user=b group=g ctime=2 start=6 end=20 Exit_status=-11 run_count=1 resources_used.walltime=14"),
    ("S", "2", "user=b group=g ctime=2 start=30 exec_host=n/0"), ("Q", "3", "queue=q"),
    ("E", "2", "user=b group=g ctime=2 start=30 end=50 Exit_status=3 run_count=2 resources_used.walltime=20"),
]
PBS = "".join(f"11/21/2026 10:00:{second:02};{kind};{ident}.head;{rest}\n"
              for second, (kind, ident, rest) in enumerate(_LINES))

#: Of three days, the second one with its columns in another order.
SACCT = [f"JobID|{columns}|State|Start|End|ElapsedRaw\n{day}|{names}|COMPLETED|2026-01-0{day}T00:00:00|"
         f"2026-01-0{day}T01:00:00|3600\n".encode() for day, columns, names in (
             (1, "Account|User", "p1|u"), (2, "User|Account", "u|p2"), (3, "Account|User", "p3|u"))]


def read(source: Source, name: str = "pbs-acct") -> tuple[list[str], str]:
    """(the ended jobs, the state for the next time)."""
    translator = get(name)
    assert isinstance(translator, RecordTranslator) and translator.stream is not None
    stream = translator.stream(source.open(), ReadContext(options={"timezone": "UTC", "machine": "m"}))
    stream.keep()
    jobs = [str([(i.tag, str(getattr(i, "text", i))) for i in job.items]) for job in stream
            if job.value("State") == "Completed"]
    return jobs, source.state(stream.kept)


def whole(text: bytes, folder: Path, name: str = "pbs-acct") -> list[str]:
    path = folder / "whole"
    path.write_bytes(text)
    return read(Source(str(path)), name)[0]


def in_parts(text: bytes, cuts: list[int], folder: Path, name: str = "pbs-acct") -> list[str]:
    """The jobs of a log that is read after each cut; those that come again are counted once."""
    path, state, jobs = folder / "log", None, dict[str, None]()
    path.write_bytes(b"")
    for cut in [*sorted(cuts), len(text)]:
        path.write_bytes(text[:cut])
        fresh, state = read(Source(str(path), state), name)
        jobs |= dict.fromkeys(fresh)
    return list(jobs)


def test_a_byte_order_mark_in_the_middle_of_a_folder(tmp_path: Path) -> None:
    """A header behind one was taken for a row, and the rows below it were read by the columns of the file before."""
    mark = "\ufeff".encode()
    files = {"1": mark + SACCT[0], "2": mark + SACCT[1], "3.gz": gzip.compress(mark + SACCT[2]), "4": mark}
    for name, text in files.items():
        (tmp_path / name).write_bytes(text)
    jobs, state = read(Source(str(tmp_path)), "sacct")
    assert [job.count(f"'{ident}'") for job, ident in zip(jobs, "123", strict=True)] == [1, 1, 1]
    assert [job for ident in "123" for job in jobs if f"('Project', 'p{ident}')" in job] == jobs
    (tmp_path / "4").write_bytes(mark + SACCT[0].replace(b"1|", b"4|"))
    assert "'4'" in next(job for job in read(Source(str(tmp_path), state), "sacct")[0] if job not in jobs)


@pytest.mark.parametrize("cut", range(0, len(PBS), 7))
def test_read_in_two_parts(cut: int, tmp_path: Path) -> None:
    """A job is known by all its lines, also those before the cut; a half line waits for its rest."""
    text = PBS.encode()
    assert in_parts(text, [cut], tmp_path) == whole(text, tmp_path)


@settings(max_examples=examples(25), deadline=None)
@given(cuts=st.lists(st.integers(0, len(PBS)), max_size=6))
def test_read_in_many_parts(tmp_path_factory: pytest.TempPathFactory, cuts: list[int]) -> None:
    folder, text = tmp_path_factory.mktemp("s"), PBS.encode()
    assert in_parts(text, cuts, folder) == whole(text, folder)


def test_recorded_logs_in_parts(tmp_path: Path) -> None:
    """Grid Engine, with slaves of a parallel job before their master."""
    logs = sorted((FIXTURES / "gridengine-8.1.9").rglob("accounting*"))
    if not logs:
        pytest.skip("no recorded accounting file among the fixtures")
    text = logs[0].read_bytes()
    cuts = [n * len(text) // 9 for n in range(1, 9)]
    assert in_parts(text, cuts, tmp_path, "sge-acct") == whole(text, tmp_path, "sge-acct")


@pytest.fixture
def halves(tmp_path: Path) -> Iterator[tuple[Path, str, bytes]]:
    """A log of which the first half is read: its path, the state, and the second half."""
    text = PBS.encode()
    path = tmp_path / "log"
    path.write_bytes(text[:300])
    _, state = read(Source(str(path)))
    yield path, state, text[300:]


NEW = b"11/22/2026 00:00:01;E;4.head;user=c ctime=2 start=6 end=7 Exit_status=0\n"


@pytest.mark.parametrize("how", ["rename", "copytruncate"])
def test_rotation(how: str, halves: tuple[Path, str, bytes], tmp_path: Path) -> None:
    """What was added before the rotation is read, whatever the old file is called now."""
    path, state, rest = halves
    with open(path, "ab") as log:
        log.write(rest)
    if how == "rename":
        path.rename(tmp_path / "log-20261121")
    else:
        (tmp_path / "log.1").write_bytes(path.read_bytes())
    path.write_bytes(NEW)
    source = Source(str(path), state)
    jobs, state = read(source)
    assert len(jobs) == 4 and source.notes == []
    assert read(Source(str(path), state))[0] == []


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_rotation_with_compression(pack: Callable[[bytes], bytes], halves: tuple[Path, str, bytes],
                                   tmp_path: Path) -> None:
    """What was added before the log was compressed is read, and what was rotated in between."""
    path, state, rest = halves
    (tmp_path / "log.2.gz").write_bytes(pack(path.read_bytes() + rest))
    (tmp_path / "log.1").write_bytes(NEW)
    (tmp_path / "other").write_bytes(NEW.replace(b"4.head", b"5.head"))
    path.write_bytes(NEW.replace(b"4.head", b"6.head"))
    source = Source(str(path), state)
    jobs, state = read(source)
    assert [job.partition(".head")[0][-1] for job in jobs[-2:]] == ["4", "6"] and len(jobs) == 5
    assert (source.notes, source.lost) == ([], [])
    assert read(Source(str(path), state))[0] == []


def test_a_log_that_is_gone_is_told(halves: tuple[Path, str, bytes]) -> None:
    path, state, _ = halves
    path.write_bytes(NEW)
    source = Source(str(path), state)
    assert len(read(source)[0]) == 1
    assert len(source.lost) == 1 and "is another file than the last time" in source.lost[0]


def test_a_folder_of_days(tmp_path: Path) -> None:
    """PBS writes a file a day; a job may begin in one and end in the next."""
    folder = tmp_path / "accounting"
    folder.mkdir()
    lines = PBS.splitlines(keepends=True)
    (folder / "20261121").write_text("".join(lines[:3]))
    jobs, state = read(Source(str(folder)))
    assert jobs == []
    (folder / "20261121").write_text("".join(lines[:4]))
    (folder / "20261122").write_text("".join(lines[4:]))
    (folder / ".hidden").write_bytes(NEW)
    jobs, state = read(Source(str(folder), state))
    assert jobs == whole(PBS.encode(), tmp_path)
    assert read(Source(str(folder), state))[0] == []


def test_files_of_a_folder_that_are_gone_are_told(tmp_path: Path) -> None:
    folder = tmp_path / "accounting"
    folder.mkdir()
    (folder / "1").write_text(PBS)
    _, state = read(Source(str(folder)))
    (folder / "1").rename(tmp_path / "away")
    (folder / "2").write_bytes(NEW)
    source = Source(str(folder), state)
    assert len(read(source)[0]) == 1 and "is gone" in source.lost[0]
    (folder / "1").write_bytes(NEW)
    source = Source(str(folder), state)
    assert len(read(source)[0]) == 2 and "read from its start" in source.notes[0]


@pytest.mark.parametrize("state", ["", "[]", "{}", '{"name": 1, "offset": -5, "head": "", "carried": []}', "\0"])
def test_a_state_that_is_none_starts_anew(state: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(PBS)
    assert read(Source(str(tmp_path / "log"), state))[0] == whole(PBS.encode(), tmp_path)


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match="No such file"):
        read(Source(str(tmp_path / "none")))
    if os.geteuid():
        (tmp_path / "log").write_text(PBS)
        (tmp_path / "log").chmod(0)
        with pytest.raises(AccessError, match="Permission"):
            read(Source(str(tmp_path / "log")))
