"""``sssjob diff``: two texts of any formats compared by what they mean."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sssjob.conversion.compare import Difference, differences
from sssjob.xml.reader import read_document
from tests.cli.conftest import Command

SLURM = ("#!/bin/sh\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=8\n#SBATCH --mem=2G\n#SBATCH --time=60\n"
         "#SBATCH --job-name=a\ndate\n")
PBS = ("#!/bin/sh\n#PBS -N a\n#PBS -l walltime=1:00:00\n#PBS -l select=2:ncpus=8:mpiprocs=8:mem=2048mb\n"
       "#PBS -l place=scatter\n# a comment\n\ndate\n")


def job(inside: str) -> str:
    return f"<Job>{inside}</Job>"


def compared(one: str, other: str, script: bool = True) -> list[Difference]:
    return differences(read_document(one.encode()), read_document(other.encode()), script=script)[0]


@pytest.mark.parametrize(("one", "other"), [
    # amounts in one unit
    ("<Requested><Memory units='GB'>1</Memory></Requested>", "<Requested><Memory>1024</Memory></Requested>"),
    ("<Requested><Disk units='GB'>1</Disk></Requested>", "<Requested><Disk units='MB'>1024</Disk></Requested>"),
    ("<Requested><Duration>3600</Duration></Requested>", "<Requested><Duration>PT1H</Duration></Requested>"),
    # what follows from what is said
    ("<Requested><NodeCount>2</NodeCount></Requested><TaskGroup><TaskDistribution>4</TaskDistribution></TaskGroup>",
     "<Requested><NodeCount>2</NodeCount></Requested><TaskGroup><TaskCount>8</TaskCount></TaskGroup>"),
    ("<Requested><Processors>8</Processors></Requested>", "<TaskGroup><TaskCount>8</TaskCount></TaskGroup>"),
    # a chunk is a task, as at every other door; it was one for each of its processors
    ("<TaskGroup><Extension type='Scheduler' name='ChunkCount'>1</Extension><Requested><Processors>8</Processors>"
     "</Requested></TaskGroup>",
     "<NodeCount>1</NodeCount><TaskGroup><TaskCount>1</TaskCount><Requested><Processors>8</Processors></Requested>"
     "</TaskGroup>"),
    ("<Requested><NodeCount>2</NodeCount><Memory metric='PerNode' units='GB'>4</Memory></Requested>",
     "<Requested><NodeCount>2</NodeCount><Memory metric='Total' units='GB'>8</Memory></Requested>"),
    ("<Requested><NodeCount>2</NodeCount><Processors metric='PerNode'>4</Processors></Requested>",
     "<Requested><NodeCount>2</NodeCount><Processors>8</Processors></Requested>"),
    ("<Requested><NodeCount>2</NodeCount><Disk metric='PerNode' units='GB'>5</Disk></Requested>",
     "<Requested><NodeCount>2</NodeCount><Disk units='GB'>10</Disk></Requested>"),
    ("<NodeCount>2</NodeCount><TaskGroup><TaskDistribution type='Geometry'>{0,1}{2,3}</TaskDistribution></TaskGroup>",
     "<TaskGroup><TaskCount>4</TaskCount><TaskDistribution>2</TaskDistribution></TaskGroup>"),
    ("<Requested><Processors op='EQ' conj='And'>8</Processors></Requested>",
     "<Requested><Processors>8</Processors></Requested>"),
    # sets have no order
    ("<Requested><Feature>a</Feature><Feature>b</Feature></Requested>",
     "<Requested><Feature>b</Feature><Feature>a</Feature></Requested>"),
    ("<Requested><Node aggregation='Range'>n[1-2]</Node></Requested>",
     "<Requested><Node aggregation='List'>n2,n1</Node></Requested>"),
    ("<NotificationList>JobStart,JobEnd</NotificationList>", "<NotificationList>JobEnd, JobStart</NotificationList>"),
    ("<Extension type='Scheduler' name='Array'>1-10:1%2</Extension>",
     "<Extension type='Scheduler' name='Array'>1-10%2</Extension>"),
    # of a variable that is set twice the last value counts
    ("<Environment><Variable name='A'>1</Variable><Variable name='A'>2</Variable></Environment>",
     "<Environment><Variable name='A'>2</Variable></Environment>"),
    # where a document comes from is no part of its meaning
    ("<Extension type='Scheduler' name='Dialect'>slurm</Extension>",
     "<Extension type='Scheduler' name='Dialect'>pbspro</Extension>"),
])
def test_the_same_in_other_words(one: str, other: str) -> None:
    assert compared(job(one), job(other)) == []


@pytest.mark.parametrize(("one", "other", "expected"), [
    ("<Queue>a</Queue>", "<Queue>b</Queue>", Difference("job: Queue", "a", "b")),
    ("<Queue>a</Queue>", "", Difference("job: Queue", "a", None)),
    # the same number, but a bound
    ("<Requested><Processors op='GE'>8</Processors></Requested>", "<Requested><Processors>8</Processors></Requested>",
     Difference("job: Processors", "[GE] 8", None)),
    ("<Requested><NodeCount op='GE'>2</NodeCount><NodeCount op='LE'>4</NodeCount></Requested>",
     "<Requested><NodeCount>2</NodeCount></Requested>", Difference("job: nodes", "2 to 4", "2")),
    ("<Requested><NodeCount op='GE'>2</NodeCount></Requested>", "<Requested><NodeCount>2</NodeCount></Requested>",
     Difference("job: NodeCount", "[GE] 2", None)),
    ("<TaskGroup><TaskDistribution type='Geometry'>{0,1,2}{3}</TaskDistribution></TaskGroup>",
     "<NodeCount>2</NodeCount><TaskGroup><TaskCount>4</TaskCount></TaskGroup>",
     Difference("job: tasks of each node", "3, 1", None)),
    ("<TaskGroup><TaskCount>4</TaskCount><TaskDistribution type='Rule'>Pack</TaskDistribution></TaskGroup>",
     "<TaskGroup><TaskCount>4</TaskCount></TaskGroup>", Difference("job: TaskDistribution Rule", "Pack", None)),
    ("<Requested><Network>ib</Network></Requested>", "<Requested><Network>eth</Network></Requested>",
     Difference("job: Network", "ib", "eth")),
    # amounts of another "per" that nothing makes equal
    ("<Requested><Memory metric='PerNode' units='GB'>4</Memory></Requested>",
     "<Requested><Memory units='GB'>4</Memory></Requested>",
     Difference("job: memory", "4 GB a node", "4 GB in all")),
    ("<TaskGroup><TaskCount>4</TaskCount></TaskGroup>", "<TaskGroup><TaskCount>2</TaskCount></TaskGroup>",
     Difference("job: tasks", "4", "2")),
    ("<Dependency condition='OnSuccess'>1</Dependency>", "<Dependency condition='OnExit'>1</Dependency>",
     Difference("job: Dependency OnSuccess", "1", None)),
    ("<Environment><Variable name='A'>1</Variable></Environment>",
     "<Environment><Variable name='A'>2</Variable></Environment>", Difference("job: Variable A", "1", "2")),
    # of a variable that is set twice the last value counts
    ("<Environment><Variable name='A'>1</Variable><Variable name='A'>2</Variable></Environment>",
     "<Environment><Variable name='A'>2</Variable><Variable name='A'>1</Variable></Environment>",
     Difference("job: Variable A", "2", "1")),
    ("<Delivered><Duration>5</Duration></Delivered>", "<Delivered><Duration>6</Duration></Delivered>",
     Difference("job, Delivered: Duration", "5", "6")),
])
def test_what_differs(one: str, other: str, expected: Difference) -> None:
    assert expected in compared(job(one), job(other))
    turned = Difference(expected.subject, expected.other, expected.one)
    assert turned in compared(job(other), job(one))


def test_jobs_of_a_group_are_matched_by_their_ids() -> None:
    """With the defaults folded in, and in any order."""
    one = ("<JobGroup><JobDefaults><Queue>q</Queue></JobDefaults>"
           "<Job><Id>a</Id><Name>x</Name></Job><Job><Id>b</Id></Job></JobGroup>")
    other = ("<JobGroup><Job><Id>b</Id><Queue>q</Queue></Job>"
             "<Job><Id>a</Id><Name>y</Name><Queue>q</Queue></Job></JobGroup>")
    assert compared(one, other) == [Difference("job a: Name", "x", "y")]


def test_what_is_not_known_differs_as_it_stands() -> None:
    """Both documents were told to be equal, though their digests differ."""
    text = '<Job awarenessPolicy="Warn"><Hue>red</Hue>{}<TaskGroup><Tone a="1">x<b>2</b></Tone></TaskGroup></Job>'
    assert compared(text.format(""), text.format("")) == []
    assert compared(text.format("<Taste/>"), text.format("").replace("red", "blue").replace(">2<", ">3<")) == [
        Difference("job: Hue", "red", "blue"), Difference("job: Taste", "", None),
        Difference("job: Tone", '<Tone a="1">x<b>2</b></Tone>', '<Tone a="1">x<b>3</b></Tone>')]


def test_two_scripts_of_two_systems(sssjob: Command, tmp_path: Path) -> None:
    """60 minutes are an hour, 2 GB are 2048 MB, 2 nodes of 8 tasks are 2 chunks on nodes of their own."""
    (tmp_path / "a.sh").write_text(SLURM)
    (tmp_path / "b.pbs").write_text(PBS)
    code, out, _ = sssjob("diff", "-q", tmp_path / "a.sh", tmp_path / "b.pbs")
    assert (code, out) == (0, "")
    (tmp_path / "b.pbs").write_text(PBS.replace("2048mb", "3gb").replace("date", "date; true"))
    code, out, _ = sssjob("diff", "-q", "-f", "slurm", "-f", "pbspro", "--json", tmp_path / "a.sh", tmp_path / "b.pbs")
    record = json.loads(out)
    assert (code, len(record.pop("patch")["edits"])) == (1, 4)
    assert record == {"equal": False, "same": 6, "differences": [
        {"subject": "job: memory", "a": "4 GB in all", "b": "6 GB in all"},
        {"subject": "job: commands", "a": "date", "b": "date; true"}]}
    table = sssjob("diff", "-q", "--no-script", tmp_path / "a.sh", tmp_path / "b.pbs").out.splitlines()
    assert table[-1].split() == ["job:", "memory", "4", "GB", "in", "all", "6", "GB", "in", "all"]


def test_a_script_and_what_it_was_converted_to(sssjob: Command, tmp_path: Path) -> None:
    """The lines that the conversion put in are no part of the commands."""
    (tmp_path / "a.sh").write_text(SLURM + "echo $SLURM_JOB_ID\n")
    assert sssjob("convert", "-q", "-f", "slurm", "-t", "pbspro", tmp_path / "a.sh", "-o", tmp_path / "b").code == 0
    assert "SLURM_JOB_ID=" in (tmp_path / "b").read_text()
    assert sssjob("diff", "-q", tmp_path / "a.sh", tmp_path / "b").code == 0


@pytest.mark.parametrize(("arguments", "code", "expected"), [
    (["-f", "a", "-f", "b", "-f", "c", "x", "y"], 2, "--from is given once for both, or twice"),
    (["-", "-"], 2, "standard input (-) can be read only once"),
    (["job.xml", "nothing"], 3, "No such file"),
    (["job.xml", "broken.xml"], 1, ""),
    (["-f", "nonsense", "job.xml", "job.xml"], 2, "unknown format 'nonsense'"),
    (["job.xml", "empty"], 1, "SSS109 error the input is empty"),
])
def test_what_cannot_be_compared(sssjob: Command, place: Path, arguments: list[str], code: int, expected: str) -> None:
    (place / "empty").write_text("")
    answer = sssjob("diff", *arguments)
    assert answer.code == code and answer.out == "" and expected in answer.err


WIDE = "#!/bin/sh\n#SBATCH -J fit -p long -t 1:30:00 -o %x.%j.out -d afterok:11 -A phys\n"


@pytest.mark.parametrize("body", ["date\n", "cd $SLURM_SUBMIT_DIR\ndate\n"])
@pytest.mark.parametrize("target", ["slurm", "pbspro", "torque", "lsf", "sge", "sss", "sss-json"])
def test_a_conversion_that_loses_nothing_is_the_same(
        sssjob: Command, tmp_path: Path, target: str, body: str) -> None:
    """The name of the job in file names, both streams in one file, where it starts, and the successor of a job that is
    waited for: each said in the other's way, and both the same. Grid Engine knows one kind of dependency only."""
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text(WIDE + body)
    assert sssjob("convert", "-q", "-f", "slurm", "-t", target, one, "-o", other).code == 0
    answer = sssjob("diff", "-q", "--json", "-f", "slurm", "-f", target, one, other)
    subjects = {d["subject"] for d in json.loads(answer.out)["differences"]}
    assert subjects == ({"job: Dependency OnSuccess", "job: Dependency OnExit"} if target == "sge" else set())
    assert answer.code == bool(subjects)


