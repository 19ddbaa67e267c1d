"""Jobs that are changed after they were submitted, by whoever asks for it, through the journal."""

from __future__ import annotations

import pytest

from sssjob.accounting import quote, read_rates
from sssjob.document.model import Job
from sssjob.errors import RejectedError, UsageError
from sssjob.run.changing import change_of, change_text, shown, take_change
from sssjob.run.plan import outline
from sssjob.xml.canonical import canonical
from sssjob.xml.reader import read_document
from tests.gate import until_there
from tests.run.support import Desk, after, eventually, group, shell

GATE = until_there()      # a job that goes on when the test says so
ASKING = "<Project>p</Project><Requested><Duration>600</Duration><Memory units='GB'>2</Memory></Requested>"


def wish(**settings: str) -> str:
    return f"change {change_of(settings.items())}"


def changed(desk: Desk, name: str, **settings: str) -> str | None:
    """Why a change was refused; empty where it was not."""
    (job,) = desk.client().ask(wish(**settings), [name])
    return job.refusal(wish(**settings))


def says(job: Job) -> dict[str, str]:
    """What a job says in one place, with units."""
    return {p.tag: " ".join(filter(None, (p.text, p.get("units")))) for p in job.leaves()}


def test_what_was_not_submitted_yet_is_planned_anew(desk: Desk) -> None:
    """b waits for a; it is changed twice, the second time by another client, and runs as what it says then."""
    script = "echo $SSSJOB_NOTHING > b"
    desk.submit(group(shell(f"{GATE}; exit 2"), shell(script, after("a", "OnExit", 2), "<Requested><Duration>600"
                                                                "</Duration></Requested>", name="b")))
    assert changed(desk, "b", Name="first") == ""
    assert changed(desk, "b", Name="second", Duration="1:00:00") == ""
    assert (desk.job("b").plan.job.value("Name"), says(desk.job("b").plan.job)["Duration"]) == ("second", "3600")
    assert desk.client().journal.find("b")[0].name == "second"
    (desk.folder / "go").touch()
    assert desk.wait("a", "b") == {"a": ("failed", 2), "b": ("done", 0)}
    assert desk.job("b").plan.job.value("Name") == "second"
    if desk.lab is not None:
        record = next(job for job in desk.lab.jobs() if job["number"] == 2)
        assert "second" in str(record)


def test_what_was_submitted_is_changed_by_its_manager(managed: Desk) -> None:
    """The next client knows it from the journal alone; where the job is tried again or run again, it is as changed."""
    assert managed.lab is not None
    managed.submit(shell("exit 3", ASKING, "<Hold>User</Hold>"))
    assert changed(managed, "a", Duration="1200", Name="new", Project="q") == ""
    assert [len(job["changed"]) for job in managed.lab.jobs()] == [1]
    expected = {"Name": "new", "Project": "q", "Duration": "1200", "Memory": "2 GB"}
    assert says(managed.job("a").plan.job).items() >= expected.items()
    assert changed(managed, "a", TaskCount="2") != "", "the command that starts them is in the script"
    assert says(managed.job("a").plan.job).items() >= expected.items()
    managed.client().ask("release", ["a"])
    assert managed.wait("a") == {"a": ("failed", 3)}
    assert changed(managed, "a", Name="late") == "it has ended"
    managed.client().again(1, [0])
    again = managed.client().journal.find("@2.1")[0]
    assert says(managed.client().standing(managed.client().journal.entry(2)).jobs[0].plan.job).items() >= \
        expected.items() and again.name == "new"
    managed.client().cancel(["@2.1"])


def test_what_the_manager_refuses_stays(managed: Desk) -> None:
    """The document is what it was, and the log has the words of the manager."""
    assert managed.lab is not None
    managed.lab.set(wait=600)
    managed.submit(shell("true", ASKING))
    refusal = changed(managed, "a", Project="nosuch", Duration="60") or ""
    assert refusal.endswith("cannot be changed: nosuch is not known here")
    assert says(managed.job("a").plan.job)["Duration"] == "600" and managed.job("a").changes == []
    managed.client().cancel(["a"])


