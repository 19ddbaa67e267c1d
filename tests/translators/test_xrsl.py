"""xRSL: another text for what ADL says, with comments, quotes and substitutions of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.document.model import Document, Job
from sssjob.errors import RejectedError
from sssjob.findings import Findings, Policy
from sssjob.translators import ReadContext, WriteContext, get
from sssjob.translators.recognise import guess
from sssjob.translators.specs._xrsl_text import Relation, parsed, quoted
from sssjob.translators.specs.xrsl import seconds_of
from sssjob.xml.reader import read_document

JOB = Path(__file__).parents[1] / "fixtures" / "xrsl-constructed" / "job.xrsl"
WRITTEN = """&
(jobname = "cfd")
(executable = "/bin/app")
(arguments = "a b" "it's" "plain")
(stdin = "/top/inx")
(stdout = "o")
(stderr = "o")
(gmlog = "log")
(lifetime = "604800 seconds")
(notify = "qe c@d.org")
(notify = "be a@b.org")
(starttime = "20300102030405Z")
(architecture = "amd64")
(runtimeenvironment = "ENV/PROXY" "a" "b")
(runtimeenvironment = "APPS/X-1.0")
(memory = "2000")
(disk = "5")
(count = "10")
(countpernode = "4")
(exclusiveexecution = "yes")
(queue = "grid")
(cputime = "5400 seconds")
(walltime = "129600 seconds")
(environment = ("A" "1 2") ("B" "x"))
(inputfiles = ("d" "http://h/d") ("in" "http://h/in" "threads=5") ("run.sh" ""))
(outputfiles = ("res" "gsiftp://h/res") ("o" ""))
(executables = "run.sh")
"""


def read(text: str, policy: Policy | None = None, name: str = "xrsl") -> tuple[Document, Findings]:
    context = ReadContext("j", Findings("j"), policy=policy)
    return get(name).read(text.encode(), context), context.findings


def job(relations: str) -> Job:
    return next(j for j, _ in read(f"&{relations}")[0].jobs())


def write(document: Document, name: str = "xrsl") -> tuple[str, list[tuple[str, str, str]]]:
    context = WriteContext(Findings("j"), policy=Policy.WARN)
    text = get(name).write(document, context)
    return text, [(f.kind, f.subject, f.severity) for f in context.findings]


def test_what_is_read_is_written_and_is_the_same_in_adl() -> None:
    document, findings = read(JOB.read_text())
    assert [(f.rule, f.subject, f.line) for f in findings] == [("SSS301", "cache", 10), ("SSS502", "|", 11)]
    text, reported = write(document)
    again, second = read(text)
    assert text == WRITTEN and reported == [("approximated", "NotificationList", "info")]
    assert list(second) == [] and write(again)[0] == text and guess(JOB.read_bytes())[0].name == "xrsl"
    description = write(document, "adl")[0]
    assert description == write(again, "adl")[0]
    assert write(read(description, name="adl")[0])[0] == text


@pytest.mark.parametrize(("text", "words", "tuples"), [
    ("a b", ["a", "b"], []), ("'it''s'", ["it's"], []), ('"say ""no"""', ['say "no"'], []),
    ("^!a\"'b!!c!", ["a\"'b!c"], []),
    ('a"b"', ["ab"], []), ("a (* x *) b", ["a", "b"], []), ("a # b", ["ab"], []), ('"" ""', ["", ""], []),
    ('("a" "b")(c)', [], [["a", "b"], ["c"]]), ('x ("a")', ["x"], [["a"]]),
    ('"(* no comment *)"', ["(* no comment *)"], []),
    ("", [], []), ('"two\nlines"', ["two\nlines"], [])])
def test_strings(text: str, words: list[str], tuples: list[list[str]]) -> None:
    relation = parsed(f"&(Some_Name = {text})").parts[0]
    assert isinstance(relation, Relation)
    assert (relation.name, relation.operator) == ("somename", "=")
    assert (relation.words, relation.tuples) == (words, tuples)


@given(st.lists(st.text()))
def test_any_string_comes_back_from_its_quotes(words: list[str]) -> None:
    relation = parsed(f"&(x = {' '.join(map(quoted, words))})").parts[0]
    assert isinstance(relation, Relation) and relation.words == words


@given(st.text("&|+()=<>!\"'^#$*ab \n", max_size=30))
def test_no_text_is_more_than_refused(text: str) -> None:
    for whole in (text, f"&(executable=x){text}", f"&(arguments={text})"):
        try:
            read(whole)
        except RejectedError as error:
            assert error.findings


@pytest.mark.parametrize(("text", "seconds"), [
    ("5", 300), ("60 minutes", 3600), ("1 day, 12 hours", 129600), ("1w", 604800), ("1 day 12", 129600), ("2h30", 9000),
    ("90 seconds", 90), ("PT1H30M", 5400), ("P1DT1S", 86401), ("P2W", 1209600), ("", None), ("soon", None),
    ("1 year", None), ("-5", None), ("P", None), ("1.5h", None)])
