"""Totals, privacy profiles and the page: sums that add up, names that are gone, a page that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.accounting.privacy import Privacy, PrivacyError, read_privacy
from sssjob.accounting.report import page
from sssjob.accounting.totals import FIGURES, HIDDEN, PERIODS, Sums, Totals
from sssjob.document.model import Job
from sssjob.errors import UsageError
from sssjob.xml.reader import read_document
from sssjob.xml.writer import write_document
from tests.accounting.conftest import KEY, Answer
from tests.strategies import examples

PAGE = (Path(__file__).parents[2] / "docs" / "account.md").read_text()
BERLIN = ZoneInfo("Europe/Berlin")


def job(start: int = 1_790_000_000, seconds: int = 3600, processors: int = 2, cpu: int | None = None,
        user: str = "alice", project: str = "chem", more: str = "") -> Job:
    used = "" if cpu is None else f"<CpuDuration>{cpu}</CpuDuration>"
    made = read_document(
        f"<Job><Id>1</Id><User>{user}</User><Project>{project}</Project><State>Completed</State>"
        f"<SubmitTime>{start - 60}</SubmitTime><StartTime>{start}</StartTime><EndTime>{start + seconds}</EndTime>"
        f"{used}{more}<Delivered><Processors>{processors}</Processors><Duration>{seconds}</Duration></Delivered></Jo"
        f"b>".encode()).root
    assert isinstance(made, Job)
    return made


def added(totals: Totals, *jobs: Job) -> Totals:
    for one in jobs:
        assert totals.add(one)
    return totals


def test_figures_of_a_group() -> None:
    """Each figure from its property; a ratio only of the jobs that have both of its parts."""
    whole = job(cpu=3600, more="<ExitCode>1</ExitCode><Charge units='EUR'>0.10</Charge><Requested><Processors>2"
                "</Processors><Duration>7200</Duration></Requested>")
    assert whole.delivered is not None
    whole.delivered.add("Resource", 3, name="GPU")
    whole.delivered.add("Resource", 7_200_000, name="Energy", units="J")
    whole.delivered.add("NodeCount", 4)
    totals = added(Totals(["project"]), whole, job(project="chem", more="<Charge units='EUR'>0.20</Charge>"))
    (group,) = totals.groups()
    assert (group.period, group.key) == ("", ("chem",))
    assert group.sums.record() == {
        "jobs": 2, "failed": 1, "wall_h": 2.0, "processor_h": 4.0, "cpu_h": 1.0, "efficiency": 0.5, "requested_h": 4.0,
        "used": 0.5, "gpu_h": 3.0, "node_h": 4.0, "energy_kwh": 2.0, "wait_h": 0.0167,
        "wait_median_h": 0.0166, "wait_p95_h": 0.0166, "charge": {"EUR": "0.3"}}


@settings(max_examples=examples(26), deadline=None)
@given(jobs=st.lists(st.tuples(st.integers(1_700_000_000, 1_710_000_000), st.integers(1, 9_000_000), st.integers(1, 64),
                               st.sampled_from("ab")), max_size=8), every=st.sampled_from(PERIODS[1:]))
def test_spreading_changes_no_sum(jobs: list[tuple[int, int, int, str]], every: Any) -> None:
    made = [job(start, seconds, processors, seconds, project=project) for start, seconds, processors, project in jobs]
    apart = [added(Totals(["Project"], every, BERLIN, spread=spread), *made) for spread in (False, True)]
    for attribute in ("jobs", "wall", "processors", "cpu", "wait", "waited"):
        assert len({getattr(t.whole(), attribute) for t in apart}) == 1
    assert apart[0].whole().processors == sum(Fraction(s * p) for _, s, p, _ in jobs)


@pytest.mark.parametrize(("every", "start", "hours", "periods"), [
    ("day", "2026-03-29T00:00+01:00", 24, {"2026-03-29": 23, "2026-03-30": 1}),        # an hour is missing
    ("day", "2026-10-25T00:00+02:00", 26, {"2026-10-25": 25, "2026-10-26": 1}),        # one is there twice
    ("hour", "2026-10-25T02:00+02:00", 2, {"2026-10-25T02:00+0200": 1, "2026-10-25T02:00+0100": 1}),
    ("week", "2026-11-22T20:00+01:00", 8, {"2026-11-16": 4, "2026-11-23": 4}),
    ("month", "2026-01-31T23:00+01:00", 2, {"2026-01": 1, "2026-02": 1}),
    ("year", "2026-12-31T23:00+01:00", 2, {"2026": 1, "2027": 1}),
    (None, "2026-12-31T23:00+01:00", 2, {"": 2}),
])
def test_periods(every: Any, start: str, hours: int, periods: dict[str, int]) -> None:
    from datetime import datetime

    at = int(datetime.fromisoformat(start).timestamp())
    totals = added(Totals([], every, BERLIN, spread=True), job(at, hours * 3600))
    assert {g.period: g.sums.record()["wall_h"] for g in totals.groups()} == periods


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "Asia/Kathmandu"])
def test_zones_off_the_hour(zone: str) -> None:
    totals = added(Totals([], "hour", ZoneInfo(zone), spread=True), job(1_790_000_000, 7200))
    assert sum(g.sums.record()["wall_h"] for g in totals.groups()) == pytest.approx(2, abs=1e-3)
    assert len(totals.groups()) == 3


def test_jobs_that_did_not_run_are_left_out() -> None:
    waiting = read_document(b"<Job><Id>1</Id><State>Idle</State></Job>").root
    assert isinstance(waiting, Job)
    totals = Totals([], "day")
    assert not totals.add(waiting) and totals.left_out == {
        "did not run, or does not say for how long": 1}


@pytest.mark.parametrize("name", ["Nonsense", "Extension:", "Project:x", "Resource:"])
def test_unknown_properties_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="no property"):
        Totals([name])


def test_times_beyond_the_calendar_are_not_said() -> None:
    assert not (totals := Totals((), "day")).add(job(start=10 ** 25)) and totals.left_out == {"not said when": 1}
    assert added(Totals(()), job(start=10 ** 25)).whole().jobs == 1


def test_by_extension_and_resource() -> None:
    one = job(more='<Extension type="LRM" name="State">TIMEOUT</Extension>')
    assert one.delivered is not None
    one.delivered.add("Resource", 1, name="GPU", type="a100")
    (group,) = added(Totals(["extension:State", "Resource:GPU", "queue"]), one).groups()
    assert group.key == ("TIMEOUT", "a100", "-")


@settings(max_examples=examples(40), deadline=None)
@given(users=st.lists(st.tuples(st.sampled_from("abcd"), st.integers(1, 12)), min_size=1, max_size=40),
       least=st.integers(2, 4))
def test_small_groups_are_not_shown(users: list[tuple[str, int]], least: int) -> None:
    """Each group that is shown has enough users, and so has what follows by taking the shown from the whole."""
    totals = added(Totals(["Project"], least=least), *(job(project=p, user=f"u{u}") for p, u in users))
    shown = totals.groups()
    assert all(g.sums.hidden or len(g.sums.users) >= least for g in shown)
    assert totals.whole().jobs == len(users)


@settings(max_examples=examples(53), deadline=None)
@given(jobs=st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 9), st.integers(0, 4)), min_size=1, max_size=40),
       least=st.integers(2, 4), spread=st.booleans())
def test_small_periods_are_shown_as_one(jobs: list[tuple[str, int, int]], least: int, spread: bool) -> None:
    """They vanished. What is shown adds up to all, so that nothing is left to subtract; and the same periods are hidden
    with and without a property, so that one table cannot be taken from the other."""
    made = [job(1_790_000_000 + day * 86_400, project=p, user=f"u{u}") for p, u, day in jobs]
    tables = [added(Totals(by, "day", least=least, spread=spread), *made) for by in ((), ("Project",))]
    open_table = added(Totals((), None), *made).whole()
    for table in tables:
        groups, whole = table.groups(), table.whole()
        hidden = len({u for _, u, _ in jobs}) < least
        assert [g.sums.hidden for g in groups] == ([True] if hidden else [False] * len(groups))
        assert whole.record() == ({"jobs": len(jobs)} if hidden else open_table.record())
        assert hidden or all(len(g.sums.users) >= least for g in groups)
        by_day = {g.period for g in groups}
        for period in by_day - {HIDDEN}:
            true = [(p, u) for p, u, day in jobs if added(Totals((), "day"), job(
                1_790_000_000 + day * 86_400)).groups()[0].period == period]
            assert len({u for _, u in true}) >= least
            assert sum(g.sums.jobs for g in groups if g.period == period) == len(true)
    assert {g.period for g in tables[0].groups()} == {g.period for g in tables[1].groups()}


# -- privacy
def privacy(text: str, environment: dict[str, str] | None = None) -> Privacy:
    found = {"SSSJOB_PRIVACY_KEY": KEY} if environment is None else environment
    return read_privacy(text.encode(), environment=found.get)


SECRET = ("<Name>SECRET</Name><InitialWorkingDirectory>/home/SECRET</InitialWorkingDirectory><StatusMessage>cancel: by "
          "SECRET@host</StatusMessage><Extension type='pbspro' name='Account'>SECRET</Extension>"
          "<Unheard awarenessPolicy='Ignore'>SECRET</Unheard><Extension type='LRM' name='State'>F</Extension>")
PROFILE = """
[properties]
User = "pseudonym"
Name = "redact"
InitialWorkingDirectory = "redact"
StatusMessage = "redact"
"""


def test_names_are_gone() -> None:
    shown = privacy(PROFILE).applied(job(user="SECRET", more=SECRET))
    text = write_document(shown)
    assert "SECRET" not in text
    assert shown.value("StatusMessage") == "cancel" and "<Project>chem</Project>" in text
    assert re.fullmatch(r"u-[a-z2-7]{16}", str(shown.value("User")))


def test_pseudonyms_are_the_same_for_one_key() -> None:
    names = {privacy(PROFILE, {"SSSJOB_PRIVACY_KEY": key}).applied(job(user=user)).value("User")
             for key in (KEY, KEY, KEY + "2") for user in ("alice", "bob")}
    assert len(names) == 4


def test_figures_stay_and_names_go_unless_a_profile_says_otherwise() -> None:
    """An empty profile is safe, and leaves what sums and charges need."""
    more = SECRET + ("<Group>SECRET</Group><Executable>/SECRET</Executable><Queue>batch</Queue>"
                     "<Extension type='LRM' name='Comment'>SECRET 5</Extension>"
                     "<Extension type='LRM' name='State'>CANCELLED by SECRET</Extension>"
                     "<Extension type='LRM' name='ExitSignal'>9</Extension>"
                     "<Extension type='LRM' name='ArrayId'>7[].srv</Extension>")
    plain = job(user="SECRET", more=more)
    shown = privacy("").applied(plain)
    assert "SECRET" not in write_document(shown)
    assert [item.text for item in shown.all("Extension")] == ["F", "CANCELLED", "9", "7[].srv"]
    assert (shown.value("Project"), shown.value("Queue"), shown.value("User")) == ("chem", "batch", None)
    both = Totals(["Project"]), Totals(["Project"])
    for totals, one in zip(both, (plain, shown), strict=True):
        assert totals.add(one)
    assert both[0].groups()[0].sums.record() == both[1].groups()[0].sums.record()
    assert "SECRET" in write_document(privacy('others = "keep"\nextensions = "keep"').applied(plain))


def test_the_least_can_come_first() -> None:
    """Of a figure that not all groups have: those that do not come last."""
    totals = Totals(["User"], top=3, sort="-efficiency")
    for user, cpu in (("ann", 90), ("bob", 10), ("cat", None), ("dan", 50)):
        more = "" if cpu is None else f"<CpuDuration>{cpu}</CpuDuration>"
        assert totals.add(job(user=user, more=more))
    assert [group.key[0] for group in totals.groups()] == ["bob", "dan", "ann", "(others)"]


def test_all_others_can_be_left_out() -> None:
    shown = privacy('others = "redact"\n[properties]\nUser = "keep"\nProcessors = "keep"').applied(job(more=SECRET))
    assert [i.tag for i in shown.items] == ["Id", "User", "State", "Extension", "Delivered"][:3] + [
        i.tag for i in shown.items][3:]
    assert "SECRET" not in write_document(shown) and shown.value("Project") is None


@pytest.mark.parametrize(("text", "environment", "message"), [
    ("least = 0", None, "least: "),
    ("x = 1", None, "x: no such key"),
    ("[properties]\nNonsense = 'redact'", None, "'Nonsense' is no property of a job"),
    ("[properties]\nUser = 'hide'", None, "properties.User"),
    ("[properties]\nId = 'redact'", None, "Id cannot be left out"),
    (PROFILE, {}, "SSSJOB_PRIVACY_KEY: pseudonyms need a key of 16 bytes or more"),
    ("key_file = 'none'\n" + PROFILE, None, "key_file none: No such file"),
    ("[", None, "not TOML"),
    ("least = " + "9" * 5000, None, "a whole number has more than 4300 digits"),
])
def test_wrong_profiles(text: str, environment: dict[str, str] | None, message: str) -> None:
    with pytest.raises(PrivacyError, match=re.escape(message)):
        privacy(text, environment)


def test_the_key_lies_beside_the_profile(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(KEY + "\n")
    text = f"key_file = 'secret'\n{PROFILE}".encode()
    profile = read_privacy(text, str(tmp_path / "p.toml"), environment=lambda name: None)
    assert profile.pseudonym("User", "alice") == privacy(PROFILE).pseudonym("User", "alice")


# -- the page
HOSTILE = "<script>alert(1)</script> $x$ \" ' & ünï \u202e"


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.policies: list[str | None] = []
        self.scripts: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if dict(attrs).get("http-equiv") == "Content-Security-Policy":
            self.policies.append(dict(attrs).get("content"))
        self.links += [v for k, v in attrs if k in ("src", "href", "xlink:href") and v and not v.startswith("#")]

    def handle_data(self, data: str) -> None:
        if self.lasttag == "script" and data.strip():
            self.scripts.append(data)
        self.text += data


def pages(*projects: str) -> str:
    pytest.importorskip("matplotlib")
    jobs = [job(1_790_000_000 + day * 86400, 3600, 4, 7200, project=p, more="<Charge>2.5</Charge><Requested><Duration>"
                "7200</Duration></Requested>") for p in projects for day in range(3)]
    for one in jobs:
        one.set("Project", one.value("Project"))
    totals = added(Totals(["Project"], "day"), *jobs)
    return page(totals.groups(), totals.whole(), totals.by, title="Usage", source="x", left_out={"did not run": 2})


def test_the_page_needs_nothing_else() -> None:
    read = _Tags()
    read.feed(pages("chem", "physics"))
    assert not read.tags & {"iframe", "object", "link", "img"} and read.links == []
    assert {"svg", "table"} <= read.tags
    for heading in ("Usage over time", "Requested against delivered", "Efficiency", "Charges in credits",
                    "2 jobs left out: did not run."):
        assert heading in read.text


def test_periods_without_jobs_are_in_the_plot() -> None:
    """Months in which nobody ran anything were left out, so time went by at two speeds."""
    totals = added(Totals([], "month", BERLIN), job(1_790_000_000), job(1_790_000_000 + 100 * 86_400))
    assert totals.periods() == ["2026-09", "2026-10", "2026-11", "2026-12"]
    assert [g.period for g in totals.groups()] == ["2026-09", "2026-12"]
    assert added(Totals([], "hour"), job(), job(1_790_000_000 + 100 * 86_400)).periods() == []
    assert added(Totals([], "day", least=2), job()).periods() == [] == Totals([], "day").periods()
    pytest.importorskip("matplotlib")
    read = _Tags()
    read.feed(page(totals.groups(), totals.whole(), (), title="t", source="s", left_out={},
    not_charged={"not-ended": 2},
                   periods=totals.periods()))
    assert "2026-10" in read.text and "2 jobs not charged: not-ended." in read.text


def test_names_are_text_in_the_page() -> None:
    totals = Totals(["Project"], "day")
    for day in range(2):
        one = job(1_790_000_000 + day * 86400)
        one.set("Project", HOSTILE)
        totals.add(one)
    pytest.importorskip("matplotlib")
    read = _Tags()
    read.feed(page(totals.groups(), totals.whole(), totals.by, title=HOSTILE, source=HOSTILE, left_out={}))
    assert HOSTILE in read.text and only_script(read)


def test_every_project_has_its_bar_whatever_it_is_called() -> None:
    """One called as the rest was took its place, the legend left out what begins with an underscore, and letters that
    the plots' own font lacks were told on standard error, with a path of the program."""
    names = ["1 more", "_root", *(f"中文{number}" for number in range(7))]
    pytest.importorskip("matplotlib")
    read = _Tags()
    read.feed(pages(*names))
    legend, _, bars = read.text.partition("Table")[0].partition("Requested against")
    assert [name for name in names if name not in legend] == [name for name in names if name not in bars] == ["中文6"]
    assert legend.count("1 more") == 2 and "; 1 more is not shown" in bars


