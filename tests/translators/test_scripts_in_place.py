"""Scripts look like the pages they came from: directives where they stood, with comments, order and blank lines."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from sssjob.document.model import Document
from sssjob.errors import RejectedError
from sssjob.findings import Findings, Policy
from sssjob.translators import ReadContext, WriteContext, get
from sssjob.xml.reader import read_document

FIXTURES = Path(__file__).parents[1] / "fixtures" / "scripts"
SCRIPTS = [(path.parent.name, path) for path in sorted(FIXTURES.glob("*/made-*.sh")) if path.parent.name != "htcondor"]


def read(name: str, text: str, **options: str) -> Document:
    return get(name).read(text.encode("utf-8", "surrogateescape"),
                          ReadContext("s", Findings("s"), policy=Policy.WARN, options=options))


def write(name: str, document: Document, **options: str) -> str:
    options = {"body": "keep"} | options
    return get(name).write(document, WriteContext(Findings("s"), policy=Policy.WARN, options=options))


def converted(source: str, target: str, text: str, **options: str) -> str:
    return write(target, read(source, text), **options)


def test_options_without_the_like_stand_with_their_neighbours() -> None:
    """``-pe smp`` is three options of Slurm, of which only one is what an example of a slot becomes."""
    assert converted("sge", "slurm", "#!/bin/sh\n# memory\n#$ -l h_vmem=2G\n# slots\n#$ -pe smp 12\n./a\n") == (
        "#!/bin/sh\n# memory\n#SBATCH --mem-per-cpu=2G\n# slots\n#SBATCH --nodes=1\n#SBATCH --ntasks=1\n"
        "#SBATCH --cpus-per-task=12\n./a\n")


PAGE = """\
#!/bin/bash
# The great job

### -- how long --
#SBATCH --time=01:00:00  # an hour
### -- how many --
#SBATCH --ntasks=16 # one per core

# where output goes
#SBATCH --output=x.out
# and the rest
#SBATCH --error=x.err
# start
./a
"""


@pytest.mark.parametrize(("target", "page"), [
    ("lsf", """\
#!/bin/bash
# The great job

### -- how long --
#BSUB -W 01:00  # an hour
### -- how many --
#BSUB -n 16 # one per core

# where output goes
#BSUB -oo x.out
# and the rest
#BSUB -eo x.err
# start
./a
"""),
    ("pbspro", """\
#!/bin/bash
# The great job

### -- how long --
# an hour
#PBS -l walltime=01:00:00
### -- how many --
# one per core
#PBS -l select=16:ncpus=1:mpiprocs=1

# where output goes
#PBS -o x.out
# and the rest
#PBS -e x.err
# start
./a
"""),
    ("sge", """\
#!/bin/bash
# The great job

### -- how long --
#$ -l h_rt=01:00:00  # an hour
### -- how many --
#$ -pe @PE@ 16 # one per core

# where output goes
#$ -o x.out
# and the rest
#$ -e x.err
#$ -cwd
# start
./a
"""),
    ("cobalt", """\
#!/bin/bash
#COBALT -t 01:00:00
#COBALT --proccount 16
#COBALT -o x.out
#COBALT -e x.err
# The great job

### -- how long --
# an hour
### -- how many --
# one per core

