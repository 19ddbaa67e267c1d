"""What a document asks for in words: the tree that is evaluated, every level, what was given, and what it comes to."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings

import sssjob
from sssjob.document.model import Document
from sssjob.request import request_of
from sssjob.request.explaining import explained
from sssjob.request.tree import AllOf, AnyOf, Node, Not, Predicate
from tests.strategies import documents, examples

GROUPS = """<JobGroup><JobDefaults><User>keith</User></JobDefaults><Job><Id>a</Id><State>Idle</State>
<Requested><Duration>43200</Duration></Requested>
<TaskGroup><TaskCount>1</TaskCount><Name>Lead</Name><Executable>lead</Executable><Memory>2048</Memory>
<Resource name="License" type="ESSL2">1</Resource><Feature>Jumbo</Feature></TaskGroup>
<TaskGroup><Name>Crew</Name><Executable>crew</Executable><NodeCount>4</NodeCount><Requested>
<Processors group="-1">12</Processors><Processors conj="Or" group="1">16</Processors><Memory>512</Memory>
<Node aggregation="Pattern">fr15n.*</Node></Requested></TaskGroup></Job></JobGroup>"""


def test_every_level_bare_and_requested_with_the_mended_brackets() -> None:
    """A Requested whose signs are turned is shown as it is evaluated; bare properties of task groups count."""
    assert sssjob.explain(sssjob.read(GROUPS)) == """\
Job a asks for:
  all of
    Duration 43200 s
    User keith (from JobDefaults)
  task group 1, Lead:
    all of
      TaskCount 1
      Memory 2048 MB
      Resource License ESSL2 1
      Feature Jumbo
  task group 2, Crew:
    all of
      one of
        Processors 12
        Processors 16
      Memory 512 MB
      Node pattern fr15n.*
      NodeCount 4
  in all:
    Processors 13: 1 task + Processors 12
    Memory 2560 MB: Memory 2048 + Memory 512
    copies of the executable 2: one for each task and each task group, started by the manager's launcher
"""


def test_and_binds_over_or_where_it_can_be_seen() -> None:
    text = """<Job><Requested><Duration op="LE">50</Duration><Node>n[08-11,20]</Node><Node conj="Or">a;b;c</Node>
        <Feature>f1,f2</Feature><Memory conj="Nand" op="GE">4</Memory></Requested></Job>"""
    assert sssjob.explain(text) == """\
Job job-1 asks for:
  one of
    all of
      Duration at most 50 s
      Node n[08-11,20]
    all of
      Node a;b;c
      Feature f1,f2
      not Memory at least 4 MB
"""


def test_preferences_wishes_and_attributes_of_conditions() -> None:
    text = """<Requested><Memory preference="3" units="GB">8</Memory><Memory preference="1" dynamic="true">4</Memory>
        <Swap preference="-2" op="NE" metric="PerNode" performanceFactor="0.5">8</Swap></Requested>"""
    assert sssjob.explain(text) == """\
Requested asks for:
  all of
    one of the preferences
      Memory 8 GB (weight 3)
      Memory 4 MB [dynamic true] (weight 1)
    wishes
      Swap not 8 MB PerNode [performanceFactor 0.5] (weight 2)
  in all:
    Memory 8 GB: what the conditions come to
"""


def test_amounts_that_add_up_say_how() -> None:
    """What stands plainly is not said again: the Duration here."""
    text = """<Job><Executable>x</Executable><Duration>60</Duration><TaskGroup><TaskCount>6</TaskCount>
        <TaskDistribution type="TasksPerNode">3</TaskDistribution><TaskDefaults><Memory units="GB">2</Memory>
        <Processors>2</Processors></TaskDefaults></TaskGroup></Job>"""
    assert sssjob.explain(text) == """\
Job job-1 asks for:
  Duration 60 s
  task group 1:
    all of
      TaskCount 6
      TaskDistribution TasksPerNode 3
  task group 1, each task:
    all of
      Memory 2 GB (from TaskDefaults)
      Processors 2 (from TaskDefaults)
  in all:
    NodeCount 2: 6 tasks, 3 on a node
    Processors 12: 6 tasks of 2 processors
    Memory 12 GB: 6 tasks of Memory 2 GB
    copies of the executable 6: one for each task, started by the manager's launcher
