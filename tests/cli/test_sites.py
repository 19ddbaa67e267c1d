"""``sssjob sites``: which profiles there are, what is wrong in them, and what commands take from them."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest

from sssjob.conversion.site import read_site
from sssjob.conversion.site_drafting import SiteFacts, draft_site
from tests.cli.conftest import Command

MACHINE = Path(__file__).parents[1] / "fixtures" / "slurm-22.05.8" / "machine"


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


def test_rates_beside_profiles_are_no_sites(sssjob: Command, sites: Path, tmp_path: Path,
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is a folder that is called as a site is."""
    (sites / "here.toml").write_text("name = 'here'\nmanager = 'local'\nrates = 'rates.toml'\n")
    (sites / "rates.toml").write_text("name = 'r'\nversion = '1'\n")
    answer = sssjob("sites", "--json")
    names = [json.loads(line)["site"] for line in answer.out.splitlines()]
    assert (answer.code, answer.err, names) == (0, "", ["here"])
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)
    assert sssjob("sites", "check", "here").out.startswith("here: ")


def test_two_profiles_of_one_cluster(sssjob: Command, sites: Path) -> None:
    for name in ("a", "b"):
        (sites / f"{name}.toml").write_text(f"name = '{name}'\nmanager = 'local'\nmachine = 'm1'\n")
    answer = sssjob("sites")
    assert answer.code == 1
    assert answer.err == "sssjob: the sites a and b are one cluster, machine m1\n"


def test_a_wrong_profile_leaves_the_others(sssjob: Command, sites: Path) -> None:
    (sites / "bad.toml").write_text("name = 'bad'\nmanger = 'local'\n[ssh]\nhost = '-oProxyCommand=x'\n")
    (sites / "here.toml").write_text("name = 'here'\nmanager = 'local'\n")
    answer = sssjob("sites", "--json")
    assert answer.code == 1
    assert [json.loads(line)["works"] for line in answer.out.splitlines()] == [False, True]
    path = sites / "bad.toml"
    assert json.loads(answer.err)["message"] == (
        f"{path}: ssh.host: a host, as login.example.org or user@host; "
        "manger: no such key (did you mean 'manager'?)")


def test_a_site_that_is_not_there(sssjob: Command, sites: Path) -> None:
    (sites / "here.toml").write_text("name = 'here'\nmanager = 'local'\nrates = 'here-rates.toml'\n")
    (sites / "here-rates.toml").write_text("name = 'r'\ncurrency = 'EUR'\n")       # are no site
    answer = sssjob("sites", "check", "hree")
    assert (answer.code, answer.err) == (2, "sssjob: there is no site 'hree', nor a file of that name (known: here)\n")
    assert sssjob("offers", "nowhere/x.toml").code == 3


def test_check(sssjob: Command, sites: Path) -> None:
    (sites / "bare.toml").write_text("name = 'bare'\nmanager = 'local'\n")
    answer = sssjob("sites", "check", "bare")
    assert (answer.code, answer.out) == (1, (
        "bare: machine is missing: two profiles of one cluster cannot be told apart, and offers name no machine\n"
        "bare: timezone is missing: times of day are taken as UTC\n"
        "bare: rates is missing: quote and charge need --rates\n"))
    (sites / "full.toml").write_text(
        "name = 'full'\nmanager = 'local'\nmachine = 'm'\ntimezone = 'UTC'\nrates = 'rates.toml'\n")
    (sites / "rates.toml").write_text("name = 'r'\nversion = '1'\ncurrency = 'EUR'\nprecision = 2\n")
    assert (sssjob("sites", "check", "full").code, sssjob("sites", "check", "full", "--json").out) == (0, "")


def test_what_a_profile_names_is_looked_for(sssjob: Command, sites: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rates, its queues at the manager, and whether another profile has its cluster."""
    commands = sites.parent / "commands"
    commands.mkdir()
    (commands / "scontrol").write_text(f"#!/bin/sh\ncat {shlex.quote(str(MACHINE))}/show-$3.txt\n")
    for name in ("sbatch", "squeue", "sacct", "scancel"):
        (commands / name).write_text("#!/bin/sh\n")
    for command in commands.iterdir():
        command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
    head = "manager = 'slurm'\nmachine = 'm'\ntimezone = 'UTC'\n"
    (sites / "one.toml").write_text(f"name = 'one'\nrates = 'gone.toml'\n{head}[queues.bacth]\nduration = 5\n"
                                    "[queues.batch]\nduration = 9\n[map.Queue]\nlong = 'batch'\ngpu = 'gpuq'\nx = ''\n")
    (sites / "two.toml").write_text(f"name = 'two'\nrates = 'prices.toml'\n{head}")
    (sites / "prices.toml").write_text("name = 'r'\n")
    lines = sssjob("sites", "check", "one").out.splitlines()
    assert [line for line in lines if "queue" in line] == [
        "one: queues.bacth: there is no queue bacth", "one: map.Queue.gpu: there is no queue gpuq"]
    assert "one: the site two is the same cluster, machine m" in lines
    assert any(line.startswith("one: rates: ") and "gone.toml: No such file" in line for line in lines)
    answer = sssjob("sites", "check", "two")
    assert answer.code == 1 and "two: rates: prices.toml: " in answer.out and "one is the same cluster" in answer.out


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


@pytest.mark.parametrize(("manager", "executor"), [("slurm", "slurm"), ("pbspro", "pbs"), ("torque", "pbs_classic")])
def test_the_manager_is_the_executor(sssjob: Command, sites: Path, manager: str, executor: str) -> None:
    """By any name that `--executor` takes: the formats are called pbspro and torque."""
    (sites / "a.toml").write_text(f"name = 'a'\nmanager = '{manager}'\n")
    shown = {record["name"]: record["value"]
             for record in map(json.loads, sssjob("config", "show", "--json", "--site", "a").out.splitlines())}
    assert shown["executor"] == executor


FIXTURES = Path(__file__).parents[1] / "fixtures"
#: Manager -> its commands as shell text, and the profile that is drafted.
DRAFTS: dict[str, tuple[dict[str, str], str]] = {
    "slurm": ({"scontrol": f"""case "$*" in
  "-o show node") cat {FIXTURES}/slurm-22.05.8/machine/show-node.txt ;;
  "-o show partition") cat {FIXTURES}/slurm-22.05.8/machine/show-partition.txt ;;
  "show config") printf 'ClusterName = delta\\nSlurmctldHost[0] = head\\nSlurmctldPort = 6817\\n' ;;
