"""The state of a stand-in resource manager, its faults, and the process that runs a job.

One directory holds ``settings.json``, ``faults/<command>.json`` and a file per job, ``<number>.json``. Commands are
programs that read and write these; nothing stays in memory. A stand-in for a resource manager is a module beside this
one with a function for each of its commands (see ``slurm.py``); ``install`` puts them on a path as programs.

Faults of a command, each for so many calls (``times``, 1 unless stated, -1 for ever): ``sleep`` (seconds), ``stdout``,
``stderr``, ``exit``: said instead of the truth; ``after``: true to do the work first and lose the answer; ``cut``: put
out only so many characters of the answer.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import Any

Record = dict[str, Any]
Command = Callable[["Lab", list[str]], int]

_SETTINGS: Record = {
    "wait": 0.0,            # seconds from submission to start
    "forget": 300.0,        # seconds after its end until the queue does not list a job any more
    "accounting": True,     # whether there is accounting
    "lag": 0.0,             # seconds after its end until accounting knows a job
}


class Lab:
    """The state directory of a stand-in."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        (root / "faults").mkdir(exist_ok=True)

    # --- what tests use ------------------------------------------------------------------------------------------

    def set(self, **settings: Any) -> None:
        """Change settings."""
        _write(self.root / "settings.json", {**self.settings, **settings})

    def fault(self, command: str, **fault: Any) -> None:
        """Have a command fail."""
        _write(self.root / "faults" / f"{command}.json", {"times": 1, **fault})

    def heal(self, command: str) -> None:
        """End a fault."""
        (self.root / "faults" / f"{command}.json").unlink(missing_ok=True)

    def calls(self, command: str) -> list[list[str]]:
        """Arguments of all calls of a command so far."""
        log = self.root / "calls.jsonl"
        lines = log.read_text().splitlines() if log.exists() else []
        return [words[1:] for words in map(json.loads, lines) if words[0] == command]

    def jobs(self) -> list[Record]:
        """All jobs, the oldest first."""
        found = []
        for path in self.root.glob("[0-9]*.json"):
            with suppress(FileNotFoundError):       # dropped just now
                found.append(self._read(path))
        return sorted(found, key=lambda job: int(job["number"]))

    def drop(self, job_id: str) -> None:
        """Make a job vanish without a trace."""
        job = self.job(job_id)
        if job is not None:
            with self._locked():        # first, or somebody sees how it ended
                (self.root / f"{job['number']}.json").unlink(missing_ok=True)
            self.kill(job)

    def close(self) -> None:
        """End everything that still runs."""
        for job in self.jobs():
            self.kill(job)

    # --- what commands use -----------------------------------------------------------------------------------------

    @property
    def settings(self) -> Record:
        path = self.root / "settings.json"
        return {**_SETTINGS, **(json.loads(path.read_text()) if path.exists() else {})}

    def job(self, job_id: str) -> Record | None:
        """The job of that id."""
        return next((job for job in self.jobs() if job["id"] == job_id), None)

    def update(self, number: int, **values: Any) -> Record:
        """Change a job."""
        with self._locked():
            path = self.root / f"{number}.json"
            job = {**self._read(path), **values}
            _write(path, job)
            return job

    def queued(self) -> Iterator[Record]:
        """Jobs that the queue still lists."""
        forget = self.settings["forget"]
        for job in self.jobs():
            if job["end"] is None or time.time() < job["end"] + forget:
                yield job

    def accounted(self) -> Iterator[Record]:
        """Jobs that accounting knows by now."""
        lag = self.settings["lag"]
        for job in self.jobs():
            if job["end"] is None or time.time() >= job["end"] + lag:
                yield job

    def submit(self, script: Path, make_id: Callable[[int], str], environment: Callable[[Record], Mapping[str, str]],
               **values: Any) -> Record:
        """Make a job of a script and a process that runs it. environment: the variables of the running job."""
        with self._locked():
            number = 1 + max((job["number"] for job in self.jobs()), default=0)
            kept = self.root / f"script-{number}"
            kept.write_bytes(script.read_bytes())
            kept.chmod(0o700)
            job: Record = {"number": number, "id": make_id(number), "script": str(kept), "command": str(script),
                           "submit": time.time(), "start": None, "end": None, "exit": None, "signal": 0, "held": False,
                           "canceled": False, "pid": None, "output": "/dev/null", **values}
            _write(self.root / f"{number}.json", job)
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                self._run_job(job, environment)
            os._exit(0)
        os.wait()
        return job

    def cancel(self, job: Record) -> None:
        """End a job as the user's wish."""
        ended = job["end"] is not None
        if not ended:
            self.update(job["number"], canceled=True, **({} if job["start"] else {"end": time.time()}))
            self.kill(job)

    def kill(self, job: Record, number: int = signal.SIGTERM) -> None:
        """Send a signal to all processes of a job."""
        if job["pid"] is not None and job["end"] is None:
            with suppress(ProcessLookupError):
                os.killpg(job["pid"], number)

    def _run_job(self, job: Record, environment: Callable[[Record], Mapping[str, str]]) -> None:
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        number = job["number"]
        begin = job["submit"] + self.settings["wait"]
        while time.time() < begin or self._read(self.root / f"{number}.json")["held"]:
            time.sleep(0.02)
            if self._read(self.root / f"{number}.json")["end"] is not None:
                return
        path = job["output"].replace("%j", str(number))
        with open(path if os.path.isdir(os.path.dirname(path)) else os.devnull, "ab") as out:
            process = subprocess.Popen(["/bin/bash", job["script"]], stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=subprocess.STDOUT, start_new_session=True,
                                       env={**os.environ, **environment(job)})
        self.update(number, start=time.time(), pid=process.pid)
        code = process.wait()
        with suppress(FileNotFoundError):           # dropped
            self.update(number, end=time.time(), exit=max(code, 0), signal=max(-code, 0))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with open(self.root / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    @staticmethod
    def _read(path: Path) -> Record:
        record: Record = json.loads(path.read_text())
        return record

    def call(self, name: str, command: Command, arguments: list[str]) -> int:
        """Run a command with its faults; its exit code."""
        with self._locked(), open(self.root / "calls.jsonl", "a") as log:
            log.write(json.dumps([name, *arguments]) + "\n")
            fault = self._next_fault(name)
        if fault is not None and not fault.get("after"):
            return _fail(fault)
        text = io.StringIO()
        with redirect_stdout(text):
            code = command(self, arguments)
        answer = text.getvalue()
        if fault is not None and "cut" not in fault:
            return _fail(fault)
        sys.stdout.write(answer if fault is None else answer[:fault["cut"]])
        return code

    def _next_fault(self, name: str) -> Record | None:
        path = self.root / "faults" / f"{name}.json"
        if not path.exists():
            return None
        fault = self._read(path)
        if fault["times"] == 0:
            return None
        _write(path, {**fault, "times": fault["times"] - 1})
        return fault


def _fail(fault: Record) -> int:
    time.sleep(fault.get("sleep", 0))
    sys.stdout.write(fault.get("stdout", ""))
    sys.stderr.write(fault.get("stderr", ""))
    return int(fault.get("exit", 0))


def _write(path: Path, value: Any) -> None:
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(json.dumps(value))
    fresh.replace(path)


def install(module: str, commands: Mapping[str, Command], state: Path, bin_directory: Path) -> Lab:
    """Put the commands of a stand-in into a folder as programs. module: the file they are in."""
    bin_directory.mkdir(parents=True, exist_ok=True)
    for name in commands:
        program = bin_directory / name
        program.write_text(f"#!/bin/sh\nexec '{sys.executable}' -S -E '{module}' {name} '{state}' \"$@\"\n")
        program.chmod(0o755)
    return Lab(state)


def main(commands: Mapping[str, Command]) -> None:
    """For the programs: ``name state-directory arguments``."""
    name, state, *arguments = sys.argv[1:]
    sys.exit(Lab(Path(state)).call(name, commands[name], arguments))
