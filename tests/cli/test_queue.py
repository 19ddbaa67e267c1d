"""``convert --queue``: messages as elements of a directory queue, as the clients of APEL and SSM take them."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from sssjob.cli import main
from sssjob.cli._queues import enqueue, messages
from sssjob.errors import AccessError

HEADER = "JobID|Cluster|User|Account|Partition|Submit|Start|End|ElapsedRaw|State|AllocTRES|TotalCPU|MaxRSS\n"
OPTIONS = ("--option", "timezone=UTC", "--option", "site=SITE-A", "--option", "benchmark=HEPscore23 15.3",
           "--option", "vo=p1:atlas,*:ops")
#: Reads a queue as APEL's receiver does: the package of the queue, the factory of records.
READER = """
import json, sys
from dirq.QueueSimple import QueueSimple
from apel.db.loader.record_factory import RecordFactory
queue, found = QueueSimple(sys.argv[1]), []
for name in queue:
    assert queue.lock(name)
    records = RecordFactory().create_records(queue.get(name).decode())
    for record in records:
        record._check_fields()
    found.append([{key: str(value) for key, value in record._record_content.items()} for record in records])
    queue.remove(name)
print(json.dumps(found))
"""


def log(count: int) -> str:
    """Jobs of two months and three projects; nothing in it is like another line."""
    return HEADER + "".join(
        f"{n}|colony|u{n % 7}|p{n % 3}|batch|{1769900000 + n}|{1769900010 + n}|{1769900010 + 700 * n}|{699 * n}|"
        f"COMPLETED|cpu={1 + n % 4},mem=4G,node=1|00:{n % 60:02}:07|{n}K\n" for n in range(1, count + 1))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "log").write_text(log(2300))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def convert(target: str, *more: str) -> int:
    return main(["convert", "-q", "-f", "sacct", "-t", target, *(OPTIONS[:4] if target == "apel-sync" else OPTIONS),
                 *more, "log"])


def elements(queue: Path) -> list[Path]:
    return sorted(path for path in queue.rglob("*") if path.is_file())


def test_a_message_is_an_element(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """At most a thousand records each, in their order by name; together they are the text that convert writes."""
    assert convert("apel", "--queue", "out", "--option", "created=1795000000") == 0
    written = elements(folder / "out")
    assert [path.read_bytes().count(b"%%\n") for path in written] == [1000, 1000, 300]
    assert all(path.read_bytes().startswith(b"APEL-individual-job-message: v0.3\n") for path in written)
    assert all(re.fullmatch(r"out/[0-9a-f]{8}/[0-9a-f]{14}", str(path.relative_to(folder))) for path in written)
    capfd.readouterr()
    assert convert("apel", "--option", "created=1795000000") == 0
    assert capfd.readouterr().out == "".join(path.read_text() for path in written)


def test_what_is_told(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    line = ["convert", "-f", "sacct", "-t", "apel-sync", *OPTIONS[:4], "log", "--queue", "out"]
    assert main(line) == 0
    assert capfd.readouterr().err.endswith("out: 1 message\n")
    assert main([*line, "--json"]) == 0
    answer = json.loads(capfd.readouterr().err.splitlines()[-1])
    assert answer["type"] == "messages"
    assert [folder / "out" / name for name in answer["names"]] == elements(folder / "out")[-1:]


@pytest.mark.parametrize(("line", "message"), [
    ("-t csv --queue out log", "--queue is for messages (apel, apel-summary, apel-sync), not for csv"),
    ("-t apel --queue out --out other log", "--queue excludes --out, --output, --diff and --explain"),
    ("-t apel --queue out -o other log", "--queue excludes --out, --output, --diff and --explain"),
    ("-t apel --queue out .", "--queue is for one file"),
])
def test_refusals(folder: Path, capfd: pytest.CaptureFixture[str], line: str, message: str) -> None:
    assert main(["convert", "-f", "sacct", *line.split()]) == 2
    assert capfd.readouterr().err == f"sssjob: {message}\n"
    assert not (folder / "out").exists()


def test_nothing_to_send(folder: Path) -> None:
    """A log of which no job can be a record puts nothing into the queue."""
    (folder / "log").write_text(HEADER + "7|colony|u|p|batch|1|Unknown|Unknown|0|PENDING||||\n")
    convert("apel", "--queue", "out")
    assert elements(folder / "out") == []


def test_a_name_that_is_taken(tmp_path: Path) -> None:
    """Whoever asks at the same microsecond gets another name, and nobody's message is lost."""
    names = [name for _ in range(3) for name in enqueue(str(tmp_path), [b"a", b"b"], lambda: 1795000000.000001)]
    assert len(set(names)) == 6
    assert Counter(path.read_bytes() for path in elements(tmp_path)) == {b"a": 3, b"b": 3}


@pytest.mark.parametrize("call", ["link", "fsync"])
def test_all_messages_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """A disk that is full in the middle leaves the queue as it was."""
    calls, real = [0], getattr(os, call)

    def full(*arguments: object) -> None:
        calls[0] += 1
        if calls[0] > 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(*arguments)

    monkeypatch.setattr(os, call, full)
    with pytest.raises(AccessError, match="No space left on device"):
        enqueue(str(tmp_path / "out"), [b"a", b"b", b"c", b"d"])
    assert list((tmp_path / "out").iterdir()) == []


def test_a_queue_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AccessError, match="Not a directory"):
        enqueue(str(tmp_path / "file"), [b"a"])


def test_headers_within() -> None:
    """Only a line that begins so begins a message."""
    lines = [b"x\n", b"H: 1\n", b" H: 2\n", b"a H:\n", b"H: 3\n", b"H: 4\n"]
    assert list(messages(lines, re.compile(b"H:"))) == [b"x\n", b"H: 1\n H: 2\na H:\n", b"H: 3\n", b"H: 4\n"]


def apel() -> str:
    """The Python that has APEL's package."""
    python = os.environ.get("SSSJOB_APEL")
    if python is None:
        pytest.skip("SSSJOB_APEL names no Python that has the packages apel and dirq")
    return python


@pytest.mark.parametrize(("target", "version", "sums"), [
    ("apel", "0.3", False), ("apel", "0.4", False), ("apel-summary", "0.2", True), ("apel-summary", "0.3", True),
    ("apel-summary", "0.4", True), ("apel-sync", "", True)])
def test_apel_takes_them(folder: Path, target: str, version: str, sums: bool) -> None:
    """Its own parser reads every record of the queue, and they add up to what the log says."""
    python = apel()
    assert convert(target, "--queue", "out", *(["--option", f"version={version}"] if version else [])) == 0
    done = subprocess.run([python, "-c", READER, str(folder / "out")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    taken = json.loads(done.stdout)
    assert all(0 < len(records) <= 1000 for records in taken)
    assert elements(folder / "out") == []
    records = [record for some in taken for record in some]
    assert sum(int(record["NumberOfJobs"]) if sums else 1 for record in records) == 2300
    assert {record["SubmitHost"] for record in records} == {"None"}     # counts are compared by it
    if target != "apel-sync":
        assert sum(int(record["WallDuration"]) for record in records) == sum(699 * n for n in range(1, 2301))
        assert sum(int(record["CpuDuration"]) for record in records) == sum(60 * (n % 60) + 7 for n in range(1, 2301))
        assert {record["VO"] for record in records} == {"atlas", "ops"}
    if not sums:
        assert {record["LocalJobId"] for record in records} == {str(n) for n in range(1, 2301)}
