"""Both generations of keys, what is doubtful, and what follows."""

from __future__ import annotations

import json

import pytest

from tests.mjf.support import NOW, Site, reader


def codes(site: Site) -> list[str]:
    return [f"{n.code} {n.key}" for n in site.reader().read().notes]


def test_draft_keys_stand_in(site: Site) -> None:
    site.write("job", allocated_CPU=8, mem_limit_MB=2000, disk_limit_GB=20, cpufactor_lrms=0.5,
               wall_limit_secs_lrms=3600)
    features = site.reader().read()
    assert {n: (r.value, r.source) for n, r in features.area("job").items() if r.source} == {
        "allocated_cpu": (8, "allocated_CPU"), "max_rss_bytes": (2 * 10**9, "mem_limit_MB"),
        "scratch_limit_bytes": (20 * 10**9, "disk_limit_GB"), "wall_limit_secs": (7200, "wall_limit_secs_lrms")}
    assert features.notes == []


@pytest.mark.parametrize(("values", "expected"), [
    ({"allocated_cpu": 8, "allocated_CPU": 8}, []),
    ({"allocated_cpu": 8, "allocated_CPU": 4}, ["mjf-conflict allocated_cpu"]),
    ({"max_rss_bytes": 2_147_483_648, "mem_limit_MB": 2147}, []),
    ({"max_rss_bytes": 2_147_483_648, "mem_limit_MB": 2048}, ["mjf-conflict max_rss_bytes"]),
    ({"wall_limit_secs": 3600, "wall_limit_secs_lrms": 7200, "cpufactor_lrms": 2}, []),
    ({"wall_limit_secs": 3600, "wall_limit_secs_lrms": 1800, "cpufactor_lrms": 2},
     ["mjf-factor-inverted wall_limit_secs_lrms"]),
    ({"wall_limit_secs": 3600, "wall_limit_secs_lrms": 9999, "cpufactor_lrms": 2}, ["mjf-conflict wall_limit_secs"]),
    ({"wall_limit_secs_lrms": 9999}, ["mjf-no-factor wall_limit_secs_lrms"]),
    ({"wall_limit_secs": "unlimited"}, ["mjf-unreadable wall_limit_secs"]),
    ({"cpu_limit_secs": 0}, ["mjf-unreadable cpu_limit_secs"]),
    ({"jobstart_secs": "18d0a6a0-a1b2-c3d4"}, ["mjf-unreadable jobstart_secs"]),
    ({"shutdowntime_job": NOW - 1, "grace_secs_job": 1}, ["mjf-stale shutdowntime_job"]),
    ({"shutdowntime_job": NOW + 9}, ["mjf-no-grace grace_secs_job"]),
])
def test_notes(site: Site, values: dict[str, object], expected: list[str]) -> None:
    site.write("job", **values)
    assert codes(site) == expected


def test_the_note_is_preferred_and_a_factor_the_wrong_way_not_trusted(site: Site) -> None:
    site.write("job", wall_limit_secs=3600, wall_limit_secs_lrms=1800, cpufactor_lrms=2)
    assert site.reader().read()["wall_limit_secs"].value == 3600


def test_a_directory_that_cannot_be_read_is_named_by_its_variable(site: Site) -> None:
    """One of its keys was, whichever came first."""
    site.write("machine", total_cpu="x")
    found = reader({"MACHINEFEATURES": str(site.root / "machine"), "JOBFEATURES": "/no/job", "JOBSTATUS": "x"}).read()
    assert [str(note) for note in found.notes] == [
        "total_cpu: mjf-unreadable warning 'x' is not a non-negative integer",
        "JOBFEATURES: mjf-unreadable warning /no/job: No such file or directory",
        "JOBSTATUS: mjf-unreadable warning 'x' is no absolute path and no file:, http: or https: URL"]


def test_zero_logical_cores_are_a_value(site: Site) -> None:
    site.write("machine", log_cores=0)
    assert site.reader().read()["log_cores"].value == 0


def test_more_cores_in_use_than_allocated(site: Site) -> None:
    site.write("job", allocated_cpu=4)
    site.write("status", used_CPU=5)
    assert codes(site) == ["mjf-overused used_CPU"]


def test_time_left(site: Site) -> None:
    site.write("machine", shutdowntime=NOW + 900)
    site.write("job", jobstart_secs=NOW - 100, wall_limit_secs=700)
    features = site.reader().read()
    left = features.remaining()
    assert left is not None
    assert (features.elapsed(), left.seconds, left.by, left.unsure) == (100, 600, "wall_limit_secs", ())


def test_time_left_says_what_it_does_not_know(site: Site) -> None:
    site.write("machine", shutdowntime="soon")
    site.write("job", wall_limit_secs=700)
    features = site.reader().read()
    assert features.remaining() is None
    left = features.remaining(start=NOW - 100)
    assert left is not None
    assert (left.seconds, left.by, left.unsure) == (600, "wall_limit_secs", ("shutdowntime",))
    assert features.shutdown().state == "unreadable"


def test_a_shutdown_in_the_past_counts_unless_it_is_ignored(site: Site) -> None:
    site.write("machine", shutdowntime=NOW - 50)
    features = site.reader().read()
    left = features.remaining()
    assert left is not None and left.seconds == -50
    assert features.remaining(past="ignore") is None
    assert features.shutdown("ignore").state == "absent"


def test_record_has_every_key_with_value_and_state(site: Site) -> None:
    site.write("machine", total_cpu=8)
    answer = json.loads(json.dumps(site.reader().read().record()))
    assert {area: len(answer[area]) for area in ("machine", "job", "status")} == {"machine": 8, "job": 17, "status": 9}
    assert answer["machine"]["total_cpu"] == {"state": "value", "value": 8, "unit": "processors", "raw": "8\n"}
    assert answer["job"]["job_id"] == {"state": "absent", "value": None, "reason": "JOBFEATURES is not set"}
