"""Placeholders of a generator are opaque values: through every conversion each is there as it was, or is told."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.document.model import Document, Job, new_property
from sssjob.errors import RejectedError
from sssjob.findings import Findings, Policy
from sssjob.translators import ReadContext, WriteContext, get
from tests.strategies import examples

FORMATS = ["slurm", "pbspro", "torque", "lsf", "sge", "cobalt", "flux", "htcondor"]
#: Jinja, Mustache, Python's % operator, string.Template and make, autoconf and CMake.
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
PLACEHOLDERS = st.one_of(
    NAMES.map("{{{{{}}}}}".format), NAMES.map("{{{{ {} }}}}".format), NAMES.map("{{{{ {}|default('1:00') }}}}".format),
    NAMES.map("%({})s".format), NAMES.map("$${{{}}}".format),
    NAMES.map(lambda n: f"@{n.upper()}@"))
#: Options of amounts, one a dialect and amount.
AMOUNTS = {
    "slurm": ["--nodes={}", "--time={}", "--ntasks={}", "--mem={}", "-N {}"],
    "pbspro": ["-l select={}", "-l walltime={}", "-l mem={}"],
    "torque": ["-l nodes={}", "-l walltime={}", "-l pmem={}"],
    "lsf": ["-n {}", "-W {}", "-M {}"], "sge": ["-pe mpi {}", "-l h_rt={}", "-t {}"],
    "cobalt": ["-n {}", "-t {}", "--proccount {}"], "flux": ["--nodes={}", "-t {}", "-n {}"],
}
PREFIXES = {"slurm": "#SBATCH ", "pbspro": "#PBS ", "torque": "#PBS ", "lsf": "#BSUB ", "sge": "#$ ",
            "cobalt": "#COBALT ", "flux": "#FLUX: "}
OPTIONS = [(name, option) for name, options in AMOUNTS.items() for option in options]


def read(name: str, text: str) -> tuple[Document, Findings]:
    findings = Findings("x")
    return get(name).read(text.encode(), ReadContext("x", findings)), findings


def written(name: str, document: Document, body: str = "shim") -> tuple[str, Findings]:
    findings = Findings("x")
    return get(name).write(document, WriteContext(findings, policy=Policy.WARN, options={"body": body})), findings


@settings(max_examples=examples(40))
@given(st.sampled_from(FORMATS), st.sampled_from(FORMATS), st.lists(PLACEHOLDERS, min_size=3, max_size=3, unique=True))
def test_texts(one: str, other: str, values: list[str]) -> None:
    """Name, queue and project, from a document to one dialect and on to another."""
    tags = ["Name", "Queue", "Project"]
    document = Document(Job([new_property("Executable", "/bin/true"),
                             *(new_property(t, v) for t, v in zip(tags, values, strict=True))]))
    told = ""
    for name in (one, other):
        text, findings = written(name, document)
        told += "".join(f"{f.subject} {f.message}\n" for f in findings)
        document, findings = read(name, text)
        told += "".join(f"{f.subject} {f.message}\n" for f in findings)        # Grid Engine takes no name with @
        assert not findings.rejected
    job = next(j for j, _ in document.jobs())
    assert all(str(job.value(t)) == v or v in told or f"{t} " in told for t, v in zip(tags, values, strict=True))


@pytest.mark.parametrize(("name", "option"), OPTIONS)
@settings(max_examples=examples(8))
@given(PLACEHOLDERS)
def test_amounts(name: str, option: str, value: str) -> None:
    """Where a number is wanted: taken as text, written back as it was, and told where another dialect has no word."""
    text = f"#!/bin/sh\n{PREFIXES[name]}{option.format(value)}\ndate\n"
    document, findings = read(name, text)
    assert not findings.rejected and {f.kind for f in findings} <= {"template", "site-dependent"}
    own, _ = written(name, document)
    assert written(name, read(name, own)[0])[0] == own
    for other in FORMATS:
        output, findings = written(other, document)
        assert value in output or any(value in f.message for f in findings)


@settings(max_examples=examples(40))
@given(st.sampled_from(FORMATS[:7]), st.sampled_from(FORMATS), st.lists(PLACEHOLDERS, min_size=1, max_size=4),
       st.sampled_from(["keep", "shim", "translate"]))
def test_bodies(one: str, other: str, values: list[str], mode: str) -> None:
    """Commands are left alone around them, also where variables of the manager stand beside them."""
    body = "".join(f'./a {v} "x{v}" $SLURM_JOB_ID.{v}\n' for v in values)
    document, _ = read(one, f"#!/bin/sh\n{PREFIXES[one]}-N 1\n{body}" if one in ("slurm", "flux") else
                       f"#!/bin/sh\n{body}")
    files = get(other).files
    context = WriteContext(Findings("x"), policy=Policy.WARN, options={"body": mode})
    whole = written(other, document, mode)[0] if files is None else "".join(files(document, context).values())
    assert all(whole.count(v) >= 3 * values.count(v) for v in values)


@pytest.mark.parametrize(("name", "line", "written_as"), [
    ("slurm", "--nodes={{ nodes }} -J a # {{ why }}", '#SBATCH --job-name=a\n#SBATCH --nodes="{{ nodes }}"\n'),
    ("slurm", "-J {{ name }}_{{ i }}", '#SBATCH --job-name="{{ name }}_{{ i }}"\n'),
    ("slurm", "-J 'a {{ it's }}'", '#SBATCH --job-name="a {{ it\'s }}"\n'),
    ("slurm", "--comment={{ a#b }}", '#SBATCH --comment="{{ a#b }}"\n'),
    ("pbspro", "-l select={{ n }}:ncpus={{ c }} -q a", '#PBS -q a\n#PBS -l "select={{ n }}:ncpus={{ c }}"\n'),
    ("torque", "-N {{ name }}", '#PBS -N "{{ name }}"\n'),
    ("lsf", "-n {{ n }} -W 5", '#BSUB -W 00:05\n#BSUB -n "{{ n }}"\n'),
    ("flux", "-N %(n)s", '#FLUX: --nodes="%(n)s"\n'), ("sge", "-N {{x}}", "#$ -N {{x}}\n")])
def test_one_word_whatever_stands_in_it(name: str, line: str, written_as: str) -> None:
    document, findings = read(name, f"#!/bin/sh\n{PREFIXES[name]}{line}\ndate\n")
    assert not findings.rejected and written(name, document)[0] == f"#!/bin/sh\n{written_as}date\n"


def test_places_and_lines_stay() -> None:
    """Columns count the text as it is, and what is shown is that text; what stood there in the private area too."""
    text = "#!/bin/sh\n#SBATCH -J {{ a b }} c # {{ c }}\ndate {{ d }}\n#SBATCH -q {{ e }}\n"
    with pytest.raises(RejectedError) as caught:
        read("slurm", text)
    found = {(f.line, f.column): f for f in caught.value.findings}
    assert found[2, 22].excerpt == "#SBATCH -J {{ a b }} c # {{ c }}" and found[4, 1].excerpt == "#SBATCH -q {{ e }}"
    document, _ = read("slurm", "#!/bin/sh\ndate {{ d }} %(e)s {{ \ue020 }}\n")
    assert written("slurm", document)[0] == "#!/bin/sh\ndate {{ d }} %(e)s {{ \ue020 }}\n"
