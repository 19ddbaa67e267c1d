"""What is to be done once for each job that ends: a command that is run, or a URL that its document is posted to.

It stands in the journal from the beginning, so that any client does it. It is done after the end is on the disk, by the
client that holds the lease, and that it was done is written down afterwards: a client that is killed in between is
followed by one that does it again. So each is done at least once, and bears a key that is the same every time, by which
the receiver knows a second time. What goes wrong is told and never changes a job. URLs may hold secrets: only their
hosts are told.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from sssjob.document.inherit import effective
from sssjob.document.model import Document
from sssjob.errors import UsageError
from sssjob.limits import LIMITS
from sssjob.run.pauses import NONE, Pause
from sssjob.version import __version__
from sssjob.xml.writer import write_document

if TYPE_CHECKING:
    from sssjob.run.engine import Engine
    from sssjob.run.history import Event
    from sssjob.run.standing import Running, Submission

__all__ = ["Done", "Hook", "OnEnd", "hook_of", "kept", "posted", "promise_all", "ran", "shown", "take_event",
           "take_promise"]

_AT_ONCE: Final = 4             # hooks that run at the same time
_TRIES: Final = 6               # of a post that fails for a reason that may pass
_PAUSE_S: Final = (5.0, 3600.0)     # before the second try, and before any
_SLACK_S: Final = 5.0           # after the time limit of a hook, before nobody waits for it any more
_TAIL: Final = 300              # bytes of the output of a command that are told when it fails
_URL: Final = re.compile(r"(?i)https?://[!-~]+")
_LATER: Final = frozenset((408, 425, 429, 500, 502, 503, 504))     # answers after which a post is tried again
_VARIABLES: Final = ("KEY", "ID", "NAME", "NATIVE_ID", "EXECUTOR", "STATE", "OUTCOME", "EXIT_CODE", "MESSAGE",
                     "IDEMPOTENCY_KEY")


@dataclass(slots=True, eq=False)
class Hook:
    """One thing to be done at the end of one job. command: words, or url.

    id: the same for the same command or URL. tries: that failed; pause: before the next one. over: it is done, or will
    not be tried again.
    """

    id: str
    command: tuple[str, ...] = ()
    url: str = ""
    tries: int = 0
    pause: Pause = NONE
    over: bool = False
    working: bool = False           # a thread of this process is at it

    @property
    def shown(self) -> str:
        """For people: the program, or scheme and host."""
        if not self.url:
            return self.command[0]
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}/..."

    def promise(self) -> dict[str, Any]:
        """The data of an event ``on-end``."""
        return {"hook": self.id, **({"url": self.url} if self.url else {"command": list(self.command)})}

    @property
    def waits(self) -> bool:
        """Whether there is nothing to be done just now."""
        return self.over or (not self.working and self.pause.seconds_left() > 0)


def _shown_among(job: Running, hook: Hook) -> str:
    """For people: the hook, with its number where several of the job's look alike, in the order of their promises."""
    alike = [other.id for other in job.hooks.values() if other.shown == hook.shown]
    return hook.shown if len(alike) == 1 else f"{hook.shown} ({alike.index(hook.id) + 1} of {len(alike)})"


def shown(data: Mapping[str, Any]) -> dict[str, Any]:
    """The data of an event ``on-end`` without what a URL may hold of secrets."""
    hook = kept(data)
    return {**data, **({"url": hook.shown} if hook.url else {})}


@dataclass(frozen=True, slots=True)
class Done:
    """What became of a hook. error: None where all was well. transient: another try may help. left: it was stopped,
    because its client was told to end."""

    hook: Hook
    error: str | None = None
    transient: bool = False
    left: bool = False