"""


@pytest.mark.parametrize(("text", "totals"), [
    ("<NodeCount>2</NodeCount><TaskDistribution type='TasksPerNode'>4</TaskDistribution>",
     ["Processors 8: 8 tasks", "tasks 8: 4 on each of 2 nodes"]),
    ("<TaskDistribution type='TasksPerNode'>4</TaskDistribution>",
     ["NodeCount 1: 4 tasks, 4 on a node", "Processors 4: 4 tasks", "tasks 4: 4 on a node"]),
    ("<Processors>8</Processors><TaskDistribution type='ProcessorsPerTask'>2</TaskDistribution>",
     ["tasks 4: 8 processors, 2 a task"]),
    # several chunks may be on several nodes, of which each has as much, though there is but one task
    ("<Memory metric='PerNode' units='GB'>1</Memory><Extension name='ChunkCount' type='Scheduler'>2</Extension>"
     "<TaskGroup><TaskCount>1</TaskCount><TaskDefaults><Processors>1</Processors></TaskDefaults></TaskGroup>",
     ["Processors 2: one in each of 2 chunks", "Memory at least 1 GB: Memory 1 GB PerNode"]),
    ("<TaskDistribution>{1,4}{2}{3,5}</TaskDistribution>",
     ["NodeCount 3: the nodes of the geometry", "Processors 5: 5 tasks", "tasks 5: 5 of the geometry"]),
    ("<Memory metric='PerNode' units='GB'>4</Memory>", ["Memory at least 4 GB: Memory 4 GB PerNode"]),
    ("<Memory metric='PerNode' units='GB'>4</Memory><NodeCount>3</NodeCount>",
     ["Memory 12 GB: 3 nodes of Memory 4 GB"]),
    ("<Requested><Duration>5</Duration><Duration conj='Or'>7</Duration></Requested>",
     ["Duration 5 s: what the conditions come to"]),
    ("<Requested><Processors op='GE'>4</Processors><Processors op='LE'>8</Processors></Requested>",
     ["Processors 4: what the conditions come to"]),
    ("<Requested><Processors op='GE'>4</Processors></Requested>", []),
    ("<TaskGroup><TaskCount>4</TaskCount></TaskGroup><TaskGroup><TaskCount>2</TaskCount></TaskGroup>",
     ["Processors 6: 4 tasks + 2 tasks", "tasks 6: 4 + 2"]),
    ("<Resource name='GPU' type='a100' metric='PerNode'>2</Resource><NodeCount>2</NodeCount>",
     ["Resource GPU a100 4: 2 nodes of GPU a100 2"]),
])
def test_totals_with_how_they_come_about(text: str, totals: list[str]) -> None:
    (one,) = explained(sssjob.read(f"<Job>{text}</Job>"))
    assert list(map(str, one.totals)) == totals


def test_what_contradicts_itself_is_told() -> None:
    text = "<Job><Requested><Processors op='GE'>16</Processors><Processors op='LE'>8</Processors></Requested></Job>"
    assert "nothing meets all of them" in "".join(map(str, explained(sssjob.read(text, findings=sssjob.Findings()))))


def test_of_a_job_that_was_started_what_it_was_given() -> None:
    text = """<Job><Id>a</Id><State>Completed</State><Queue>batch</Queue><Requested><Processors op="GE">12</Processors>
        </Requested><Delivered><Processors consumptionRate="0.78">16</Processors></Delivered><TaskGroup>
        <TaskCount>2</TaskCount><Task><Node>n1</Node></Task><Task><Node>n2</Node></Task></TaskGroup></Job>"""
    assert sssjob.explain(text) == """\
Job a is Completed; it asked for:
  Processors at least 12
  task group 1:
    TaskCount 2
it was given:
  Queue batch
  Processors 16 [consumptionRate 0.78] (Delivered)
  task group 1, task 1:
    Node n1
  task group 1, task 2:
    Node n2
"""


def test_tasks_that_say_the_same_are_one_level() -> None:
    task = "<Task><Memory>5</Memory></Task>"
    text = f"<TaskGroup>{3 * task}<Task><Memory>6</Memory></Task></TaskGroup>"
    assert sssjob.explain(text).splitlines()[1:5] == [
        "  task group 1, each of tasks 1 to 3:", "    Memory 5 MB", "  task group 1, task 4:", "    Memory 6 MB"]


def _conditions(node: Node) -> int:
    if isinstance(node, Predicate | Not):
        return 1
    assert isinstance(node, AllOf | AnyOf) or node.items
    return sum(map(_conditions, node.items))


@given(documents())
@settings(max_examples=examples(30), deadline=None)
def test_every_condition_that_is_evaluated_is_told(document: Document) -> None:
    """As many conditions as the trees of all levels have (tasks that say the same are counted as often)."""
    for one, (job, defaults) in zip(explained(document), document.jobs(), strict=False):
        told = sum(level.tasks * json.dumps(level.record()["asks"]).count('"property"') for level in one.levels)
        shape = sum(level.tasks * json.dumps(level.record()["asks"]).count(f'"property": "{tag}"')
                    for level in one.levels for tag in ("TaskCount", "TaskDistribution"))
        request = request_of(job, defaults)
        assert told - shape == sum(_conditions(level.expression.root) + len(level.overridden)
                                   for level in request.levels)
        assert str(one)
