"""Flux's own words: states and results have a meaning, and results of exceptions are among them."""

from sssjob.lrm.flux import EXCEPTIONS, RESULTS, STATES
from sssjob.lrm.states import Stage


def test_results_are_states_that_end() -> None:
    assert {STATES[word].stage for word in RESULTS.values()} == {Stage.CANCELED, Stage.FAILED}
    assert EXCEPTIONS["timeout"] == STATES["TIMEOUT"].reason
