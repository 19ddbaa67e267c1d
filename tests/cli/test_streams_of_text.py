"""Commands called inside a program that put streams of text in place of its own."""

from __future__ import annotations

import io
import json

import pytest

from sssjob.cli import main


def test_streams_of_text_need_no_bytes_below_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A StringIO has no buffer: results are written to it, and documents are read from it, as text."""
    out = io.StringIO()
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr("sys.stdin", io.StringIO("<Job><Id>gr\u00fcn</Id></Job>"))
    assert main(["convert", "-t", "sss-json", "-"]) == 0
    assert json.loads(out.getvalue()) == {"Job": {"Id": "gr\u00fcn"}}
