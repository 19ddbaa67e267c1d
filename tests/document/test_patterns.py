"""Patterns: both engines give Perl's answers, and neither hangs."""

import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.document.lexical import LexicalError, LimitError
from sssjob.document.patterns import Engine, PatternError, compile_pattern
from tests.cases import Cases

ENGINES: list[Engine] = ["re2", "re"]

# pattern, texts that match, texts that do not; as perl 5 answers for \A(?:pattern)\z with /a
CASES: list[tuple[str, list[str], list[str]]] = [
    ("fr15n.*", ["fr15n", "fr15n03"], ["xfr15n03", "fr15n\n"]),
    ("node[1-5]", ["node1", "node5"], ["node6", "node11", "node1\n"]),
    ("a|bc", ["a", "bc"], ["ac", "abc", ""]),
    ("", [""], ["a"]),
    ("(a|b)*c{2,3}?", ["cc", "abccc"], ["c", "acccc"]),
    (r"\d+", ["12"], ["١٢", ""]),
    (r"\w\s\w", ["a b", "a\x0bb"], ["é b", "a\u00a0b"]),
    ("(?i)NODE.", ["nodeX", "Node1"], ["nod"]),
    ("(?i:k)K", ["kK", "\u212aK"], ["kk"]),
    ("a$", ["a"], ["a\n", "ab"]),
    ("a$\\n", ["a\n"], ["a", "a\n\n"]),
    (r"a\Z\s*", ["a", "a\n"], ["a\n\n", "a "]),
    (r"a\z\n?", ["a"], ["a\n"]),
    (r"^a\b.*\Bb$", ["a-ab"], ["ab", "a-b"]),
    (".", ["a", "é", "\U0001f600", "\r"], ["\n", ""]),
    ("(?s).", ["\n"], [""]),
    (r"[]a\-\]^[:digit:]]+", ["]a-^5"], ["b"]),
    (r"[^[:alpha:]\d]", ["-"], ["a", "5"]),
    (r"\Qa.b*\E+", ["a.b*", "a.b**"], ["aXb", "a.b"]),
    (r"\x41\x{42}\o{104}\cJ\011", ["ABD\n\t"], ["ABD"]),
    (r"(?<x>a)(?'y'b)(?P<z>c)(?|d|e)(?#f)", ["abcd", "abce"], ["abcf"]),
    (r"\h\H\v\V\N", [" a\n\t\t"], ["\na\n\t\t"]),
    (r"\.\/\_\é", ["./_é"], ["a/_é"]),
    ("(?i)a(?-i)b(?^:c)", ["abc", "Abc"], ["ABc", "abC"]),
    ("(?:^|a)*b", ["b", "aab"], ["c"]),
    ("x{1000}", ["x" * 1000], ["x" * 999]),
]


@pytest.mark.parametrize("engine", ENGINES)
def test_matches(engine: Engine) -> None:
    with Cases() as case:
        for pattern, yes, no in CASES:
            with case(pattern):
                compiled = compile_pattern(pattern, engine=engine)
                assert compiled.engine == engine
                assert [text for text in yes if not compiled.matches(text)] == []
                assert [text for text in no if compiled.matches(text)] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "pattern",
    ["(a+)+$", "(.*)*x", "(a|aa)+$", "(?:a?){30}a{30}b", "((a*)*)*b", "(a*)*(a*)*(a*)*(a*)*c", "(a|b)*a(a|b){99}c"],
)
def test_nothing_hangs(pattern: str, engine: Engine) -> None:
    started = time.process_time()
    compiled = compile_pattern(pattern, engine=engine)
    assert not compiled.matches("a" * 33 + "!")
    try:
        compiled.matches("ab" * 20_000 + "!")
    except LimitError as error:
        assert error.limit == "pattern_seconds"
    assert time.process_time() - started < 3


