"""Documents as values: canonical form, patches, merging and splitting."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import assume, given, settings

from sssjob.conversion.merging import Prefer, merge, split
from sssjob.conversion.patching import apply, patch_of, read_patch
from sssjob.document.model import Document
from sssjob.errors import RejectedError
from sssjob.findings import Findings
from sssjob.xml.canonical import canonical, digest
from sssjob.xml.reader import read_document
from sssjob.xml.writer import write_document
from tests.strategies import documents, examples

GROUP: Final = """<JobGroup><Id>g</Id><State>Unstarted</State>
<JobDefaults><Queue>batch</Queue><Requested><Memory units="GB">4</Memory></Requested></JobDefaults>
<Job><Id>1</Id><State>Idle</State><User>amy</User><Requested><Processors>4</Processors></Requested></Job>
<Job><Id>2</Id><State>Running</State><User>bob</User></Job></JobGroup>"""


def writable(made: Document) -> Document:
    """A generated document, if it can be written."""
    findings = Findings()
    write_document(made, findings=findings)
    assume(not findings.rejected)
    return made


def document(text: str, path: str = "-") -> Document:
    """The document of a text."""
    return read_document(text, path=path)


# --- canonical form -----------------------------------------------------------------------------------------------

def test_documents_that_say_the_same_have_one_form() -> None:
    one = document('<Job><JobId>1</JobId><Requested><WallDuration>3600</WallDuration>'
                   '<Memory units="GB" op="EQ">2.0</Memory></Requested></Job>')
    other = document('<!-- of a colleague -->\n<Job>\n  <Id> 1 </Id>\n  <Requested>\n'
                     '    <Duration>01:00:00</Duration>\n'
                     '    <Memory conj="And" units="GB" group="0">2.0</Memory>\n  </Requested>\n</Job>\n')
    form = (b'<Job><Id>1</Id><Requested><Duration>3600</Duration><Memory units="GB">2.0</Memory></Requested></Job>')
    assert canonical(one) == canonical(other) == form
    assert digest(one) == digest(other) == hashlib.sha256(form).hexdigest()


def test_order_and_policy_are_data() -> None:
    texts = ["<Job><Id>1</Id><User>a</User></Job>", "<Job><User>a</User><Id>1</Id></Job>",
             '<Job awarenessPolicy="Reject"><Id>1</Id><User>a</User></Job>']
    assert len({digest(document(text)) for text in texts}) == 3


@pytest.mark.parametrize("text", [
    '<Data><Job><Id>a</Id><Executable>#x</Executable></Job>{}</Data>',
    '<Data><Job><Id>a</Id><Executable>#x</Executable></Job><Job><Id>b</Id></Job>{}</Data>',
    '<Request action="Submit"><Data><Job><Id>a</Id><Executable>#x</Executable></Job></Data>{}</Request>',
    '<Envelope><Body><Request><Data><Job><Executable>#x</Executable></Job></Data>{}</Request></Body></Envelope>',
    '<Envelope><Body><Response><Data><Job><Executable>#x</Executable></Job></Data>{}</Response></Body></Envelope>',
])
def test_scripts_are_part_of_what_a_document_says(text: str) -> None:
    """Wherever they stand: else a signature of the document would hold for any script."""
    one, other = (document(text.format(f'<File id="x">{script}</File>')) for script in ("true", "false"))
    assert digest(one) != digest(other)
    assert read_document(write_document(one)).files == one.files
    assert canonical(read_document(write_document(one))) == canonical(one)


@settings(max_examples=examples(20))
@given(documents())
def test_the_form_is_a_document_of_the_same_form(made: Document) -> None:
    form = canonical(writable(made))
    assert canonical(read_document(form, profile="3.1")) == form


# --- patches ------------------------------------------------------------------------------------------------------

def patched(one: Document, patch: dict[str, Any]) -> Document:
    """The document with a patch that went through JSON."""
    return apply(one, read_patch(json.dumps(patch).encode()), Findings())


@settings(max_examples=examples(20))
@given(documents(), documents())
def test_a_patch_makes_the_other_document(one: Document, other: Document) -> None:
    patch = patch_of(writable(one), writable(other))
    document = patched(one, patch)
    assert canonical(document) == canonical(other)
    assert (patch["from"], patch["to"]) == (digest(one), digest(document))
    assert patch_of(other, document)["edits"] == []


def test_the_edits_say_what_changes() -> None:
    other = document(GROUP.replace("<User>bob</User>", "<User>eve</User><Name>n</Name>").replace(
        "<Processors>4", '<Processors op="GE">8').replace('<Memory units="GB">4', '<Memory units="GB">5'))
    assert patch_of(document(GROUP), other)["edits"] == [
        {"at": "/JobGroup/JobDefaults[1]/Requested[1]", "place": 0, "after": None,
         "old": ['<Memory units="GB">4</Memory>'], "new": ['<Memory units="GB">5</Memory>']},
        {"at": "/JobGroup/Job[Id='1']/Requested[1]", "place": 0, "after": None,
         "old": ["<Processors>4</Processors>"], "new": ['<Processors op="GE">8</Processors>']},
        {"at": "/JobGroup/Job[Id='2']", "place": 2, "after": "<State>Running</State>",
         "old": ["<User>bob</User>"], "new": ["<User>eve</User>", "<Name>n</Name>"]}]


def test_a_patch_fits_where_its_place_has_moved() -> None:
    patch = patch_of(document(GROUP), document(GROUP.replace("<User>bob", "<User>eve")))
    moved = document(GROUP.replace("<Job><Id>2</Id>", "<Job><Name>x</Name><Hold>User</Hold><Id>2</Id>").replace(
        "<Job><Id>1</Id>", "<Job><Id>0</Id></Job><Job><Id>1</Id>"))
    assert canonical(patched(moved, patch)) == canonical(moved).replace(b"bob", b"eve")


@pytest.mark.parametrize(("text", "message"), [
    (GROUP.replace("bob", "eve"), "edit 1 at /JobGroup/Job[Id='2']: <User>bob</User> does not stand there"),
    (GROUP.replace("<Id>2</Id>", "<Id>3</Id>"), "edit 1 at /JobGroup/Job[Id='2']: 0 elements stand there, not one"),
])
def test_what_does_not_fit_is_named(text: str, message: str) -> None:
    patch = patch_of(document(GROUP), document(GROUP.replace("bob", "ann")))
    with pytest.raises(RejectedError) as caught:
        patched(document(text), patch)
    assert [(f.rule, f.message) for f in caught.value.findings] == [("SSS428", message)]


def test_a_patch_that_was_changed_is_refused() -> None:
    """Of the document that it was made of it has to make the one that it says; of another one it says nothing."""
    patch = patch_of(document(GROUP), document(GROUP.replace("<User>bob", "<User>eve")))
    changed = json.loads(json.dumps(patch).replace("<User>eve", "<User>mal"))
    with pytest.raises(RejectedError, match="the patch was changed"):
        patched(document(GROUP), changed)
    other = document(GROUP.replace("batch", "short"))
    assert canonical(patched(other, patch)) == canonical(other).replace(b"bob", b"eve")


@pytest.mark.parametrize(("data", "rule"), [
    (b"", "SSS111"), (b"[" * 100_000, "SSS111"), (b"\xff", "SSS111"), (b"[]", "SSS112"),
    (b'{"patch": 2, "edits": []}', "SSS112"),
    (b'{"patch": 1, "edits": [1]}', "SSS112"), (b'{"patch": 1, "edits": [{"at": "/Job"}]}', "SSS112"),
    (b'{"patch": 1, "edits": [{"at": "/Job", "attributes": {"a": 1}}]}', "SSS112"),
    (b'{"patch": 1, "edits": [{"at": "//*[document(1)]", "old": [], "new": []}]}', "SSS428"),
    (b'{"patch": 1, "edits": [{"at": "/JobGroup", "old": [], "new": ["<Job"]}]}', "SSS428"),
    (b'{"patch": 1, "edits": [{"at": "/JobGroup", "old": [], "new": ["<!DOCTYPE a><Job/>"]}]}', "SSS428"),
    (b'{"patch": 1, "edits": [{"at": "/JobGroup", "attributes": {"a b": [null, "1"]}}]}', "SSS428"),
    (b'{"patch": 1, "edits": [{"at": "/JobGroup", "attributes": {"a": [null, "\\u0000"]}}]}', "SSS112"),
    (b'{"patch": 1, "edits": [{"at": "/JobGroup", "attributes": {"\\ud800": [null, "1"]}}]}', "SSS112"),
    (b'{"patch": 1, "edits": [{"at": "/JobGroup/\\ud800", "old": [], "new": []}]}', "SSS428"),
    (b'{"patch": 1, "edits": [{"at": "/JobGroup", "place": -1, "after": "x", "old": [], "new": []}]}', "SSS112"),
    (b'{"patch": 1, "edits": [{"at": "/JobGroup", "place": true, "old": [], "new": []}]}', "SSS112"),
    (b'{"patch": 1, "edits": [{"at": "/JobGroup", "plaice": 0, "old": [], "new": []}]}', "SSS112"),
    (b'{"patch": 1, "edits": [{"at": "/JobGroup", "attributes": {}, "old": [], "new": []}]}', "SSS112"),
    (b'{"patch": 1, "edits": [{"at": "/", "old": [], "new": []}]}', "SSS428"),
])
def test_what_is_no_patch(data: bytes, rule: str) -> None:
    with pytest.raises(RejectedError) as caught:
        apply(document(GROUP), read_patch(data), Findings())
    assert caught.value.findings[0].rule == rule


def test_what_was_said_of_the_document_is_not_said_again_of_what_a_patch_makes(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It was, with lines of a text that nobody sees; what the patch brings has a path."""
    from sssjob.cli import main

    monkeypatch.chdir(tmp_path)
    text = '<Job awarenessPolicy="Warn"><Id>1</Id><Zorg>red</Zorg></Job>\n'
    Path("a.xml").write_text(text)
    Path("b.xml").write_text(text.replace("</Job>", "<Qux>sweet</Qux></Job>"))
    assert main(["diff", "-q", "--json", "a.xml", "b.xml"]) == 1
    Path("change.json").write_text(capsys.readouterr().out)
    assert main(["patch", "a.xml", "change.json", "-o", "made.xml"]) == 0
    assert capsys.readouterr().err == ("a.xml:1:39: SSS301 warning unknown element Zorg in Job\n"
                                       "a.xml:/Job/Qux: SSS301 warning unknown element Qux in Job\n")


