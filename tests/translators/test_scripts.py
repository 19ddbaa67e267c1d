"""Script formats: readings beside those of the real command, writing documents that are no scripts, places of findings,
and a dialect of a third party."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from sssjob.document.model import Document
from sssjob.errors import RejectedError
from sssjob.findings import Findings, Policy
from sssjob.translators import ReadContext, WriteContext, get, names
from sssjob.translators.scripts.base import PARTS, ScriptDocument
from sssjob.translators.scripts.grammars import TORQUE_SECONDS, file_writer
from sssjob.translators.scripts.raw import lines_of
from sssjob.xml.reader import read_document
from tests.forks import command

FIXTURES = Path(__file__).parents[1] / "fixtures" / "scripts"
RECORDED: dict[str, Any] = json.loads((FIXTURES / "sbatch-22.05.8.json").read_text())["cases"]
#: Options whose written value differs from the listing's in form alone.
FORM: dict[str, Callable[[str], str]] = {
    "gres": lambda v: v.rpartition(":")[2], "mem": lambda v: v if v[-1] in "GM" else v + "M",
    "export": lambda v: v.removeprefix("NONE,"), "signal": lambda v: v + "@60",
}


def written(name: str, document: Document, **options: str) -> tuple[list[str], Findings]:
    """Lines of the script, and the findings of writing."""
    context = WriteContext(Findings("x"), options=options)
    return get(name).write(document, context).splitlines(), context.findings


def script(name: str, text: str, **options: str) -> Document:
    return get(name).read(text.encode(), ReadContext("x", Findings("x"), options=options))


# --- beside the real command
@pytest.mark.parametrize("case", RECORDED)
def test_sbatch_reads_the_same(case: str) -> None:
    recorded = RECORDED[case]
    context = ReadContext(case, Findings(case))
    if not recorded["accepted"]:
        with pytest.raises(RejectedError):
            get("slurm").read(recorded["script"].encode(), context)
        return
    made, _ = written("slurm", get("slurm").read(recorded["script"].encode(), context), layout="canonical")
    made = list(takewhile(lambda line: not line or line.startswith("#"), made))
    words_by_name = dict(_said(line) for line in made if line.startswith("#SBATCH --") and "ignore-pbs" not in line)
    listed = dict(recorded["reading"][0])
    for option in {"begin", "priority", "time", "dependency"} & listed.keys():      # read again below, or by the clock
        assert words_by_name.pop(option, None) is not None
        del listed[option]
    if "gres" in listed:
        words_by_name["gres"] = words_by_name.pop("gpus-per-node")
    assert words_by_name == {k: FORM.get(k, str)(v) for k, v in listed.items()}


def _said(line: str) -> tuple[str, str]:
    option, _, value = line.removeprefix("#SBATCH --").partition("=")
    return option, value.strip('"')


@pytest.mark.parametrize(("case", "seconds"), [
    ("time_30", 1800), ("time_dh", 129600), ("time_dhm", 131400), ("time_mmss", 1860), ("two_time", 1200)])
def test_times_are_those_of_sbatch(case: str, seconds: int) -> None:
    text, _ = written("slurm", script("slurm", RECORDED[case]["script"]))
    hours, minutes, rest = text[1].removeprefix("#SBATCH --time=").split(":")
    assert int(hours) * 3600 + int(minutes) * 60 + int(rest) == seconds


# --- documents
JOB = """<Request action="Submit"><Object>Job</Object><Data><Job>{}</Job></Data></Request>"""


def job(text: str) -> Document:
    return read_document(JOB.format(text).encode())


def test_an_executable_is_started() -> None:
    text, _ = written("slurm", job("<Executable>/bin/my app</Executable><Arguments>a 'b c'</Arguments>"))
    assert text == ["#!/bin/sh", "'/bin/my app' a 'b c'"]


def test_a_requested_range_of_alternatives() -> None:
    text, findings = written("slurm", job(
        "<Executable>x</Executable><Requested><NodeCount op='GE'>2</NodeCount><NodeCount op='LE'>4</NodeCount>"
        "<Memory op='GE' metric='PerNode' units='GB'>1</Memory><Memory metric='PerNode' op='LE' units='GB'>2</Memory>"
        "</Requested>"))
    assert text[1:-1] == ["#SBATCH --nodes=2-4", "#SBATCH --mem=1G"]
    assert [(f.kind, f.subject) for f in findings] == [("approximated", "Memory")]


def test_a_document_rejects_what_is_lost_and_a_script_warns() -> None:
    document = job("<Executable>x</Executable><Application>a</Application>")
    assert [f.severity for f in written("slurm", document)[1]] == ["error"]
    context = WriteContext(Findings("x"), policy=Policy.IGNORE)
    get("slurm").write(document, context)
    assert list(context.findings) == []
    lost = written("pbspro", script("slurm", "#!/bin/sh\n#SBATCH --hint=x --export=ALL -D /\n"))[1]
    assert {f.severity for f in lost if f.kind == "dropped"} == {"warning"}


def test_its_own_policy_wins() -> None:
    document = job("<Executable>x</Executable><Application awarenessPolicy='Ignore'>a</Application>")
    assert list(written("slurm", document)[1]) == []


def test_shares_that_are_no_whole_numbers() -> None:
    """Memory of a share is rounded up, so that nobody gets less; other things are never more or fewer."""
    text = "<Executable>x</Executable><Requested>{}</Requested>"
    memory = job(text.format("<Processors>3</Processors><Memory units='B'>3145729</Memory>"))
    assert written("slurm", memory)[0][1:-1] == ["#SBATCH --ntasks=3", "#SBATCH --mem-per-cpu=2M"]
    for count, option in ((4, ["#SBATCH --gres=fpga:2"]), (3, [])):
        document = job(text.format(f"<NodeCount>2</NodeCount><Resource name='fpga'>{count}</Resource>"))
        lines, findings = written("slurm", document)
        assert lines[1:-1] == ["#SBATCH --nodes=2", *option]
        assert any("shared out evenly" in f.message for f in findings) is not bool(option)


def test_results_are_no_request() -> None:
    _, findings = written("slurm", job("<Id>1</Id><Executable>x</Executable><State>Completed</State>"
                                       "<Delivered><Duration>5</Duration></Delivered>"))
    assert [(f.subject, f.severity) for f in findings] == [
        ("Id", "warning"), ("State", "warning"), ("Duration", "warning")]


def test_memory_and_processors_of_the_job() -> None:
    document = job("<Executable>x</Executable><Requested><Processors>8</Processors><Memory units='GB'>8</Memory>"
                   "</Requested>")
    assert written("slurm", document)[0][1:-1] == ["#SBATCH --ntasks=8", "#SBATCH --mem-per-cpu=1G"]
    assert written("pbspro", document)[0][1:-1] == ["#PBS -l ncpus=8", "#PBS -l mem=8gb"]


def test_a_group_is_no_script() -> None:
    group = read_document(b"<JobGroup><Id>g</Id><Job><Id>1</Id></Job><Job><Id>2</Id></Job></JobGroup>")
    with pytest.raises(RejectedError):
        written("slurm", group)


def test_hostile_values_stay_in_their_line() -> None:
    text, findings = written("slurm", job("<Name>a\n#SBATCH --uid=0</Name><Executable>x</Executable>"))
    assert text == ["#!/bin/sh", "x"] and [f.kind for f in findings] == ["dropped"]
    text, _ = written("slurm", job("<Name>$(reboot) \"x\" 'y'</Name><Executable>x</Executable>"))
    assert text[1] == '#SBATCH --job-name="$(reboot) \\"x\\" \'y\'"'


@pytest.mark.parametrize("name", ["slurm", "pbspro", "torque"])
@pytest.mark.parametrize("text", [
    "<Dependency>1,afterok:2</Dependency>",
    "<Environment><Variable name='A=1,LD_PRELOAD'>x</Variable></Environment>",
    "<Requested><NodeCount>1</NodeCount><Node>n1:ncpus=9+5</Node><Feature>a:ncpus=8+9</Feature></Requested>",
    "<Requested><Resource name='fpga,gpu' type='x:9,gpu' metric='PerNode'>1</Resource></Requested>",
    "<Requested><Resource name='License' type='a:9,b'>1</Resource></Requested>",
])
def test_no_value_says_more_than_one_thing(name: str, text: str) -> None:
    output, findings = written(name, job(f"<Executable>x</Executable>{text}"))
    said = " ".join(output)
    assert not any(bad in said for bad in ("afterok:2", "LD_PRELOAD", "ncpus=9", "ncpus=8", "gpu:9", ",gpu", ",b"))
    assert any(f.kind == "dropped" for f in findings)


@pytest.mark.parametrize("to", ["slurm", "pbspro", "torque"])
@pytest.mark.parametrize("name", ["slurm", "pbspro", "torque"])
def test_nothing_is_invented(name: str, to: str) -> None:
    text, _ = written(to, script(name, "#!/bin/sh\n# only a comment\necho\n"))
    start = ['cd "$PBS_O_WORKDIR"'] if name == "slurm" != to else []
    assert text == ["#!/bin/sh", *start, "# only a comment", "echo"]


# --- scripts
def test_options_of_the_command_line_win() -> None:
    text, _ = written("slurm", script("slurm", "#!/bin/sh\n#SBATCH -t 5 -N 2\n", set="-t 7 --comment='a b'"))
    assert text[1:] == ["#SBATCH --time=00:07:00", "#SBATCH --nodes=2", '#SBATCH --comment="a b"']
    with pytest.raises(ValueError, match="body"):
        written("slurm", script("slurm", "#!/bin/sh\n"), body="mend")


@pytest.mark.parametrize(("options", "tasks"), [
    ("-N 2 --ntasks-per-node=2", "4"), ("-N 2", None), ("-n 2", "2"), ("--ntasks-per-node=3", "3"), ("-c 2", None),
    ("-N 2 -n 3", "3"),
])
def test_the_tasks_that_sbatch_tells_a_job_of(options: str, tasks: str | None) -> None:
    """SLURM_NTASKS as Slurm 22.05.8 sets it: also where only those of a node are said. With -N 1-2 and tasks of a node
    it is set too, and only Slurm knows to what."""
    document = script("slurm", f"#!/bin/sh\n#SBATCH {options}\necho $SLURM_NTASKS\n")
    lines, findings = written("flux", document)
    assert [line for line in lines if "SLURM_NTASKS=" in line] == ([f"export SLURM_NTASKS={tasks}"] if tasks else [])
    assert not [f for f in findings if f.subject == "SLURM_NTASKS" and f.rule != "SSS517"]


def test_tasks_that_only_slurm_knows_are_told() -> None:
    document = script("slurm", "#!/bin/sh\n#SBATCH -N 1-2 --ntasks-per-node=2\necho $SLURM_NTASKS\n")
    assert [(f.rule, f.line, f.column) for f in written("flux", document)[1] if f.subject == "SLURM_NTASKS"] == [
        ("SSS510", 3, 6)]


def test_places_of_findings() -> None:
    document = script("slurm", "#!/bin/sh\n# c\n#SBATCH -J a  --hint=x\n#SBATCH --export=NONE -D /tmp\n"
                      "run $SLURM_NTASKS\n")
    _, findings = written("pbspro", document)
    assert [(f.subject, f.line, f.column, f.excerpt) for f in findings if f.line] == [
        ("SLURM_NTASKS", 5, 5, "run $SLURM_NTASKS"),
        ("InitialWorkingDirectory", 4, 23, "#SBATCH --export=NONE -D /tmp"),
        ("Extension hint", 3, 15, "#SBATCH -J a  --hint=x"),
    ]


def test_origins() -> None:
    document = script("slurm", "#!/bin/sh\n#SBATCH -J a -N2\n")
    assert isinstance(document, ScriptDocument)
    made = {p.tag: (o.name, o.value, o.line, o.column) for p, o in document.origins.values()}
    assert made == {"Name": ("--job-name", "a", 2, 9), "NodeCount": ("--nodes", "2", 2, 14)}
    assert document.origin(object()) is None


def test_comments_that_the_target_would_obey() -> None:
    text, findings = written("slurm", script("pbspro", "#!/bin/sh\n#SBATCH --uid=0\n#PBS -N a -V\n#BSUB -J b\ncd x\n"))
    assert text == ["#!/bin/sh", "##SBATCH --uid=0", "#SBATCH --job-name=a", "#SBATCH --export=ALL",
                    "#SBATCH --ignore-pbs", "#BSUB -J b", "cd x"]
    assert [f.subject for f in findings] == ["--ignore-pbs", "InitialWorkingDirectory", "OutputFile", "directive"]


def test_a_foreign_line_that_cannot_be_parted_is_told() -> None:
    """A quote that never ends: the options of the line were left out without a word."""
    document = script("slurm", "#!/bin/sh\n#PBS -N 'a\n#SBATCH -n 2\n")
    assert document.findings is not None
    assert [(f.rule, f.line, f.message) for f in document.findings] == [
        ("SSS304", 2, "sbatch obeys lines of #PBS too, and they win"),
        ("SSS504", 2, "a ' is not closed; what sbatch makes of the line depends on its release")]


def test_bytes_that_xml_cannot_hold() -> None:
    data = b"#!/bin/sh\n#SBATCH -J a\necho \x07 \xff\n"
    document = get("slurm").read(data, ReadContext())
    assert document.files["Script"].encoded == "base64"
    text = get("slurm").write(document, WriteContext())
    assert text.encode("utf-8", "surrogateescape") == b"#!/bin/sh\n#SBATCH --job-name=a\necho \x07 \xff\n"


@pytest.mark.parametrize("data", [b"#!/bin/sh\n\0\n", b"\0" * 9])
@pytest.mark.parametrize("name", ["slurm", "pbspro", "torque"])
def test_binary_files(name: str, data: bytes) -> None:
    with pytest.raises(RejectedError):
        get(name).read(data, ReadContext())


def test_many_parts() -> None:
    with pytest.raises(RejectedError, match="parts"):
        script("slurm", "#!/bin/sh\n" + "#SBATCH -n 1\n#SBATCH hetjob\n" * (PARTS + 1))
    with pytest.raises(RejectedError, match="at most"):
        script("pbspro", "#PBS -l select=" + "+".join(["1"] * (PARTS + 1)) + "\n")


@pytest.mark.parametrize("text", ["", "\n", "a", "a\r\nb", "\r\r\n\n", "a\rb\n\n"])
def test_lines_are_the_text(text: str) -> None:
    lines = list(lines_of(text))
    assert "".join(line.text + line.end for line in lines) == text
    assert [line.number for line in lines] == list(range(1, len(lines) + 1))


def test_file_names_without_a_token() -> None:
    assert file_writer("a{{b}}{jobid}", {"{jobid}": "%j"}) == "a{b}%j"
    with pytest.raises(LookupError):
        file_writer("{user}", {})
    assert TORQUE_SECONDS.write("86400") == "24:00:00"


# --- a third party's dialect
MODULE = '''
"""ACME: lines of ``#ACME name value``."""

