"""Small programs that do strange things around jobs: they fork, handle signals, hide /proc, are process 1.

Each is run as a process of its own and has to end well within a few seconds; what it prints is compared whole.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Final

import pytest

from tests.fakes import slurm as fake_slurm
from tests.fakes.lab import install
from tests.psij import hazard_program

_START: Final = """\
import os, signal, sys, threading, time
from psij import Job, JobAttributes, JobExecutor, JobSpec, JobState, SubmitException
from datetime import timedelta
executor = JobExecutor.get_instance("local")
def submit(command, limit=None, arguments=()):
    job = Job(JobSpec("/bin/sh", ["-c", command, "sh", *arguments],
                      attributes=JobAttributes(duration=limit and timedelta(seconds=limit))))
    executor.submit(job)
    return job
def tell(status):
    line = "nothing" if status is None else (
        f"{status.state.name} {status.exit_code} {(status.metadata or {}).get('reason')}")
    sys.stdout.write(line + "\\n")          # at once: several threads tell
    sys.stdout.flush()
def child(function):
    pid = os.fork()
    if not pid:
        code = 1
        try:
            function()
            sys.stdout.flush()
            code = 0
        finally:
            if code:
                sys.excepthook(*sys.exc_info())
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0, "the child failed"
def gone(job):
    from psij.executors._local_proc import process
    left = process(int(job.native_id))
    return left is None or not left.living
