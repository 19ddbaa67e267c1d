"""The configuration file and ``--site`` where documents are run: what holds, where it is from, and what it does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sssjob.conversion.settings import SETTINGS
from tests.cli.conftest import Command
from tests.cli.test_journal import Site, shell

PE = "<Requested><Processors>2</Processors></Requested>"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The configuration of the user."""
    path = tmp_path / "config.toml"
    path.write_text("")
    monkeypatch.setenv("SSSJOB_CONFIG", str(path))
    return path


@pytest.fixture
def sge(tmp_path: Path, config: Path) -> Site:
    """The stand-in of Grid Engine."""
    return Site("sge", tmp_path)


def test_every_setting_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "config.md").read_text()
    assert [name for name in SETTINGS if f"`{name}`" not in page] == []


def test_show(sssjob: Command, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each value is told with its place; a site profile counts just below the place that names it."""
    (tmp_path / "sites").mkdir()
    (tmp_path / "sites" / "alpha.toml").write_text(
        "name = 'alpha'\n[run]\nqueue = 'site'\naccount = 'site'\n[sge.pe.mpi]\nallocation_rule = '$fill_up'\n")
    config.write_text("site = 'alpha'\nqueue = 'user'\n\n[executors.sge]\nmax_queued = 7\n")
    monkeypatch.setenv("SSSJOB_POLLING_INTERVAL", "5")
    profile = tmp_path / "sites" / "alpha.toml"
    settings = {record["name"]: (record["value"], record["source"])
                for record in map(json.loads, sssjob("config", "show", "--json").out.splitlines())}
    assert settings == {name: (setting.default, "default") for name, setting in SETTINGS.items()} | {
        "site": ("alpha", f"{config}:1"), "queue": ("user", f"{config}:2"), "account": ("site", f"{profile} (run)"),
        "polling_interval": (5.0, "SSSJOB_POLLING_INTERVAL"), "parallel_environment": ("mpi", f"{profile} (sge.pe)"),
        "executors.sge.max_queued": (7, f"{config}:5")}
    named = {record["name"]: record["value"]
             for record in map(json.loads, sssjob("config", "show", "--json", "--site", "alpha").out.splitlines())}
    assert named["queue"] == "site"
    assert sssjob("config", "show").out.splitlines()[0].split() == ["setting", "value", "from"]


def test_a_configuration_that_is_wrong_is_told_by_every_command(sssjob: Command, config: Path) -> None:
    config.write_text("\nquue = 'a'\n")
    for command in (("list",), ("config", "show"), ("submit", "a.xml")):
        code, out, err = sssjob(*command)
        assert (code, out) == (1, "")
        assert err == f"sssjob: {config}:2: quue: no such setting (did you mean 'queue'?)\n"


def test_executors_that_are_not_here_are_named_when_settings_are_shown(sssjob: Command, config: Path) -> None:
    """A table of another name than any executor's would be without effect, and nobody would know; a home shared with
    hosts that have other executors may hold it all the same."""
    config.write_text("executor = 'slrum'\n[executors.Slurm]\nqueue = 'a'\n[executors.sgee]\nqueue = 'a'\n")
    code, out, err = sssjob("config", "show")
    assert code == 0 and "executors.sgee.queue" in out
    assert [line.partition(" (known: ")[0] for line in err.splitlines()] == [
        f"sssjob: {config}:5: there is no executor 'sgee' here",
        f"sssjob: {config}:1: there is no executor 'slrum' here"]


def test_a_profile_that_is_not_there_is_told_with_the_place_that_names_it(sssjob: Command, config: Path) -> None:
    config.write_text("\nsite = 'nowhere'\n")
    assert sssjob("config", "show") == (3, "",
                                        f"sssjob: nowhere: No such file or directory (site, as {config}:2 says)\n")


@pytest.mark.parametrize("way", ["configuration", "profile", "pe of profile", "variable"])
def test_ways_to_name_a_parallel_environment(sge: Site, config: Path, way: str) -> None:
    """And what is said where nobody does."""
    (sge.folder / "job.xml").write_text(shell("true", PE))
    code, _, err = sge("submit", "job.xml", "--executor", "sge", "-q")
    assert code == 1 and ("Extension pe of type sge names one, or the setting parallel_environment, or a site profile "
                          "(qconf -spl lists them)") in err
    options: list[str] = []
    if way == "configuration":
        config.write_text("[executors.sge]\nparallel_environment = 'smp'\n")
    elif way == "variable":
        sge.environment["SSSJOB_PARALLEL_ENVIRONMENT"] = "smp"
    else:
        text = ("[run]\nparallel_environment = 'smp'\n" if way == "profile" else
                "[sge.pe.smp]\nallocation_rule = '$pe_slots'\n")
        (sge.folder / "site.toml").write_text(f"name = 'a'\n{text}")
        options = ["--site", "site.toml"]
    assert sge("submit", "job.xml", "--executor", "sge", "-q", *options) == (0, "a\n", "")
    assert sge("wait", "a").code == 0
    assert sge.lab is not None and sge.lab.jobs()[0]["pe"] == "smp"


def test_defaults_of_a_run(sge: Site, config: Path) -> None:
    """Executor, queue and account; a job that names its own keeps it, and a client with another configuration finds
    the files of the job."""
    config.write_text(f"executor = 'sge'\nqueue = 'short.q'\naccount = 'phys'\n"
                      f"work_directory = '{sge.folder / 'elsewhere'}'\npolling_interval = 0.5\n")
    (sge.folder / "job.xml").write_text(shell("exit 3", "<Project>own</Project>"))
    code, out, err = sge("submit", "job.xml")
    assert (code, out) == (0, "a\n") and f"SSS503 info Queue short.q of 1 job is from {config}:2" in err
    assert "Project" not in err
    config.write_text("executor = 'local'\n")
    assert sge("wait", "a").code == 3
    assert sge.lab is not None
    options = dict(sge.lab.jobs()[0]["options"])
    assert (options["-q"], options["-P"]) == ("short.q", "own")
    assert str(sge.lab.jobs()[0]["command"]).startswith(str(sge.folder / "elsewhere"))
    (sge.folder / "job.xml").write_text(shell("true"))
    config.write_text("executor = 'sge'\nlauncher = 'multiple'\nqueue = 'short.q'\n[executors.local]\n")
    assert "-q short.q" in sge("submit", "--dry-run", "job.xml").out
    assert sge("run", "--executor", "local", "-q", "job.xml", "-o", "out.xml") == (0, "", "")
    assert "short.q" not in (sge.folder / "out.xml").read_text()