def hook_of(text: str, directory: Path | None = None) -> Hook:
    """What ``--on-end`` says: a URL of http or https, else a command, whose words are found as a shell does, which is
    not started. Raises UsageError. directory: where a program with a relative path is looked for."""
    if text.lower().startswith(("http://", "https://")):
        return _checked_url(text)
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"--on-end: {error}") from None
    if not words or any("\0" in word for word in words):
        raise UsageError("--on-end: a command or a URL of http or https is wanted")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", words[0]):
        raise UsageError("--on-end: only URLs of http and https are known")
    program = words[0] if "/" not in words[0] else os.path.join(directory or Path.cwd(), words[0])
    if shutil.which(program) is None:
        raise UsageError(f"--on-end: there is no program {words[0]!r}")
    return Hook(_id("\0".join(words)), words)


def _checked_url(text: str) -> Hook:
    try:
        parts = urlsplit(text)
        good = _URL.fullmatch(text) is not None and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good:
        raise UsageError("--on-end: this is no whole URL of http or https")
    if "@" in parts.netloc:
        raise UsageError("--on-end: a URL with a user or a password is not taken")
    return Hook(_id(text), url=text)


def _id(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def kept(data: Mapping[str, Any]) -> Hook:
    """The hook of the data of an event ``on-end``."""
    return Hook(data["hook"], tuple(data.get("command", ())), data.get("url", ""))


def take_promise(job: Running, event: Event) -> None:
    """Take in an event ``on-end`` of the journal."""
    job.hooks.setdefault(event.data["hook"], kept(event.data))


def take_event(job: Running, event: Event) -> None:
    """Take in an event ``hook`` of the journal."""
    hook = job.hooks.get(event.data["hook"])
    if hook is not None:
        hook.tries = int(event.data.get("tries", hook.tries))
        hook.over |= event.data["step"] != "failed"
        hook.pause = Pause(event.time, float(event.data.get("pause", 0.0)))


class OnEnd:
    """Does what was promised for the jobs of an engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._unwritten: list[Running] = []     # jobs that have ended and perhaps are not in the journal yet
        self._ready: deque[tuple[Running, Hook]] = deque()
        self._working: dict[threading.Thread, tuple[Running, Hook]] = {}
        self._later: list[tuple[Running, Hook]] = []
        self._leaves = threading.Event()
        self._at_end = False
        self.stopped_by = ""                    # the signal, or ``timeout``, because of which nobody waits for the rest

    def has_ended(self, job: Running) -> None:
        """A job has ended; what was promised is done when that is on the disk."""
        if job.of.entry is None:
            self.resume(job)
        elif any(not hook.over for hook in job.hooks.values()):
            self._unwritten.append(job)

    def written(self, submission: Submission) -> None:
        """The ends of a submission are on the disk, as far as that can be."""
        ended = [job for job in self._unwritten if job.of is submission]
        self._unwritten = [job for job in self._unwritten if job.of is not submission]
        for job in ended:
            self.resume(job)

    def resume(self, job: Running) -> None:
        """Do what is promised of a job that has ended."""
        at_it = {id(hook) for _, hook in (*self._ready, *self._later, *self._working.values())}
        for hook in job.hooks.values():
            if not hook.over and id(hook) not in at_it:
                (self._later if hook.pause.seconds_left() else self._ready).append((job, hook))

    def begin(self) -> None:
        """Begin what may begin."""
        later, self._later = self._later, []
        for job, hook in later:
            (self._later if hook.pause.seconds_left() else self._ready).append((job, hook))
        while self._ready and len(self._working) < _AT_ONCE and not self._at_end:
            job, hook = self._ready.popleft()
            hook.working = True
            environment = {**{name: value for name, value in os.environ.items() if name not in _NAMES},
                           **_variables(job, hook)}
            thread = threading.Thread(target=self._do, name="sssjob-on-end", daemon=True, args=(
                self.engine.place[id(job)], hook, _document(job, bool(hook.url)), environment, _directory(job)))
            self._working[thread] = job, hook
            thread.start()

    @property
    def idle(self) -> bool:
        """Whether nothing is to be done just now."""
        return not (self._unwritten or self._ready or self._working)

    def next_due(self) -> float:
        """Seconds until something is to be tried again."""
        return min((hook.pause.seconds_left() for _, hook in self._later), default=float("inf"))

    def take(self, job: Running, done: Done) -> None:
        """Take in what became of a hook."""
        hook = done.hook
        self._working = {thread: item for thread, item in self._working.items() if item[1] is not hook}
        hook.working = False
        if done.left:
            return
        if done.error is None:
            hook.over = True
            job.of.note(job, "hook", {"hook": hook.id, "step": "done"})
            return
        hook.tries += 1
        again = done.transient and hook.tries < _TRIES
        pause = min(_PAUSE_S[0] * 4.0 ** (hook.tries - 1), _PAUSE_S[1]) if again else 0.0
        more = f"; tried again in {pause:g} s at the soonest, by any client" if again else ""
        text = f"--on-end {_shown_among(job, hook)}: {done.error}{more}"
        job.of.note(job, "hook", {"hook": hook.id, "step": "failed" if again else "over", "tries": hook.tries,
                                  "pause": pause})
        self.engine.tell(job, text)
        hook.over, hook.pause = not again, Pause(time.time(), pause)
        if again:
            self._later.append((job, hook))

    def stop(self, why: str) -> None:
        """All jobs have ended, and nobody waits for what is still to be done."""
        self.stopped_by = why
        self._leaves.set()
        programs = ", ".join(dict.fromkeys(hook.shown for _, hook in (*self._ready, *self._working.values())))
        self.engine.findings.add(
            "SSS602", "journal", f"{why}: all jobs have ended, but --on-end {programs} has not; it was stopped" + (
                ", and the next client begins it anew" if self.engine.shared else ""), severity="warning")

    def leave(self) -> None:
        """Begin nothing more, and see those to their ends that run; where a signal told to leave they are stopped, and
        the next client begins them anew."""
        self._at_end = True
        if self.engine.stopped is not None:
            self._leaves.set()
        until = time.monotonic() + LIMITS.hook_seconds + _SLACK_S
        for thread, (job, _) in self._working.items():
            thread.join(max(until - time.monotonic(), 0.0))
            if thread.is_alive() and job.of.entry is not None:
                job.of.entry.stays_held = True

    def _do(self, place: int, hook: Hook, document: bytes, environment: Mapping[str, str], directory: Path) -> None:
        """In a thread of its own."""
        done = Done(hook)
        try:
            if hook.url:
                done = posted(hook, document, environment["SSSJOB_IDEMPOTENCY_KEY"])
            else:
                done = ran(hook, document, environment, directory, self._leaves)
        except Exception as error:      # whatever it is: it is no reason to wait for ever
            done = Done(hook, f"{type(error).__name__} while it was done")
        finally:
            self.engine.events.put((place, 0, done, None))


def ran(hook: Hook, document: bytes, environment: Mapping[str, str], directory: Path,
        leaves: threading.Event) -> Done:
    """Run a command to its end or to its time limit (``hook_seconds``), with the document on its standard input."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as stdin:
        stdin.write(document)
        stdin.seek(0)
        try:
            process = subprocess.Popen(hook.command, stdin=stdin, stdout=output, stderr=output, cwd=directory,
                                       env=dict(environment), start_new_session=True)
        except (OSError, ValueError) as error:
            return Done(hook, f"cannot be run: {getattr(error, 'strerror', None) or error}")
        until = time.monotonic() + LIMITS.hook_seconds
        while True:
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.1)
                break
            if leaves.is_set() or time.monotonic() > until:
                _end(process)
                if leaves.is_set():
                    return Done(hook, left=True)
                return Done(hook, f"it took longer than {LIMITS.hook_seconds:g} s (hook_seconds) and was ended")
        if process.returncode == 0:
            return Done(hook)
        output.seek(max(output.seek(0, os.SEEK_END) - _TAIL, 0))
        last_line = output.read(_TAIL).decode("utf-8", "replace").strip().rpartition("\n")[2]
        code = process.returncode
        how = f"exit code {code}" if code > 0 else f"ended by signal {-code}"
        return Done(hook, f"{how}{': ' + last_line if last_line else ''}")


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def posted(hook: Hook, document: bytes, key: str) -> Done:
    """Post the document, as JSON, and look at the status of the answer. Redirections are not followed. An answer that
    comes byte by byte, each in time, is not waited for either."""
    from concurrent.futures import Future

    answer = Future[Done]()

    def post() -> None:
        try:
            answer.set_result(_posted(hook, document, key))
        except Exception as error:
            answer.set_exception(error)

    threading.Thread(target=post, daemon=True).start()
    try:
        return answer.result(LIMITS.hook_post_seconds)
    except TimeoutError:
        return _unanswered(hook)


