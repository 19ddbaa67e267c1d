"""Node sets: grammar, arithmetic on folded ranges, and folding."""

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.document.lexical import LexicalError, LimitError
from sssjob.document.nodeset import NodeSet, fold
from sssjob.limits import LIMITS


@pytest.mark.parametrize(
    ("text", "names", "folded"),
    [
        ("n[08-11]", "n08 n09 n10 n11", "n[08-11]"),
        ("n[8-11]", "n8 n9 n10 n11", "n[8-11]"),
        ("fr15n[5-6,8]", "fr15n5 fr15n6 fr15n8", "fr15n[5-6,8]"),
        ("a[1-2]b[1-2]", "a1b1 a1b2 a2b1 a2b2", "a[1-2]b[1-2]"),
        ("a[1-2],b2", "a1 a2 b2", "a[1-2],b2"),
        ("n[1-2]-ib", "n1-ib n2-ib", "n[1-2]-ib"),
        (" n[ 1 , 2 ] , m ", "n1 n2 m", "n[1-2],m"),
        ("n[1-2][3-4]x", "n13x n14x n23x n24x", "n[13-14,23-24]x"),
        ("n[1-3],n[2-4],n3", "n1 n2 n3 n4", "n[1-4]"),
        ("n[1,01,001]", "n1 n01 n001", "n[1,01,001]"),
        ("n[8-9],n1[0-1]", "n8 n9 n10 n11", "n[8-11]"),
        ("n[098-101]", "n098 n099 n100 n101", "n[098-101]"),
        ("[1-2]", "1 2", "[1-2]"),
        ("login", "login", "login"),
    ],
)
def test_ranges(text: str, names: str, folded: str) -> None:
    nodes = NodeSet.parse_range(text)
    assert list(nodes) == names.split()
    assert len(nodes) == len(names.split())
    assert str(nodes) == folded
    assert all(name in nodes for name in names.split())
    assert nodes == NodeSet.of(names.split())


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("n[5-", "'[' never closed at character 2"), ("n[[1]]", "brackets inside brackets at character 3"),
        ("n[3-1]", "a range that runs backwards at character 3"),
        ("n[]", "a number or a range expected at character 3"),
        ("n[1,,2]", "a number or a range expected at character 5"),
        ("n[1-]", "a number or a range expected at character 3"),
        ("n[\uff11]", "a number or a range expected at character 3"),
        ("n[1-010]", "leading zeros at the high end that the low end has not at character 3"),
        ("n]", "']' without '[' at character 2"), ("a,,b", "a name expected at character 3"),
        ("", "a name expected at character 1"), ("a,", "a name expected at character 3"),
        ("a b", "white space inside a name before the comma or end at character 4"),
    ],
)
def test_malformed(text: str, hint: str) -> None:
    with pytest.raises(LexicalError) as caught:
        NodeSet.parse_range(text)
    assert caught.value.hint == hint


def test_membership() -> None:
    nodes = NodeSet.parse_range("r[1-4]n[08-11]")
    for name in ("r1n8", "r1n008", "r5n08", "r1n12", "r1n", "r1n08x", "", "r1n0\uff18", "r1n" + "9" * 5000):
        assert name not in nodes
    assert 5 not in nodes


def test_lists() -> None:
    assert list(NodeSet.parse_list("n2, n1,,login ")) == ["n1", "n2", "login"]
    assert str(NodeSet.parse_list("n1::n2", "::")) == "n[1-2]"
    assert not NodeSet.parse_list("")
    for text, delimiter in (("a[1]", ","), ("a b", ","), ("a,b", ";"), ("a", ""), ("a\nb", ";")):
        with pytest.raises(LexicalError):
            NodeSet.parse_list(text, delimiter)


def test_large_sets_stay_folded() -> None:
    started = time.process_time()
    nodes = NodeSet.parse_range("rack[1-99999999]")
    assert len(nodes) == 99999999
    assert "rack5" in nodes
    assert nodes == NodeSet.parse_range("rack[1-50000000,50000001-99999999]")
    assert NodeSet.parse_range("a[1-99]b[1-99]c[1-99]d[1-99]").count == 99**4
    huge = NodeSet.parse_range("a[1-9999999999]b[1-9999999999]")
    assert huge.count == 9999999999**2
    with pytest.raises(LimitError):
        len(huge)
    with pytest.raises(LimitError) as caught:
        iter(nodes)
    assert caught.value.limit == "nodes"
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("n" + "9" * 65, "digits"), ("n[1-" + "9" * 65 + "]", "digits"), ("a1" * 101, "depth"), ("a[1]" * 101, "depth"),
        ("n[1-99999999]5", "nodes"), (",".join(f"a[{n}-{n + 5000}]b[{n}-{n + 9}]" for n in range(5000)), "nodes"),
        (",".join(f"n{n}" for n in range(9000)), "nodes"),
    ],
)
def test_limits(text: str, limit: str) -> None:
    with pytest.raises(LimitError) as caught:
        NodeSet.parse_range(text, replace(LIMITS, nodes=1000))
    assert caught.value.limit == limit


def test_overlapping_products_count_once() -> None:
    nodes = NodeSet.parse_range("a[1-3]b1,a[2-5]b2,a[2-3]b[1-4]")
    assert len(nodes) == 11
    assert len(set(nodes)) == 11


_NAMES = st.from_regex(r"[ab]{0,1}(0{0,2}[0-9]{1,2}[ab-]){0,2}[0-9]{1,2}", fullmatch=True)


@given(st.lists(_NAMES, max_size=40))
def test_folding_loses_nothing(names: list[str]) -> None:
    nodes = NodeSet.of(names)
    assert set(nodes) == set(names)
    assert len(nodes) == len(set(names))
    if names:
        again = NodeSet.parse_range(fold(names))
        assert again == nodes
        assert hash(again) == hash(NodeSet.of(names))
        assert fold(again) == fold(nodes) == str(nodes)


@given(st.lists(_NAMES, max_size=15), st.lists(_NAMES, max_size=15))
def test_union(left: list[str], right: list[str]) -> None:
    both = NodeSet.of(left) | NodeSet.of(right)
    assert both == NodeSet.of(right + left)
    assert len(both) == len({*left, *right})


_PAIRS = st.tuples(st.integers(0, 12), st.integers(0, 12)).map(sorted)


@given(st.lists(st.tuples(_PAIRS, _PAIRS), min_size=1, max_size=6))
def test_products_agree_with_expansion(boxes: list[tuple[list[int], list[int]]]) -> None:
    text = ",".join(f"a[{a[0]}-{a[1]}]b[{b[0]}-{b[1]}]" for a, b in boxes)
    names = {f"a{i}b{j}" for a, b in boxes for i in range(a[0], a[1] + 1) for j in range(b[0], b[1] + 1)}
    nodes = NodeSet.parse_range(text)
    assert set(nodes) == names
    assert nodes.count == len(names)
    assert nodes == NodeSet.of(names)


@given(st.text("n01-9[],x ", max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        nodes = NodeSet.parse_range(text)
    except LexicalError:
        return
    assert NodeSet.parse_range(str(nodes)) == nodes
