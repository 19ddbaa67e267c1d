"""Whose job a row of the queue or a record of accounting speaks of.

A native id alone says nothing: counters are set back, ids come round again, and accounting keeps what was called so
years ago. What decides is, as far as the manager tells it, the tag that our jobs bear, their user, their name and the
time of their submission. ``judge`` is the one place where that is decided: it is asked before a row or a record counts
and before a job is cancelled. What it cannot decide is left out.

A job that was put back into the queue by its manager has another time of submission from then on. Where records bear
the tag that does not matter; elsewhere the runs of one job are those that follow a run after which there may be another
one (``lives``). No process, file or clock in here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

#: How far the clocks of a client and of its resource manager may be apart, where nothing but the time tells.
SKEW_S = 120.0
_SAME_S = 2.0           # two times that are rounded differently are of one submission when they are so near
#: Characters that the tags of an array and of its elements begin with in common; the rest is the number of an element,
#: in decimal digits.
COMMON = 28
_WHOLE = "ffffffff"
_ID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_TAG = re.compile(rf"\bsssjob:({_ID})(?![\w-])|/({_ID})\.job(?![\w-])")
T = TypeVar("T")


class Verdict(Enum):
    """What follows from a claim."""

    OURS = "it is the job's own, or nothing speaks against that"
    STRANGER = "it is another job's"
    DOUBT = "it may be the job's own, submitted anew by its manager, or a later one of the same user"


@dataclass(frozen=True, slots=True)
class Claim:
    """What a row or a record says of whose job it is.

    tags: the ids of jobs of psij in it; empty where the manager would tell one and there is none. user, name: as the
    manager has them. submit_time: seconds since the epoch by the manager's clock. end_time: of a run that has ended,
    where the manager takes it from the clock of the node, as start records do. None: it does not say.
    """

    tags: frozenset[str] | None = None
    user: str | None = None
    name: str | None = None
    submit_time: float | None = None
    end_time: float | None = None


@dataclass(slots=True)
class Identity:
    """What is known of a job by which it is told from others with its native id.

    tags: any of them is its own; None of a job that was submitted elsewhere, until an answer tells. since, until:
    seconds since the epoch by our clock between which it was submitted. submit_time: by the manager's clock. began: by
    the clock of the node, when it began first, as its own start record says. after: when an earlier attempt of it that
    had the same native id was submitted by the manager's clock; before: when a later job was that got the native id.
    """

    tags: frozenset[str] | None = None
    user: str | None = None
    name: str | None = None
    since: float | None = None
    until: float | None = None
    submit_time: float | None = None
    began: float | None = None
    after: float | None = None
    before: float | None = None

    def learn(self, claim: Claim) -> None:
        """Keep what a claim of its own says that was not known: what comes later has to agree with that."""
        self.tags = claim.tags if self.tags is None else self.tags
        self.user = self.user or claim.user
        if self.tags and claim.tags and self.tags & claim.tags and claim.name:      # it may have been named anew
            self.name = claim.name
        self.name = self.name or claim.name
        if self.submit_time is None:
            self.submit_time = claim.submit_time

    @property
    def unknown(self) -> bool:
        """Whether nothing is known but the native id."""
        return self.tags is None and self.since is None and self.submit_time is None


def judge(identity: Identity, claim: Claim) -> tuple[Verdict, str]:
    """Whether a claim is about the job of that identity, and where it is not, why."""
    if identity.tags and claim.tags is not None:
        if identity.tags & claim.tags:
            return Verdict.OURS, ""
        return Verdict.STRANGER, "it bears another tag" if claim.tags else "it does not bear the tag"
    if identity.tags is not None and claim.tags:
        return Verdict.STRANGER, "it bears a tag"
    if identity.user and claim.user and identity.user != claim.user:
        return Verdict.STRANGER, f"its user is {claim.user}"
    if identity.name and claim.name and identity.name != claim.name:
        return Verdict.STRANGER, f"its name is {claim.name}"
    if identity.began is not None and claim.end_time is not None and claim.end_time < identity.began - _SAME_S:
        return Verdict.STRANGER, f"it had ended {identity.began - claim.end_time:.0f} s before the job began"
    if identity.after is not None and claim.submit_time is not None and claim.submit_time <= identity.after:
        return Verdict.STRANGER, "it is that of an earlier attempt"
    if identity.before is not None and claim.submit_time is not None and claim.submit_time >= identity.before:
        return Verdict.STRANGER, "it is that of a later job"
    return _by_time(identity, claim.submit_time)


def _by_time(identity: Identity, moment: float | None) -> tuple[Verdict, str]:
    first, last = _span(identity)
    if moment is None:
        return Verdict.OURS, ""
    if first is not None and moment < first:
        return Verdict.STRANGER, f"it was submitted {first - moment:.0f} s and more before the job"
    if last is not None and moment > last:
        return Verdict.DOUBT, f"it was submitted {moment - last:.0f} s and more after the job"
    return Verdict.OURS, ""


def _span(identity: Identity) -> tuple[float | None, float | None]:
    """Between which times the job was submitted by the manager's clock; None where that is open."""
    if identity.submit_time is not None:
        return identity.submit_time - _SAME_S, identity.submit_time + _SAME_S
    return (None if identity.since is None else identity.since - SKEW_S,
            None if identity.until is None else identity.until + SKEW_S)