"""

#: Name -> (program after the start, what it prints).
FORKS: Final[dict[str, tuple[str, str]]] = {
    "cancel in a child ends the job": (
        "job = submit('sleep 30')\n"
        "def run():\n"
        "    job.cancel(); tell(job.wait(60))\n"
        "child(run); tell(job.wait(60)); print(gone(job))\n",
        "CANCELED 143 cancel\nFAILED 143 signal\nTrue\n"),
    "cancel in a child reads no other descriptor": (
        "import socket\n"
        "jobs = [submit('sleep 30') for _ in range(3)]\n"
        "def run():\n"
        "    global pairs\n"
        "    pairs = [socket.socketpair() for _ in range(8)]\n"
        "    for one, other in pairs: one.send(b'own'); other.send(b'own')\n"
        "    for job in jobs: job.cancel()\n"
        "    for job in jobs: tell(job.wait(60))\n"
        "    print({end.recv(9, socket.MSG_DONTWAIT) for pair in pairs for end in pair})\n"
        "child(run)\n",
        "CANCELED 143 cancel\n" * 3 + "{b'own'}\n"),
    "wait in a child has the real exit code": (
        "job = submit('sleep 0.3; exit 5')\n"
        "child(lambda: tell(job.wait(60))); tell(job.wait(60))\n",
        "FAILED 5 None\n" * 2),
    "wait in a child for a success": (
        "job = submit('sleep 0.3')\n"
        "child(lambda: tell(job.wait(60))); tell(job.wait(60))\n",
        "COMPLETED 0 None\n" * 2),
    "wait in a child for a job that ended after the fork, before it was used": (
        "job = submit('sleep 0.2; exit 3')\n"
        "def run():\n"
        "    time.sleep(0.6); tell(job.wait(60))\n"
        "child(run)\n",
        "FAILED 3 None\n"),
    "polling the status in a child": (
        "job = submit('sleep 0.3')\n"
        "def run():\n"
        "    while not job.status.final: time.sleep(0.01)\n"
        "    tell(job.status)\n"
        "child(run)\n",
        "COMPLETED 0 None\n"),
    "a wait with a limit in a child": (
        "job = submit('sleep 30')\n"
        "child(lambda: tell(job.wait(0.05))); job.cancel(); tell(job.wait(60))\n",
        "nothing\nCANCELED 143 cancel\n"),
    "list in a child": (
        "job = submit('sleep 30')\n"
        "child(lambda: print(executor.list() == [job.native_id])); job.cancel(); tell(job.wait(60))\n",
        "True\nCANCELED 143 cancel\n"),
    "list in a child after the end": (
        "job = submit('exit 0'); job.wait(60)\n"
        "child(lambda: print(executor.list()))\n",
        "[]\n"),
    "a job that had ended before the fork": (
        "job = submit('exit 4'); job.wait(60)\n"
        "def run():\n"
        "    job.cancel(); tell(job.wait(0))\n"
        "child(run)\n",
        "FAILED 4 None\n"),
    "a grandchild waits": (
        "job = submit('sleep 0.4; exit 6')\n"
        "child(lambda: child(lambda: tell(job.wait(60))))\n",
        "FAILED 6 None\n"),
    "a child that waits, and its child": (
        "job = submit('sleep 0.5; exit 6')\n"
        "def run():\n"
        "    tell(job.wait(0.05)); child(lambda: tell(job.wait(60))); tell(job.wait(60))\n"
        "child(run)\n",
        "nothing\nFAILED 6 None\nFAILED 6 None\n"),
    "a child submits and cancels jobs of its own beside": (
        "job = submit('sleep 30')\n"
        "def run():\n"
        "    own = submit('sleep 30'); own.cancel(); tell(own.wait(60)); tell(submit('exit 2').wait(60))\n"
        "child(run); job.cancel(); tell(job.wait(60))\n",
        "CANCELED 143 cancel\nFAILED 2 None\nCANCELED 143 cancel\n"),
    "a new job of the parent is submitted in the child": (
        "job = Job(JobSpec('/bin/sh', ['-c', 'exit 7']))\n"
        "def run():\n"
        "    executor.submit(job); tell(job.wait(60))\n"
        "child(run); print(job.status.state.name)\n",
        "FAILED 7 None\nNEW\n"),
    "the time limit holds in the child too": (
        "job = submit('sleep 30', 0.6)\n"
        "child(lambda: print(job.wait(60).state.name)); tell(job.wait(60))\n",
        "FAILED\nFAILED 143 timeout\n"),
    "the parent has gone": (
        "job = submit('sleep 1; exit 8')\n"
        "read, write = os.pipe()\n"
        "if os.fork():\n"
        "    os.close(write); os.read(read, 1); os._exit(0)\n"
        "os.close(read); os.close(write)\n"
        "tell(job.wait(60))\n",
        "FAILED 8 None\n"),
    "the starter is killed before": (
        "from psij.executors import _local_starter\n"
        "job = submit('sleep 30'); os.kill(_local_starter._starters.starter.pid, signal.SIGKILL)\n"
        "def run():\n"
        "    job.cancel(); tell(job.wait(60))\n"
        "child(run); print(gone(job))\n",
        "CANCELED None cancel\nTrue\n"),
    "a thread of the parent holds the locks": (
        "job = submit('sleep 30')\n"
        "held, over = threading.Event(), threading.Event()\n"
        "def hold():\n"
        "    with job._lock, executor._lock: held.set(); over.wait(60)\n"
        "threading.Thread(target=hold).start(); held.wait(60)\n"
        "def run():\n"
        "    job.cancel(); tell(job.wait(60))\n"
        "child(run); over.set(); print(job.wait(60).state.name)\n",
        "CANCELED 143 cancel\nFAILED\n"),
    "several threads of a child use a job first": (
        "job = submit('sleep 0.4; exit 5')\n"
        "def run():\n"
        "    threads = [threading.Thread(target=lambda: tell(job.wait(60))) for _ in range(4)]\n"
        "    for one in threads: one.start()\n"
        "    for one in threads: one.join()\n"
        "child(run)\n",
        "FAILED 5 None\n" * 4),
    "a thread of the parent waits": (
        "job = submit('sleep 0.4; exit 5')\n"
        "waits = threading.Thread(target=lambda: job.wait(60)); waits.start()\n"
        "child(lambda: tell(job.wait(60))); waits.join(); tell(job.status)\n",
        "FAILED 5 None\n" * 2),
    "a job that is being staged": (
        "from psij import StageIn\n"
        "os.mkfifo('pipe')\n"
        "job = Job(JobSpec('/bin/true', directory=os.getcwd(), stage_in={StageIn(os.path.abspath('slow'), 'in')}))\n"
        "open('slow', 'w').close()\n"
        "from psij.executors import _local_run\n"
        "go = threading.Event(); real = _local_run.in_background\n"
        "_local_run.in_background = lambda call: real(lambda: (go.wait(60), call()))\n"
        "executor.submit(job)\n"
        "def run():\n"
        "    try: job.cancel()\n"
        "    except SubmitException as e: print('refused'); tell(job.wait(0))\n"
        "child(run); go.set(); tell(job.wait(60))\n",
        "refused\nFAILED None lost\nCOMPLETED 0 None\n"),
    "a pool of processes waits for jobs of the parent": (
        "import multiprocessing\n"
        "jobs = [submit(f'sleep 0.5; exit {n}') for n in range(4)]\n"
        "def code(number): return jobs[number].wait(60).exit_code\n"
        "with multiprocessing.get_context('fork').Pool(2) as pool: print(pool.map(code, range(4)))\n",
        "[0, 1, 2, 3]\n"),
    "a callback in the child": (
        "job = submit('sleep 0.3; exit 9')\n"
        "def run():\n"
        "    done = threading.Event()\n"
        "    job.set_job_status_callback(lambda job, status: (tell(status), done.set()))\n"
        "    job.wait(60); done.wait(60)\n"
        "child(run)\n",
        "FAILED 9 None\n"),
}

SIGNALS: Final[dict[str, tuple[str, str]]] = {
    "a handler waits while the program waits": (
        "calls = 0\n"
        "def handle(*_):\n"
        "    global calls\n"
        "    calls += 1; job.wait(1e-6)\n"
        "job = submit('sleep 1')\n"
        "signal.signal(signal.SIGALRM, handle); signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)\n"
        "while job.wait(1e-6) is None: pass\n"
        "signal.setitimer(signal.ITIMER_REAL, 0); tell(job.status); print(calls > 10)\n",
        "COMPLETED 0 None\nTrue\n"),
    "a handler waits without a limit": (
        "job = submit('sleep 0.3')\n"
        "signal.signal(signal.SIGALRM, lambda *_: tell(job.wait())); signal.setitimer(signal.ITIMER_REAL, 0.05)\n"
        "tell(job.wait())\n",
        "COMPLETED 0 None\n" * 2),
    "a handler cancels and lists while the program submits": (
        "jobs = []\n"
        "def handle(*_):\n"
        "    for job in jobs[-2:]: job.cancel()\n"
        "    executor.list()\n"
        "signal.signal(signal.SIGALRM, handle); signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)\n"
        "for _ in range(60): jobs.append(submit('sleep 0.2'))\n"
        "signal.setitimer(signal.ITIMER_REAL, 0)\n"
        "print({job.wait(60).state.name for job in jobs} <= {'COMPLETED', 'CANCELED'})\n",
        "True\n"),
    "a handler cancels what the program waits for": (
        "job = submit('sleep 30')\n"
        "signal.signal(signal.SIGALRM, lambda *_: job.cancel()); signal.setitimer(signal.ITIMER_REAL, 0.05)\n"
        "tell(job.wait(60))\n",
        "CANCELED 143 cancel\n"),
    "a handler that raises ends the wait": (
        "class Stop(Exception): pass\n"
        "def handle(*_): raise Stop\n"
        "job = submit('sleep 30')\n"
        "signal.signal(signal.SIGALRM, handle); signal.setitimer(signal.ITIMER_REAL, 0.05)\n"
        "try: job.wait(60)\n"
        "except Stop: print('stopped')\n"
        "job.cancel(); tell(job.wait(60)); print(job.__dict__.get('_waiters'))\n",
        "stopped\nCANCELED 143 cancel\n[]\n"),
    "a handler that raises while the program submits": (
        "class Stop(Exception): pass\n"
        "def handle(*_): raise Stop\n"
        "signal.signal(signal.SIGALRM, handle)\n"
        "jobs, stops = [Job(JobSpec('/bin/sleep', ['300'])) for _ in range(60)], 0\n"
        "for number, job in enumerate(jobs):\n"
        "    try:\n"
        "        signal.setitimer(signal.ITIMER_REAL, 0.00001 + 0.00002 * number)\n"
        "        executor.submit(job)\n"
        "        signal.setitimer(signal.ITIMER_REAL, 0)\n"
        "        job.cancel()\n"
        "    except Stop: stops += 1\n"
        "time.sleep(0.2)\n"
        "print({job.wait(60).state.name for job in jobs if job.executor}, stops > 10, executor.list())\n",
        "{'CANCELED'} True []\n"),
    "Ctrl-C while many jobs are submitted": (
        "jobs, raised = [Job(JobSpec('/bin/sh', ['-c', 'exit 0'])) for _ in range(60)], threading.Event()\n"
        "def told(job, error):\n"
        "    if job is jobs[5]: os.kill(os.getpid(), signal.SIGINT); raised.wait(9)\n"
        "try: executor.submit_all(jobs, told)\n"
        "except KeyboardInterrupt: print('stopped'); raised.set()\n"
        "ends = [(job.wait(9) if job.executor else job.status).state.name for job in jobs]\n"
        "print(sorted(set(ends)), ends.index('NEW') > 5, set(ends[ends.index('NEW'):]))\n",
        "stopped\n['COMPLETED', 'NEW'] True {'NEW'}\n"),
    "a handler that submits many jobs while the program submits many": (
        "jobs = [Job(JobSpec('/bin/sh', ['-c', 'exit 0'])) for _ in range(90)]\n"
        "def handle(*_):\n"
        "    executor.submit_all(jobs[60:75]); executor.submit_all(jobs[75:])\n"
        "signal.signal(signal.SIGALRM, handle)\n"
        "executor.submit_all(jobs[:60], lambda job, error: job is jobs[3] and signal.raise_signal(signal.SIGALRM))\n"
        "print({job.wait(9).state.name for job in jobs})\n",
        "{'COMPLETED'}\n"),
    "a handler that ends the program while it submits": (
        "import atexit\n"
        "jobs = []\n"
        "def left():\n"
        "    for job in jobs: job.wait(60)\n"
        "    for _ in range(900): executor.list() and time.sleep(0.01)\n"
        "    print({job.status.state.name for job in jobs} <= {'NEW', 'CANCELED', 'COMPLETED'}, executor.list())\n"
        "atexit.register(left)\n"
        "signal.signal(signal.SIGALRM, lambda *_: sys.exit(0)); signal.setitimer(signal.ITIMER_REAL, 0.02)\n"
        "while True: jobs.append(submit('sleep 0.2'))\n",
        "True []\n"),
    "a log that cannot be written": (
        "import logging\n"
        "class Broken(logging.Handler):\n"
        "    def handle(self, record): raise RuntimeError('no log')\n"
        "logging.getLogger().addHandler(Broken())\n"
        "job, names = Job(JobSpec('/bin/sh', ['-c', 'exit 3'])), []\n"
        "def note(job, status): names.append(status.state.name); raise ValueError\n"
        "job.set_job_status_callback(note); executor.submit(job); tell(job.wait(60)); print(names)\n",
        "FAILED 3 None\n['QUEUED', 'ACTIVE', 'FAILED']\n"),
    "descriptors of psij are closed": (
        "job, names = Job(JobSpec('/bin/true')), []\n"
        "job.set_job_status_callback(lambda job, status: None); executor.submit(job); job.wait(60); time.sleep(0.1)\n"
        "os.closerange(3, 256)\n"
        "for _ in range(2):\n"
        "    try: submit('exit 0')\n"
        "    except SubmitException as e: print(e)\n"
        "other = Job(); other.set_job_status_callback(lambda job, status: names.append(status.state))\n"
        "from psij import JobStatus\n"
        "other.status = JobStatus(JobState.COMPLETED); other.wait(60); print(names)\n",
        2 * ("the program has closed descriptors that it did not open, those of psij among them: no local job can be "
             "started or followed any more\n") + "[QUEUED, ACTIVE, COMPLETED]\n"),
    "a callback forks, and the child returns from it": (
        "pids = []\n"
        "def fork(job, status): pids.append(os.fork())\n"
        "for code in range(4):\n"
        "    job = Job(JobSpec('/bin/sh', ['-c', f'sleep 0.1; exit {code}'])); executor.submit(job)\n"
        "    job.set_job_status_callback(fork); tell(job.wait(60))\n"
        "print([os.waitpid(pid, 0)[1] for pid in pids])\n",
        "COMPLETED 0 None\nFAILED 1 None\nFAILED 2 None\nFAILED 3 None\n[0, 0, 0, 0]\n"),
    "no interpreter can be started, as in a program that embeds Python": (
        "sys.executable = ''\n"
        "another = JobExecutor.get_instance('local')\n"
        "for command in ('sleep 0.2; exit 5', 'exit 0'):\n"
        "    job, twin, late = submit(command), Job(), Job()\n"
        "    another.attach(twin, job.native_id); tell(twin.wait(60)); tell(job.wait(60))\n"
        "    another.attach(late, job.native_id); tell(late.wait(60))\n"
        "job, twin = submit('sleep 30'), Job(); another.attach(twin, job.native_id)\n"
        "twin.cancel(); tell(twin.wait(60))\n",
        "FAILED 5 None\n" * 3 + "COMPLETED 0 None\n" * 3 + "CANCELED 143 cancel\n"),
    "a callback that blocks leaves ends, limits and cancels to others": (
        "over = threading.Event()\n"
        "def block(job, status):\n"
        "    if status.final:\n"
        "        tell(submit('sleep 30', 0.2).wait(60))\n"
        "        last = submit('sleep 30'); last.cancel(); tell(last.wait(60))\n"
        "        tell(submit('exit 4').wait(60)); over.set()\n"
        "for _ in range(3):\n"
        "    job = Job(JobSpec('/bin/true')); over.clear(); job.set_job_status_callback(block); executor.submit(job)\n"
        "    print(over.wait(60))\n",
        "FAILED 143 timeout\nCANCELED 143 cancel\nFAILED 4 None\nTrue\n" * 3),
    "the thread that calls callbacks sees the ends itself while it has none to call": (
        "from psij.executors import _local_run\n"
        "ended, threads = _local_run.LocalRun.ended, []\n"
        "def note(run, outcome): threads.append(threading.current_thread().name); ended(run, outcome)\n"
        "_local_run.LocalRun.ended = note\n"
        "until = time.monotonic() + 60\n"
        "while threads[-3:] != ['psij-callbacks'] * 3 and time.monotonic() < until:\n"
        "    job = Job(JobSpec('/bin/sleep', ['0.02'])); job.set_job_status_callback(lambda job, status: None)\n"
        "    executor.submit(job); job.wait(60)\n"
        "print(threads[-1])\n",
        "psij-callbacks\n"),
    "a handler that submits just before the end": (
        "jobs = []\n"
        "def handle(*_): len(jobs) < 30 and jobs.append(submit('echo x >>out'))\n"
        "signal.signal(signal.SIGALRM, handle); signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)\n"
        "for _ in range(20): submit('exit 0')\n"
        "signal.setitimer(signal.ITIMER_REAL, 0)\n"
        "import atexit\n"
        "atexit._run_exitfuncs()\n"
        "print({job.status.state.name for job in jobs} <= {'ACTIVE', 'COMPLETED'}, len(jobs) > 0)\n",
        "True True\n"),
    "an end of the program that does not wait for ever for what handlers asked for": (
        "from psij import _handlers\n"
        "_handlers._LAST_S, go, jobs = 0.05, threading.Event(), []\n"
        "_handlers.hand_over(lambda: go.wait(9))\n"
        "for _ in range(3): _handlers.hand_over(lambda: submit('exit 0'))\n"
        "while _handlers._later._calls.qsize() > 3: time.sleep(0.001)\n"
        "import atexit, logging; logging.basicConfig(stream=sys.stdout, format='%(message)s')\n"
        "atexit._run_exitfuncs(); print(executor.list()); go.set()\n",
        "The program ends before 3 more calls that signal handlers asked for are made\n[]\n"),
    "a handler that forks while the program submits, and goes on in the child": (
        "pids = []\n"
        "def handle(*_): pids.append(os.fork())\n"
        "signal.signal(signal.SIGALRM, handle)\n"
        "for number in range(40):\n"
        "    signal.setitimer(signal.ITIMER_REAL, 0.0002 + 0.00005 * number)\n"
        "    try: job = submit('exit 0')\n"
        "    except SubmitException: assert not all(pids)\n"
        "    signal.setitimer(signal.ITIMER_REAL, 0)\n"
        "    if not all(pids): os._exit(0)\n"
        "print(len(pids) > 5, {os.waitpid(pid, 0)[1] for pid in pids}, job.wait(60).state.name)\n",
        "True {0} COMPLETED\n"),
    "a handler that forks": (
        "job = submit('sleep 0.5; exit 5')\n"
        "signal.signal(signal.SIGALRM, lambda *_: child(lambda: tell(job.wait(60))))\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.05)\n"
        "tell(job.wait(60))\n",
        "FAILED 5 None\n" * 2),
    "SIGCHLD is ignored": (
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "tell(submit('exit 5').wait(60))\n",
        "FAILED 5 None\n"),
    "somebody else waits for all children": (
        "job = submit('sleep 0.1; exit 5')\n"
        "def reap():\n"
        "    while not job.status.final:\n"
        "        try: os.waitpid(-1, os.WNOHANG)\n"
        "        except ChildProcessError: pass\n"
        "        time.sleep(0.001)\n"
        "threading.Thread(target=reap).start(); tell(job.wait(60))\n",
        "FAILED 5 None\n"),
}

PLACES: Final[dict[str, tuple[str, str]]] = {
    "cancel": ("job = submit('sleep 30'); job.cancel(); tell(job.wait(60)); print(gone(job))\n",
               "CANCELED 143 cancel\nTrue\n"),
    "cancel what has children": (
        "job = submit('sleep 30 & sleep 30 & wait'); time.sleep(0.1); job.cancel(); tell(job.wait(60))\n",
        "CANCELED 143 cancel\n"),
    "cancel what ignores SIGTERM": (
        "job = submit('trap \"\" TERM; while :; do sleep 1; done'); time.sleep(0.1); job.cancel()\n"
        "print(job.wait(60).state.name)\n",
        "CANCELED\n"),
    "a time limit": ("tell(submit('sleep 30', 0.3).wait(60))\n", "FAILED 143 timeout\n"),
    "an exit code": ("tell(submit('exit 5').wait(60)); tell(submit('exit 0').wait(60))\n",
                     "FAILED 5 None\nCOMPLETED 0 None\n"),
    "attach and cancel": (
        "job = submit('sleep 30'); twin = Job(); JobExecutor.get_instance('local').attach(twin, job.native_id)\n"
        "print(twin.wait(0.05)); twin.cancel(); print(twin.wait(60).state.name, job.wait(60).state.name)\n",
        "None\nCANCELED FAILED\n"),
    "a forked child": (
        "job = submit('sleep 30')\n"
        "def run():\n"
        "    job.cancel(); print(job.wait(60).state.name)\n"
        "child(run); print(job.wait(60).state.name)\n",
        "CANCELED\nFAILED\n"),
}

#: Where a program is put: words before it, None where it is run as it is.
_HIDDEN: Final = "mount -t tmpfs none /proc && exec \"$@\""
WHERE: Final[dict[str, list[str]]] = {
    "an empty /proc": ["unshare", "-Urm", "sh", "-c", _HIDDEN, "sh"],
    "process 1 of a namespace with the outer /proc": ["unshare", "-Urpf"],
    "process 1 of a namespace with its own /proc": ["unshare", "-Urpf", "--mount-proc"],
    "a child in a namespace with the outer /proc": ["unshare", "-Urpf", "sh", "-c", "\"$@\"; exit $?", "sh"],
}


@cache
def _why_not(where: str) -> str:
    """Why a program cannot be put somewhere here; empty where it can."""
    done = subprocess.run([*WHERE[where], "true"], capture_output=True, text=True, timeout=120)
    return "" if done.returncode == 0 else f"no namespaces here: {done.stderr.strip()}"


def _run(program: str, folder: Path, words: list[str], start: str = _START) -> tuple[int, str, str]:
    """Run a program: (exit code, output, errors). words: what starts its interpreter; without them it is forked from
    a process that has imported psij and never used it."""
    if start and not words:
        return hazard_program.ended(folder, start + program)
    done = subprocess.run([*words, sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c",
                           start + program], capture_output=True, text=True, timeout=240, cwd=folder)
    return done.returncode, done.stdout, done.stderr


#: What a handler of SIGALRM does that comes again and again while the program submits, one after another.
HANDLERS: Final[dict[str, str]] = {
    "submits": "more()",
    "submits and waits a little": "waits(more(), 0.001)",
    "submits and waits to the end": "waits(more())",
    "submits and cancels": "more().cancel()",
    "submits, cancels others, lists": "more(); cancel(jobs); executor.list()",
    "submits with a new executor": "global executor; executor = again(); more()",
    "submits through a launcher": "more(launcher='multiple')",
    "submits what is wrong": "refused()",
}

#: How the handler is called: once in so many seconds whatever happens, or so long after it has ended.
RATES: Final[dict[str, tuple[float, bool]]] = {
    "every 0.5 ms": (0.0005, False), "every 3 ms": (0.003, False), "1 ms after its end": (0.001, True)}

_HANDLED: Final = """
from psij import InvalidJobException
jobs, depth, deepest, count = [], 0, 0, 0
def again():
    return JobExecutor.get_instance(executor.name, config=executor.config)