def test_edits_behind_each_other_in_one_element() -> None:
    """Each of them stands at its place of before, whichever were applied already."""
    jobs = [f"<Job><Id>{number}</Id></Job>" for number in range(9)]
    before = f"<JobGroup><Id>g</Id>{''.join(jobs)}</JobGroup>"
    after = before.replace(jobs[1], "").replace(jobs[4], "<Job><Id>x</Id></Job>" * 2).replace(
        jobs[6], jobs[6] + "<Job><Name>y</Name></Job>").replace(jobs[8], "")
    patch = patch_of(document(before), document(after))
    assert len(patch["edits"]) == 4
    assert canonical(patched(document(before), patch)) == canonical(document(after))


def test_a_path_that_somebody_wrote() -> None:
    patch = read_patch(b'{"patch": 1, "edits": [{"at": "//Job[User=\'bob\']", "old": ["<User>bob</User>"], '
                       b'"new": ["<User>eve</User>"]}]}')
    assert canonical(patched(document(GROUP), patch)) == canonical(document(GROUP.replace("bob", "eve")))


# --- merging ------------------------------------------------------------------------------------------------------

def merged(*returned: str, prefer: Prefer = "none", group: str = GROUP) -> tuple[str, list[str]]:
    """The group afterwards, and what was told."""
    whole = document(group, "group.xml")
    findings = Findings("group.xml")
    merge(whole, [document(text, "back.xml") for text in returned], findings, prefer=prefer)
    return write_document(whole), [f"{f.rule} {f.severity} {f.message}" for f in findings]