def only_script(read: _Tags) -> bool:
    """Whether the page runs its own script, by its digest, and no other one."""
    (script,), (policy,) = read.scripts, read.policies
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return policy == ("default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src "
                      f"'sha256-{digest}'")


def test_a_page_of_nothing() -> None:
    assert "<table>" in page([], Sums(), [], title="t", source="s", left_out={})


@pytest.mark.lab
def test_the_page_in_a_browser(tmp_path: Path) -> None:
    """A real browser shows it: opened from a file, with all plots as wide as the text."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium: " + os.environ.get("SSSJOB_NO_LAB_CHROMIUM", "it is not installed"))
    browser = [chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile",
               "--virtual-time-budget=2000"]
    text = pages("chem", "physics")
    (tmp_path / "page.html").write_text(text)
    done = subprocess.run([*browser, "--dump-dom", f"file://{tmp_path}/page.html"], capture_output=True, text=True,
                          timeout=120)
    read = _Tags()
    read.feed(done.stdout)
    assert done.stdout.count("<svg") == 5 and "Usage over time" in read.text
    assert "6 of 6 rows" in read.text       # its script has run
    shot = tmp_path / "page.png"
    subprocess.run([*browser, f"--screenshot={shot}", "--window-size=1200,2400", f"file://{tmp_path}/page.html"],
                   capture_output=True, timeout=120)
    assert shot.stat().st_size > 50_000          # an empty page has a tenth of it
    widths = "document.title = [innerWidth, ...Array.from(document.querySelectorAll('svg'), " \
        "plot => Math.ceil(plot.getBoundingClientRect().right))]"
    (tmp_path / "small.html").write_text(re.sub("<meta http-equiv[^>]*>", "", text) + f"<script>{widths}</script>")
    done = subprocess.run([*browser, "--dump-dom", "--window-size=400,900", f"file://{tmp_path}/small.html"],
                          capture_output=True, text=True, timeout=120)
    title = re.search("<title>(.*?)</title>", done.stdout)
    assert title is not None
    window, *plots = map(int, title[1].split(","))
    assert len(plots) == 5 and max(plots) <= window <= 500      # a phone shows each whole, without scrolling


# -- the command
def test_the_table(account: Callable[[str], Answer]) -> None:
    answer = account("-f pbs-acct log --rates rates.toml")
    assert answer.code == 0
    assert [line.split() for line in answer.out.splitlines() if "─" not in line] == [
        ["Project", "jobs", "failed", "wall_h", "processor_h", "share", "cpu_h", "efficiency", "node_h", "charge"],
        ["p0", "3", "2", "3.00", "6.00", "0.50", "1.50", "0.25", "3.00", "6.00", "EUR"],
        ["p1", "3", "2", "3.00", "6.00", "0.50", "1.50", "0.25", "3.00", "6.00", "EUR"],
        ["in", "all", "6", "4", "6.00", "12.00", "3.00", "0.25", "6.00", "12.00", "EUR"]]
    assert answer.err.splitlines()[-1] == "log: 6 records read: 6 given as 6 jobs, 0 rejected"


@pytest.mark.parametrize(("precision", "charges"), [
    (0, ["6 EUR", "6 EUR", "12 EUR"]), (3, ["6.000 EUR", "6.000 EUR", "12.000 EUR"])])
def test_charges_have_the_digits_of_their_currency(account: Callable[[str], Answer], precision: int,
                                                   charges: list[str]) -> None:
    """1,644.00 yen stood there, and 2,303.66 of a currency with three digits."""
    rates = Path("rates.toml").read_text()
    Path("rates.toml").write_text(f"precision = {precision}\n{rates}")
    lines = account("-f pbs-acct log --rates rates.toml").out.splitlines()[2:]
    assert [" ".join(line.split()[-2:]) for line in lines] == charges



def test_numbers_are_not_folded(account: Callable[[str], Answer], tmp_path: Path,
                                monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum of 18,433.78 hours stood there as 18,433.7 and, on the next line, 8. Names are folded on a terminal."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    text = (tmp_path / "log").read_text().replace("end=1795003600", "end=2095003600").replace("ctime=1795000000",
    "ctime=1495000000")
    (tmp_path / "log").write_text(text.replace('"p', '"a-project-with-quite-a-long-name-'))
    answer = account("-f pbs-acct log --rates rates.toml --by Project --by User --every month")
    rows = answer.out.splitlines()
    assert "1,000,012.02 EUR" in rows[-1] and "500,006.00" in rows[-1]
    assert "a-projec" in answer.out and "a-project-with-quite" not in answer.out


def test_json(account: Callable[[str], Answer]) -> None:
    answer = account("-f pbs-acct log --by User --by Project --every month --json")
    lines = list(map(json.loads, answer.out.splitlines()))
    assert [line["type"] for line in lines] == ["records", *["total"] * 6, "whole"]
    assert lines[1]["period"] == "2026-11" and set(lines[1]["key"]) == {"User", "Project"}
    assert lines[-1]["jobs"] == 6


def test_jobs_without_a_charge_are_counted(account: Callable[[str], Answer], tmp_path: Path) -> None:
    """A sum of charges that leaves jobs out says so."""
    (tmp_path / "gpu.toml").write_text('name = "s"\nversion = "1"\n[[rate]]\ntype = "VBR"\nname = "GPU"\nrate = 1\n')
    answer = account("-f pbs-acct log --rates gpu.toml")
    assert answer.code == 0 and answer.err.splitlines()[-1] == "sssjob: 6 jobs not charged: nothing-priced"
    whole = json.loads(account("-f pbs-acct log --rates gpu.toml --json").out.splitlines()[-1])
    assert whole["not_charged"] == {"nothing-priced": 6}


def test_logs_of_which_nothing_is_taken(account: Callable[[str], Answer], tmp_path: Path) -> None:
    (tmp_path / "torn").write_text("nothing of it\nis a record\n")
    assert (account("-f pbs-acct torn").code, account("-f pbs-acct torn log").code) == (1, 0)


def test_small_groups_by_the_command(account: Callable[[str], Answer]) -> None:
    answer = account("-f pbs-acct log --privacy privacy.toml --json")
    assert [json.loads(line).get("key") for line in answer.out.splitlines()] == [None, {"Project": "(others)"}, None]


def test_small_periods_by_the_command(account: Callable[[str], Answer], tmp_path: Path) -> None:
    (tmp_path / "late").write_text((tmp_path / "log").read_text().splitlines()[0].replace("1795", "1798"))
    answer = account("-f pbs-acct log late --privacy privacy.toml --every month --json")
    lines = [json.loads(line) for line in answer.out.splitlines()]
    assert [(line["period"], line["jobs"]) for line in lines if line["type"] == "total"] == [("(suppressed)", 7)]
    (tmp_path / "privacy.toml").write_text('least = 9\n[properties]\nUser = "redact"\n')
    answer = account("-f pbs-acct log late --privacy privacy.toml --every month --json")
    assert [json.loads(line) for line in answer.out.splitlines()][2:] == [
        {"type": "total", "period": "(suppressed)", "key": {"Project": "(others)"}, "jobs": 7},
        {"type": "whole", "jobs": 7}]
    answer = account("-f pbs-acct log late --privacy privacy.toml --every month")
    assert answer.out.split()[-3:] == ["(suppressed)", "(others)", "7"]


def test_users_are_counted_before_their_names_are_gone(account: Callable[[str], Answer], tmp_path: Path) -> None:
    """All were one user, whose groups were too small."""
    (tmp_path / "privacy.toml").write_text('least = 3\n[properties]\nUser = "redact"\n')
    answer = account("-f pbs-acct log --privacy privacy.toml --json")
    assert [json.loads(line).get("key") for line in answer.out.splitlines()] == [
        None, {"Project": "p0"}, {"Project": "p1"}, None]


def test_the_report(account: Callable[[str], Answer], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert account("-f pbs-acct log --report page.html --every day").code == 0
    assert "<svg" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(("line", "code", "message"), [
    ("none", 3, "No such file"),
    ("log --by Nonsense", 2, "no property 'Nonsense'"),
    ("log --by User --by user", 2, "named twice"),
    ("log -f sss --option machine=m", 2, "no option 'machine' of sss"),
    ("log -f pbs-acct --option zone=UTC", 2, "no option 'zone' of pbs-acct"),
    ("log --timezone Nowhere", 2, "is no time zone"),
    ("log --every minute", 2, "--every"),
    ("log --privacy rates.toml", 1, "name: no such key"),
    ("log --rates privacy.toml", 1, "version: is not said"),
    ("- - -f pbs-acct", 2, "only once"),
])
def test_refusals(account: Callable[[str], Answer], line: str, code: int, message: str) -> None:
    answer = account(line)
    assert answer.code == code and message in answer.err and answer.out == ""


@pytest.mark.parametrize("command", ["account", "rates check rates.toml --against"])
def test_options_are_judged_where_a_format_was_recognised(sssjob: Callable[..., Answer], tmp_path: Path,
                                                          monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    """A file that is not there asks for no option: the one that was stated is not said to be unknown."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(Path(__file__).parents[2] / "examples/rates.toml", tmp_path)
    Path("odd").write_text("neither a log nor a document")
    for name, code, message in (("none", 3, "none: No such file or directory"),
                                ("odd", 2, "odd: no format is recognised in it; name one with --from")):
        answer = sssjob(*command.split(), name, "--option", "timezone=UTC")
        assert answer.code == code and message in answer.err and "no option" not in answer.err


def test_the_page_of_the_docs_names_everything() -> None:
    names = [*FIGURES, *(n for n in Privacy.model_fields)]
    assert [n for n in names if f"`{n}`" not in PAGE] == []
