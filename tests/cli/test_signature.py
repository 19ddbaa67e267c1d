"""``sssjob sign`` and ``verify``: what says the same verifies, and nothing else does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.errors import UsageError
from sssjob.xml.reader import read_document
from sssjob.xml.signature import DocumentSignature, SignatureError, read_signature, sign_document, verify_document
from tests.cli.conftest import Command
from tests.strategies import requests


@pytest.fixture
def signed(sssjob: Command, place: Path) -> Path:
    """A key, and the signature of job.xml by amy."""
    for name, octets in (("key", b"k1\n"), ("other", b"k2\n")):
        (place / name).write_bytes(octets)
        (place / name).chmod(0o600)
    assert sssjob("sign", "job.xml", "--key", "key", "--signer", "amy", "-o", "job.sig") == (0, "", "")
    return place


def test_what_says_the_same_verifies(sssjob: Command, signed: Path) -> None:
    """Whatever its format and its names."""
    (signed / "job.json").write_text(sssjob("convert", "job.xml", "-t", "sss-json").out)
    (signed / "old.xml").write_text(sssjob("convert", "job.xml", "-t", "sss", "--to-profile", "3.0").out)
    for name in ("job.xml", "job.json", "old.xml"):
        code, out, _ = sssjob("verify", name, "job.sig", "--key", "key", "--signer", "amy", "--max-age", "100", "-q")
        assert code == 0 and out.startswith(f"{name}: signed by amy at 20")
    record = json.loads(sssjob("verify", "job.xml", "job.sig", "--key", "key", "--json").out)
    assert (record["signer"], record["file"]) == ("amy", "job.xml")


def test_what_does_not_verify(sssjob: Command, signed: Path) -> None:
    (signed / "changed.xml").write_text((signed / "job.xml").read_text().replace(">64<", ">65<"))
    old = json.loads((signed / "job.sig").read_text()) | {"time": 1}
    (signed / "old.sig").write_text(json.dumps(old))
    for arguments, why in (
            (("changed.xml", "job.sig", "--key", "key"), "changed.xml: the document says something else than what amy"),
            (("job.xml", "job.sig", "--key", "other"), "of another key, or was changed"),
            (("job.xml", "old.sig", "--key", "key"), "of another key, or was changed"),
            (("job.xml", "job.sig", "--key", "key", "--signer", "bob"), "signed by amy, not by bob")):
        code, out, err = sssjob("verify", *arguments)
        assert (code, out) == (1, "") and why in err
    assert sssjob("verify", "broken.xml", "job.sig", "--key", "key").code == 1
    assert sssjob("sign", "broken.xml", "--key", "key").code == 1
    assert sssjob("verify", "-", "-", "--key", "key").code == 2


@pytest.mark.parametrize("signer", ["", " ", "x" * 2000])
def test_nobody_signs(sssjob: Command, signed: Path, signer: str) -> None:
    """An empty name is not the user's, and a name that ``verify`` would refuse is written into no signature."""
    answer = sssjob("sign", "job.xml", "--key", "key", "--signer", signer, "-o", "no.sig")
    assert (answer.code, answer.out) == (2, "") and answer.err.endswith("is no name of a signer\n")
    assert not (signed / "no.sig").exists()


def test_an_old_signature_is_told(sssjob: Command, signed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 1_000_000.0)
    assert sssjob("sign", "job.xml", "--key", "key", "-o", "then.sig").code == 0
    monkeypatch.setattr("time.time", lambda: 1_000_100.0)
    assert sssjob("verify", "job.xml", "then.sig", "--key", "key", "--max-age", "100").code == 0
    answer = sssjob("verify", "job.xml", "then.sig", "--key", "key", "--max-age", "99")
    assert answer.code == 1 and "1970-01-12 13:46:40 UTC, which is not within --max-age" in answer.err
    monkeypatch.setattr("time.time", lambda: 999_000.0)
    assert sssjob("verify", "job.xml", "then.sig", "--key", "key", "--max-age", "99").code == 1, "not in the future"


GOOD = sign_document(read_document(b"<Job><Id>a</Id></Job>"), b"k", signer="amy", time=1).record()


@pytest.mark.parametrize("text", [
    "", "[]", "{", "[" * 50_000, json.dumps({**GOOD, "more": 1}),
    json.dumps({k: v for k, v in GOOD.items() if k != "time"}),
    json.dumps({**GOOD, "version": 2}), json.dumps({**GOOD, "version": True}), json.dumps({**GOOD, "time": "1"}),
    json.dumps({**GOOD, "time": True}), json.dumps({**GOOD, "time": -1}), json.dumps({**GOOD, "time": 10**20}),
    json.dumps({**GOOD, "signer": None}), json.dumps({**GOOD, "signer": "x" * 2000}), json.dumps({**GOOD, "type": "x"}),
    json.dumps(GOOD)[:-1] + ', "time": 1}', "x" * 70_000])
def test_what_is_no_signature(text: str) -> None:
    with pytest.raises(UsageError, match=r"^s: |^s is no signature"):
        read_signature(text.encode(), "s")


@given(request_=requests(), member=st.sampled_from(["digest", "signer", "time", "value"]), text=st.text(max_size=5))
def test_nothing_of_a_signature_can_be_changed(request_: str, member: str, text: str) -> None:
    """And it comes back from its JSON as it was."""
    document = read_document(f"<Job>{request_}</Job>".encode())
    signature = sign_document(document, b"key", signer="amy", time=5)
    assert read_signature(json.dumps(signature.record()).encode()) == signature
    verify_document(document, signature, b"key")
    record = signature.record() | {member: len(text) + 6 if member == "time" else f"{text}x"}
    changed = DocumentSignature(record["digest"], record["signer"], record["time"], record["value"])
    with pytest.raises(SignatureError):
        verify_document(document, changed, b"key")
