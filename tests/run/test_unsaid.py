"""What a script leaves to its manager is done as that manager does it, when the script is run by it.

A script without ``-o`` left other files than with sbatch, output that Grid Engine appends emptied the file, and a job
without the submitter's variables had neither HOME nor PATH.
"""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

import psij
from psij import InvalidJobException, JobAttributes, JobSpec
from psij.executors.batch._options import COMMENTS, comments
from sssjob.document.model import Document, Job
from sssjob.findings import Findings, Policy
from sssjob.run.running import executor_of
from sssjob.run.unsaid import say
from sssjob.translators import ReadContext, get
from tests.run.support import desk_on, eventually
from tests.run.test_native import EXECUTORS, planned

NAMES = ("Name", "InitialWorkingDirectory", "OutputFile", "ErrorFile")
#: Dialect, lines of the script, what its job states then of NAMES, and whether the submitter's variables go along.
#: HERE is where it is handed in.
STATED: dict[str, tuple[str, str, list[str], bool]] = {
    "slurm": ("slurm", "#SBATCH -n 2", ["j.sh", "", "slurm-{jobid}.out", ""], True),
    "slurm, errors": ("slurm", "#SBATCH -e err -J n", ["n", "", "slurm-{jobid}.out", "err"], True),
    "slurm, array": ("slurm", "#SBATCH -a 1-3", ["j.sh", "", "slurm-{array_jobid}_{index}.out", ""], True),
    "slurm, open mode": ("slurm", "#SBATCH --open-mode=append", ["j.sh", "", "slurm-{jobid}.out Append", ""], True),
    "slurm, folder": ("slurm", "#SBATCH -o logs", ["j.sh", "", "logs", ""], True),
    "slurm, exported": ("slurm", "#SBATCH --export=NONE", ["j.sh", "", "slurm-{jobid}.out", ""], False),
    "sge": ("sge", "#$ -q q", ["j.sh", "~", "{name}.o{jobid} Append", "{name}.e{jobid} Append"], False),
    "sge, here": ("sge", "#$ -cwd -V -j y", ["j.sh", ".", "{name}.o{jobid} Append", " Merge"], True),
    "sge, array": ("sge", "#$ -cwd -t 1-3 -j y", [
        "j.sh", ".", "{name}.o{array_jobid}.{index} Append", " Merge"], False),
    "sge, folder": ("sge", "#$ -cwd -o logs -e new/", [
        "j.sh", ".", "logs/{name}.o{jobid} Append", "new/{name}.e{jobid} Append"], False),
    "sge, folder elsewhere": ("sge", "#$ -wd HERE/sub -o logs -j y", [
        "j.sh", "HERE/sub", "logs Append", " Merge"], False),
    "sge, host": ("sge", "#$ -cwd -o :out -e head.site:/err", ["j.sh", ".", "out Append", "/err Append"], False),
    "sge, home": ("sge", "#$ -cwd -o $HOME/o -j y", ["j.sh", ".", "~/o Append", " Merge"], False),
    "pbspro": ("pbspro", "#PBS -q q", ["j.sh", "~", "HERE/{name}.o{jobid}", "HERE/{name}.e{jobid}"], False),
    "pbspro, joined": ("pbspro", "#PBS -j oe -o logs/ -V -J 1-3", [
        "j.sh", "~", "HERE/logs/{name}.o{array_jobid}.{index}", " Merge"], True),
    "pbspro, host": ("pbspro", "#PBS -o head:out -e head:/err", ["j.sh", "~", "HERE/out", "/err"], False),
    "torque, array": ("torque", "#PBS -t 1-3 -k n -j oe", [
        "j.sh", "~", "HERE/{name}.o{array_jobid}-{index}", " Merge"], False),
    "lsf": ("lsf", "#BSUB -n 2", ["", "", "", ""], True),
    "flux": ("flux", "#flux: -n 2", ["j.sh", "", "flux-{jobid}.out", ""], True),
}


def _read(dialect: str, lines: str, body: str = "true") -> Document:
    return get(dialect).read(f"#!/bin/bash\n{lines}\n{body}\n".encode(), ReadContext("some/j.sh", Findings("j.sh")))


