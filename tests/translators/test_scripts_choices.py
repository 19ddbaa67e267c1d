"""Alternatives and exclusions in the expressions that each resource manager has: written, told, and taken back."""

from __future__ import annotations

import pytest

from sssjob.document.element import Container, Property
from sssjob.findings import Findings, Policy
from sssjob.translators import ReadContext, WriteContext, get
from sssjob.xml.reader import read_document

FEATURES = "<Feature>a</Feature><Feature conj='Or'>b</Feature>"
MIXED = "<Feature>c</Feature><Feature group='1'>a</Feature><Feature conj='Or' group='-1'>b</Feature>"
ABSENT = "<Feature op='NE'>a</Feature>"
NODES = "<Node>n1</Node><Node conj='Or'>n2</Node>"
LISTED = "<Node aggregation='List' delimiter=';'>n1;n2</Node>"
BOTH = "<Node>n1</Node><Node>n2</Node>"
NONE = "<Node op='NE' aggregation='List'>n1,n2</Node>"
QUEUES = "<Queue>q</Queue><Queue conj='Or'>r</Queue>"
WISH = "<Feature preference='-1'>a</Feature>"
BESIDE = "<Processors>2</Processors><Node conj='Or'>n1</Node>"

#: Body of Requested, and of each dialect what is said and which property is told of.
CASES: list[tuple[str, dict[str, tuple[str, str | None]]]] = [
    (FEATURES, {"slurm": ('--constraint="a|b"', None), "lsf": ('-R "select[a || b]"', "Feature"),
                "flux": ('--requires="a|b"', None), "htcondor": ("requirements = a == True || b == True", "Feature"),
                "pbspro": ("", "Feature"), "torque": ("", "Feature"), "sge": ("", "Feature"),
                "cobalt": ("", "Feature")}),
    (MIXED, {"slurm": ('--constraint="(c&a)|(c&b)"', None), "lsf": ('-R "select[c && (a || b)]"', "Feature"),
             "flux": ('--requires="(a|b)"', None), "pbspro": ("c=true", "Feature")}),
    (ABSENT, {"slurm": ("", "Feature"), "lsf": ('-R "select[!a]"', "Feature"), "flux": ("--requires=-a", None),
              "htcondor": ("requirements = a =!= True", "Feature")}),
    (NODES, {"slurm": ("", "Node"), "lsf": ('-m "n1 n2"', None), "flux": ("--requires=host:n1,n2", None),
             "sge": ("-l h=n1|n2", None), "cobalt": ("--attrs location=n1,n2", None),
             "htcondor": ('Machine == "n1" || Machine == "n2"', None), "pbspro": ("", "Node"), "torque": ("", "Node")}),
    (LISTED, {"slurm": ("", "Node"), "lsf": ('-m "n1 n2"', None), "sge": ("-l h=n1|n2", None)}),
    (LISTED + "<NodeCount>2</NodeCount>", {"slurm": ('--nodelist="n[1-2]"', "Node")}),
    (BOTH, {"slurm": ('--nodelist="n[1-2]"', None), "lsf": ('-m "n1 n2"', "Node"), "sge": ("-l h=n1|n2", "Node"),
            "flux": ("--requires=host:n1,n2", "Node"), "cobalt": ("--attrs location=n1,n2", "Node"),
            "htcondor": ('Machine == "n1" || Machine == "n2"', "Node")}),
    (NONE, {"slurm": ('--exclude="n[1-2]"', None), "lsf": ("select[hname!=n1 && hname!=n2]", None),
            "sge": ("-l h=!n1&!n2", None), "flux": ("--requires=-host:n1,n2", None),
            "htcondor": ('Machine != "n1" && Machine != "n2"', None), "pbspro": ("", "Node")}),
    (QUEUES, {"slurm": ("--partition=q,r", None), "lsf": ('-q "q r"', None), "sge": ("-q q,r", None),
              "pbspro": ("-q q", "Queue"), "torque": ("-q q", "Queue"), "cobalt": ("-q q", "Queue"),
              "flux": ("--queue=q", "Queue")}),
    (WISH, {"slurm": ("", "Feature"), "lsf": ("", "Feature")}),
    (BESIDE, {"slurm": ("", "Node"), "lsf": ("", "Node"), "sge": ("", "Node"), "flux": ("", "Node"),
              "htcondor": ("", "Node"), "cobalt": ("", "Node")}),
]
ROWS = [pytest.param(body, name, text, told, id=f"{name}-{body}")
        for body, by in CASES for name, (text, told) in by.items()]


def written(name: str, body: str) -> tuple[str, set[str]]:
    findings = Findings("x")
    document = read_document(f"<Job><Executable>/bin/true</Executable><Requested>{body}</Requested></Job>")
    return get(name).write(document, WriteContext(findings, policy=Policy.WARN)), {f.subject for f in findings}


@pytest.mark.parametrize(("body", "name", "text", "expected"), ROWS)
def test_what_is_asked_of_names(body: str, name: str, text: str, expected: str | None) -> None:
    script, subjects = written(name, body)
    names = {"Feature", "Node", "Queue"}
    assert subjects & names == ({expected} if expected else set())
    options = script.partition("/bin/true")[0] if name != "htcondor" else script
    assert text in options
    if not text:
        assert not any(sign in options for sign in (
            "constraint", "nodelist", "exclude", "select[", "-m ", "requires", "h=", "location", "requirements",
            "=true", "host="))