def test_a_manager_that_was_silent_is_asked_again(managed: Desk) -> None:
    """The wish is in the journal until somebody has an answer."""
    assert managed.lab is not None
    managed.lab.set(wait=600)
    managed.submit(shell("true", ASKING))
    command, text = {"slurm": ("scontrol", "Unable to contact slurm controller"),
                     "sge": ("qalter", "unable to send message to qmaster")}[managed.executor]
    managed.lab.fault(command, times=-1, exit=1, stderr=text)
    text = wish(Name="x")
    managed.client().ask(text, ["a"], 0.5)
    assert managed.job("a").changes == []
    managed.lab.heal(command)
    eventually(lambda: managed.client().ask("release", ["a"]) and managed.job("a").changes == [
        text.removeprefix("change ")])
    managed.client().cancel(["a"])


def test_elements_of_an_array_are_not_changed_alone(managed: Desk) -> None:
    assert managed.lab is not None
    managed.lab.set(wait=600)
    managed.submit(shell("true", '<Extension type="Scheduler" name="Array">1-2</Extension>'))
    assert changed(managed, "a_1", Name="x") == \
        "it is an element of an array, of which the document says one thing for all"
    managed.client().cancel(["a"])


GROUP = ("<JobGroup><Id>g</Id><JobDefaults><Requested><Memory units='MB' metric='PerNode' op='GE'>100</Memory>"
         "</Requested></JobDefaults><Job><Id>a</Id>{}</Job></JobGroup>")


@pytest.mark.parametrize(("job", "settings", "expected"), [
    ("<Duration>60</Duration>", {"Duration": "2:00"}, "<Id>a</Id><Duration>120</Duration>"),
    ("<Requested><Duration>60</Duration></Requested>", {"Duration": "90"},
     "<Id>a</Id><Requested><Duration>90</Duration></Requested>"),
    ("", {"Queue": "q"}, "<Id>a</Id><Requested><Queue>q</Queue></Requested>"),
    ("", {"Memory": "2 GB"},
     '<Id>a</Id><Requested><Memory metric="PerNode" op="GE" units="GB">2</Memory></Requested>'),
    ("<TaskGroup><TaskCount>2</TaskCount></TaskGroup>", {"TaskCount": "3"},
     "<Id>a</Id><TaskGroup><TaskCount>3</TaskCount></TaskGroup>"),
    ("", {"TaskCount": "3"}, "<Id>a</Id><TaskGroup><TaskCount>3</TaskCount></TaskGroup>"),
    ("<Priority>1</Priority>", {"JobName": "n", "Priority": "2"}, "<Id>a</Id><Priority>2</Priority><Name>n</Name>"),
])
def test_where_a_change_is_said(job: str, settings: dict[str, str], expected: str) -> None:
    """Where the job says it, else where it inherits it from says how; in its defaults nothing changes."""
    document = read_document(GROUP.format(job))
    planned = outline(document).jobs[0]
    take_change(planned, change_of(settings.items()))
    assert canonical(planned.job).decode() == canonical(read_document(f"<Job>{expected}</Job>")).decode()
    assert b"<Memory metric=\"PerNode\" op=\"GE\" units=\"MB\">100" in canonical(document)
    assert "GE" in str([p.attributes for p in planned.folded.leaves() if p.tag == "Memory"])


