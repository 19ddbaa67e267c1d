"""Messages: every recorded one is read and written again, what is not understood is answered, bad input is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.document.model import Document
from sssjob.errors import RejectedError, SSSJobError, UsageError
from sssjob.findings import Findings, Policy
from sssjob.limits import LIMITS
from sssjob.sssrmap import (
    Count,
    Data,
    Envelope,
    File,
    Foreign,
    Get,
    MessageError,
    Object,
    Option,
    Request,
    Response,
    Set,
    Signature,
    Status,
    Token,
    Where,
    read_message,
    status_of,
    write_message,
)
from sssjob.sssrmap._carried import form_of
from sssjob.sssrmap.model import CONJUNCTIONS, GET_OPS, SET_OPS, WHERE_OPS
from sssjob.sssrmap.statuses import CODES, meaning_of, outcome_of
from sssjob.sssrmap.writer import DECLARATION
from sssjob.xml.reader import read_document
from sssjob.xml.writer import write_document
from sssjob.xml.xmlio import parse_tree
from tests.cases import Cases
from tests.spec.support import spec
from tests.sssrmap.recordings import exchanges, messages
from tests.strategies import documents

MESSAGES: Final = messages()
#: Recorded messages that are written in another form -> why. All others come back letter by letter.
IN_ANOTHER_FORM: Final = {
    **dict.fromkeys(("sign-05", "sign-06"), "empty elements get an end tag"),
    **dict.fromkeys(("sign-07", "sign-08"), "attributes stand in double quotes"),
    **dict.fromkeys(("sign-09", "sign-10"), "one blank stands before an attribute"),
    **dict.fromkeys(("sign-11", "sign-12"), "no white space stands between elements"),
    "sign-13": "comments are no part of a message",
    "sign-14": "text of a CDATA section is written as text",
    **dict.fromkeys(("sign-15", "sign-16"), "quotes stand bare in text"),
    **dict.fromkeys(("sign-17", "sign-18"), "> in text is written &gt;"),
    "sign-22": "letters are written as themselves",
    "sign-02": "Signature stands behind Body",
    "sign-26": "attributes that are not known stand last",
    "query-10": "a number has no plus sign",
    "chunk-12": "truth is True or False",
    "envelope-08": "the root is Envelope",
    "envelope-01": "what Body says is said by Request",
    "envelope-13": "the object is an element",
    "envelope-06": "a second request is not read",
    **dict.fromkeys(("envelope-15", "envelope-16", "envelope-17", "refuse-42", "reply-17"), "names have no namespace"),
    **dict.fromkeys(("maui-1", "maui-2", "maui-3"), "what Body says is said by Request"),
}
#: Recorded messages that cannot be read -> the code or rule that says why.
UNREAD: Final = {
    "envelope-02": "242", "envelope-18": "SSS101", "envelope-21": "SSS101", "envelope-22": "SSS101",
    "frame-33": "SSS101", "frame-36": "SSS101"}


def why(error: SSSJobError) -> str:
    """The code or rule of an error."""
    return error.code if isinstance(error, MessageError) else error.findings[0].rule  # type: ignore[attr-defined]


@spec("SSSRMAP Envelope", 1)
def test_what_was_recorded_comes_back() -> None:
    """What is written says the same; the tables name those that come back in another form, and no others."""
    in_another_form, unread = set(), {}
    with Cases() as case:
        for name, text in MESSAGES.items():
            exchange = name.partition(" ")[0]
            with case(name):
                try:
                    message = read_message(text.encode(), profile="gold")
                except SSSJobError as error:
                    unread[exchange] = why(error)
                    continue
                written = write_message(message)
                if written != as_written(text):
                    in_another_form.add(exchange)
                assert read_message(written, profile="gold") == message
                assert exchange in IN_ANOTHER_FORM or written == as_written(text)
    assert (in_another_form, unread) == (set(IN_ANOTHER_FORM), UNREAD)


def as_written(text: str) -> str:
    """A recorded message with the declaration that all are written with."""
    return text if text.startswith("<?xml") else DECLARATION + text


def test_answers_say_what_was_noted_of_them() -> None:
    with Cases() as case:
        for name, exchange in exchanges().items():
            if "code" in exchange.get("facts", {}) and name != "frame-36":
                with case(name):
                    check_answer(name, exchange["facts"])


def check_answer(exchange: str, facts: dict[str, Any]) -> None:
    """Compare the answer of an exchange with what was noted of it."""
    names = [n for n in MESSAGES if n.startswith(f"{exchange} response")]
    assert len(names) == facts["envelopes"] or facts.get("endless")
    response = read_message(MESSAGES[names[0]], profile="gold").response
    status = response.status
    assert (status.value, status.code, status.message) == (facts["value"], facts["code"], facts.get("message"))
    assert (None if response.count is None else str(response.count)) == facts.get("count")
    assert outcome_of(facts["code"]) == facts["value"]
    assert status.exit_status == int(facts["code"]) // 10
    if len(names) > 1 and not facts.get("endless"):
        pieces = [read_message(MESSAGES[n]).response for n in names]
        assert [p.chunk_num for p in pieces] == list(range(1, len(names) + 1))
        assert [p.last for p in pieces] == [False] * (len(names) - 1) + [True]


@spec("SSSRMAP Envelope", 2)
def test_a_signed_message_that_is_built_is_the_recorded_one() -> None:
    """Recording query-09: brackets and conjunctions."""
    text = MESSAGES["query-09 request"]
    signature = read_message(text).signature
    request = Request("Query", "root", (
        Object("User"), Get("Name"), Where("Active", "True", group=1), Where("Name", "amy", conj="And", group=1),
        Where("Name", "dave", conj="Or", group=-2)))
    assert write_message(Envelope(request, signature)) == text


# --- what is not understood ---------------------------------------------------------------------------------------

ODD: Final = ('<Envelope><Body><Request action="Query" actor="a" colour="red"{policy}><Object>Job</Object>'
              '<Get name="Id" op="Shuffle"></Get><Wherever name="x">1</Wherever></Request></Body></Envelope>')


@pytest.mark.parametrize(("policy", "code", "value"), [
    ("", "710", "Failure"), (' awarenessPolicy="Reject"', "710", "Failure"),
    (' awarenessPolicy="Warn"', "100", "Warning"), (' awarenessPolicy="Ignore"', "000", "Success")])
@spec("SSSRMAP Request", 2)
def test_the_requestor_is_told_what_was_not_understood(policy: str, code: str, value: str) -> None:
    findings = Findings()
    text = ODD.format(policy=policy)
    message = read_message(text, findings=findings)
    status = status_of(findings)
    assert (status.code, status.value) == (code, value)
    assert status.message == (None if code == "000" else (
        "not understood: op, Wherever, colour (op of Get is 'Shuffle' (known: Sort, Tros, Count, Sum, Average, Max, "
        "Min, GroupBy); Request has no element Wherever; Request has no attribute colour)"))
    assert message.request.all(Foreign) == (Foreign('<Wherever name="x">1</Wherever>'),)
    assert read_message(write_message(message)) == message


def test_profile_gold_passes_over_what_it_does_not_know() -> None:
    findings = Findings()
    read_message(ODD.format(policy=""), profile="gold", findings=findings)
    assert status_of(findings) == Status("Success", "000")
    findings = Findings()
    read_message(ODD.format(policy=""), profile="gold", policy=Policy.REJECT, findings=findings)
    assert status_of(findings).code == "710"


@pytest.mark.parametrize(("policy", "code"), [("", "710"), (' awarenessPolicy="Warn"', "100"),
                                              (' awarenessPolicy="Ignore"', "000")])
@spec("SSSRMAP Request", 2)
def test_jobs_in_data_tell_by_their_own_policy(policy: str, code: str) -> None:
    data = Data(f"<Job{policy}><Id>1</Id><Colour>red</Colour></Job>")
    document = data.document()
    status = status_of(Findings(), document.findings)
    assert status.code == code
    assert status.message == (None if code == "000" else status.message)
    assert "Colour" in (status.message or "Colour")


@spec("SSSRMAP Request", 4)
def test_data_of_a_document_is_compact_and_has_the_names_of_the_profile() -> None:
    document = read_document("<Job><Id>1</Id><User>amy</User><Requested><Processors>2</Processors></Requested></Job>")
    assert Data.of(document) == Data(
        "<Job><Id>1</Id><User>amy</User><Requested><Processors>2</Processors></Requested></Job>")
    flat = read_document("<Job><Id>1</Id><User>amy</User><Machine>m</Machine></Job>")
    assert Data.of(flat, "gold") == Data("<Job><JobId>1</JobId><UserId>amy</UserId><MachineName>m</MachineName></Job>")
    assert Data.of(document).document().root.children[0] == document.root  # type: ignore[union-attr]
    with pytest.raises(RejectedError):
        Data.of(document, "gold")


@pytest.mark.parametrize(("request_", "code"), [
    (Request(None, "a", (Object("Job"),)), "312"), (Request("Query", "", (Object("Job"),)), "312"),
    (Request("Query", "a"), "311"), (Request("Delete", "a", (Object("Job"), Get("Id"))), "318"),
    (Request("Query", "a", (Object("Job"), Set("Id", "1"))), "318"),
    (Request("Delete", "a", (Object("Job"), Object("Node"))), "740"),
    (Request("Query", "a", (Object("Job"), Object("Node"))), None)])
@spec("SSSRMAP Request", 1)
def test_requests_that_lack_something(request_: Request, code: str | None) -> None:
    status = request_.refusal()
    assert (None if status is None else status.code) == code


# --- bad input ----------------------------------------------------------------------------------------------------

def refused(text: str | bytes, **more: Any) -> str:
    """The code or rule that a text is refused with."""
    with pytest.raises(SSSJobError) as caught:
        read_message(text, **more)
    return why(caught.value)


@pytest.mark.parametrize(("text", "reason"), [
    ("", "SSS109"), ("hello", "SSS101"), ("<Envelope>", "SSS101"), ("\x16\x03\x01", "SSS101"),
    ('<!DOCTYPE Envelope [<!ENTITY a "b">]><Envelope><Body/></Envelope>', "SSS102"),
    ('<!DOCTYPE Envelope SYSTEM "file:///etc/passwd"><Envelope><Body/></Envelope>', "SSS102"),
    ("<Letter><Body/></Letter>", "242"), ("<Envelope/>", "242"),
    ("<Envelope><EncryptedData><CipherValue>x</CipherValue></EncryptedData></Envelope>", "434"),
    ("<Envelope>" + "<a>" * 400 + "</a>" * 400 + "</Envelope>", "SSS110"),
    ("<Envelope><Body a\ud800='1'/></Envelope>", "SSS103"),
])
@spec("SSSRMAP Envelope", 3, 4)
def test_what_is_no_message(text: str, reason: str) -> None:
    assert refused(text) == reason


def asking(inner: str) -> str:
    """A query for jobs with these parts."""
    return f'<Envelope><Body><Request action="Query" actor="a"><Object>Job</Object>{inner}</Request></Body></Envelope>'


def test_a_million_conditions_are_a_limit() -> None:
    where = '<Where name="Id">1</Where>'
    text = asking(where * 20_000)
    assert refused(text) == "SSS110"
    assert refused(text, limits=replace(LIMITS, message_bytes=1000)) == "SSS110"


@pytest.mark.parametrize("inner", [
    '<Where name="Id" group="many">1</Where>', '<Where name="Id" group="9999999999999999999999">1</Where>',
    '<Where>1</Where>', '<Where name="Id" conj="Nand">1</Where>', '<Count>many</Count>', '<Count>٣</Count>',
    '<Get name="Id"><Get name="Id"/></Get>', '<x:Get xmlns:x="urn:x" name="Id"/>'])
def test_odd_parts_are_rejected_and_named(inner: str) -> None:
    findings = Findings()
    read_message(asking(inner), findings=findings)
    assert status_of(findings).code == "710"


@spec("SSSRMAP Response", 1)
def test_a_response_without_a_code_is_no_answer() -> None:
    for inner in ("", "<Status><Value>Success</Value></Status>"):
        message = read_message(f'<Envelope><Body><Response actor="a">{inner}</Response></Body></Envelope>')
        with pytest.raises(MessageError) as caught:
            assert message.response.status
        assert caught.value.code == "321"
    with pytest.raises(MessageError):
        assert Envelope(None).request
    with pytest.raises(MessageError):
        assert Envelope(None).response


def test_characters_that_xml_cannot_hold_are_not_written() -> None:
    with pytest.raises(UsageError):
        write_message(Envelope(Request("Query", "a\x00", (Object("Job"),))))


# --- all messages -------------------------------------------------------------------------------------------------

_text = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff"),
                max_size=8).map(lambda text: text.strip() and text)
_name = st.text("ABCabc.:/@[]='", min_size=1, max_size=6)
_maybe = st.none() | _text
_parts = st.one_of(
    st.builds(Object, _name, alias=_maybe), st.builds(Get, _name, st.none() | st.sampled_from(GET_OPS), _maybe, _maybe),
    st.builds(Set, _name, _text, st.none() | st.sampled_from(SET_OPS)),
    st.builds(Where, _name, _text, st.none() | st.sampled_from(WHERE_OPS), st.none() | st.sampled_from(CONJUNCTIONS),
              st.none() | st.integers(-99, 99), _maybe, _maybe, _maybe),
    st.builds(Option, _name, _text, st.sampled_from((None, "Not"))), st.builds(Count, st.integers(-10**9, 10**9)),
    st.builds(File, _name, _text), st.just(Data("<Job><Id>1</Id></Job>")))
_requests = st.builds(Request, _maybe, _maybe, st.lists(_parts, max_size=6).map(tuple), _maybe,
                      st.none() | st.booleans(), st.none() | st.integers(-5, 5))
_statuses = st.builds(Status, _maybe, _maybe, _maybe)
_responses = st.builds(Response, st.lists(_statuses | st.builds(Count, st.integers(0, 9)), max_size=3).map(tuple),
                       _maybe, st.none() | st.integers(1, 9), st.none() | st.integers(-1, 9))
_signatures = st.none() | st.builds(Signature, _maybe, _maybe, st.none() | st.builds(Token, _maybe, _maybe, _text))


@given(st.builds(Envelope, _requests | _responses, _signatures))
@spec("SSSRMAP Envelope", 1)
def test_reading_what_was_written_gives_the_message(message: Envelope) -> None:
    text = write_message(message)
    again = read_message(text)
    assert again == message
    assert write_message(again) == text


@spec("SSSRMAP Response", 4)
def test_every_code_has_a_meaning() -> None:
    assert all(len(code) == 3 and code.isdecimal() for code in CODES)
    assert [meaning_of(code) for code in ("782", "783", "299", "123", "oops")] == [
        "insufficient funds", "server error", "network or wire protocol failure", "warning", "unknown failure"]


@given(documents(), st.sampled_from(["3.1", "gold"]))
def test_jobs_in_data_are_written_as_a_parser_would_write_them(document: Document, profile: str) -> None:
    """Without white space between elements and with an end tag for each, by the writer itself: the form that old peers
    sign and read."""
    try:
        content = Data.of(document, profile).content
    except RejectedError:
        return
    pieces = []
    for body in document.bodies():
        alone = Document(body)
        alone.findings = document.findings
        text = write_document(alone, profile=profile)
        if text:        # else the profile refuses all of it
            pieces.append(form_of(parse_tree(text.encode(), findings=Findings(), repairs=False)))
    assert content == "".join(pieces)


@pytest.mark.parametrize("inner", [
    "<x:note xmlns:x='urn:x'>a <x:b/> <x:c/>  b</x:note>", "<x:note xmlns:x='urn:x'>  <x:b> </x:b>  </x:note>"])
def test_what_was_kept_as_it_was_read_is_in_data_too(inner: str) -> None:
    document = read_document(f"<Job><Id>a</Id><Extension name='e'>{inner}</Extension></Job>".encode(),
                             policy=Policy.IGNORE)
    content = Data.of(document).content
    text = write_document(document)
    assert content == form_of(parse_tree(text.encode(), findings=Findings(), repairs=False))


@pytest.mark.parametrize("content", [
    "<Job><Id>a</Id></Job>", "<Job name='x'><Id>a</Id></Job>", "<Job>\n<Id>a</Id></Job><Job><Id>b</Id></Job>",
    "<JobGroup><Id>g</Id><Job><Id>a</Id><Job/></Job></JobGroup>", "<JobGroup><Id>g</Id></JobGroup>\n<!-- x -->",
    "<JobGroup><Id>g</Id><Job><Oops>1</Oops></Job></JobGroup>", "<job><Id>a</Id></job>", "<Job><Id>a</Job>",
    "<Job><Note><![CDATA[</Job><Job>]]></Note></Job>", "<!-- <Job> --><Job><Id>a</Id></Job>", "<Job/><Job></Job>",
    "<JobGroup/><JobGroup><Id>g</Id></JobGroup>", "text<Job><Id>a</Id></Job>", "<Job><Id>a</Id></Job ><x/>", "",
    "<!DOCTYPE Job><Job><Id>a</Id></Job>", "<?xml version='1.0'?><Job><Id>a</Id></Job>", "<JobGroup><Id>a</JobGroup>"])
def test_one_object_in_data_is_read_like_several(content: str) -> None:
    """A Job or JobGroup alone is read without a tree: objects and findings are those of the tree, but for columns and
    paths, in which Data counts there."""
    def read(act: Callable[[], Document]) -> tuple[object, ...]:
        try:
            document = act()
        except RejectedError as error:
            return tuple(finding.rule for finding in error.findings)
        return document.root, document.files, [(f.rule, f.subject, f.message, f.path.removeprefix("/Data"), f.line)
                                               for f in document.findings or ()]

    assert read(Data(content).document) == read(lambda: read_document(f"<Data>{content}</Data>", profile="liberal"))
