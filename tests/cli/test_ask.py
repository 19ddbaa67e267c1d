"""``sssjob ask``: documents, the journal and the ledger are asked; how answers are written."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from sssjob.run.journal import open_journal
from sssjob.sssrmap.framing import framed_chunk, framed_end, framed_head
from sssjob.sssrmap.properties import Property
from sssjob.sssrmap.sources import JournalSource
from tests.cli.conftest import Command
from tests.run.support import after, desk_on, group, shell
from tests.sssrmap.servers import scripted

RATES = ('name = "site"\nversion = "1"\ncurrency = ""\n[[rate]]\ntype = "VBR"\nname = "Processors"\nrate = 1\n'
         'per = "second"\n')


def test_documents_are_asked_in_every_form(sssjob: Command, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    question = "Query Job Get Id,Project,Memory"
    code, out, err = sssjob("ask", question, "--at", "job.xml", "--at", "group.xml")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "Id      Requested/Memory  Project", "─" * 33, "demo.1  64 MB", "a                         red",
        "../b                      red"]
    assert [json.loads(line) for line in sssjob("ask", question, "--at", "group.xml", "--json").out.splitlines()] == [
        {"Id": "a", "Project": "red"}, {"Id": "../b", "Project": "red"}]
    monkeypatch.setattr("sssjob.users.user_name", lambda: "amy")
    assert sssjob("ask", "Query Job Where Id=a Get Id,Project", "--at", "group.xml", "--format", "xml").out == (
        '<?xml version="1.0" encoding="UTF-8"?>\n<Envelope><Body><Response actor="amy"><Status><Value>Success</Value>'
        "<Code>000</Code></Status><Count>1</Count><Data><Job><Id>a</Id><Project>red</Project></Job></Data></Response>"
        "</Body></Envelope>\n")


@pytest.mark.parametrize(("arguments", "code", "err"), [
    (("Query Node", "--at", "job.xml"), 1,
     "sssjob: 740: Node is not a valid object (known: Job, JobGroup, TaskGroup, Task)\n"),
    (("Query Job Get", "--at", "job.xml"), 2,
     "sssjob: the request has its end at character 14, where a property is expected\n"),
    (("Query Job", "--at", "job.xml", "--json", "--format", "xml"), 2,
     '{"type": "error", "status": 2, "message": "--json and --format xml exclude each other"}\n'),
    (("Query Job Get Id", "--at", "absent.xml"), 3, "sssjob: absent.xml: No such file or directory\n"),
    (("Query Job Get Id", "--at", "-", "--at", "-"), 2, "sssjob: standard input (-) can be read only once\n"),
])
def test_what_cannot_be_answered(sssjob: Command, place: Path, arguments: tuple[str, ...], code: int, err: str) -> None:
    answer = sssjob("ask", *arguments)
    assert (answer.code, answer.out, answer.err) == (code, "", err)


def test_a_broken_document_is_told_and_the_others_are_asked(sssjob: Command, place: Path) -> None:
    code, out, err = sssjob("ask", "Query Job Get Id", "--at", "broken.xml", "--at", "job.xml")
    assert (code, out.splitlines()[2:]) == (1, ["demo.1"]) and "broken.xml" in err


def test_the_journal_is_asked(sssjob: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, journal: Path) -> None:
    """What rows of the journal answer is what the documents say."""
    with desk_on("local", tmp_path, monkeypatch) as desk:
        desk.submit(group(shell("exit 3"), shell("true", after("a"), name="b")))
        desk.wait("g")
        desk.client().journal.close()
    monkeypatch.setenv("SSSJOB_JOURNAL", str(tmp_path / "journal.db"))
    assert sssjob("ask", "Query Job Where Outcome=failed Get Id,Key,State,ExitCode,Executor").out.splitlines() == [
        "Id  Key   State      ExitCode  Executor", "─" * 39, "a   @1.1  Completed  3         local"]
    assert sssjob("ask", "Query Job Where Id=b Get StartTime", "--at", "journal", "--json").out == "{}\n"
    with open_journal(tmp_path / "journal.db") as opened:
        source = JournalSource(opened)
        kind = source.kind("Job")
        for thing in source.things(kind):
            for name in thing.cells.keys() - kind.more:
                of_tree = [e.text for e in thing.element.findall(name)]
                assert Property(name, kind, now=0).of(thing) == of_tree


def test_the_ledger_is_asked(sssjob: Command, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSSJOB_LEDGER", str(place / "ledger.db"))
    (place / "rates.toml").write_text(RATES)
    (place / "job.xml").write_text(
        "<Job><Id>7</Id><State>Completed</State><User>amy</User><Project>chem</Project><Machine>m</Machine>"
        "<StartTime>100</StartTime><EndTime>110</EndTime>"
        "<Delivered><Processors>4</Processors><Duration>10</Duration></Delivered></Job>")
    (place / "next.xml").write_text(
        "<Job><Id>8</Id><Project>chem</Project><Machine>m</Machine><Requested><Processors>2</Processors>"
        "<Duration>5</Duration></Requested></Job>")
    for words in (("deposit", "chem", "1000"), ("hold", "--rates", "rates.toml", "next.xml"),
                  ("charge", "--rates", "rates.toml", "job.xml")):
        assert sssjob("ledger", *words).code == 0, words

    def ask(question: str) -> list[object]:
        code, out, err = sssjob("ask", question, "--at", "ledger", "--json")
        assert (code, err) == (0, "")
        return [json.loads(line) for line in out.splitlines()]

    assert ask("Query Account Where Name=chem Get Name,Balance,Reserved,Available") == [
        {"Name": "chem", "Balance": "960.00", "Reserved": "10.00", "Available": "950.00"}]
    assert ask("Query Transaction Get GroupBy(Action),Sum(Amount)") == [
        {"Action": "Deposit", "Amount": "1000"}, {"Action": "Hold", "Amount": "10"},
        {"Action": "Charge", "Amount": "40"}]
    assert ask("Query Reservation Get JobId,Amount") == [{"JobId": "8", "Amount": "10.00"}]
    assert ask("Query Quotation") == []
    assert ask("Query Job Where Charge>39 Get Id,Charge,Processors") == [
        {"Id": "7", "Charge": "40.00", "Delivered": {"Processors": "4"}}]


def reply(inner: str) -> bytes:
    """The octets of a server's answer."""
    envelope = f'<Envelope><Body><Response actor="amy">{inner}</Response></Body></Envelope>'.encode()
    return framed_head() + framed_chunk(envelope) + framed_end()


