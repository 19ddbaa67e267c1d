"""Signatures: what Gold accepts is accepted, what is signed is what is read, and both hashes go both ways."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.errors import RejectedError, UsageError
from sssjob.sssrmap import Envelope, Get, MessageError, Object, Request, Where, read_message, write_message
from sssjob.sssrmap.signing import HASHES, Keys, sign, verify
from tests.spec.support import spec
from tests.sssrmap.recordings import exchanges, messages

KEY: Final = b"oraclekey"
BOTH: Final = Keys(KEY, {"amy": b"secret"}, tuple(HASHES))
EXCHANGES: Final = exchanges()
SIGNED: Final = {name.partition(" ")[0]: text for name, text in messages().items()
                 if name.endswith("request") and not name.startswith("maui")}
#: Recorded messages that Gold refuses -> why they are accepted here.
TAKEN: Final = {
    **dict.fromkeys(("sign-05", "sign-07", "sign-08", "sign-09", "sign-15", "sign-17"),
                    "what was sent is signed, as Maui does it"),
    "sign-20": "and in UTF-8",
}
#: Recorded messages that Gold takes, or fails at -> why they are refused here.
REFUSED: Final = {
    "envelope-17": "Gold finds no Signature where names have a prefix; here its digest is another one",
    "sign-24": "references of characters are signed, letters are sent; Gold fails (720) at letters beyond Latin-1",
}

MESSAGE: Final = Envelope(Request("Query", "amy", (Object("Job"), Get("Id"), Where("Name", "a<b"))))


def verified(text: str | bytes, keys: Keys = BOTH) -> str:
    """The type of the token of a message that is read and verified; else the reason why not."""
    octets = text.encode("utf-8") if isinstance(text, str) else text
    try:
        return verify(octets, read_message(octets, profile="gold"), keys)
    except MessageError as error:
        return error.message.removeprefix("Failed authenticating message: (").removesuffix(").")


@pytest.mark.parametrize("name", [name for name in SIGNED if EXCHANGES[name].get("facts", {}).get("answered", True)])
@spec("SSSRMAP Signature", 1, 2)
def test_recorded_signatures(name: str) -> None:
    """A message that Gold answers with another code than 424 was verified."""
    code = EXCHANGES[name].get("facts", {}).get("code", "000")
    try:
        outcome = verified(SIGNED[name])
    except RejectedError:
        assert name in ("envelope-21", "envelope-22"), "which have a DOCTYPE"
        return
    if name == "envelope-02":
        assert outcome == "The Envelope has no Body.", "which is told by the reader (242)"
    elif name == "envelope-07":
        assert outcome.startswith("The root element is Letter"), "which is told by the reader (242) too"
    else:
        assert (outcome == "Symmetric") == ((code != "424" or name in TAKEN) and name not in REFUSED), outcome


@spec("SSSRMAP Signature", 3)
def test_reasons_are_those_of_gold() -> None:
    """But that nobody learns who has a password."""
    for number in (3, 27, 28, 29, 30, 31, 32, 33, 34, 36, 37, 38, 39, 40):
        name = f"sign-{number:02}"
        assert verified(SIGNED[name]) in EXCHANGES[name]["facts"]["message"]
    assert verified(SIGNED["sign-35"]) == "Incoming MAC does not match calculated MAC"


@spec("SSSRMAP Signature", 2)
def test_the_example_of_the_text() -> None:
    """The digest and the value that the wire protocol's own arithmetic gives for a body and a key."""
    message = Envelope(Request("Query", "maui", (Object("Job"), Get("JobId"))))
    signature = sign(message, b"mysecret", method="SHA1").signature
    assert signature is not None
    assert (signature.digest, signature.value) == ("NWjlpFxiGFxzKD/T9cW0uF9eAMM=", "V+zQgxqcCXuemTqUgnTbldiiyEc=")


@pytest.mark.parametrize("method", HASHES)
def test_what_is_signed_is_verified(method: str) -> None:
    for actor, key, type_ in ((None, KEY, "Symmetric"), ("amy", b"secret", "Password")):
        text = write_message(sign(MESSAGE, key, method=method, actor=actor))
        assert verified(text) == type_
        assert verified("\ufeff" + text) == type_
        assert verified(text, Keys(b"another", {"amy": b"another"}, tuple(HASHES))) == \
            "Incoming MAC does not match calculated MAC"
        assert verified(text, Keys(hashes=tuple(HASHES))) == "Incoming MAC does not match calculated MAC"