def _shown(job: Job, name: str) -> str:
    """A property and its redirectList, with the one or the other; empty for one that is not there."""
    return "".join(f"{p.text} {p.get('redirectList') or ''}".rstrip() for p in job.all(name))


@pytest.mark.parametrize("case", STATED)
def test_a_job_states_what_its_manager_would_do(case: str, tmp_path: Path) -> None:
    dialect, lines, expected, exports = STATED[case]
    (tmp_path / "logs").mkdir()
    document = _read(dialect, lines.replace("HERE", str(tmp_path)))
    job = next(document.jobs())[0]
    for _ in range(2):      # saying it once more changes nothing
        say(document, executor_of(EXECUTORS[dialect]), tmp_path)
        assert [_shown(job, name).replace(str(tmp_path), "HERE") for name in NAMES] == expected
        assert job.environment.export is exports


def test_a_script_of_another_manager_states_no_more(tmp_path: Path) -> None:
    """What its manager would do is not what this one does."""
    document = _read("slurm", "#SBATCH -n 2")
    before = repr(document.root)
    for executor in ("sge", "local"):
        say(document, executor_of(executor), tmp_path)
    assert repr(document.root) == before


def _script(dialect: str, lines: str, body: str = "true", folder: Path = Path()) -> str:
    """The script that goes out for another."""
    document, backend = _read(dialect, lines, body), executor_of(EXECUTORS[dialect])
    say(document, backend, folder)
    shown, findings = planned(document, EXECUTORS[dialect], backend=backend)
    assert not findings.rejected, [str(f) for f in findings]
    return next(iter(shown[0].rendered.files.values()))


@pytest.mark.parametrize(("executor", "option"), [("pbs", "#PBS -N j.sh\n"), ("sge", "#$ -N j.sh\n")])
def test_a_script_of_another_manager_is_called_as_its_file(executor: str, option: str) -> None:
    """It had the name of our own copy of it."""
    shown, _ = planned(_read("slurm", "#SBATCH -t 5"), executor, Policy.WARN)
    assert option in next(iter(shown[0].rendered.files.values()))


@pytest.mark.parametrize(("lines", "exported"), [
    ("#SBATCH -n 1", "ALL"), ("#SBATCH --export=ALL,B=1", "ALL"), ("#SBATCH --export=NONE", "NONE"),
    ("#SBATCH --export=A,B=x", "A,B")])