@pytest.mark.parametrize(("one", "other", "code"), [
    ("-o a -e b", "-o a", 1), ("-o a", "-o b", 1), ("-J x -o %x", "-J y -o %x", 1), ("-J x -o %x", "-J x -o x", 0),
    ("-d afterok:1", "-d afterok:2", 1), ("-o a{name} -J x", "-o ax -J x", 1)])
def test_names_of_files(sssjob: Command, tmp_path: Path, one: str, other: str, code: int) -> None:
    for name, options in (("a", one), ("b", other)):
        (tmp_path / name).write_text(f"#!/bin/sh\n#SBATCH {options}\n")
    assert sssjob("diff", "-q", "-f", "slurm", tmp_path / "a", tmp_path / "b").code == code


def test_what_is_long_can_be_found_in_a_pipe(sssjob: Command, tmp_path: Path) -> None:
    """A path stands on one line and whole, and the commands of two scripts are a unified diff."""
    folder = "/scratch/" + "/".join(["project"] * 30)
    (tmp_path / "a.sh").write_text(f"#!/bin/sh\n#SBATCH --chdir={folder}\nmodule load a\nsrun ./a\necho done\n")
    (tmp_path / "b.sh").write_text("#!/bin/sh\n#SBATCH -N 1\nmodule load b\nsrun ./a\necho done\n")
    one, other = str(tmp_path / "a.sh"), str(tmp_path / "b.sh")
    lines = sssjob("diff", "-f", "slurm", one, other).out.splitlines()
    assert [line.split() for line in lines[2:4]] == [
        ["job:", "InitialWorkingDirectory", folder, "-"], ["job:", "nodes", "-", "1"]]
    assert lines[4:] == [f"--- {one}: job: commands", f"+++ {other}: job: commands", "@@ -1,3 +1,3 @@",
                         "-module load a", "+module load b", " srun ./a", " echo done"]
    assert sssjob("explain", "-f", "slurm", one).out.splitlines()[2].split() == [
        "2", "--chdir", folder, "job", "InitialWorkingDirectory", folder]


@pytest.mark.parametrize(("one", "other", "code"), [
    ("#SBATCH --export=NONE\n#SBATCH -J a\n", "#PBS -N a\n", 0), ("#SBATCH -J a\n", "#PBS -N a\n#PBS -V\n", 0),
    ("#SBATCH --export=NONE\n#SBATCH -J a\n", "#PBS -N a\n#PBS -V\n", 1), ("#PBS -N a\n", "#PBS -N a\n#PBS -V\n", 1),
    ("#SBATCH -J a\n", "#SBATCH -J a\n#SBATCH --export=NONE\n", 1), ("#$ -N a\n", "#BSUB -J a\n#BSUB -env none\n", 0)])
def test_what_one_says_and_the_other_does_anyway(sssjob: Command, tmp_path: Path, one: str, other: str, code: int
                                                 ) -> None:
    """Slurm passes the submitter's variables on unless told otherwise, PBS does not."""
    for name, text in (("one", one), ("other", other)):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}./a\n")
    pair = [str(tmp_path / "one"), str(tmp_path / "other")]
    assert sssjob("diff", *pair).code == sssjob("diff", *reversed(pair)).code == code
