"""JSON that is only too much for this program is not said to be none, and no reader of it speaks of Python."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from sssjob import read
from sssjob.conversion.patching import read_patch
from sssjob.errors import SSSJobError
from sssjob.xml.signature import read_signature

READERS: dict[str, Callable[[bytes], Any]] = {
    "patch": read_patch, "signature": read_signature,
    **{format: partial(read, format=format) for format in (
        "sss-json", "psij", "flux-jobspec", "sinfo-json", "pbsnodes", "condor-status", "flux-resource")}}
TEXTS = {
    "digits": b'{"version": ' + b"9" * 5000 + b"}", "deep": b'{"a":' * 100_000, "bytes": b'{"a": "\xff"}',
    "NaN": b'{"a": NaN}', "no end": b'{"a": '}
PYTHON = re.compile(r"Exceeds|recursion|codec|set_int|object is|JSON: a whole")


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("text", TEXTS.values(), ids=list(TEXTS))
def test_why_a_text_is_not_taken(name: str, text: bytes) -> None:
    with pytest.raises(SSSJobError) as caught:
        READERS[name](text)
    assert not PYTHON.search(str(caught.value))
