"""The small formats beside the protocol, against what flux-core 0.88 says: host lists, durations, job ids, R."""

from __future__ import annotations

import math
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.document.lexical import LexicalError, LimitError
from sssjob.errors import UsageError
from sssjob.lrm.flux.durations import read_fsd
from sssjob.lrm.flux.errors import EXEC_LIMITS, ExecLimitError, JobspecError
from sssjob.lrm.flux.ids import FORMS, GREATEST, Ids, read_id, write_id
from sssjob.lrm.flux.jobspec import write_r
from sssjob.lrm.flux.resources import problems, read_resources
from sssjob.lrm.hostlist import Hostlist
from sssjob.lrm.idset import Idset
from tests.fluxexec.support import vectors


@pytest.mark.parametrize("vector", vectors("hostlist"), ids=lambda v: v["input"][:30])
def test_hostlists(vector: dict[str, Any]) -> None:
    if not vector["valid"]:
        with pytest.raises(LexicalError):
            Hostlist.parse(vector["input"])
        return
    hosts = Hostlist.parse(vector["input"])
    assert (list(hosts), hosts.count, str(hosts), str(hosts.unique())) == (
        vector["hosts"], vector["count"], vector["encode"], vector["uniq_sorted"])
    assert str(Hostlist.of(vector["hosts"])) == vector["encode"]


NAME = st.builds(lambda prefix, number, width: f"{prefix}{number:0{width}}", st.sampled_from(["n", "a-", "9x"]),
                 st.integers(0, 120), st.integers(0, 3)) | st.sampled_from(["n", "login", "a.b"])


@given(st.lists(NAME, max_size=15))
def test_hostlists_keep_every_name(names: list[str]) -> None:
    hosts = Hostlist.of(names)
    assert list(hosts) == names and list(Hostlist.parse(str(hosts))) == names
    assert sorted(hosts.unique()) == sorted(set(names)) and str(hosts.unique().unique()) == str(hosts.unique())


@pytest.mark.parametrize("text", ["a[]", "a[1-2", "a]", "a[[1]]", "a[1]b[2]", "a b", "a,,b", "a,", ",", "a[0-1048576]",
                                  "a[1 ]", "a[1,]", "a[0x1]", "a\n", "[", "a[٣]", "n[1-999999999999999999999]"])
def test_what_is_no_hostlist(text: str) -> None:
    with pytest.raises(LexicalError):
        Hostlist.parse(text)


def test_hostlists_are_not_expanded() -> None:
    hosts = Hostlist.parse("n[0-999999]")
    assert (hosts.count, len(hosts.runs)) == (1_000_000, 1)
    with pytest.raises(LimitError, match=r"limit nodes"):
        Hostlist.parse("n[0-999999],m")
    assert list(Hostlist.parse("n[1-2]-ib,x")) == ["n1-ib", "n2-ib", "x"]
    assert str(Hostlist.parse("n[1-2]-ib")) == "n1-ib,n2-ib"
    for name in ("", "a,b", "a[1]"):
        with pytest.raises(LexicalError):
            Hostlist.of([name])


@pytest.mark.parametrize("vector", vectors("fsd-parse"), ids=lambda v: v["input"])
def test_durations(vector: dict[str, Any]) -> None:
    if vector["valid"]:
        assert float(read_fsd(vector["input"])) == float(vector["seconds"])
    else:
        with pytest.raises(LexicalError):
            read_fsd(vector["input"])


