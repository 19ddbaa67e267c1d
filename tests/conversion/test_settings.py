"""Settings: where each is from, which counts, and what is wrong in a configuration, with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from sssjob.conversion.settings import (
    SETTINGS,
    Layer,
    Settings,
    SettingsError,
    Value,
    config_files,
    file_layers,
    read_config,
    site_file,
    variables_layer,
)
from sssjob.conversion.site import SiteError, read_site
from sssjob.errors import AccessError

CONFIG = """# of a user
executor = "slurm"
queue = 'batch'

[executors.SGE]
parallel_environment = "mpi"
  polling_interval = 2.5

[executors]
cobalt.cores_per_node = 64
"""


def refused(text: str) -> list[str]:
    with pytest.raises(SettingsError) as raised:
        read_config(text.encode(), "c.toml")
    return str(raised.value).split("\n")


def test_each_value_has_its_line() -> None:
    layer = read_config(CONFIG.encode(), "c.toml")
    assert layer == Layer(
        {"executor": Value("slurm", "c.toml:2"), "queue": Value("batch", "c.toml:3")},
        {"sge": {"parallel_environment": Value("mpi", "c.toml:6"), "polling_interval": Value(2.5, "c.toml:7")},
         "cobalt": {"cores_per_node": Value(64, "c.toml:10")}})


def test_what_is_wrong_is_told_with_its_line_and_what_was_meant() -> None:
    assert refused("quue = 'x'\n\n[executors.slurm]\nexecutor = 'x'\npolling_interval = '30'\nmax_queued = 0\n"
                   "queue = \"a\\n\"\n[executors]\nlsf = 3\n") == [
        "c.toml:4: executors.slurm.executor: no such setting (known: account, queue, launcher, polling_interval, "
        "command_timeout, submit_commands, accounting_delay, lost_after, work_directory, max_queued, "
        "parallel_environment, memory_resource, gpu_resource, exclusive_resource, cores_per_node, facility, "
        "resource, token_file)",
        "c.toml:5: executors.slurm.polling_interval is to be a number of seconds, more than 0 and at most 86400",
        "c.toml:6: executors.slurm.max_queued is to be a whole number from 1 to 1000000",
        "c.toml:7: executors.slurm.queue is to be a text without control characters",
        "c.toml:9: executors.lsf is to be a table",
        "c.toml:1: quue: no such setting (did you mean 'queue'?)"]


@pytest.mark.parametrize(("text", "problem"), [
    ("x = [", "c.toml: not TOML: Invalid value (at end of document)"),
    ("executors = 3", "c.toml:1: executors is to be a table of tables, as [executors.slurm]"),
    ("queue = true", "c.toml:1: queue is to be a text without control characters"),
    ("lost_after = nan", "c.toml:1: lost_after is to be a number of seconds, more than 0 and at most 86400"),
    ("lost_after = true", "c.toml:1: lost_after is to be a number of seconds, more than 0 and at most 86400"),
    ("work_directory = 'work'", "c.toml:1: work_directory is to be an absolute path, or one that begins with ~/"),
    ("work_directory = '~bob/x'", "c.toml:1: work_directory is to be an absolute path, or one that begins with ~/"),
    ("queue = ''", "c.toml:1: queue is to be a text without control characters")])
def test_refused(text: str, problem: str) -> None:
    assert refused(text) == [problem]


def test_not_utf_8() -> None:
    with pytest.raises(SettingsError, match=r"^c\.toml: not UTF-8: byte 0xff at 9$"):
        read_config(b"queue = '\xff'", "c.toml")


def test_which_counts() -> None:
    """The place that counts most; in it what is said of the executor before what is said of all."""
    low = Layer({"queue": Value("a", "1")}, {"slurm": {"queue": Value("b", "2"), "account": Value("p", "3")}})
    high = Layer({"queue": Value("c", "4")})
    settings = Settings([high, low])
    assert [settings.get("queue"), settings.get("queue", "Slurm"), settings.get("account", "slurm"),
            settings.get("account", "sge")] == [Value("c", "4"), Value("c", "4"), Value("p", "3"),
                                                Value(None, "default")]
    assert Settings([low]).get("queue", "slurm") == Value("b", "2")
    assert settings.stated("slurm") == {"queue": "c", "account": "p"}
    assert [name for name, _ in settings.shown()] == [*SETTINGS, "executors.slurm.account", "executors.slurm.queue"]
    assert Settings([Layer(of={"sge": {"max_queued": Value(5, "x")}})]).max_queued("sge") == 5
    assert Settings().max_queued("sge") is None


def test_variables() -> None:
    assert variables_layer({"SSSJOB_QUEUE": "q", "SSSJOB_MAX_QUEUED": "5", "SSSJOB_LOST_AFTER": "1.5",
                            "SSSJOB_WORK_DIRECTORY": "~/w"}) == Layer({
        "work_directory": Value("~/w", "SSSJOB_WORK_DIRECTORY"), "queue": Value("q", "SSSJOB_QUEUE"),
        "lost_after": Value(1.5, "SSSJOB_LOST_AFTER"),
        "max_queued": Value(5, "SSSJOB_MAX_QUEUED")})
    with pytest.raises(SettingsError) as raised:
        variables_layer({"SSSJOB_MAX_QUEUED": "many", "SSSJOB_LOST_AFTER": "inf"})
    assert str(raised.value).split("\n") == [
        "SSSJOB_LOST_AFTER is to be a number of seconds, more than 0 and at most 86400",
        "SSSJOB_MAX_QUEUED is to be a whole number from 1 to 1000000"]


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of the system counts least; one that SSSJOB_CONFIG names stands for that of the user and has to be there."""
    monkeypatch.setenv("XDG_CONFIG_DIRS", f"{tmp_path / 'b'}:{tmp_path / 'a'}")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    files = [tmp_path / one / "sssjob" / "config.toml" for one in ("a", "b", "home")]
    assert [path for path, _ in config_files({})] == files
    for path in files:
        path.parent.mkdir(parents=True)
        path.write_text(f"queue = '{path.parent.parent.name}'\n")
    assert [layer.values["queue"].value for layer in file_layers({})] == ["a", "b", "home"]
    (tmp_path / "own.toml").write_text("queue = 'own'\n")
    own = {"SSSJOB_CONFIG": str(tmp_path / "own.toml")}
    assert [layer.values["queue"].value for layer in file_layers(own)] == ["a", "b", "own"]
    (tmp_path / "own.toml").unlink()
    with pytest.raises(AccessError, match="SSSJOB_CONFIG names this file, which is not there"):
        file_layers(own)
    (tmp_path / "home" / "sssjob" / "sites").mkdir()
    (tmp_path / "home" / "sssjob" / "sites" / "alpha.toml").write_text("name = 'alpha'\n")
    assert site_file("alpha", {}) == str(tmp_path / "home" / "sssjob" / "sites" / "alpha.toml")
    assert [site_file(name, {}) for name in ("beta", "./alpha", "-")] == ["beta", "./alpha", "-"]


def test_settings_of_a_site_profile() -> None:
    site = read_site(b"name = 'a'\n[run]\nqueue = 'batch'\n[run.executors.sge]\nparallel_environment = 'mpi'\n")
    assert site.run == {"queue": "batch", "executors": {"sge": {"parallel_environment": "mpi"}}}
    with pytest.raises(SiteError, match="run: quue: no such setting"):
        read_site(b"name = 'a'\n[run]\nquue = 'batch'\n", "s.toml")