def test_spans_of_time(text: str, seconds: int | None) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(("text", "line"), [
    ("", 1), ("executable=x", 1), ("&", 1), ("&(executable=x", 1), ("&(executable=x))", 1), ("&\n(executable x)", 2),
    ("&(executable='x)", 1), ("&(executable=^)", 1), ("&(stdin=$(HOME))", 1), ("&(stdin=$HOME)", 1),
    ("&(stdin=# x)", 1),
    ("&(stdin=x #)", 1), ("+(&(executable=a))\n(&(executable=b))", 1), ("&\n(+(&(executable=a)))", 2),
    (f"{'&(' * 30}a=b{')' * 30}", 1), ("&(stdin='\x01')", 1),
    ("&(memory=2GB)", 1), ("&(count=0)", 1), ("&(count=two)", 1),
    ("&\n(count=4)\n(countpernode=0)", 3), ("&(countpernode=4)", 1), ("&(exclusiveexecution=maybe)", 1),
    ("&(join=yes)", 1),
    ("&(stdout=a)(stderr=b)\n(join=yes)", 2), ("&(queue=a)\n(queue=b)", 2), ("&(walltime=soon)", 1),
    ("&(queue=a b)", 1),
    ("&(queue=(a))", 1), ("&(environment=(A))", 1), ("&(arguments=(a))", 1), ("&(inputfiles=(a))", 1),
    ("&(inputfiles=a)", 1), ('&(outputfiles=("a" "http://h/a" "threads"))', 1), ("&(executables=x)", 1),
    ("&(notify=be)", 1), ('&(notify="x a@b.org")', 1), ("&(nodeaccess=up)", 1), ("&(runtimeenvironment=)", 1),
    ('&(runtimeenvironment="")', 1),
    ("&(starttime=soon)", 1), ("&(memory=(* a *) 1 2)", 1)])
def test_what_arc_would_refuse_is_refused(text: str, line: int) -> None:
    with pytest.raises(RejectedError) as error:
        read(text)
    assert [f.line for f in error.value.findings if f.severity == "error"] == [line]


@pytest.mark.parametrize(("text", "subject"), [
    ("(cache=no)", "cache"), ("(queue!=a)", "queue"), ("(memory>=5)", "memory"), ("(notify='c a@b.org')", "notify"),
    ("(grid_time=5)", "gridtime")])
def test_the_policy_decides_about_what_is_not_known(text: str, subject: str) -> None:
    assert [(f.kind, f.subject, f.severity) for f in read(f"&{text}")[1]] == [("unknown", subject, "warning")]
    with pytest.raises(RejectedError):
        read(f"&{text}", Policy.REJECT)


@pytest.mark.parametrize("text", ["+(&(executable=a))", "|(&(executable=a))", "&(&(executable=a))",
                                  "&(|(executable=a))"])
def test_one_job_however_it_is_wrapped(text: str) -> None:
    document, findings = read(text)
    assert next(j for j, _ in document.jobs()).executable == "a" and list(findings) == []


def test_an_error_in_the_file_of_the_output_goes_there() -> None:
    error = job("(join=yes)(stdout=o)").first("ErrorFile")
    assert error is not None and error.attributes == {"redirectList": "Merge"}


@pytest.mark.parametrize(("inside", "expected"), [
    ("<Requested><Memory units='KB'>100</Memory></Requested>", ("approximated", "Memory", "warning")),
    ("<Requested><Swap units='MB'>100</Swap></Requested>", ("dropped", "Swap", "warning")),
    ("<Extension name='Comment' type='Scheduler'>x</Extension>", ("dropped", "Extension Comment", "warning")),
    ("<Extension name='Coprocessor' type='adl'>CUDA</Extension>", ("dropped", "Extension Coprocessor", "warning")),
    ("<Extension name='WipeTime' type='adl'>2030-01-01</Extension>", ("dropped", "Extension WipeTime", "warning")),
    ("<Extension name='OperatingSystemVersion' type='adl'>9</Extension>",
     ("dropped", "Extension OperatingSystemVersion", "warning"))])
def test_what_it_cannot_say_is_told(inside: str, expected: tuple[str, str, str]) -> None:
    text = f"<Job><Executable>x</Executable>{inside}</Job>"
    assert expected in write(read_document(text.encode(), profile="3.1"))[1]


def test_a_script_is_a_file_that_the_client_uploads() -> None:
    document = get("slurm").read(b"#!/bin/sh\n#SBATCH -J cfd -n 4 --mem-per-cpu=1500M -t 90 -o out.txt\n./a\n",
                                 ReadContext())
    assert write(document)[0] == """&
(jobname = "cfd")
(executable = "cfd.sh")
(stdout = "out.txt")
(stderr = "out.txt")
(memory = "1500")
(count = "4")
(walltime = "5400 seconds")
(inputfiles = ("cfd.sh" ""))
(outputfiles = ("out.txt" ""))
(executables = "cfd.sh")
"""
