"""``sssjob lint`` as a linter: folders, forms of reports, repairs, exit statuses, the hook."""

from __future__ import annotations

import json
import os
import shlex
import stat
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
import yaml

from sssjob.cli import main
from sssjob.rules import RULES

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((Path(__file__).parent / "sarif-2.1.0-part.json").read_text())
Output = pytest.CaptureFixture[str]
WARNED = "#!/bin/sh\n#SBATCH -t 1:30\n"
REFUSED = "#!/bin/sh\n#SBATCH --nodes=many\n"
MINUTES = "--time 1:30 is 1 min and 30 s, not 1 h and 30 min"
MANY = "--nodes many: is no number of nodes (expected: a number or a range such as 2-4)"
BOTH = "#!/bin/sh\n#SBATCH -n 2\n#BSUB -n 2\n"          # Slurm ignores the one line, LSF the other


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with scripts, what is none, and links in a circle; the current folder is above it."""
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "t"
    (root / "deep" / "er").mkdir(parents=True)
    (root / "b.sh").write_text(WARNED)
    (root / "deep" / "a.slurm").write_text(REFUSED)
    (root / "deep" / "er" / "c.sh").write_text("#!/bin/sh\n#SBATCH -n 1\n")
    (root / "deep" / "er" / "loop").symlink_to("../..")
    (root / "deep" / "self").symlink_to("self")
    (root / "out").symlink_to("/etc/hostname")
    (root / "binary").write_bytes(b"\x7fELF\0#SBATCH -n 1\n")
    (root / "notes.txt").write_text("use #SBATCH\n")
    (root / "plain.sh").write_text("#!/bin/sh\necho\n")
    (root / ".hidden.sh").write_text(REFUSED)
    os.mkfifo(root / "pipe")
    return root


def test_folders_are_walked_and_what_is_left_out_is_said(tree: Path, capsys: Output) -> None:
    assert main(["lint", "t", "--jobs", "2"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        f"t/deep/a.slurm:2:9: SSS505 error {MANY}\n"
        f"t/b.sh:2:9: SSS522 warning [breaks] {MINUTES}\n"
        "sssjob: 1 file left out, a link that leads nowhere: t/deep/self\n"
        "sssjob: 1 file left out, a link that leads out of the tree: t/out\n"
        "sssjob: 1 file left out, a link to a directory: t/deep/er/loop\n"
        "sssjob: 1 file left out, binary: t/binary\n"
        "sssjob: 1 file left out, no regular file: t/pipe\n"
        "sssjob: 2 files left out, not recognised as a script: t/notes.txt, t/plain.sh\n")


def test_nothing_to_look_at_is_said(tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "x").mkdir()
    assert main(["lint", str(tmp_path / "x")]) == 0
    assert capsys.readouterr().err == "sssjob: no script is there to look at\n"


def test_a_doubtful_file_does_not_stop_the_rest(tree: Path, capsys: Output) -> None:
    (tree / "both.sh").write_text(BOTH)
    assert main(["lint", "-q", "t/both.sh", "t/none.sh", "t/deep/a.slurm"]) == 3
    err = capsys.readouterr().err.splitlines()
    assert err[0].startswith("sssjob: t/both.sh: fits 2 formats, name one with --from: slurm (")
    assert err[1:] == ["sssjob: t/none.sh: No such file or directory",
                       f"t/deep/a.slurm:2:9: SSS505 error {MANY}"]
    assert main(["lint", "-q", "t/both.sh", "t/b.sh"]) == 2


@pytest.mark.parametrize(("arguments", "status"), [
    (["t/b.sh"], 0), (["t/b.sh", "--strict"], 1), (["t/b.sh", "--strict", "--ignore", "SSS522"], 0),
    (["t/deep/a.slurm"], 1), (["t/deep/a.slurm", "--policy", "warn"], 0), (["t/deep/a.slurm", "--select", "SSS52"], 0),
    (["t/deep/a.slurm", "--exit-zero"], 0), (["t/none", "--exit-zero"], 3), (["t/plain.sh", "--exit-zero"], 2),
    (["t/plain.sh", "t/binary", "--skip-others"], 0), (["t/b.sh", "--select", "SSS9"], 2),
    (["t/b.sh", "--format", "xml"], 2), (["t/b.sh", "-o", "x"], 2), (["t/b.sh", "--json", "--format", "gcc"], 2),
    (["t/b.sh", "-f", "sacct"], 2),
])
def test_exit_statuses(tree: Path, arguments: list[str], status: int) -> None:
    assert main(["lint", *arguments]) == status


@pytest.mark.parametrize(("script", "statuses"), [
    ("#!/bin/sh\n#SBATCH -t 1:30\n", (1, 1, 1)), ("#!/bin/sh\n#SBATCH -t 0\n", (0, 1, 1)),
    ("#!/bin/sh\n#SBATCH -o a%Y\n", (0, 0, 1)), ("#!/bin/sh\n##SBATCH -n 1\n#SBATCH -n 1\n", (0, 0, 0)),
    ("#!/bin/sh\n#SBATCH -n 1\n", (0, 0, 0))])
def test_the_exit_status_goes_by_what_a_finding_means_for_the_job(tree: Path, script: str, statuses: tuple[int, ...]
                                                                  ) -> None:
    (tree / "b.sh").write_text(script)
    for form in ("text", "sarif"):
        assert tuple(main(["lint", "t/b.sh", "--format", form, "--fail-on", word])
                     for word in ("breaks", "costs", "looks")) == statuses
    assert main(["lint", "t/b.sh", "--fail-on", "all"]) == 2


def test_what_only_looks_different_is_a_note_for_other_programs(tree: Path, capsys: Output) -> None:
    (tree / "b.sh").write_text("#!/bin/sh\n#SBATCH -o a%Y\n")
    assert capsys.readouterr().err == ""
    assert main(["lint", "t/b.sh"]) == 0
    message = capsys.readouterr().err.removeprefix("t/b.sh:2:9: SSS532 warning [looks] ").rstrip()
    assert report("gcc", capsys, "t/b.sh") == f"t/b.sh:2:9: note: {message} [SSS532]\n"
    assert json.loads(report("gitlab", capsys, "t/b.sh"))[0]["severity"] == "info"
    assert 'failures="0"' in report("junit", capsys, "t/b.sh")
    result = json.loads(report("sarif", capsys, "t/b.sh"))["runs"][0]["results"][0]
    assert (result["level"], result["rank"]) == ("note", 25.0)


# --- reports
def report(form: str, capsys: Output, *names: str) -> str:
    main(["lint", "--format", form, *names])
    return capsys.readouterr().out


def test_reports_of_a_line_each(tree: Path, capsys: Output) -> None:
    (tree / "a,b:%.sh").write_text("#!/bin/sh\n##SBATCH -n 1\n#SBATCH -n 1\n")
    names = ("t/a,b:%.sh", "t/b.sh", "t/deep/a.slurm")
    assert report("gcc", capsys, *names) == (
        "t/a,b:%.sh:2:1: note: a directive that is commented out; nothing reads it [SSS520]\n"
        f"t/b.sh:2:9: warning: {MINUTES} [SSS522]\n"
        f"t/deep/a.slurm:2:9: error: {MANY} [SSS505]\n")
    assert report("github", capsys, *names) == (
        "::notice file=t/a%2Cb%3A%25.sh,line=2,col=1,title=SSS520 directive commented out::a directive that is "
        "commented out; nothing reads it\n"
        f"::warning file=t/b.sh,line=2,col=9,title=SSS522 minutes and seconds::{MINUTES}\n"
        f"::error file=t/deep/a.slurm,line=2,col=9,title=SSS505 refused by the target::{MANY}\n")


def test_reports_of_one_document(tree: Path, capsys: Output) -> None:
    (tree / "twice.sh").write_text("#!/bin/sh\n#SBATCH -t 1:30\n#SBATCH -t 1:30\n")
    assert [(r["file"], r["line"], r["column"], r["rule"]) for r in json.loads(report("json", capsys, "t"))] == [
        ("t/b.sh", 2, 9, "SSS522"), ("t/twice.sh", 2, 9, "SSS522"), ("t/twice.sh", 3, 9, "SSS522"),
        ("t/deep/a.slurm", 2, 9, "SSS505")]
    issues = json.loads(report("gitlab", capsys, "t"))
    assert [(i["check_name"], i["severity"], i["location"]) for i in issues] == [
        ("SSS522", "major", {"path": "t/b.sh", "lines": {"begin": 2}}),
        ("SSS522", "major", {"path": "t/twice.sh", "lines": {"begin": 2}}),
        ("SSS522", "major", {"path": "t/twice.sh", "lines": {"begin": 3}}),
        ("SSS505", "critical", {"path": "t/deep/a.slurm", "lines": {"begin": 2}})]
    assert len({i["fingerprint"] for i in issues}) == 4
    (tree / "b.sh").write_text("#!/bin/sh\n\n#SBATCH -t 1:30\n")
    assert json.loads(report("gitlab", capsys, "t"))[0]["fingerprint"] == issues[0]["fingerprint"]     # it only moved
    assert json.loads(report("json", capsys, "t/plain.sh", "--skip-others")) == []


def test_junit(tree: Path, capsys: Output) -> None:
    (tree / "b.sh").write_text("#!/bin/sh\n##SBATCH -n 1\n#SBATCH -t 1:30 -J '<&\"'\n")
    suite = ElementTree.fromstring(report("junit", capsys, "t"))[0]
    assert suite.attrib == {"name": "sssjob lint", "tests": "3", "failures": "2", "errors": "0"}
    assert [(case.get("name"), [(c.tag, c.get("type")) for c in case]) for case in suite] == [
        ("t/b.sh", [("failure", "SSS522"), ("system-out", None)]),
        ("t/deep/a.slurm", [("failure", "SSS505")]), ("t/deep/er/c.sh", [])]


def test_sarif(tree: Path, capsys: Output) -> None:
    (tree / "b c\xe4.sh").write_text("#PBS -N x\n#PBS -l waltime=1:00:00\n")
    log = json.loads(report("sarif", capsys, "t", str(tree / "b.sh")))
    jsonschema.Draft4Validator(SCHEMA).validate(log)
    run = log["runs"][0]
    assert [(r["ruleId"], r["level"], r["locations"][0]["physicalLocation"]) for r in run["results"]] == [
        ("SSS528", "warning", {"artifactLocation": {"uri": "t/b%20c%C3%A4.sh"},
                               "region": {"startLine": 1, "startColumn": 1}}),
        ("SSS529", "warning", {"artifactLocation": {"uri": "t/b%20c%C3%A4.sh"},
                               "region": {"startLine": 2, "startColumn": 6}}),
        ("SSS522", "warning", {"artifactLocation": {"uri": "t/b.sh"}, "region": {"startLine": 2, "startColumn": 9}}),
        ("SSS505", "error", {"artifactLocation": {"uri": "t/deep/a.slurm"},
                             "region": {"startLine": 2, "startColumn": 9}}),
        ("SSS522", "warning", {"artifactLocation": {"uri": f"file://{tree}/b.sh"},
                               "region": {"startLine": 2, "startColumn": 9}})]
    rules = run["tool"]["driver"]["rules"]
    assert [rules[r["ruleIndex"]]["id"] for r in run["results"]] == [r["ruleId"] for r in run["results"]]
    assert [(r["rank"], r["properties"]) for r in run["results"]] == [
        (75.0, {"consequence": "breaks"})] * 3 + [(100.0, {"consequence": "breaks"}), (75.0, {"consequence": "breaks"})]
    assert [rule["fullDescription"]["text"] for rule in rules] == [RULES[rule["id"]].text for rule in rules]


def test_a_report_goes_to_a_file_whole(tree: Path, capsys: Output) -> None:
    assert main(["lint", "t", "--format", "sarif", "-o", "report.sarif"]) == 1
    assert capsys.readouterr().out == ""
    jsonschema.Draft4Validator(SCHEMA).validate(json.loads(Path("report.sarif").read_text()))


def test_what_stands_in_a_file_several_times_is_told_once(tree: Path, capsys: Output) -> None:
    (tree / "b.sh").write_text("#!/bin/sh\ndate\n#$ -N x\n#$ -cwd\n#$ -j y\n")
    assert main(["lint", "t/b.sh", "--strict"]) == 1
    assert capsys.readouterr().err == (
        "t/b.sh:3:1: SSS521 warning [breaks] Grid Engine obeys this line although it stands below the first command "
        "(line 2), in a here-document too (3 times, the last at line 5)\n")
    main(["lint", "t/b.sh", "--json"])
    out, err = capsys.readouterr()
    assert json.loads(out)["warnings"] == len(err.splitlines()) == 3


def test_each_cause_is_told_once_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    """The worst first, then the most frequent, with the number of all and the first files; the status counts each."""
    monkeypatch.chdir(tmp_path)
    Path("t").mkdir()
    for number in range(6):
        (Path("t") / f"{number}.sh").write_text(
            f"#!/bin/sh\n#SBATCH -t {number + 1}:30 --mail-user=$USER@n{number}.org\n##SBATCH -n 1\n##SBATCH -n 2\n")
    (Path("t") / "7.sh").write_text("#!/bin/sh\n#SBATCH --nodez=1\n#SBATCH --nodez=2\n#SBATCH -N 0x\n")
    assert main(["lint", "t", "--jobs", "1"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "t/7.sh:2:9: SSS505 error --nodez: no such option, unless plugin_options in [slurm] of a site profile name it "
        "(2 times, the last at line 3) (did you mean --nodes?)",
        "t/7.sh:4:9: SSS505 error --nodes 0x: is no number of nodes (expected: a number or a range such as 2-4)",
        "t/0.sh:2:9: SSS522 warning [breaks] --time 1:30 is 1 min and 30 s, not 1 h and 30 min "
        "(6 such in 6 files, also t/1.sh:2, t/2.sh:2, t/3.sh:2, ...)",
        "t/0.sh:2:17: SSS531 warning [breaks] --mail-user $USER@n0.org: no shell reads a directive, so $USER is taken "
        "as it stands (6 such in 6 files, also t/1.sh:2, t/2.sh:2, t/3.sh:2, ...)",
        "t/0.sh:3:1: SSS520 info a directive that is commented out; nothing reads it (12 times in 6 files, also "
        "t/1.sh:3, t/2.sh:3, t/3.sh:3, ...)",
        "sssjob: 27 findings have 5 causes; --each shows every one at its place"]
    assert main(["lint", "t", "--jobs", "2"]) == 1
    assert capsys.readouterr().err.splitlines() == lines
    assert main(["lint", "t", "-q"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 2
    assert main(["lint", "t", "--each"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 2 + 6 * 3      # those of a file once
    assert main(["lint", "t", "--json"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 27
    assert main(["lint", "t", "--format", "gcc"]) == 1
    assert len(capsys.readouterr().out.splitlines()) == 27
    assert main(["lint", "t", "--each", "--format", "gcc"]) == 2
    assert capsys.readouterr().err == "sssjob: --each is for --format text; gcc has every finding\n"
    assert main(["lint", *sorted(map(str, Path("t").iterdir()))]) == 1         # files that are named
    assert len(capsys.readouterr().err.splitlines()) == 20


# --- repairs
@pytest.mark.parametrize(("text", "mended", "count"), [
    ("#!/bin/sh\r\n#SBATCH -n 1\r\necho a\r\nlast", "#!/bin/sh\n#SBATCH -n 1\necho a\nlast", 1),
    ("#!/bin/sh\r\n#$ -N x\necho\r\n", "#!/bin/sh\n#$ -N x\necho\n", 1),
    ("#!/bin/sh\n#SBATCH \u2013n 2 \u2014time=5 \u2013nodes=1\necho \u2013n\n",
     "#!/bin/sh\n#SBATCH -n 2 --time=5 --nodes=1\necho \u2013n\n", 1),
    ("#!/bin/sh\n#SBATCH -J \u201ca \u2013 b\u201d\n", '#!/bin/sh\n#SBATCH -J "a \u2013 b"\n', 1),
    ("#!/bin/sh\n#SBATCH --job=x  # --job\n", "#!/bin/sh\n#SBATCH --job-name=x  # --job\n", 1),
    ("#!/bin/sh\n#SBATCH --tasks 8\n", "#!/bin/sh\n#SBATCH --tasks 8\n", 0),
    ("#!/bin/sh\n#SBATCH --job=x # sssjob: ignore=SSS525\n", "#!/bin/sh\n#SBATCH --job=x # sssjob: ignore=SSS525\n", 0),
])
def test_repairs(tree: Path, capsys: Output, text: str, mended: str, count: int) -> None:
    path = tree / "b.sh"
    path.write_bytes(text.encode())
    path.chmod(0o751)
    (tree / "link.sh").symlink_to("b.sh")
    main(["lint", "--fix", "t/link.sh"])
    assert path.read_bytes() == mended.encode() and stat.S_IMODE(path.stat().st_mode) == 0o751
    assert (tree / "link.sh").is_symlink()
    assert (f"sssjob: t/link.sh: {count} mended\n" in capsys.readouterr().err) == bool(count)
    main(["lint", "--fix", "t/link.sh"])
    assert path.read_bytes() == mended.encode() and "mended" not in capsys.readouterr().err


def test_bytes_that_are_no_text_stay(tree: Path) -> None:
    (tree / "b.sh").write_bytes(b"#!/bin/sh\n#SBATCH --job=x\necho \xff\xfe\x85\xe2\x80\xa8\n")
    main(["lint", "--fix", "t/b.sh"])
    assert (tree / "b.sh").read_bytes() == b"#!/bin/sh\n#SBATCH --job-name=x\necho \xff\xfe\x85\xe2\x80\xa8\n"


def test_only_chosen_rules_are_mended(tree: Path) -> None:
    (tree / "b.sh").write_text("#!/bin/sh\n#SBATCH --job=x\n#SBATCH -J \u201ca\u201d\n")
    main(["lint", "--fix", "--select", "SSS533", "t/b.sh"])
    assert (tree / "b.sh").read_text() == '#!/bin/sh\n#SBATCH --job=x\n#SBATCH -J "a"\n'


def test_standard_input_is_mended_on_standard_output(tree: Path) -> None:
    import subprocess
    import sys

    done = subprocess.run([sys.executable, "-m", "sssjob", "lint", "--fix", "-"], input="#!/bin/sh\n#SBATCH --job=x\n",
                          capture_output=True, text=True, cwd=ROOT)
    assert (done.stdout, done.stderr) == ("#!/bin/sh\n#SBATCH --job-name=x\n", "sssjob: -: 1 mended\n")


# --- the hook
def test_the_hooks_run_as_they_stand(tree: Path, capsys: Output) -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert [hook["id"] for hook in hooks] == ["sssjob-lint", "sssjob-lint-fix"]
    for hook in hooks:
        assert set(hook) == {"id", "name", "description", "entry", "language", "types"} and hook["language"] == "python"
        program, *arguments = shlex.split(hook["entry"])
        assert program == "sssjob"
        assert main([*arguments, "t/notes.txt", "t/plain.sh", "t/deep/a.slurm"]) == 1     # names follow the entry
        assert main([*arguments, "t/notes.txt", "t/b.sh"]) == 0