def test_a_server_is_asked(sssjob: Command, tmp_path: Path) -> None:
    """Any action, signed or not; what it answers is written like what is answered here."""
    key = tmp_path / "key"
    key.write_bytes(b"k\n")
    key.chmod(0o600)
    machines = ("<Status><Value>Success</Value><Code>000</Code></Status><Count>2</Count><Data><Machine>"
                "<Name>colony</Name></Machine><Machine><Name>blue</Name></Machine></Data>")
    quoted = ("<Status><Value>Success</Value><Code>000</Code><Message>Successfully quoted 9 credits</Message></Status>"
              "<Count>9</Count>")
    cut = "<Status><Value>Warning</Value><Code>146</Code></Status><Count>0</Count>"
    refused = "<Status><Value>Failure</Value><Code>444</Code><Message>amy may not\x85</Message></Status>"
    with scripted(*map(reply, (machines, machines, quoted, cut, refused))) as server:
        query = ("ask", "Query Machine Get Name", "--at", server.url, "--actor", "amy")
        assert sssjob(*query) == (0, "Name\n" + "─" * 6 + "\ncolony\nblue\n", "")
        assert sssjob(*query, "--json", "--key", key).out == '{"Name": "colony"}\n{"Name": "blue"}\n'
        assert sssjob("ask", "Quote Job", "--at", server.url, "--password", key, "--signature", "SHA1") == (
            0, "", "sssjob: 000: Successfully quoted 9 credits\n")
        assert sssjob(*query) == (0, "", "sssjob: 146: warning: the result was cut short; ask with chunking\n")
        assert sssjob(*query) == (1, "", "sssjob: 444: amy may not\\u{0085}\n")
    first, signed, password, *_ = (request.decode() for request in server.requests)
    assert 'chunking="True"' in first and "<Signature>" not in first
    assert '<SecurityToken type="Symmetric">' in signed and 'method="SHA256"' in signed
    assert '<SecurityToken type="Password" name="' in password and "method=" not in password
    assert "chunking" not in password


