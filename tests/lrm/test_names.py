"""Names of jobs: what each manager takes, and that what is written instead is taken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.lrm.names import JOB_NAMES


@pytest.mark.parametrize(("manager", "name", "fault", "fitted"), [
    ("pbspro", "Deep Train", "contains ' '", "Deep_Train"), ("pbspro", "my@1.2.3", "contains '@'", "my_1.2.3"),
    ("pbspro", "a+b-c_1", "", "a+b-c_1"), ("pbspro", "", "is empty", "job_"), ("torque", "a/b", "contains '/'", "a_b"),
    ("torque", "a@b", "", "a@b"), ("sge", "1a", "begins with a digit", "_1a"),
    ("sge", "None", "means something else", "_None"),
    ("sge", "é", "contains 'é'", "_"), ("lsf", "a[1]", "contains '['", "a_1_"), ("lsf", "a b", "", "a b")])
def test_names(manager: str, name: str, fault: str, fitted: str) -> None:
    rule = JOB_NAMES[manager]
    assert (rule.fault(name), rule.fitted(name)) == (fault, fitted)


@given(st.sampled_from(sorted(JOB_NAMES)), st.text(max_size=12))
def test_what_is_fitted_is_taken(manager: str, name: str) -> None:
    rule = JOB_NAMES[manager]
    assert not rule.fault(rule.fitted(name)) and (rule.fault(name) or rule.fitted(name) == name)
