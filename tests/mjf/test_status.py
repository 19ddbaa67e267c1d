"""What a pilot writes, under the lock, and what is made of it."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sssjob.document.model import Job
from sssjob.errors import AccessError, UsageError
from sssjob.mjf import Busy, Candidate, PilotStatus, Usage, figures, least_critical, record_usage
from sssjob.mjf.status import locked
from tests.mjf.support import NOW, QUICK, Clock, Site, machine, served

#: Holds the lock of a file until its standard input ends.
HOLD = ("import fcntl, sys; f = open(sys.argv[1], 'r+'); fcntl.lockf(f, fcntl.LOCK_EX); print('held', flush=True); "
        "sys.stdin.read()")


class Holder:
    """Another process with the lock."""

    def __init__(self, path: Path) -> None:
        self.process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def __enter__(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"held\n"

    def __exit__(self, *_: object) -> None:
        self.process.communicate()


def pilot(site: Site, allocated: int | None = 8) -> PilotStatus:
    return PilotStatus(str(site.write("status")), allocated, limits=QUICK, clock=site.clock)


def test_written_and_read(site: Site) -> None:
    status = pilot(site)
    status.update(used_CPU=6, last_job_start=NOW - 9.5, can_postpone_last_job=True, priority_factor=-2)
    status.update(used_CPU=4, priority_factor=None)
    files = {p.name: p.read_text() for p in (site.root / "status").iterdir()}
    assert files == {"used_CPU": "4\n", "last_job_start": f"{NOW - 10}\n", "can_postpone_last_job": "True\n"}
    features = site.reader().read()
    assert (features["used_CPU"].value, features["can_postpone_last_job"].value) == (4, True)


def test_used_cpu_is_never_replaced(site: Site) -> None:
    status = pilot(site)
    status.update(used_CPU=6)
    before = (site.root / "status" / "used_CPU").stat().st_ino
    status.update(used_CPU=8)
    assert (site.root / "status" / "used_CPU").stat().st_ino == before
    assert (site.root / "status" / "used_CPU").read_text() == "8\n"


@pytest.mark.parametrize(("values", "expected"), [
    ({"used_CPU": 9}, "more than allocated_CPU = 8"), ({"used_CPU": None}, "cannot be taken away"),
    ({"last_job_start": NOW}, "first update"), ({"used_CPU": "x"}, "'x' is not"), ({"total_cpu": 1}, "no key"),
    ({"used_CPU": 1, "can_postpone_last_job": 1}, "can_postpone_last_job"),
])
def test_refused(site: Site, values: dict[str, object], expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        pilot(site).update(**values)  # type: ignore[arg-type]
    assert list((site.root / "status").iterdir()) == []


def test_a_lock_that_somebody_holds(site: Site) -> None:
    status = pilot(site)
    status.update(used_CPU=6)
    features = site.reader()
    assert features.read()["used_CPU"].value == 6
    with Holder(site.root / "status" / "used_CPU"):
        with pytest.raises(Busy):
            status.update(used_CPU=5)
        made = features.read(force=True)["used_CPU"]
        assert (made.state, made.value, made.reason) == ("stale", 6, "not read again: used_CPU: busy")
        assert site.reader().read()["used_CPU"].state == "unreadable"
    status.update(used_CPU=5)
    assert features.read(force=True)["used_CPU"].value == 5


def test_our_reader_keeps_writers_out(site: Site) -> None:
    status = pilot(site)
    status.update(used_CPU=6)
    path = str(site.root / "status")
    code = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    with locked(path, exclusive=False, limits=QUICK) as lock:
        assert lock.held
        process = subprocess.run([sys.executable, "-c", code, path + "/used_CPU"], capture_output=True)
        assert b"BlockingIOError" in process.stderr
        with pytest.raises(Busy):
            status.update(used_CPU=1)           # a second thread of this process would wait, too
    assert subprocess.run([sys.executable, "-c", code, path + "/used_CPU"], capture_output=True).returncode == 0


def test_a_fifo_or_a_link_as_lock_file(site: Site) -> None:
    place = site.write("status")
    os.mkfifo(place / "used_CPU")
    assert site.reader().read()["used_CPU"].reason == "not a regular file"
    with pytest.raises(AccessError, match="not a regular file"):
        pilot(site).update(used_CPU=1)
    (place / "used_CPU").unlink()
    (site.root / "precious").write_text("precious")
    os.symlink("../precious", place / "used_CPU")
    with pytest.raises(AccessError):
        pilot(site).update(used_CPU=1)
    assert (site.root / "precious").read_text() == "precious"


def test_an_empty_directory_has_no_lock_and_is_read_twice(site: Site) -> None:
    site.write("status")
    assert {r.state for r in site.reader().read().area("status").values()} == {"absent"}


def test_over_http_two_readings_have_to_agree() -> None:
    from http.server import BaseHTTPRequestHandler

    with served() as web:
        count = iter(range(100))

        def reply(handler: BaseHTTPRequestHandler) -> None:
            handler.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n%d" % next(count))

        web.replies["/used_CPU"] = reply
        reader = machine(web.base)
        reader.places = {"status": reader.places["machine"]}
        assert reader.read()["used_CPU"].reason == "used_CPU: the pilot kept writing"
        web.replies["/used_CPU"] = b"7"
        assert reader.read(force=True)["used_CPU"].value == 7


def test_values_rest_after_the_last_job_may_be_postponed_again(site: Site) -> None:
    clock = Clock()
    status = PilotStatus(str(site.write("status")), quiet_s=100, clock=clock)
    assert status.update(used_CPU=6, can_postpone_last_job=False) == ()
    assert status.update(can_postpone_last_job=True) == ()
    assert status.update(used_CPU=5, add_uncom_time=3) == ("used_CPU", "add_uncom_time")
    clock.now += 101
    assert status.update(used_CPU=5) == ()
    assert (site.root / "status" / "used_CPU").read_text() == "5\n"


def test_the_least_critical_job() -> None:
    def job(name: str, priority: int | None, waste: int | None, user: str = "u") -> Candidate:
        return Candidate(name, user, {"priority_factor": priority, "add_uncom_time": waste, "used_CPU": 1,
                                      "last_job_start": NOW})

    jobs = [job("unknown", None, 0), job("dear", 5, 0), job("wasteful", 1, 900), job("cheap", 1, 100),
            job("untold", 1, None)]
    least = least_critical(jobs, NOW)
    assert least is not None and least.name == "cheap"
    assert least_critical([], NOW) is None
    with pytest.raises(UsageError, match="different users"):
        least_critical([*jobs, job("other", 0, 0, "v")], NOW)


def test_usage_becomes_delivered() -> None:
    usage, job = Usage(), Job()
    record_usage(job, usage)
    assert job.items == []
    for now, used in ((NOW, 8), (NOW + 10, 4), (NOW + 20, None), (NOW + 30, 2)):
        usage.take(now, used)
    record_usage(job, usage, figures({"used_CPU": 2, "last_job_start": NOW, "add_uncom_time": 5}, NOW + 30))
    record_usage(job, usage, figures({"used_CPU": 2, "last_job_start": NOW, "add_uncom_time": 5}, NOW + 30))
    assert job.delivered is not None
    assert [(p.tag, p.text, dict(p.attributes)) for p in job.delivered.properties()] == [
        ("Processors", "5.333", {"metric": "Average"}), ("Processors", "8", {"metric": "Max"}),
        ("Extension", "65", {"name": "kill_waste", "type": "MJF"})]


def test_lockf_is_the_kind_of_lock(site: Site) -> None:
    """A reader that only knows ``lockf`` meets ours."""
    pilot(site).update(used_CPU=6)
    with open(site.root / "status" / "used_CPU", "r+") as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
