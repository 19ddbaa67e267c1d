"""Kills clients of the journal at one line after another, and looks what the next client makes of it.

``python -m tests.run.kill_sweep EXECUTOR ACTION STEP FIRST FOLDER``: EXECUTOR is slurm, sge (stand-ins; with a + the
real ones, whose commands are on the path) or local, ACTION submit, run, retry (submit a job that fails at its first
attempt), array (submit one of three elements), room (submit three jobs to a queue that takes one at a time), route
(slurm refuses a job, which goes to sge then), reroute (it waits too long at slurm, and is moved to sge) or parts (of a
group one job is refused by slurm, another goes to sge); every
STEP-th line that the client executes in sssjob.run and psij.executors is one at which it is killed (SIGKILL). For each
a JSON line: the line's number, where it is, and what was found afterwards. Lines of threads count where these stage
files or do what is wanted at ends. With a STEP of 0 or below, only those lines count before which the client has
written something, and what Python tells its audit hooks that changes something (a process, a name, a signal), in all
threads: between two of these nobody else can see a difference, so that a hundred of them stand for all lines. 0 takes
each of them, -N every N-th.
Forked, not started anew each time, because that takes most of the time.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from psij.executors import _local_staging, batch, local
from psij.executors.batch import sge as _sge_module
from psij.executors.batch import slurm as _slurm_module
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig
from sssjob.findings import Policy
from sssjob.run import crew, on_end, routing, staging
from sssjob.run.client import Client
from sssjob.run.engine import Engine
from sssjob.run.journal import open_journal
from sssjob.run.standing import Submission
from sssjob.xml.reader import read_document
from tests import forks
from tests.fakes import lab, sge, slurm

__all__ = ["ARRAY", "CONFIG", "GROUP", "HOOK", "RETRY", "main", "prepared", "sweep", "truth"]

SETTLED_S = 150      # until all has ended at the latest: commands that nobody answers take 20 s, on a busy machine more
_LANES = 6 if os.environ.get("SSSJOB_SOAK") == "1" else 1      # the short sweeps run beside each other
_FAKES = {"slurm": slurm, "sge": sge}
_TRACED = (os.path.dirname(local.__file__), os.path.dirname(str(sys.modules["sssjob.run"].__file__)))
_IMPORTED = (batch, _sge_module, _slurm_module)
_OF_THREADS = tuple(str(module.__file__) for module in (_local_staging, staging, on_end, crew))  # traced in threads too
#: What others could see of a client, as Python's audit hooks call it, and the flags of a file that is to be written.
_EFFECTS = frozenset({"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate",
                      "os.utime", "os.chmod", "os.fork", "os.posix_spawn", "subprocess.Popen", "os.kill", "os.killpg",
                      "socket.connect", "socket.sendto", "socket.sendmsg"})
_TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT
#: What is wanted at each end: its key is written down.
HOOK = "/bin/sh -c 'echo $SSSJOB_IDEMPOTENCY_KEY >> keys'"
CONFIG: dict[str, Any] = {"queue_polling_interval": 0.3, "initial_queue_polling_delay": 0.1, "command_timeout": 20,
                          "accounting_delay": 1.0, "lost_after": 4.0}
GROUP = """<JobGroup><Id>g</Id>
<Job><Id>one</Id><Executable>/bin/sh</Executable><Arguments>-c 'echo one >> ran; exit 3'</Arguments>
  <Environment export='true'/></Job>
<Job><Id>two</Id><Dependency condition='OnFailure' designator='JobId'>one</Dependency><Executable>/bin/sh</Executable>
  <Arguments>-c 'echo two >> ran; echo kept > kept; echo moved > moved; echo rest > rest'</Arguments>
  <Environment export='true'/>
  <Extension type='PSIJ' name='StageOut'>{"source": "kept", "target": "back/kept"}</Extension>
  <Extension type='PSIJ' name='StageOut'>{"source": "moved", "target": "back/moved", "mode": "MOVE"}</Extension>
  <Extension type='PSIJ' name='Cleanup'>rest</Extension>
  <Extension type='PSIJ' name='Cleanup'>kept</Extension></Job>
