"""What is written for a resource manager is what its submit command takes, whatever it was made of."""

from __future__ import annotations

import itertools

import pytest

from sssjob.document.model import Document
from sssjob.errors import RejectedError
from sssjob.findings import Findings, Policy
from sssjob.translators import ReadContext, WriteContext, get
from sssjob.translators.lint import lint
from tests.cases import Cases
from tests.translators.test_scripts_matrix import FORMATS, SAMPLES

#: Directives that one manager takes and another may not, by dialect.
SMALL: dict[str, tuple[str, tuple[str, ...]]] = {
    "slurm": ("#SBATCH ", (
        '--job-name="Deep Train"', "--job-name=my@1.2", "--job-name=9", f"--job-name={'n' * 600}",
        "--partition=a,b,c", "--array=3", "--array=0-9:3,12%2", "--array=5,1,3", "--nodes=2-4", "--nodes=4 --ntasks=2",
        "--nodes=1 --exclusive", "--exclusive --mem=4G -c 4", "--gpus-per-task=2 -n 3", "--gres=gpu:a100:2",
        "--gpus=3 --nodes=2", "--mem=0", "-n 39 --gres=gpu:4 --mem-per-cpu=3000", "--time=0", "--time=1-0",
        "--priority=100000", "--nice=5000", "--account=a/b", "--qos=x,y", "--dependency=afterok:1?afterany:2",
        "--nodelist=n[08-10] --exclude=n9", "--constraint=a&b", "--mail-type=ALL", "--signal=B:USR1@60",
        "--ntasks-per-node=3 --nodes=2 --mem=10G --tmp=5G", "--output=a%j-%t.txt", "--chdir='/a b'",
        "--export=NONE,A='x y'", "--licenses=a:2,b", "--begin=now+1hour", "--distribution=cyclic -n 4")),
    "pbspro": ("#PBS ", (
        "-l select=2:ncpus=64:mpiprocs=1:ngpus=4:mem=480gb", "-l select=7:ncpus=24:mpiprocs=21:mem=100gb",
        "-l select=2:ncpus=16:mpiprocs=16+8:ncpus=64:mpiprocs=64", "-l ncpus=4 -l mem=20gb -l ngpus=2",
        "-l nodes=2:ppn=8 -l mem=124gb", "-J 2-10:2%3", "-q long@server", "-l place=scatter:excl -l select=3",
        "-l place=pack -l select=2:ncpus=2", "-N a+b", "-p -300", "-W depend=afterok:1.s", "-l walltime=1000",
        "-l mem=384", "-l select=1:ncpus=4:ompthreads=4:host=n1", "-A a:b")),
    "torque": ("#PBS ", ("-l nodes=2:ppn=20 -l mem=124gb", "-t 1,5-9%2", "-l nodes=n1+n2:ppn=2", "-N a/b", "-p 10",
                         "-l procs=7 -l pmem=2gb", "-l nodes=1:ppn=4:gpus=2")),
    "sge": ("#$ ", ("-pe smp 8", "-pe mpi 4-16", "-t 3", "-t 2-8:3 -tc 2", "-q a.q,b.q", "-p 100", "-N a_b",
                    "-l h_vmem=4G -pe smp 3", "-hold_jid 1,2", "-A acc", "-js 4", "-l h_rt=10")),
    "lsf": ("#BSUB ", ('-J "a b[1-10:3]%2"', '-q "a b"', "-n 4,8", '-R "span[ptile=4]" -n 9', "-W 1:30",
                       '-gpu num=2', "-M 4GB", "-sp 90", "-nnodes 3", '-w "done(1) && ended(2)"')),
    "flux": ("#FLUX: ", ("-N2 -n5 -c2 -g1", "-n3 --queue=a", "-N1 --exclusive", "--urgency=31 -n1", "-n1 -t 90s",
                         "--job-name='a b' -n2")),
    "cobalt": ("#COBALT ", ("-n 2 -t 10 -q a", "-n 4 -t 1:30 --proccount=7 --mode=c2", "-n 1 -t 5 --jobname=a/b")),
}


def document_of(name: str, data: bytes) -> Document | None:
    """What a script of a manager says; None if it is refused."""
    try:
        return get(name).read(data, ReadContext(policy=Policy.WARN))
    except RejectedError:
        return None


def refusals(document: Document | None, to: str) -> list[str]:
    """What the target's judge and reader refuse of a document that is written for it."""
    if document is None:
        return []
    try:
        text = get(to).write(document, WriteContext(Findings("s"), policy=Policy.WARN))
    except RejectedError:
        return []
    return [f"{f.message}\n{text}" for f in lint(to, text.encode("utf-8", "surrogateescape"))
            if f.rule == "SSS505" and f.severity == "error"]


def check_all(scripts: dict[str, tuple[str, bytes]]) -> None:
    """Have every format take what is written of every script. scripts: name of the case -> dialect, text."""
    with Cases() as case:
        for label, (name, data) in scripts.items():
            document = document_of(name, data)
            for to in FORMATS:
                if to != name:
                    with case(f"{label} as {to}"):
                        assert refusals(document, to) == []


@pytest.mark.parametrize("name", SMALL)
def test_small_scripts(name: str) -> None:
    prefix, texts = SMALL[name]
    check_all({text: (name, f"#!/bin/sh\n{prefix}{text}\n./a\n".encode()) for text in texts})


@pytest.mark.parametrize("name", [name for name in SMALL if name != "cobalt"])      # all of whose lines have -n
def test_pairs_of_options(name: str) -> None:
    prefix, texts = SMALL[name]
    check_all({f"{one} {other}": (name, f"#!/bin/sh\n{prefix}{one}\n{prefix}{other}\n./a\n".encode())
               for one, other in itertools.combinations(texts[::2], 2) if not options(one) & options(other)})


def options(text: str) -> set[str]:
    """The words of a line of directives, without their values."""
    return {word.partition("=")[0] for word in text.split()}


def test_samples() -> None:
    check_all({path.name: (name, path.read_bytes()) for name, path in SAMPLES})