def asked(name: str, lines: str) -> list[tuple[str, str, dict[str, str]]]:
    """The properties of names that a script asks for, in order."""
    job = next(j for j, _ in get(name).read(lines.encode(), ReadContext(policy=Policy.WARN)).jobs())
    made: list[tuple[str, str, dict[str, str]]] = []

    def walk(scope: Container) -> None:
        for item in scope.items:
            if isinstance(item, Property) and (item.tag in ("Feature", "Node", "Queue", "Machine", "Reservation")
                                               or item.get("type") == name):
                made.append((item.tag, item.text, {k: v for k, v in item.attributes.items() if k != "type"}))
            elif isinstance(item, Container):
                walk(item)

    walk(job)
    return made


OPEN, OR, CLOSE = {"group": "1"}, {"conj": "Or"}, {"conj": "Or", "group": "-1"}


@pytest.mark.parametrize(("name", "lines", "properties"), [
    ("slurm", '#SBATCH -C "a|b"', [("Feature", "a", OPEN), ("Feature", "b", CLOSE)]),
    ("slurm", '#SBATCH -C "(a&b)|c"', [("Feature", "a", OPEN), ("Feature", "b", {}), ("Feature", "c", CLOSE)]),
    ("slurm", '#SBATCH -C "a&(b|c)"', [("Feature", "a", {}), ("Feature", "b", OPEN), ("Feature", "c", CLOSE)]),
    ("slurm", '#SBATCH -C "a&b|c"', [("Extension", "a&b|c", {"name": "constraint"})]),
    ("slurm", '#SBATCH -C "[a|b]"', [("Extension", "[a|b]", {"name": "constraint"})]),
    ("slurm", "#SBATCH -w n[1-2],m", [("Node", "n1", {}), ("Node", "n2", {}), ("Node", "m", {})]),
    ("slurm", "#SBATCH -w n[1-999]", [("Node", "n[1-999]", {"aggregation": "Range"})]),
    ("slurm", "#SBATCH -w ./hosts", [("Extension", "./hosts", {"name": "nodelist"})]),
    ("slurm", "#SBATCH -x n[1-2]", [("Node", "n[1-2]", {"aggregation": "Range", "op": "NE"})]),
    ("slurm", "#SBATCH -p q,r", [("Queue", "q", OPEN), ("Queue", "r", CLOSE)]),
    ("slurm", "#SBATCH -p q", [("Queue", "q", {})]),
    ("slurm", "#SBATCH -M one,two", [("Machine", "one", OPEN), ("Machine", "two", CLOSE)]),
    ("slurm", "#SBATCH --reservation=one,two", [("Reservation", "one", OPEN), ("Reservation", "two", CLOSE)]),
    ("lsf", '#BSUB -m "n1 n2"', [("Node", "n1,n2", {"aggregation": "List"})]),
    ("lsf", '#BSUB -m "n1+1 n2"', [("Extension", "n1+1 n2", {"name": "m"})]),
    ("lsf", '#BSUB -q "q r"', [("Queue", "q", OPEN), ("Queue", "r", CLOSE)]),
    ("lsf", '#BSUB -R "select[a && (b || !c) && hname!=n1]"', [
        ("Feature", "a", {}), ("Feature", "b", OPEN), ("Feature", "c", {"conj": "Or", "op": "NE", "group": "-1"}),
        ("Node", "n1", {"op": "NE"})]),
    ("sge", "#$ -q q,r", [("Queue", "q", OPEN), ("Queue", "r", CLOSE)]),
    ("sge", '#$ -l h="n1|n2"', [("Node", "n1", OPEN), ("Node", "n2", CLOSE)]),
    ("sge", '#$ -l h="!n1&!n2"', [("Node", "n1", {"op": "NE"}), ("Node", "n2", {"op": "NE"})]),
    ("sge", '#$ -l h="n1|!n2"', [("Extension", "n1|!n2", {"name": "l h"})]),
    ("flux", '#FLUX: --requires="a|(b&-c)"', [
        ("Feature", "a", OPEN), ("Feature", "b", OR), ("Feature", "c", {"op": "NE", "group": "-1"})]),
    ("htcondor", 'executable = x\nrequirements = (Machine == "n1" || Machine == "n2") && (A || B)\nqueue', [
        ("Node", "n1", OPEN), ("Node", "n2", CLOSE), ("Feature", "A", OPEN), ("Feature", "B", CLOSE)]),
    ("htcondor", 'executable = x\nrequirements = Machine == "n1" || A\nqueue', [
        ("Extension", 'Machine == "n1" || A', {"name": "requirements"})]),
])
def test_what_a_script_asks_of_names(name: str, lines: str, properties: list[tuple[str, str, dict[str, str]]]) -> None:
    assert asked(name, lines if name == "htcondor" else f"#!/bin/sh\n{lines}\nhostname\n") == properties


@pytest.mark.parametrize(("target", "option"), [
    ("torque", "#PBS -l nodes=n08+n09+n10"), ("pbspro", "#PBS -l select=1:host=n08+1:host=n09+1:host=n10")])
@pytest.mark.parametrize(("attributes", "names"), [('aggregation="Range"', "n[08-10]"),
                                                   ('aggregation="List"', "n08,n09,n10")])
def test_any_of_as_many_nodes_as_are_asked_for_are_all_of_them(attributes: str, names: str, target: str, option: str
                                                               ) -> None:
    for count in (3, 2):
        text = (f"<Job><Executable>/bin/x</Executable><Requested><Node {attributes}>{names}</Node>"
                f"<NodeCount>{count}</NodeCount></Requested></Job>")
        findings = Findings("s")
        written = get(target).write(read_document(text.encode()), WriteContext(findings, policy=Policy.WARN))
        assert (option in str(written).splitlines()) is (count == 3)
        assert [f.subject for f in findings if f.subject == "Node"] == ["Node"] * (count == 2)
