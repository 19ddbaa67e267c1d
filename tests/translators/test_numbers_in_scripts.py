"""Options of scripts hold any number: what no job can ask for is told, and no number ends a command."""

from __future__ import annotations

import re
from itertools import cycle
from typing import Final

import pytest

import sssjob
from sssjob.errors import RejectedError
from sssjob.translators.registry import SCRIPT_FORMATS
from sssjob.translators.scripts.examples import EXAMPLES, script
from tests.cases import Cases

#: More digits than a Decimal keeps, more than a float holds, none of something.
NUMBERS: Final = ("9" * 29, "1e400", "0")
TARGETS: Final = (*SCRIPT_FORMATS, "psij", "flux-jobspec", "jsdl", "xrsl", "adl", "csv")


@pytest.mark.parametrize("dialect", SCRIPT_FORMATS)
def test_no_number_ends_a_command(dialect: str) -> None:
    targets = cycle(TARGETS)
    with Cases() as case:
        for options in (of[dialect] for of in EXAMPLES.values() if dialect in of):
            text = script(dialect, options)
            for number in re.finditer(r"\d+", text):
                for other in NUMBERS:
                    changed = text[:number.start()] + other + text[number.end():]
                    with case(changed):
                        read_or_refused(changed, dialect, next(targets))


def read_or_refused(text: str, dialect: str, target: str) -> None:
    """Convert a script; that something in it is rejected is an answer."""
    try:
        assert sssjob.convert(text, to=target, format=dialect, policy="warn").text
    except RejectedError as error:
        assert error.findings
