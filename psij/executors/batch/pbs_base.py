"""What PBS Pro, OpenPBS and Torque share: ids, directives of qsub, the forms of qstat's answers, states, ends.

qstat is asked for all jobs at once: it holds a dialogue with the server for each id it is given. Where it has a form
for programs (JSON, XML) that is asked first; an answer in it that cannot be read is followed by the plain ``qstat -f``,
because PBS Pro up to 20 writes JSON that is none for some variables (openpbs issues 1255 and 2541, pull request 2049)
and not every Torque knows ``-x``. Times are asked for in UTC: qstat prints them without a zone.

Seen with OpenPBS 23.06 and the Torque commands of Slurm 22.05. Sources: qsub(1B), qstat(1B), job.h of OpenPBS,
pbs_job.h of Torque.
"""

from __future__ import annotations

import logging
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from psij.exceptions import InvalidJobException
from psij.executors.batch._answers import array_id, by_tag, readable, standing
from psij.executors.batch._changes import Changes
from psij.executors.batch._cluster import Cluster, first
from psij.executors.batch._followed import LastAnswer
from psij.executors.batch._identity import Claim
from psij.executors.batch._options import (
    custom_directives,
    in_reservation,
    job_name,
    limit_text,
    local_time,
    member_directives,
    time_limit,
)
from psij.executors.batch._terms import Orders
from psij.executors.batch.batch_scheduler_executor import (
    BatchSchedulerExecutorConfig,
    check_status_exit_code,
)
from psij.executors.batch.lrm import LrmExecutor, Row
from psij.job import Job
from psij.job_executor_config import JobExecutorConfig
from psij.job_spec import JobSpec
from psij.job_state import JobState
from psij.job_status import JobStatus
from psij.resource_spec import ResourceSpecV1
from sssjob.lrm.answers import json_answer
from sssjob.lrm.names import NameRule
from sssjob.lrm.pbs import STATES, ended, moment, recorded, waits_for
from sssjob.lrm.states import NativeState
from sssjob.lrm.usage import present
from sssjob.templates.quoting import Directive, pbs

__all__ = ["GenericPBSJobExecutor", "PBSExecutorConfig", "fields_of"]

_log = logging.getLogger("psij")

UTC = ["env", "TZ=UTC0"]
UNKNOWN_ID = 153            # exit code: an id is not known; the others are answered
_USAGE = 2
_LONGEST_NAME = 236         # bytes, PBS_MAXJOBNAME
_TAG = "SSSJOB_ID"
_TAGGED = re.compile(rf"(?:^|,){_TAG}=([^,]*)")

# Variables of qsub that would change how the script is read, and our tag where this is itself a job of psij.
_UNSET = ("PBS_DPREFIX", _TAG)
_WITH_SUBSTATE = {word[0] for word in STATES if " " in word}

# Resources of a host in -l: qsub takes none of them beside select and place ("Requesting Resources", qsub(1B)).
_SIZES = re.compile(r"\b(?:select|place|nodes|neednodes|nodect|procs|ncpus|mpiprocs|ompthreads|n?gpus|naccelerators|"
                    r"p?v?mem|arch|host|vnode|feature|size)=")
_REFUSED = {
    **dict.fromkeys(("J", "t"), "a PSI/J job is one job"), "I": "the job would not run in the background",
    "X": "the job would not run in the background", "f": "it would hold up submit()", "z": "it hides the job id",
    **dict.fromkeys(("o", "j", "k", "R"), "use stdout_path and stderr_path"), "e": "use stderr_path",
    "S": "the script is one of bash", "C": "the script has its own", "v": "use environment",
    "V": "use inherit_environment", "F": "use arguments",
    **dict.fromkeys(("d", "w", "D"), "use directory")}