@dataclass(frozen=True, slots=True)
class RunRecord(Generic[T]):
    """A record of one run. record: as its parser needs it. over: whether there is none after it by its own word."""

    claim: Claim
    over: bool
    record: T


def lives(runs: Sequence[RunRecord[T]]) -> list[list[RunRecord[T]]]:
    """The runs of each of the jobs that had a native id one after the other, in order of submission."""
    runs_by_job: list[list[RunRecord[T]]] = []
    for run in sorted(runs, key=lambda each: each.claim.submit_time or 0.0):
        if runs_by_job and _goes_on(runs_by_job[-1][-1], run):
            runs_by_job[-1].append(run)
        else:
            runs_by_job.append([run])
    return runs_by_job


def _goes_on(before: RunRecord[T], run: RunRecord[T]) -> bool:
    """Whether a run is one of the same job."""
    earlier, other = before.claim, run.claim
    if earlier.tags and other.tags:
        return bool(earlier.tags & other.tags)
    if earlier.user != other.user or earlier.name != other.name or bool(earlier.tags) != bool(other.tags):
        return False
    return not before.over or abs((earlier.submit_time or 0.0) - (other.submit_time or 0.0)) <= _SAME_S


@dataclass(slots=True)
class Whose:
    """The jobs that an answer is asked about, by native id. left_out: what was not taken, by native id, and why."""

    identities: Mapping[str, Identity] = field(default_factory=dict)
    left_out: dict[str, dict[str, None]] = field(default_factory=dict)

    def of(self, native_id: str) -> Identity | None:
        """The identity of a job, or of the array that it is an element of; None where neither is asked about."""
        return self.identities.get(self._asked(native_id))

    def _asked(self, native_id: str) -> str:
        return native_id if native_id in self.identities else re.split(r"[_.\[]", native_id, maxsplit=1)[0]

    def is_single(self, native_id: str) -> bool:
        """Whether a native id is asked about that is known to be one job, and no array that was attached."""
        identity = self.identities.get(native_id)
        tags = identity.tags if identity is not None else None
        return bool(tags) and not any(whole_tag(tag) == tag for tag in tags or ())

    def only(self, native_id: str) -> Whose:
        """The same with nothing but that job: records of elements that are asked about themselves are judged as parts
        of the array that the job may be."""
        return Whose({native_id: self.identities[native_id]}, self.left_out)

    def tag(self, native_id: str) -> str | None:
        """The tag of a job, of an element of an array its own; None where there is none, or several jobs have made it
        together."""
        identity = self.of(native_id)
        tags_of_job = (identity.tags or frozenset()) if identity is not None else frozenset()
        tags = tuple(tag for tag in tags_of_job if len(tags_of_job) == 1 or whole_tag(tag) != tag)
        return tags[0] if len(tags) == 1 else None

    def takes(self, native_id: str, claim: Claim) -> bool:
        """Whether a record of one job counts."""
        identity = self.of(native_id)
        verdict, why = (Verdict.OURS, "") if identity is None else judge(identity, claim)
        if verdict is not Verdict.OURS:
            self.leave(native_id, why)
        elif identity is not None and identity.unknown:
            identity.learn(claim)
        return verdict is Verdict.OURS

    def runs(self, native_id: str, runs: Sequence[RunRecord[T]]) -> list[T]:
        """The records of the job's own runs among those of its native id; of one of which nothing else is known, those
        of the last job that was called so."""
        identity = self.of(native_id) or Identity()
        runs_by_job = lives(runs)
        own = _tagged(identity, runs_by_job) or _nearest(identity, runs_by_job)
        if own is None:
            own = []
        elif self.of(native_id) is not None and identity.unknown:
            identity.learn(own[0].claim)
        for life in runs_by_job:
            if life is not own and not set(map(id, life)) <= set(map(id, own)):
                self.leave(native_id, _why(identity, life))
        return [run.record for run in own]

    def leave(self, native_id: str, why: str) -> None:
        """Note that something is left out."""
        self.left_out.setdefault(self._asked(native_id), {})[why] = None

    def left(self, native_ids: Iterable[str]) -> list[str]:
        """Why something about these was left out."""
        return [why for native_id in native_ids for why in self.left_out.get(native_id, ())]