def test_slurm_itself_makes_the_environment(lines: str, exported: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a job has the variables of a login, and srun inside the job hands on the same ones."""
    monkeypatch.setenv("A", "1")
    text = _script("slurm", lines)
    assert f"#SBATCH --export={exported}\n" in text
    assert "unset -v" not in text


@pytest.mark.parametrize(("dialect", "lines", "all_of_them"), [
    ("sge", "#$ -cwd", False), ("sge", "#$ -V", True), ("pbspro", "#PBS -q q", False), ("torque", "#PBS -V", True)])
def test_the_others_hand_on_what_the_script_says(dialect: str, lines: str, all_of_them: bool) -> None:
    text = _script(dialect, lines)
    assert ("$ -V\n" in text or "#PBS -V\n" in text) is all_of_them
    assert "unset -v" not in text


def test_a_script_of_several_parts_is_started_once() -> None:
    """It starts the tasks of its parts itself."""
    text = _script("slurm", "#SBATCH -n 1\n#SBATCH hetjob\n#SBATCH -n 2", "srun --het-group=0,1 ./a")
    assert text.count("#SBATCH hetjob\n") == 1
    assert text.count("single_launch.sh") == 1
    assert "srun" not in text


def test_an_order_to_grid_engine_reaches_it() -> None:
    """99 of a script has the job run again; 99 of a program is its exit code."""
    assert "|| exit 99" in _script("sge", "#$ -cwd")
    document = get("sss").read(b"<Job><Executable>/bin/true</Executable></Job>", ReadContext("j", Findings("j")))
    shown, _ = planned(document, "sge")
    assert "|| exit 99" not in next(iter(shown[0].rendered.files.values()))


@pytest.mark.parametrize(("option", "name"), [("B:USR1@60", "USR1"), ("B:SIGTERM", "TERM"), ("B:10@5", "10"),
                                              ("USR1@60", None), ("R:USR1@60", None)])
def test_a_signal_for_the_script_alone_is_passed_on(option: str, name: str | None) -> None:
    text = _script("slurm", f"#SBATCH --signal={option}")
    assert (f"_PSI_J_PASSED_ON={name}\n" in text) is (name is not None)
    assert name is not None or "_PSI_J_PASSED_ON" not in text


@pytest.mark.parametrize("name", ["USR1", "TERM", "INT"])
def test_a_program_gets_the_signal_and_its_exit_code_counts(name: str, tmp_path: Path) -> None:
    """Also INT, which a shell has what runs beside it ignore; what the program writes afterwards is not lost."""
    output, ready = tmp_path / "out", tmp_path / "ready"
    program = f"trap 'echo got; exit 7' {name}; : > {ready}; while :; do sleep 0.02; done"
    script = Path(psij.__file__).parent / "launchers" / "single_launch.sh"
    words = ["id", "", "", "", "/dev/null", str(output), str(output), "/bin/bash", "-c", program]
    with subprocess.Popen(["/bin/bash", script, *words],
                          env={"PATH": "/usr/bin:/bin", "_PSI_J_PASSED_ON": name}) as launched:
        eventually(ready.exists)
        launched.send_signal(signal.Signals[f"SIG{name}"])
        assert launched.wait(20) == 7
    assert output.read_text() == "got\n"


@pytest.mark.parametrize("executor", ["slurm", "sge"])
def test_files_are_those_of_the_manager(executor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the script that goes out, on stand-ins."""
    lines = {"slurm": "#SBATCH -n 1", "sge": "#$ -cwd"}[executor]
    (tmp_path / "there").write_text("old\n")
    with desk_on(executor, tmp_path, monkeypatch) as desk:
        document = desk.client().run(_read(executor, lines, "echo out; echo err >&2"), executor, cwd=tmp_path,
                                     timeout=90).document
    native_id = next(document.jobs())[0].id
    files = {path.name: path.read_text() for path in tmp_path.glob("*") if path.is_file() and "journal" not in path.name
             and path.name != "there"}
    assert files == ({f"slurm-{native_id}.out": "out\nerr\n"} if executor == "slurm" else {
        f"j.sh.o{native_id}": "out\n", f"j.sh.e{native_id}": "err\n"})


def test_elements_find_the_variables_of_their_manager_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that runs on several managers goes by them."""
    with desk_on("slurm", tmp_path, monkeypatch) as desk:
        desk.client().run(_read("slurm", "#SBATCH -a 2,4 -o %a", "env | grep -c 'PBS_ARRAY\\|SGE_TASK\\|LSB_JOBINDEX'"),
                          "slurm", cwd=tmp_path, timeout=90)
    assert [(tmp_path / name).read_text() for name in "24"] == ["0\n", "0\n"]


def test_the_manager_reads_the_lines_of_burst_buffers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slurm reads them in what is submitted, down to the first line that is no comment; what they say is no shell."""
    with desk_on("slurm", tmp_path, monkeypatch) as desk:
        desk.client().submit(_read("slurm", "#SBATCH -n 1\n#BB pool=a; touch x\n# none\n#DW\tjobdw", "true\n#BB late"),
                             "slurm", cwd=tmp_path)
        assert desk.lab is not None
        script = Path(desk.lab.jobs()[0]["command"]).read_text()
    lines = [line for line in script.splitlines() if line.startswith(("#BB", "#DW"))]
    assert lines == ["#BB pool=a; touch x", "#DW\tjobdw"]


@pytest.mark.parametrize("text", ["rm x", "#BB", "#BB a\nrm x", "#!/bin/sh x", ""])
def test_other_lines_are_refused(text: str) -> None:
    with pytest.raises(InvalidJobException, match=r"psij\.comments"):
        comments(JobSpec("/bin/true", attributes=JobAttributes(custom_attributes={COMMENTS: text})))