def test_facts_are_added_and_states_go_on() -> None:
    text, findings = merged(
        "<Job><Id>1</Id><State>Completed</State><User>amy</User><Queue>batch</Queue><ExitCode>0</ExitCode><Requested>"
        '<Processors>4</Processors><Memory units="GB">4</Memory></Requested>'
        "<Delivered><Processors>4</Processors></Delivered></Job>",
        "<Job><Id>2</Id><State>Idle</State><StatusMessage>waits</StatusMessage></Job>")
    assert findings == []
    assert text == write_document(document(
        "<JobGroup><Id>g</Id><State>Active</State>"
        '<JobDefaults><Queue>batch</Queue><Requested><Memory units="GB">4</Memory></Requested></JobDefaults>'
        "<Job><Id>1</Id><State>Completed</State><User>amy</User><ExitCode>0</ExitCode>"
        "<Requested><Processors>4</Processors></Requested><Delivered><Processors>4</Processors></Delivered></Job>"
        "<Job><Id>2</Id><State>Running</State><User>bob</User></Job></JobGroup>"))


CONFLICTS: Final = [
    "Job '2': User is 'bob', and 'eve' in back.xml", "Job '2': Queue is 'batch', and 'fast' in back.xml",
    "Job '2': Requested is Requested of Memory units='GB' '4', and Requested of Processors '9' in back.xml"]
