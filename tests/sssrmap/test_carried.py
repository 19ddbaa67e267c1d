"""What stands in Data is taken as it stands only where the tree would be written as that text."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.errors import RejectedError
from sssjob.limits import LIMITS
from sssjob.sssrmap import Envelope, MessageError, read_message
from sssjob.sssrmap._carried import cut

HEAD, TAIL = '<Envelope><Body><Request action="Submit" actor="amy"><Object>Job</Object>', "</Request></Body></Envelope>"
JOB = '<Job><Id>1</Id><Name a="x">n &amp; m</Name><Memory units="MB">5</Memory></Job>'
#: What may stand among jobs: forms that a tree is written with otherwise, and what is not well-formed.
PIECES = (JOB, "<a/>", "<a></a>", "<a b='c'></a>", '<a  b="c"></a>', '<a b = "c"></a>', '<a b="c" ></a>', "<a ></a>",
          "</a >", "text", " ", "  ", "\n", "\t", "\r\n", "&lt;", "&gt;", "&amp;", "&quot;", "&#65;",
          "&nothing;", "<!-- c -->", "<![CDATA[x]]>",
          "<?go on?>", ">", "<", "\"", "'", "ü", "\u00a0", "\u0085", "\ufeff", "\u2028", "<x:y></x:y>",
          '<a x:y="1"></a>', '<a xml:lang="en"></a>', '<a xmlns="urn:x"></a>', "]]>", "<Data></Data>", "<Data>",
          "</Data>",
          '<a b="&quot;"></a>', '<a b="x:y"></a>', "a:b", '<a b="1" b="2"></a>', "\x7f", "<ä></ä>", '<a b="a\tb"></a>',
          '<a b="&#10;"></a>', "&#10;", "\x01")


def outcome(text: str, fast: bool) -> Envelope | str:
    """The message, or what is wrong with it."""
    with mock.patch("sssjob.sssrmap.reader.cut", cut if fast else lambda data, limits: None), \
            mock.patch("sssjob.sssrmap._carried._LEAST", 0):
        try:
            return read_message(text)
        except (RejectedError, MessageError) as error:
            return f"{type(error).__name__}: {error}"


def both(content: str, opened: str = "<Data>", head: str = HEAD, tail: str = TAIL) -> None:
    text = f"{head}{opened}{content}</Data>{tail}"
    assert outcome(text, True) == outcome(text, False), text


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=6).map("".join))
def test_both_ways_say_the_same(content: str) -> None:
    both(content)


@pytest.mark.parametrize("piece", PIECES)
def test_each_piece_among_jobs(piece: str) -> None:
    both(f"{JOB}{piece}{JOB}")


@pytest.mark.parametrize(("opened", "head", "tail"), [
    ('<Data name="a" type="xml">', HEAD, TAIL), ("<Data type='xml'>", HEAD, TAIL), ("<Data >", HEAD, TAIL),
    ("<Data>", f'<?xml version="1.0" encoding="UTF-8"?>\n{HEAD}', TAIL),
    ("<Data>", f"<?xml version='1.0'?>{HEAD}", TAIL),
    ("<Data>", f'<?xml version="1.0" encoding="ISO-8859-1"?>{HEAD}', TAIL), ("<Data>", HEAD, f"{TAIL}<!-- -->"),
    ("<Data>", HEAD.replace("<Envelope>", '<Envelope xmlns="http://www.scidac.org/ScalableSystems/SSSRMAP">'), TAIL),
    ("<Data>", HEAD, f"<Get name='<Data>'></Get>{TAIL}"), ("<Data>", HEAD, f"</Request>{TAIL}"),
    ("<Data>", f"<!DOCTYPE a>{HEAD}", TAIL), ("<Data>", f"\ufeff{HEAD}", TAIL), ("<Data2>", HEAD, TAIL),
])
def test_what_surrounds_them(opened: str, head: str, tail: str) -> None:
    both(JOB, opened, head, tail)


def test_a_message_with_jobs_goes_this_way() -> None:
    """Else it would save nothing; a short one is not worth the look."""
    text = f"{HEAD}<Data>{JOB * 50}</Data>{TAIL}".encode()
    assert cut(text, LIMITS) == (f"{HEAD}<Data></Data>{TAIL}".encode(), JOB * 50)
    assert cut(text[:100], LIMITS) is None
