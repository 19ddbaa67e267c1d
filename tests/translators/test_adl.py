"""ADL, which ARC computing elements take: every element has a place or is kept, and what cannot be said is told."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from sssjob.document.model import Document, Job
from sssjob.errors import RejectedError
from sssjob.findings import Findings, Policy
from sssjob.translators import ReadContext, WriteContext, get
from sssjob.translators.recognise import guess
from sssjob.xml.reader import read_document

WHOLE = Path(__file__).parents[1] / "fixtures" / "adl-constructed" / "whole.adl"
SPACES = ('xmlns="http://www.eu-emi.eu/es/2010/12/adl" xmlns:x="urn:x" '
          'xmlns:n="http://www.nordugrid.org/es/2011/12/nordugrid-adl"')


def activity(parts: str) -> bytes:
    return f"<ActivityDescription {SPACES}>{parts}</ActivityDescription>".encode()


def slots(inside: str) -> bytes:
    return activity(f"<Resources><SlotRequirement>{inside}</SlotRequirement></Resources>")


def read(data: bytes, policy: Policy | None = None) -> tuple[Document, Findings]:
    context = ReadContext("j", Findings("j"), policy=policy)
    return get("adl").read(data, context), context.findings


def job(data: bytes) -> Job:
    return next(j for j, _ in read(data)[0].jobs())


def requested(data: bytes) -> list[tuple[str, str, dict[str, str]]]:
    block = job(data).requested
    return [] if block is None else [(p.tag, p.text, p.attributes) for p in block.properties()]


def write(document: Document) -> tuple[str, list[tuple[str, str, str]]]:
    context = WriteContext(Findings("j"), policy=Policy.WARN)
    text = get("adl").write(document, context)
    return text, [(f.kind, f.subject, f.severity) for f in context.findings]


def test_everything_that_it_knows_comes_back_as_it_was() -> None:
    data = WHOLE.read_bytes()
    document, findings = read(data)
    text, reported = write(document)
    assert list(findings) == [] and reported == [("approximated", "NotificationList", "info")]
    assert text == data.decode() and guess(data)[0].name == "adl"


def test_what_it_asks_for() -> None:
    asked = job(WHOLE.read_bytes())
    assert (asked.name, asked.executable, asked.arguments) == ("cfd", "/bin/app", "'a b' 'it'\"'\"'s'")
    assert asked.environment is not None and asked.environment.variables() == {"A": "1 2"}
    assert requested(WHOLE.read_bytes()) == [
        ("Architecture", "amd64", {}), ("Queue", "grid", {}), ("Processors", "10", {}), ("NodeCount", "2", {}),
        ("OperatingSystem", "ubuntu", {}), ("Memory", "2", {"units": "GB", "metric": "PerSlot"}),
        ("Disk", "1000000000", {"units": "B"}), ("Duration", "3600", {})]


@pytest.mark.parametrize(("inside", "counts", "back"), [
    ("<NumberOfSlots>1</NumberOfSlots>", [1], ""),
    ("<NumberOfSlots>8</NumberOfSlots><SlotsPerHost>4</SlotsPerHost>", [4, 2], "4"),   # Processors PerNode
    ("<NumberOfSlots>10</NumberOfSlots><SlotsPerHost>4</SlotsPerHost>", [10, 3], "4"),
    ("<NumberOfSlots>10</NumberOfSlots><SlotsPerHost>9</SlotsPerHost>", [10, 2], "9"),
    ("<NumberOfSlots>3</NumberOfSlots><SlotsPerHost>16</SlotsPerHost>", [3, 1], "16"),
    ('<NumberOfSlots>6</NumberOfSlots><SlotsPerHost useNumberOfSlots="true"/>', [6, 1], "6")])
def test_hosts_are_as_many_as_the_slots_fill(inside: str, counts: list[int], back: str) -> None:
    document, _ = read(slots(inside))
    assert [int(text) for _, text, _ in requested(slots(inside))] == counts
    text, findings = write(document)
    assert findings == [] and (f"<SlotsPerHost>{back}</SlotsPerHost>" in text if back else "SlotsPerHost" not in text)
    assert get("adl").read(text.encode(), ReadContext("j")).root == document.root


@given(st.integers(1, 200), st.integers(1, 200))
def test_any_slots_on_any_hosts_come_back(number: int, each: int) -> None:
    data = slots(f"<NumberOfSlots>{number}</NumberOfSlots><SlotsPerHost>{each}</SlotsPerHost>")
    text, findings = write(read(data)[0])
    assert findings == [] and f"<NumberOfSlots>{number}<" in text and f"<SlotsPerHost>{each}<" in text


def test_memory_is_that_of_a_slot() -> None:
    size = "<IndividualPhysicalMemory>1073741824</IndividualPhysicalMemory>"
    alone = activity(f"<Resources>{size}</Resources>")
    both = activity(f"<Resources>{size}<SlotRequirement><NumberOfSlots>3</NumberOfSlots></SlotRequirement></Resources>")
    assert requested(alone) == [("Memory", "1", {"units": "GB"})]
    assert requested(both) == [("Processors", "3", {}), ("Memory", "1", {"units": "GB", "metric": "PerSlot"})]


@pytest.mark.parametrize(("asked", "size", "expected"), [
    ("<Memory units='GB'>4</Memory><Processors>4</Processors>", 1 << 30, ("approximated", "Memory", "info")),
    ("<Memory units='MB' metric='PerNode'>10</Memory><Processors>6</Processors><NodeCount>2</NodeCount>",
     3495254, ("approximated", "Memory", "warning")),
    ("<Memory units='MB' metric='PerNode'>10</Memory><Processors>6</Processors>", 10 << 20,
     ("site-dependent", "Memory", "warning"))])
def test_other_memory_is_shared_out(asked: str, size: int, expected: tuple[str, str, str]) -> None:
    text = f"<Job><Executable>x</Executable><Requested>{asked}</Requested></Job>"
    output, findings = write(read_document(text.encode(), profile="3.1"))
    assert f"<IndividualPhysicalMemory>{size}<" in output and expected in findings


@pytest.mark.parametrize("data", [
    b"", b"<a/>", b"<!DOCTYPE x [<!ENTITY e 'x'>]>" + activity(""), activity("")[:-4],
    activity("").replace(b"2010/12/adl", b"2011/12/adl"),
    slots(""), slots("<SlotsPerHost>2</SlotsPerHost>"), slots("<NumberOfSlots>0</NumberOfSlots>"),
    slots("<NumberOfSlots>two</NumberOfSlots>"),
    slots("<NumberOfSlots>2</NumberOfSlots><SlotsPerHost>0</SlotsPerHost>"),
    slots("<NumberOfSlots>2</NumberOfSlots><ExclusiveExecution>yes</ExclusiveExecution>"),
    activity("<Resources><WallTime>PT1H</WallTime></Resources>"),
    activity("<Resources><DiskSpaceRequirement>-1</DiskSpaceRequirement></Resources>"),
    activity("<Application><n:StartTime>soon</n:StartTime></Application>")])
def test_what_nobody_could_obey_is_refused(data: bytes) -> None:
    with pytest.raises(RejectedError):
        read(data)


@pytest.mark.parametrize(("parts", "subject"), [
    ("<x:Odd/>", "Odd"), ("<Resources/><Resources/>", "Resources"),
    ("<Resources><x:WallTime/></Resources>", "WallTime"),
    ("<Resources><n:WallTime/></Resources>", "WallTime"), ("<Application><StartTime/></Application>", "StartTime"),
    ("<Resources><QueueName>a</QueueName><QueueName>b</QueueName></Resources>", "QueueName"),
    ("<Resources><OperatingSystem><Odd/></OperatingSystem></Resources>", "Odd"),
    ("<Application><Environment><Value>1</Value></Environment></Application>", "Environment"),
    ("<Application><Executable><Path>x</Path><Odd/></Executable></Application>", "Odd"),
    ('<Resources><WallTime optional="true">60</WallTime></Resources>', "WallTime/@optional")])
def test_the_policy_decides_about_what_is_not_known(parts: str, subject: str) -> None:
    assert [(f.kind, f.subject, f.severity, f.line) for f in read(activity(parts))[1]] == [
        ("unknown", subject, "warning", 1)]
    with pytest.raises(RejectedError):
        read(activity(parts), Policy.REJECT)


def test_the_list_of_the_rest_interface_may_hold_one() -> None:
    data = activity("<Resources><QueueName>a</QueueName></Resources>")
    listed = b"<?xml version='1.0' ?>\n<ActivityDescriptions>\n%b</ActivityDescriptions>"
    assert read(listed % data)[0].root == read(data)[0].root and guess(listed % data)[0].name == "adl"
    for other in (data * 2, b"", b"<x/>"):
        with pytest.raises(RejectedError):
            read(listed % other)


@pytest.mark.parametrize("prefix", ["", "n:"])
def test_the_directory_of_logs_is_taken_from_either_namespace(prefix: str) -> None:
    name = f"{prefix}LoggingDirectory"
    document, findings = read(activity(f"<Application><{name}>log</{name}></Application>"))
    assert list(findings) == [] and "<nordugrid-adl:LoggingDirectory>log</" in write(document)[0]


@pytest.mark.parametrize("odd", ["attribute", "element"])
def test_nothing_is_lost_in_silence_wherever_it_stands(odd: str) -> None:
    """An attribute or an element of somebody else's, at each element of the whole description in turn."""
    whole = etree.fromstring(WHOLE.read_bytes())
    silent = []
    for place in range(len(list(whole.iter()))):
        root = deepcopy(whole)
        node = list(root.iter())[place]
        if odd == "attribute":
            node.set("odd", "ODD")
        else:
            etree.SubElement(node, "{urn:x}Odd").text = "ODD"
        document, findings = read(etree.tostring(root), Policy.WARN)
        kept = get("sss").write(document, WriteContext(Findings("j"), policy=Policy.WARN))
        if not list(findings) and "ODD" not in kept:
            silent.append(node.tag)
    assert silent == []


