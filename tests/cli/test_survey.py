"""``sssjob survey``: what a tree of scripts leaves to the site, and the profile that is drafted of it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from sssjob.cli import main
from sssjob.conversion.drafting import draft
from sssjob.conversion.site import read_site
from sssjob.conversion.survey import KINDS, Question, Survey, Use, surveyed
from sssjob.translators.bodies.modules import named
from sssjob.translators.recognise import Sample
from sssjob.translators.registry import get

FIXTURES = Path(__file__).parents[1] / "fixtures" / "scripts"
Output = pytest.CaptureFixture[str]
SGE = ("#!/bin/sh\n#$ -pe smp 4\n#$ -l h_rt=1:00:00,gpu=1,bigmem,h_vmem=4G\n#$ -q all.q,long.q@@hg -P chem\n"
       "#$ -soft -l fast=1\nmodule load gcc/9 openmpi\nmodule unload gcc/9; ml R/4 -q; ml purge; module avail x\n"
       "ml $M\n")
SLURM = ("#!/bin/sh\n#SBATCH -p a,b -A chem --qos=high --gres=gpu:v100:2 -C ib --licenses=matlab:2\n"
         "#SBATCH --begin=2026-01-01T10:00:00 -M c1 --reservation=maint\n")
LSF = "#!/bin/sh\n#BSUB -M 4000 -q normal\n#BSUB -R \"rusage[mem=4000]\"\n"
PBS = "#!/bin/sh\n#PBS -q big\n#PBS -l select=1:ncpus=16:model=bro\n#PBS -l matlab=2\n#PBS -J 1-3\n"


@pytest.mark.parametrize(("dialect", "text", "expected"), [
    ("sge", SGE, ["complex fast 5", "complex gpu 3", "feature bigmem 3", "group @@hg 4", "h_vmem -l h_vmem 3",
                  "module R/4 7", "module gcc/9 6", "module openmpi 6", "pe smp 2", "project chem 4", "queue all.q 4",
                  "queue long.q 4"]),
    ("slurm", SLURM, ["clock --begin 3", "feature ib 2", "gpu v100 2", "license matlab 2", "machine c1 3",
                      "project chem 2", "qos high 2", "queue a 2", "queue b 2", "reservation maint 3"]),
    ("lsf", LSF, ["queue normal 2", "unit -M 2", "unit -R 3"]),
    ("pbspro", PBS, ["complex matlab 4", "complex model 3", "queue big 2"]),
    ("sge", "#!/bin/sh\n#$ -q !long.q,*@@fast,a\n", ["queue !long.q 2", "queue *@@fast 2", "queue a 2"]),
    ("lsf", "#!/bin/sh\n#BSUB -n 4 -R \"rusage[mem=4GB]\"\n", ["reserve -R 2"]),
    ("slurm", "#!/bin/sh\n#SBATCH --image=a --mem=1G\n#SBATCH --nv\n", ["plugin image 2", "plugin nv 3"]),
    ("slurm", "#!/bin/sh\n#SBATCH -n 2\nsrun ./a\n", []),
])
def test_what_a_script_leaves_open(dialect: str, text: str, expected: list[str]) -> None:
    uses = surveyed(get(dialect), Sample(text.encode()))
    assert sorted({f"{q.kind} {q.name} {line}" for q, line in uses}) == expected


def test_what_the_profile_answers_is_left_out() -> None:
    site = read_site('name = "x"\ntimezone = "UTC"\n[map.Queue]\na = "z"\n[modules]\nopenmpi = ""\n'
                     '[lsf]\nunit_for_limits = "MB"\n[sge]\nh_vmem_per_slot = true\n'
                     '[sge.pe.smp]\nallocation_rule = "$pe_slots"\n')
    left = {q.name for dialect, text in (("sge", SGE), ("slurm", SLURM), ("lsf", LSF))
            for q, _ in surveyed(get(dialect), Sample(text.encode()), site)}
    assert not left & {"a", "openmpi", "-M", "-R", "--begin", "-l h_vmem", "smp"} and {"b", "gcc/9", "ib"} <= left


def test_modules_are_words_of_commands() -> None:
    text = b"echo module load a\n# module load b\nif true; then module load c d; fi\ncat <<E\nmodule load e\nE\nml f\n"
    assert list(named(text)) == [("c", 3), ("d", 3), ("f", 7)]
    assert list(named(b"module swap a/1 b/2\nmodule rm c\nmodule\nml -t list\n")) == [("a/1", 1), ("b/2", 1)]


# --- the tree
@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "t"
    (root / "deep").mkdir(parents=True)
    (root / "a.sh").write_text("#!/bin/sh\n#SBATCH -p long\nmodule load gcc/9\n")
    (root / "b.sh").write_text("#!/bin/sh\n#SBATCH -p long,short\n")
    (root / "deep" / "c.sge").write_text("#!/bin/sh\n#$ -q long -pe smp 2\n")
    (root / "deep" / "loop").symlink_to("..")
    (root / "bin").write_bytes(b"\0" * 9000)
    (root / "both.sh").write_text("#!/bin/sh\n#SBATCH -n 2\n#BSUB -n 2\n")
    (root / "README").write_text("words\n")
    os.mkfifo(root / "pipe")
    return root


def test_the_tables(tree: Path, capsys: Output) -> None:
    assert main(["survey", "t", "--top", "2"]) == 0
    out, err = capsys.readouterr()
    assert [line.split() for line in out.splitlines() if line.strip("─")] == [line.split() for line in """
