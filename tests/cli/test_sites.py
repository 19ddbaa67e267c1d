"""``sssjob sites``: which profiles there are, what is wrong in them, and what commands take from them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command


@pytest.fixture
def sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of profiles, beside an empty configuration."""
    (tmp_path / "config.toml").write_text("")
    monkeypatch.setenv("SSSJOB_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "none"))
    (tmp_path / "sites").mkdir()
    return tmp_path / "sites"


def test_no_sites(sssjob: Command, sites: Path) -> None:
    answer = sssjob("sites")
    assert (answer.code, answer.out, answer.err) == (0, "", "")


def test_list(sssjob: Command, sites: Path) -> None:
    (sites / "here.toml").write_text("name = 'here'\nmanager = 'local'\nmachine = 'm1'\n")
    (sites / "bare.toml").write_text("name = 'bare'\n")
    answer = sssjob("sites", "--json")
    assert [json.loads(line) for line in answer.out.splitlines()] == [
        {"site": "bare", "manager": "", "machine": "", "file": str(sites / "bare.toml"), "works": False,
         "why": "no manager is named"},
        {"site": "here", "manager": "local", "machine": "m1", "file": str(sites / "here.toml"), "works": True,
         "why": ""}]
    assert (answer.code, answer.err) == (0, "")
    assert sssjob("sites").out == (
        "site  manager  machine  reach\n───────────────────────────────────────────\n"
        "bare                    no manager is named\nhere  local    m1       works\n")


def test_two_profiles_of_one_cluster(sssjob: Command, sites: Path) -> None:
    for name in ("a", "b"):
        (sites / f"{name}.toml").write_text(f"name = '{name}'\nmanager = 'local'\nmachine = 'm1'\n")
    answer = sssjob("sites")
    assert answer.code == 1
    assert answer.err == "sssjob: the sites a and b are one cluster, machine m1\n"


def test_a_wrong_profile_leaves_the_others(sssjob: Command, sites: Path) -> None:
    (sites / "bad.toml").write_text("name = 'bad'\nmanger = 'local'\n[ssh]\nhost = 'login'\n")
    (sites / "here.toml").write_text("name = 'here'\nmanager = 'local'\n")
    answer = sssjob("sites", "--json")
    assert answer.code == 1
    assert [json.loads(line)["works"] for line in answer.out.splitlines()] == [False, True]
    path = sites / "bad.toml"
    assert json.loads(answer.err)["message"] == (
        f"{path}: manger: no such key; "
        f"{path}: ssh: sites behind SSH cannot be reached yet; a site is where sssjob runs")


def test_check(sssjob: Command, sites: Path) -> None:
    (sites / "bare.toml").write_text("name = 'bare'\nmanager = 'local'\n")
    answer = sssjob("sites", "check", "bare")
    assert (answer.code, answer.out) == (1, (
        "bare: machine is missing: two profiles of one cluster cannot be told apart, and offers name no machine\n"
        "bare: timezone is missing: times of day are taken as UTC\n"
        "bare: rates is missing: quote and charge need --rates\n"))
    (sites / "full.toml").write_text(
        "name = 'full'\nmanager = 'local'\nmachine = 'm'\ntimezone = 'UTC'\nrates = 'rates.toml'\n")
    assert (sssjob("sites", "check", "full").code, sssjob("sites", "check", "full", "--json").out) == (0, "")


def test_rates_of_a_site(sssjob: Command, sites: Path, tmp_path: Path) -> None:
    """Rates stand relative to the profile; without them, the sentence says both ways to name some."""
    (tmp_path / "job.sh").write_text("#!/bin/sh\n#SBATCH -n 2 -t 60\nhostname\n")
    (sites / "rates.toml").write_text((Path(__file__).parents[2] / "examples" / "rates.toml").read_text())
    (sites / "a.toml").write_text("name = 'a'\nrates = 'rates.toml'\n")
    (sites / "b.toml").write_text("name = 'b'\n")
    job = str(tmp_path / "job.sh")
    named = sssjob("quote", "-q", job, "--rates", str(sites / "rates.toml"))
    assert named.code == 0
    assert sssjob("quote", "-q", job, "--site", "a").out == named.out
    answer = sssjob("quote", job, "--site", "b")
    assert (answer.code, answer.out) == (2, "")
    assert "no rates: --rates FILE names them, or the key rates of the profile that --site names" in answer.err


def test_the_manager_is_the_executor(sssjob: Command, sites: Path) -> None:
    (sites / "a.toml").write_text("name = 'a'\nmanager = 'slurm'\n")
    shown = {record["name"]: record["value"]
             for record in map(json.loads, sssjob("config", "show", "--json", "--site", "a").out.splitlines())}
    assert shown["executor"] == "slurm"
