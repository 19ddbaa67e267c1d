"""Lists of hosts: what each grammar allows, and that a list written out agrees with the set of its names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.document.nodeset import NodeSet
from sssjob.errors import LexicalError
from sssjob.lrm.hostlist import FLUX, SLURM, HostGrammar, Hostlist, hosts, items

# text, whether Slurm takes it, whether Flux does
TEXTS = [
    ("n[1-3,07],login", True, True), ("n[1-2]-ib", True, True), ("[1-2]", True, True), ("r[1-2]n[1-2]", True, False),
    (" n[ 1 , 2 ] , m ", True, False), ("n[1-010]", False, True), ("n[0-1048576]", True, False),
    ("n[1-" + "9" * 19 + "]", True, False), ("n[3-1]", False, False), ("n[", False, False), ("n]", False, False),
    ("a,,b", False, False), ("a b", False, False), ("", False, False)]


@pytest.mark.parametrize(("text", "slurm", "flux"), TEXTS)
@pytest.mark.parametrize("grammar", [SLURM, FLUX], ids=["slurm", "flux"])
def test_what_a_grammar_allows(text: str, slurm: bool, flux: bool, grammar: HostGrammar) -> None:
    if slurm if grammar is SLURM else flux:
        assert list(items(text, grammar))
    else:
        with pytest.raises(LexicalError):
            list(items(text, grammar))


def test_pieces() -> None:
    assert list(items("a[1,3-12]b[07],c")) == [["a", [(1, 1, 1), (1, 3, 12)], "b", [(2, 7, 7)]], ["c"]]


NAMES = st.from_regex(r"\A[a-c]{1,3}(\[[0-9](,[0-9])?\][a-c]?)?\Z")


@given(st.lists(NAMES, min_size=1, max_size=5).map(",".join))
def test_all_kinds_of_list_agree(text: str) -> None:
    assert hosts(text) == list(Hostlist.parse(text))
    assert set(hosts(text)) == set(NodeSet.parse_range(text))