@pytest.mark.parametrize(("job", "settings", "reason"), [
    ("<TaskGroup><Duration>1</Duration></TaskGroup><TaskGroup><Duration>2</Duration></TaskGroup>", {"Duration": "5"},
     "Duration: the job asks for it in several places"),
    ("<Requested><Queue>a</Queue><Queue conj='Or'>b</Queue></Requested>", {"Queue": "c"},
     "Queue: the job asks for it in several places"),
])
def test_what_has_no_one_place_is_refused(job: str, settings: dict[str, str], reason: str) -> None:
    planned = outline(read_document(GROUP.format(job))).jobs[0]
    before = canonical(planned.job)
    with pytest.raises(UsageError) as raised:
        take_change(planned, change_of(settings.items()))
    assert str(raised.value) == reason and canonical(planned.job) == before


@pytest.mark.parametrize(("text", "reason"), [
    ("<Job/>", "nothing is said that is to be changed"),
    ("<Job><State>Running</State></Job>", "State of a job that was submitted is not changed: it is a fact"),
    ("<Job><Id>b</Id></Job>", "Id of a job that was submitted is not changed: it names the job"),
    ("<Job><Arguments>x</Arguments></Job>", "Arguments of a job that was submitted is not changed: it is what runs"),
    ("<Job><Environment><Variable name='A'>1</Variable></Environment></Job>",
     "Environment of a job that was submitted is not changed"),
    ("<Job><Delivered><Duration>1</Duration></Delivered></Job>",
     "Delivered of a job that was submitted is not changed"),
    ("<Job><Extension type='Scheduler' name='Array'>1-5</Extension></Job>",
     "Extension Array of a job that was submitted is not changed: it is no property"),
    ("<Job><Requested><Queue>a</Queue><Queue conj='Or'>b</Queue></Requested></Job>", "Queue: a change is no condition"),
    ("<Job><Name>a</Name><Name>b</Name></Job>", "Name is to be changed into two things"),
])
def test_what_is_no_change(text: str, reason: str) -> None:
    job = read_document(text).root
    assert isinstance(job, Job)
    with pytest.raises(UsageError) as raised:
        change_text(job)
    assert str(raised.value) == reason


def test_settings_that_are_wrong() -> None:
    with pytest.raises(UsageError, match="'Colour' is no property of a job"):
        change_of([("Colour", "red")])
    for name, value in (("Duration", "soon"), ("Memory", "much"), ("Memory", "4 XB"), ("Priority", "a")):
        with pytest.raises(RejectedError):
            change_of([(name, value)])
    assert shown(change_of([("Memory", "4GB"), ("Name", "a & <b>")])) == "Name a & <b>, Memory 4 GB"


def test_a_quote_follows_a_change(managed: Desk) -> None:
    """What is asked for now is what is paid for."""
    rates = read_rates(b'name = "r"\nversion = "1"\ncurrency = "EUR"\n[[rate]]\ntype = "VBR"\nname = "Processors"\n'
                       b'rate = 1\nper = "hour"\n', "r.toml")
    assert managed.lab is not None
    managed.lab.set(wait=600)
    managed.submit(shell("true", "<Requested><Duration>3600</Duration><Processors>1</Processors></Requested>"))
    assert quote(managed.job("a").plan.job, rates, None).record()['charge'] == '1.00'
    assert changed(managed, "a", Duration="7200") == ""
    assert quote(managed.job("a").plan.job, rates, None).record()['charge'] == '2.00'
    managed.client().cancel(["a"])


@pytest.mark.parametrize("managed", ["sge"], indirect=True)
def test_a_job_that_others_name_anew_keeps_its_accounting(managed: Desk) -> None:
    """Its records bear no tag; its row in the queue leads to one, and the journal keeps the name for other clients."""
    assert managed.lab is not None
    managed.submit(shell(GATE))
    managed.lab.update(1, name="other")
    client = managed.client()
    assert client.look([client.journal.entry(1)], 20)[1] and managed.job("a").seen[0].renamed == "other"
    (managed.folder / "go").touch()
    assert managed.wait("a") == {"a": ("done", 0)}
    assert managed.job("a").seen[0].known["sources"]["cpu_seconds"] == "qacct"