</JobGroup>"""
#: A job whose second attempt ends well.
RETRY = """<Job><Id>one</Id><Executable>/bin/sh</Executable>
<Arguments>-c 'echo $SSSJOB_ATTEMPT >> ran; test $SSSJOB_ATTEMPT = 2 || exit 3'</Arguments><Environment export='true'/>
<Extension type='Scheduler' name='Retry'>exit(3)=5</Extension></Job>"""

#: An array, of which one element fails.
ARRAY = """<Job><Id>one</Id><Executable>/bin/sh</Executable>
<Arguments>-c 'echo $SGE_TASK_ID >> ran; test $SGE_TASK_ID != 2 || exit 3'</Arguments><Environment export='true'/>
<Extension type='Scheduler' name='Array'>0-4:2</Extension></Job>"""
#: Jobs of which a queue takes one after another.
ROOM = "".join(("<JobGroup><Id>g</Id>", *(f"""<Job><Id>{name}</Id><Executable>/bin/sh</Executable>
<Arguments>-c 'echo {name} >> ran'</Arguments><Environment export='true'/></Job>"""
                   for name in ("one", "two", "three")), "</JobGroup>"))
#: A job that goes to one of two sites.
ROUTED = """<Job><Id>one</Id><Queue>{}</Queue><Executable>/bin/sh</Executable>
<Arguments>-c 'echo one >> ran'</Arguments><Environment export='true'/></Job>"""
_DOCUMENTS = {"retry": RETRY, "array": ARRAY, "room": ROOM}
#: Action -> the queue of the first site, and seconds that the job may wait there.
_ROUTES: dict[str, tuple[str, float | None]] = {"route": ("nosuch", None), "reroute": ("batch", 0.3),
                                                "parts": ("nosuch", None)}


def prepared(executor: str, folder: Path) -> None:
    """Have a folder with a stand-in in it, its commands first on the path, and be in there."""
    folder.mkdir(parents=True)
    os.chdir(folder)
    os.environ["SSSJOB_JOURNAL"] = str(folder / "journal.db")
    if executor in _FAKES:
        fake = _FAKES[executor]
        lab.install(str(fake.__file__), fake.COMMANDS, folder / "lab", folder / "bin")
        os.environ["PATH"] = f"{folder / 'bin'}:{os.environ['PATH']}"


def _second_site(folder: Path) -> None:
    """Have a second stand-in beside the first one, where nothing begins."""
    lab.install(str(sge.__file__), sge.COMMANDS, folder / "lab2", folder / "bin")
    lab.Lab(folder / "lab").set(wait=1e6)
    for name, manager in (("alpha", "slurm"), ("beta", "sge")):
        (folder / f"{name}.toml").write_text(f"name = '{name}'\nmanager = '{manager}'\n")


def _route(client: Client, action: str, folder: Path) -> None:
    """Submit a document to one of two sites, and follow it to its end."""
    queue, patience = _ROUTES[action]
    texts = [ROUTED] if action != "parts" else [
        f"<JobGroup><Id>g</Id>{ROUTED.replace('one', name)}</JobGroup>" for name in ("one", "two")]
    several = [([routing.Candidate(site, str(folder / f"{site}.toml"), manager, name, text.format(name), "")
                 for site, manager, name in (("alpha", "slurm", queue), ("beta", "sge", "all.q"))][place:], (place,))
               for place, text in enumerate(texts)]
    routes = routing.begin_parts(client.journal, several, policy=Policy.IGNORE, directory=folder, patience=patience)
    routing.advance_all(client, [route.token for route in routes])
    client.wait(["g" if action == "parts" else "@1"], 60)


def _finished(client: Client) -> bool:
    """Whether a document that was on its way has come to its end; the next client does what is left to do."""
    until = time.monotonic() + SETTLED_S
    while time.monotonic() < until:
        client.look([client.journal.entry(number) for number in client.journal.unclosed()])
        if not routing.open_routes(client.journal) and not client.journal.unfinished():
            return True
    return False


def _client(folder: Path) -> Client:
    return Client(open_journal(), config=BatchSchedulerExecutorConfig(work_directory=folder / "work", **CONFIG))


def _act(executor: str, action: str, folder: Path) -> None:
    """What is killed: a client that submits or runs, and does the keeper's work itself."""
    client = _client(folder)
    if action in _ROUTES:
        _route(client, action, folder)
        return
    document = read_document(_DOCUMENTS.get(action, GROUP).encode())
    wanted = [on_end.hook_of(HOOK)] if action not in _DOCUMENTS else []
    if action == "run":
        client.run(document, executor, policy=Policy.IGNORE, on_end=wanted)
        return
    if executor == "local":
        setattr(sys.modules["sssjob.run.client"], "keep", lambda entry: None)  # noqa: B010 (not exported)
    made: Submission | None = client.submit(document, executor, policy=Policy.IGNORE, on_end=wanted)
    if executor == "local":
        assert made is not None and made.entry is not None and made.entry.take()
        made = client.standing(made.entry)
        made.owned = True
        engine = Engine([made], client.findings, client.progress)
        engine.follow(lambda: made.ended)
    elif action in ("retry", "room"):
        client.wait(["@1"], 60)