# Attributes of jobs for which qsub has a letter: what is asked for by -W is the same ("Job Attributes",
# pbs_job_attributes(7B)). In small letters, for in any they are the same.
_LETTERS = {
    "account_name": "A", "array_indices_submitted": "J", "checkpoint": "c", "error_path": "e", "execution_time": "a",
    "hold_types": "h", "interactive": "I", "job_name": "N", "join_path": "j", "keep_files": "k", "mail_points": "m",
    "mail_users": "M", "output_path": "o", "priority": "p", "queue": "q", "remove_files": "R", "rerunable": "r",
    "resource_list": "l", "shell_path_list": "S", "user_list": "u", "variable_list": "v"}
_ASKED = re.compile(r"(?:^|,)\s*([A-Za-z_]\w*)\s*=")     # the names in a value of -W
_LONG = re.compile(r"[A-Za-z_][A-Za-z0-9_.]+")         # names of attributes; options have one letter

_BLOCK = re.compile(r"^Job Id:[ \t]+", re.MULTILINE)
# Behind notices of the site.
_STRUCTURED = re.compile(r"\A(?:(?!Job Id:|[ \t]*(?:\{|<[\w?])).*\n)*[ \t]*(?=\{|<[\w?])")
_SERVER_TABLE = re.compile(r"^Server\s+Max\s+Tot\s+Que\s+Run\s.*\n", re.MULTILINE)
_NO_JOBS = re.compile(r"^\S+\s+\d+\s+\d+(?:\s+0){6}\s+[A-Z]\w+\s*$", re.MULTILINE)    # nor any that others have
_STATE = re.compile(r"^[ \t]+job_state = (\w)", re.MULTILINE)
_SUBSTATE = re.compile(r"^[ \t]+substate = (\d+)", re.MULTILINE)
_FIELD = re.compile(r"^(?:    |\t)([A-Za-z_][\w.]*) = (.*)$", re.MULTILINE)
_ELEMENT_ID = re.compile(r"\d+\[\d+\]", re.ASCII)
_COMMENT = re.compile(r"^[ \t]+comment = (.*(?:\n\t(?![A-Za-z_][\w.]* = ).*)*)", re.MULTILINE)
_WRAP = re.compile(r"\n\t(?![A-Za-z_][\w.]* = )")       # a long value goes on in lines that begin with a tab


class PBSExecutorConfig(BatchSchedulerExecutorConfig):
    """Settings of the PBS executors."""


