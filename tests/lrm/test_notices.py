"""Lines that a site's wrapper of a command prints before the answer."""

from __future__ import annotations

from typing import Any

import pytest

from sssjob.lrm.answers import behind_notices, json_answer

_NOTICE = "*** {closed} on [Tue] ***\n[WARN] 1 h left\n"


@pytest.mark.parametrize("notice", ["", _NOTICE])
@pytest.mark.parametrize(("text", "value"), [
    ("{}", {}), ("[\n]\n", []), ('{"jobs": [{\n"id": 1}]}\n', {"jobs": [{"id": 1}]}),
    ('[\n{\n"A": "x\ty"\n}\n]\nbye\n', [{"A": "x\ty"}])])
def test_json(notice: str, text: str, value: Any) -> None:
    assert json_answer("condor_q", notice + text) == value


@pytest.mark.parametrize("text", [
    "", "down\n", _NOTICE, '{"jobs": [{"id": 1}', '[\n{"A": 1},\n{"A"', '{"A": 1}\n{"A": 2}\n'])
def test_no_json(text: str) -> None:
    """What is no answer, not the whole of one, or more than one says nothing, and by name of the command."""
    with pytest.raises(ValueError, match=r"^condor_q gave (no JSON|no whole JSON|more than one answer): "):
        json_answer("condor_q", text)


@pytest.mark.parametrize(("out", "rest"), [
    ("JOBID|A\n1|x\n", "JOBID|A\n1|x\n"), (f"{_NOTICE}JOBID|A\n1|JOBID|\n", "JOBID|A\n1|JOBID|\n"),
    (_NOTICE, _NOTICE), ("xJOBID|\n", "xJOBID|\n")])
def test_behind_notices(out: str, rest: str) -> None:
    assert behind_notices(out, "JOBID|") == rest
