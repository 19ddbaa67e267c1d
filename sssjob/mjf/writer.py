"""The provider's side: the directories of one job on one node, made before it starts, kept up to date, and removed.

    with provide(scratch, "4711", values_of(job)) as features:
        environment |= features.environment(environment)
        ...
        features.announce("shutdowntime_job", reservation_end)

The tree is ``mjf-<job>-XXXXXXXX/{machine,job,status}``; its parent's name cannot be guessed, since scratch is often
shared. Executors call this before the payload and ``remove`` after it.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sssjob.errors import AccessError, UsageError
from sssjob.findings import escape
from sssjob.mjf._files import naming, put
from sssjob.mjf.keys import AREAS, KEYS, VARIABLES, Key
from sssjob.mjf.places import Here
from sssjob.mjf.values import Value, read_value, write_value

__all__ = ["Directories", "provide", "sweep"]

#: Lies in a tree that was made here; no other is ever removed.
MARK: Final = ".sssjob-mjf"
_GRACE: Final = {"shutdowntime": "grace_secs", "shutdowntime_job": "grace_secs_job"}
#: key of the draft -> that of the note and how many of its units make one
_DRAFT: Final = {key.name: (key.of, key.factor) for key in KEYS.values() if key.of}


@dataclass(frozen=True, slots=True)
class Directories:
    """The tree of one job. owner: (uid, gid) of the job's user, who gets the job's files and the status directory;
    None: whoever runs this. draft: the keys of draft 0.99 are written beside those of the note."""

    root: str
    owner: tuple[int, int] | None = None
    draft: bool = False
    clock: Callable[[], float] = time.time

    def __enter__(self) -> Directories:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def path(self, area: str) -> str:
        """The directory of an area."""
        return os.path.join(self.root, area)

    def make(self) -> None:
        """The three directories, mode 0755: machine and job are the provider's, status the user's, and empty."""
        with naming(self.root):
            os.makedirs(self.root, 0o755, exist_ok=True)
            self._check_owner()
            if not os.path.lexists(os.path.join(self.root, MARK)):
                if os.listdir(self.root):
                    raise AccessError(escape(self.root), "is not empty and was not made for Machine/Job Features")
                put(self.root, MARK, "Machine/Job Features")
            os.chmod(self.root, 0o755)
            for area in AREAS:
                if not os.path.isdir(self.path(area)):
                    os.mkdir(self.path(area))
                    os.chmod(self.path(area), 0o755)
                    if self.owner is not None and area == "status":
                        os.chown(self.path(area), *self.owner)

    def environment(self, existing: Mapping[str, str] | None = None, *, override: bool = False) -> dict[str, str]:
        """The variables for the job. Where the site has set MACHINEFEATURES or JOBFEATURES, it keeps them all."""
        if not override and any((existing or {}).get(VARIABLES[area]) for area in ("machine", "job")):
            return {}
        return {VARIABLES[area]: self.path(area) for area in AREAS}

    def exports(self) -> str:
        """The same as lines for a shell."""
        return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in self.environment().items())

    def set(self, values: Mapping[str, Value]) -> None:
        """Write keys, each file at once and whole. Nothing is written where one of them is no value (UsageError)."""
        stated: dict[str, Value] = dict(values)
        if self.draft:
            stated = self._drafted(values) | stated
        texts = [(key_of(name), written(key_of(name), value)) for name, value in stated.items()]
        for key, text in texts:
            put(self.path(key.area), key.name, text, owner=self.owner if key.area == "job" else None)

    def unset(self, *names: str) -> None:
        """Take keys away; one that is not there is no error."""
        also = [d for d, (of, _) in _DRAFT.items() if of in names] if self.draft else []
        for name in (*names, *also):
            path = os.path.join(self.path(key_of(name).area), name)
            with naming(path):
                if os.path.lexists(path):
                    os.unlink(path)

    def announce(self, name: str, when: float) -> float:
        """Set a shutdown time and give the one that was set: never nearer than the published grace, never in the
        past."""
        if name not in _GRACE:
            raise UsageError(f"{name!r} is no shutdown time (known: {', '.join(_GRACE)})")
        now = self.clock()
        grace = self._stated(_GRACE[name]) or 0
        assert not isinstance(grace, str)
        if when != self._stated(name):
            when = math.ceil(max(when, now + grace))
            self.set({name: when})
        return when

    def expire(self) -> tuple[str, ...]:
        """Take shutdown times away that have arrived, as the draft asks, and say which."""
        now = self.clock()
        expired = tuple(n for n in _GRACE if isinstance(t := self._stated(n), int | float) and t <= now)
        self.unset(*expired)
        return expired

    def remove(self) -> None:
        """Remove the whole tree, the pilot's files too; AccessError where it was not made here."""
        if not os.path.isdir(self.root):
            return
        if not os.path.lexists(os.path.join(self.root, MARK)):
            raise AccessError(escape(self.root), "was not made for Machine/Job Features and is not removed")
        self._check_owner()
        with naming(self.root):
            shutil.rmtree(self.root)        # does not follow links, however they get there

    def _check_owner(self) -> None:
        """Where somebody else owns the tree, its names may become links under our hands."""
        if os.stat(self.root).st_uid != os.geteuid():
            raise AccessError(escape(self.root), "belongs to somebody else")

    def _stated(self, name: str) -> Value | None:
        answer = Here(self.path(KEYS[name].area)).read([name], {})[name]
        try:
            return read_value(KEYS[name].kind, answer.raw) if answer.state == "value" else None
        except ValueError:
            return None

    def _drafted(self, values: Mapping[str, Value]) -> dict[str, Value]:
        """The draft's keys for those of the note, rounded down to its units; 0 of them would be no limit."""
        factor = values.get("cpufactor_lrms") or self._stated("cpufactor_lrms")
        drafted: dict[str, Value] = {}
        for name, (of, unit) in _DRAFT.items():
            value = values.get(of)
            if not isinstance(value, int | float) or isinstance(value, bool):
                continue
            if KEYS[name].normalised:
                value = value * factor if isinstance(factor, int | float) else 0
            if int(value // unit):
                drafted[name] = int(value // unit)
        return drafted


def key_of(name: str) -> Key:
    """The key that a provider may write under this name. Raises UsageError, with the known names."""
    key = KEYS.get(name)
    if key is None or key.area == "status":
        names = ", ".join(k.name for k in KEYS.values() if k.area != "status" and not k.draft)
        raise UsageError(f"no key of a provider: {escape(name, 60)!r} (known: {names})")
    return key


def written(key: Key, value: Value) -> str:
    """The text of a value of a key. Raises UsageError, which names the key."""
    try:
        return write_value(key, value)
    except ValueError as error:
        raise UsageError(f"{key.name}: {error}") from None


def provide(parent: str, job: str, values: Mapping[str, Value], *, owner: tuple[int, int] | None = None,
            draft: bool = False, clock: Callable[[], float] = time.time) -> Directories:
    """Make the directories of a job below parent, with these values in them.

    job: its id at the resource manager, part of the name. parent is a private or a sticky directory.
    """
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", job)[:100]
    with naming(parent):
        root = tempfile.mkdtemp(prefix=f"mjf-{safe}-", dir=os.path.abspath(parent))
    directories = Directories(root, owner, draft, clock)
    try:
        directories.make()
        directories.set(values)
    except BaseException:
        shutil.rmtree(root, ignore_errors=True)
        raise
    return directories


def sweep(parent: str, age_s: float, now: float) -> list[str]:
    """Remove the trees of jobs that crashed: our own, made here, and untouched for age_s seconds. Gives their names."""
    removed = []
    for root in Path(parent).glob("mjf-*"):
        try:
            status, mark = root.lstat(), (root / MARK).lstat()
            touched = max(path.lstat().st_mtime for path in (root, *(root / a for a in AREAS)) if path.exists())
            if status.st_uid == mark.st_uid == os.getuid() and not root.is_symlink() and now - touched > age_s:
                Directories(str(root)).remove()
                removed.append(root.name)
        except OSError:
            continue                # somebody else is at it, or it is not ours
    return removed