class GenericPBSJobExecutor(LrmExecutor):
    """The base of ``pbs`` and ``pbs_classic``."""

    _TEMPLATE = "pbs.sh.j2"
    _PREFIX = "pbs"
    _CONFIG = PBSExecutorConfig
    #: Many servers allow qrerun to operators only, and never for jobs that are not rerunable (``-r n``); suspend and
    #: resume are for operators everywhere.
    _ORDERS = Orders("qdel {}", re.compile("has finished|unknown job|invalid for state", re.IGNORECASE),
                     hold="qhold {}", release="qrls {}", rerun="qrerun {}",
                     suspend="qsig -s suspend {}", resume="qsig -s resume {}", signal="qsig -s SIG{signal} {}",
                     held={"h": True})
    #: qalter(1B), qmove(1B). Users may only lower the limit of a job that runs.
    _CHANGES = Changes("qalter {changes} {id}", {option: f"-{option}" for option in ("A", "N", "l", "p")},
                       apart={"q": "qmove {value} {id}"}, each=frozenset("l"), live=frozenset(("l=walltime",)))
    _CHOOSING = ("PBS_CONF_FILE", "PBS_SERVER", "PBS_DEFAULT")
    _NEEDS_NODES = True
    _WRITTEN = staticmethod(pbs)
    _STATES, _STATE_KIND = STATES, "PBS's job state"
    _FORMS: ClassVar[tuple[list[str], ...]]         # options of qstat, tried in this order
    _NAMES: ClassVar[NameRule]                      # what may be a job's name
    _DEFAULT_NAME: ClassVar[int]                    # bytes of a name made of the executable's
    _COLUMN: ClassVar[int]          # of the tables in sssjob.lrm.pbs: 0 of Torque, 1 of the others

    def __init__(self, url: str | None = None, config: JobExecutorConfig | None = None) -> None:
        super().__init__(url, config)
        self._form = 0

    # --- submitting ------------------------------------------------------------------------------------------------

    def get_submit_command(self, job: Job, submit_file_path: Path) -> list[str]:
        """qsub."""
        unset = [word for name in _UNSET if name in self.host.environ for word in ("-u", name)]
        return [*(["env", *unset] if unset else []), "qsub", str(submit_file_path)]

    def _lookup_commands(self, tags: Sequence[str]) -> list[list[str]]:
        """The tag is a variable of the job."""
        return [[*UTC, "qstat", "-f"]]

    def _parse_lookup(self, out: str) -> dict[str, list[str]]:
        if out.strip() and _BLOCK.search(out) is None:
            self._check_silence(out)
        return by_tag(((tag, native_id) for native_id, fields in jobs(out) if self._is_ours(fields)
                       for tag in _TAGGED.findall(fields.get("Variable_List", ""))), _sequence)

    def _is_ours(self, fields: Mapping[str, str]) -> bool:
        """Whether a job is one of the user's: others may have copied our tag."""
        return fields.get("Job_Owner", "").partition("@")[0] == self._current_user()

    def _directives(self, job: Job, spec: JobSpec) -> list[Directive]:
        directives = [self._name_directive(spec), Directive("S", "/bin/bash"), Directive("o", "/dev/null"),
                      Directive("j", "oe"), Directive("v", f"{_TAG}={job.id}")]
        if spec.inherit_environment:
            directives.append(Directive("V"))
        directives += member_directives(spec, (("q", "queue_name"), ("A", "account")))
        if spec.attributes is not None and spec.attributes.reservation_id is not None:
            directives = in_reservation(directives, self._reservation(spec.attributes.reservation_id))
        if (limit := time_limit(spec)) is not None:
            directives.append(Directive("l", f"walltime={limit_text(limit)}", "attributes.duration"))
        asked = self._requested(spec)
        if asked is not None:
            directives += self._resource_directives(asked)
        custom = [_attribute(directive) for directive in custom_directives(spec, self._PREFIX, _REFUSED)]
        for directive in custom:
            _check_custom(directive, directives)
        return [directive for directive in directives if directive.field != "executable"
                or all(other.option != "N" for other in custom)
                ] + custom

    def _is_size(self, attribute: str, value: str) -> bool:
        return attribute.lower() == "pbs.l" and _SIZES.search(value) is not None

    def _cluster_command(self) -> list[str]:
        return ["qstat", "-B", "-f"]

    def _cluster(self, out: str) -> Cluster | None:
        """The server, by name and host."""
        name = first(r"^Server: *(\S+)", out)
        return Cluster(name, first(r"^\s+server_host = (\S+)", out)) if name else None

    def fit_name(self, name: str) -> str:
        """Without what PBS does not take in a name."""
        return self._NAMES.fitted(name)

    def _name_directive(self, spec: JobSpec) -> Directive:
        name = job_name(spec, _LONGEST_NAME)
        value = name.value or ""
        if name.field == "executable":
            return Directive("N", _fitted(value)[:self._DEFAULT_NAME], name.field)
        if self._NAMES.fault(value):
            raise InvalidJobException(f"name {value!r} has characters, or none, that PBS does not take in a job's name")
        return Directive("N", value, name.field)

    def dependency_attributes(self, after: Mapping[str, Sequence[str]]) -> dict[str, object] | None:
        """``-W depend=``, which knows whole arrays and no element of one."""
        if any(_ELEMENT_ID.match(native_id) for ids in after.values() for native_id in ids):
            return None
        words = [f"after{kind}:{':'.join(ids)}" for kind, ids in after.items()]
        return {f"{self._PREFIX}.W": f"depend={','.join(words)}"}

    def begin_attributes(self, at: float) -> dict[str, object] | None:
        """``-a [[[[CC]YY]MM]DD]hhmm[.SS]``, by local time."""
        begin = local_time(at, "%Y%m%d%H%M.%S", self.host)
        return None if begin is None else {f"{self._PREFIX}.a": begin}

    @abstractmethod
    def _reservation(self, reservation_id: str) -> Directive:
        """The option for a reservation."""

    @abstractmethod
    def _resource_directives(self, asked: ResourceSpecV1) -> list[Directive]:
        """The options for resources."""

    # --- states ----------------------------------------------------------------------------------------------------

    def get_status_command(self, native_ids: Iterable[str]) -> list[str]:
        """qstat for all jobs; with the elements of arrays where one is asked for."""
        return self._status_command(any(map(_ELEMENT_ID.match, native_ids)))

    def _status_command(self, elements: bool) -> list[str]:
        return [*UTC, "qstat", *(["-t"] if elements else []), *self._FORMS[self._form]]

    def _ask_queue(self, command: list[str], last_answer: LastAnswer) -> Mapping[str, JobStatus | None]:
        """Ask; once more in the plain form, and in that from then on, when the answer cannot be read."""
        try:
            return self._seen(*self._ask(command), last_answer)
        except ValueError as e:
            if self._form == len(self._FORMS) - 1:
                raise
            self._form += 1
            try:
                seen = self._seen(*self._ask(self._status_command("-t" in command)), last_answer)
            except Exception:
                self._form -= 1
                raise
            _log.info("%s: %s; plain qstat -f is used from now on", self.name, e)
            return seen

    def _seen(self, exit_code: int, out: str, last_answer: LastAnswer) -> Mapping[str, JobStatus | None]:
        """Statuses. Where no jobs are no words, the server is asked whether it is there."""
        if exit_code == 0 and not _has_jobs(out):
            if "json" in self._FORMS[self._form]:
                raise ValueError("qstat said nothing")
            self._check_silence(out)
            return {}
        return self._changed_rows(exit_code, out, last_answer)

    def _check_silence(self, out: str) -> None:
        """Ask the server whether an answer of qstat without a job says that there is none. Raises an exception where it
        does not."""
        code, server = self._ask(["qstat", "-B"])
        if out.strip() and not (code == 0 and _says_of_no_jobs(out, server)):
            raise ValueError(f"qstat gave no jobs: {out[:200]!r}")
        if code != _USAGE and not server.strip():       # the commands of Slurm do not know the option
            raise ValueError("qstat says nothing, and nothing about the server either")
        check_status_exit_code("qstat", 0 if code == _USAGE else code, server)

    def _rows(self, exit_code: int, out: str) -> Iterator[Row]:
        """Elements of an array that is held wait in state Q (seen with 23.06): they are held with it."""
        held_arrays: set[str] = set()
        for native_id, state, row in self._listed(exit_code, out):
            if state == "H":
                held_arrays.add(native_id)
            yield native_id, "H" if state == "Q" and array_id(native_id) in held_arrays else state, row

    def _listed(self, exit_code: int, out: str) -> Iterator[Row]:
        _answered(exit_code, out)
        if (begin := _STRUCTURED.match(out)) is not None:
            for native_id, fields in _structured(out[begin.end():]):
                letter = str(fields.get("job_state", ""))
                yield native_id, _native(letter, str(fields.get("substate", ""))), fields
            return
        for native_id, block in _blocks(out):
            state = _STATE.search(block)
            if state is not None:
                substate = _SUBSTATE.search(block) if state[1] in _WITH_SUBSTATE else None
                yield native_id, _native(state[1], substate[1] if substate else ""), block

    def _stands(self, state: str, row: Any) -> str:
        if not isinstance(row, str):
            return f"{state} {row.get('comment', '')}"
        comment = _COMMENT.search(row)
        return state if comment is None else f"{state} {comment[1]}"

    def _claim(self, row: Any) -> Claim:
        """By the variables of the job, its owner and the time of its creation."""
        fields = fields_of(row)
        tag = fields.get(f"Variable_List.{_TAG}")
        if tag is None and (variables := fields.get("Variable_List")) is not None:
            tag = next((match[1] for match in _TAGGED.finditer(variables)), "")
        elif tag is None and any(name.startswith("Variable_List.") for name in fields):
            tag = ""
        return Claim(None if tag is None else frozenset(filter(None, [tag])),
                     fields.get("Job_Owner", "").partition("@")[0] or None, fields.get("Job_Name"),
                     moment(fields, "submit", self._COLUMN))

    def _told_status(self, native: NativeState, common: JobState, row: Any) -> JobStatus | None:
        fields = fields_of(row)
        job, waits = recorded(fields, self._COLUMN), common is JobState.QUEUED
        metadata = {"native_state": native.word} | job.facts(began=not waits, over=common.final)
        metadata |= standing(native, common, waits_for(fields.get("comment")) if waits else None)
        if waits:
            comment = fields.get("comment")
            reason = comment if not comment or waits_for(comment) else None
            return JobStatus(common, time=job.submit_time, message=reason, metadata=metadata)
        if not common.final:
            return JobStatus(common, time=job.start_time, metadata=metadata)
        code = job.exit_code
        end, reason, exit_code = self._outcome(code, job.ran, fields.get("substate"))
        metadata |= present({"reason": reason, "signal": job.signal if reason == "signal" else None})
        message = f"PBS says exit status {code}" if code is not None and code < 0 else None
        return JobStatus(end, time=job.end_time, message=message, exit_code=exit_code, metadata=metadata)

    def _outcome(self, code: int | None, ran: bool, substate: str | None) -> tuple[JobState, str | None, int | None]:
        """State, reason and exit code of an end."""
        if code is None:
            return JobState.FAILED, "unknown-exit" if ran else "launch", None
        exit_code, signal, reason = ended(code, self._COLUMN)
        if exit_code is None:
            reason = reason or ("launch" if code < 0 else "unknown-exit")
            return JobState.FAILED, reason, None if signal is None else 128 + signal
        return (JobState.FAILED if exit_code else JobState.COMPLETED), None, exit_code

    # --- the rest --------------------------------------------------------------------------------------------------