from sssjob.translators.scripts.base import Dialect, Row, Scan, table, translator
from sssjob.translators.scripts.grammars import COUNT, PBS_SECONDS
from sssjob.translators.scripts.raw import Option

def live(lines):
    return [line for line in lines if line.text.startswith("#ACME ")]

def scan(reading, lines):
    made = Scan()
    for line in lines:
        if line.text.startswith("#ACME "):
            name, _, value = line.text[6:].partition(" ")
            made.components[0].append(Option(name, value, line.number, 7, line.text))
        else:
            made.rest.append(line)
    return made

ROWS = table((Row("name", "Name"), Row("limit", "Requested/Duration", PBS_SECONDS),
              Row("nodes", "Requested/NodeCount", COUNT)))
TRANSLATOR = translator(Dialect("acme", "ACME", "#ACME", ROWS, scan, lambda name, value: f"{name} {value}",
                                lambda reading, text: [], {}, ("ACME_",), live))
'''


def test_a_dialect_of_a_third_party(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "acme_scripts.py").write_text(MODULE)
    info = tmp_path / "acme_scripts-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-scripts\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[sssjob.translators]\nacme = acme_scripts:TRANSLATOR\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "acme" in names()
    document = script("acme", "#!/bin/sh\n#ACME name x\n#ACME nodes 2\n#ACME limit 90\necho $ACME_ID\n")
    text, findings = written("acme", document)
    assert text == ["#!/bin/sh", "#ACME name x", "#ACME nodes 2", "#ACME limit 00:01:30", "echo $ACME_ID"]
    assert list(findings) == [] and script("acme", "\n".join(text) + "\n").root == document.root
    text, findings = written("slurm", document)
    assert text[1:4] == ["#SBATCH --job-name=x", "#SBATCH --nodes=2", "#SBATCH --time=00:02:00"]
    assert [(f.subject, f.line) for f in findings] == [("ACME_ID", 5), ("Duration", 4)]


# --- the command
def test_convert_explains_the_way_of_each_directive(tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text("#!/bin/sh\n#SBATCH -J a --hint=x -N 2\n#SBATCH --export=NONE\n")
    process = subprocess.run([*command(), "convert", "-f", "slurm", "-t", "torque", "--explain",
                              "--set", "-J b", "job.sh"], cwd=tmp_path, capture_output=True, text=True)
    assert (process.returncode, process.stdout) == (0, "#!/bin/sh\n#PBS -N b\n#PBS -l nodes=2\n")
    assert process.stderr.splitlines()[-5:] == [
        "0:0: --job-name b -> Name: exact",
        "2:9: --job-name a -> no property of its own: replaced (--set says it again)",
        "2:14: --hint x -> Extension hint: dropped (--hint x: dropped, Torque has no place for it)",
        "2:23: --nodes 2 -> NodeCount: exact",
        "3:9: --export NONE -> no property of its own: exact",
    ]