@pytest.mark.parametrize("text", ["20300102030405Z", "2030-01-02T03:04:05Z", "2030-01-02T04:04:05+01:00",
                                  "2030-01-02T03:04:05"])
def test_a_start_is_written_as_arc_does(text: str) -> None:
    document, _ = read(activity(f"<Application><n:StartTime>{text}</n:StartTime></Application>"))
    assert "StartTime>20300102030405Z</" in write(document)[0]


def test_errors_beside_output_are_in_one_file_whatever_comes_first() -> None:
    data = activity("<Application><Error>o</Error><Output>o</Output></Application>")
    error = job(data).first("ErrorFile")
    assert error is not None and error.attributes == {"redirectList": "Merge"}
    assert write(read(data)[0])[0].count("<Name>o</Name>") == 1


def test_a_script_is_a_file_that_the_client_uploads() -> None:
    script = (b"#!/bin/bash\n#SBATCH -J cfd -N 2 -n 8 --mem=4G -t 30 -p batch -o out.txt --gres=gpu:2\n"
              b"#SBATCH --mail-type=FAIL --mail-user=a@b.org\nsrun ./solver\n")
    document = get("slurm").read(script, ReadContext())
    text, findings = write(document)
    files = get("adl").files
    assert files is not None
    assert sorted(files(document, WriteContext(Findings("j"), policy=Policy.WARN))) == ["cfd.adl", "cfd.sh"]
    for part in ("<Path>cfd.sh</Path>", "<NumberOfSlots>8<", "<SlotsPerHost>4<", "<WallTime>1800<",
                 "<IndividualPhysicalMemory>1073741824<", "<OnState>TERMINAL<", "<QueueName>batch<",
                 "<Name>cfd.sh</Name>\n      <IsExecutable>true</IsExecutable>"):
        assert part in text
    assert ("dropped", "Resource GPU", "warning") in findings
    assert ("approximated", "Extension MailEvents", "warning") in findings


def test_nothing_of_the_form_is_taken_for_something_else() -> None:
    """A kept element that somebody edited is told, not written into another place."""
    text = ("<Job><Executable>x</Executable><Extension name='RuntimeEnvironment' type='adl'>&lt;Odd/&gt;</Extension>"
            "<Extension name='Type' type='adl'>&lt;no XML</Extension>"
            "<Extension name='Unheard' type='adl'>1</Extension></Job>")
    output, findings = write(read_document(text.encode(), profile="3.1"))
    assert "Odd" not in output and "no XML" not in output and "Unheard" not in output
    assert [subject for kind, subject, _ in findings if kind == "dropped"] == [
        "Extension Type", "Extension RuntimeEnvironment", "Extension Unheard"]
