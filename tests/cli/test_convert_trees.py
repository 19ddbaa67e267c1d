"""``sssjob convert``: whole trees, recognised formats, comments, ids and sites, and a dialect of a third party."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from unittest.mock import patch

import pytest

from sssjob.cli import main
from sssjob.cli._trees import OUTCOMES, Tree, _died, all_suffixes, output_name
from sssjob.conversion.converting import Conversion
from sssjob.findings import Policy
from sssjob.processes import Stops, in_order
from sssjob.translators import WriteContext, get
from tests.cli.conftest import GROUP, Command

SCRIPT = "#!/bin/sh\n#SBATCH --job-name=a\n#SBATCH --time=5\ndate\n"
WRITTEN = "#!/bin/sh\n#PBS -N a\n#PBS -l walltime=00:05:00\ncd \"$PBS_O_WORKDIR\"\ndate\n"
LOSSY = "#!/bin/sh\n#SBATCH --qos=high\n#SBATCH --switches=2\n#SBATCH --job-name=a\ncd /x\ndate\n"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Scripts in folders, and beside them everything that is none."""
    root = tmp_path / "scripts"
    (root / "sub" / "deep").mkdir(parents=True)
    for name in ("a.sh", "sub/b.sbatch", "sub/deep/c", "sub/d.job"):
        (root / name).write_text(SCRIPT)
    (root / "a.sh").chmod(0o755)
    (root / ".hidden.sh").write_text(SCRIPT)
    (root / ".git").mkdir()
    (root / ".git" / "x.sh").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    return root


def files(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text() for p in sorted(folder.rglob("*")) if p.is_file()}


def convert(sssjob: Command, *more: str, to: str = "pbspro") -> tuple[int, str, str]:
    return sssjob("convert", "-f", "slurm", "-t", to, "scripts", "--out", "out", "--policy", "warn", *more)


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_tree_keeps_its_shape(sssjob: Command, tree: Path, jobs: str) -> None:
    """Names stay, but for the suffix of another system; permissions stay; hidden files are left out."""
    code, out, _ = convert(sssjob, "-q", "--jobs", jobs)
    assert code == 0
    assert files(Path("out")) == dict.fromkeys(["a.sh", "sub/b.pbs", "sub/d.job", "sub/deep/c"], WRITTEN)
    assert Path("out/a.sh").stat().st_mode & 0o777 == 0o755
    assert out.split() == ["outcome", "files", *out.split()[2:3], "converted", "4", "all", "4"]


def test_what_is_bad_does_not_stop_the_rest(sssjob: Command, tree: Path) -> None:
    """Binary, unreadable, refused, links that lead out or nowhere or round, a pipe: each is told, the rest is there."""
    (tree / "binary.sh").write_bytes(b"\x7fELF\0\1")
    (tree / "refused.sh").write_text("#!/bin/sh\n#SBATCH --no-such-option\n")
    (tree / "out.sh").symlink_to("/etc/passwd")
    (tree / "nowhere.sh").symlink_to("missing")
    (tree / "inside.sh").symlink_to("a.sh")
    (tree / "round").symlink_to(".")
    (tree / "self").symlink_to("self")
    os.mkfifo(tree / "pipe.sh")
    code, _, err = sssjob("convert", "-f", "slurm", "-t", "pbspro", "scripts", "--out", "out", "--report", "r.json")
    assert code == 1
    report = json.loads(Path("r.json").read_text())
    outcomes = {f["file"]: f["outcome"] for f in report["files"]}
    assert outcomes == {
        "a.sh": "converted", "binary.sh": "rejected", "inside.sh": "converted", "nowhere.sh": "skipped",
        "out.sh": "skipped", "pipe.sh": "skipped", "refused.sh": "rejected", "round": "skipped", "self": "skipped",
        "sub/b.sbatch": "converted", "sub/d.job": "converted", "sub/deep/c": "converted"}
    assert report["outcomes"] == {"converted": 5, "rejected": 2, "skipped": 5}
    assert {f["file"]: f["message"] for f in report["files"] if f["message"]} == {
        "nowhere.sh": "a link that leads nowhere", "out.sh": "a link that leads out of the tree",
        "pipe.sh": "no regular file", "round": "a link to a directory", "self": "a link that leads nowhere"}
    refused = next(f for f in report["files"] if f["file"] == "refused.sh")
    assert [(f["rule"], f["line"]) for f in refused["findings"]] == [("SSS505", 2)]
    assert "binary.sh:1: SSS505 error" in err and "refused.sh" not in files(Path("out"))
    assert not [name for name in files(Path("out")) if ".sssjob-" in name]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_permission_is_status_3(sssjob: Command, tree: Path) -> None:
    (tree / "secret.sh").write_text(SCRIPT)
    (tree / "secret.sh").chmod(0)
    code, _, err = convert(sssjob)
    assert code == 3 and "secret.sh: Permission denied" in err and "a.sh" in files(Path("out"))