@pytest.mark.parametrize("text", ["", "nan", "1e400", "1_000", "5 m", "5M", "1h30m", "-0", "+1", "٣", " 1", "1\n", ".",
                                  "0x10", "9" * 400, "infinite"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(LexicalError):
        read_fsd(text)


def test_more_durations() -> None:
    assert [float(read_fsd(t)) for t in ("100ms", ".5h", "1e3", "2.s", "inf")] == [0.1, 1800.0, 1000.0, 2.0, math.inf]
    assert read_fsd("5", 60) == 300 and read_fsd("5s", 60) == 5


@pytest.mark.parametrize("vector", vectors("jobid-encodings"), ids=lambda v: v["f58plain"])
def test_job_ids(vector: dict[str, Any]) -> None:
    for form in FORMS:
        assert write_id(vector["dec"], form) == str(vector[form])
        assert read_id(str(vector[form])) == vector["dec"]


@pytest.mark.parametrize("vector", vectors("jobid-inputs"), ids=lambda v: v["input"])
def test_texts_that_may_be_job_ids(vector: dict[str, Any]) -> None:
    if vector["ok"]:
        assert str(read_id(vector["input"])) == vector["dec"]
    else:
        with pytest.raises(LexicalError):
            read_id(vector["input"])


@given(st.integers(0, GREATEST))
def test_job_ids_in_all_forms(number: int) -> None:
    assert {read_id(write_id(number, form)) for form in FORMS} == {number}


@pytest.mark.parametrize("text", ["", "f0", "fO", "fl", "fI", "fzzzzzzzzzzzz", "fzzzzzzzzzzz", "18446744073709551616",
                                  "0x10000000000000000", "00.11", "a-b-c--d-e-f", "٣", "f1\n", "job.", "1 "])
def test_what_is_no_job_id(text: str) -> None:
    with pytest.raises(LexicalError):
        read_id(text)


def test_words_need_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mnemonicode", None)
    with pytest.raises(UsageError, match=r"sssjob\[words\]"):
        write_id(1, "words")
    with pytest.raises(UsageError, match="is not known"):
        write_id(1, "base64")       # type: ignore[arg-type]
    for number in (-1, 1 << 64):
        with pytest.raises(LexicalError):
            write_id(number)


def test_ids_that_are_made_grow_and_fit() -> None:
    times = iter([1_600_000_000.0, 1_600_000_000.0, 1_599_999_999.0, 1_600_000_001.0, *[1_600_000_001.0] * 3000])
    ids = Ids(lambda: next(times), generator=0x3FFF)
    made = [ids.next() for _ in range(3000)]
    assert made == sorted(set(made)) and made[-1] < 1 << 63
    assert {number >> 10 & 0x3FFF for number in made} == {0x3FFF}
    assert made[1] == made[0] + 1 and (made[3] >> 24) - (made[0] >> 24) == 1000


def r(**execution: Any) -> dict[str, Any]:
    lite = [{"rank": "4", "children": {"core": "0-1", "gpu": "0"}}, {"rank": "0-1", "children": {"core": "0-3"}}]
    return {"version": 1, "execution": {"R_lite": lite, **execution}}


def test_resources() -> None:
    resources = read_resources(r(nodelist=["n[1-2]", "gpu7"], starttime=1.0, expiration=2, properties={"fast": "0,4"},
                                 nslots=3))
    assert (str(resources.ranks), dict(resources.hosts)) == ("0-1,4", {0: "n1", 1: "n2", 4: "gpu7"})
    assert (resources.count(), resources.count("gpu"), resources.count("tpu"), resources.nslots) == (10, 1, 0, 3)
    assert resources.children(1) == {"core": Idset.parse("0-3")} and resources.children(3) == {}
    assert (resources.starttime, resources.expiration, str(resources.properties["fast"])) == (1.0, 2.0, "0,4")
    assert str(read_resources(write_r(Idset.parse("0-9"), 4)).ranks) == "0-9"


@pytest.mark.parametrize(("value", "expected"), [
    (None, ["it is no object"]), ({"version": True}, ["version is not 1", "execution is missing or no object"]),
    (r() | {"x": 1, "scheduling": []}, ["unknown key 'x'", "scheduling is no object"]),
    (r(y=1, R_lite=[]), ["unknown key execution.'y'", "R_lite is missing or empty"]),
    (r(R_lite=[1, {"rank": "1-0", "children": {"core": "0"}}]), ["R_lite[0] is no object",
                                                                 "R_lite[1].rank: '1-0' is no idset with ids in it"]),
    (r(R_lite=[{"rank": "", "children": {"gpu": "0"}, "z": 1}]), [
        "unknown key R_lite[0].'z'", "R_lite[0].children is no object with core",
        "R_lite[0].rank: '' is no idset with ids in it"]),
    (r(R_lite=[{"rank": "0-3", "children": {"core": 7}}, {"rank": "2", "children": {"core": "0"}}]), [
        "R_lite[0].children.'core': 7 is no idset with ids in it", "rank 2 stands twice in R_lite"]),
    (r(nodelist="n1"), ["nodelist is no list of host lists"]),
    (r(nodelist=["n[1-2]"]), ["nodelist has 2 hosts for 3 ranks"]),
    (r(nodelist=["n["]), [
        "nodelist: 'n[': expected a range of nodes, as n[1-3,8],login1 ('[' never closed at character 2)"]),
    (r(starttime=-1, expiration="x", nslots=0), ["starttime is no time", "expiration is no time",
                                                "nslots is no whole number from 1"]),
    (r(starttime=10, expiration=5), ["expiration is before starttime"]),
    (r(properties=[]), ["properties is no object"]),
    (r(properties={"a b": "0", "c": "9", "d": ""}), [
        "property 'a b' is no name", "property 'c' is on ranks 9, which are not in R_lite",
        "property 'd': '' is no idset with ids in it"]),
])
def test_what_is_wrong_with_r(value: Any, expected: list[str]) -> None:
    assert list(problems(value)) == expected
    with pytest.raises(JobspecError):
        read_resources(value)


def test_r_has_a_limit() -> None:
    with pytest.raises(ExecLimitError, match=r"limit ranks"):
        read_resources(write_r(Idset.parse(f"0-{EXEC_LIMITS.ranks}")))
