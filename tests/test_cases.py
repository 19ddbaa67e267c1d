"""Cases of one test: all are checked, and all that fail are told."""

from __future__ import annotations

import pytest

from tests.cases import Cases


def test_all_that_fail_are_told_together() -> None:
    checked = []
    with pytest.raises(ExceptionGroup, match="2 of 4 cases fail") as caught, Cases() as case:
        for number in range(4):
            with case(number):
                checked.append(number)
                assert number % 2 == 0
    assert checked == [0, 1, 2, 3]
    assert [error.__notes__ for error in caught.value.exceptions] == [["case: 1"], ["case: 3"]]


def test_no_case_is_a_failure() -> None:
    with pytest.raises(AssertionError, match="a test without a case"), Cases():
        pass


def test_what_fails_between_the_cases_is_itself() -> None:
    with pytest.raises(KeyError), Cases() as case:
        with case("one"):
            raise AssertionError
        raise KeyError