def _unanswered(hook: Hook) -> Done:
    return Done(hook, f"there is no answer within {LIMITS.hook_post_seconds:g} s", True)


def _posted(hook: Hook, document: bytes, key: str) -> Done:
    import http.client
    import ssl
    import urllib.error
    import urllib.request as web

    class Stay(web.HTTPRedirectHandler):
        """A redirection is an answer like any other."""

        def redirect_request(self, *_: Any) -> None:
            """None, as for one that is not to be followed."""

    opener = web.OpenerDirector()           # no handlers of files, FTP or data, which build_opener has
    for handler in (web.ProxyHandler(), web.HTTPHandler(), web.HTTPSHandler(), web.HTTPDefaultErrorHandler(),
                    web.HTTPErrorProcessor(), Stay()):
        opener.add_handler(handler)
    request = web.Request(hook.url, document, method="POST", headers={
        "Content-Type": "application/json", "User-Agent": f"sssjob/{__version__}", "Idempotency-Key": key})
    try:
        with opener.open(request, timeout=LIMITS.hook_post_seconds):
            return Done(hook)
    except urllib.error.HTTPError as error:
        error.close()
        return Done(hook, f"the answer is HTTP status {error.code}", error.code in _LATER)
    except (OSError, http.client.HTTPException, ValueError) as error:
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(cause, TimeoutError):
            return _unanswered(hook)
        why = cause.strerror if isinstance(cause, OSError) and cause.strerror else type(cause).__name__
        return Done(hook, f"cannot be reached: {why}", not isinstance(cause, ssl.SSLCertVerificationError | ValueError))


