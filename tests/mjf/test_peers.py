"""Directories of other providers as we read them, and ours as other readers do.

The readers here are written after what those programs do; no code of theirs is in here.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sssjob.mjf import KEYS, provide
from sssjob.mjf.keys import Area
from sssjob.mjf.values import Value
from tests.mjf.support import NOW, Site
from tests.strategies import examples

VALUES: dict[str, Value] = {
    "total_cpu": 8, "hs06": 80.5, "allocated_cpu": 4, "hs06_job": 40, "jobstart_secs": NOW, "job_id": "4711.x",
    "wall_limit_secs": 3600, "cpu_limit_secs": 14400, "max_rss_bytes": 2 * 10**9, "max_swap_bytes": 10**9,
    "scratch_limit_bytes": 20 * 10**9, "grace_secs": 60, "grace_secs_job": 60,
}


def atlas(directory: str, name: str) -> str:
    """The ATLAS pilot: a local file, one newline taken away."""
    with open(f"{directory}/{name}") as file:
        return file.read().removesuffix("\n")


def dirac(directory: str, name: str) -> str:
    """DIRAC: urlopen, so a bare path reads as not there and a file: URL has to be set."""
    with urllib.request.urlopen(f"file://{directory}/{name}") as answer:
        return str(answer.read().decode()).strip()


def cms(directory: str, name: str) -> float | str:
    """CMS: a float from the first line."""
    with open(f"{directory}/{name}") as file:
        return float(file.readline()) if name != "job_id" else file.readline().strip()


@pytest.mark.parametrize("peer", [atlas, dirac, cms])
def test_others_read_ours(tmp_path: Path, peer: Callable[[str, str], object]) -> None:
    tree = provide(str(tmp_path), "4711", VALUES)
    for name, value in VALUES.items():
        found = peer(tree.path(KEYS[name].area), name)
        assert found == value or found == str(value)


@pytest.mark.parametrize(("area", "values", "expected"), [
    ("machine", {"total_cpu": b"8", "hs06": b"80.5", "shutdowntime": b"1700000900"},          # vac: no newline
     {"total_cpu": 8, "hs06": 80.5, "shutdowntime": 1_700_000_900}),
    ("job", {"allocated_cpu": b"8\n", "job_id": b"18d0a6a0-a1b2", "jobstart_secs": b"18d0a6a0-a1b2"},  # vcycle's slip
     {"allocated_cpu": 8, "job_id": "18d0a6a0-a1b2", "jobstart_secs": None}),
    ("job", {"allocated_CPU": "8", "mem_limit_MB": "4000", "shutdowntime_job": "-1", "cpufactor_lrms": "1.0"},
     {"allocated_cpu": 8, "max_rss_bytes": 4 * 10**9, "shutdowntime_job": None}),             # Torque with echo
])
def test_we_read_others(site: Site, area: Area, values: dict[str, object], expected: dict[str, object]) -> None:
    site.write(area, **values)
    features = site.reader().read()
    assert {name: features[name].value for name in expected} == expected


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(40), deadline=None)
@given(st.dictionaries(st.sampled_from([n for n, k in KEYS.items() if k.area == "job"]),
                       st.one_of(st.binary(max_size=30), st.floats(min_value=0).map(repr), st.integers().map(str))))
def test_whatever_stands_there_can_be_told(site: Site, values: dict[str, object]) -> None:
    for file in site.write("job").iterdir():
        file.unlink()
    site.write("job", **values)
    features = site.reader().read()
    json.dumps(features.record(), allow_nan=False)
    assert {n for n in values if features[n].state == "absent"} == set()