# where output goes
# and the rest
# start
./a
"""),
])
def test_a_page_stays_a_page(target: str, page: str) -> None:
    """qsub of PBS takes no comment behind a directive, that of Cobalt no line between them; -cwd is new."""
    assert converted("slurm", target, PAGE) == page
    assert converted("slurm", "slurm", PAGE) == PAGE


@pytest.mark.parametrize(("source", "target", "text", "page"), [
    ("slurm", "pbspro", "#SBATCH -N 2\n# per node\n#SBATCH --ntasks-per-node=8\n# memory\n#SBATCH --mem=4G\n",
     "#PBS -l select=2:ncpus=8:mpiprocs=8:mem=4gb\n#PBS -l place=scatter\n# per node\n# memory\n"),
    ("slurm", "lsf", "#SBATCH -t 5\n# shape\n#SBATCH -n 8\n#SBATCH --ntasks-per-node=4\n# me\n#SBATCH -J me\n",
     "#BSUB -W 00:05\n# shape\n#BSUB -n 8\n#BSUB -R \"span[ptile=4]\"\n# me\n#BSUB -J me\n"),
    ("pbspro", "slurm", "#PBS -q q\n# chunks\n#PBS -l select=2:ncpus=4:mpiprocs=4\n# mail\n#PBS -m e\n",
     "#SBATCH --partition=q\n# chunks\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n# mail\n"
     "#SBATCH --mail-type=END\n"),
    ("slurm", "torque", "#SBATCH --switches=2  # near\n#SBATCH -J a  # it's me\n",
     "# near\n# it's me\n#PBS -N a\n"),
    ("sge", "slurm", "#$ -l gpu=1\n# name\n#$ -N a#b\n", "# name\n#SBATCH --job-name=a #b\n"),
    ("pbspro", "slurm", ":\n#PBS -N late\n# more\n", "#SBATCH --job-name=late\n:\n# more\n"),
    ("lsf", "slurm", "echo\n#BSUB -J late # why\n", "#SBATCH --job-name=late\necho\n"),
    ("slurm", "pbspro", "#PBS -N dead\n#SBATCH --ignore-pbs\n#SBATCH -J a\n", "##PBS -N dead\n#PBS -N a\n"),
    ("slurm", "flux", "#SBATCH -n 1\n#SBATCH hetjob\n# second\n#SBATCH -n 2\n", "#FLUX: --nslots=3\n# second\n"),
    ("slurm", "slurm", "#SBATCH -n 1 -t 5\n# wide\n#SBATCH hetjob\n#SBATCH -n 2\n",
     "#SBATCH --time=00:05:00\n#SBATCH --ntasks=1\n#SBATCH hetjob\n#SBATCH --time=00:05:00\n"
     "#SBATCH --ntasks=2\n# wide\n"),
    ("slurm", "slurm", "# gpus\n#SBATCH --gres=gpu:2\n# time\n#SBATCH -t 5\n",
     "# gpus\n#SBATCH --gpus-per-node=2\n# time\n#SBATCH --time=00:05:00\n"),
    ("slurm", "slurm", "#SBATCH -t 5 # short\n# later\n#SBATCH -t 7 # long\n",
     "# later\n#SBATCH --time=00:07:00 # long\n"),
])
def test_what_stands_where(source: str, target: str, text: str, page: str) -> None:
    lines = converted(source, target, f"#!/bin/sh\n{text}./a\n")
    assert lines == f"#!/bin/sh\n{page}./a\n"


def test_options_of_the_command_line_take_the_places_of_those_they_replace() -> None:
    text = "#!/bin/sh\n#SBATCH -t 5\n# n\n#SBATCH -n 2\n"
    assert write("pbspro", read("slurm", text, set="-t 7 -J a")) == (
        "#!/bin/sh\n#PBS -l walltime=00:07:00\n# n\n#PBS -l select=2:ncpus=1:mpiprocs=1\n#PBS -N a\n")


def test_the_other_first_line_stays_above_comments() -> None:
    text = "#!/bin/sh\n# c\n#PBS -S /bin/bash\n#PBS -N a\n./a\n"
    assert converted("pbspro", "slurm", text) == "#!/bin/bash\n#!/bin/sh\n# c\n#SBATCH --job-name=a\n./a\n"


def test_lines_of_a_shim_follow_the_directives() -> None:
    lines = converted("slurm", "sge", "#!/bin/sh\n# c\n#SBATCH -J a\n# d\necho $SLURM_JOB_ID\n", body="shim")
    assert lines.startswith("#!/bin/sh\n# c\n#$ -N a\n#$ -cwd\n# >>> sssjob shim: slurm on sge")
    assert lines.endswith("# <<< sssjob shim\n# d\necho $SLURM_JOB_ID\n")


def test_losses_leave_comments_where_they_stood_and_come_back() -> None:
    text = "#!/bin/sh\n# a\n#SBATCH --switches=2\n# b\n#SBATCH --time=00:05:00\n#SBATCH --hint=nomultithread\n./a\n"
    there = converted("slurm", "torque", text, comments="yes")
    assert there == ("#!/bin/sh\n# a\n# untranslated (slurm): --switches=2\n# b\n#PBS -l walltime=00:05:00\n"
                     "# untranslated (slurm): --hint=nomultithread\n./a\n")
    assert converted("torque", "slurm", there, comments="yes") == text


# --- laws
@pytest.mark.parametrize(("name", "path"), SCRIPTS, ids=[f"{n}-{p.stem}" for n, p in SCRIPTS])
def test_canonical_directives_stay_where_they_are(name: str, path: Path) -> None:
    """In any order, with comments and blank lines between them. Parts of jobs, what -clear forgets and values of
    several lines have an order."""
    try:
        document = read(name, path.read_text())
    except RejectedError:
        pytest.skip(f"{path.name} is refused")
    block = write(name, document, layout="canonical")
    assert write(name, read(name, block)) == block == write(name, read(name, block), layout="canonical")
    if any(word in block for word in ("hetjob", "-clear", "'''")) or name == "cobalt":
        return
    dice = random.Random(path.name)
    lines = block.splitlines(keepends=True)
    first = lines.pop(0) if block.startswith("#!") else ""
    count = next((n for n, line in enumerate(lines) if not _is_directive(line)), len(lines))
    sign = "--" if lines[0].startswith("--") else "#"
    for _ in range(5):
        header = dice.sample(lines[:count], count)
        for at in range(count, -1, -1):
            header[at:at] = dice.choice([[], ["\n"], [f"{sign} one\n"], [f"{sign} one\n", "\n", f"{sign}\n"]])
        page = "".join([first, *header, *lines[count:]])
        assert write(name, read(name, page)) == page


def _is_directive(line: str) -> bool:
    return line.startswith(("#SBATCH ", "#$ ", "#BSUB ", "#FLUX: ", "-- flux: ", "#PBS "))


@pytest.mark.parametrize("target", ["slurm", "pbspro", "torque", "lsf", "sge", "flux", "cobalt"])
@pytest.mark.parametrize(("name", "path"), SCRIPTS, ids=[f"{n}-{p.stem}" for n, p in SCRIPTS])
def test_both_layouts_ask_for_the_same_and_no_comment_is_lost(name: str, path: Path, target: str) -> None:
    try:
        document = read(name, path.read_text())
    except RejectedError:
        pytest.skip(f"{path.name} is refused")
    block, page = write(target, document, layout="canonical"), write(target, document)
    assert read(target, page).root == read(target, block).root
    lines, fewer = (Counter(read(target, text).files["Script"].text.splitlines()) for text in (page, block))
    assert fewer <= lines and all(line.startswith("#") for line in (lines - fewer))


# --- hostile and wrong
@pytest.mark.parametrize("text", [
    "#!/bin/sh\n#SBATCH -J a " + "#" * 500 + "\n", "#!/bin/sh\n#SBATCH -J a" + " " * 5000 + "# c\n",
    "#!/bin/sh\n#SBATCH -J a #\n#SBATCH -J b # '\n", "#!/bin/sh\n\x0c# c\n#SBATCH -J a\n\x0b\n",
    "#!/bin/sh\n#SBATCH -J a",
    "#!/bin/sh\r\n# c\r\n#SBATCH -J a # d\r\n./a\r\n", "#!/bin/sh\n# \xe9 \u2028 x\n#SBATCH -J a\n./a",
])
@pytest.mark.parametrize("target", ["slurm", "sge", "pbspro"])
def test_odd_pages(text: str, target: str) -> None:
    """Also the last line without an end: nothing is refused that the other layout takes."""
    page, block = converted("slurm", target, text), converted("slurm", target, text, layout="canonical")
    assert read(target, page).root == read(target, block).root


@pytest.mark.parametrize("name", ["slurm", "pbspro", "torque", "lsf", "sge", "flux", "cobalt"])
@pytest.mark.parametrize("text", ["}", "hostname\n", "# note\nls\n", "#!/bin/sh\n"])
def test_a_page_without_directives_stays_as_it_is(text: str, name: str) -> None:
    """LSF and Grid Engine looked for the last of none (an internal error)."""
    assert converted(name, name, text) == text


def test_layouts_are_refused_where_they_mean_nothing() -> None:
    with pytest.raises(ValueError, match="layout is in-place or canonical"):
        converted("slurm", "sge", "#!/bin/sh\n./a\n", layout="free")
    document = read_document(b"<Job><Executable>a</Executable></Job>")
    assert write("slurm", document, layout="canonical") == write("slurm", document) == "#!/bin/sh\na\n"
    with pytest.raises(ValueError, match="in-place is for scripts"):
        write("slurm", document, layout="in-place")