OTHER: Final = ("<Job><Id>2</Id><User>eve</User><Queue>fast</Queue><Name>n</Name>"
                "<Requested><Processors>9</Processors></Requested></Job>")


def test_conflicts_are_named() -> None:
    text, findings = merged(OTHER)
    assert findings == [f"SSS606 error {message}" for message in CONFLICTS]
    assert "eve" not in text and "fast" not in text


@pytest.mark.parametrize("prefer", ["group", "returned"])
def test_one_side_may_be_preferred(prefer: Prefer) -> None:
    text, findings = merged(OTHER, prefer=prefer)
    assert findings == [f"SSS606 warning {message}" for message in CONFLICTS]
    job = next(job for job, _ in document(text).jobs() if job.id == "2")
    assert (job.user, job.queue) == (("bob", None) if prefer == "group" else ("eve", "fast"))
    assert job.name == "n"


@pytest.mark.parametrize(("text", "message"), [
    ("<Job><Name>n</Name></Job>", "a job of back.xml has no Id"),
    ("<Job><Id>7</Id></Job>", "a job of back.xml has the Id '7', which no jobs of group.xml have"),
])
def test_jobs_that_are_not_in_the_group(text: str, message: str) -> None:
    assert merged(text)[1] == [f"SSS427 error {message}"]


def test_tasks_are_merged_one_by_one() -> None:
    group = ("<JobGroup><Job><Id>1</Id><TaskGroup><Id>t</Id><Task><Id>a</Id></Task><Task><Id>b</Id></Task></TaskGroup>"
             "</Job></JobGroup>")
    text, findings = merged("<Job><Id>1</Id><TaskGroup><Id>t</Id><Task><Id>a</Id><ExitCode>0</ExitCode></Task>"
                            "<Task><Id>b</Id><ExitCode>3</ExitCode></Task></TaskGroup></Job>", group=group)
    assert findings == []
    assert [t.value("ExitCode") for job, _ in document(text).jobs() for g in job.task_groups for t in g.tasks] == [0, 3]


@settings(max_examples=examples(20))
@given(documents())
def test_what_was_split_is_merged_without_a_change(made: Document) -> None:
    ids = [job.value("Id") for job, _ in made.jobs()]
    if None in ids or len(set(ids)) < len(ids) or any(g.value("State") is not None for g in made.groups()):
        return
    before = canonical(writable(made))
    findings = Findings()
    merge(made, [single for _, single in split(made)], findings)
    assert [str(f) for f in findings] == []
    assert canonical(made) == before


_WITH_FILE: Final = ('<Request action="Submit"><Object>JobGroup</Object><Data><JobGroup><Id>g</Id>{group}<Job>'
                     '<Id>1</Id><Executable>#s</Executable></Job></JobGroup></Data>'
                     '<File id="s">{text}</File></Request>')