def _has_jobs(out: str) -> bool:
    """Whether there are jobs in an answer of qstat, or at least the frame around them."""
    return _STRUCTURED.match(out) is not None or _BLOCK.search(out) is not None


def _says_of_no_jobs(out: str, server: str) -> bool:
    """Whether words without jobs are no error and no piece of a job: the table of the server counts none that have not
    ended, or each line is one that a site's wrapper prints before that table too. server: what ``qstat -B`` said."""
    table = _SERVER_TABLE.search(server)
    if table is None:
        return False
    notices = server[:table.start()].splitlines()
    return all(line in notices for line in out.splitlines() if line.strip()) or (
        _NO_JOBS.search(server, table.end()) is not None)


def _answered(exit_code: int, out: str) -> None:
    """Raise an exception when qstat did not answer: ValueError when it does not know the form."""
    if exit_code == _USAGE and re.search(r"usage|option", out, re.IGNORECASE):
        raise ValueError(f"qstat does not know the form: {out.strip()[:200]}")
    if exit_code != UNKNOWN_ID:
        check_status_exit_code("qstat", exit_code, out)
    if out.strip() and not (_has_jobs(out) or exit_code == UNKNOWN_ID):
        raise ValueError(f"qstat gave no jobs: {out[:200]!r}")


def jobs(out: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Ids and fields in the plain form."""
    return ((native_id, fields_of(block)) for native_id, block in _blocks(out))


def _blocks(out: str) -> Iterator[tuple[str, str]]:
    """Ids and texts of the jobs in the plain form. Raises ValueError where the last is cut off, without the empty line
    that is behind each.

    Of two jobs with one id neither counts: a variable of a job can hold anything, and looks like a job then.
    """
    blocks = [block.partition("\n") for block in _BLOCK.split(out)[1:]]
    if blocks and not out.endswith("\n\n") and "\nqstat: " not in blocks[-1][2]:
        raise ValueError(f"the answer of qstat is cut off in job {blocks[-1][0].strip()[:80]}")
    ids = [native_id.strip() for native_id, _, _ in blocks]
    times = Counter(ids)
    return ((native_id, block[2]) for native_id, block in zip(ids, blocks, strict=True) if times[native_id] == 1)


def _structured(out: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Ids and fields in JSON or XML. Raises ValueError when it is neither."""
    jobs = _xml(out) if out[0] == "<" else _json(out)
    yield from readable("qstat", jobs, lambda job: job[0] and isinstance(job[1], dict))


def _json(out: str) -> Iterable[tuple[str, Mapping[str, Any]]]:
    answer = json_answer("qstat", out)
    if "pbs_server" not in answer:
        raise ValueError(f"qstat gave JSON without a server: {out[:200]!r}")
    if "Jobs" not in answer and any(isinstance(value, dict) for value in answer.values()):
        raise ValueError(f"qstat gave JSON of another form: {out[:200]!r}")
    jobs: Mapping[str, Mapping[str, Any]] = answer.get("Jobs", {})
    return jobs.items()


def _xml(out: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True, recover=False, encoding="utf-8")
    try:
        root = etree.fromstring(out.encode("utf-8", "surrogateescape"), parser)
    except etree.XMLSyntaxError as e:
        raise ValueError(f"qstat gave no XML: {e}") from e
    if root.tag != "Data":
        raise ValueError(f"qstat gave {root.tag}")
    for element in root.iter("Job"):
        fields = {str(child.tag): {str(part.tag): part.text or "" for part in child} if len(child) else child.text or ""
                  for child in element}
        yield str(fields.get("Job_Id") or ""), fields


def fields_of(row: Any) -> Mapping[str, str]:
    """The fields of a row in any form, by their names in the plain one; of two with one name the first."""
    fields: dict[str, str] = {}
    if isinstance(row, str):
        for name, value in _FIELD.findall(_WRAP.sub("", row)):
            fields.setdefault(name, value)
        return fields
    for name, value in row.items():
        if isinstance(value, dict):
            fields |= {f"{name}.{part}": str(text) for part, text in value.items()}
        else:
            fields[name] = str(value)
    return fields


def _native(letter: str, substate: str) -> str:
    both = f"{letter} {substate}"
    return both if both in STATES else letter


def _sequence(native_id: str) -> int:
    return int(re.match(r"\d*", native_id)[0] or 0)      # type: ignore[index]


def _attribute(custom: Directive) -> Directive:
    """What qsub has no letter for is an attribute of the job: ``-W name=value`` (qsub(1B), additional_attributes).

    Raises InvalidJobException for those that cannot be given by their letter."""
    if not _LONG.fullmatch(custom.option):
        return custom
    letter = _LETTERS.get(custom.option.lower())
    if letter in _REFUSED:
        raise InvalidJobException(f"{custom.field} cannot be used: {_REFUSED[letter]}")
    if letter is not None:
        return Directive(letter, custom.value, custom.field)
    return Directive("W", f"{custom.option}={'true' if custom.value is None else custom.value}", custom.field)


def _check_custom(custom: Directive, others: list[Directive]) -> None:
    """Refuse an option that says what another member of the job says too, and one that holds up qsub."""
    if custom.option == "W" and re.search(r"(?:^|,)\s*block\s*=", custom.value or ""):
        raise InvalidJobException(f"{custom.field} cannot be used: block would hold up submit(); use Job.wait()")
    for name in _ASKED.findall(custom.value or "") if custom.option == "W" else ():
        if (letter := _LETTERS.get(name.lower())) is not None:
            raise InvalidJobException(f"{custom.field} cannot be used for {name}: "
                                      f"{_REFUSED.get(letter, f'write pbs.{letter}')}")
    for other in others:
        if custom.option == other.option == "l":
            twice = _resources(custom.value) & _resources(other.value)
            if twice:
                raise InvalidJobException(f"{custom.field} and {other.field} both say {', '.join(sorted(twice))}")
        elif custom.option == other.option != "W" and other.field != "executable":
            raise InvalidJobException(f"{custom.field} and {other.field} say the same")


def _resources(value: str | None) -> set[str]:
    return {part.partition("=")[0].strip() for part in (value or "").split(",")}


def _fitted(name: str) -> str:
    fit = re.sub(r"[^A-Za-z0-9_+-]", "_", name)
    return fit if fit[:1].isalpha() else f"job_{fit}"
