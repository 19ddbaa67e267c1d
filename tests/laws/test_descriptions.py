"""What a document says beside its amounts (names, accounts, streams, mail, environment, dependencies, arrays, limits)
comes back from a format as it was, or a finding names what does not; nothing comes back that nobody said."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sssjob.conversion.intake import gate
from sssjob.document.element import Property
from sssjob.document.inherit import effective
from sssjob.document.model import Document
from sssjob.findings import Policy
from sssjob.translators import ReadContext, get
from tests.cases import Cases
from tests.laws.documents import read
from tests.laws.test_amounts import written
from tests.laws.test_meaning import FORMATS
from tests.strategies import FIXED, examples

NAMES = st.sampled_from(["alpha", "beta-2", "Gamma_3"])
FILES = st.sampled_from(["out.txt", "/scratch/a b/log", "run.{jobid}", "d/{jobname}.o{jobid}"])
EVENTS = st.sampled_from(["JobStart", "JobEnd", "JobStart,JobEnd", "All", "None"])
TIMES = st.sampled_from(["1893456000", "1924992000"])       # 2030-01-01 and 2031-01-01
#: A property and its values, in which ``{}`` is not replaced but by a value.
LINES: dict[str, st.SearchStrategy[str]] = {
    **{f"<{tag}>%s</{tag}>": NAMES for tag in ("Name", "Queue", "Project", "QualityOfService", "Group", "Application",
                                               "Machine", "Quote")},
    "<InitialWorkingDirectory>%s</InitialWorkingDirectory>": st.sampled_from(["/home/ann", "/scratch/a b"]),
    "<Shell>%s</Shell>": st.sampled_from(["/bin/sh", "/bin/tcsh"]),
    "<Priority>%s</Priority>": st.sampled_from(["0", "7", "-20"]),
    "<Restartable>%s</Restartable>": st.sampled_from(["true", "false"]),
    "<Checkpointable>%s</Checkpointable>": st.sampled_from(["true", "false"]),
    "<Hold>%s</Hold>": st.sampled_from(["User", "System"]),
    "<EligibleTime>%s</EligibleTime>": TIMES, "<DeadlineTime>%s</DeadlineTime>": TIMES,
    "<NotificationList>%s</NotificationList>": EVENTS,
    "<NotificationList uri='smtp://a@b.example'>%s</NotificationList>": EVENTS,
    "<OutputFile>%s</OutputFile>": FILES, "<OutputFile redirectList='Append'>%s</OutputFile>": FILES,
    "<ErrorFile>%s</ErrorFile>": FILES, "<InputFile>%s</InputFile>": st.sampled_from(["in.txt", "/data/a b"]),
    "<ErrorFile redirectList='Merge'>%s</ErrorFile>": st.just(""),
    "<OutputFile redirectList='Close'>%s</OutputFile>": st.just(""),
    "<Dependency>%s</Dependency>": NAMES, "<Dependency condition='OnFailure'>%s</Dependency>": NAMES,
    "<Dependency condition='OnExit' code='3'>%s</Dependency>": NAMES,
    "<Dependency condition='OnSuccess' designator='JobName'>%s</Dependency>": NAMES,
    **{f"<ResourceLimit name='{name}'>%s</ResourceLimit>": st.sampled_from(["60", "3600", "1048576"])
       for name in ("CPUTime", "CoreFileSize", "StackSize", "OpenFiles")},
    "<ResourceLimit name='FileSize' type='Soft'>%s</ResourceLimit>": st.just("2048"),
    "<Extension type='Scheduler' name='Array'>%s</Extension>": st.sampled_from(["1-5", "0-8:2", "1,3,7", "1-9%2"]),
    "<Extension type='Scheduler' name='ExclusiveNodeUse'>%s</Extension>": st.sampled_from(["true", "false"]),
    "<Extension type='Scheduler' name='Reservation'>%s</Extension>": NAMES,
    "<Extension type='Site' name='Colour'>%s</Extension>": NAMES,
}
VARIABLES = st.dictionaries(st.sampled_from(["A", "B_2", "PATH_X"]),
                            st.sampled_from(["1", "a b", "x=y", "q\"q", "a,b", "$HOME/x", "it's"]), max_size=3)


@st.composite
def _texts(draw: st.DrawFn) -> str:
    """A property a line; some of them below Requested, or in the defaults of the group."""
    lines: dict[str, str] = {}
    for form in draw(st.lists(st.sampled_from(sorted(LINES)), min_size=1, max_size=6, unique=True)):
        tag = re.match(r"<\w+(?: type='Scheduler')?(?: name='\w+')?", form)
        assert tag is not None
        lines.setdefault(tag[0] if "Resource" in form or "Extension" in form else tag[0].split(" ")[0],
                         form % draw(LINES[form]))
    job = list(lines.values())
    asked = [line for line in job if re.match("<(Queue|Project|QualityOfService|Group|Machine)>", line)]
    requested = draw(st.booleans())
    if asked and requested:
        job = [line for line in job if line not in asked]
        job += ["<Requested>", *asked, "</Requested>"]
    variables = draw(VARIABLES)
    export = draw(st.sampled_from(["", " export='true'", " export='false'"]))
    if variables or export:
        job += [f"<Environment{export}>", *(f'<Variable name="{k}">{v}</Variable>' for k, v in variables.items()),
                "</Environment>"]
    beginning = ["<Job>", "<Executable>/bin/step</Executable>"]
    if draw(st.integers(0, 3)) == 0:
        shared = [line for line in job if re.match("<(Project|Queue|NotificationList|OutputFile|Shell)", line)
                  and "<Requested>" not in job]
        own = [line for line in job if line not in shared]
        return "\n".join(["<JobGroup>", "<Id>g</Id>", "<JobDefaults>", *shared, "</JobDefaults>", *beginning, *own,
                          "</Job>", "</JobGroup>"])
    return "\n".join([*beginning, *job, "</Job>"])


def said(document: Document) -> dict[tuple[str, ...], set[str]]:
    """Everything that the job says, bare or in Requested, by name; of an Extension and a limit name and type too."""
    job = effective(*next(iter(document.jobs()))).fold()
    found: dict[tuple[str, ...], set[str]] = {}
    for p in (p for scope in (job, *job.containers("Requested")) for p in scope.items if isinstance(p, Property)):
        key = (p.tag, *(p.get(name) or "" for name in ("name",) if p.tag in ("ResourceLimit", "Extension")))
        found.setdefault(key, set()).add(_normal(p))
    if job.environment is not None:
        if job.environment.export is not None:
            found["Environment", "export"] = {str(job.environment.export)}
        for p in job.environment.properties():
            found["Variable", p.get("name") or ""] = {p.text}
    return found


def _normal(p: Property) -> str:
    """A value with what belongs to it, in one form."""
    listed = ",".join(sorted((p.get("redirectList") or "").split(",")))
    if listed == "Close" and not p.text:
        return "/dev/null  "
    if p.tag == "ResourceLimit" and p.get("name") == "FileSize":
        return p.text               # that of LSF is a soft one, whatever is asked for
    if p.tag == "NotificationList":
        events = {"All": "JobEnd,JobStart"}.get(p.text, ",".join(sorted(p.text.split(","))))
        if events == "None":
            return "None "
        return f"{events} {re.sub('^(smtp://|mailto:)', '', p.get('uri') or '')}"
    if p.tag == "Dependency":
        return f"{p.text} {p.get('condition') or 'OnSuccess'} {p.get('code')} {p.get('designator') or 'JobId'}"
    return f"{p.text} {p.get('type') or ''} {listed}" if p.tag != "Extension" else p.text


#: What a format adds of itself, and the command, which becomes a script.
_MARKERS = {("Extension", "Dialect"), ("Executable",), ("Arguments",), ("Extension", "Launcher")}
#: A value that says what holds anyway where nothing is said, so that nothing need be written: jobs share nodes, no
#: mail is sent; by the manager its name stands before: no variables go along, errors go where the output goes.
_ANYWAY: dict[tuple[str, ...], str] = {("Extension", "ExclusiveNodeUse"): "false", ("NotificationList",): "None ",
           **{(name, "ErrorFile"): "  Merge" for name in ("slurm", "flux", "flux-jobspec")},
           **{(name, "Environment", "export"): "False" for name in ("pbspro", "torque", "sge", "cobalt")}}
#: A jobspec and a JobSpec say all of the environment.
_COMPLETE = {("flux-jobspec", "Environment", "export"), ("psij", "Environment", "export")}
#: What findings call some Extensions, too.
_CALLED = {"MailEvents": "NotificationList", "MailUser": "NotificationList", "Array": "counted from 1"}


def changes(name: str, text: str) -> Iterator[str]:
    """What comes back otherwise, and is not named by a finding."""
    document = read(text)
    output, findings = written(name, document)
    context = ReadContext(policy=Policy.WARN)
    back = get(name).read(output.encode(), context)
    told = " ".join(f"{f.subject} {f.message}" for f in (*findings, *context.findings))
    before, after = said(document), said(back)
    if name in ("adl", "xrsl") and before.get(("ErrorFile",)) == before.get(("OutputFile",), 0):
        before["ErrorFile",] = {"  Merge"}      # there both streams go to a file that is named for each
    for key in before.keys() | after.keys():
        anyway = {_ANYWAY.get(key) or _ANYWAY.get((name, *key), "")}
        if key in _MARKERS or before.get(key, anyway) == after.get(key, anyway) or (
                key not in before and (name, *key) in _COMPLETE):
            continue
        words = [key[-1], _CALLED.get(key[-1], key[-1]), *(key[:1] if key[0] != "Extension" else ())]
        if not any(word in told for word in words):
            yield f"{key}: {before.get(key)} is read as {after.get(key)}\n{text}\n{output}\n{told}"


def _sound(text: str) -> bool:
    return not any(f.rejects for f in gate(read(text)))


def descriptions() -> st.SearchStrategy[str]:
    """Texts of documents that say something beside amounts and that no door refuses."""
    return _texts().filter(_sound)


@settings(max_examples=examples(25), derandomize=FIXED, deadline=None, suppress_health_check=list(HealthCheck))
@given(descriptions())
def test_what_a_job_says_of_itself_comes_back_or_is_told(text: str) -> None:
    with Cases() as case:
        for name in FORMATS:
            with case(name):
                broken = list(changes(name, text))
                assert not broken, "\n".join(broken)


@pytest.mark.parametrize(("name", "line"), [
    ("slurm", "3 Priority"), ("slurm", "4 OutputFile"), ("sge", "4 OutputFile"), ("pbspro", "4 OutputFile"),
    ("lsf", "4 OutputFile"), ("cobalt", "4 OutputFile"), ("htcondor", "4 OutputFile"), ("pbspro", "6 Project")])
def test_what_no_directive_can_hold_is_told_at_its_property(name: str, line: str) -> None:
    """Also where the submit command would refuse it; both were told at the job."""
    text = ("<Job>\n<Executable>/bin/x</Executable>\n<Priority>-20</Priority>\n<OutputFile>a\nb</OutputFile>\n"
            "<Project>x\ty</Project>\n</Job>")
    assert line in {f"{f.line} {f.subject}" for f in written(name, read(text))[1] if f.rule == "SSS501"}


def test_one_file_for_both_streams_is_told_at_each() -> None:
    """Its text alone does not tell which of them an option was written from."""
    text = ("<Job>\n<Executable>/bin/x</Executable>\n<OutputFile>a b</OutputFile>\n<ErrorFile>a b</ErrorFile>\n</Job>")
    told = {f"{f.line} {f.subject}" for f in written("cobalt", read(text))[1] if f.rule == "SSS501"}
    assert told == {"3 OutputFile", "4 ErrorFile"}


@pytest.mark.parametrize(("name", "events", "rule"), [
    ("lsf", "None", "SSS502 info"), ("htcondor", "JobStart", "SSS501 warning")])
def test_mail_that_is_not_sent_needs_no_address(name: str, events: str, rule: str) -> None:
    """LSF mails the output of a job to the address, whatever events are named."""
    output, findings = written(name, read(
        f"<Job><Executable>/bin/x</Executable><NotificationList uri='a@b.example'>{events}</NotificationList></Job>"))
    assert "@" not in output
    assert [f"{f.rule} {f.severity}" for f in findings if f.subject == "NotificationList"] == [rule]


@pytest.mark.parametrize(("name", "export"), [("slurm", True), ("cobalt", True), ("flux-jobspec", True), ("jsdl", True),
                                              ("jsdl", False)])
def test_what_becomes_of_the_submitters_variables_is_told_at_the_environment(name: str, export: bool) -> None:
    """Once."""
    word = "true" if export else "false"
    findings = written(name, read(f"<Job>\n<Executable>/bin/x</Executable>\n<Environment export='{word}'>\n"
                                  "<Variable name='A'>1</Variable>\n</Environment>\n</Job>"))[1]
    assert [f"{f.line} {f.path}" for f in findings if f.subject.startswith("Environment")] == ["3 /Job/Environment"]