@spec("SSSRMAP Signature", 4)
def test_the_hash_of_old_clients_is_taken_only_where_it_is_allowed() -> None:
    text = write_message(sign(MESSAGE, KEY, method="SHA1"))
    assert verified(text, Keys(KEY)) == "Signatures with SHA1 are not taken, SHA256 is"
    with pytest.raises(UsageError, match=r"unknown method 'MD5' of signatures \(known: SHA1, SHA256\)"):
        sign(MESSAGE, KEY, method="MD5")


def test_keys_are_not_shown() -> None:
    """In a traceback or a log."""
    assert "oracle" not in repr(BOTH) and "secret" not in repr(BOTH)


BODY: Final = "<Body>" + write_message(MESSAGE).partition("<Body>")[2].partition("</Envelope>")[0]
EVIL: Final = BODY.replace("Query", "Submit")


def with_signature(envelope: str) -> str:
    """An Envelope in which {0} is the Signature of the harmless BODY."""
    signed = write_message(sign(MESSAGE, KEY))
    signature = "<Signature>" + signed.partition("<Signature>")[2].partition("</Envelope>")[0]
    return envelope.replace("{0}", signature)


@pytest.mark.parametrize("envelope", [
    f"<Envelope>{EVIL}<!--{BODY}-->{{0}}</Envelope>",
    f"<Envelope><!--{BODY}-->{EVIL}{{0}}</Envelope>",
    f"<Envelope>{EVIL}<Note><![CDATA[{BODY}]]></Note>{{0}}</Envelope>",
    f"<Envelope>{EVIL}<Note>{BODY}</Note>{{0}}</Envelope>",
    f"<Envelope>{EVIL}{BODY}{{0}}</Envelope>",
    f"<Envelope>{BODY}{EVIL}{{0}}</Envelope>",
    f"<Envelope><?x {BODY}?>{EVIL}{{0}}</Envelope>",
    f'<Envelope>{EVIL}<x:Body xmlns:x="urn:x">{BODY}</x:Body>{{0}}</Envelope>',
    f"<Envelope>{EVIL}{{0}}{{0}}</Envelope>",
    f"<Envelope>{EVIL}<Signature>{BODY}</Signature>{{0}}</Envelope>",
    f"<Envelope><Body>{EVIL[6:-7]}{BODY[6:-7]}</Body>{{0}}</Envelope>",
    f"<Envelope>{EVIL[:-7]}<!--{BODY}--></Body>{{0}}</Envelope>",
])
def test_the_signed_text_in_another_place_does_not_count(envelope: str) -> None:
    """Signed and read have to be the same octets, wherever the signed ones stand."""
    assert verified(with_signature(envelope)) not in ("Symmetric", "Password")
    harmless = with_signature(f"<Envelope><!--{EVIL}-->{BODY}{{0}}</Envelope>")
    assert verified(harmless) == "Symmetric"
    assert read_message(harmless.encode()).request.action == "Query"


@pytest.mark.parametrize("declaration", ['<?xml version="1.0" encoding="ISO-8859-1"?>',
                                         '<?xml version="1.0" encoding="windows-1252"?>'])
def test_another_encoding_is_no_signed_message(declaration: str) -> None:
    """The declaration is not signed, and would change what the signed octets say."""
    text = write_message(sign(MESSAGE, KEY))
    assert verified(declaration + text.partition("?>")[2]) == "Message is not in UTF-8"
    assert verified(text.partition("?>")[2].encode("utf-16")) == "Message is not in UTF-8"


@given(at=st.integers(0, 10_000), octet=st.integers(0, 255))
def test_no_octet_of_the_body_can_be_changed(at: int, octet: int) -> None:
    """What differs in meaning from what was signed is not verified."""
    octets = write_message(sign(MESSAGE, KEY)).encode()
    changed = bytearray(octets)
    changed[at % len(octets)] = octet
    try:
        message = read_message(bytes(changed), profile="gold")
        verify(bytes(changed), message, Keys(KEY))
    except (MessageError, RejectedError):
        return
    assert replace(message, signature=None, attributes=()) == MESSAGE


@given(text=st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff")),
       method=st.sampled_from(list(HASHES)))
def test_any_letters_are_signed(text: str, method: str) -> None:
    signed = sign(Envelope(Request("Query", "amy", (Object("Job"), Where("Name", text)))), KEY, method=method)
    assert verified(write_message(signed)) == "Symmetric"
