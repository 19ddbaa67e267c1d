"""The counter at which orders come in: one transaction for many, an answer for each, and one job however often."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from sssjob.errors import AccessError, RejectedError, UsageError
from sssjob.run.journal import Entry, Journal
from sssjob.serve import counter
from sssjob.serve.access import DeniedError, User
from sssjob.serve.counter import Counter, Workers
from sssjob.serve.desk import ConflictError, Desk, Entered, Order, Submitted
from tests.serve.conftest import served

AMY: Final = User("amy", frozenset({"submit"}))
BOB: Final = User("bob", frozenset({"submit"}))
EVE: Final = User("eve", frozenset())
JOB: Final = b"<Job><Id>%s</Id><Executable>/bin/true</Executable></Job>"
#: With a script, which is kept in the folder of its submission.
SCRIPT: Final = (b"<Request action='Submit' actor='amy'><Object>Job</Object><Data><Job><Id>%s</Id>"
                 b"<Executable>#s</Executable></Job></Data><File id='s'>%s</File></Request>")


def order(name: str, user: User = AMY, key: str | None = None, *, waits: bool = True) -> Order:
    return Order(user, JOB % name.encode(), key=key, waits=waits)


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of the submissions that are begun; no process is started for any of them."""
    begun: list[int] = []
    monkeypatch.setattr("sssjob.run.client.keep", lambda entries: begun.extend(entry.number for entry in entries))
    return begun


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path / "journal.db", ("local",), tmp_path)
    yield desk
    desk.close()


@contextmanager
def statements(desk: Desk) -> Iterator[list[str]]:
    """What SQLite is told meanwhile."""
    statements: list[str] = []
    desk.journal._connection.set_trace_callback(statements.append)
    yield statements
    desk.journal._connection.set_trace_callback(None)


def test_one_transaction_for_many_and_a_failure_hurts_itself_only(desk: Desk, tmp_path: Path) -> None:
    """A document that is none, a user without the right, a job of somebody else, a key that was used for another
    document, before or in the same moment: each has an error of its own; the others are in the journal."""
    desk.submit(order("before", key="old"))
    orders = [Order(AMY, SCRIPT % (b"one", b"echo")), Order(AMY, b"<Job><Id>", source="sss"), order("two", EVE),
              order("three", BOB, "old"),
              Order(AMY, b"<Job><User>bob</User><Executable>x</Executable></Job>"), order("four", key="old"),
              order("five", key="new"), order("six", key="new"), order("five", key="new"), order("seven")]
    with statements(desk) as told:
        results = desk.enter(orders)
    assert [told.count(word) for word in ("BEGIN IMMEDIATE", "COMMIT", "ROLLBACK")] == [1, 1, 0]
    assert [type(one) if isinstance(one, Exception) else (one.number, one.prepared.fresh) for one in results] == [
        (2, True), RejectedError, DeniedError, (3, True), DeniedError, ConflictError, (4, True), ConflictError,
        (4, False), (5, True)]
    assert [row.id for row in desk.journal.rows()] == ["before", "one", "three", "five", "seven"]
    assert len(list((tmp_path / "journal.db.d").iterdir())) == 1, "of the one that has a script"


def test_what_cannot_be_written_is_not_there_at_all(desk: Desk, tmp_path: Path,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    """The journal becomes full while orders are written, or at the very end of the transaction: nobody is told that
    something was submitted that is not there, and no folder of it is left."""
    desk.submit(Order(AMY, SCRIPT % (b"before", b"echo")))
    connection = desk.journal._connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages + 4}")
    wide = [Order(AMY, SCRIPT % (b"j%d" % n, b"x" * 3000)) for n in range(20)]
    results = desk.enter(wide)
    failures = [one for one in results if isinstance(one, Exception)]
    assert failures and all(isinstance(one, AccessError) and "the disk is full" in str(one) for one in failures)
    assert len(desk.journal.rows()) == 1 + len(results) - len(failures) == len(list(
        (tmp_path / "journal.db.d").iterdir()))
    connection.execute(f"PRAGMA max_page_count = {pages + 2000}")

    @contextmanager
    def failing(self: Journal) -> Iterator[None]:
        with self._transaction():
            depths.append(1)
            yield
            depths.pop()
            if not depths:
                raise AccessError("journal.db", "the last word was not written")

    depths: list[int] = []
    before = len(desk.journal.rows())
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "together", failing)
        assert [type(one) for one in desk.enter(wide[:3])] == [AccessError] * 3
    assert len(desk.journal.rows()) == before == len(list((tmp_path / "journal.db.d").iterdir()))
    assert desk.submit(order("after")).fresh