_NAMES: Final = frozenset(f"SSSJOB_{name}" for name in _VARIABLES)


def _variables(job: Running, hook: Hook) -> dict[str, str]:
    """What the environment of a hook says of the job; only what is known."""
    row = job.row
    token = "" if job.of.entry is None else job.of.entry.token
    variables = {"KEY": row.key if token else None, "ID": row.id, "NAME": row.name, "NATIVE_ID": row.native_id,
                 "EXECUTOR": row.executor or None, "STATE": row.state, "OUTCOME": row.outcome,
                 "EXIT_CODE": row.exit_code,
                 "MESSAGE": None if job.outcome is None else job.outcome.message.replace("\0", "") or None,
                 "IDEMPOTENCY_KEY": f"{token or os.getpid()}.{job.number + 1}.{hook.id}"}
    return {f"SSSJOB_{name}": str(value) for name, value in variables.items() if value is not None}


def _document(job: Running, as_json: bool) -> bytes:
    """The document of a job alone, with what it inherits: XML, or its JSON form."""
    from sssjob.xml.twin import to_json

    group = job.plan.group
    whole = Document(effective(job.plan.job, group.defaults if group is not None else None).fold())
    return (to_json(whole) if as_json else write_document(whole)).encode("utf-8", "surrogateescape")


def _directory(job: Running) -> Path:
    """Where a command is run: where the document was submitted, or the root where that has gone."""
    directory = Path.cwd() if job.of.entry is None else job.of.entry.directory
    return directory if directory.is_dir() else Path("/")


def promise_all(jobs: Iterable[Running], hooks: Iterable[Hook]) -> None:
    """Have hooks done for jobs when they end."""
    promises = [hook.promise() for hook in hooks]
    for job in jobs:
        for data in promises if not job.plan.keep else ():
            job.hooks.setdefault(data["hook"], Hook(data["hook"], tuple(data.get("command", ())), data.get("url", "")))