def test_what_a_group_says_of_itself_and_files_come_back_too() -> None:
    group = "<JobGroup><Id>g</Id><Job><Id>1</Id></Job></JobGroup>"
    back = _WITH_FILE.format(group="<Name>n</Name>", text="#!/bin/sh")
    assert merged(back, group=group) == (write_document(document(back)), [])
    again = _WITH_FILE.format(group="<Name>other</Name>", text="#!/bin/bash")
    assert merged(again, group=back) == (write_document(document(back)), [
        "SSS606 error JobGroup 'g': Name is 'n', and 'other' in back.xml",
        "SSS606 error File: s is 'of 9 characters', and 'of 11 characters' in back.xml"])
    assert merged(again, group=back, prefer="returned")[0] == write_document(document(again))


def test_a_group_that_is_not_here_is_told() -> None:
    assert merged("<JobGroup><Id>h</Id><Name>n</Name><Job><Id>2</Id></Job></JobGroup>")[1] == [
        "SSS427 warning a JobGroup of back.xml has the Id 'h', which no group here has; what it says of itself is left "
        "out"]


def test_a_job_takes_its_files_along() -> None:
    whole = document('<Request action="Submit"><Object>JobGroup</Object><Data><JobGroup><Job><Id>a</Id>'
                     '<Executable>#x</Executable></Job><Job><Id>b</Id><Executable>/bin/true</Executable></Job></JobGroup>'
                     '</Data><File id="x">#!/bin/sh\n</File></Request>')
    assert [(label, list(single.files)) for label, single in split(whole)] == [("a", ["x"]), ("b", [])]


# --- the commands -------------------------------------------------------------------------------------------------

def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from sssjob.cli import main

    monkeypatch.chdir(tmp_path)
    Path("group.xml").write_text(GROUP)
    Path("other.xml").write_text(GROUP.replace("bob", "eve"))

    def ran(*words: str) -> tuple[int, str, str]:
        code = main(list(words))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    assert ran("split", "group.xml", "-d", "parts") == (0, "parts/1.xml\nparts/2.xml\n", "")
    assert ran("split", "group.xml", "-d", "parts", "--json")[1] == "".join(
        f'{{"type": "document", "id": "{job}", "file": "parts/{job}.xml"}}\n' for job in "12")
    Path("lax.xml").write_text('<JobGroup awarenessPolicy="Ignore"><Id>g</Id><Job><Id>1</Id></Job>'
                               "<Job><Id>2</Id><Colour>red</Colour></Job></JobGroup>")
    assert ran("split", "lax.xml", "-d", "lax")[::2] == (0, ""), "the policy of the group goes along"
    assert ran("canonical", "lax/2.xml")[1] == '<Job awarenessPolicy="Ignore"><Id>2</Id><Colour>red</Colour></Job>\n'
    assert ran("merge", "group.xml", "parts/1.xml", "parts/2.xml", "-o", "merged.xml") == (0, "", "")
    assert ran("canonical", "merged.xml")[1] == ran("canonical", "group.xml")[1].replace("Unstarted", "Active")
    code, out, err = ran("canonical", "--digest", "group.xml", "merged.xml")
    assert (code, err, [len(line) for line in out.splitlines()]) == (0, "", [75, 76])
    assert json.loads(ran("canonical", "--digest", "--json", "group.xml")[1]) == {
        "type": "digest", "file": "group.xml", "sha256": out[:64]}
    code, out, _ = ran("diff", "--json", "group.xml", "other.xml")
    assert code == 1
    Path("patch.json").write_text(out)
    assert ran("patch", "group.xml", "patch.json", "-o", "made.xml") == (0, "", "")
    assert ran("canonical", "made.xml")[1] == ran("canonical", "other.xml")[1]
    code, out, err = ran("patch", "other.xml", "patch.json")
    assert (code, out) == (1, "") and "SSS428" in err
    Path("eve.xml").write_text("<Job><Id>2</Id><User>eve</User></Job>")
    code, out, err = ran("merge", "group.xml", "eve.xml")
    assert (code, out) == (1, "") and "SSS606 error Job '2': User is 'bob', and 'eve' in eve.xml" in err
    assert ran("merge", "group.xml", "eve.xml", "--prefer", "returned")[1].count("eve") == 1