def _tagged(identity: Identity, runs_by_job: Sequence[list[RunRecord[T]]]) -> list[RunRecord[T]] | None:
    """All runs that bear the job's tag."""
    tags = identity.tags or frozenset()
    return [run for life in runs_by_job for run in life if run.claim.tags and run.claim.tags & tags] or None


def _nearest(identity: Identity, runs_by_job: Sequence[list[RunRecord[T]]]) -> list[RunRecord[T]] | None:
    """The life whose submission is nearest to the job's; None where none fits, or two fit as well."""
    if identity.unknown:
        return runs_by_job[-1] if runs_by_job else None
    fitting = [life for life in runs_by_job if any(judge(identity, run.claim)[0] is Verdict.OURS for run in life)]
    if len(fitting) < 2:
        return fitting[0] if fitting else None
    far = sorted((_distance(identity, life), place) for place, life in enumerate(fitting))
    return fitting[far[0][1]] if far[0][0] < far[1][0] else None


def _distance(identity: Identity, life: Sequence[RunRecord[T]]) -> float:
    """Seconds between the submission of a life and the time in which the job was submitted; times are whole seconds,
    rounded down."""
    moment = life[0].claim.submit_time
    if moment is None:
        return 0.0
    if identity.submit_time is not None:
        return min(abs((run.claim.submit_time or 0.0) - identity.submit_time) for run in life)
    first, last = identity.since, identity.until
    return max((first or moment) - 1.0 - moment, moment - (last or moment), 0.0)


def _why(identity: Identity, life: Sequence[RunRecord[T]]) -> str:
    why = judge(identity, life[0].claim)[1]
    return why or "it is not known which of several jobs of that number it is about"


def whole_tag(tag: str) -> str:
    """The tag of the array that the job with this tag would be an element of. That of a job which is none is a tag that
    nothing bears."""
    return tag[:COMMON] + _WHOLE


def tags_in(text: str) -> frozenset[str]:
    """The tags in a comment or a command line: ``sssjob:<id>``, or a script ``<id>.job``."""
    return frozenset(comment_tag or other for comment_tag, other in _TAG.findall(text))