@pytest.mark.parametrize(
    ("pattern", "feature"),
    [
        ("(?=a)", "look-ahead (?="), ("(?!a)", "look-ahead (?!"), ("(?<=a)b", "look-behind (?<="),
        ("(?<!a)b", "look-behind (?<!"), (r"(a)\1", r"the back-reference \1"),
        (r"(?<n>a)\k<n>", r"the back-reference \k"),
        (r"(a)\g1", r"the back-reference \g"), ("(?P=n)", "the back-reference (?P="), ("(?{x})", "code (?{"),
        ("(??{x})", "code (??{"), ("(?>a)", "the atomic group (?>"), ("a++", "a possessive quantifier"),
        ("a{1,2}+", "a possessive quantifier"), (r"\Ga", r"\G"), (r"a\Kb", r"\K"), (r"\X", r"\X"), (r"\R", r"\R"),
        (r"\C", r"\C"), (r"\p{L}", r"the Unicode property \p"), (r"\PL", r"the Unicode property \P"),
        (r"\b{wb}", r"the boundary \b{"), (r"\N{U+41}", r"the character name \N{"), ("(?R)", "recursion (?R)"),
        ("(?1)", "recursion (?1)"), ("(?+1)", "recursion (?1)"), ("(?&x)", "recursion (?&"), ("(*FAIL)", "the verb (*"),
        ("(?(1)a)", "the condition (?("), ("(?m)a", "the flag (?m)"), ("(?x) a", "the flag (?x)"),
        ("(?U)a", None), ("[[=a=]]", "the POSIX form [="), ("a{1001}", "a repetition of more than 1000"),
        (r"\Ua", r"\U"),
        ("(", None), (")", None), ("[a", None), ("[]", None), ("a**", None), ("*", None), ("{1", None), ("a{,3}", None),
        ("a{2,1}", None), ("[b-a]", None), (r"[\d-a]", None), ("\\", None), (r"\j", None), ("(?#", None), ("(?", None),
        ("[[:foo:]]", None), (r"\x{110000}", None), ("a{ 1 }", None),
    ],
)
def test_refused_by_name(pattern: str, feature: str | None) -> None:
    for engine in ENGINES:
        with pytest.raises(PatternError) as caught:
            compile_pattern(pattern, engine=engine)
        assert caught.value.feature == feature


def test_message() -> None:
    with pytest.raises(PatternError) as caught:
        compile_pattern("ab(?=c)")
    assert str(caught.value) == (
        "'ab(?=c)': expected a supported Perl pattern (look-ahead (?= at character 3 is not supported)"
    )


@pytest.mark.parametrize(
    ("pattern", "limit"),
    [
        ("(" * 101 + ")" * 101, "depth"), ("(((a{1000}){1000}){1000})", "pattern_seconds"),
        ("a" * 10**6, "pattern_seconds"),
        ("[" + "ab" * 10**6 + "]", "pattern_seconds"), ("|" * 10**6, "pattern_seconds"),
    ],
)
def test_limits(pattern: str, limit: str) -> None:
    started = time.process_time()
    with pytest.raises(LimitError) as caught:
        compile_pattern(pattern)
    assert caught.value.limit == limit
    assert time.process_time() - started < 2


def test_what_re2_finds_too_big_is_matched_alone() -> None:
    pattern = compile_pattern("(?:x{1000}){3}")
    assert pattern.engine == "re"
    assert pattern.matches("x" * 3000)
    with pytest.raises(PatternError):
        compile_pattern("(?:x{1000}){3}", engine="re2")


def test_without_re2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    assert compile_pattern("a+").engine == "re"
    with pytest.raises(ImportError):
        compile_pattern("a+", engine="re2")


def test_lone_surrogates_do_not_break_re2() -> None:
    assert compile_pattern("a.", engine="re2").matches("a\ud800")


_ATOMS = ["a", "b", ".", r"\d", r"\W", "[ab]", "[^a]", "^", "$", r"\b", r"\B", r"\z", "(?i:A)", "(?i:[^A])", "(?s)"]
_PATTERNS = st.recursive(
    st.sampled_from(_ATOMS),
    lambda inner: (
        st.tuples(inner, inner).map("".join)
        | st.tuples(inner, inner).map(lambda pair: f"({pair[0]}|{pair[1]})")
        | st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "*?"])).map(lambda p: f"(?:{p[0]}){p[1]}")
    ),
    max_leaves=8,
)


@given(_PATTERNS, st.lists(st.text("abA1-\n", max_size=5), min_size=1, max_size=8))
def test_engines_agree(pattern: str, texts: list[str]) -> None:
    with_re2, alone = compile_pattern(pattern, engine="re2"), compile_pattern(pattern, engine="re")
    assert [with_re2.matches(text) for text in texts] == [alone.matches(text) for text in texts]


@given(st.text(r"ab1\()[]{}?*+|^$.-,:<=!#QEdxi", max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        pattern = compile_pattern(text, engine="re")
        also = compile_pattern(text, engine="re2")
    except LexicalError:
        return
    for name in ("", "a", "ab1", "1-"):
        assert pattern.matches(name) == also.matches(name)