def test_what_a_server_is_sent_beside_the_words(sssjob: Command, tmp_path: Path) -> None:
    """Jobs with the Files that they name, in the names of the server, and an id, so that a change is made once."""
    (tmp_path / "job.xml").write_text(
        '<Data><Job><Id>j</Id><User>amy</User><Executable>#Script</Executable></Job>'
        '<File id="Script">echo &lt;hello></File></Data>')
    done = reply("<Status><Value>Success</Value><Code>000</Code></Status><Count>1</Count>")
    with scripted(done, done, done, b"") as server:
        at = ("--at", server.url, "--actor", "amy")
        assert sssjob("ask", "Submit Job", *at, "--data", tmp_path / "job.xml").code == 0
        assert sssjob("ask", "Charge Job", *at, "--data", tmp_path / "job.xml", "--to-profile", "gold", "--id", "c 1"
                      ).code == 0
        assert sssjob("ask", "Query Job", *at).code == 0
        code, _, err = sssjob("ask", "Cancel Job Where Id=j", *at, "--id", "c2")
        assert code == 1 and err.endswith("(--id c2 asks for the same, once)\n")
    submitted, charged, queried = (request.decode() for request in server.requests[:3])
    assert ('<Data><Job><Id>j</Id><User>amy</User><Executable>#Script</Executable></Job></Data>'
            '<File id="Script">echo &lt;hello&gt;</File></Request>') in submitted
    assert re.search('<Request id="[0-9a-f]{32}" action="Submit"', submitted)
    assert '<Request id="c 1" action="Charge"' in charged and "<JobId>j</JobId><UserId>amy</UserId>" in charged
    assert " id=" not in queried


def test_documents_are_joined(sssjob: Command, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard input too, which is read once."""
    question = "Query Job As a, Job As b Where a.Project=b.Project And a.Id<b.Id Get a.Id, b.Id As Other"
    with open(place / "group.xml", encoding="utf-8") as text:
        monkeypatch.setattr("sys.stdin", text)
        assert sssjob("ask", question, "--at", "-", "--json").out == '{"Id": "../b", "Other": "a"}\n'


def test_secrets_are_read_from_private_files(sssjob: Command, tmp_path: Path) -> None:
    names = {"open": (b"k", 0o640), "empty": (b"\n", 0o600), "long": (b"k" * 5_000, 0o600)}
    for name, (octets, mode) in names.items():
        (tmp_path / name).write_bytes(octets)
        (tmp_path / name).chmod(mode)
    (tmp_path / "folder").mkdir(mode=0o700)
    for name, reason in {"open": "can be used by others (mode 640)", "empty": "no secret", "long": "4096 octets",
                         "/dev/null": "no file", "folder": "Is a directory", "absent": "No such file"}.items():
        code, out, err = sssjob("ask", "Query Job", "--at", "sssrmap://127.0.0.1:1", "--key", tmp_path / name)
        assert (code, out) == (3 if name in ("absent", "folder") else 2, "") and reason in err


@pytest.mark.parametrize("arguments", [
    ("--at", "sssrmap://a", "--at", "sssrmap://b"), ("--at", "sssrmap://a", "--at", "job.xml"),
    ("--at", "sssrmap://a", "--ledger", "l"), ("--at", "gopher://a"), ("--key", "k"), ("--signature", "SHA1"),
    ("--at", "sssrmap://a", "--signature", "SHA1"), ("--at", "sssrmap://a", "--key", "k", "--password", "k"),
    ("--at", "sssrmap://a", "--signature", "MD5")])
def test_options_of_servers_that_exclude_each_other(sssjob: Command, place: Path, arguments: tuple[str, ...]) -> None:
    """Before anything is sent."""
    code, out, err = sssjob("ask", "Query Job Get Id", *arguments)
    assert (code, out) == (2, "") and err
