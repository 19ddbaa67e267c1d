"""Jobs for round trips through usage records, and what they say as facts that can be compared."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

from hypothesis import strategies as st

from sssjob.document.element import Property
from sssjob.document.model import Delivered, Job, Requested, TaskGroup
from sssjob.document.nodeset import NodeSet
from sssjob.document.units import to_bytes
from sssjob.translators.records.base import leaf

WORD = st.text("abcXYZ019-_./", min_size=1, max_size=8)
TEXT = st.one_of(WORD, st.sampled_from(("two words", " blanks ", "a\nb", "<&>\"'", "\u00e4\u20ac", "a\u2028b")))
COUNT = st.integers(0, 10**6)
TIME = st.integers(1, 4 * 10**9)


@st.composite
def leaves(draw: st.DrawFn, table: dict[str, st.SearchStrategy[Property]]) -> list[Property]:
    tags = draw(st.lists(st.sampled_from(sorted(table)), unique=True))
    return [draw(table[tag]) for tag in tags]


def of(tag: str, values: st.SearchStrategy[object]) -> st.SearchStrategy[Property]:
    return values.map(lambda v: leaf(tag, v))     # type: ignore[arg-type]


def sizes(tag: str) -> st.SearchStrategy[Property]:
    return st.builds(lambda n, u, m: leaf(tag, n, {"units": u, "metric": m} if m else {"units": u}),
                     st.decimals(0, 5000, places=1), st.sampled_from(("B", "KB", "MB", "GB", "TB")),
                     st.sampled_from(("Total", "Average", "Min", "Max", "PerProcessor", "")))


HEAD = {tag: of(tag, TEXT) for tag in ("Name", "User", "Group", "Project", "Machine", "Queue", "QualityOfService",
                                       "Reservation", "SubmitHost", "GlobalJob", "GlobalUser", "TimeCategory",
                                       "InitialWorkingDirectory", "StatusMessage")}
HEAD |= {tag: of(tag, TIME) for tag in ("SubmitTime", "EligibleTime", "StartTime", "EndTime")}
HEAD |= {tag: of(tag, COUNT) for tag in ("StartCount", "SuspendDuration", "CpuDuration", "Duration", "Processors")}
HEAD |= {"ExitCode": of("ExitCode", st.integers(0, 255)),
         "State": of("State", st.sampled_from(("Completed", "Idle", "Hold", "Running", "Suspended"))),
         "Charge": st.builds(lambda n, u: leaf("Charge", n, {"units": u} if u else {}), st.decimals(0, 999, places=2),
                             st.sampled_from(("", "EUR"))),
         "Extension": st.builds(lambda k, n, v: leaf("Extension", v, {"type": k, "name": n}),
                                st.sampled_from(("LRM", "Grid", "pbspro", "ur1", "car")),
                                st.sampled_from(("State", "ExitSignal", "EligibleStamp", "VO", "Site", "RecordId",
                                                 "ExitCode")), st.one_of(TEXT, TIME.map(str)))}
AMOUNTS = {tag: of(tag, COUNT) for tag in ("Duration", "NodeCount")} | {
    "Processors": st.builds(lambda n, r: leaf("Processors", n, {"consumptionRate": r} if r else {}), COUNT,
                            st.sampled_from(("", "0.5"))),
    "Memory": sizes("Memory"), "Swap": sizes("Swap"), "Disk": sizes("Disk"), "Network": sizes("Network"),
    "Resource": st.builds(lambda n, k, v: leaf("Resource", v, {"name": n, "type": k} if k else {"name": n}),
                          st.sampled_from(("GPU", "a/b", "Energy")), st.sampled_from(("", "a100")),
                          st.decimals(0, 99, places=1)),
    "Node": st.one_of(of("Node", WORD), st.builds(lambda t, a: leaf("Node", t, {"aggregation": a}),
                                                  st.just("n[1-3]"), st.sampled_from(("Range", "Pattern"))),
                      st.just(leaf("Node", "a,b", {"aggregation": "List"}))),
}


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    items: list[object] = [leaf("Id", draw(WORD)), *draw(leaves(HEAD))]
    if draw(st.booleans()):
        items.append(Requested(draw(leaves(AMOUNTS))))
    if draw(st.booleans()):
        items.append(Delivered(draw(leaves(AMOUNTS))))
    if draw(st.integers(0, 9)) == 9:
        items.append(TaskGroup([leaf("Id", "part"), Delivered(draw(leaves(AMOUNTS)))]))
    return Job(items)       # type: ignore[arg-type]


def facts(job: Job) -> Counter[tuple[str, str, object]]:
    """(subject, place, value) of all that a job says; equal amounts and lists of nodes are equal in any form."""
    facts: Counter[tuple[str, str, object]] = Counter()
    for item in job.items:
        if isinstance(item, Property):
            facts[fact("", item)] += 1
        elif isinstance(item, Delivered):
            facts.update(fact("Delivered", p) for p in item.items if isinstance(p, Property))
        else:
            facts[(item.tag, "", 0)] += 1
    return facts


def fact(place: str, p: Property) -> tuple[str, str, object]:
    more = sorted((k, v) for k, v in p.attributes.items() if k not in ("units", "aggregation"))
    value: object = p.value
    if p.get("units") and p.tag not in ("Charge", "Resource") and isinstance(p.value, Decimal):
        value = to_bytes(p.value, p.get("units"))
    elif p.tag == "Node" and p.get("aggregation") != "Pattern":
        value = str(NodeSet.parse_list(p.text) if p.get("aggregation") != "Range" else NodeSet.parse_range(p.text))
    elif isinstance(p.value, Decimal):
        value = p.value.normalize()
    name = f" {p.get('name')}" if p.tag in ("Extension", "Resource") else ""
    return p.tag + name, place, (value, *more)