class _Points:
    """Counts what a client does, and ends it at one of them; what was counted goes to the report, and where it was."""

    def __init__(self, count: int, report: int) -> None:
        self.count, self.report, self.seen, self.written = count, report, 0, -1

    def reached(self, where: str) -> None:
        """Count one, and die if it is this one."""
        self.seen += 1
        if self.seen == self.count:
            os.write(self.report, json.dumps([self.seen, where]).encode())
            os.kill(os.getpid(), signal.SIGKILL)

    def line(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Count a line, as a trace function."""
        if not frame.f_code.co_filename.startswith(_TRACED):
            return None
        if event == "line":
            self.reached(f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}")
        return self.line

    def line_after_writing(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Count a line if something was written before it, by whatever thread."""
        if event == "line" and (written := self._written()) != self.written:
            self.written = written
            return self.line(frame, event, argument) and self.line_after_writing
        return self.line_after_writing if frame.f_code.co_filename.startswith(_TRACED) else None

    @staticmethod
    def _written() -> int:
        """How many times this process has written."""
        with open("/proc/self/io", encoding="ascii") as stream:
            return int(next(line for line in stream if line.startswith("syscw")).split()[1])

    def event(self, name: str, arguments: tuple[Any, ...]) -> None:
        """Count what is about to be done, as an audit hook."""
        if name in _EFFECTS or (name == "open" and isinstance(arguments[2], int) and arguments[2] & _TO_WRITE):
            self.reached(name)


def _killed_at(count: int, act: Callable[[], None], report: int, effects: bool) -> None:
    """Do something, and die at that line, or at that effect."""
    points = _Points(count, report)
    trace = points.line_after_writing if effects else points.line

    def trace_thread(frame: FrameType, event: str, argument: Any) -> Any:
        return trace(frame, event, argument) if frame.f_code.co_filename.startswith(_OF_THREADS) else None

    if effects:
        sys.addaudithook(points.event)
    sys.settrace(trace)
    threading.settrace(trace_thread)
    try:
        act()
    finally:
        sys.settrace(None)
        threading.settrace(None)
        os.write(report, json.dumps([points.seen, "end"]).encode())
        points.count = 0


def _in_child(act: Callable[[], None]) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            act()
            os._exit(0)
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(1)
    os.waitpid(pid, 0)


def truth(executor: str, folder: Path) -> dict[str, Any]:
    """What has really happened: which jobs ran, and how many native jobs there are."""
    ran = folder / "ran"
    native = None if executor not in _FAKES else len(lab.Lab(folder / "lab").jobs())
    if (folder / "lab2").exists():
        native = len(lab.Lab(folder / "lab2").jobs())
    keys, back = folder / "keys", folder / "back"
    return {"ran": ran.read_text().split() if ran.exists() else [], "native": native,
            "keys": sorted(key.partition(".")[2] for key in set(keys.read_text().split())) if keys.exists() else [],
            "back": sorted((path.name, path.read_text()) for path in back.iterdir()) if back.exists() else [],
            "left": [name for name in ("kept", "moved", "rest") if (folder / name).exists()]}


def _point(executor: str, action: str, count: int, effects: bool, folder: Path) -> bool:
    """One kill and what comes after it, as a line; whether the client came to its end before."""
    prepared(executor, folder)
    if action in _ROUTES:
        _second_site(folder)
    if action == "room":
        lab.Lab(folder / "lab").set(most=1)
    read, write = os.pipe()
    _in_child(lambda: _killed_at(count, lambda: _act(executor, action, folder), write, effects))
    lines, where = json.loads(os.read(read, 1000))
    client = _client(folder)
    accepted = bool(client.journal.rows() or routing.open_routes(client.journal))
    ended = True
    if accepted and action in _ROUTES:
        ended = _finished(client)
    elif accepted:
        _, ended = client.wait(["@1"], SETTLED_S)
        until = time.monotonic() + 30
        while client.journal.unkept() and time.monotonic() < until:     # by the process that looks after local jobs
            time.sleep(0.05)
            client.look([client.journal.entry(1)])
    else:
        time.sleep(1)
    found = {"count": count, "lines": lines, "where": where, "accepted": accepted, "ended": ended,
             "outcomes": [[r.id, r.outcome, r.exit_code] for r in client.journal.rows()], **truth(executor, folder)}
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()
    return bool(where == "end")


def sweep(executor: str, action: str, step: int, first: int, folder: Path) -> None:
    """All points, several at a time, until one is behind the end."""
    def points() -> Iterator[int]:
        count = first
        while not (folder / "over").exists():
            yield count
            count += abs(step) or 1

    if executor in _FAKES:
        forks.shared()                  # one server for all lanes
    running: set[int] = set()
    for count in points():
        pid = os.fork()
        if pid == 0:
            code = 0
            try:
                if _point(executor, action, count, step < 1, folder / str(count)):
                    (folder / "over").touch()
            except BaseException as error:
                code = 1
                (folder / "over").touch()
                sys.stdout.write(json.dumps({"count": count, "error": repr(error)}) + "\n")
                sys.stdout.flush()
            os._exit(code)
        running.add(pid)
        if len(running) >= _LANES:
            running.discard(os.wait()[0])
    while running:
        running.discard(os.wait()[0])


def main() -> None:
    """Sweep as the words of the command line say."""
    if sys.argv[1].endswith("+"):
        _FAKES.clear()
    sweep(sys.argv[1].rstrip("+"), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))


if __name__ == "__main__":
    main()
