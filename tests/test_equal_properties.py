"""Properties that say the same at several places: a document that is read holds one object for all of them, and every
door names the place that is meant."""

from __future__ import annotations

import pytest

from sssjob.conversion.compare import differences
from sssjob.conversion.intake import gate
from sssjob.findings import Findings, Policy
from sssjob.request import match
from sssjob.request.explaining import explained
from sssjob.translators import WriteContext, get
from sssjob.translators.lint import lint
from tests.laws.documents import job_of, read

GROUP = ('<TaskGroup>\n<TaskCount>{}</TaskCount>\n<TaskDistribution type="TasksPerNode">4</TaskDistribution>\n'
         '<Requested>\n<NodeCount>2</NodeCount>\n<Processors{}>9</Processors>\n{}</Requested>\n</TaskGroup>\n')
MEMORY = "<Memory units='GB'>3</Memory>\n"
LEAST = " op='LE'"


def job(*groups: str) -> str:
    """A job of two lines and these task groups, each of eight lines, nine with memory."""
    return "<Job>\n<Executable>/bin/x</Executable>\n" + "".join(groups) + "</Job>"


def told(findings: Findings) -> list[str]:
    """Line, path, rule and subject of each finding."""
    return [f"{f.line} {f.path} {f.rule} {f.subject}" for f in findings]


@pytest.mark.parametrize(("counts", "line", "group"), [((9, 8), 5, 1), ((8, 9), 13, 2)])
def test_check_names_the_group_whose_counts_do_not_fit(counts: tuple[int, int], line: int, group: int) -> None:
    """Nine tasks on two nodes are more than four on each, of eight nothing is wrong."""
    findings = gate(read(job(*(GROUP.format(count, "", "") for count in counts))))
    assert told(findings) == [f"{line} /Job/TaskGroup[{group}]/TaskDistribution SSS414 TaskDistribution"]


def test_check_names_the_group_where_a_condition_comes_to_too_little() -> None:
    """At most nine processors come to one, which no line says: the group is named, no other one."""
    findings = gate(read(job(GROUP.format(8, "", ""), GROUP.format(8, LEAST, ""))))
    assert told(findings) == ["11 /Job/TaskGroup[2] SSS414 Processors"]


def test_check_takes_alternatives_of_defaults_as_they_are_inherited() -> None:
    """The job says its processors itself, and inherits of two alternatives the other one alone."""
    findings = gate(read("<JobGroup><Id>g</Id><JobDefaults><Requested>\n<Processors>4</Processors>\n"
                         "<NodeCount conj='Or'>9</NodeCount>\n</Requested></JobDefaults>\n<Job><Id>a</Id><Requested>\n"
                         "<Processors>4</Processors>\n</Requested></Job></JobGroup>"))
    assert told(findings) == ["3 /JobGroup/JobDefaults/Requested/NodeCount SSS423 NodeCount"]


def test_diff_sees_what_one_of_two_groups_says_no_more() -> None:
    """The counts of the second group are conditions, so that its memory is compared by itself."""
    one, other = (read(job(GROUP.format(8, "", MEMORY), GROUP.format(8, LEAST, more))) for more in (MEMORY, ""))
    assert [(d.subject, d.one, d.other) for d in differences(one, other)[0]] == [
        ("job, task group 2: Memory", "3 GB", None)]


def test_explain_says_where_each_of_two_equal_properties_comes_from() -> None:
    """What was asked for stands in the defaults, what was given in the job."""
    text = ("<JobGroup><Id>g</Id><JobDefaults><Requested><Feature>ib</Feature></Requested></JobDefaults><Job><Id>a</Id>"
            "<State>Running</State><Feature>ib</Feature></Job></JobGroup>")
    (explanation,) = explained(read(text))
    (level,) = explanation.levels
    assert level.asks is not None and (level.asks.text, level.asks.origin) == ("Feature ib", "JobDefaults")
    assert [(part.text, part.origin) for part in level.given] == [("Feature ib", "")]


