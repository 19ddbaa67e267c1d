"""The demands of both texts, each with the test that shows it.

A demand is a sentence that asks something of a provider, a pilot or a reader; ``demand`` cites a piece of it. The table
in docs/mjf.md is made from these marks: ``python -m tests.mjf.test_texts`` writes it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from importlib import import_module
from pathlib import Path
from typing import Literal, TypeVar

import pytest

from sssjob.errors import UsageError
from sssjob.mjf import KEYS, Candidate, PilotStatus, Reader, figures, least_critical, provide, write_value
from sssjob.mjf.keys import VARIABLES
from sssjob.mjf.status import locked
from tests.mjf.support import NOW, QUICK, Clock, Site, Web, machine, reader

PAGE = Path(__file__).resolve().parents[2] / "docs" / "mjf.md"
BEGIN, END = "<!-- demands: python -m tests.mjf.test_texts -->\n", "<!-- end of demands -->\n"


@dataclass(frozen=True)
class Demand:
    """text: draft (0.99) or note (HSF-TN-2016-02). says: a piece of it, verbatim."""

    text: str
    section: str
    says: str
    test: str


DEMANDS: list[Demand] = []
_Test = TypeVar("_Test", bound=Callable[..., object])


def demand(text: Literal["draft", "note"], section: str, says: str) -> Callable[[_Test], _Test]:
    """Mark a test as the one of a demand."""
    def mark(test: _Test) -> _Test:
        place = next((i for i, known in enumerate(DEMANDS) if known.test == test.__name__), len(DEMANDS))
        DEMANDS.insert(place, Demand(text, section, says, test.__name__))      # the upper mark comes later
        return test
    return mark


def texts(path: str) -> dict[str, str]:
    return {p.name: p.read_text() for p in Path(path).iterdir()}


# --- variables and directories

@demand("draft", "Environment variables", "They must be set for the job environment by the resource provider")
@demand("note", "Environment variables", "Their values must be provided for the job by the resource provider")
def test_the_provider_gives_the_variables(tmp_path: Path) -> None:
    tree = provide(str(tmp_path), "1", {})
    assert tree.environment() == {VARIABLES[a]: tree.path(a) for a in ("machine", "job", "status")}


@demand("draft", "Environment variables", "should only be accessed once in the lifetime of each virtual machine")
@demand("note", "Environment variables", "should only be accessed once in the lifetime of each virtual machine")
def test_metadata_are_asked_once(web: Web) -> None:
    web.replies["/meta"] = b'{"meta": {"mjf@jobfeatures@job_id": "x"}}'
    for _ in range(3):
        assert reader({}, ask_metadata=True, url=f"{web.base}/meta").read()["job_id"].value == "x"
    assert web.asked == ["/meta"]


@demand("draft", "Directories", "the file name is the key, the contents are the values")
@demand("note", "Directories", "the file name is the key, the contents are the values")
def test_file_name_and_contents(tmp_path: Path) -> None:
    assert texts(provide(str(tmp_path), "1", {"job_id": "x"}).path("job")) == {"job_id": "x\n"}


@demand("draft", "Directories", "The directory name should not include the trailing slash")
@demand("note", "Directories", "The directory name should not include the trailing slash")
def test_no_trailing_slash_is_given_and_one_is_understood(tmp_path: Path) -> None:
    tree = provide(str(tmp_path), "1", {"job_id": "x"})
    assert not any(value.endswith("/") for value in tree.environment().values())
    assert Reader.from_environment({"JOBFEATURES": tree.path("job") + "//"}).read()["job_id"].value == "x"


@demand("draft", "Directories", "by checking for a leading slash or the prefix")
@demand("note", "Directories", "by checking for a leading slash or the prefix http:// or https://")
def test_local_or_http(site: Site, web: Web) -> None:
    web.replies["/total_cpu"] = b"8"
    assert machine(web.base).read()["total_cpu"].value == 8
    assert machine(str(site.write("machine", total_cpu=9))).read()["total_cpu"].value == 9
    assert machine("machine").read()["total_cpu"].state == "unreadable"


@demand("draft", "Directories", "The files may be accessed multiple times to check for changes in value")
@demand("note", "Directories", "accessed multiple times to check for changes in value")
def test_changes_are_seen(site: Site) -> None:
    site.write("machine")
    features = site.reader()
    assert features.read()["shutdowntime"].state == "absent"
    site.write("machine", shutdowntime=NOW + 100)
    site.clock.now += 31
    assert features.read()["shutdowntime"].value == NOW + 100


@demand("draft", "Directories", "may provide HTTP cache control and expiration information")
@demand("note", "Directories", "may provide HTTP cache")
def test_cache_control_reduces_the_queries(web: Web) -> None:
    def reply(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.0 200 OK\r\nCache-Control: max-age=300\r\n\r\n8")

    clock = Clock()
    web.replies["/jobslots"] = reply
    reader = machine(web.base, clock)
    for _ in range(4):
        reader.read()
        clock.now += 70
    assert web.asked.count("/jobslots") == 1


@demand("draft", "Directories", "The $JOBSTATUS directory is initially empty")
def test_the_status_directory_is_empty(tmp_path: Path) -> None:
    assert texts(provide(str(tmp_path), "1", {"job_id": "x"}).path("status")) == {}


@demand("draft", "Directories",
        "All files in the directories must be readable by both the user and the resource provider services")
@demand("note", "Directories", "must be readable by both the user and the")
@demand("draft", "List of requirements", "readable by the user who is executing the original job")
@demand("note", "MACHINEFEATURES", "Readable by the user who is executing the original job")
def test_all_may_read(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        tree = provide(str(tmp_path), "1", {"job_id": "x", "total_cpu": 8})
        PilotStatus(tree.path("status")).update(used_CPU=1, last_job_start=NOW)
    finally:
        os.umask(before)
    for path in Path(tree.root).rglob("*"):
        assert path.stat().st_mode & (0o555 if path.is_dir() else 0o444) == (0o555 if path.is_dir() else 0o444)


@demand("note", "Directories", "have file names which only consist of")
def test_names_of_the_note_are_lower_case() -> None:
    names = [key.name for key in KEYS.values() if not key.draft]
    assert [n for n in names if not re.fullmatch("[a-z0-9_]+", n)] == []


# --- values

@demand("draft", "Requirements", "must be unique and leave no room for interpretation of the values provided")
@demand("note", "Aims", "must be unique and leave no room for interpretation of the values provided")
def test_every_number_has_a_kind_and_a_unit() -> None:
    bare = {k.name for k in KEYS.values() if k.kind in ("int", "float", "time") and not k.unit}
    assert bare == {"cpufactor_lrms"}           # a ratio


@demand("draft", "List of requirements", "owned by the user who is executing the original job")
@demand("note", "JOBFEATURES", "Readable and possibly owned by the user who is executing the original")
def test_the_job_owns_its_files(tmp_path: Path) -> None:
    user = (65534, 65534) if os.geteuid() == 0 else (os.getuid(), os.getgid())
    tree = provide(str(tmp_path), "1", {"job_id": "x"}, owner=user)
    assert [os.stat(p).st_uid for p in (f"{tree.path('job')}/job_id", tree.path("status"))] == [user[0]] * 2


@demand("draft", "List of requirements", "created before the user job starts")
@demand("note", "JOBFEATURES", "Created before the job starts and static unless otherwise stated")
def test_all_values_are_there_before_the_variables_are(tmp_path: Path) -> None:
    tree = provide(str(tmp_path), "1", {"job_id": "x", "allocated_cpu": 4})
    features = Reader.from_environment(tree.environment())
    assert features.read()["allocated_cpu"].value == 4
    tree.set({"allocated_cpu": 2})
    assert features.read(force=True)["allocated_cpu"].value == 4           # static: kept
    assert Reader.from_environment(tree.environment()).read()["allocated_cpu"].value == 2


@demand("note", "MACHINEFEATURES", "Required unless the resource provider cannot determine their value")
def test_what_is_missing_is_told(site: Site) -> None:
    from sssjob.mjf import check

    site.write("machine", total_cpu=8)
    assert [n.key for n in check(site.reader(), {}) if n.code == "mjf-missing"] == ["hs06", "grace_secs"]


@demand("draft", "List of requirements", "Divide by cpufactor_lrms to retrieve the real time seconds")
def test_normalised_limits_are_divided(site: Site) -> None:
    site.write("job", cpufactor_lrms=0.5, wall_limit_secs_lrms=100, cpu_limit_secs_lrms=400)
    features = site.reader().read()
    assert (features["wall_limit_secs"].value, features["cpu_limit_secs"].value) == (200, 800)


@demand("draft", "List of requirements", "Counting is 1GB = 1000MB")
@demand("draft", "List of requirements", "Count with 1000 not 1024")
def test_megabytes_are_decimal(site: Site) -> None:
    site.write("job", mem_limit_MB=4000, disk_limit_GB=1)
    features = site.reader().read()
    assert (features["max_rss_bytes"].value, features["scratch_limit_bytes"].value) == (4 * 10**9, 10**9)


@demand("draft", "List of requirements", "if the file is missing no job shutdown is foreseen")
@demand("note", "JOBFEATURES", "If the file is missing no job shutdown")
@demand("note", "MACHINEFEATURES", "no shutdown is foreseen")
def test_a_missing_time_is_no_shutdown_and_an_unreadable_one_is_not(site: Site) -> None:
    site.write("machine")
    site.write("job")
    assert site.reader().read().shutdown().state == "absent"
    site.write("job", shutdowntime_job="")
    assert site.reader().read().shutdown().state == "unreadable"


@demand("draft", "List of requirements", "The value is in real time, and must be in the future")
def test_shutdown_times_lie_in_the_future(tmp_path: Path) -> None:
    tree = provide(str(tmp_path), "1", {}, clock=Clock())
    assert tree.announce("shutdowntime", NOW - 100) >= NOW
    features = Reader.from_environment(tree.environment())
    features.clock = Clock(NOW + 1)
    assert features.read()["shutdowntime"].state == "stale"


@demand("draft", "List of requirements", "Must be removed if the shutdowntime has arrived")
def test_shutdown_times_that_have_arrived_are_removed(tmp_path: Path) -> None:
    clock = Clock()
    tree = provide(str(tmp_path), "1", {}, clock=clock)
    tree.announce("shutdowntime", NOW + 10)
    clock.now += 10
    assert tree.expire() == ("shutdowntime",) and texts(tree.path("machine")) == {}


@demand("note", "MACHINEFEATURES", "seconds after the moment the shutdown time is set")
@demand("note", "JOBFEATURES", "seconds after the moment the shutdown time is set")
def test_no_shutdown_is_nearer_than_the_grace(tmp_path: Path) -> None:
    tree = provide(str(tmp_path), "1", {"grace_secs": 600, "grace_secs_job": 60}, clock=Clock())
    assert tree.announce("shutdowntime", NOW + 1) == NOW + 600
    assert tree.announce("shutdowntime_job", NOW + 1) == NOW + 60


@demand("note", "MACHINEFEATURES", "This value is required if a shutdown time will be set or changed")
@demand("note", "JOBFEATURES", "required if a shutdown time will be set or changed")
def test_a_shutdown_without_a_grace_is_told(site: Site) -> None:
    site.write("machine", shutdowntime=NOW + 1)
    assert [(n.code, n.key) for n in site.reader().read().notes] == [("mjf-no-grace", "grace_secs")]


@demand("note", "JOBFEATURES", "A string of printable non-whitespace ASCII characters")
def test_job_ids(site: Site) -> None:
    assert write_value(KEYS["job_id"], "1234[7].server") == "1234[7].server"
    site.write("job", job_id="12 34")
    assert site.reader().read()["job_id"].state == "unreadable"


@demand("note", "JOBFEATURES", "This is not scaled up for multiprocessor jobs")
def test_the_wall_limit_is_not_scaled(site: Site) -> None:
    site.write("job", jobstart_secs=NOW, wall_limit_secs=100, allocated_cpu=8)
    left = site.reader().read().remaining()
    assert left is not None and left.seconds == 100


# --- pilots

@demand("draft", "List of requirements",
        "Must be locked before any of the other files in this section are either read or written to")
@demand("draft", "List of requirements", "requested to lock the used_CPU file")
def test_used_cpu_is_locked_first(site: Site) -> None:
    status = PilotStatus(str(site.write("status")), limits=QUICK)
    status.update(used_CPU=1, add_uncom_time=1)
    with locked(str(site.root / "status"), exclusive=True, limits=QUICK):
        assert {r.state for r in site.reader().read().area("status").values()} == {"unreadable"}
        with pytest.raises(OSError, match="busy"):
            status.update(add_uncom_time=2)
    assert texts(str(site.root / "status"))["add_uncom_time"] == "1\n"


@demand("draft", "List of requirements", "Must be less or equal than allocated_CPU")
def test_no_more_cores_than_allocated(site: Site) -> None:
    with pytest.raises(UsageError):
        PilotStatus(str(site.write("status")), allocated=4).update(used_CPU=5)


@demand("draft", "List of requirements", 'string, either "True" or "False"')
def test_true_and_false(site: Site) -> None:
    status = PilotStatus(str(site.write("status")))
    for value in (True, False):
        status.update(used_CPU=1, can_postpone_last_job=value)
        assert texts(status.directory)["can_postpone_last_job"] == f"{value}\n"


@demand("draft", "List of requirements",
        "it should not update any of the other values for a significant amount of time")
def test_values_rest(site: Site) -> None:
    status = PilotStatus(str(site.write("status")), clock=site.clock)
    status.update(used_CPU=1, can_postpone_last_job=False)
    status.update(can_postpone_last_job=True)
    assert status.update(used_CPU=2) == ("used_CPU",)


@demand("draft", "List of requirements", "should not be used to compare jobs of different users")
def test_priorities_of_different_users_are_not_compared() -> None:
    with pytest.raises(UsageError):
        least_critical([Candidate("a", "u", {}), Candidate("b", "v", {})], NOW)


@demand("draft", "Conversion formulas", "$last_exp_job_end-$now or $last_max_job_end-$now")
@demand("draft", "Conversion formulas", "($allocated_CPU-$used_CPU)*($first_exp_job_end-$now)+$add_final_exp_waste")
@demand("draft", "Conversion formulas", "$add_uncom_time+$used_CPU*($now-$last_job_start)")
def test_formulas() -> None:
    made = figures({"last_exp_job_end": 50, "last_max_job_end": 90, "allocated_CPU": 8, "used_CPU": 6,
                    "first_exp_job_end": 30, "add_final_exp_waste": 7, "add_uncom_time": 3, "last_job_start": 10}, 20)
    assert (made.remaining_expected, made.remaining_max, made.draining_waste, made.kill_waste) == (30, 70, 27, 63)


# --- the texts themselves

#: About the texts, not about an implementation.
_NOT_ASKED = ("It should be seen as the source of information",)


def published() -> str | None:
    folder = os.environ.get("SSSJOB_SAMPLES")
    path = Path(folder) / "specs" / "seeds" / "machine-job-features-0.99.txt" if folder else None
    return path.read_text(encoding="utf-8") if path is not None and path.is_file() else None


needs_published_text = pytest.mark.skipif(
    published() is None, reason="SSSJOB_SAMPLES names no folder that holds the published draft 0.99")


@needs_published_text
def test_every_must_and_should_of_the_draft_is_cited() -> None:
    text = " ".join((published() or "").split())
    cited = []
    for says in (*(d.says for d in DEMANDS if d.text == "draft"), *_NOT_ASKED):
        at = text.find(says)
        assert at >= 0, says
        while at >= 0:
            cited.append((at, at + len(says)))
            at = text.find(says, at + 1)
    words = list(re.finditer(r"\b(must|should|requested to)\b", text, re.IGNORECASE))
    assert len(words) > 10
    assert [text[m.start() - 60:m.end() + 60] for m in words
            if not any(start <= m.start() < end for start, end in cited)] == []


#: What neither text settles, as it was decided for sssjob: (of whom, what, tests as module.function).
DECIDED = (
    ("reader", "a base is an absolute path, a file:, http: or https: URL; all else is unreadable, not absent",
     "places.test_no_place_is_unreadable places.test_local_forms"),
    ("reader", "no name and no link leads out of the directory",
     "places.test_files_that_are_no_values places.test_links_inside_the_directory_are_followed"),
    ("reader", "blanks, CR and NUL at both ends do not count; at most 4 KiB; empty is unreadable",
     "values.test_read places.test_files_that_are_no_values vectors.test_lexical"),
    ("reader", "numbers are ASCII digits of the key's form, never what Python takes beyond",
     "values.test_refused values.test_any_bytes_are_a_value_or_refused"),
    ("reader", "static keys are read once, dynamic ones not again within 30 s unless forced; a server's max-age and "
     "Expires count up to 600 s", "places.test_static_keys_are_read_once_and_dynamic_ones_confirmed "
     "places.test_how_long_a_dynamic_key_is_kept"),
    ("reader", "GET alone, 5 s, 4 KiB, one redirect within the origin; 404 and 410 are absent, all else unreadable "
     "with the last value kept as stale", "places.test_web_values places.test_redirects "
     "places.test_a_server_that_trickles_is_left places.test_what_cannot_be_read_again_is_stale"),
    ("reader", "metadata are asked where both variables are missing and the caller allows it",
     "places.test_metadata_are_not_asked_where_a_variable_is_set_or_nobody_allows_it"),
    ("reader", "only a local directory can be listed", "places.test_only_a_local_directory_can_be_listed"),
    ("reader", "time left is the least of limit and shutdowns, may be negative, and is None where nothing is known",
     "features.test_time_left features.test_time_left_says_what_it_does_not_know"),
    ("reader", "a shutdown in the past counts, as stale, unless the caller ignores it",
     "features.test_a_shutdown_in_the_past_counts_unless_it_is_ignored vectors.test_drains_when_glideinwms_does"),
    ("reader", "both generations are read, the note's counts, and a contradiction or an inverted factor is told",
     "features.test_draft_keys_stand_in features.test_notes "
     "features.test_the_note_is_preferred_and_a_factor_the_wrong_way_not_trusted"),
    ("provider", "modes 0755 and 0644 whatever the umask, owned by the job, in a place that cannot be guessed",
     "writer.test_what_the_umask_says_does_not_count writer.test_the_job_owns_its_files writer.test_a_life"),
    ("provider", "each file changes at once", "writer.test_readers_never_see_half_a_value"),
    ("provider", "where the site has set its own, they stay",
     "writer.test_a_site_that_has_its_own_keeps_them provider.test_what_the_site_has_stays"),
    ("provider", "a shutdown is announced no nearer than the grace, and taken away when it is dropped",
     "writer.test_announced_times provider.test_readers_see_what_is_announced"),
    ("provider", "what a pilot said last is kept, then the tree goes; those of crashed jobs by age",
     "provider.test_what_a_pilot_says script.test_made_and_removed writer.test_sweep"),
    ("provider", "each node has its own where something starts on each; elsewhere the variables are not seen",
     "provider.test_every_node_has_its_own told.test_a_command_on_every_node "
     "told.test_where_nothing_can_it_is_said_once"),
    ("provider", "a limit that does not exist has no file", "values.test_not_written"),
    ("pilot", "used_CPU is locked with lockf, never replaced, waited for 2 s; without locks two readings have to agree",
     "status.test_lockf_is_the_kind_of_lock status.test_used_cpu_is_never_replaced "
     "status.test_a_lock_that_somebody_holds status.test_over_http_two_readings_have_to_agree"),
)


@pytest.mark.parametrize(("whose", "says", "names"), DECIDED, ids=[says[:50] for _, says, _ in DECIDED])
def test_every_decision_has_its_tests(whose: str, says: str, names: str) -> None:
    for name in names.split():
        module, _, test = name.partition(".")
        assert callable(getattr(import_module(f"tests.mjf.test_{module}"), test)), name


def _tests(names: str) -> str:
    return ", ".join(f"`{name.partition('.')[2]}`" for name in names.split())


def page() -> str:
    rows = [f"| {d.text} | {d.section} | {d.says} | `{d.test}` |\n" for d in DEMANDS]
    ours = [f"| decided | {whose} | {says} | {_tests(names)} |\n" for whose, says, names in DECIDED]
    return "".join(["| text | section | says | test |\n|---|---|---|---|\n", *rows, *ours])


def test_the_page_lists_every_demand() -> None:
    assert PAGE.read_text().partition(BEGIN)[2].partition(END)[0] == page()


def test_the_page_explains_every_note() -> None:
    sources = (Path(__file__).resolve().parents[2] / "sssjob" / "mjf").glob("*.py")
    codes = {code for path in sources for code in re.findall(r'"(mjf-[a-z-]+)"', path.read_text())} - {"mjf-"}
    assert [code for code in sorted(codes) if f"`{code}`" not in PAGE.read_text()] == []


if __name__ == "__main__":
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}{page()}{END}{rest.partition(END)[2]}")
