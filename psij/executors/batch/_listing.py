"""Whose the jobs are that a queue lists: what it says of them is held against what is known of those that are followed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from psij.executors.batch._followed import Followed, LastAnswer
from psij.executors.batch._identity import Claim, Verdict, judge
from psij.job_status import JobStatus

if TYPE_CHECKING:
    from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor

__all__ = ["add_tags", "apart", "is_of", "listed", "native_ids_of", "repeats"]


def repeats(claim: Claim, last: Claim | None) -> bool:
    """Whether a claim says nothing that the last one of the job did not say too; its tags were asked for then."""
    return claim is last or claim == last or (
        last is not None and claim.tags is None and replace(claim, tags=last.tags) == last)


def is_of(item: Followed, claim: Claim) -> bool:
    """Whether an answer of the queue is about the job that is followed, and not about another one of its native id."""
    verdict, why = judge(item.identity, claim)
    if verdict is Verdict.DOUBT and item.identity.tags:
        verdict = item.executor._by_tag(item.job, item.native_id)
    if verdict is Verdict.OURS:
        item.identity.learn(claim)
        item.claim = claim
        return True
    item.left_out[f"the queue has another job of that number: {why}"] = None
    return False


def add_tags(executor: BatchSchedulerExecutor, last_answer: LastAnswer, items: Iterable[Followed],
              seen: dict[str, JobStatus | None]) -> None:
    """Ask for the tags of listed jobs, all at once, where the queue does not tell them and nothing was heard of them
    before that says the same. What has gone meanwhile is taken out of what was seen."""
    unsure = []
    for item in items:
        claim, last = last_answer.claims.get(item.native_id), item.claim
        if claim is not None and claim.tags is None and item.identity.tags != frozenset() and (
                last is None or (last.user, last.name) != (claim.user, claim.name)
                or (not repeats(claim, last) and judge(item.identity, claim)[0] is Verdict.DOUBT)):
            unsure.append(item.native_id)
    command = executor._tags_command(unsure) if unsure else None
    if command is None:
        return
    exit_code, out = executor._ask(command)
    tags = executor._parse_tags(out + "\n" * (exit_code != 0))      # the words of a failure come without it
    for native_id in unsure:
        tags_of_job = tags.get(native_id, tags.get(native_id.partition(".")[0]))
        if tags_of_job is None:
            seen.pop(native_id, None)
        else:
            last_answer.claims[native_id] = replace(last_answer.claims[native_id], tags=tags_of_job)


def listed(executor: BatchSchedulerExecutor, items: list[Followed]) -> dict[str, Claim | None]:
    """The jobs that the queue has, with what it says of whose they are."""
    native_ids = native_ids_of(items)
    answer = LastAnswer(set(native_ids))
    seen: dict[str, JobStatus | None] = {}
    for _, command in executor._status_commands(native_ids):
        seen.update(executor._ask_queue(command, answer))
    add_tags(executor, answer, [item for item in items if item.native_id in seen], seen)
    return {**answer.elements, **{native_id: answer.claims.get(native_id) for native_id in seen}}


def apart(items: list[Followed]) -> tuple[list[Followed], list[Followed]]:
    """Jobs that can be asked about together, and those that cannot, because another one has their native id."""
    first: dict[str, Followed] = {}
    together: list[Followed] = []
    others: list[Followed] = []
    for item in items:
        identity = first.setdefault(item.native_id, item).identity
        same = not identity.tags or not item.identity.tags or bool(identity.tags & item.identity.tags)
        (together if same else others).append(item)
    return together, others


def native_ids_of(items: Iterable[Followed]) -> list[str]:
    """Their native ids, each once, in order."""
    return list(dict.fromkeys(item.native_id for item in items))