esac"""}, """name = "delta"
manager = "slurm"
machine = "delta"
#rates = "rates.toml"                  # what it charges: a file beside this one
timezone = "Europe/Paris"
cores_per_node = 4

# batch has no limit of time
# closed takes no jobs now
[queues.debug]
duration = 600
"""),
    "sge": ({"qhost": f"cat {FIXTURES}/gridengine-8.1.9/machine/qhost-q.xml", "qconf": f"""case "$1" in
  -sql) echo all.q short.q ;;
  -sq) cat {FIXTURES}/gridengine-8.1.9/machine/qconf-sq.txt ;;
  -spl) printf 'mpi\\nsmp\\nodd\\n' ;;
  -sp) case "$2" in mpi) echo 'allocation_rule    2' ;; odd) echo 'allocation_rule  $mine' ;;
       *) cat {FIXTURES}/gridengine-8.1.9/machine/qconf-sp.txt ;; esac ;;
  -sc) cat {FIXTURES}/gridengine-8.1.9/machine/qconf-sc.txt ;;
esac"""}, """name = "here"
manager = "sge"
#machine = "its name in accounting"
#rates = "rates.toml"                  # what it charges: a file beside this one
timezone = "Europe/Paris"
cores_per_node = 8

# all.q has no limit of time
[queues."short.q"]
duration = 60

[sge]
h_vmem_per_slot = false
[sge.pe.smp]
allocation_rule = "$pe_slots"
[sge.pe.mpi]
allocation_rule = 2
# parallel environment odd: allocation_rule $mine is none that can be used
[sge.complex]                          # consumables: GPU, Memory or License
#gpu = "GPU"
#matlab = "License"
mem = "Memory"
"""),
}


@pytest.mark.parametrize("manager", DRAFTS)
def test_draft(sssjob: Command, sites: Path, monkeypatch: pytest.MonkeyPatch, manager: str) -> None:
    """What the manager says, as a profile that commands take; what it does not say as comments."""
    commands, expected = DRAFTS[manager]
    (sites / "bin").mkdir()
    for name, text in commands.items():
        (sites / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (sites / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{sites / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("TZ", "Europe/Paris")
    named = [] if manager == "slurm" else ["--name", "here"]
    answer = sssjob("sites", "draft", manager, "-o", sites / "new.toml", *named)
    assert (answer.code, answer.out, answer.err) == (0, "", "")
    head, _, text = (sites / "new.toml").read_text().partition("right value.\n")
    text, _, tail = text.partition("\n\n# Names that scripts")
    assert head.startswith("# A site profile, drafted from the answers") and '#"their name" = "our name"' in tail
    assert f"{text}\n".splitlines() == expected.splitlines()
    assert sssjob("offers", sites / "new.toml").code == 0


def test_complexes_that_a_job_consumes_once() -> None:
    facts = SiteFacts("x", "sge", complexes={"lic": ("INT", "JOB"), "h_vmem": ("MEMORY", "YES"), "gpus": ("INT", "JOB"),
                                             "a b": ("MEMORY", "JOB"), "bad\n": ("MEMORY", "JOB")})
    text = draft_site(facts)
    assert text.partition("[sge]\n")[2].partition("\n\n")[0] == (
        'h_vmem_per_slot = true\n[sge.complex]                          # consumables: GPU, Memory or License\n'
        '#lic = "License per job"\n#gpus = "GPU per job"\n"a b" = "Memory per job"')
    assert read_site(text).sge.complex == {"a b": "Memory per job"}


def test_draft_without_an_answer(sssjob: Command, sites: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    answer = sssjob("sites", "draft", "slurm")
    assert (answer.code, answer.out) == (4, "") and "scontrol: No such file" in answer.err
    assert [sssjob("sites", "draft", manager).code for manager in ("cobalt", "none", "arc")] == [2, 2, 2]


@pytest.mark.parametrize("command", ["status", "wait", "cancel", "hold", "release", "rerun"])
def test_how_resource_managers_are_asked(sssjob: Command, sites: Path, command: str) -> None:
    """Commands about jobs of the journal take a profile, and look at it before they ask anybody."""
    (sites / "odd.toml").write_text("name = 'odd'\n[run]\npolling = 3\n")
    (sites / "even.toml").write_text("name = 'even'\nmanager = 'local'\n[run]\npolling_interval = 3\n")
    answer = sssjob(command, "a", "--site", "odd")
    assert (answer.code, answer.out) == (1, "")
    assert answer.err == f"sssjob: {sites / 'odd.toml'}: run: polling: no such setting (did you mean " \
                         "'polling_interval'?)\n"
    answer = sssjob(command, "a", "--site", "even")
    assert answer.code == 5 and answer.err.startswith("sssjob: there is no job 'a' in ")
