"""The registry: built-in formats, third parties by entry point, and what is said about unknown names."""

from __future__ import annotations

from pathlib import Path

import pytest

from sssjob.errors import UsageError
from sssjob.translators import ReadContext, Translator, WriteContext, get, names
from sssjob.translators.recognise import guess

JOB = b"<Job><Id>j1</Id><Unknown awarenessPolicy='Ignore' a='b'>x</Unknown></Job>"
MODULE = '''
from sssjob.translators import Translator

def read(data, context):
    raise NotImplementedError

TRANSLATOR = Translator("acme", "ACME jobs", "spec", read, lambda document, context: "acme", (".acme",))
NOTHING = 1
'''


@pytest.fixture
def third_party(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed distribution with one good entry, one broken one, and one that is no translator."""
    (tmp_path / "acme_jobs.py").write_text(MODULE)
    info = tmp_path / "acme_jobs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-jobs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[sssjob.translators]\nacme = acme_jobs:TRANSLATOR\n"
                                           "broken = acme_missing:TRANSLATOR\nnothing = acme_jobs:NOTHING\n")
    monkeypatch.syspath_prepend(str(tmp_path))


def test_built_in_names_come_first() -> None:
    assert names()[:2] == ("sss", "sss-json")


@pytest.mark.parametrize("name", ["sss", "sss-json"])
def test_documents_lose_nothing(name: str) -> None:
    document = get("sss").read(JOB, ReadContext())
    text = get(name).write(document, WriteContext())
    context = ReadContext(path="x")
    back = get(name).read(text.encode(), context)
    assert back.root == document.root
    assert back.findings is context.findings and not context.findings.rejected


def test_third_party_format(third_party: None) -> None:
    assert {"acme", "broken"} <= set(names())
    translator = get("acme")
    assert isinstance(translator, Translator) and translator.title == "ACME jobs"


@pytest.mark.parametrize(("name", "message"), [
    ("broken", "format broken: acme_missing:TRANSLATOR cannot be loaded: No module named 'acme_missing'"),
    ("nothing", "format nothing: acme_jobs:NOTHING is no Translator"),
])
def test_a_broken_entry_matters_only_when_asked_for(third_party: None, name: str, message: str) -> None:
    assert get("sss").name == "sss"
    with pytest.raises(UsageError) as caught:
        get(name)
    assert str(caught.value) == message


def test_what_could_not_be_asked_is_named(third_party: None) -> None:
    with pytest.raises(UsageError) as caught:
        guess(b"what is this")
    assert str(caught.value) == (
        "-: no format is recognised in it; name one with --from; format broken: acme_missing:TRANSLATOR cannot be "
        "loaded: No module named 'acme_missing'; format nothing: acme_jobs:NOTHING is no Translator")


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"unknown format 'sss-jsn' \(known: sss, sss-json, .*did you mean sss-json\?"):
        get("sss-jsn")