def more(launcher=None):
    job = Job(JobSpec("/bin/true", launcher=launcher))
    executor.submit(job)
    jobs.append(job)
    return job
def waits(job, seconds=None):
    if depth < 5: job.wait(seconds)     # else the waits of handlers that come faster would pile up
def cancel(some):
    for job in some[-2:]: job.cancel()
def refused():
    try: executor.submit(Job(JobSpec("")))
    except InvalidJobException: return
    raise AssertionError("it was taken")
def handle(*_):
    global depth, deepest, count
    if count >= {most}: return
    count += 1
    depth += 1
    deepest = max(deepest, depth)
    try:
        {what}
    finally:
        depth -= 1
    if {anew} and running: signal.setitimer(signal.ITIMER_REAL, {seconds})
running = True
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, {seconds}, 0 if {anew} else {seconds})
for _ in range({own}): more()
running = False
signal.setitimer(signal.ITIMER_REAL, 0)
states = {{job.wait(30).state.name for job in jobs}}
print(count > 0, deepest < {deepest}, sorted(states - {{"CANCELED"}}), executor.list())
"""


def _handled(what: str, rate: str, own: int, most: int) -> str:
    seconds, anew = RATES[rate]
    deepest = 30 if what in ("more()", "more().cancel()") else most + 1      # others wait for something
    return _HANDLED.format(what=what, seconds=seconds, anew=anew, own=own, most=most, deepest=deepest)


@pytest.mark.parametrize("name", [*FORKS, *SIGNALS])
def test_a_program_in_one_place(name: str, tmp_path: Path) -> None:
    program, output = {**FORKS, **SIGNALS}[name]
    assert _run(program, tmp_path, []) == (0, output, "")


#: Each handler at one of the rates; in a long run at each of them.
CALLED: Final = [(handler, rate) for handler in HANDLERS for rate in RATES] if os.environ.get("SSSJOB_SOAK") == "1" \
    else [*zip(HANDLERS, cycle(RATES), strict=False)]


@pytest.mark.parametrize(("handler", "rate"), CALLED)
def test_a_handler_that_submits_while_the_program_submits(handler: str, rate: str, tmp_path: Path) -> None:
    program = _handled(HANDLERS[handler], rate, own=12, most=25)
    assert _run(program, tmp_path, []) == (0, "True True ['COMPLETED'] []\n", "")


#: Each program in two of the places, and each place with three or four of the programs; in a long run all in all.
PLACED: Final = [(where, name) for number, name in enumerate(PLACES) for step, where in enumerate(WHERE)
                 if os.environ.get("SSSJOB_SOAK") == "1"
                 or (step - number) % len(WHERE) in (0, 2 - number // len(WHERE))]


@pytest.mark.parametrize(("where", "name"), PLACED)
def test_a_program_where_processes_cannot_be_seen(where: str, name: str, tmp_path: Path) -> None:
    if why := _why_not(where):
        pytest.skip(why)
    program, output = PLACES[name]
    code, printed, logged = _run(program, tmp_path, WHERE[where])
    lines = [line for line in logged.splitlines() if not line.startswith("/proc does not show the processes of")]
    assert (code, printed, lines) == (0, output, [])


_BATCH: Final = _START.replace('executor = JobExecutor.get_instance("local")', """\
from psij.executors.batch.slurm import SlurmExecutorConfig
executor = JobExecutor.get_instance("slurm", config=SlurmExecutorConfig(work_directory=os.path.abspath("work"),
    queue_polling_interval=0.2, initial_queue_polling_delay=0.05, accounting_delay=1, lost_after=3))""")

BATCH: Final[dict[str, tuple[str, str]]] = {
    "cancel in a child": (
        "job = submit('sleep 30')\n"
        "def run():\n"
        "    job.cancel(); tell(job.wait(20))\n"
        "child(run); tell(job.wait(20))\n",
        "CANCELED None None\n" * 2),
    "wait in a child, and in the parent": (
        "job = submit('sleep 0.5; exit 5'); job.wait(20, JobState.ACTIVE)\n"
        "child(lambda: tell(job.wait(20))); tell(job.wait(20))\n"
        "print(os.listdir('work/slurm'))\n",
        "FAILED 5 None\nFAILED 5 None\n[]\n"),
    "list in a child": (
        "job = submit('sleep 30')\n"
        "child(lambda: print(executor.list() == [job.native_id])); job.cancel(); print(job.wait(20).state.name)\n",
        "True\nCANCELED\n"),
    "a job that is not submitted yet": (
        "job = Job(JobSpec('/bin/true')); go, there = threading.Event(), threading.Event()\n"
        "real = executor._run_submit\n"
        "def slow(command):\n"
        "    there.set(); go.wait(20); return real(command)\n"
        "executor._run_submit = slow\n"
        "submits = threading.Thread(target=executor.submit, args=[job]); submits.start(); there.wait(20)\n"
        "def run():\n"
        "    try: job.cancel()\n"
        "    except SubmitException: print('refused'); tell(job.wait(0))\n"
        "child(run); go.set(); submits.join(); tell(job.wait(20))\n",
        "refused\nFAILED None lost\nCOMPLETED 0 None\n"),
    "a child submits a job of its own": (
        "job = submit('sleep 30')\n"
        "child(lambda: tell(submit('exit 3').wait(20))); job.cancel(); print(job.wait(20).state.name)\n",
        "FAILED 3 None\nCANCELED\n"),
    "a thread of the parent holds the locks": (
        "from psij.executors.batch._watch import watcher_of\n"
        "job = submit('sleep 30')\n"
        "held, over = threading.Event(), threading.Event()\n"
        "def hold():\n"
        "    with job._lock, executor._lock, watcher_of(executor)._changed: held.set(); over.wait(20)\n"
        "threading.Thread(target=hold).start(); held.wait(60)\n"
        "def run():\n"
        "    job.cancel(); print(job.wait(20).state.name)\n"
        "child(run); over.set(); print(job.wait(20).state.name)\n",
        "CANCELED\nCANCELED\n"),
}


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The commands of a stand-in for Slurm."""
    lab = install(str(fake_slurm.__file__), fake_slurm.COMMANDS, tmp_path / "lab", tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    yield
    lab.close()


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("name", BATCH)
def test_a_program_with_a_resource_manager(name: str, tmp_path: Path) -> None:
    program, output = BATCH[name]
    assert _run(program, tmp_path, [], _BATCH) == (0, output, "")


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("handler", HANDLERS)
def test_a_handler_that_submits_to_a_resource_manager(handler: str, tmp_path: Path) -> None:
    program = _handled(HANDLERS[handler], "every 3 ms", own=5, most=8)
    assert _run(program, tmp_path, [], _BATCH) == (0, "True True ['COMPLETED'] []\n", "")


_INTERPRETER: Final = """
import sys
import psij
job, twin, executor = psij.Job(psij.JobSpec("/bin/true")), psij.Job(), psij.JobExecutor.get_instance("local")
for ask in (lambda: executor.submit(job), lambda: executor.attach(twin, "1")):
    try: ask()
    except psij.SubmitException as e: print(e)
print(job.status.state.name, twin.status.state.name, executor.list())
"""


def test_an_object_that_submits_when_the_interpreter_has_ended(tmp_path: Path) -> None:
    program = (
        "class Last:\n"
        "    def __del__(self, job=Job(JobSpec('/bin/true')), submit=executor.submit, no=SubmitException, out=print):\n"
        "        try: submit(job)\n"
        "        except no as e: out(e)\n"
        "submit('exit 0').wait(60); sys.modules['last'] = Last()\n")
    assert _run(program, tmp_path, ["env"]) == (0, "the program has ended: its interpreter takes no more jobs\n", "")


@pytest.mark.parametrize("isolated", [True, False])
def test_a_subinterpreter_is_told_that_it_cannot(isolated: bool, tmp_path: Path) -> None:
    """A thread left there would end the whole process when the interpreter ends."""
    if sys.version_info >= (3, 13):
        kind = "isolated" if isolated else "legacy"
        make = f"import _interpreters as all; one = all.create({kind!r}); run = all.exec"
    else:
        make = f"import _xxsubinterpreters as all; one = all.create(isolated={isolated}); run = all.run_string"
    program = f"{make}\nrun(one, {_INTERPRETER!r}); all.destroy(one)\n"
    said = "jobs can be submitted and attached to in the main interpreter of a process only\n"
    assert _run(program, tmp_path, [], "") == (0, said * 2 + "NEW NEW []\n", "")
