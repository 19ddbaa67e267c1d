"""``sssjob convert --verify`` between two sites, which are behind SSH or here, by stand-ins of managers and of ssh."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.cli.test_jobs_behind_ssh import Sites, sites
from tests.fakes import lab, slurm

__all__ = ["sites"]
HEAD = "#!/bin/bash\n#SBATCH --time=00:05:00\n"
PROVE = ("convert", "-t", "sge", "job.sh", "--site", "alpha.toml", "--to-site", "gamma.toml", "--verify")


def script(body: str, head: str = HEAD) -> None:
    """The script that is converted."""
    Path("job.sh").write_text(f"{head}{body}\n")


def directories(sites: Sites) -> list[str]:
    """Those of runs, here and at the sites."""
    places = [Path(), *(sites.folder / name / "home" / "runs" for name in sites.labs)]
    return sorted(str(path) for place in places for path in place.glob(".sssjob-verify-*"))


def test_both_run_where_their_profiles_say_and_leave_nothing(sssjob: Command, sites: Sites) -> None:
    """Ids and directories of the two are not the same; the host is shown before the commands go out."""
    sites.labs["gamma"].stranger()
    script('echo "in $PWD for $SLURM_JOB_ID"; mkdir d; pwd -P > "d/$SLURM_JOB_ID"; ln -s d l; printf "\\0" > b')
    done = sssjob(*PROVE)
    assert (done.code, directories(sites)) == (0, []), done.err
    lines = [line for line in done.err.splitlines() if not line.startswith("job.sh:")]
    there = {name: re.escape(f"{sites.folder}/{name}/home/runs/.sssjob-verify-") for name in ("alpha", "gamma")}
    assert re.fullmatch(rf"original \(Slurm, alpha\): cd {there['alpha']}\w+/original && sbatch --parsable job\.sh",
                        lines[0])
    assert re.fullmatch(rf"converted \(Grid Engine, gamma\): cd {there['gamma']}\w+/converted && qsub -terse job\.sh",
                        lines[1])
    assert lines[2:] == ["original (Slurm, alpha): job 1 completed, exit code 0",
                         "converted (Grid Engine, gamma): job 2 completed, exit code 0",
                         "verify: both runs ended alike and left the same"]
    assert [len(site.all_calls()) > 0 for site in sites.labs.values()] == [True, False, True]


def test_what_differs_is_here_too(sssjob: Command, sites: Sites) -> None:
    """Between two sites of one manager, whose jobs have the same id."""
    script('echo same > same; echo $WHERE > where; [ $WHERE = alpha ] || exit 3')
    done = sssjob("convert", "-f", "slurm", "-t", "slurm", "job.sh", "--site", "alpha.toml", "--to-site", "beta.toml",
                  "--verify", "--json", "-q")
    record = json.loads(done.err.splitlines()[-1])
    here, *there = directories(sites)
    name = Path(here).name
    assert done.code == 1 and there == [f"{sites.folder}/{site}/home/runs/{name}" for site in ("alpha", "beta")]
    assert {side: record[side] for side in ("original", "converted")} == {
        "original": {"manager": "slurm", "site": "alpha", "directory": f"amy@alpha:{there[0]}/original",
                     "native_id": "1", "state": "COMPLETED", "exit_code": 0},
        "converted": {"manager": "slurm", "site": "beta", "directory": f"amy@beta:{there[1]}/converted",
                      "native_id": "1", "state": "FAILED", "exit_code": 3}}
    assert record["kept"] == str(Path(here).absolute())
    assert [one["subject"] for one in record["differences"]] == ["end", "where"]
    assert [Path(here, side, "where").read_text() for side in ("original", "converted")] == ["alpha\n", "beta\n"]


def test_streams_in_the_home_directory_there_are_compared_and_stay(sssjob: Command, sites: Sites) -> None:
    """Grid Engine starts a job without -cwd there; a file of an older job with that id is none of this one."""
    home = sites.folder / "gamma" / "home"
    (home / "old.o1").write_text("of an old job\n")
    os.utime(home / "old.o1", (1, 1))
    script('[ -z "$JOB_ID" ] || echo words > "$HOME/graded.o$JOB_ID"; '
           '[ -z "$SLURM_JOB_ID" ] || echo words > "slurm-$SLURM_JOB_ID.out"', "#!/bin/bash\n#$ -S /bin/bash\n")
    done = sssjob("convert", "-f", "sge", "-t", "slurm", "job.sh", "--site", "gamma.toml", "--to-site", "alpha.toml",
                  "--verify", "--body", "keep")
    assert (done.code, directories(sites)) == (0, []), done.err
    assert f"original (Grid Engine, gamma): some of its output is in amy@gamma:{home}/graded.o1, and stays there" in (
        done.err)
    assert (home / "graded.o1").read_text() == "words\n"


def test_one_of_them_may_be_here(sssjob: Command, sites: Sites, tmp_path: Path,
                                 monkeypatch: pytest.MonkeyPatch) -> None:
    """Without --site the original runs by the commands that are here."""
    near = lab.install(str(slurm.__file__), slurm.COMMANDS, tmp_path / "near", tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("SSSJOB_POLLING_INTERVAL", "0.2")
    script("echo $PWD > place")
    Path("near.toml").write_text("name = 'near'\nmanager = 'slurm'\n")
    (tmp_path / "scratch").mkdir()
    for named in ([], ["--site", "near.toml", "--verify-in", tmp_path / "scratch"]):
        done = sssjob("convert", "-f", "slurm", "-t", "sge", "job.sh", *named, "--to-site", "gamma.toml", "--verify")
        assert (done.code, directories(sites)) == (0, []), done.err
    assert "original (Slurm, near): cd " in done.err and not list((tmp_path / "scratch").iterdir())
    assert len(near.calls("sbatch")) == 2 and sites.labs["alpha"].all_calls() == []
    near.close()


@pytest.mark.parametrize("site", ["alpha", "gamma"])
def test_a_site_out_of_reach_is_told_before_anything_runs(sssjob: Command, sites: Sites, site: str) -> None:
    script("true")
    sites.trouble(site, "echo the line is dead >&2; exit 255")
    done = sssjob(*PROVE, "-q")
    assert (done.code, done.out, directories(sites)) == (3, "", [])
    assert done.err == f"sssjob: amy@{site}: cannot be reached: You have no mail; the line is dead\n"
    assert [manager.all_calls() for manager in sites.labs.values()] == [[], [], []]


def test_a_site_without_the_commands_is_told(sssjob: Command, sites: Sites) -> None:
    script("true")
    Path("x.toml").write_text("name = 'x'\nmanager = 'lsf'\n[ssh]\nhost = 'amy@gamma'\n")
    done = sssjob("convert", "-t", "lsf", "job.sh", "--to-site", "x.toml", "--site", "alpha.toml", "--verify", "-q")
    assert (done.code, done.err) == (3, "sssjob: bkill: LSF cannot be reached on amy@gamma, for this command of it is "
                                     "not in PATH; --verify needs both managers\n")


def test_a_directory_that_cannot_be_made_is_told(sssjob: Command, sites: Sites) -> None:
    script("true")
    runs = sites.folder / "gamma" / "home" / "runs"
    runs.rmdir()
    runs.write_text("a file")
    done = sssjob(*PROVE, "-q")
    assert done.code == 3 and "the scripts cannot be put there: amy@gamma: files cannot be written there" in done.err
    assert sites.labs["alpha"].all_calls() == [] and directories(sites) == []


def test_the_first_is_cancelled_where_the_second_is_refused(sssjob: Command, sites: Sites) -> None:
    script("sleep 60")
    sites.labs["gamma"].fault("qsub", exit=1, stderr="Unable to run job: unknown resource\nExiting.\n")
    done = sssjob(*PROVE)
    assert done.code == 5 and "original (Slurm, alpha): job 1 is cancelled\n" in done.err
    assert sites.labs["alpha"].calls("scancel") == [["1"]]
    kept = directories(sites)
    assert [Path(path).parts[-4:-1] for path in kept] == [("alpha", "home", "runs"), ("gamma", "home", "runs")]
    assert done.err.endswith(f"; their files are kept in amy@alpha:{kept[0]} and amy@gamma:{kept[1]}\n")


def test_a_line_that_is_lost_when_files_are_fetched_loses_none(sssjob: Command, sites: Sites) -> None:
    script("echo > f")
    tar = sites.folder / "gamma" / "bin" / "tar"
    tar.write_text("#!/bin/sh\nkill -9 $PPID\n")
    tar.chmod(0o755)
    done = sssjob(*PROVE, "-q")
    assert done.code == 3 and "what the jobs have left cannot be read: " in done.err, done.err
    here, *there = directories(sites)
    assert done.err.endswith(f"; it is kept in {Path(here).absolute()} and amy@alpha:{there[0]} and amy@gamma:"
                             f"{there[1]}\n")


def test_a_time_limit_cancels_there(sssjob: Command, sites: Sites) -> None:
    script("sleep 60")
    done = sssjob(*PROVE, "-q", "--verify-timeout", "1")
    assert done.code == 6 and len(directories(sites)) == 2, done.err
    assert [sites.labs["alpha"].calls("scancel"), sites.labs["gamma"].calls("qdel")] == [[["1"]], [["1"]]]


@pytest.mark.parametrize(("profile", "target", "why"), [
    ("name = 'x'\n", "sge", "Grid Engine: x.toml: the profile names no manager"),
    ("name = 'x'\nmanager = 'slurm'\n", "sge", "Grid Engine: x.toml: its executor slurm is for others"),
    ("name = 'x'\nmanager = 'pbs'\n", "torque", "Torque: x.toml: its executor pbs is for others"),
    ("name = 'x'\nmanager = 'local'\n", "sge", "Grid Engine: x.toml: its executor local is for others"),
    ("name = 'x'\nmanager = 'local'\n[ssh]\nhost = 'h'\n", "sge", "x.toml: executor local runs jobs on this machine"),
    ("name = 'x'\nmanager = 'sge'\n[run]\nexecutor = 'lsf'\n", "sge", "its executor lsf is for others"),
])
def test_profiles_that_are_of_no_use(sssjob: Command, sites: Sites, profile: str, target: str, why: str) -> None:
    script("true")
    Path("x.toml").write_text(profile)
    done = sssjob("convert", "-f", "slurm", "-t", target, "job.sh", "--site", "alpha.toml", "--to-site", "x.toml",
                  "--verify", "-q")
    assert (done.code, done.out) == (2, "") and "--verify cannot submit scripts for " in done.err
    assert why in done.err and sites.labs["alpha"].calls("sbatch") == []


def test_each_site_says_what_only_it_knows(sssjob: Command, sites: Sites) -> None:
    """What is read goes by the one, what is written by the other, whose map has the names of the old one."""
    Path("old.toml").write_text("name = 'old'\n[sge.pe.threads]\nallocation_rule = '$pe_slots'\n"
                                "[map.Queue]\n'short.q' = 'not-this'\n")
    Path("new.toml").write_text("name = 'new'\n[map.Queue]\n'short.q' = 'short'\n")
    script("true", "#!/bin/bash\n#$ -pe threads 4\n#$ -q short.q\n")
    done = sssjob("convert", "-q", "-f", "sge", "-t", "slurm", "job.sh", "--site", "old.toml", "--to-site", "new.toml",
                  "--layout", "canonical", "--body", "keep")
    assert done.code == 0 and "#SBATCH --cpus-per-task=4\n" in done.out, done.out
    assert "#SBATCH --partition=short\n" in done.out and "not-this" not in done.out
    assert sssjob("convert", "-t", "slurm", "job.sh", "--to-site", "absent").code == 2


def test_one_site_behind_ssh_is_not_taken_for_both(sssjob: Command, sites: Sites) -> None:
    """Both jobs ran by the commands that are here, and nothing told so."""
    script("true")
    done = sssjob("convert", "-t", "sge", "job.sh", "--site", "alpha.toml", "--verify")
    assert (done.code, directories(sites), [site.all_calls() for site in sites.labs.values()]) == (2, [], [[], [], []])
    assert "without --to-site --verify runs both jobs here" in done.err
