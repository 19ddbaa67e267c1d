"""The nodes of a Slurm as offers: a recorded answer, the forms of later releases, and answers that are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import sssjob
from sssjob.conversion.site import read_site
from sssjob.errors import RejectedError, UsageError
from sssjob.request import match
from sssjob.translators import ReadContext, WriteContext, get

RECORDED = (Path(__file__).parents[1] / "fixtures" / "slurm-22.05.8" / "machine" / "sinfo.json").read_bytes()


def node(name: str, **more: Any) -> dict[str, Any]:
    """A node as releases from 23.02 show it."""
    return {"name": name, "partitions": ["batch"], "cpus": 8, "real_memory": 16000, "state": ["IDLE"],
            "features": ["ib", "zen"], "alloc_cpus": 0, "gres": "gpu:a100:4(S:0-1),license:2"} | more


def offers(data: bytes | list[Any], site: str | None = None, **options: str) -> sssjob.Document:
    """The document of an answer, or of a list of nodes."""
    text = data if isinstance(data, bytes) else json.dumps({"nodes": data, "meta": {}}).encode()
    context = ReadContext(options=options, site=None if site is None else read_site(site))
    return get("sinfo-json").read(text, context)


def rows(document: sssjob.Document) -> list[tuple[str, ...]]:
    """(Id, nodes, processors, memory, features, names) of each offer."""
    names = ("Id", "NodeCount", "Processors", "Memory", "Feature", "Node")
    return [tuple(str(job.value(name) if job.value(name) is not None else "") for name in names)
            for job, _ in document.jobs()]


def test_recorded() -> None:
    assert rows(offers(RECORDED)) == [
        ("batch", "3", "12", "4000", "lab", "node[1-3]"),
        ("batch.2", "2", "8", "4000", "lab,odd", "node[1,3]"),
        ("batch.3", "1", "4", "4000", "even,lab", "node2"),
        ("debug", "1", "4", "4000", "lab,odd", "node1"),
        ("closed", "3", "12", "4000", "lab", "node[1-3]"),
        ("closed.2", "2", "8", "4000", "lab,odd", "node[1,3]"),
        ("closed.3", "1", "4", "4000", "even,lab", "node2")]
    assert rows(offers(RECORDED, nodes="idle")) == []


def test_a_later_release_with_a_profile() -> None:
    """Lists of states and features; the profile says what the answer does not."""
    site = "name = 'a'\nmachine = 'alpha'\n[queues.batch]\nduration = 3600\n"
    nodes = [node("n1"), node("n2", state=["IDLE", "DRAIN"]), node("n3", state=["MIXED"], alloc_cpus=2)]
    document = offers(nodes, site)
    assert sssjob.write(document) == """<JobGroup>
  <Id>alpha</Id>
  <Job>
    <Id>batch</Id>
    <Machine>alpha</Machine>
    <Queue>batch</Queue>
    <NodeCount>2</NodeCount>
    <Processors>16</Processors>
    <Memory units="MB" metric="PerNode">16000</Memory>
    <Resource name="GPU" type="a100" metric="PerNode">4</Resource>
    <Feature aggregation="List">ib,zen</Feature>
    <Duration>3600</Duration>
    <Extension type="Scheduler" name="NodeProcessors">8</Extension>
    <Node aggregation="Range">n[1,3]</Node>
  </Job>
</JobGroup>
"""
    assert rows(offers([node("n1"), node("n3", alloc_cpus=2)], nodes="idle")) == [
        ("batch", "1", "8", "16000", "ib,zen", "n1")]


@pytest.mark.parametrize(("options", "met"), [
    ("-N 2 --gres=gpu:4 --mem=15G -t 60 -C ib -p batch", True), ("-N 3", False), ("-t 61", False),
    ("-n 16", True), ("-n 17", False), ("-C arm", False), ("-p debug", False), ("-N 1 --gres=gpu:5", False),
])
def test_match(options: str, met: bool) -> None:
    asked = get("slurm").read(f"#!/bin/sh\n#SBATCH {options}\ndate\n".encode(), ReadContext())
    given = offers([node("n1"), node("n2")], "name = 'a'\n[queues.batch]\nduration = 3600\n")
    assert match(asked, given).met is met


@pytest.mark.parametrize(("text", "why"), [
    (b"{", "SSS111"), (b"[]", "there is no list of nodes"), (b'{"nodes": 3}', "there is no list of nodes"),
    (b'{"sinfo": []}', "`scontrol show nodes --json` does"), (b'{"nodes": [{}]}', "node 1 of the list has no name"),
    (b'{"nodes": [{"name": "n", "cpus": "x"}]}', "node n: 'x' is no number"), (b"[" * 100_000, "nested too deeply"),
])
def test_no_answer(text: bytes, why: str) -> None:
    with pytest.raises(RejectedError) as refused:
        offers(text)
    assert why in str(refused.value)


def test_refusals() -> None:
    with pytest.raises(UsageError, match="nodes is one of usable, idle, not 'all'"):
        offers(RECORDED, nodes="all")
    with pytest.raises(UsageError, match="sinfo-json is read, and not written"):
        get("sinfo-json").write(offers(RECORDED), WriteContext())


def test_nodes_that_differ() -> None:
    """Partitions whose nodes differ in size give an offer for each size beside that of all."""
    nodes = [node(f"n{number}", partitions=["batch", "long"], cpus=8 << number % 3) for number in range(9)]
    text = json.dumps({"nodes": nodes, "meta": {}}).encode()
    document = offers(text)
    assert [row[:3] for row in rows(document)] == [
        (name, count, processors) for queue in ("batch", "long") for name, count, processors in (
            (queue, "9", "72"), (f"{queue}.2", "3", "24"), (f"{queue}.3", "3", "48"),
            (f"{queue}.4", "3", "96"))]


@pytest.mark.parametrize(("state", "taken"), [
    (["IDLE"], True), (["MIXED", "PLANNED"], True), (["IDLE", "CLOUD", "POWERED_DOWN"], True), (["ALLOCATED"], True),
    (["IDLE", "MAINTENANCE"], False), (["DOWN", "INVALID_REG"], False), (["IDLE", "REBOOT_ISSUED"], False),
    (["IDLE", "NOT_RESPONDING"], False), (["IDLE", "RESERVED"], False), (["FUTURE"], False),
])
def test_states_of_nodes(state: list[str], taken: bool) -> None:
    """Nodes that are powered down are woken for a job; others are left out as long as they take none."""
    assert [row[-1] for row in rows(offers([node("n1", state=state)]))] == (["n1"] if taken else [])


def test_a_partition_called_like_a_part_of_another() -> None:
    nodes = [node("n1", partitions=["batch", "batch.2"]), node("n2", cpus=4)]
    assert [(row[0], row[-1]) for row in rows(offers(nodes))] == [
        ("batch", "n[1-2]"), ("batch.3", "n1"), ("batch.4", "n2"), ("batch.2", "n1")]
