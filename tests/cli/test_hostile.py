"""Bad input through the command line, by the categories T01 to T32 of the threat list: a refusal names a rule and a
place, ends with status 1 and leaves nothing behind; what has to be accepted is."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

from sssjob.findings import RULES
from sssjob.limits import LIMITS
from tests import forks
from tests.cases import Cases

Command = Any
ROOT: Final = Path(__file__).parents[2]
BOM: Final = b"\xef\xbb\xbf"


def job(inside: str = "", executable: str = "/bin/true") -> str:
    return f"<Job><Id>1</Id><Executable>{executable}</Executable>{inside}</Job>"


def asks(inside: str) -> str:
    return job(f"<Requested>{inside}</Requested>")


def group(*jobs: str) -> str:
    return f"<JobGroup><Id>g</Id>{''.join(jobs)}</JobGroup>"


def node(pattern: str) -> str:
    return asks(f'<Node op="Match">{pattern}</Node>')


def nodes(text: str) -> str:
    return asks(f'<Node aggregation="Range">{text}</Node>')


def geometry(text: str) -> str:
    return job(f'<TaskDistribution type="Geometry">{text}</TaskDistribution>')


def nodecount(text: str) -> str:
    return job(f"<NodeCount>{text}</NodeCount>")


def needing(name: str, other: str) -> str:
    return f"<Job><Id>{name}</Id><Executable>/bin/true</Executable><Dependency>{other}</Dependency></Job>"


LAUGHS = '<!DOCTYPE Job [<!ENTITY a0 "ha">' + "".join(
    f'<!ENTITY a{n} "' + f"&a{n - 1};" * 10 + '">' for n in range(1, 10)) + "]>"
ATTRIBUTES = " ".join(f'a{n}="1"' for n in range(20_000))
DEEP = 10_000
NINES = "9" * 1000

#: Refused by whatever reads it: threat, what it is, text, rule, a word that the message holds.
UNREADABLE: Final[list[tuple[str, str, str | bytes, str, str]]] = [
    ("T01", "external entity", f'<!DOCTYPE Job [<!ENTITY e SYSTEM "file:///etc/passwd">]>{job("<Name>&e;</Name>")}',
     "SSS102", "document type"),
    ("T01", "empty doctype", f"<!DOCTYPE Job>{job()}", "SSS102", "document type"),
    ("T01", "doctype in another case", f"<!doctype Job>{job()}", "SSS102", "document type"),
    ("T01", "doctype after a comment", f"<?xml version='1.0'?>\n<!-- x -->\n <!DOCTYPE Job []>{job()}", "SSS102", ""),
    ("T01", "doctype after a byte order mark", BOM + f"<!DOCTYPE Job>{job()}".encode(), "SSS102", "document type"),
    ("T01", "doctype in UTF-16", f"\ufeff<!DOCTYPE Job>{job()}".encode("utf-16-le"), "SSS102", "document type"),
    ("T01", "doctype behind a megabyte", f"{'<!-- x -->' * 120_000}<!DOCTYPE Job>{job()}", "SSS102", "document type"),
    ("T01", "undeclared entity", job("<Name>&e;</Name>"), "SSS101", ""),
    ("T02", "entities of entities", f"{LAUGHS}{job('<Name>&a9;</Name>')}", "SSS102", ""),
    ("T02", "entities in an attribute", f'{LAUGHS}<Job a="&a9;"/>', "SSS102", ""),
    ("T04", "nesting", f"<Job>{'<a>' * DEEP}{'</a>' * DEEP}</Job>", "SSS1", "depth"),
    ("T04", "attributes", f"<Job {ATTRIBUTES}><Id>1</Id></Job>", "SSS110", "attributes"),
    ("T04", "text", job(f"<Arguments>{'x' * 20_000_000}</Arguments>"), "SSS1", "ext"),
    ("T04", "gzip", gzip.compress(job().encode()), "SSS103", "gzip"),
    ("T04", "bzip2", bz2.compress(job().encode()), "SSS103", "bzip2"),
    ("T04", "xz", lzma.compress(job().encode()), "SSS103", "xz"),
    ("T04", "zstd", b"\x28\xb5\x2f\xfd" + job().encode(), "SSS103", "zstd"),
    ("T05", "UTF-16 without a mark", f"<?xml version='1.0'?>{job()}".encode("utf-16-le"), "SSS103", "UTF-16"),
    ("T05", "UTF-16 that is none", f"<?xml version='1.0' encoding='UTF-16'?>{job()}", "SSS103", "UTF-16"),
    ("T05", "half a character of UTF-16", f"\ufeff{job()}".encode("utf-16-le") + b"x", "SSS103", "UTF-16"),
    ("T05", "surrogate in UTF-16", b"\xff\xfe<\0J\0>\0\0\xd8<\0/\0J\0>\0", "SSS103", "UTF-16"),
    ("T05", "UTF-32", f"\ufeff{job()}".encode("utf-32-le"), "SSS103", "UTF-32"),
    ("T05", "UTF-7", f"<?xml version='1.0' encoding='UTF-7'?>{job()}", "SSS103", "UTF-7"),
    ("T05", "EBCDIC", f"<?xml version='1.0' encoding='cp037'?>{job()}".encode("cp037"), "SSS103", "EBCDIC"),
    ("T05", "Shift_JIS", f"<?xml version='1.0' encoding='Shift_JIS'?>{job()}", "SSS103", "Shift_JIS"),
    ("T05", "Latin-1 called UTF-8", b"<?xml version='1.0' encoding='UTF-8'?><Job><Id>\xe9</Id></Job>", "SSS1", "ncod"),
    ("T05", "overlong UTF-8", b"<Job><Id>\xc0\xaf</Id></Job>", "SSS1", "ncoding"),
    ("T05", "surrogate in UTF-8", b"<Job><Id>\xed\xa0\x80</Id></Job>", "SSS1", "ncoding"),
    ("T06", "tag that is not closed", "<Job>\n<Requested>\n<Memory>2048</Requested></Job>", "SSS101", "Memory"),
    ("T06", "blank before the declaration", f"\n<?xml version='1.0'?>{job()}", "SSS101", "declaration"),
    ("T06", "tag of white space", "<Job>\n  <Id>1</Id>\n  <Name>a</Name>\n  < \t>b</Name>\n</Job>", "SSS101", ""),
    ("T06", "tag of a line break", "<Job>\n  <Id>1</Id>\n  <\n>b</Name>\n</Job>", "SSS101", ""),
    ("T08", "escape character", job("<Name>\x1b[31m</Name>"), "SSS101", ""),
    ("T08", "NUL", job("<Name>\0</Name>"), "SSS101", ""),
    ("T09", "reference to a NUL", job("<Name>&#0;</Name>"), "SSS101", ""),
    ("", "empty", "", "SSS109", "empty"),
    ("", "blank", " \n\t ", "SSS109", "empty"),
    ("", "cut off", job()[:-6], "SSS101", ""),
]
#: Refused by ``check`` (and by whatever depends on it).
WRONG: Final[list[tuple[str, str, str, str]]] = [
    ("T03", "inclusion", '<Job xmlns:xi="http://www.w3.org/2001/XInclude"><Id>1</Id>'
     '<xi:include href="/etc/passwd" parse="text"/></Job>', "SSS301"),
    ("T04", "nesting below the parser's limit", f"<Job><Id>1</Id>{'<a>' * 200}{'</a>' * 200}</Job>", "SSS110"),
    ("T04", "identifier", job(f"<Queue>{'q' * 2000}</Queue>"), "SSS110"),
    ("T08", "Greek capital Iota", "<Job><\u0399d>1</\u0399d></Job>", "SSS108"),
    *(("T09", text[:12], nodecount(text), "SSS201") for text in (
        "1_6", "\uff11\uff12", "\u0663", "0b11", "0x10", "-0.5", "nan", "inf", "1e3", "1 6", "--5")),
    ("T09", "5,000 digits", nodecount("9" * 5000), "SSS110"),
    ("T09", "negative", nodecount("-5"), "SSS205"),
    ("T10", "cycle", group(needing("a", "b"), needing("b", "a")), "SSS410"),
    ("T10", "dependency on itself", group(needing("a", "a")), "SSS410"),
    ("T10", "Id twice", group(job(), job()), "SSS308"),
    ("T11", "Reject inside Ignore",
     '<Job awarenessPolicy="Ignore"><Id>1</Id><X><Y awarenessPolicy="Reject"/></X></Job>', "SSS301"),
    ("T11", "policy of a sister", '<Job><Id awarenessPolicy="Ignore">1</Id><X/></Job>', "SSS301"),
    ("T11", "policy not known", '<Job awarenessPolicy="Maybe"><Id>1</Id></Job>', "SSS210"),
    ("T11", "wrong value under Ignore", '<Job awarenessPolicy="Ignore"><Id>1</Id><NodeCount>x</NodeCount></Job>',
     "SSS201"),
    ("T12", "a million brackets", asks('<Memory group="1000000">5</Memory>'), "SSS110"),
    ("T12", "brackets in brackets", asks('<Memory group="1">5</Memory>' * 500 + '<Memory group="-1">5</Memory>' * 500),
     "SSS110"),
    ("T12", "preference of zero", asks('<Memory preference="0">5</Memory>'), "SSS403"),
    ("T13", "hundred million nodes", nodes("rack[1-99999999]"), "SSS110"),
    ("T13", "product of ranges", nodes("a[1-99]b[1-99]c[1-99]d[1-99]"), "SSS110"),
    ("T13", "400 digits", nodes(f"n[0-{'9' * 400}]"), "SSS110"),
    *(("T13", text, nodes(text), "SSS407") for text in ("n[5-", "n[[1]]", "n[3-1]", "n[1-3]]")),
    *(("T14", text[:12], geometry(text), "SSS408") for text in (
        "{0}{1}{0}", "{1-99999}", "{1,,2}", "{1}" * 100_000, "{", "{a}", "{" * 100_000)),
    *(("T15", text, node(text), "SSS406") for text in (
        "(?{1})", "(?&lt;=a)b", r"(a)\1", "[", "a{1000000}")),
    ("T15", "groups in groups", node("(?:" * 200 + ")" * 200), "SSS110"),
    ("T16", "negative duration", asks("<Duration>-5</Duration>"), "SSS201"),
    ("T20", "name of a variable", job('<Environment><Variable name="X=1;id">1</Variable></Environment>'), "SSS417"),
]
#: Accepted by everything; rule: that of a warning, or empty.
FINE: Final[list[tuple[str, str, str | bytes, str]]] = [
    ("T03", "hints", '<?xml-stylesheet href="http://127.0.0.1:9/x"?><Job '
     'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="u http://127.0.0.1:9/x.xsd">'
     "<Id>1</Id><Executable>/bin/true</Executable></Job>", "SSS106"),
    ("T05", "UTF-8 with a mark", BOM + job().encode(), ""),
    ("T05", "UTF-16", f"\ufeff<?xml version='1.0' encoding='UTF-16'?>\n{job()}".encode("utf-16-be"), ""),
    ("T05", "ISO-8859-1", b"<?xml version='1.0' encoding='ISO-8859-1'?>" + job("<Name>é</Name>").encode("latin-1"), ""),
    ("T05", "windows-1252", b"<?xml version='1.0' encoding='windows-1252'?>" + job("<Name>€</Name>").encode("cp1252"),
     ""),
    ("T06", "typographic quotes", asks("<Memory op=”LE”>5</Memory>"), "SSS104"),
    ("T06", "opening tag for a closing one", asks("<Memory>2048<Memory>"), "SSS105"),
    ("T07", "text in pieces", job("<User>ro<!-- -->ot</User><Group>a<![CDATA[b]]>c</Group>"), ""),
    ("T07", "instruction in a text", job("<User>ro<?x y?>ot</User>"), "SSS106"),
    ("T08", "zero-width joiner", job("<Queue>ba\u200dtch</Queue>"), "SSS209"),
    ("T08", "bidi override", job("<Name>a\u202egnp</Name>"), "SSS209"),
    ("T08", "other scripts", job("<Name>при 漢字 عربي</Name>"), ""),
    ("T09", "sign and zeros", nodecount("+0016"), ""),
    ("T10", "chain of 3,000", group(*(needing(f"j{n}", f"j{n - 1}") if n else
                                      "<Job><Id>j0</Id><Executable>/bin/true</Executable></Job>"
                                      for n in range(3_000))), ""),         # thrice as deep as calls may be
    ("T11", "unknown under Ignore", '<Job awarenessPolicy="Ignore"><Id>1</Id><Executable>/bin/true</Executable>'
     '<X/><Y z="1"/></Job>', ""),
    ("T11", "policy in another case",
     '<Job awarenessPolicy="IGNORE"><Id>1</Id><Executable>/bin/true</Executable><X/></Job>', ""),
    ("T12", "bracket left open", asks('<Memory group="1">5</Memory>'), "SSS402"),
    ("T12", "chain of Nand", asks('<Memory conj="Nand">5</Memory>' * 2000), ""),
    ("T13", "a million nodes", nodes("n[1-1000000]"), ""),
    ("T14", "20,000 groups", geometry("".join(f"{{{n}}}" for n in range(20_000))), ""),
    ("T15", "catastrophe", node("(a+)+$"), ""),
    ("T16", "end before start", job("<StartTime>2000000000</StartTime><EndTime>1000000000</EndTime>"), "SSS412"),
    ("T16", "after 2106", job("<StartTime>4294967296</StartTime><EndTime>99999999999999999</EndTime>"), ""),
    ("T17", "line breaks", job("<Name>x&#10;#SBATCH --comment=boo</Name><Queue>a&#x2028;b</Queue>"), "SSS209"),
    ("T18", "options", job("<Queue>gold --nice=-5</Queue>", "-o/x"), ""),
    ("T19", "separators", job('<Environment><Variable name="V">a,b:c]d=e;$(f)</Variable></Environment>'), ""),
    ("T20", "shell text", job("<Arguments>a; id &gt; pwned</Arguments>"), ""),
    ("T21", "template", job("<Name>{{ config }}{% for %}</Name>"), ""),
    ("T23", "markup", job("<Name>[bold red]x[/] &lt;b&gt; =1+1</Name>"), ""),
    ("T24", "Id that is a path", job().replace("<Id>1", "<Id>../../x"), ""),
    ("T24", "OutputFile", job("<OutputFile>/etc/passwd</OutputFile>"), ""),
    ("T25", "address", job(executable="http://127.0.0.1:9/x"), "SSS425"),
    ("", "white space", "<Job\t\r\n >\r\n\t<Id >\n 1 \n</Id\n>\r<NodeCount>\n\t 4 </NodeCount></Job>\n\n", ""),
    ("", "many jobs", group(*(f"<Job><Id>{n}</Id></Job>" for n in range(4_000))), ""),
]
#: format, text, rule, a word of the line: the JSON formats, read by ``convert``.
JSON: Final[list[tuple[str, str | bytes, str, str]]] = [
    ("sss-json", '{"Job":{"Id":"1","Id":"2"}}', "SSS111", ":1:9:"),
    ("sss-json", '{"Job":{"Id":"1","NodeCount":NaN}}', "SSS111", "NaN"),
    ("sss-json", '{"Job":{"Id":"1","NodeCount":true}}', "SSS201", ":1:18:"),
    ("sss-json", '{"Job":{"Id":"1","NodeCount":1e400}}', "SSS201", ":1:18:"),
    ("sss-json", f'{{"Job":{{"Id":"1","NodeCount":{NINES}}}}}', "SSS110", "digits"),
    ("sss-json", "[" * 50_000 + "]" * 50_000, "SSS110", "depth"),
    ("sss-json", '{"a":' * 50_000 + "1" + "}" * 50_000, "SSS110", "depth"),
    ("sss-json", '{"Job":{"Id":"a\\u0000b"}}', "SSS112", ":1:9: SSS112 error Id: "),
    ("sss-json", '{"Job":{"Id":"\\ud800"}}', "SSS112", ":1:9: SSS112 error Id: "),
    ("sss-json", '{"Job":{"Id":"1","NodCount":4}}', "SSS301", "did you mean NodeCount?"),
    ("sss-json", b'{"Job":{"Id":"\xff"}}', "SSS111", "byte 0xff"),
    ("sss-json", '{"Job":{"Id":"1"}} x', "SSS111", ":1:20:"),
    ("sss-json", "", "SSS111", ""),
    ("sss-json", "null", "SSS112", ""),
    ("psij", '{"executable":"a","executable":"b"}', "SSS112", "/executable"),
    ("psij", '{"executable":"a","argments":[]}', "SSS112", "did you mean 'arguments'?"),
    ("psij", '{"executable":"a","resources":{"__version":7}}', "SSS112", "version 7"),
    ("psij", '{"executable":"a","resources":{"__version":1,"process_count":true}}', "SSS112", "/resources/proc"),
    ("psij", '{"executable":"a","resources":{"__version":1,"process_count":NaN}}', "SSS112", "/resources/proc"),
    ("psij", f'{{"executable":"a","resources":{{"__version":1,"process_count":{NINES}}}}}', "SSS112", "/resources"),
    ("psij", '{"environment":' * 50_000 + "1" + "}" * 50_000, "SSS1", ""),
    ("psij", '{"executable":"a\\u0000"}', "SSS112", "/executable"),
    ("psij", '{"executa', "SSS111", ""),
    ("psij", '[{"executable":"a"},5]', "SSS112", ""),
]
#: Queries that are refused or given up: the query, exit status, a word of the message.
QUERIES: Final[list[tuple[str, int, str]]] = [
    ("doc('/etc/passwd')", 2, "doc()"), ("unparsed-text('/etc/passwd')", 2, "unparsed-text()"),
    ("environment-variable('HOME')", 2, "environment-variable()"), ("document('http://127.0.0.1:9/')", 2, "document()"),
    ("(" * 50_000, 2, "characters"), ("(" * 100 + "1" + ")" * 100, 2, "brackets"), ("//Job[", 2, "query"),
    ("$missing", 2, "query"), ("", 2, "empty"), ("//Id[.='\udcff']", 2, "characters"), ("//a\x1b", 2, "characters"),
]
#: Threats that no command meets yet, and why.
ELSEWHERE: Final = {
    "T27": "no command reads the output of a resource manager",
    "T29": "no command reads feature files",
    "T30": "formats and executors load as tests/translators/test_registry.py and tests/psij/test_plugins.py show",
    "T31": "nothing listens on a port",
    "T32": "the local executor waits for its processes; there is no exit-code file",
}
OTHER: Final = {"T22", "T26", "T28"}        # below, without rows of documents
COMMANDS: Final[dict[str, list[str]]] = {
    "check": ["check"], "query": ["query", "//Job"], "stream": ["query", "--stream", "//Job"], "show": ["show"],
    "explain": ["explain"], "match": ["match", "offer.xml"], "sss": ["convert", "-f", "sss", "-t", "sss", "-o", "made"],
    "json": ["convert", "-f", "sss", "-t", "sss-json", "-o", "made"], "run": ["run", "-o", "made"],
}


def named(rows: list[Any]) -> list[Any]:
    return [pytest.param(*row[2:], id=f"{row[0]} {row[1]}".strip()) for row in rows]


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """What is done in it takes less time of the processor than that, and writes the file ``made`` anew if at all."""
    Path("made").unlink(missing_ok=True)
    start = time.process_time()
    yield
    assert time.process_time() - start < seconds


def put(text: str | bytes, name: str = "bad.xml") -> Path:
    path = Path(name)
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return path


def lines_of(err: str) -> list[str]:
    assert "Traceback" not in err and "internal" not in err and "\x1b" not in err
    return err.splitlines()


def test_every_threat_has_a_row_or_a_reason() -> None:
    rows = {row[0] for table in (UNREADABLE, WRONG, FINE) for row in table} - {""}
    assert sorted(rows | OTHER | ELSEWHERE.keys()) == [f"T{n:02}" for n in range(1, 33)]
    assert not rows & ELSEWHERE.keys()
    assert {row[3] for row in WRONG} <= RULES.keys()


@pytest.mark.parametrize(("text", "rule", "words"), named(UNREADABLE))
def test_unreadable(sssjob: Command, place: Path, text: str | bytes, rule: str, words: str) -> None:
    file = put(text)
    with Cases() as case:
        for command, arguments in COMMANDS.items():
            with case(command), within(10):
                code, out, err = sssjob(*arguments, file)
                line = lines_of(err)[-1]
                assert (code, out, Path("made").exists()) == (1, "", False)
                assert line.startswith("bad.xml:") and f": {rule}" in line and " error " in line and words in line
                assert len(line) < 1500


@pytest.mark.parametrize(("text", "rule"), named(WRONG))
def test_wrong(sssjob: Command, place: Path, text: str, rule: str) -> None:
    file = put(text)
    with Cases() as case:
        for command in ("check", "sss", "run"):
            with case(command), within(10):
                code, out, err = sssjob(*COMMANDS[command], file)
                lines = lines_of(err)
                assert (out, Path("made").exists()) == ("", code != 1)
                if command != "sss":        # what no format takes offence at may be converted
                    assert code == 1
                    assert any(line.startswith("bad.xml:") and f": {rule} error " in line for line in lines)


@pytest.mark.parametrize(("text", "rule"), named(FINE))
def test_fine(sssjob: Command, place: Path, text: str | bytes, rule: str) -> None:
    file = put(text)
    with Cases() as case:
        for command in COMMANDS.keys() - {"run", "match"}:
            if command == "stream" and rule in ("SSS104", "SSS105"):        # nothing is repaired in a stream
                continue
            with case(command), within(20):
                code, out, err = sssjob(*COMMANDS[command], file)
                assert code == 0
                if command == "check":
                    rules = {line.split()[1] for line in lines_of(err) if " info " not in line}
                    assert [r for r in (rule,) if r] == sorted(rules)
                assert not any(c in out for c in "\x1b\x9b\u202e") or command in ("query", "stream")


def test_json(sssjob: Command, place: Path) -> None:
    with Cases() as case:
        for source, text, rule, words in JSON:
            file = put(text, "bad.json")
            for target in ("sss", "psij"):
                with case(f"{text[:60]!r} to {target}"):
                    code, out, err = sssjob("convert", "-f", source, "-t", target, file, "-o", "made")
                    (line, *_) = lines_of(err)
                    assert (code, out, Path("made").exists()) == (1, "", False)
                    assert line.startswith("bad.json:") and rule in line and words in line


def test_queries(sssjob: Command, place: Path) -> None:
    with Cases() as case:
        for query, expected, words in QUERIES:
            with case(query[:60]):
                code, out, err = sssjob("query", query, "group.xml")
                assert (code, out) == (expected, "")
                assert words in err and len(lines_of(err)) == 1


def test_query_that_takes_too_long_is_given_up(sssjob: Command, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    query = import_module("sssjob.query")
    short = replace(LIMITS, query_seconds=0.5)
    monkeypatch.setattr(query, "query", partial(query.query, limits=short))
    text = "matches('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!', '(a+)+$')"
    code, out, err = sssjob("query", text, "job.xml", "group.xml")
    assert (code, out) == (1, "")
    assert lines_of(err) == [f"sssjob: {name}.xml: the query took longer than query_seconds (0.5 s)"
                             for name in ("job", "group")]


def test_values_of_variables_are_no_queries(sssjob: Command, place: Path) -> None:
    assert sssjob("query", "--var", "x=' or '1'='1", "//Job[Id=$x]", "group.xml") == (0, "", "")
    code, _, err = sssjob("query", "--var", "x=\udcff", "//Job[Id=$x]", "group.xml")
    assert (code, "variable x" in err) == (2, True)


# --- memory and time

def limited(*arguments: str, megabytes: int = 1500, seconds: float = 200) -> subprocess.CompletedProcess[str]:
    """A command in a process, started for it, that may not take more memory or time."""
    ulimit = f'ulimit -v {megabytes * 1024}; exec "$@"'
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(["bash", "-c", ulimit, "bash", sys.executable, "-m", "sssjob", *arguments], env=environment,
                          capture_output=True, text=True, timeout=seconds)


def limited_fork(*arguments: str) -> tuple[int, str, str]:
    """The same with a process that is forked: its exit code, output and errors."""
    most = {resource.RLIMIT_AS: 1500 << 20}
    with forks.Command(arguments, Path.cwd(), os.environ, most) as made:
        out, err = made.communicate(timeout=120)
    return made.wait(), out, err


#: What takes much memory -> the text, and the commands that read such a one in different ways.
_LARGE: Final[dict[str, tuple[Callable[[], str | bytes], str]]] = {
    "T04 depth": (lambda: f"<Job>{'<a>' * 3_000_000}", "check stream json"),
    "T04 text": (lambda: job(f"<Arguments>{'x' * 60_000_000}</Arguments>"), "check stream json"),
    "T04 gzip": (lambda: gzip.compress(b" " * 1_000_000) * 300, "check stream json"),      # as many members
    "T12 group": (lambda: asks(f'<Memory group="{10 ** 15}">5</Memory>'), "check query stream show explain sss json"),
    "T13 nodes": (lambda: nodes("n[1-99999999999999]"), "check query stream show explain sss json"),
    "T14 tasks": (lambda: job(f"<TaskGroup><TaskCount>{10 ** 15}</TaskCount></TaskGroup>"),
                  "check query stream show explain sss json"),
}


@pytest.mark.parametrize(("threat", "command"), [
    (threat, command) for threat, (_, commands) in _LARGE.items() for command in commands.split()])
def test_memory_is_bounded(place: Path, threat: str, command: str) -> None:
    code, out, err = limited_fork(*COMMANDS[command], str(put(_LARGE[threat][0]())))
    assert code in (0, 1) and len(out) < 10_000
    lines_of(err)


def test_memory_that_runs_out_is_told(place: Path) -> None:
    """A query keeps the tree of a document."""
    put(group(*(f"<Job><Id>{n}</Id><Name>{n}</Name></Job>" for n in range(300_000))), "big.xml")
    answer = limited("query", "//Owner", "big.xml", "broken.xml", megabytes=200)
    assert answer.returncode == 1
    first, *_, last = lines_of(answer.stderr)
    assert first == "big.xml: SSS110 error the input takes more memory than there is"
    assert last.startswith("broken.xml:2:1: SSS101")        # the next one is read all the same


# --- what is never done, never shown

def test_data_stays_data_when_it_runs(sssjob: Command, place: Path) -> None:
    put(job('<Arguments>a "; id > pwned" $(id > pwned) `id > pwned`</Arguments><OutputFile>out.txt</OutputFile>'
            '<Environment><Variable name="V">`id > pwned`</Variable></Environment>', "/bin/echo"), "data.xml")
    assert sssjob("run", "-q", "--policy", "warn", "data.xml", "-o", "made").code == 0
    assert Path("out.txt").read_text() == "a ; id > pwned $(id > pwned) `id > pwned`\n"
    assert not Path("pwned").exists()


def test_nothing_is_fetched_or_written_beside(sssjob: Command, place: Path) -> None:
    before = {p.name for p in place.iterdir()}
    put(job("<OutputFile>../escape.txt</OutputFile>", "http://127.0.0.1:9/x"), "net.xml")
    code, out, err = sssjob("run", "net.xml")
    assert (code, out, "SSS603" in err) == (1, "", True)
    put(job().replace("<Id>1", "<Id>../../x"), "id.xml")
    assert sssjob("convert", "-f", "sss", "-t", "sss", "--out", "d", "id.xml").out == "d/_._.._x.xml\n"
    assert {p.name for p in place.iterdir()} == before | {"net.xml", "id.xml", "d"}
    assert not (place.parent / "escape.txt").exists() and not (place.parent / "x.xml").exists()


SECRET = job('<Arguments>http://u:hunter2@h/</Arguments>\n'
             '<Environment><Variable name="DB_PASSWORD" foo="x">hunter2</Variable></Environment>')


@pytest.mark.parametrize("arguments", [["check"], ["check", "--json"], ["show", "--policy", "warn"],
                                       ["show", "--origins", "--policy", "warn"], ["explain"],
                                       ["show", "--json", "--policy", "warn"]])
def test_secrets_are_masked(sssjob: Command, place: Path, arguments: list[str]) -> None:
    _, out, err = sssjob(*arguments, put(SECRET))
    assert "hunter2" not in out + err and out + err


HIDDEN: Final = frozenset("\u202e\u2066\x85\x9b\u2028\u200b")
BAD_TEXT: Final = "[red]\u202e\u2066\x85\x9b31m\u2028\u200b"


@pytest.mark.parametrize("arguments", [["check"], ["show"], ["show", "--brief"], ["show", "--origins"], ["explain"],
                                       ["match", "--explain", "bad.xml"], ["run", "--policy", "warn", "-o", "made"]])
def test_no_control_or_bidi_character_is_written(sssjob: Command, place: Path, arguments: list[str]) -> None:
    text = "".join(f"&#{ord(c)};" for c in BAD_TEXT)
    put(job(f"<Name>{text}</Name><Queue>{text}</Queue><Project awarenessPolicy='{text}'>{text}</Project>"
            f"<X a='{text}'>{text}</X><Requested><Node op='Match'>{text}</Node></Requested>"))
    _, out, err = sssjob(*arguments, "bad.xml")
    assert not set(out + err) & HIDDEN
    put("<Job><Id>1</Id><\u202eX/></Job>", "name.xml")
    assert "\u202e" not in sssjob("check", "name.xml").err


def test_json_lines_are_json_whatever_is_in_them(sssjob: Command, place: Path) -> None:
    put(job(f"<Name>{BAD_TEXT}</Name><Sttae>\u2028</Sttae>"))
    for arguments in (["check"], ["show"], ["explain"], ["query", "//Name"], ["match", "offer.xml"]):
        _, out, err = sssjob(*arguments, "--json", "bad.xml")
        assert all(isinstance(json.loads(line), dict) for line in (out + err).split("\n") if line)
    for wrong in (["check"], ["check", "--nope"], ["chek"], ["run", "none.xml"], ["query", "//Job["],
                  ["show", "a", "b"], ["run", "--executor", "none", "job.xml"]):
        code, out, err = sssjob(*wrong, "--json")
        assert (out, {json.loads(line).get("status", code) for line in err.splitlines()}) == ("", {code})


@pytest.mark.parametrize("command", COMMANDS)
def test_a_text_that_no_format_knows(sssjob: Command, place: Path, command: str) -> None:
    """It may be in any of many forms, so the answer is to name one."""
    code, out, err = sssjob(*COMMANDS[command], put("hello"))
    if command in ("sss", "json", "stream"):        # told that it is XML
        assert (code, out) == (1, "") and "SSS101" in err
    else:
        assert (code, out) == (2, "")
        assert lines_of(err)[-1] == "sssjob: bad.xml: no format is recognised in it; name one with --from"
