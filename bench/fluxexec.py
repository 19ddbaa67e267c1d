"""The Flux execution protocol and Machine/Job Features: jobs a second, and the time of a look at all keys.

``python -m bench.fluxexec [--jobs N] [--repeat N] [--check]``. Simulated jobs are ``true``, through manager and service
in one process; real ones are /bin/true through the executor ``fluxexec``, against the executor ``local`` in turns, so
that both see the same machine. All others are in CPU time, but for the read from disk. With ``--check`` the exit status
is 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator

from bench.psij_local import Measure
from psij import Job, JobExecutor, JobSpec
from sssjob.fluxexec.executor import FluxExecConfig, FluxExecExecutor
from sssjob.fluxexec.loop import Loop
from sssjob.fluxexec.manager import Manager
from sssjob.fluxexec.messages import Request, Response, to_line
from sssjob.fluxexec.service import Service
from sssjob.fluxexec.simulator import SimulatedRunner
from sssjob.fluxexec.transport import pair
from sssjob.lrm.flux.jobspec import write_r
from sssjob.lrm.idset import Idset
from sssjob.mjf.keys import KEYS
from sssjob.mjf.reader import Reader
from sssjob.mjf.values import Value
from sssjob.mjf.writer import provide

__all__ = ["main", "measures"]

JOBSPEC = {"version": 1, "resources": [{"type": "slot", "count": 1, "with": [{"type": "core", "count": 1}]}],
           "tasks": [{"command": ["true"], "slot": "task", "count": {"per_slot": 1}}],
           "attributes": {"system": {"duration": 0}}}
REAL = 500


def _simulated(count: int) -> float:
    """Jobs a second through manager and service."""
    loop = Loop(virtual=True)
    manager = Manager(Idset.parse("0-9"), loop.now)
    mine, theirs = pair(loop)
    manager.connect(mine)
    Service(loop, theirs, SimulatedRunner(loop)).begin()
    gc.collect()
    start = time.process_time()
    for _ in range(count):
        manager.submit(JOBSPEC)
    loop.run()
    seconds = time.process_time() - start
    assert all(job.success for job in manager.jobs.values())
    return count / seconds


def simulated(count: int, repeat: int) -> Iterator[Measure]:
    """Manager and service in process."""
    yield Measure("simulated jobs, manager and service", max(_simulated(count) for _ in range(repeat)), "jobs/s", 5000,
                  least=True)


def _real(executor: JobExecutor, count: int) -> tuple[float, float]:
    """Jobs a second of real processes, and CPU seconds of this process a job."""
    jobs = [Job(JobSpec("/bin/true")) for _ in range(count)]
    start, cpu = time.perf_counter(), time.process_time()
    for job in jobs:
        executor.submit(job)
    for job in jobs:
        job.wait()
    return count / (time.perf_counter() - start), (time.process_time() - cpu) / count


def real(repeat: int) -> Iterator[Measure]:
    """Real processes: this executor and the local one in turns; medians."""
    local, ours = JobExecutor.get_instance("local"), FluxExecExecutor(config=FluxExecConfig(ranks=REAL))
    _real(local, 20), _real(ours, 20)
    runs = [(_real(local, REAL), _real(ours, REAL), _real(local, REAL)) for _ in range(max(repeat, 7))]
    pairs = [(one[0], middle[0], two[0]) for one, middle, two in runs]
    yield Measure("local executor", statistics.median(rate for one, _, two in pairs for rate in (one, two)), "jobs/s")
    yield Measure("fluxexec over local", statistics.median(rate for _, rate, _ in pairs), "jobs/s")
    yield Measure("ratio", statistics.median(2 * rate / (one + two) for one, rate, two in pairs), "x", 0.8, least=True)
    for name, costs in (("local", [one[1] for one, _, _ in runs]), ("fluxexec", [middle[1] for _, middle, _ in runs])):
        yield Measure(f"CPU of this process a job, {name}", statistics.median(costs) * 1e6, "us")
    ours.close()


def checked(count: int) -> Iterator[Measure]:
    """Lines a second of the checker of streams."""
    from sssjob.fluxexec.check import StreamCheck

    lines = [to_line(Request("job-manager.exec-hello", {"service": "x"}, 3)),
             to_line(Response("job-manager.exec-hello", None, 3))]
    for number in range(1, count + 1):
        lines.append(to_line(Request("x.start", {"id": number, "userid": 0, "jobspec": JOBSPEC, "reattach": False,
                                                 "R": write_r(Idset.parse("0"))})))
        lines += [to_line(Response("x.start", {"id": number, "type": kind, "data": data})) for kind, data in (
            ("start", {}), ("finish", {"status": 0}), ("release", {"ranks": "0", "final": True}))]
    with tempfile.TemporaryFile() as file:
        file.writelines(lines)
        file.seek(0)
        check, start = StreamCheck(), time.process_time()
        assert not list(check.check(file))
        yield Measure("lines of a stream checked", check.lines / (time.process_time() - start), "lines/s")


def features(repeat: int) -> Iterator[Measure]:
    """All keys of all three areas read from a disk, nothing kept from before."""
    numbers: dict[str, Value] = {"int": 8, "float": 1.5, "time": 1 << 31, "id": "4711", "path": "/bin/true"}
    with tempfile.TemporaryDirectory() as folder:
        tree = provide(folder, "1", {key.name: numbers[key.kind] for key in KEYS.values() if key.area != "status"})
        variables = tree.environment({})
        times = []
        for _ in range(200 * repeat):
            start = time.perf_counter()
            found = Reader.from_environment(variables).read()
            times.append(time.perf_counter() - start)
        assert all(r.state == "value" for r in found.readings.values() if r.key.area != "status" and not r.key.draft)
        tree.remove()
    yield Measure("Machine/Job Features, all keys from disk", statistics.median(times) * 1000, "ms", 1.0)


def measures(count: int, repeat: int) -> Iterator[Measure]:
    """All measures, one after another."""
    yield from simulated(count, repeat)
    yield from real(repeat)
    yield from checked(count)
    yield from features(repeat)


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    options = argparse.ArgumentParser(prog="bench.fluxexec")
    options.add_argument("--jobs", type=int, default=10_000)
    options.add_argument("--repeat", type=int, default=3)
    options.add_argument("--check", action="store_true", help="exit status 1 when a bar is missed")
    given = options.parse_args(arguments)
    missed = False
    for measure in measures(given.jobs, given.repeat):
        print(measure, flush=True)
        missed = missed or measure.missed
    return int(missed and given.check)


if __name__ == "__main__":
    sys.exit(main())
