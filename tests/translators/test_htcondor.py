"""Submit descriptions of HTCondor: as its own parser reads them, queue statements, and what goes beside them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.document.element import new_property
from sssjob.document.model import Document, Job, JobGroup
from sssjob.errors import RejectedError
from sssjob.findings import Findings, Policy
from sssjob.translators import ReadContext, WriteContext, get
from sssjob.translators.scripts._condor_values import read_arguments, read_environment, read_requirements
from tests.strategies import examples

SEEN: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "fixtures" / "scripts" / "htcondor-23.0.json").read_text())["cases"]


def read(text: str, policy: Policy | None = Policy.WARN, **options: str) -> tuple[Document, Findings]:
    context = ReadContext("/x/sweep.sub", Findings("d"), policy=policy, options=options)
    return get("htcondor").read(text.encode("utf-8", "surrogateescape"), context), context.findings


def jobs(text: str) -> list[Job]:
    return [job for job, _ in read(text)[0].jobs()]


def convert(data: str, source: str, target: str) -> tuple[list[str], list[tuple[str, str]]]:
    context = ReadContext("job", Findings("job"), policy=Policy.WARN)
    document = get(source).read(data.encode(), context)
    writing = WriteContext(Findings("job"), policy=Policy.WARN)
    return get(target).write(document, writing).splitlines(), [(f.kind, f.subject) for f in writing.findings]


def there_and_back(text: str) -> str:
    """The description that a description becomes."""
    return get("htcondor").write(read(text)[0], WriteContext(Findings("d"), policy=Policy.WARN))


def commands(text: str) -> dict[str, str]:
    """What a description is written as."""
    lines = convert(text, "htcondor", "htcondor")[0]
    return {name: value for name, _, value in (line.partition(" = ") for line in lines)}


def megabytes(job: Job, tag: str) -> float:
    assert job.requested is not None
    found = job.requested.first(tag)
    assert found is not None
    return float(found.text) * {"KB": 1 / 1024, "MB": 1, "GB": 1024}[found.attributes["units"]]


def as_value(text: str) -> str:
    """The new syntax of a job ad as that of a description."""
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def words_of(ad: dict[str, Any]) -> list[str]:
    """Arguments of a job ad: the old syntax is split at blanks, the new one has single quotes."""
    return read_arguments(as_value(ad["Arguments"])) if "Arguments" in ad else str(ad.get("Args", "")).split()


@pytest.mark.parametrize("name", SEEN)
def test_read_as_its_own_parser_reads(name: str) -> None:
    """The parser of the 23.0 bindings made job ads of these; it refused those without."""
    case = SEEN[name]
    if "jobs" not in case:
        with pytest.raises(RejectedError):
            read(case["description"], None)
        return
    made = jobs(case["description"])
    array = made[0].value("Extension") if len(made) == 1 else None
    ads = case["jobs"][:1] if array is not None and len(made) == 1 else case["jobs"]
    assert len(made) == len(ads)
    for job, ad in zip(made, ads, strict=True):
        said = [w.replace("$(PROCESS)", "0") for w in shlex.split(str(job.value("Arguments") or ""))]
        assert said == words_of(ad)
        if "Environment" in ad:
            assert job.environment is not None
            assert job.environment.variables() == read_environment(as_value(ad["Environment"]))
        if "RequestMemory" in ad:
            assert megabytes(job, "Memory") == ad["RequestMemory"]
        if "RequestDisk" in ad:
            assert megabytes(job, "Disk") * 1024 == ad["RequestDisk"]
        if "JobBatchName" in ad:
            assert job.name == ad["JobBatchName"]
        for attribute in ("X", "Y"):
            if attribute in ad:
                assert [p.text for p in job.all("Extension") if p.get("name") == f"MY.{attribute}"] == [
                    str(ad[attribute])]


@pytest.mark.parametrize(("queue", "array"), [
    ("queue", None), ("queue 1", None), ("queue 4", "0-3"), ("n = 2\nqueue $(n)*2", "0-3"),
    ("max_materialize = 2\nqueue 4", "0-3%2"), ("array_index = $(Process) * 3 + 1\nqueue 4", "1-10:3")])
def test_queue_numbers_are_arrays(queue: str, array: str | None) -> None:
    document, _ = read(f"executable = a\noutput = o.$(Cluster).$(Process)\n{queue}\n")
    job = next(j for j, _ in document.jobs())
    assert next((p.text for p in job.all("Extension") if p.get("name") == "Array"), None) == array
    text = get("htcondor").write(document, WriteContext())
    assert read(text)[0].root == document.root


def test_items_are_a_group_with_the_values_filled_in() -> None:
    text = ("executable = a\narguments = $(v) $(Process)\noutput = $(v).$(Process).out\n"
            "queue 2 v in (x, y)\nv = z\nqueue\n")
    document, findings = read(text)
    group = next(iter(document.groups()))
    assert group.id == "sweep.sub" and [f.subject for f in findings if f.kind == "invented"] == ["Id"]
    made = [(j.arguments, j.output_file.value if j.output_file else None,
             [p.text for p in j.all("Extension") if p.get("name") == "Array"]) for j in group.jobs]
    assert made == [("x '$(Process)'", "x.{index}.out", ["0-1"]), ("y '$(Process)'", "y.{index}.out", ["2-3"]),
                    ("z 4", "z.4.out", [])]


def test_a_group_is_written_with_one_queue_statement_a_job() -> None:
    text = "executable = a\narguments = 1\nrequest_cpus = 2\nqueue\nexecutable = b\narguments =\nqueue\n"
    document, _ = read(text)
    again = get("htcondor").write(document, WriteContext())
    assert again == ("executable = a\narguments = 1\nrequest_cpus = 2\nqueue\n\n"
                     "executable = b\nrequest_cpus = 2\narguments =\nqueue\n")
    assert read(again)[0].root == document.root


@pytest.mark.parametrize(("commands", "queue", "written"), [
    ("arguments = -t $(t) -o r_$(t).csv\n", "queue t in (280 300)",
     "arguments = -t $(item1) -o r_$(item1).csv\nqueue item1 from (\n    280\n    300\n)\n"),
    # several variables, the one that is a part of the other, and the number of the job
    ("arguments = $(f) $(n) $(Process)\noutput = o.$(f)\n", "queue n,f from (\n1 /a/1.root\n22 /b/3.root\n)",
     "arguments = $(item2) $(item1) $(Process)\noutput = o.$(item2)\n"
     "queue item1,item2 from (\n    1, /a/1.root\n    22, /b/3.root\n)\n"),
    # arrays are counted on, as they are in one cluster
    ("arguments = $(x) $(Process)\n", "queue 3 x in (a b)",
     "arguments = $(item1) $(Process)\nqueue 3 item1 from (\n    a\n    b\n)\n"),
    ("request_cpus = $(n)\n", "queue n in (2 4)", "request_cpus = $(item1)\nqueue item1 from (\n    2\n    4\n)\n"),
])
def test_jobs_that_differ_in_words_are_items_of_one_queue_statement(commands: str, queue: str, written: str) -> None:
    document, _ = read(f"executable = a\n{commands}{queue}\n")
    context = WriteContext(Findings("d"))
    text = get("htcondor").write(document, context)
    assert text == f"executable = a\n{written}"
    assert read(text)[0].root == document.root
    assert [f.message for f in context.findings] == []


@pytest.mark.parametrize("queue", ["arguments = $(a)\nqueue a from (\nx y\nz\n)",          # other words
                                   "arguments = $(a)\nqueue a in (1 ,#b)",                   # a comment in a list
                                   "queue 1 a in (1 2)", "arguments = $(a)\nqueue a in (1 2)\nqueue 2"])
def test_jobs_that_no_items_tell_apart_have_a_queue_statement_each(queue: str) -> None:
    document, _ = read(f"executable = a\n{queue}\n")
    text = get("htcondor").write(document, WriteContext())
    assert text.count("\nqueue") == len(list(document.jobs()))
    assert read(text)[0].root == document.root


@given(items=st.lists(st.text("ab1$(),# '\"/=", max_size=4), min_size=2, max_size=3))
@settings(max_examples=examples(20))
def test_whatever_the_items_are_the_jobs_stay_the_same(items: list[str]) -> None:
    document = Document(JobGroup([Job([
        new_property("Executable", "./a"), new_property("Arguments", shlex.join([item, "z"])),
        new_property("OutputFile", f"o/{item}x")]) for item in items]), {})
    text = get("htcondor").write(document, WriteContext(Findings("d"), policy=Policy.WARN))
    again = [[job.value(tag) for tag in ("Arguments", "OutputFile")] for job, _ in read(text)[0].jobs()]
    assert again == [[job.value(tag) for tag in ("Arguments", "OutputFile")] for job, _ in document.jobs()]


@pytest.mark.parametrize("statement", ["queue f from list.txt", "queue f matching files *.dat", "queue f from ls |"])
def test_files_are_not_read(statement: str) -> None:
    document, findings = read(f"executable = a\narguments = $(f)\n{statement}\n")
    assert ("dropped", "queue", 3) in [(f.kind, f.subject, f.line) for f in findings]
    assert get("htcondor").write(document, WriteContext()) == f"executable = a\narguments = $(f)\n{statement}\n"


def test_included_files_are_not_read() -> None:
    _, findings = read("include : /etc/passwd\ninclude command : rm -rf /\nuse feature:x\nexecutable = a\nqueue\n")
    assert [(f.kind, f.subject) for f in findings] == [("dropped", "include"), ("dropped", "include"),
                                                       ("dropped", "use")]


@pytest.mark.parametrize("text", [
    "executable = a\n", "queue 1 2\n", "queue x in (a\n", "if true\nqueue\n", "endif\nqueue\n",
    "if maybe\nendif\nqueue\n",
    "x = $(y)\ny = $(x)\narguments = $(x)\nqueue\n", "queue -1\n", "queue 99999999999\n", "x @=end\nqueue\n",
    "executable = a\x00\nqueue\n", "arguments = \"it's\"\nqueue\n", "environment = A\nqueue\n",
    "notification = Sometimes\nqueue\n"])
def test_what_is_refused(text: str) -> None:
    with pytest.raises(RejectedError):
        read(text, None)


def test_macros_that_grow_without_end() -> None:
    bomb = "".join(f"m{n} = $(m{n + 1})$(m{n + 1})$(m{n + 1})\n" for n in range(40))
    bomb += "m40 = x\narguments = $(m0)\nqueue\n"
    with pytest.raises(RejectedError, match="grows beyond"):
        read(bomb, None)
    deep = "".join(f"d{n} = $(d{n + 1})\n" for n in range(2000)) + "arguments = $(d0)\nqueue\n"
    with pytest.raises(RejectedError, match="within one another"):
        read(deep, None)
    with pytest.raises(RejectedError, match="array_elements"):
        read("queue in (" + "a " * 20_000 + ")\n", None)
    assert jobs("queue 2000000000\n")[0].value("Extension")


@pytest.mark.parametrize("text", ["a = " + "$(" * 50_000, "a = " + "(" * 100_000, "x\\\n" * 20_000,
                                  "requirements = " + "(" * 50_000, "requirements = " + "a&&" * 30_000,
                                  "queue " + "a," * 50_000, "arguments = \"" + "'" * 99_999 + "\""])
def test_long_lines_end(text: str) -> None:
    try:
        document, _ = read(f"{text}\nqueue\n")
    except RejectedError:
        return
    get("htcondor").write(document, WriteContext(policy=Policy.WARN))


@pytest.mark.parametrize(("text", "expected", "others"), [
    ('OpSys == "LINUX" && (Arch == "X86_64")',
     [("OperatingSystem", "EQ", "LINUX"), ("Architecture", "EQ", "X86_64")], []),
    ('Machine != "n1" && HasDocker && TARGET.HasX =?= True',
     [("Node", "NE", "n1"), ("Feature", "EQ", "HasDocker"), ("Feature", "EQ", "HasX")], []),
    ("(Memory >= 1024) && (Cpus >= 4)", [("Memory", "GE", "1024"), ("Processors", "GE", "4")], []),
    ('A || OpSys == "LINUX"', [], ['A || OpSys == "LINUX"']),
    ('(A || B) && X > 3 && OpSys == "a && b"', [("OperatingSystem", "EQ", "a && b")], ["(A || B)", "X > 3"]),
])
def test_requirements(text: str, expected: list[tuple[str, str, str]], others: list[str]) -> None:
    assert read_requirements(text) == (expected, others)
    written = commands(f"executable = a\nrequirements = {text}\nqueue\n")
    again = "".join(f"{k} = {v}\n" if v else f"{k}\n" for k, v in written.items())
    assert commands(again) == written


def test_29_a_comment_is_part_of_the_value() -> None:
    assert jobs("Executable = /bin/sleep\nArguments = 300 # to sleep\nqueue\n")[0].arguments == "300 '#' to sleep"


def test_40_memory_is_mebibytes_disk_kibibytes() -> None:
    made = jobs("request_memory = 1024\nrequest_disk = 1024\nqueue\n")[0]
    assert megabytes(made, "Memory") == 1024 and megabytes(made, "Disk") == 1


def test_command_line_wins() -> None:
    document, _ = read("executable = a\narguments = $(X)\nqueue\n", set="X=3 request_cpus=2")
    assert get("htcondor").write(document, WriteContext()) == "executable = a\narguments = 3\nrequest_cpus = 2\nqueue\n"


def test_expressions_and_late_macros_stay() -> None:
    text = ("executable = a\narguments = $$(Arch) $ENV(HOME) $RANDOM_INTEGER(1,9)\n"
            "request_memory = ifthenelse(X, 1, 2)\nqueue\n")
    document, findings = read(text)
    assert get("htcondor").write(document, WriteContext()) == text
    assert [(f.kind, f.subject) for f in findings] == [("site-dependent", "arguments"),
                                                       ("site-dependent", "request_memory")]


def test_dollar_signs_of_others_are_no_macros() -> None:
    text, _ = convert("#!/bin/sh\n#SBATCH -o a$(x).%j\n#SBATCH --export=A=$HOME\necho\n", "slurm", "htcondor")
    assert "output = a$(DOLLAR)(x).$(Cluster)" in text and 'environment = "A=$(DOLLAR)HOME"' in text


def test_a_script_goes_beside_the_description() -> None:
    script = ("#!/bin/bash\n#SBATCH -J cfd -t 90 -c 4 --mem=8G --gpus=2 -a 1-9:2%3 -o %x.%A_%a.out --mail-type=END\n"
              "#SBATCH -p batch --dependency=afterok:1\n./run\n")
    document = get("slurm").read(script.encode(), ReadContext())
    context = WriteContext(Findings("job"), policy=Policy.WARN)
    text = get("htcondor").write(document, context)
    assert text.splitlines() == [
        "batch_name = cfd", "executable = cfd.sh", "output = cfd.$(Cluster)_$INT(array_index).out",
        "request_cpus = 4", "request_memory = 8GB", "request_gpus = 2", "allowed_execute_duration = 5400",
        "notification = Complete", "array_index = $(Process) * 2 + 1", "max_materialize = 3", "queue 5"]
    told = [(f.kind, f.subject) for f in context.findings]
    assert {("dropped", "Queue"), ("dropped", "Dependency"), ("site-dependent", "Executable")} <= set(told)
    beside = get("htcondor").files
    assert beside is not None
    made = dict(beside(document, WriteContext(Findings("job"), policy=Policy.WARN)))
    assert list(made) == ["cfd.sub", "cfd.sh"] and made["cfd.sub"] == text
    assert made["cfd.sh"] == "#!/bin/bash\n./run\n"


def test_hosts_are_alternatives_and_nice_turns_its_sign() -> None:
    text, findings = convert("#!/bin/sh\n#SBATCH -w a,b -x c --nice=5\necho\n", "slurm", "htcondor")
    assert text[1:] == ["priority = -5", 'requirements = Machine != "c" && (Machine == "a" || Machine == "b")', "queue"]
    assert {("approximated", "Node"), ("approximated", "Extension Nice")} <= set(findings)


@pytest.mark.parametrize(("lines", "program"), [
    ("container_image = docker://a/b\nuniverse = container\n", "./run.sh"),
    ("docker_image = a/b\nuniverse = docker\n", "./run.sh"),
    ("container_image = docker://a/b\ntransfer_executable = False\n", "run.sh"), ("", "./run.sh")])
def test_the_program_of_a_container_is_a_file_that_goes_along(lines: str, program: str) -> None:
    """The ads that the 23.0 bindings make name it in the directory of submission, from where it goes along."""
    description = f"executable = run.sh\n{lines}queue\n".encode()
    document = get("htcondor").read(description, ReadContext(policy=Policy.WARN))
    assert next(document.jobs())[0].value("Executable") == program


def test_several_machines_want_the_parallel_universe() -> None:
    text, findings = convert("#!/bin/sh\n#SBATCH -N 2 -n 8 -c 2 --mem-per-cpu=1G\necho\n", "slurm", "htcondor")
    assert text[1:] == ["universe = parallel", "machine_count = 2", "request_cpus = 8", "request_memory = 8GB", "queue"]
    assert {("site-dependent", "NodeCount"), ("approximated", "TaskCount")} <= set(findings)


@pytest.mark.parametrize("words", [["a", "b c", "it's", 'say "hi"', "", "a=b", "\\", "#x"], ["plain", "words"], ["$x"]])
def test_arguments_there_and_back(words: list[str]) -> None:
    job = Job()
    job.set("Executable", "x")
    job.set("Arguments", shlex.join(words))
    text = get("htcondor").write(Document(job), WriteContext())
    assert shlex.split(jobs(text)[0].arguments or "") == words


@settings(max_examples=examples(40))
@given(st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp", "Cs"]), max_size=10),
                max_size=4), st.text("ab '\";=$(){}\\#,", max_size=12))
def test_any_words_and_values_come_back_or_are_told(words: list[str], value: str) -> None:
    from sssjob.document.model import Environment, new_property

    job = Job([new_property("Executable", "x"), new_property("Arguments", shlex.join(words)),
               Environment([new_property("Variable", value, {"name": "A"})])])
    context = WriteContext(Findings("d"), policy=Policy.WARN)
    text = get("htcondor").write(Document(job), context)
    told = {f.subject for f in context.findings}
    back = jobs(text)[0]
    assert shlex.split(back.arguments or "") == words or told & {"arguments", "macro"}
    found = back.environment.variables() if back.environment is not None else {}
    assert found == {"A": value} or told & {"environment", "Variable", "macro"}


LINES = st.lists(st.text("queuifxn =$():\"'\\#+@\t1,.", max_size=24), max_size=8)


@settings(max_examples=examples(53))
@given(LINES)
def test_any_text_is_read_or_refused(lines: list[str]) -> None:
    try:
        document, _ = read("\n".join([*lines, "queue"]))
        first = get("htcondor").write(document, WriteContext(policy=Policy.WARN))
        again, _ = read(first)
    except RejectedError:
        return
    assert get("htcondor").write(again, WriteContext(policy=Policy.WARN)) == first


def test_recognised() -> None:
    from sssjob.translators.recognise import guess

    assert guess(b"Universe = vanilla\nexecutable = a\nQueue 3\n")[0].name == "htcondor"


# --- attempts

@pytest.mark.parametrize(("text", "kept"), [
    ("max_retries = 3", {"Retry": "exit=3 signal=3 total=3"}),
    ("max_retries = 0", {"max_retries": "0"}),
    ("max_retries = 101", {"max_retries": "101"}),
    ("max_retries = 3\nretry_until = 5", {"max_retries": "3", "retry_until": "5"}),
    ("max_retries = 3\nsuccess_exit_code = 5", {"max_retries": "3", "success_exit_code": "5"}),
])
def test_retries_by_count_alone_are_every_systems(text: str, kept: dict[str, str]) -> None:
    (job,) = jobs(f"executable = /bin/true\n{text}\nqueue 1\n")
    assert {str(p.get("name")): p.text for p in job.all("Extension") if p.get("name") in (*kept, "Retry")} == kept
    assert {name: value for name, value in commands(f"executable = /bin/true\n{text}\nqueue 1\n").items()
            if name in ("max_retries", "retry_until", "success_exit_code")} == dict(
                line.split(" = ") for line in text.splitlines())


@pytest.mark.parametrize("policy", [
    "exit=3", "exit=3 signal=2 total=3", "exit=3 signal=3", "exit(2)=3 signal=3 total=3",
    "timeout=3:Duration*2 total=3", "exit=3:Memory+1GB signal=3 total=3", "no policy"])
def test_other_retries_have_no_command(policy: str) -> None:
    text = ("<Job><Executable>/bin/true</Executable>"
            f"<Extension type='Scheduler' name='Retry'>{policy}</Extension></Job>")
    lines, findings = convert(text, "sss", "htcondor")
    assert not [line for line in lines if line.startswith("max_retries")]
    assert ("dropped", "Extension Retry") in findings


def test_several_queue_statements_are_told() -> None:
    """The bindings of HTCondor see the first of them alone (seen with 23.0)."""
    document = get("htcondor").read(b"executable = /bin/true\nqueue state in (AL AK WI)\n", ReadContext())
    context = WriteContext(Findings("job"))
    assert get("htcondor").write(document, context).count("queue") == 3
    assert [f.message for f in context.findings] == [
        "3 queue statements, one for each job: condor_submit takes them all, Submit of the Python bindings the first "
        "alone"]


@pytest.mark.parametrize(("source", "directive", "line", "told"), [
    ("lsf", "#BSUB -cwd /scratch/$USER/run", "initialdir = /scratch/$ENV(USER)/run", 1),
    ("sge", "#$ -wd /s/$HOME/$WORK", "initialdir = /s/$ENV(HOME)/$ENV(WORK)", 1),
    ("sge", "#$ -wd /s/$USER/$JOB_NAME", "initialdir = /s/$USER/$JOB_NAME", 0),         # a name of the job's own
    ("slurm", "#SBATCH -D /scratch/$USER/run", "initialdir = /scratch/$USER/run", 0)])     # taken as it stands
def test_a_directory_with_variables_that_the_source_fills_in(source: str, directive: str, line: str, told: int) -> None:
    document = get(source).read(f"#!/bin/sh\n{directive}\n./a\n".encode(), ReadContext())
    context = WriteContext(Findings("s"), policy=Policy.WARN)
    assert line in str(get("htcondor").write(document, context)).splitlines()
    assert sum("condor_submit fills in the variables" in f.message for f in context.findings) == told
    assert any("takes $JOB_NAME as it stands" in f.message for f in context.findings) == ("JOB_NAME" in directive)


def test_macros_in_paths_that_no_other_manager_replaces_are_told() -> None:
    document = get("htcondor").read(b"executable = a\ninitialdir = /s/$ENV(USER)\noutput = $ENV(HOME)/o.$(Process)\n"
                                    b"error = e.$(Cluster)\nqueue\n", ReadContext())
    assert [f.message for f in document.findings or () if f.rule == "SSS504"] == [
        f"{option}: has macros that only HTCondor replaces; they stay as text"
        for option in ("initialdir /s/$ENV(USER)", "output $ENV(HOME)/o.$(Process)")]


def test_macros_that_functions_work_out_stay_defined() -> None:
    """Without its definition HTCondor takes the name in ``$INT(n)`` for a text, and stops."""
    text = ("executable = a\narguments = $(Process) $INT(n) $CHOICE(Process,list) $(x)\nn = $(Process) * 2 + $(one)\n"
            "one = 1\nx = 7\nlist = p, q\nqueue 2\n")
    assert there_and_back(text) == ("executable = a\narguments = $(Process) $INT(n) $CHOICE(Process,list) 7\n"
                                    "n = $(Process) * 2 + 1\nlist = p, q\nqueue 2\n")


def test_a_macro_of_a_function_that_leads_back_to_itself_is_refused() -> None:
    with pytest.raises(RejectedError):
        read("executable = a\narguments = $CHOICE(Process,x)\nx = $(y)\ny = $(x)\nqueue\n", Policy.REJECT)


@pytest.mark.parametrize(("target", "words"), [
    ("slurm", '"$((${SLURM_ARRAY_TASK_ID} * 2 + 1))" i"$(printf %03d ${SLURM_ARRAY_TASK_ID})"'),
    ("sge", '"$(($((SGE_TASK_ID - 1)) * 2 + 1))" i"$(printf %03d $((SGE_TASK_ID - 1)))"'),
])
def test_whole_numbers_that_are_made_of_the_number_of_a_job_are_computed_by_the_shell(target: str, words: str) -> None:
    text = "executable = /bin/a\narguments = $INT(n) i$INT(Process,%03d)\nn = $(Process) * 2 + 1\nqueue 3\n"
    lines, findings = convert(text, "htcondor", target)
    assert lines[-1] == f"/bin/a {words}"
    assert not [about for about in findings if "Arguments" in about[1] and about[0] != "approximated"]


@pytest.mark.parametrize("statement", ["queue f matching *.in", "queue f from list"])
def test_functions_of_items_that_are_not_read_stay(statement: str) -> None:
    text = ("executable = a\noutput = $Fn(f).o\ntransfer_output_files = r\ntransfer_output_remaps = \"r=d/$(f)\"\n"
            f"{statement}\n")
    assert there_and_back(text) == text


def test_commands_of_newer_releases_stay() -> None:
    text = "executable = a\nretry_request_memory = 4GB\nqueue\n"
    assert there_and_back(text) == text


def test_arrays_with_one_executable_are_one_cluster() -> None:
    text = "executable = a\noutput = $(x).$(Process)\nqueue 2 x in (a b)\n"
    assert there_and_back(text) == ("executable = a\noutput = a.$(Process)\nqueue 2\n\n"
                                    "executable = a\noutput = b.$(Process)\nqueue 2\n")
    assert [[p.text for p in job.properties() if p.attributes.get("name") == "Array"]
            for job in jobs(there_and_back(text))] == [["0-1"], ["2-3"]]


@pytest.mark.parametrize(("target", "exports"), [
    ("slurm", ['export IDX="${SLURM_ARRAY_TASK_ID}"',
               'export TAG=r"${SLURM_ARRAY_JOB_ID}"_"$((${SLURM_ARRAY_TASK_ID} + 1))"']),
    ("lsf", ['export IDX="$((LSB_JOBINDEX - 1))"', 'export TAG=r"${LSB_JOBID}"_"$(($((LSB_JOBINDEX - 1)) + 1))"'])])
def test_variables_that_depend_on_the_job_are_exported_by_the_script(target: str, exports: list[str]) -> None:
    text = ("executable = /bin/a\nenvironment = \"IDX=$(Process) TAG=r$(Cluster)_$INT(n) P=/a\"\n"
            "n = $(Process) + 1\nqueue 3\n")
    lines, _ = convert(text, "htcondor", target)
    assert [line for line in lines if line.startswith("export ")] == exports
    assert there_and_back(text) == text


@pytest.mark.parametrize(("lines", "duration", "kept"), [
    ("allowed_job_duration = 900\n", 900, ["limit"]),
    ("allowed_execute_duration = 600\nallowed_job_duration = 900\n", 600, ["allowed_job_duration"]),
    ("allowed_job_duration = 15 * 60\n", None, ["allowed_job_duration"])])
def test_the_limit_of_a_job_and_its_transfers_is_its_duration_where_it_has_no_other(
        lines: str, duration: int | None, kept: list[str]) -> None:
    """It was kept for HTCondor alone, so that the job had no limit elsewhere."""
    text = f"executable = /bin/a\n{lines}queue\n"
    document = get("htcondor").read(text.encode(), ReadContext())
    job, _ = next(iter(document.jobs()))
    requested = next(job.containers("Requested"), None)
    assert (None if requested is None else requested.value("Duration")) == duration
    assert [e.attributes["name"] for e in job.all("Extension") if e.attributes.get("type") == "htcondor"] == kept
    assert get("htcondor").write(document, WriteContext()) == text


def test_a_job_of_the_parallel_universe_starts_on_every_machine() -> None:
    text = "universe = parallel\nexecutable = a\nmachine_count = 3\nrequest_cpus = 4\nrequest_memory = 8\n" \
           "batch_name = mpi-$(Cluster).x\noutput = o.$(NODE)\nqueue\n"
    lines, findings = convert(text, "htcondor", "slurm")
    assert lines == ["#!/bin/sh", "#SBATCH --job-name=mpi.x", "#SBATCH --nodes=3", "#SBATCH --ntasks=3",
                     "#SBATCH --cpus-per-task=4", "#SBATCH --mem=8M", "#SBATCH --output=o.%n", "srun -n 3 ./a"]
    assert ("site-dependent", "output") not in findings
    assert there_and_back(text).splitlines() == [
        "batch_name = mpi-$(Cluster).x", "executable = a", "output = o.$(Node)", "universe = parallel",
        "machine_count = 3", "request_cpus = 4", "request_memory = 8MB", "queue"]


def test_what_only_htcondor_can_take_is_told_once() -> None:
    text = 'executable = a\ntransfer_input_files = lib/\ntransfer_output_files = ""\n' \
           "request_cpus = TARGET.Cpus\nqueue\n"
    findings = Findings("d")
    document = get("htcondor").read(text.encode(), ReadContext("d", findings, policy=Policy.WARN))
    get("slurm").write(document, WriteContext(findings, policy=Policy.WARN))
    assert [(f.rule, f.message) for f in findings if f.line] == [
        ("SSS504", "transfer_input_files lib/: folders or macros among the files; kept for HTCondor alone"),
        ("SSS502", 'transfer_output_files "": no file is transferred'),
        ("SSS504", "request_cpus TARGET.Cpus: an expression that only HTCondor can compute; kept for HTCondor alone")]
