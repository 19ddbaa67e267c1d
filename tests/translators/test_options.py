"""Every attribute of a job in every dialect: read into a property, or a named gap."""

from __future__ import annotations

import pytest

from sssjob.derive.options import KEPT, read_as
from sssjob.errors import RejectedError
from sssjob.findings import Findings, Policy
from sssjob.translators import ReadContext, WriteContext, get
from sssjob.translators.scripts.examples import EXAMPLES, GAPS, SPELLED, WITHOUT, script
from tests.cases import Cases

DIALECTS = sorted({dialect for by in EXAMPLES.values() for dialect in by})


def options_of(dialect: str) -> dict[str, str]:
    """Attribute -> the option that a dialect has for it."""
    return {attribute: by[dialect] for attribute, by in EXAMPLES.items() if dialect in by}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_option_is_a_property_or_a_named_gap(dialect: str) -> None:
    with Cases() as case:
        for attribute, text in options_of(dialect).items():
            with case(attribute):
                properties = read_as(dialect, text)
                assert properties, "it would be lost"
                if attribute not in (*GAPS, *SPELLED):
                    assert KEPT not in properties


@pytest.mark.parametrize("attribute", [*GAPS, *SPELLED])
def test_a_gap_is_one(attribute: str) -> None:
    assert any(KEPT in read_as(dialect, text) for dialect, text in EXAMPLES[attribute].items())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_its_own_dialect_says_it_again(dialect: str) -> None:
    """What is read is written, and reads the same: nothing of an option is lost on the way through a document."""
    with Cases() as case:
        for attribute, text in options_of(dialect).items():
            with case(attribute):
                document = get(dialect).read(script(dialect, text).encode(), ReadContext())
                context = WriteContext(Findings("x"), policy=Policy.WARN)
                again = get(dialect).read(get(dialect).write(document, context).encode(), ReadContext())
                assert [str(f) for f in context.findings if f.kind == "dropped"] == []
                assert again.root == document.root


def test_what_has_no_option_is_no_example() -> None:
    assert set(WITHOUT) <= set(EXAMPLES)
    assert [(a, d) for a, by in WITHOUT.items() for d in by if d in EXAMPLES[a]] == []


@pytest.mark.parametrize(("dialect", "options"), [("cobalt", "-n 1 --score 5"), ("flux", "--wait")])
def test_what_is_said_to_be_refused_is(dialect: str, options: str) -> None:
    with pytest.raises(RejectedError, match="SSS505"):
        read_as(dialect, options)
