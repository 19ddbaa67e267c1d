"""What machines answer, read as offers: recorded answers (those of HTCondor and ARC are constructed), and bad ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sssjob
from sssjob.conversion.site import read_site
from sssjob.errors import RejectedError, UsageError
from sssjob.lrm.nodes import TEN_YEARS_S, Limits, Node, Shape
from sssjob.lrm.pbs_nodes import in_queues, queues_shown
from sssjob.lrm.slurm_nodes import partitions_shown
from sssjob.request import match
from sssjob.translators import ReadContext, WriteContext, get
from sssjob.translators.recognise import guess
from sssjob.translators.specs._offers import offers
from sssjob.xml.writer import write_document

FIXTURES = Path(__file__).parents[1] / "fixtures"
#: Format -> the answer in the fixtures, and what is read of it: Id, Queue, nodes, processors, memory, GPUs, Feature,
#: Duration, Node.
ANSWERS: dict[str, tuple[str, list[tuple[str, ...]]]] = {
    "sinfo-json": ("slurm-22.05.8/machine/sinfo.json", [
        ("batch", "batch", "3", "12", "4000", "2", "lab", "", "node[1-3]")]),
    "pbsnodes": ("openpbs-23.06.06/machine/pbsnodes.json", [("a", "", "1", "8", "24105", "", "", "", "head")]),
    "pbsnodes text": ("slurm-torque-22.05.8/machine/pbsnodes.txt", [
        ("a", "", "3", "12", "4000", "2", "lab", "", "node[1-3]"),
        ("a.2", "", "2", "8", "4000", "2", "lab,odd", "", "node[1,3]"),
        ("a.3", "", "1", "4", "4000", "2", "even,lab", "", "node2")]),
    "qhost": ("gridengine-8.1.9/machine/qhost-q.xml", [("all.q", "all.q", "1", "8", "24064", "", "", "", "localhost")]),
    "condor-status": ("htcondor-constructed/machine/condor_status.json", [
        ("a", "", "2", "4", "4000", "", "", "", "c1.example.org,c2.example.org"),
        ("a.2", "", "1", "16", "64000", "2", "", "", "c1.example.org"),
        ("a.3", "", "1", "2", "4000", "", "", "", "c2.example.org")]),
    "flux-resource": ("flux-0.88/machine/resource-R.json", [("a", "", "2", "4", "", "", "", "", "head,head")]),
    "glue2": ("arc-constructed/machine/glue2.xml", [
        ("main", "main", "9", "32", "16000", "", "", "172800", ""),
        ("all", "all", "11", "88", "16000", "", "", "", ""), ("all.2", "all", "9", "72", "16000", "", "", "", ""),
        ("all.3", "all", "2", "128", "512000", "", "", "", "")]),
}
NAMES = ("Id", "Queue", "NodeCount", "Processors", "Memory", "Resource", "Feature", "Duration", "Node")
FORMATS = sorted({name.partition(" ")[0] for name in ANSWERS})


def read(format: str, data: bytes, **options: str) -> sssjob.Document:
    return get(format).read(data, ReadContext(options=options, site=read_site("name = 'x'\nmachine = 'a'\n")))


def rows(document: sssjob.Document) -> list[tuple[str, ...]]:
    return [tuple(str(job.value(name) if job.value(name) is not None else "") for name in NAMES)
            for job, _ in document.jobs()]


@pytest.mark.parametrize("name", ANSWERS)
def test_recorded(name: str) -> None:
    file, expected = ANSWERS[name]
    data = (FIXTURES / file).read_bytes()
    format = name.partition(" ")[0]
    assert rows(read(format, data))[:len(expected)] == expected
    assert guess(data)[0].name == format
    assert next(str(job.value("Machine")) for job, _ in read(format, data).jobs()) == "a"


def test_idle_nodes() -> None:
    """Those on which nothing runs: of GLUE 2.0 the instances that are not in use."""
    glue2, condor = ((FIXTURES / ANSWERS[name][0]).read_bytes() for name in ("glue2", "condor-status"))
    assert [row[:4] for row in rows(read("glue2", glue2, nodes="idle"))][:2] == [
        ("main", "main", "3", "24"), ("all", "all", "5", "40")]
    assert [row[-1] for row in rows(read("condor-status", condor, nodes="idle"))] == ["c2.example.org"]


def test_an_offer_without_names_of_nodes_meets() -> None:
    document = read("glue2", (FIXTURES / ANSWERS["glue2"][0]).read_bytes())
    job = sssjob.read("<Job><Id>1</Id><Requested><Processors>32</Processors><Duration>3600</Duration></Requested>"
                      "</Job>")
    assert [match(job, offer).met for offer, _ in document.jobs()] == [True, False, False, False]


def of_slurm(**more: object) -> str:
    """The offers of one node, a line each property, without the first ones."""
    node = {"name": "n", "partitions": ["q"], "cpus": 4, "real_memory": 1000, "state": ["IDLE"]}
    return write_document(read("sinfo-json", json.dumps({"meta": {}, "nodes": [node | more]}).encode()))


@pytest.mark.parametrize(("gres", "resources"), [
    # one type alone answers for GPUs of any too; beside others, and beside those without a type, their sum comes first
    ("gpu:a100:4(S:0-1),shard:8", ['type="a100" metric="PerNode">4']),
    ("gpu:a100:2(S:0),gpu:a100:2(S:1)", ['type="a100" metric="PerNode">4']),
    ("gpu:a100:4,gpu:v100:2",
     ['metric="PerNode">6', 'type="a100" metric="PerNode">4', 'type="v100" metric="PerNode">2']),
    ("gpu:2,gpu:a100:4", ['metric="PerNode">6', 'type="a100" metric="PerNode">4']),
    ("gpu:mig-1g.5gb:14,craynetwork:4", ['type="mig-1g.5gb" metric="PerNode">14']),
    ("gpu:8", ['metric="PerNode">8']), ("craynetwork:4", []), ("(null)", []), (None, []),
])
def test_types_of_gpus(gres: str | None, resources: list[str]) -> None:
    lines = [line.strip() for line in of_slurm(gres=gres).splitlines() if "<Resource" in line]
    assert lines == [f'<Resource name="GPU" {resource}</Resource>' for resource in resources]


def test_nodes_of_two_types_have_none_in_common() -> None:
    """A job that names a type meets the nodes that have it alone, one that names none all of them."""
    nodes = [{"name": name, "partitions": ["q"], "cpus": 4, "state": ["IDLE"], "gres": f"gpu:{kind}:2"}
             for name, kind in (("a", "a100"), ("v", "v100"))]
    document = read("sinfo-json", json.dumps({"meta": {}, "nodes": nodes}).encode())

    def met(resource: str) -> list[bool]:
        job = sssjob.read(f"<Job><Id>1</Id><Requested><Resource name='GPU' {resource}</Resource></Requested></Job>")
        return [match(job, offer).met for offer, _ in document.jobs()]

    assert met("metric='PerNode'>2") == [True, True, True] and met("metric='PerNode'>3") == [False] * 3
    assert met("type='a100' metric='PerNode'>2") == [False, True, False]


@pytest.mark.parametrize("more", [{"cpus": 0}, {"features": "(null)"}, {"active_features": [""]}])
def test_what_a_node_does_not_have(more: dict[str, object]) -> None:
    """One without processors is no offer, and nothing is no feature."""
    text = of_slurm(**more)
    assert "Feature" not in text and ("<Queue>" in text) == ("cpus" not in more)


@pytest.mark.parametrize(("fields", "processors", "memory", "each"), [
    ("MaxMemPerNode=UNLIMITED MaxCPUsPerNode=UNLIMITED", 16, 64000, 8), ("MaxMemPerNode=4000", 16, 4000, 8),
    ("MaxMemPerNode=90000 MaxCPUsPerNode=3", 6, 64000, 3), ("MaxMemPerCPU=100", 16, 64000, 8),
])
def test_what_a_job_may_have_of_each_node(fields: str, processors: int, memory: int, each: int) -> None:
    """A partition may give a job less of a node than it has."""
    nodes = [Node(name, {"q": Shape(8, 64000)}) for name in ("a", "b")]
    (job,) = offers(nodes, partitions_shown(f"PartitionName=q {fields} MaxTime=60 State=UP"), "m", None).jobs
    assert (job.value("Processors"), job.value("Memory"), [p.text for p in job.all("Extension")]) == (
        processors, memory, [str(each)])


@pytest.mark.parametrize(("table", "names"), [
    ("", ["high"]), ("qualities_of_service = ['normal', 'long']", ["normal,long"]), ("qualities_of_service = []", [])])
def test_qualities_of_service_of_the_profile(table: str, names: list[str]) -> None:
    """They count before what the manager says, and are what offers from files have."""
    site = read_site(f"name = 's'\n[queues.q]\n{table}\n".encode(), "s.toml")
    partitions = partitions_shown("PartitionName=q AllowQos=high MaxTime=60 State=UP")
    for queues, expected in ((partitions, names), ({}, [one for one in names if table])):
        (job,) = offers([Node("a", {"q": Shape(8, 64000)})], queues, "m", site).jobs
        assert [p.text for p in job.all("Extension")] == expected


@pytest.mark.parametrize(("fields", "allowed"), [
    ("AllowQos=ALL AllowAccounts=ALL", {"QualityOfService": ("high", "low")}),
    ("AllowQos=low AllowAccounts=a,b", {"Project": ("a", "b"), "QualityOfService": ("low",)}),
    ("AllowAccounts=ALL DenyQos=high", {"QualityOfService": ("low",)}), ("", {"QualityOfService": ("high", "low")}),
])
def test_who_may_use_a_partition(fields: str, allowed: dict[str, tuple[str, ...]]) -> None:
    text = f"PartitionName=q {fields} MaxTime=UNLIMITED State=UP"
    assert dict(partitions_shown(text, (), ("high", "low"))["q"].allowed) == allowed
    assert "QualityOfService" not in dict(partitions_shown("PartitionName=q AllowQos=ALL")["q"].allowed)


@pytest.mark.parametrize("text", [
    (FIXTURES / "openpbs-23.06.06" / "machine" / "qstat-Qf.json").read_text(),
    "Welcome to the cluster\n\nQueue: workq\n    queue_type = Execution\n    enabled = True\n    started = True\n\n"
    "Queue: highq\n    queue_type = Execution\n    resources_max.walltime = 00:10:00\n    enabled = True\n"
    "    started = True\n"])
def test_queues_of_pbs(text: str) -> None:
    assert queues_shown(text) == {"workq": Limits(True, TEN_YEARS_S), "highq": Limits(True, 600)}


def test_more_queues_of_pbs() -> None:
    """Closed ones, routes, limits of nodes and processors; nodes are in all queues unless they are bound to one."""
    text = json.dumps({"Queue": {
        "off": {"queue_type": "Execution", "enabled": "False", "started": "True"}, "route": {"queue_type": "Route"},
        "small": {"queue_type": "Execution", "resources_max": {"ncpus": 4, "nodect": 2, "walltime": "1:00:00:00"}}}})
    queues = queues_shown(text)
    assert queues == {"off": Limits(False, TEN_YEARS_S), "route": Limits(False, TEN_YEARS_S),
                      "small": Limits(True, 86400, 2, 4)}
    shape = Shape(8, 100)
    assert in_queues([Node("n", {"": shape}), Node("m", {"gpu": shape}), Node("d", {})], ["a", "b"]) == [
        Node("n", {"a": shape, "b": shape}), Node("m", {"gpu": shape}), Node("d", {})]


@pytest.mark.parametrize("state", ["down", "offline", "job-busy,offline", "state-unknown,down", "stale", "maintenance"])
def test_nodes_of_pbs_that_take_no_job(state: str) -> None:
    text = f"n1\n     Mom = n1\n     state = {state}\n     resources_available.ncpus = 4\n"
    assert rows(read("pbsnodes", text.encode())) == []
    assert rows(read("pbsnodes", text.replace(state, "job-busy").encode()))[0][:4] == ("a", "", "1", "4")


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("data", [
    b"", b"nonsense", b"{", b"[1]", b"{}", b"<a/>", b"<?xml version='1.0'?><!DOCTYPE qhost><qhost/>", b"\xff\xfe",
    b'{"nodes": {"n": 1}, "pbs_server": "s"}', b'{"nodes": {"n": {"resources_assigned": 5}}, "pbs_server": "s"}',
    b'{"nodes": {"n": {"pcpus": "many"}}, "pbs_server": "s"}',
    b'[{"Machine": "m", "Cpus": -1}]', b'[{"Machine": 7}]', b"[" * 100_000,
    b'{"version": 1, "execution": {"R_lite": [{"rank": "0-99999999", "children": {"core": "0"}}]}}',
    b'{"version": 1, "execution": {"R_lite": [{"rank": "x", "children": {"core": "0"}}]}}',
    b'{"version": 1, "execution": {"R_lite": [{"rank": "0", "children": []}]}}',
    b"<Domains><ExecutionEnvironment><ID>e</ID><LogicalCPUs>many</LogicalCPUs></ExecutionEnvironment></Domains>"])
def test_what_cannot_be_understood(format: str, data: bytes) -> None:
    """A finding, or no offers; never anything else."""
    try:
        assert rows(read(format, data)) == []
    except RejectedError as error:
        assert {finding.rule for finding in error.findings} <= {"SSS110", "SSS111"}


@pytest.mark.parametrize("format", FORMATS)
def test_they_are_read_only(format: str) -> None:
    with pytest.raises(UsageError, match=f"{format} is read, and not written"):
        get(format).write(sssjob.read("<Job><Id>1</Id></Job>"), WriteContext())
    with pytest.raises(UsageError, match="nodes is one of usable, idle"):
        read(format, b"{}", nodes="all")