def test_what_cannot_be_read_is_status_3(sssjob: Command, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where root runs the tests: the reading itself fails."""
    from sssjob.cli import _trees
    from sssjob.cli._files import read_bytes
    from sssjob.errors import AccessError

    real = read_bytes

    def fails(name: str) -> bytes:
        if name.endswith("a.sh"):
            raise AccessError(name, "Input/output error")
        return real(name)

    monkeypatch.setattr(_trees, "read_bytes", fails)
    code, out, err = convert(sssjob, "--jobs", "1")
    assert code == 3 and "unreadable  1" in out and "a.sh: Input/output error" in err
    assert "sub/b.pbs" in files(Path("out"))


def test_two_files_with_one_result_are_both_refused(sssjob: Command, tree: Path) -> None:
    (tree / "x.sbatch").write_text(SCRIPT)
    (tree / "x.slurm").write_text(SCRIPT)
    code, out, err = convert(sssjob)
    assert code == 1 and "collision  2" in out and "x.pbs" not in files(Path("out"))
    assert "x.sbatch: x.pbs would be the result of another file too" in err


@pytest.mark.parametrize(("name", "target", "result"), [
    ("a.sh", "pbspro", "a.sh"), ("a.sh", "slurm", "a.sh"), ("a.sh", "torque", "a.sh"), ("a.sh", "sss", "a.xml"),
    ("a.sbatch", "pbspro", "a.pbs"), ("a.sbatch", "slurm", "a.sbatch"), ("a.pbs", "torque", "a.pbs"),
    ("a.job", "pbspro", "a.job"), ("a.job", "sss", "a.job.xml"), ("a", "pbspro", "a"), ("a", "sss-json", "a.json"),
    ("d.sh/a.b.sbatch", "pbspro", "d.sh/a.b.pbs"), ("a.sh", "htcondor", "a.sub"), ("a.xml", "slurm", "a.sbatch"),
])
def test_names_of_results(name: str, target: str, result: str) -> None:
    assert output_name(name, get(target), all_suffixes()) == result


@pytest.mark.parametrize(("out", "expected"), [
    ("scripts", "scripts lies in it"), (".", "scripts lies in it"), ("scripts/..", "scripts lies in it"),
])
def test_results_do_not_replace_what_is_read(sssjob: Command, tree: Path, out: str, expected: str) -> None:
    before = files(tree)
    answer = sssjob("convert", "-f", "slurm", "-t", "pbspro", "scripts", "--out", out)
    assert answer.code == 2 and expected in answer.err and files(tree) == before


def test_results_inside_of_the_tree_are_not_read(sssjob: Command, tree: Path) -> None:
    for _ in range(2):
        assert sssjob("convert", "-q", "-f", "slurm", "-t", "pbspro", "scripts", "--out", "scripts/new").code == 0
        assert sorted(files(tree / "new")) == ["a.sh", "sub/b.pbs", "sub/d.job", "sub/deep/c"]


def test_a_link_does_not_lead_results_out(sssjob: Command, tree: Path, tmp_path: Path) -> None:
    """A folder of the results that is a link to elsewhere: nothing is written there, the rest is."""
    (tmp_path / "out").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out" / "sub").symlink_to("../elsewhere")
    code, _, err = convert(sssjob)
    assert code == 3 and "a link leads out of the output directory" in err
    assert files(tmp_path / "elsewhere") == {} and Path("out/a.sh").read_text() == WRITTEN


def test_a_link_in_place_of_a_result_is_replaced(sssjob: Command, tree: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "precious").write_text("kept")
    (tmp_path / "out" / "a.sh").symlink_to(tmp_path / "precious")
    assert convert(sssjob, "-q")[0] == 0
    assert (tmp_path / "precious").read_text() == "kept" and not (tmp_path / "out" / "a.sh").is_symlink()


@pytest.mark.parametrize(("arguments", "code", "expected"), [
    (["scripts"], 3, "scripts: is a directory; --out names the one for the results"),
    (["scripts", "--out", "out", "--explain"], 2, "--explain is for one file"),
    (["scripts", "--out", "out", "--option", "foo=1"], 2, "no option 'foo' of slurm or pbspro"),
    (["scripts", "--out", "out", "--jobs", "0"], 2, "0 is not in the range"),
    (["scripts", "--out", "out", "--report", "no/such/r.json"], 3, "No such file"),
    (["scripts/a.sh", "--set", "--comment='x"], 2, "--set --comment='x: No closing quotation"),
    (["scripts/a.sh", "--jobs", "2"], 2, "--jobs is for a directory"),
    (["scripts/a.sh", "--report", "r.json"], 2, "--report is for a directory"),
    (["scripts", "--out", "scripts/a.sh/x"], 3, "Not a directory"),
])
def test_what_cannot_be_asked(sssjob: Command, tree: Path, arguments: list[str], code: int, expected: str) -> None:
    answer = sssjob("convert", "-f", "slurm", "-t", "pbspro", *arguments)
    assert answer.code == code and expected in answer.err
    assert files(Path("out")) == {} if Path("out").exists() else True
    assert not list(Path().glob(".sssjob-*")) and not Path("r.json").exists()


def test_the_summary_and_the_records(sssjob: Command, tree: Path) -> None:
    """What was found most, with how often and in how many files; with --json a record a file instead."""
    for path in tree.rglob("*"):
        if path.is_file():
            path.write_text(LOSSY)
    code, out, _ = convert(sssjob)
    assert code == 0 and re.search(r"SSS501  dropped +QualityOfService +4 +4\n", out)
    code, out, err = convert(sssjob, "--json")
    records = [json.loads(line) for line in out.splitlines()]
    assert [r["file"] for r in records[:-1]] == ["a.sh", "sub/b.sbatch", "sub/d.job", "sub/deep/c"]
    assert records[-1] == {"type": "summary", "files": 4, "outcomes": {"converted": 4}}
    assert records[0]["outputs"] == ["a.sh"] and records[0]["format"] == "slurm"
    assert all(json.loads(line)["type"] == "finding" for line in err.splitlines())
    assert convert(sssjob, "--strict")[0] == 1


def test_under_reject_nothing_of_a_file_is_written(sssjob: Command, tree: Path) -> None:
    (tree / "a.sh").write_text(LOSSY)
    code, _, _ = sssjob("convert", "-q", "-f", "slurm", "-t", "pbspro", "scripts", "--out", "out", "--policy", "reject")
    assert code == 1 and "a.sh" not in files(Path("out")) and "sub/b.pbs" in files(Path("out"))


def test_every_format_in_a_tree_is_recognised(sssjob: Command, tree: Path) -> None:
    """Where two fit, that file is refused with the reasons; a file of several jobs is a folder of scripts."""
    (tree / "p.sh").write_text("#!/bin/sh\n#PBS -l select=1:ncpus=2\n")
    (tree / "two.sh").write_text("#!/bin/sh\n#SBATCH -p x\n#PBS -l select=1\n")
    (tree / "none.sh").write_text("#!/bin/sh\n")
    (tree / "g.xml").write_text(GROUP)
    code, _, err = sssjob("convert", "-f", "auto", "-t", "slurm", "scripts", "--out", "out", "--report", "r.json")
    report = json.loads(Path("r.json").read_text())
    found = {f["file"]: (f["outcome"], f["format"], f["outputs"]) for f in report["files"]}
    assert code == 1 and found["p.sh"] == ("converted", "pbspro", ["p.sh"])
    assert found["g.xml"] == ("converted", "sss", ["g/a.sbatch", "g/_._b.sbatch"])
    assert found["two.sh"] == ("rejected", "", []) and found["none.sh"] == ("skipped", "", [])
    assert [f["message"] for f in report["files"] if f["file"] == "none.sh"] == ["no format is recognised in it"]
    assert {tuple(f) for f in report["files"]} == {
        ("file", "outcome", "format", "outputs", "message", "findings", "more_findings")}
    assert "two.sh: fits 2 formats, name one with --from: slurm (" in err


def test_jobs_that_take_several_files(sssjob: Command, tree: Path) -> None:
    """A description of HTCondor names its script, which it starts as it is; files of one stem would share both."""
    (tree / "a.job").write_text(SCRIPT)
    code, out, _ = convert(sssjob, to="htcondor")
    assert code == 1 and "collision  2" in out
    made = files(Path("out"))
    assert sorted(made) == ["sub/b.sh", "sub/b.sub", "sub/d.sh", "sub/d.sub", "sub/deep/c.sh", "sub/deep/c.sub"]
    assert "executable = b.sh\n" in made["sub/b.sub"] and made["sub/b.sh"] == "#!/bin/sh\ndate\n"
    assert Path("out/sub/b.sh").stat().st_mode & 0o100 and not Path("out/sub/b.sub").stat().st_mode & 0o100
    assert sssjob("convert", "-q", "-f", "slurm", "-t", "htcondor", "scripts/a.sh", "--out", "one").out.split() == [
        "one/a.sub", "one/a.sh"]
    assert Path("one/a.sh").stat().st_mode & 0o777 == 0o700


def test_a_process_that_dies_takes_one_file_with_it(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others of its batch are converted again, one by one."""
    real = Tree.convert

    def dies(self: Tree, file: str) -> object:
        if file == "sub/d.job":
            os._exit(9)
        return real(self, file)

    monkeypatch.setattr(Tree, "convert", dies)
    work = Tree(tree, Path("out"), Conversion("slurm", "pbspro"))
    monkeypatch.setattr("sssjob.processes.threading.active_count", lambda: 1)      # copies of this process
    Path("out").mkdir()
    names = ["a.sh", "sub/b.sbatch", "sub/d.job", "sub/deep/c"]
    made = list(in_order(work.convert, _died, names, 2, Stops()))
    assert [(m.file, m.outcome) for m in made] == [
        (n, "failed" if n == "sub/d.job" else "converted") for n in names]
    assert made[2].message == "the process that converted it died"


def test_outcomes_have_a_status() -> None:
    assert {name for name, status in OUTCOMES.items() if status} == {
        "rejected", "collision", "unreadable", "unwritten", "failed"}


# --- one file
def test_a_stream_is_written_under_the_policy_that_all_else_is(
        sssjob: Command, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records carry no policy: what has no place is a warning, job by job as in whole."""
    from sssjob.translators import registry
    from sssjob.translators.records.base import RecordTranslator, no_reading

    seen: list[object] = []

    def told(context: WriteContext) -> str:
        seen.append(context.policy)
        context.findings.add("SSS501", "x", "x has no place", policy=context.policy or Policy.REJECT)
        return "done\n"

    writer = RecordTranslator("csv", "toy", "record", no_reading, lambda _, context: told(context),
                              texts=lambda jobs, context: (told(context) for _ in jobs))
    monkeypatch.setitem(registry._loaded, "csv", writer)
    Path("log").write_text("JobID|State\n1|PENDING\n")
    for more in ([], ["--explain"]):                # job by job, in whole
        answer = sssjob("convert", "-f", "sacct", "-t", "csv", *more, "log")
        assert (answer.code, answer.out) == (0, "done\n") and "SSS501 warning" in answer.err
    assert set(seen) == {Policy.WARN}


def test_what_is_recognised_is_said(sssjob: Command, tree: Path) -> None:
    code, out, err = sssjob("convert", "-f", "auto", "-t", "pbspro", "scripts/a.sh")
    assert (code, out, err) == (0, WRITTEN, err) and err.startswith(
        "scripts/a.sh: slurm: 2 lines of #SBATCH that Slurm obeys, the first in line 2\n")
    errors = sssjob("convert", "--json", "-f", "auto", "-t", "pbspro", "scripts/a.sh").err
    assert json.loads(errors.splitlines()[0]) == {
        "type": "recognised", "file": "scripts/a.sh", "format": "slurm",
        "message": "2 lines of #SBATCH that Slurm obeys, the first in line 2"}
    Path("both").write_text("#!/bin/sh\n#SBATCH -p x\n#PBS -l select=1\n")
    assert sssjob("convert", "-f", "auto", "-t", "sss", "both").code == 2


def test_comments_hold_what_was_lost_and_give_it_back(sssjob: Command, tree: Path) -> None:
    """There, back and there again: the script is what it was, and the comments do not pile up."""
    (tree / "a.sh").write_text(LOSSY)
    there = sssjob("convert", "-q", "--comments", "-f", "slurm", "-t", "pbspro", "scripts/a.sh").out
    assert there == ("#!/bin/sh\n# untranslated (slurm): --qos=high\n# untranslated (slurm): --switches=2\n"
                     "#PBS -N a\ncd /x\ndate\n")
    Path("b").write_text(there)
    back = sssjob("convert", "-q", "--comments", "-f", "pbspro", "-t", "slurm", "b").out
    assert back == "#!/bin/sh\n#SBATCH --qos=high\n#SBATCH --switches=2\n#SBATCH --job-name=a\ncd /x\ndate\n"
    Path("c").write_text(back)
    assert sssjob("convert", "-q", "--comments", "-f", "slurm", "-t", "pbspro", "c").out == there
    assert "untranslated" not in sssjob("convert", "-q", "-f", "slurm", "-t", "pbspro", "c").out


@pytest.mark.parametrize("line", [
    "# untranslated (slurm): rm -rf /", "# untranslated (slurm): --no-such=1", "# untranslated (slurm): --qos='",
    "# untranslated (slurm): --comment=" + "x" * 2000, "# untranslated (pbspro): -l foo=1",
    "# untranslated (slurm): --qos=…", " # untranslated (slurm): --qos=a",
])
def test_comments_that_are_no_option_stay_comments(sssjob: Command, tree: Path, line: str) -> None:
    (tree / "a.sh").write_text(f"#!/bin/sh\n#PBS -N a\n{line}\ndate\n")
    out = sssjob("convert", "-q", "--comments", "-f", "pbspro", "-t", "slurm", "scripts/a.sh").out
    assert out == f"#!/bin/sh\n#SBATCH --job-name=a\n{line}\ndate\n"


@pytest.mark.parametrize("target", ["sss", "htcondor", "flux-jobspec", "pbspro"])
@pytest.mark.parametrize("mode", ["keep", "shim", "translate"])
def test_body_is_taken_wherever_a_side_is_a_script(sssjob: Command, tree: Path, target: str, mode: str) -> None:
    """Whether or not the commands have anything that has to be carried."""
    for source in ("slurm", "auto"):
        assert sssjob("convert", "-q", "--body", mode, "-f", source, "-t", target, "scripts/a.sh").code == 0
    assert sssjob("convert", "-q", "-f", "slurm", "-t", "sss", "scripts/a.sh", "--output", "a.xml").code == 0
    assert sssjob("convert", "-q", "--body", mode, "-f", "sss", "-t", "pbspro", "a.xml").code == 0
    answer = sssjob("convert", "-q", "--body", mode, "-f", "sss", "-t", "sss-json", "a.xml")
    assert (answer.code, answer.out) == (2, "") and "no option 'body' of sss or sss-json" in answer.err
    answer = sssjob("convert", "-q", "--option", "body=x", "-f", "slurm", "-t", "sss", "scripts/a.sh")
    assert (answer.code, answer.out) == (2, "") and "body is keep, translate or shim" in answer.err


def test_comments_are_for_scripts(sssjob: Command, tree: Path) -> None:
    answer = sssjob("convert", "--comments", "-f", "slurm", "-t", "sss", "scripts/a.sh")
    assert answer.code == 2 and "no option 'comments' of slurm or sss" in answer.err


@pytest.mark.parametrize(("text", "filled"), [
    ("11,77.pbs\n", "afterok:77.pbs:@JOBID:12@"), ("old,new\n11,77\n12,78[]\n", "afterok:77:78[]"),
    ('{"11": 77, "@JOBID:12@": "78"}', "afterok:77:78"), ("# all\n\n11, 77\n", "afterok:77:@JOBID:12@"),
    ("", "afterok:@JOBID:11@:@JOBID:12@"), ("\ufeff11,77\r\n", "afterok:77:@JOBID:12@"),
])
def test_ids_of_jobs_are_filled_in(sssjob: Command, tree: Path, text: str, filled: str) -> None:
    """What is not in the list stays a placeholder, and is told."""
    (tree / "a.sh").write_text("#!/bin/sh\n#SBATCH -d afterok:11:12\n")
    Path("ids").write_text(text)
    code, out, err = sssjob("convert", "-f", "slurm", "-t", "pbspro", "--id-map", "ids", "scripts/a.sh")
    assert code == 0 and f"#PBS -W depend={filled}\n" in out.replace('"', "")
    assert err.count("is an id of another system") == filled.count("@JOBID:")


def test_placeholders_of_an_earlier_conversion_are_filled_in(sssjob: Command, tree: Path) -> None:
    (tree / "a.sh").write_text("#!/bin/sh\n#PBS -W depend=afterok:@JOBID:11@\n")
    Path("ids").write_text("11,77\n")
    out = sssjob("convert", "-q", "-f", "pbspro", "-t", "pbspro", "--id-map", "ids", "scripts/a.sh").out
    assert "#PBS -W depend=afterok:77\n" in out


@pytest.mark.parametrize(("text", "expected"), [
    ("1,2,3\n", "ids:1: a line is OLD,NEW and not of 3 fields"),
    ("1\n", "ids:1: a line is OLD,NEW and not of 1 fields"),
    ("1,2\n1,3\n", "ids:2: 1 has two new ids, 2 and 3"), ("1,a b\n", "ids:1: 'a b' is no id of a job"),
    ("1,$(x);a:b\n", "ids:1: '$(x);a:b' is no id of a job"), ('"1,2\n', "not CSV"),
    ("1,\n", "ids:1: '' is no id of a job"),
    ('{"1": [2]}', "ids: 1: an id is a text or a whole number"), ('{"1": "2"', "ids: not JSON"),
    ('{"1": 2.0}', "ids: 1: an id is a text or a whole number"), ('{"1": true}', "ids: 1: an id is a text"),
    ('{"1": -2}', "ids:1: '-2' is no id of a job"), ('{"1": NaN}', "ids: 1: an id is a text or a whole number"),
    ('{"1": ' + "7" * 5000 + "}", "is no id of a job"), ("1,-rf\n", "ids:1: '-rf' is no id of a job"),
    ('{"1": "2", "1": "3"}', "ids:1: 1 has two new ids, 2 and 3"), ("{" * 100_000, "ids: not JSON"),
])
def test_a_wrong_list_of_ids_is_refused(sssjob: Command, tree: Path, text: str, expected: str) -> None:
    Path("ids").write_text(text)
    answer = sssjob("convert", "-f", "slurm", "-t", "pbspro", "--id-map", "ids", "scripts/a.sh")
    assert answer.code == 1 and answer.out == "" and expected in answer.err


def test_a_site_is_used_and_a_wrong_one_refused(sssjob: Command, tree: Path) -> None:
    (tree / "a.sh").write_text("#!/bin/sh\n#SBATCH -p debug\n")
    Path("s.toml").write_text('name = "a"\n[map.Queue]\ndebug = "test"\n')
    assert "#PBS -q test\n" in sssjob("convert", "-f", "slurm", "-t", "pbspro", "--site", "s.toml", "scripts/a.sh").out
    assert convert(sssjob, "-q", "--site", "s.toml", "--jobs", "2")[0] == 0
    assert "#PBS -q test\n" in Path("out/a.sh").read_text()
    Path("s.toml").write_text("colour = 1\n")
    answer = sssjob("convert", "-f", "slurm", "-t", "pbspro", "--site", "s.toml", "scripts/a.sh")
    assert answer.code == 1 and "s.toml: name: is not said; colour: no such key" in answer.err


def test_explain_of_a_script(sssjob: Command, tree: Path) -> None:
    """Every directive that is live with what it asks for, and the dead ones."""
    (tree / "a.sh").write_text(SCRIPT + "#SBATCH -p late\n")
    code, out, _ = sssjob("explain", "scripts/a.sh")
    rows = [line.split() for line in out.splitlines()]
    assert code == 0 and rows[2:4] == [["2", "--job-name", "a", "job", "Name", "a"],
                                       ["3", "--time", "5", "job", "Duration", "300", "s", "(0:05:00)"]]
    assert [row[0] for row in rows if row[1:4] == ["#SBATCH", "-p", "late"]] == ["5"]
    record = json.loads(sssjob("explain", "--json", "-f", "slurm", "scripts/a.sh").out)
    assert record["asks"][1] == {"line": 3, "directive": "--time 5", "of": "job", "property": "Duration",
                                 "value": "300"}
    assert [d["line"] for d in record["dead"]] == [5]
    Path("empty.sh").write_text("#!/bin/sh\ndate\n")
    assert sssjob("explain", "-f", "slurm", "empty.sh").out == "Slurm batch script: asks for nothing\n"
    Path("two.sh").write_text("#!/bin/sh\n#SBATCH -p x\n#PBS -l select=1\n")
    assert sssjob("explain", "two.sh").code == 2


def test_the_way_of_every_directive(sssjob: Command, tree: Path) -> None:
    """Also of one that is said again, of one that says nothing of the job, and of one only Slurm knows."""
    (tree / "a.sh").write_text("#!/bin/sh\n#SBATCH -t 5 -J a\n#SBATCH --ignore-pbs\n#SBATCH -t 6 --gres-flags=x\n"
                               "#SBATCH --requeue\n")
    err = sssjob("convert", "-q", "--explain", "-f", "slurm", "-t", "slurm", "scripts/a.sh").err.splitlines()
    assert [line for line in err if "->" in line] == [
        "2:9: --time 5 -> no property of its own: replaced (line 4 says it again)", "2:14: --job-name a -> Name: exact",
        "3:9: --ignore-pbs -> no property of its own: exact", "4:9: --time 6 -> Duration: exact",
        "4:14: --gres-flags x -> Extension gres-flags: exact", "5:9: --requeue -> Restartable: exact"]
    errors = sssjob("convert", "-q", "--json", "--explain", "-f", "slurm", "-t", "pbspro", "scripts/a.sh").err
    ways = [json.loads(line) for line in errors.splitlines()]
    assert [(w["line"], w["name"], w["way"]) for w in ways if w["type"] == "way"] == [
        (2, "no property of its own", "replaced"), (2, "Name", "exact"), (3, "no property of its own", "exact"),
        (4, "Duration", "exact"),
        (4, "Extension gres-flags", "dropped"), (5, "Restartable", "exact")]
    assert "line 4 says it again" in sssjob("explain", "scripts/a.sh").out


# --- a dialect of a third party
MODULE = '''
import shlex
from sssjob.translators.scripts.base import Dialect, Row, Scan, table, translator
from sssjob.translators.scripts.grammars import COUNT, Grammar
from sssjob.translators.scripts.raw import Option

PREFIX = "#ACME"
MINUTES = Grammar(lambda text: int(text) * 60, lambda text: str(-(-int(text) // 60)), "minutes")

def live(lines):
    return [line for line in lines if line.text.startswith(PREFIX)]

def option(reading, text, line):
    name, sign, value = text.partition(" ")
    return Option(f"-{name}", value if sign else None, line.number if line else 0, 1, line.text if line else text)

def scan(reading, lines):
    made = Scan()
    for line in lines:
        if line.text.startswith(PREFIX):
            made.components[0].append(option(reading, line.text[len(PREFIX):].strip(), line))
        else:
            made.rest.append(line)
    return made

DIALECT = Dialect(
    "acme", "ACME", PREFIX,
    table((Row("-title", "Name"), Row("-lane", "Queue"), Row("-minutes", "Requested/Duration", MINUTES),
           Row("-cores", "Requested/Processors", COUNT), Row("-colour"))),
    scan, lambda name, value: name.lstrip("-") + (f" {value}" if value is not None else ""),
    lambda reading, text: [option(reading, text.lstrip("-"), None)], {"{jobid}": "%ID"}, ("ACME_",), live, (".acme",))
TRANSLATOR = translator(DIALECT)
'''
ACME = "#!/bin/sh\n#ACME title a\n#ACME minutes 5\n#ACME cores 4\ndate\n"


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed distribution with a dialect; nothing else knows of it."""
    library = tmp_path / "library"
    info = library / "acme_jobs-1.0.dist-info"
    info.mkdir(parents=True)
    (library / "acme_script.py").write_text(MODULE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-jobs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[sssjob.translators]\nacme = acme_script:TRANSLATOR\n")
    monkeypatch.syspath_prepend(str(library))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.acme").write_text(ACME)
    return tmp_path


def test_a_dialect_of_a_third_party_is_like_ours(sssjob: Command, acme: Path) -> None:
    """Converted both ways, recognised, explained, compared, in trees and in processes of their own."""
    code, out, err = sssjob("convert", "-f", "auto", "-t", "slurm", "a.acme")
    assert code == 0 and err.startswith("a.acme: acme: 3 lines of #ACME that ACME obeys, the first in line 2\n")
    assert out == "#!/bin/sh\n#SBATCH --job-name=a\n#SBATCH --time=00:05:00\n#SBATCH --ntasks=4\ndate\n"
    Path("a.sh").write_text(out)
    back = sssjob("convert", "-q", "-f", "slurm", "-t", "acme", "--comments", "a.sh").out
    assert back.startswith("#!/bin/sh\n#ACME title a\n#ACME minutes 5\n")
    assert sssjob("diff", "-q", "a.acme", "a.sh").code == 0
    assert ["4", "-cores", "4", "job", "Processors", "4"] in [
        line.split() for line in sssjob("explain", "a.acme").out.splitlines()]
    (acme / "tree" / "sub").mkdir(parents=True)
    (acme / "tree" / "sub" / "x.acme").write_text(ACME)
    (acme / "tree" / "y.sh").write_text(ACME)
    assert main(["convert", "-q", "-f", "acme", "-t", "slurm", "tree", "--out", "out", "--jobs", "2"]) == 0
    assert sorted(files(acme / "out")) == ["sub/x.sbatch", "y.sh"]


def test_the_jobs_of_one_script_tell_each_cause_once_with_its_count(sssjob: Command, tmp_path: Path,
                                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    """What breaks the job first, as without --out."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.sub").write_text("executable = a.sh\nnotification = error\nlog = a.log\nrequest_disk = 1GB\n"
                                    "queue state in (AL AK)\n")
    code, _, err = sssjob("convert", "-f", "htcondor", "-t", "slurm", "a.sub", "--out", "out", "--policy", "warn")
    lines = [line for line in err.splitlines() if line.startswith(("a.sub:3", "a.sub:4"))]
    assert (code, lines) == (0, [
        "a.sub:4:1: SSS501 warning [breaks] request_disk 1GB: Disk: dropped, Slurm has no place for it (2 times)",
        "a.sub:3:1: SSS501 warning [looks] log a.log: dropped, Slurm has no place for it (2 times)"])


def test_files_of_single_jobs_tell_what_all_inherit_once(
        sssjob: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file told the comments of the whole group and what is wrong in its defaults, and looked for all comments
    anew: 3,000 jobs took minutes."""
    monkeypatch.chdir(tmp_path)
    jobs = "".join(f"<Job><Id>j{n}</Id><Executable>/bin/x</Executable><!-- {n} --></Job>\n" for n in range(3))
    Path("g.xml").write_text("<JobGroup><Id>g</Id>\n<JobDefaults><User>a&amp;b</User></JobDefaults>\n"
                             f"{jobs}</JobGroup>\n")
    code, out, err = sssjob("convert", "-f", "sss", "-t", "sss", "--out", "jobs", "g.xml")
    assert (code, len(out.split())) == (0, 3)
    assert [line for line in err.splitlines() if "SSS501" not in line] == [
        "g.xml:3: SSS113 info 3 comments are not kept"]
    code, out, err = sssjob("convert", "-f", "sss", "-t", "slurm", "--out", "scripts", "--policy", "warn", "g.xml")
    assert (code, len(out.split())) == (0, 3)
    assert [line for line in err.splitlines() if ":2:" in line] == [
        "g.xml:2:14: SSS501 warning [breaks] --uid a&b: sbatch refuses it: is no name and no number of one user or "
        "group"]
    with patch("sssjob.xml.places._COMMENT") as pattern:
        pattern.finditer.return_value = []
        assert sssjob("convert", "-q", "-f", "sss", "-t", "sss", "--out", "again", "g.xml").code == 0
    assert pattern.finditer.call_count == 1
