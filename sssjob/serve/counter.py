"""Threads that work at desks, and the counter at which orders come in: those that arrive while others are being written
into the journal are written next, all of them in one transaction, and answered when that is on the disk.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeVar

from sssjob.serve.desk import Desk, Entered, Order, Submitted

__all__ = ["Counter", "Workers"]

T = TypeVar("T")
_THREADS: Final = {"enter": 1, "begin": 1, "change": 1, "follow": 1, "news": 1, "read": 2, "query": 2, "convert": 2}
_MOST: Final = 64           # orders of one transaction
_SLICE_S: Final = 0.02      # that orders are begun before the first of them are answered
_CLOSE_S: Final = 10.0


class Workers:
    """Threads that work at desks, each at its own: one writes orders into the journal, one has resource managers take
    them, one changes what was submitted, one follows jobs; queries and documents, which may take long, are kept from
    all else."""

    def __init__(self, desk: Callable[[], Desk]) -> None:
        self._make = desk
        self._pools = {name: ThreadPoolExecutor(threads, f"sssjob-{name}") for name, threads in _THREADS.items()}
        self._desks: list[Desk] = []
        self._free: dict[str, list[Desk]] = {name: [] for name in self._pools}

    async def do(self, where: str, work: Callable[[Desk], T]) -> T:
        """Have a thread of a pool do something at its desk."""
        return await asyncio.get_running_loop().run_in_executor(self._pools[where], self._at_desk, where, work)

    def _at_desk(self, where: str, work: Callable[[Desk], T]) -> T:
        free = self._free[where]
        try:
            desk = free.pop()
        except IndexError:
            desk = self._make()
            self._desks.append(desk)
        try:
            return work(desk)
        finally:
            free.append(desk)

    def close(self) -> None:
        """Let what was begun come to its end, and close the desks."""
        for pool in self._pools.values():
            pool.shutdown(wait=True, cancel_futures=True)
        for desk in self._desks:
            desk.close()


class Counter:
    """Takes orders. An order is answered when it is on the disk, and where its user waits for that, when the resource
    manager has taken or refused its jobs."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._orders: list[tuple[Order, asyncio.Future[Submitted]]] = []
        self._entered: list[tuple[Entered, asyncio.Future[Submitted]]] = []
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def submit(self, order: Order) -> Submitted:
        """Submit what an order says. Raises what ``Desk.submit`` raises."""
        answer: asyncio.Future[Submitted] = asyncio.get_running_loop().create_future()
        self._orders.append((order, answer))
        self._have("enter", self._enter)
        return await answer

    async def close(self) -> None:
        """Begin what was taken, for a while; what is not begun then is in the journal all the same."""
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=_CLOSE_S)

    def _have(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Have a task do it, unless one does."""
        if name not in self._tasks or self._tasks[name].done():
            self._tasks[name] = asyncio.create_task(work())

    async def _enter(self) -> None:
        while self._orders:
            batch, self._orders = self._orders[:_MOST], self._orders[_MOST:]
            try:
                results = await self._workers.do("enter", partial(_entered, orders=[order for order, _ in batch]))
            except Exception as error:          # the journal cannot even be opened
                results = [error] * len(batch)
            for (_, answer), result in zip(batch, results, strict=True):
                if isinstance(result, Exception):
                    _settle(answer, result)
                    continue
                entered, submitted = result
                if submitted is not None:
                    _settle(answer, submitted)
                self._entered.append((entered, answer))
            self._have("begin", self._begin)

    async def _begin(self) -> None:
        while self._entered:
            batches: list[list[tuple[Entered, asyncio.Future[Submitted]]]] = []
            while self._entered and len(batches) < _MOST:
                batches.append(self._next())
            try:
                results = await self._workers.do("begin", partial(
                    _begun, batches=[[entered for entered, _ in batch] for batch in batches]))
            except Exception as error:          # the journal cannot even be opened
                results = [[error] * len(batch) for batch in batches]
            for batch, answers in zip(batches, results, strict=False):
                for (_, answer), result in zip(batch, answers, strict=True):
                    _settle(answer, result)
            self._entered[:0] = [item for batch in batches[len(results):] for item in batch]

    def _next(self) -> list[tuple[Entered, asyncio.Future[Submitted]]]:
        """Orders that are begun together: those of one user, so that nobody hears of the jobs of others. One that is
        begun alone is with those that are the same once more."""
        first = self._entered[0][0]
        if first.is_alone:
            batch = [item for item in self._entered if item[0].number == first.number]
        else:
            batch = [item for item in self._entered
                     if item[0].order.user == first.order.user and not item[0].is_alone][:_MOST]
        chosen = {id(entered) for entered, _ in batch}
        self._entered = [item for item in self._entered if id(item[0]) not in chosen]
        return batch


def _entered(desk: Desk, orders: Sequence[Order]) -> list[tuple[Entered, Submitted | None] | Exception]:
    """Orders as they were entered, with the answers of those whose users do not wait for more."""
    return [result if isinstance(result, Exception)
            else (result, None if result.order.waits else desk.submitted(result))
            for result in desk.enter(orders)]


def _begun(desk: Desk, batches: Sequence[Sequence[Entered]]) -> list[list[Submitted | Exception]]:
    """How orders stand that are begun, batch by batch, as far as there is time: the first is not to wait for the last,
    but a thread that is woken for each of many does little else."""
    results: list[list[Submitted | Exception]] = []
    until = time.monotonic() + _SLICE_S
    for batch in batches:
        try:
            results.append([*desk.begin(batch)])
        except Exception as error:
            results.append([error] * len(batch))
        if time.monotonic() > until:
            break
    return results


def _settle(answer: asyncio.Future[Submitted], result: Submitted | Exception) -> None:
    """Give an answer, unless it was given, or nobody waits for it any more."""
    if answer.done():
        return
    if isinstance(result, Exception):
        answer.set_exception(result)
    else:
        answer.set_result(result)