def test_explain_shows_a_distribution_at_each_group_that_says_it() -> None:
    """Also where the job says the same, which a group without one inherits."""
    text = ("<Job><TaskDistribution type='TasksPerNode'>4</TaskDistribution><TaskGroup><TaskCount>8</TaskCount>"
            "<TaskDistribution type='TasksPerNode'>4</TaskDistribution></TaskGroup></Job>")
    (explanation,) = explained(read(text))
    assert [level.asks is not None and "TaskDistribution" in str(level.asks) for level in explanation.levels[:2]] == [
        True, True]


def test_match_asks_for_the_memory_of_each_group() -> None:
    request = job_of(read(job(GROUP.format(8, "", MEMORY), GROUP.format(8, "", MEMORY))))
    counts = "<NodeCount>4</NodeCount><Processors>18</Processors>"
    for memory, met in ((6, True), (5, False)):
        offer = job_of(read(f"<Job>{counts}<Memory units='GB'>{memory}</Memory></Job>"))
        assert match(request, offer).met is met


@pytest.mark.parametrize("first", [True, False])
def test_convert_names_the_group_whose_property_is_lost(first: bool) -> None:
    """Neither of two equal adapters can be asked for: each is told at its own line."""
    groups = [GROUP.format(8, "", "<Network>ib0</Network>\n"), GROUP.format(8, LEAST, "<Network>ib0</Network>\n")]
    document = read(job(*(groups if first else groups[::-1])))
    findings = Findings()
    findings.places = document.places
    get("slurm").write(document, WriteContext(findings, policy=Policy.WARN))
    lines = [f.line for f in findings if f.subject == "Network"]
    assert lines == [9, 18]


def test_lint_names_each_of_two_equal_directives() -> None:
    """Of a script each directive is a property of its own."""
    findings = lint("slurm", b"#!/bin/sh\n#SBATCH --time=0\n#SBATCH --mem=4G\n#SBATCH --time=0\ntrue\n", "x")
    assert [(f.rule, f.line) for f in findings] == [("SSS523", 2), ("SSS523", 4)]


def test_a_condition_that_two_groups_state_is_told_at_both() -> None:
    """They are one condition of the job for Grid Engine, which cannot say it."""
    pattern = "<Node aggregation='Pattern'>n.*</Node>\n"
    document = read(job(GROUP.format(8, "", pattern), GROUP.format(8, "", pattern)))
    findings = Findings()
    findings.places = document.places
    get("sge").write(document, WriteContext(findings, policy=Policy.WARN))
    assert [f.line for f in findings if f.subject == "Node"] == [9, 18]


@pytest.mark.parametrize("name", ["psij", "sge", "cobalt", "htcondor", "flux", "flux-jobspec"])
@pytest.mark.parametrize("more", ["", "<TaskGroup>\n<TaskCount>2</TaskCount>\n<Id>c</Id>\n</TaskGroup>\n"])
def test_what_equal_groups_lose_is_told_at_each_where_they_are_made_one(name: str, more: str) -> None:
    """Of groups that are not alike only the first is carried, and told of."""
    group = ("<TaskGroup>\n<TaskCount>2</TaskCount>\n<Id>{}</Id>\n<Requested>\n<Memory metric='PerGPU'>3</Memory>\n"
             "</Requested>\n</TaskGroup>\n")
    findings = Findings()
    document = read(job(group.format("a"), group.format("b"), more))
    findings.places = document.places
    get(name).write(document, WriteContext(findings, policy=Policy.WARN))
    assert [f.line for f in findings if f.subject == "Memory"] == ([7] if more else [7, 14])
    ids = [f.line for f in findings if f.subject == "Id"]
    assert ids == ([5] if more and name == "psij" else [5, 12, *([19] if more else [])])


def test_what_a_submit_command_refuses_is_told_at_the_property_of_each_group() -> None:
    """An option of the layout is written from one property of the group, though it has no row of its own."""
    groups = [f"<TaskGroup>\n<TaskCount>2</TaskCount>\n<Requested>\n<Memory metric='PerGPU'>{size}</Memory>\n"
              "</Requested>\n</TaskGroup>\n" for size in (3, 4)]
    findings = Findings()
    document = read(job(*groups))
    findings.places = document.places
    get("slurm").write(document, WriteContext(findings, policy=Policy.WARN))
    refused = [(f.line, f.subject) for f in findings if "sbatch refuses it" in f.message]
    assert refused == [(6, "Memory"), (12, "Memory")]
