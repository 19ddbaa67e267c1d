"""The state of a stand-in resource manager, its faults, and the process that runs a job.

One directory holds ``settings.json``, ``faults/<command>.json`` and a file per job, ``<number>.json``. Commands are
programs that read and write these; nothing stays in memory. A stand-in for a resource manager is a module beside this
one with a function for each of its commands (see ``slurm.py``); ``install`` puts them on a path as programs.

Faults of a command, each for so many calls (``times``, 1 unless stated, -1 for ever) after so many that go well
(``skip``): ``sleep`` (seconds), ``stdout``, ``stderr``, ``exit``: said instead of the truth; ``after``: true to do the
work first and lose the answer; ``kill``: ``before`` or ``after`` the work, kill who called. Of the true answer:
``edit`` (pairs of a pattern and what stands in its place), ``cut`` (put out only so many characters), ``flood`` (repeat
it up to so many).

With the setting ``virtual`` jobs are no processes. They do what their scripts say by ``sleep`` and ``exit``, begin and
end when somebody looks (any command, ``tick``), and write their records. With ``inside``, the commands run in the
process of the test. Both are for tests of many faults, of which the processes would take most of the time.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from tests import forks

Record = dict[str, Any]
Command = Callable[["Lab", list[str]], int]

_SETTINGS: Record = {
    "wait": 0.0,            # seconds from submission to start
    "forget": 300.0,        # seconds after its end until the queue does not list a job any more
    "accounting": True,     # whether there is accounting
    "lag": 0.0,             # seconds after its end until accounting knows a job
    "release": "22.05.8",   # of a manager whose answers differ from one to the next
    "cluster": "fake",      # its name
    "virtual": False,       # jobs are no processes
    "clock": 0.0,           # seconds by which the manager's clock is ahead of ours
    "node_clock": 0.0,      # the same for the clock of the nodes of virtual jobs
    "hold_again": False,    # whether a job that is to run again is held
    "array_size": 1001,     # one more than the greatest number of an element
    "most": None,           # jobs that may be in the queue at once
    "late": 0.0,            # seconds after its end until the exit record of a virtual job appears
}
STANDARD_INPUT = Path("/proc/self/fd/0")
_LIKE_THE_TRUTH = ("edit", "cut", "flood")


class Answer(NamedTuple):        # dataclasses would take as long to import as all the rest
    """What a command says, and how many seconds it takes."""

    exit_code: int
    stdout: str
    stderr: str
    seconds: float = 0.0

    def given(self) -> int:
        """Take that long, and give the answer as this process; its exit code."""
        time.sleep(self.seconds)
        sys.stdout.write(self.stdout)
        sys.stderr.write(self.stderr)
        return self.exit_code


class Group:
    """A command whose first word says which one is meant: faults are those of ``name-word``."""

    def __init__(self, name: str, commands: Mapping[str, Command]) -> None:
        self.commands = {f"{name}-{word}": command for word, command in commands.items()}
        self._name = name

    def named(self, arguments: list[str]) -> tuple[str, Command, list[str]]:
        """The name of the command that is meant, the command, and its arguments."""
        name = f"{self._name}-{arguments[0]}"
        return name, self.commands[name], arguments[1:]

    def __call__(self, lab: Lab, arguments: list[str]) -> int:
        answer = lab.answer(*self.named(arguments))
        lab.out.write(answer.stdout)
        lab.err.write(answer.stderr)
        lab.seconds += answer.seconds
        return answer.exit_code


def each(command: Command) -> Command:
    """A command that takes several ids, each as if it were alone; the worst status counts."""
    def command_of_all(lab: Lab, arguments: list[str]) -> int:
        return max([command(lab, [one]) for one in arguments])

    return command_of_all


class Lab:
    """The state directory of a stand-in; each call of a command has one of its own, for several threads may call.

    caller: the process that called, which faults kill, unless it is this one. input: the file that the command reads.
    out, err: what it says there. seconds: how long it takes beside what it does.
    """

    def __init__(self, root: Path, caller: int | None = None, input: Path = Path(os.devnull)) -> None:
        self.root, self.caller, self.input = root, caller, input
        self.out, self.err, self.seconds = io.StringIO(), io.StringIO(), 0.0
        root.mkdir(parents=True, exist_ok=True)
        (root / "faults").mkdir(exist_ok=True)

    # --- what tests use ------------------------------------------------------------------------------------------

    def set(self, **settings: Any) -> None:
        """Change settings."""
        _write(self.root / "settings.json", {**self.settings, **settings})

    def fault(self, command: str, **fault: Any) -> None:
        """Have a command fail."""
        with self._locked():            # or a call that counts the last fault down would write that one anew
            _write(self.root / "faults" / f"{command}.json", {"times": 1, **fault})

    def heal(self, command: str) -> None:
        """End a fault."""
        with self._locked():
            (self.root / "faults" / f"{command}.json").unlink(missing_ok=True)

    def calls(self, command: str) -> list[list[str]]:
        """Arguments of all calls of a command so far."""
        return [words[1:] for words in self.all_calls() if words[0] == command]

    def all_calls(self) -> list[list[str]]:
        """Names and arguments of all calls of any command so far."""
        log = self.root / "calls.jsonl"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def jobs(self) -> list[Record]:
        """All jobs, the oldest first."""
        found = []
        for path in self.root.glob("[0-9]*.json"):
            with suppress(FileNotFoundError):       # dropped just now
                found.append(self._read(path))
        return sorted(found, key=lambda job: int(job["number"]))

    def drop(self, job_id: str) -> Record | None:
        """Make a job vanish without a trace; what it was."""
        with self._locked():            # first, or somebody sees how it ended
            job = self.job(job_id)
            if job is not None:
                (self.root / f"{job['number']}.json").unlink(missing_ok=True)
        if job is not None:
            self.kill(job)
        return job

    def begin_anew(self, number: int = 1) -> None:
        """Have the manager count from a number again, and forget its queue; accounting has what was called so before.
        """
        with self._locked():
            for job in self.jobs():
                _write(self.root / f"past-{job['number']}-{time.monotonic_ns()}.json", job)
                (self.root / f"{job['number']}.json").unlink()
            _write(self.root / "last", number - 1)

    def stranger(self, **values: Any) -> Record:
        """A job that somebody has submitted by hand, and that runs until it is ended; it has the next id."""
        with self._locked():
            number, now = self._next_number(), self.now()
            job: Record = {"number": number, "id": str(number), "script": "", "command": "/home/x/other.sh",
                           "name": "stranger", "comment": "(null)", "context": "NONE", "output": "/dev/null",
                           "submit": now, "start": now, "end": None, "exit": None, "signal": 0, "held": False,
                           "canceled": False, "pid": None, "pe": "NONE", "slots": 1, "lasts": 1e6, "gives": 0,
                           "due": None, "tag": "", **values}
            _write(self.root / f"{number}.json", job)
            return job

    def close(self) -> None:
        """End everything that still runs."""
        for job in self.jobs():
            self.kill(job)

    def now(self) -> float:
        """The time by the manager's clock."""
        return time.time() + float(self.settings["clock"])

    def tick(self) -> None:
        """Have virtual jobs begin and end, and write their records."""
        if self.settings["virtual"]:
            with self._locked():
                self._tick()

    def end(self, job_id: str, code: int = 0, number: int = 0) -> None:
        """Have a virtual job end now, by an exit code or a signal."""
        with self._locked():
            job = self._job(job_id)
            self._end(job, self.now(), code, number)

    def _tick(self) -> None:
        now, settings = self.now(), self.settings
        for job in self.jobs():
            if job["end"] is None and job["start"] is None and not job["held"] and (
                    now >= job["submit"] + settings["wait"]) and self._turn(job) and self._has_place(job):
                job = self._change(job["number"], start=now if job.get("after") else job["submit"] + settings["wait"])
                self._record(job, ".start", f"{job['tag']} {int(self._node_time(job['start']))}\n")
            if job["end"] is None and job["start"] is not None and now >= job["start"] + job["lasts"]:
                job = self._end(job, job["start"] + job["lasts"], job["gives"], 0)
            if job["due"] is not None and now >= job["due"]:
                self._change(job["number"], due=None)
                times = (int(self._node_time(job[one])) for one in ("start", "end"))
                self._record(job, ".ec", "\n".join(map(str, (job["exit"], job["tag"], *times))) + "\n")

    def _end(self, job: Record, when: float, code: int, number: int) -> Record:
        due = when + float(self.settings["late"]) if job["start"] is not None and not number else None
        return self._change(job["number"], end=when, exit=code, signal=number, due=due)

    def _node_time(self, when: float) -> float:
        return when + float(self.settings["node_clock"]) - float(self.settings["clock"])

    def _record(self, job: Record, suffix: str, text: str) -> None:
        folder = Path(job["command"]).parent
        with suppress(OSError):
            fresh = folder / f"{job['id']}.{job['tag']}{suffix}.new"
            before = folder / f"{job['id']}.{job['tag']}{suffix}"
            fresh.write_text((before.read_text() if suffix == ".start" and before.exists() else "") + text)
            fresh.chmod(0o600)
            fresh.replace(before)

    # --- what commands use -----------------------------------------------------------------------------------------

    def say(self, text: object = "", end: str = "\n") -> None:
        """Put out a line."""
        self.out.write(f"{text}{end}")

    @property
    def is_full(self) -> bool:
        """Whether there are as many jobs as may be."""
        return not self.takes(1)

    def takes(self, more: int) -> bool:
        """Whether there is room for so many jobs more."""
        most = self.settings["most"]
        return most is None or sum(job["end"] is None for job in self.jobs()) + more <= most

    @property
    def settings(self) -> Record:
        path = self.root / "settings.json"
        return {**_SETTINGS, **(json.loads(path.read_text()) if path.exists() else {})}

    def job(self, job_id: str) -> Record | None:
        """The job of that id."""
        return next((job for job in self.jobs() if job["id"] == job_id), None)

    def _job(self, job_id: str) -> Record:
        job = self.job(job_id)
        assert job is not None, f"there is no job {job_id}"
        return job

    def update(self, number: int, **values: Any) -> Record:
        """Change a job."""
        with self._locked():
            return self._change(number, **values)

    def _change(self, number: int, **values: Any) -> Record:
        path = self.root / f"{number}.json"
        job = {**self._read(path), **values}
        _write(path, job)
        return job

    def queued(self) -> Iterator[Record]:
        """Jobs that the queue still lists."""
        forget = self.settings["forget"]
        for job in self.jobs():
            if job["end"] is None or self.now() < job["end"] + forget:
                yield job

    def accounted(self) -> Iterator[Record]:
        """Jobs that accounting knows by now."""
        lag = self.settings["lag"]
        past = [self._read(path) for path in sorted(self.root.glob("past-*.json"))]
        for job in [*past, *self.jobs()]:
            if job["end"] is None or self.now() >= job["end"] + lag:
                yield job

    def submit(self, script: Path, make_id: Callable[[int], str], environment: Callable[[Record], Mapping[str, str]],
               played: Path | None = None, **values: Any) -> Record:
        """Make a job of a script and a process that runs it. environment: the variables of the running job. played:
        the script that says what a virtual job does, if it is another one."""
        with self._locked():
            number = self._next_number()
            kept = self.root / f"script-{number}"
            kept.write_bytes(script.read_bytes())
            kept.chmod(0o700)
            job: Record = {"number": number, "id": make_id(number), "script": str(kept), "command": str(script),
                           "submit": self.now(), "start": None, "end": None, "exit": None, "signal": 0, "held": False,
                           "canceled": False, "pid": None, "output": "/dev/null", **values}
            if self.settings["virtual"]:
                job = {**_virtual(played or script), **job}
                _write(self.root / f"{number}.json", job)
                self._tick()
                return job
            _write(self.root / f"{number}.json", job)
        starter = os.fork()
        if starter == 0:
            os.setsid()
            if os.fork() == 0:
                self._run_job(job, environment)
            os._exit(0)
        os.waitpid(starter, 0)
        return job

    def submit_array(self, script: Path, elements: Sequence[int], form: str,
                     environment: Callable[[Record], Mapping[str, str]], **values: Any) -> int:
        """Make a job of each element of an array; the number of the array. form: of their ids, as ``{}_{}``."""
        with self._locked():
            whole = self._next_number()
        for n in elements:
            def make_id(number: int, n: int = n) -> str:
                return form.format(whole, n)

            own = {name: value.format(whole=whole, n=n) if name == "output" else value
                   for name, value in values.items()}
            self.submit(script, make_id, environment, **own, array=whole, element=n, tag=f"{script.stem[:28]}{n:08d}")
        return whole

    def _next_number(self) -> int:
        """No number comes twice, not even that of a job that was dropped."""
        last = self.root / "last"
        number = 1 + (int(last.read_text()) if last.exists() else 0)
        _write(last, number)            # whole, or a client that is killed here would end the manager
        return number

    def cancel(self, job: Record) -> None:
        """End a job as the user's wish."""
        with self._locked():        # it may begin just now
            job = self._read(self.root / f"{job['number']}.json")
            if job["end"] is not None:
                return
            self._change(job["number"], canceled=True, **({} if job["start"] else {"end": self.now()}))
        self.kill(job)

    def rerun(self, job: Record) -> None:
        """End the run of a job and have it wait for another one, under the same id."""
        if job["pid"] is None:          # a virtual one
            self.update(job["number"], start=None, held=self.settings["hold_again"])
        else:
            self.update(job["number"], again=True)
            self.kill(job, signal.SIGKILL)

    def kill(self, job: Record, number: int = signal.SIGTERM) -> None:
        """Send a signal to all processes of a job."""
        if job["pid"] is not None and job["end"] is None:
            with suppress(ProcessLookupError):
                os.killpg(job["pid"], number)
        elif "lasts" in job:
            with self._locked(), suppress(FileNotFoundError):
                job = self._read(self.root / f"{job['number']}.json")
                if job["end"] is None:
                    self._end(job, self.now(), 0, number)

    def _run_job(self, job: Record, environment: Callable[[Record], Mapping[str, str]]) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.closerange(0, 1 << 20)           # others may wait for the end of what is open here
        for mode in (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY):
            os.open(os.devnull, mode)
        number = job["number"]
        begin = max(job["submit"] + self.settings["wait"], job.get("begin", 0.0))
        came = time.monotonic()
        while self.now() < begin or self._read(self.root / f"{number}.json")["held"] or not (
                self._turn(job) and self._takes_place(job)):
            # It looks less often the longer it waits: a job that a test leaves held outlives the test.
            time.sleep(min(0.02 + (time.monotonic() - came) / 20, 0.3))
            if self._read(self.root / f"{number}.json")["end"] is not None:
                return
        path = job["output"].replace("%j", str(number))
        with open(path if os.path.isdir(os.path.dirname(path)) else os.devnull, "ab") as out:
            process = subprocess.Popen(["/bin/bash", job["script"]], stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=subprocess.STDOUT, start_new_session=True,
                                       env={**os.environ, **environment(job)})
        with self._locked():
            begins = self._read(self.root / f"{number}.json")["end"] is None
            if begins:
                self._change(number, start=self.now(), pid=process.pid)
        if not begins:              # it was cancelled just now
            os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
        if not begins:
            return
        with suppress(FileNotFoundError):           # dropped
            if self._read(self.root / f"{number}.json").get("again"):
                again = self.update(number, start=None, pid=None, again=False, held=self.settings["hold_again"])
                self._run_job(again, environment)
                return
            self.update(number, end=self.now(), exit=max(code, 0), signal=max(-code, 0))

    def _turn(self, job: Record) -> bool:
        """Whether a job's ``after``, pairs of ``ok``, ``notok`` or ``any`` and an id, lets it start.

        One that never will is ended at once; ids that are not known keep nobody waiting.
        """
        for kind, other_id in job.get("after", ()):
            other = self.job(other_id)
            if other is None or (other["end"] is not None and kind == "any"):
                continue
            if other["end"] is None:
                return False
            well = not (other["exit"] or other["signal"] or other["canceled"])
            if well != (kind == "ok"):
                self._change(job["number"], canceled=True, end=self.now(), never=True)
                return False
        return True

    def _takes_place(self, job: Record) -> bool:
        """Whether an element of an array may run beside those that do; it then is one of them."""
        if job.get("beside") is None:
            return True
        with self._locked():
            if not self._has_place(job):
                return False
            self._change(job["number"], placed=True)
            return True

    def _has_place(self, job: Record) -> bool:
        """Elements begin in their order, as at real managers, whichever process of the stand-in looks first; one that
        is held leaves its turn to the next."""
        most = job.get("beside")
        if most is None:
            return True
        others = [one for one in self.jobs() if one.get("array") == job["array"] and one["end"] is None
                  and one["id"] != job["id"]]
        begun = [one.get("placed", False) or one["start"] is not None for one in others]
        first = not any(one["number"] < job["number"] and not one["held"] and not has_begun
                        for one, has_begun in zip(others, begun, strict=True))
        return first and most > sum(begun)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with open(self.root / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    @staticmethod
    def _read(path: Path) -> Record:
        record: Record = json.loads(path.read_text())
        return record

    def answer(self, name: str, command: Command, arguments: list[str]) -> Answer:
        """Run a command with its faults."""
        with self._locked(), open(self.root / "calls.jsonl", "a") as log:
            log.write(json.dumps([name, *arguments]) + "\n")
            fault = self._next_fault(name) or {}
        self.tick()
        if fault.get("kill") == "before":
            os.kill(self.caller or os.getpid(), signal.SIGKILL)
        true = not fault or "kill" in fault or any(key in fault for key in _LIKE_THE_TRUTH)
        call, code = Lab(self.root, self.caller, self.input), 0
        if true or fault.get("after"):
            code = command(call, arguments)
        if "kill" in fault:
            os.kill(self.caller or os.getpid(), signal.SIGKILL)
        wait = float(fault.get("sleep", 0)) + call.seconds
        if true:
            return Answer(code, _changed(call.out.getvalue(), fault), call.err.getvalue(), wait)
        return Answer(int(fault.get("exit", 0)), fault.get("stdout", ""), fault.get("stderr", ""), wait)

    def _next_fault(self, name: str) -> Record | None:
        path = self.root / "faults" / f"{name}.json"
        if not path.exists():
            return None
        fault = self._read(path)
        if fault.get("skip", 0) > 0:
            _write(path, {**fault, "skip": fault["skip"] - 1})
            return None
        if fault["times"] == 0:
            return None
        _write(path, {**fault, "times": fault["times"] - 1})
        return fault


def _virtual(script: Path) -> Record:
    """What a script does in its life as a virtual job."""
    lines = [line for line in script.read_text(errors="replace").splitlines() if line.lstrip().startswith("exec ")]
    lasts, codes = (re.findall(pattern, lines[-1]) for pattern in (r"\bsleep ([\d.]+)", r"\bexit (\d+)"))
    return {"lasts": float(lasts[0]) if lasts else 0.0, "gives": int(codes[0]) if codes else 0, "tag": script.stem,
            "due": None}


def _changed(answer: str, fault: Record) -> str:
    for pattern, instead in fault.get("edit", ()):
        answer = re.sub(pattern, instead, answer, flags=re.MULTILINE)
    if "flood" in fault:
        answer = answer * (fault["flood"] // max(len(answer), 1) + 1)
    return answer[:fault.get("cut", len(answer))]


def _write(path: Path, value: Any) -> None:
    fresh = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    fresh.write_text(json.dumps(value))
    fresh.replace(path)


def numbers(text: str) -> list[int]:
    """The numbers that ``1-9:2,12`` names."""
    numbers: list[int] = []
    for part in text.split(","):
        span, _, step = part.partition(":")
        first, _, last = span.partition("-")
        numbers += range(int(first), int(last or first) + 1, int(step or 1))
    return numbers


def condensed(jobs: Iterable[Record], waits: Callable[[Record], bool]) -> list[tuple[Record, list[int]]]:
    """Jobs, each with the numbers of the elements that it stands for: the first of an array that wait for all."""
    condensed: list[tuple[Record, list[int]]] = []
    shown: dict[int, list[int]] = {}
    for job in jobs:
        if "array" not in job or not waits(job):
            condensed.append((job, [job["element"]] if "array" in job else []))
        elif job["array"] in shown:
            shown[job["array"]].append(job["element"])
        else:
            shown[job["array"]] = [job["element"]]
            condensed.append((job, shown[job["array"]]))
    return condensed


def holding(held: bool, gone: str) -> Command:
    """A command that holds or releases the jobs that its arguments name. gone: what it says of one that is not there,
    with its id."""
    @each
    def command(lab: Lab, arguments: list[str]) -> int:
        job = lab.job(arguments[-1])
        if job is None or job["end"] is not None:
            lab.err.write(f"{gone.rstrip()} {arguments[-1]}\n")
            return 1
        lab.update(job["number"], held=held)
        return 0
    return command


def rerunning(waits: str) -> Command:
    """A command that has the job of its last argument run again. waits: what it says of one that does not run."""
    def command(lab: Lab, arguments: list[str]) -> int:
        job = lab.job(arguments[-1])
        if job is None or job["start"] is None or job["end"] is not None:
            lab.err.write(waits)
            return 1
        lab.rerun(job)
        return 0
    return command


def changing(gone: str) -> Command:
    """A command that changes a job, which one of its arguments names; the job remembers the others, where none names
    what is not known. gone: what it says of a job that is not there."""
    def command(lab: Lab, arguments: list[str]) -> int:
        words = [word.removeprefix("JobId=") for word in arguments]
        job = next((job for job in lab.jobs() if job["id"] in words and job["end"] is None), None)
        if job is None:
            lab.err.write(gone)
            return 1
        changes = [word for word in words if word != job["id"]]
        if any("nosuch" in word for word in changes):
            lab.err.write("nosuch is not known here\n")
            return 1
        lab.update(job["number"], changed=[*job.get("changed", ()), changes])
        return 0
    return command


def install(module: str, commands: Mapping[str, Command], state: Path, bin_directory: Path, forked: bool = True) -> Lab:
    """Put the commands of a stand-in into a folder as programs. module: the file they are in. forked: whether they ask
    the server of ``tests.forks``, which is worth its start where they are called at all."""
    bin_directory.mkdir(parents=True, exist_ok=True)
    path = Path(module).resolve()
    for name in commands:
        program = bin_directory / name
        if forked:
            text = forks.program("stand-in", f"tests.fakes.{path.stem}", name, str(state))
        else:               # imported rather than run, so that there is bytecode of it
            start = (f"import sys; sys.path.insert(0, {str(path.parents[2])!r}); "
                     f"from tests.fakes.lab import main; from tests.fakes.{path.stem} import COMMANDS; main(COMMANDS)")
            text = (f"#!/bin/sh\nexec {shlex.quote(sys.executable)} -SEPc {shlex.quote(start)} {name} "
                    f"{shlex.quote(str(state))} \"$@\"\n")
        program.write_text(text)
        program.chmod(0o755)
    return Lab(state)


def main(commands: Mapping[str, Command]) -> None:
    """For the programs: ``name state-directory arguments``."""
    name, state, *arguments = sys.argv[1:]
    sys.exit(Lab(Path(state), os.getppid(), STANDARD_INPUT).answer(name, commands[name], arguments).given())