def counted(tmp_path: Path, act: Callable[[Counter], Any]) -> Any:
    """What comes of something that is done at a counter."""
    async def main() -> Any:
        counter = Counter(workers)
        try:
            return await act(counter)
        finally:
            await counter.close()

    workers = Workers(lambda: Desk(tmp_path / "journal.db", ("local",), tmp_path))
    try:
        return asyncio.run(main())
    finally:
        workers.close()


def test_a_thousand_retries_make_one_job(tmp_path: Path, kept: list[int]) -> None:
    """All of them at once, with other submissions between them: one of the answers says that it was made now."""
    async def retried(counter: Counter) -> list[Submitted]:
        return await asyncio.gather(*(counter.submit(order("same", key="k") if n % 100 else order(f"o{n}"))
                                      for n in range(1010)))

    answers = counted(tmp_path, retried)
    same = [one for one in answers if one.jobs[0]["id"] == "same"]
    assert len(same) == 999 and len({one.key for one in same}) == 1 and sum(one.fresh for one in same) == 1
    assert sorted(one.key for one in answers if one not in same) == sorted({one.key for one in answers} - {same[0].key})
    assert set(kept) == set(range(1, 13))


def test_orders_that_come_while_others_are_written_are_written_together(tmp_path: Path,
                                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    enter = Desk.enter

    def noted(self: Desk, orders: list[Order]) -> list[Entered | Exception]:
        sizes.append(len(orders))
        return enter(self, orders)

    monkeypatch.setattr(Desk, "enter", noted)

    async def several(counter: Counter) -> list[Submitted | BaseException]:
        first = asyncio.create_task(counter.submit(order("first")))
        await asyncio.sleep(0)
        rest = [counter.submit(order(f"j{n}")) for n in range(99)]
        return await asyncio.gather(first, *rest, counter.submit(order("no", EVE)), return_exceptions=True)

    *answers, refused = counted(tmp_path, several)
    assert isinstance(refused, DeniedError) and len({one.key for one in answers}) == 100
    assert len(sizes) <= 4 and sum(sizes) == 101


def test_who_does_not_wait_hears_when_it_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And who waits, when it was begun; meanwhile others are entered. A manager that fails is a finding: the job is in
    the journal all the same."""
    going = threading.Event()

    def slow(entries: Sequence[Entry]) -> None:
        assert going.wait(20)
        raise AccessError("keeper", "is away")

    monkeypatch.setattr("sssjob.run.client.keep", slow)
    with served(tmp_path) as place:
        waiting: list[Any] = []
        thread = threading.Thread(target=lambda: waiting.append(place.call("amy", "POST", "/v1/jobs", JOB % b"slow")))
        thread.start()
        try:
            answers = [place.call("bob", "POST", "/v1/jobs?wait=false", JOB % b"quick") for _ in range(2)]
            assert [(one.status, one.body["jobs"][0]["state"]) for one in answers] == [(201, "Idle")] * 2
            assert thread.is_alive() and not waiting
        finally:
            going.set()
            thread.join(20)
        assert waiting[0].status == 201
        assert [one["message"] for one in waiting[0].body["findings"]][-1] == "not begun yet: keeper: is away"


@pytest.mark.parametrize(("seconds", "fewest", "most"), [(0.0, 20, 20), (60.0, 1, 3)])
def test_the_first_do_not_wait_for_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float,
                                            fewest: int, most: int) -> None:
    """Orders that are begun one by one are answered when the time for some of them is over; all are in the end."""
    monkeypatch.setattr("sssjob.serve.counter._SLICE_S", seconds)
    hops: list[int] = []

    def noted(desk: Desk, batches: Sequence[Sequence[Entered]]) -> list[list[Submitted | Exception]]:
        hops.append(len(batches))
        return begun(desk, batches)

    begun = counter._begun
    monkeypatch.setattr(counter, "_begun", noted)

    async def several(counter: Counter) -> list[Submitted]:
        return await asyncio.gather(*(counter.submit(order(f"j{n}")) for n in range(20)))

    assert [one.jobs[0]["id"] for one in counted(tmp_path, several)] == [f"j{n}" for n in range(20)]
    assert fewest <= len(hops) <= most


def test_the_journal_cannot_be_opened(tmp_path: Path) -> None:
    """Every order is told so."""
    (tmp_path / "journal.db").write_bytes(b"no journal, but something else" * 40)

    async def both(counter: Counter) -> list[Submitted | BaseException]:
        return list(await asyncio.gather(counter.submit(order("a")), counter.submit(order("b")),
                                         return_exceptions=True))

    assert [type(one) for one in counted(tmp_path, both)] == [AccessError] * 2


def test_an_executor_that_is_not_here(desk: Desk) -> None:
    with pytest.raises(UsageError, match="not to be had here"):
        desk.submit(Order(AMY, JOB % b"x", executor="slurm"))
