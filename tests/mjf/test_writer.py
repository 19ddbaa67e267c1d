"""The provider's directories, from the job object to the end of the job."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from sssjob.errors import AccessError, UsageError
from sssjob.mjf import Reader, provide, sweep, values_of
from sssjob.mjf.writer import Directories
from sssjob.xml.reader import read_document
from tests.mjf.support import NOW, Clock

JOB = """<JobGroup><JobDefaults><ResourceLimit name="CPUTime">7200</ResourceLimit></JobDefaults>
<Job><Id>4711.server</Id><StartTime>1700000000</StartTime>
  <Requested><Duration>3600</Duration><Memory op="GE" units="MB">2048</Memory><Disk units="GB">1.5</Disk>
    <Processors>4</Processors></Requested>
  <ResourceLimit name="MaxSwap">1000</ResourceLimit>
  <Extension type="MJF" name="hs06_job">80.5</Extension><Extension type="other" name="hs06">1</Extension>
  <Delivered><Processors context="Dedicated">4</Processors><Processors context="Configured">64</Processors></Delivered>
</Job></JobGroup>"""


def texts(path: str) -> dict[str, str]:
    return {p.name: p.read_text() for p in Path(path).iterdir()}


def test_values_of_a_job() -> None:
    (job, defaults), = read_document(JOB).jobs()
    assert values_of(job, defaults) == {
        "job_id": "4711.server", "jobstart_secs": 1_700_000_000, "wall_limit_secs": 3600, "cpu_limit_secs": 7200,
        "max_rss_bytes": 2048 << 20, "scratch_limit_bytes": 3 << 29, "max_swap_bytes": 1000, "hs06_job": 80.5,
        "allocated_cpu": 4, "total_cpu": 64}
    granted = values_of(job, defaults, granted={"allocated_cpu": 2, "hs06_job": None, "job_id": "a b"})
    assert (granted["allocated_cpu"], "hs06_job" in granted, granted["job_id"]) == (2, False, "4711.server")


def test_a_life(tmp_path: Path) -> None:
    (job, defaults), = read_document(JOB).jobs()
    with provide(str(tmp_path), "4711/../server", values_of(job, defaults)) as made:
        assert os.path.basename(made.root).startswith("mjf-4711_.._server-")
        for area in ("machine", "job", "status"):
            assert os.stat(made.path(area)).st_mode & 0o7777 == 0o755
        for file in Path(made.path("job")).iterdir():
            assert file.stat().st_mode & 0o7777 == 0o644
        assert texts(made.path("status")) == {}
        assert texts(made.path("job"))["hs06_job"] == "80.5\n"
        features = Reader.from_environment(made.environment()).read()
        assert (features["wall_limit_secs"].value, features["total_cpu"].value) == (3600, 64)
        (Path(made.path("status")) / "deep").mkdir()
        os.symlink("/etc", Path(made.path("status")) / "deep" / "out")
    assert list(tmp_path.iterdir()) == [] and Path("/etc").is_dir()


def test_what_the_umask_says_does_not_count(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        tree = provide(str(tmp_path), "1", {"job_id": "x"})
    finally:
        os.umask(before)
    assert [os.stat(p).st_mode & 0o777 for p in (tree.root, tree.path("job"), f"{tree.path('job')}/job_id")] == [
        0o755, 0o755, 0o644]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_the_job_owns_its_files(tmp_path: Path) -> None:
    tree = provide(str(tmp_path), "1", {"job_id": "x", "total_cpu": 8}, owner=(65534, 65534))
    owners = {name: os.stat(os.path.join(tree.root, name)).st_uid
              for name in ("machine/total_cpu", "job", "job/job_id", "status")}
    assert owners == {"machine/total_cpu": 0, "job": 0, "job/job_id": 65534, "status": 65534}


def test_a_site_that_has_its_own_keeps_them(tmp_path: Path) -> None:
    tree = provide(str(tmp_path), "1", {})
    assert tree.environment({"JOBFEATURES": "/x"}) == {}
    assert set(tree.environment({"JOBFEATURES": "/x"}, override=True)) == set(tree.environment()) == {
        "MACHINEFEATURES", "JOBFEATURES", "JOBSTATUS"}


def test_the_draft_too(tmp_path: Path) -> None:
    tree = provide(str(tmp_path), "1", {"allocated_cpu": 4, "max_rss_bytes": 2_999_999_999, "wall_limit_secs": 3600,
                                        "scratch_limit_bytes": 999, "cpufactor_lrms": 2.0}, draft=True)
    assert texts(tree.path("job")) == {
        "allocated_cpu": "4\n", "max_rss_bytes": "2999999999\n", "wall_limit_secs": "3600\n", "cpufactor_lrms": "2\n",
        "scratch_limit_bytes": "999\n", "allocated_CPU": "4\n", "mem_limit_MB": "2999\n",
        "wall_limit_secs_lrms": "7200\n"}
    assert Reader.from_environment(tree.environment()).read().notes == []
    tree.unset("max_rss_bytes")
    assert {"max_rss_bytes", "mem_limit_MB"} & texts(tree.path("job")).keys() == set()


def test_nothing_is_written_where_one_value_is_none(tmp_path: Path) -> None:
    tree = provide(str(tmp_path), "1", {})
    for values in ({"job_id": "x", "allocated_cpu": -1}, {"job_id": "x", "used_CPU": 1}, {"../x": 1}):
        with pytest.raises(UsageError):
            tree.set(values)  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        provide(str(tmp_path), "2", {"wall_limit_secs": 0})
    assert texts(tree.path("job")) == {} and len(list(tmp_path.iterdir())) == 1


def test_links_in_the_place_of_a_key_are_replaced(tmp_path: Path) -> None:
    tree = provide(str(tmp_path), "1", {})
    (tmp_path / "precious").write_text("precious")
    os.symlink(tmp_path / "precious", f"{tree.path('job')}/job_id")
    tree.set({"job_id": "x"})
    assert ((tmp_path / "precious").read_text(), texts(tree.path("job"))) == ("precious", {"job_id": "x\n"})


def test_readers_never_see_half_a_value(tmp_path: Path) -> None:
    tree = provide(str(tmp_path), "1", {"hs06": 1})
    path, seen, done = Path(tree.path("machine")) / "hs06", set(), threading.Event()

    def look() -> None:
        while not done.is_set():
            seen.add(path.read_text())

    thread = threading.Thread(target=look)
    thread.start()
    for n in range(300):
        tree.set({"hs06": 10 ** (n % 20)})
    done.set()
    thread.join()
    assert seen <= {f"{10 ** n}\n" for n in range(20)}


def test_only_what_was_made_here_is_removed(tmp_path: Path) -> None:
    (tmp_path / "home" / "status").mkdir(parents=True)
    (tmp_path / "home" / "status" / "thesis").write_text("all of it")
    for act in (Directories(str(tmp_path / "home")).remove, Directories(str(tmp_path / "home")).make):
        with pytest.raises(AccessError):
            act()
    assert (tmp_path / "home" / "status" / "thesis").exists()
    Directories(str(tmp_path / "gone")).remove()


def test_sweep(tmp_path: Path) -> None:
    old, young = (provide(str(tmp_path), n, {"job_id": n}) for n in ("old", "young"))
    for path in (old.root, *(old.path(a) for a in ("machine", "job", "status"))):
        os.utime(path, (NOW, NOW))
    (tmp_path / "mjf-other").mkdir()
    os.utime(tmp_path / "mjf-other", (NOW, NOW))
    assert sweep(str(tmp_path), 3600, os.stat(young.root).st_mtime + 10) == [os.path.basename(old.root)]
    assert {p.name for p in tmp_path.iterdir()} == {os.path.basename(young.root), "mjf-other"}


def test_a_full_or_missing_parent_is_told(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match="No such file"):
        provide(str(tmp_path / "gone"), "1", {})


def test_announced_times(tmp_path: Path) -> None:
    clock = Clock()
    tree = provide(str(tmp_path), "1", {"grace_secs_job": 600}, clock=clock)
    assert tree.announce("shutdowntime_job", NOW + 5000.5) == NOW + 5001
    assert tree.announce("shutdowntime_job", NOW + 10) == NOW + 600
    clock.now += 300
    assert tree.announce("shutdowntime_job", NOW + 600) == NOW + 600       # stands already: it does not move
    assert tree.expire() == ()
    clock.now += 300
    assert tree.expire() == ("shutdowntime_job",)
    assert "shutdowntime_job" not in texts(tree.path("job"))
    with pytest.raises(UsageError):
        tree.announce("job_id", NOW)