format scripts
slurm 2
sge 1

queues and partitions (map.Queue of a site profile)
name format scripts uses example
long slurm 2 2 t/a.sh:2
long sge 1 1 t/deep/c.sge:2
and 1 more

environment modules (modules of a site profile)
name format scripts uses example
gcc/9 slurm 1 1 t/a.sh:3

parallel environments (sge.pe of a site profile)
name format scripts uses example
smp sge 1 1 t/deep/c.sge:2""".splitlines() if line]
    assert err.splitlines() == [
        "sssjob: 1 file left out, a link to a directory: t/deep/loop",
        "sssjob: 1 file left out, binary: t/bin",
        "sssjob: 1 file left out, no regular file: t/pipe",
        "sssjob: 1 file left out, not recognised as a script: t/README",
        "sssjob: 1 file left out, several dialects fit: t/both.sh"]


def test_records(tree: Path, capsys: Output) -> None:
    assert main(["survey", "t", "--json", "--jobs", "2"]) == 0
    *questions, summary = map(json.loads, capsys.readouterr().out.splitlines())
    assert questions[0] == {"type": "question", "kind": "queue", "name": "long", "format": "slurm", "scripts": 2,
                            "uses": 2, "example": "t/a.sh:2", "key": "map.Queue"}
    assert summary["scripts"] == {"slurm": 2, "sge": 1} and sum(summary["left_out"].values()) == 5


def test_the_draft_of_a_tree_is_a_profile(tree: Path, capsys: Output) -> None:
    assert main(["survey", "t", "--draft", "-", "-q"]) == 0
    text = capsys.readouterr().out
    assert text == """\
# A site profile, drafted from 3 scripts. Lines of the form
# "#key = value" are guesses: take the sign away from those that hold, with the right value.
name = "draft"

# queues and partitions: the name in the scripts = the name here; "" leaves it out
[map.Queue]
#"long" = "long"     # 2 scripts, such as t/a.sh:2
#"short" = "short"     # 1 script, such as t/b.sh:2

# environment modules: the name in the scripts = the name here; "" leaves it out
[modules]
#"gcc/9" = "gcc/9"     # 1 script, such as t/a.sh:3

# allocation_rule as qconf -sp NAME shows it: $pe_slots, $fill_up, $round_robin or a number
#[sge.pe."smp"]     # 1 script, such as t/deep/c.sge:2
#allocation_rule = "$pe_slots"
"""
    assert read_site(text).map == {"Queue": {}}
    site = read_site(_uncommented(text))
    assert site.map == {"Queue": {"long": "long", "short": "short"}} and site.sge.smp() == "smp"
    Path("site.toml").write_text(_uncommented(text))
    assert main(["survey", "t", "--site", "site.toml", "-q", "--json"]) == 0
    assert [json.loads(line)["type"] for line in capsys.readouterr().out.splitlines()] == ["summary"]


def test_answers_are_not_written_over(tree: Path, capsys: Output) -> None:
    """A draft is edited by hand; a later survey wrote a new one over it."""
    words = ["survey", "t", "--draft", "site.toml", "-q"]
    assert main(words) == 0
    untouched = Path("site.toml").read_text()
    assert main(words) == 0 and Path("site.toml").read_text() == untouched
    for answers in (untouched.replace('#"long"', '"long"'), "hostname\n", ""):
        Path("site.toml").write_text(answers)
        capsys.readouterr()
        assert main(words) == 2 and Path("site.toml").read_text() == answers
        assert capsys.readouterr() == ("", "sssjob: --draft site.toml: there is a file already, which may have answers "
                                           "in it; name another one, and compare\n")


def _uncommented(text: str) -> str:
    return re.sub(r"(?m)^#(?=[\[\"a-z])", "", text)


@pytest.mark.parametrize("uncommented", [False, True])
def test_every_draft_is_a_profile(uncommented: bool) -> None:
    survey = Survey()
    for path in sorted(FIXTURES.glob("*/made-*")):
        survey.add(path.parent.name, str(path), surveyed(get(path.parent.name), Sample(path.read_bytes(), str(path))))
    survey.add("sge", "odd\n\x1b.sh", [Use(Question(kind, name, "sge"), 1) for kind in KINDS for name in (
        'a"b\\', "x = y # z", "\x1b[31m", "é", "q" * 300, "[x]")])
    text = draft(survey)
    assert "\x1b" not in text
    read_site(_uncommented(text) if uncommented else text)


def test_nothing_readable_is_no_fault_of_the_command(tmp_path: Path, capsys: Output) -> None:
    assert main(["survey", str(tmp_path)]) == 0
    assert capsys.readouterr().out.split() == ["format", "scripts", "─" * 18, "no", "script", "0"]
    assert main(["survey", str(tmp_path / "none")]) == 3
    assert capsys.readouterr().err == f"sssjob: 1 file left out, No such file or directory: {tmp_path}/none\n"
    assert main(["survey", str(tmp_path), "-f", "sacct"]) == 2
