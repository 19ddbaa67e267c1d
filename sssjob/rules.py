"""The rules behind findings: one row each, with a stable id. ``sssjob explain SSS123`` and the rules page of the
reference print them. Numbers: 1xx reading, 2xx values, 3xx structure, 4xx meaning, 5xx translation, 6xx running."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from sssjob.consequences import Column

__all__ = ["RULES", "Kind", "Rule"]

Kind = Literal[
    "unknown", "dropped", "approximated", "site-dependent", "invented", "contradictory", "repaired", "dead",
    "template", "refused", "limit", "invalid", "exact",
]


@dataclass(frozen=True, slots=True)
class Rule:
    """id, kind, what it means for the job (``sssjob/consequences.py``; empty: it is about no job that is to run), a
    title of a few words, and a page: what it means, why, what to do."""

    id: str
    kind: Kind
    consequence: Column
    title: str
    text: str

    @property
    def governed(self) -> bool:
        """Whether awarenessPolicy decides what happens."""
        return self.kind in ("unknown", "dropped")

    @property
    def eased(self) -> bool:
        """Whether ``--policy warn`` and ``ignore`` make a warning of the error: of what a script's own submit command
        refuses, for the rest of the script can be read."""
        return self.id == "SSS505"

    @property
    def severity(self) -> Literal["error", "warning", "info"]:
        """The severity without a policy."""
        if self.kind in ("invalid", "limit", "refused") or self.governed:
            return "error"
        return "info" if self.kind == "exact" else "warning"


#: Rules about what a job asks for, about a script, or about what becomes of it, with what they mean for the job.
_OF_JOBS: Final[tuple[tuple[str, Kind, Column, str, str], ...]] = (
    # what a job asks for
    ("SSS304", "contradictory", "costs", "more than one where one may stand",
     "The specification allows one. All are kept; the first is used, containers are merged in order."),
    ("SSS414", "contradictory", "costs", "task parameters contradict each other",
     "Processors, NodeCount, TaskCount, TaskDistribution and the names of nodes cannot all hold. The specification "
     "leaves it to those who run the job which of them counts (section 6.4), so it is a warning, at every door: counts "
     "win over TaskDistribution, and each task has at least one processor."),
    ("SSS415", "contradictory", "looks", "variable set twice", "The last value of the variable counts."),
    ("SSS416", "contradictory", "looks", "both streams merged",
     "OutputFile and ErrorFile both say Merge; the second counts."),
    ("SSS419", "contradictory", "costs", "amount in two units",
     "The two amounts are in units that do not measure the same, so they cannot be compared."),
    ("SSS423", "invalid", "breaks", "request that nothing can meet",
     "What one level asks for excludes itself on every way through its alternatives: at least 16 processors and at "
     "most 8, a queue that is asked for and excluded, more nodes than processors, more processors than the nodes hold, "
     "no task, node, processor or second at all, a time to start after the time by which the job must have ended. Of a "
     "job that is over it is only a doubt, for then these are facts."),
    # translation
    ("SSS501", "dropped", "lost", "not expressible in the target",
     "The target has no place for this property, so it is dropped: `--hint` of Slurm has no equal in Torque. Where "
     "the job needs it, write by hand what the target has for the purpose, or put it into the commands of the "
     "script; `--comments` keeps what was dropped as a comment beside the directives. With `--policy reject` "
     "nothing is written, with `--policy ignore` nothing is said."),
    ("SSS502", "approximated", "changed", "approximated in the target",
     "The target says something close to it, and the message says how they differ: `--array=3` of Slurm becomes a "
     "range for PBS Pro, 7 tasks on 2 nodes become two kinds of chunk. Compare the two lines (`convert --diff` "
     "shows them side by side), and change the result where the difference matters."),
    ("SSS503", "invented", "changed", "not in the source",
     "The target needs a value that the source does not state, as Cobalt needs a number of nodes. The message says "
     "which one was taken. State it in the source, or give it with `--set` (`--set '--nodes=2'`)."),
    ("SSS504", "site-dependent", "lost", "depends on the site",
     "Only the site can say what this means: `-M 4000` of LSF is in the unit of LSF_UNIT_FOR_LIMITS, `-pe mpi 8` "
     "of Grid Engine is spread as its parallel environment says, times of day are those of the site's clock. A "
     "site profile (`--site FILE`) answers it once for all scripts; `sssjob survey` lists what is open and drafts "
     "the profile."),
    ("SSS505", "refused", "breaks", "refused by the target",
     "The submit command of the format would refuse this: an option that does not exist, a value out of its form "
     "(`--nodes=many`), a comment behind a directive of PBS Pro. The message says what was expected; mend the "
     "line. With `--policy warn` the rest of the script is read all the same, and the line counts for nothing."),
    ("SSS506", "dead", "looks", "directive that is dead",
     "The line looks like a directive, but the real submit command does not read it: it stands after the first "
     "command, after blanks, or is commented out. It stays in the script as a comment and asks for nothing."),
    ("SSS507", "template", "looks", "placeholder of a template",
     "The value is filled in by a generator (`{{x}}`, `%(x)s`, `$${x}`, `@X@`). It is kept as text."),
    # translation of bodies
    ("SSS510", "approximated", "breaks", "variable without an equal",
     "The script uses a variable of its resource manager for which the target has nothing of the same meaning, or that "
     "cannot be renamed where it stands. The line is kept; the job finds the variable unset. `--body shim` defines "
     "what can be defined."),
    ("SSS511", "approximated", "breaks", "command without an equal",
     "The script calls a command of its resource manager. The line is kept; the command is not there on the target."),
    ("SSS512", "approximated", "looks", "close, but not the same",
     "The target gives a value, or has a command, that is close to what the script used; the message says how they "
     "differ."),
    ("SSS513", "approximated", "breaks", "name in text that is not expanded",
     "A variable stands in single quotes, in a quoted here-document, or in a bare word. It may be meant for another "
     "shell or program, so it is not renamed. `--body shim` defines the variable for those too. A directive in text "
     "that the script writes into another one (`echo \"#SBATCH -n 4\" >> job.sh`) is for that script and stays too."),
    ("SSS514", "approximated", "breaks", "shell not understood",
     "A part of the script does not parse by the grammar of the shell. It is kept as it is."),
    ("SSS515", "approximated", "breaks", "script in another language",
     "The interpreter is no POSIX shell (csh, python, perl, awk ...). The script is kept as it is; names of the "
     "resource manager in it were found as text. For csh the shim sets variables, and commands are kept."),
    ("SSS516", "approximated", "breaks", "script not looked at",
     "The script is larger than a named limit for parsing, holds too many names, or the grammar is not installed. "
     "What was not looked at is kept."),
    ("SSS517", "exact", "looks", "variable or command carried",
     "The target has the same under another name, or the shim defines it; `--explain` shows it."),
    ("SSS518", "approximated", "looks", "edited shim",
     "The lines that sssjob wrote to define the variables of another resource manager were changed by hand since. They "
     "are kept, and new ones come before them where they are needed."),
    # lint: scripts for their own resource manager
    ("SSS519", "dead", "looks", "comment for lint without effect",
     "A comment `# sssjob: ignore=SSS522` keeps lint silent about a rule: at the end of a line on that line, on a line "
     "of its own in the whole script, as `# sssjob: ignore-next=SSS522` on the line below it. This one names no rule, "
     "or one that has nothing to say there. Mend the name, or delete the comment."),
    ("SSS520", "dead", "looks", "directive commented out",
     "A comment line that holds a directive (`##SBATCH`, `# SBATCH`). Nothing reads it; delete it, or take away what "
     "keeps it from being read."),
    ("SSS521", "contradictory", "breaks", "directive below the first command",
     "This resource manager reads directives in the whole file, in here-documents too: a script that writes another "
     "script sends the inner directives along with its own. Move it up, or break its beginning in two."),
    ("SSS522", "contradictory", "breaks", "minutes and seconds",
     "A time of two numbers is minutes and seconds here; in LSF and Cobalt it is hours and minutes. Write three "
     "numbers: `1:30:00` or `0:01:30`."),
    ("SSS523", "approximated", "costs", "no time limit",
     "A limit of zero is no limit; the job may run as long as the queue lets it."),
    ("SSS524", "contradictory", "costs", "option said twice",
     "Two directives give an option different values; the last counts."),
    ("SSS525", "contradictory", "breaks", "option cut short",
     "An option that does not exist is read as one that begins the same. `--tasks` is not `--ntasks`: sbatch takes it "
     "for `--tasks-per-node`. The next release may know more options that begin so, and refuse it."),
    ("SSS526", "dead", "looks", "directives of another resource manager",
     "The lines are comments for the resource manager that this script is for. A script for two systems says "
     "everything twice; an option that only one of them states is missing on the other. Delete lines that are not "
     "needed."),
    ("SSS527", "approximated", "breaks", "DOS line breaks",
     "The submit command takes these line breaks, but the shell does not: it finds a carriage return at the end of "
     "each line. `sed -i 's/\\r$//'` takes them out."),
    ("SSS528", "site-dependent", "breaks", "no #! line",
     "The script does not say which shell runs it; the resource manager, the queue or the user's login shell decides."),
    ("SSS529", "site-dependent", "breaks", "resource that may be misspelled",
     "The name is none of the resources that come with this resource manager, but close to one. A site can define its "
     "own; otherwise the job is refused or waits for ever."),
    ("SSS530", "template", "looks", "script is a template",
     "A generator fills in placeholders before the script is submitted. What they become is not known here."),
    ("SSS531", "dead", "breaks", "variable in a directive",
     "Directives are read by the submit command, not by a shell: a variable in them stays as it is written. Give "
     "the value on the command line, or use the patterns for file names."),
    ("SSS532", "approximated", "looks", "pattern of file names not known",
     "The letter after % is no pattern of this resource manager and becomes part of the name."),
    ("SSS533", "approximated", "breaks", "typographic sign in a directive",
     "A dash or quote that a word processor or a PDF put in place of the plain one. The submit command takes the word "
     "for something else, or refuses it."),
    ("SSS534", "refused", "breaks", "conflict marker",
     "The lines come from a merge that was not finished; the shell fails at them."),
    ("SSS535", "approximated", "breaks", "variable of another resource manager",
     "The resource manager of this script does not set the variable. Scripts for several systems test which of them "
     "they are on; other scripts were moved over and still hold names of the old system. `sssjob convert --body "
     "shim` defines such variables."),
    ("SSS536", "approximated", "breaks", "variable that is not set",
     "The resource manager sets this variable only where the job asks for the amount, and no directive does. Ask for "
     "it, or give a value for the other case: `${SLURM_CPUS_PER_TASK:-1}`."),
    ("SSS537", "site-dependent", "costs", "memory without a unit",
     "LSF takes the number in the unit that LSF_UNIT_FOR_LIMITS says; where the site says nothing that is KB for `-M` "
     "and MB for `rusage[mem=]`. Since 10.1.0.2 a unit may be written: `-M 6GB`. PBS and Grid Engine take a number "
     "without a unit as bytes: `-l mem=384` is no memory at all."),
    ("SSS538", "contradictory", "breaks", "output or directory is elsewhere",
     "A stream does not go where it seems: `-oe` of PBS is a file named `e` (`-j oe` joins); the file of `-e` is "
     "unused where `-j` joins; a name that ends in / is no file for Slurm, Flux and Cobalt; elements of an array of "
     "Slurm that share one name write over each other (`%A_%a`). A directory of Grid Engine that is not absolute "
     "(`-wd sub`) is one below that of its daemon: the job waits in an error."),
    ("SSS539", "contradictory", "breaks", "sign taken as part of a value",
     "`-J=foo` names the job `=foo`: only long options take a =. A # in the value of a command of HTCondor begins no "
     "comment. Grid Engine ends a line at its first #, even inside quotes."),
)
_OTHERS: Final[tuple[tuple[str, Kind, str, str], ...]] = (
    # reading
    ("SSS101", "invalid", "not well-formed XML",
     "The text breaks a rule of XML itself. Profile `liberal` repairs two faults, typographic quotes (SSS104) and "
     "opening tags that stand in place of closing ones (SSS105); everything else has to be mended by hand at the "
     "place that is named."),
    ("SSS102", "invalid", "document type declaration",
     "A DOCTYPE can define entities that read files or grow without end. Job objects need none, so any DOCTYPE, even "
     "an empty one, is refused. Delete it."),
    ("SSS103", "invalid", "encoding not accepted",
     "Accepted are UTF-8, UTF-16 with a byte order mark, US-ASCII, ISO-8859-x and windows-125x, when the text is what "
     "its declaration says. Convert the file to UTF-8."),
    ("SSS104", "repaired", "typographic quotes around an attribute",
     "The published specification prints attribute values between curly quotes, which XML does not know. Profile "
     "`liberal` reads them as straight quotes inside tags; profile `3.1` refuses them."),
    ("SSS105", "repaired", "opening tag in place of a closing one",
     "The published examples close some elements with a second opening tag (`<Memory>2048<Memory>`). Profile "
     "`liberal` reads it as the closing tag; profile `3.1` refuses it."),
    ("SSS106", "repaired", "hint not followed",
     "Inclusions, schema locations and style sheets named inside a document are never fetched or followed."),
    ("SSS107", "invalid", "text between elements",
     "An element that contains other elements holds text of its own beside them. The specification gives such text "
     "no meaning, and dropping it would lose something."),
    ("SSS108", "invalid", "name with look-alike characters",
     "The name of an element or attribute holds characters that look like others or are invisible."),
    ("SSS109", "invalid", "not a job document",
     "The root is none of Job, JobGroup, TaskGroup, Requested, Delivered, nor an SSSRMAP message that holds jobs."),
    ("SSS110", "limit", "limit reached",
     "The input is larger than a named limit allows. The limit protects against input made to exhaust the machine; "
     "it can be raised in the library (`dataclasses.replace(LIMITS, ...)`)."),
    ("SSS111", "invalid", "not valid JSON",
     "The text is not strict JSON: duplicate keys, NaN and numbers of extreme length are refused too."),
    ("SSS112", "invalid", "JSON of another shape",
     "The JSON twin of a job object is an object whose keys are element names; see the JSON Schema."),
    ("SSS113", "repaired", "comment not kept",
     "Comments of XML are no part of the job object: what is written of the document has none. What is to last goes "
     "into Description of a group, or an Extension."),
    # values
    ("SSS201", "invalid", "value is not of its type",
     "The text of an element is not of the type that the specification gives it."),
    ("SSS202", "repaired", "value in another form",
     "The value was understood although its form is not the specification's; it will be written in the strict form."),
    ("SSS203", "unknown", "value not known",
     "An attribute has a value outside the list of the specification. awarenessPolicy decides."),
    ("SSS204", "repaired", "empty element taken as absent",
     "An element without content says nothing; it is taken as not being there and is not written."),
    ("SSS205", "invalid", "amount below its minimum", "Counts and amounts of resources cannot be negative."),
    ("SSS206", "unknown", "unit not known",
     "Units of bytes are those of Appendix A (B, KB, MB ... all binary). An amount in another unit is kept as it is "
     "but cannot be converted or compared."),
    ("SSS207", "invalid", "attribute is not of its type", "The text of an attribute is not of its type."),
    ("SSS208", "invalid", "attribute missing",
     "The specification demands this attribute. Add it to the element that is named."),
    ("SSS209", "repaired", "invisible or control characters",
     "A name or identifier holds characters that do not show; they may make two names look alike."),
    ("SSS210", "invalid", "policy not known",
     "awarenessPolicy is Reject, Warn or Ignore; with another value Reject holds."),
    # structure
    ("SSS301", "unknown", "element not known", "The specification has no such element. awarenessPolicy decides."),
    ("SSS302", "unknown", "attribute not known",
     "The specification has no such attribute at this element. awarenessPolicy decides what happens to it."),
    ("SSS303", "unknown", "element in a place where it may not stand",
     "The element is known, but not in this container. It is treated as an unsupported one."),
    ("SSS305", "invalid", "required element missing", "The specification demands this element here. Add it."),
    ("SSS306", "repaired", "older or foreign name",
     "The element stands under a name of an older release or of another system. It is read as the name of 3.1.0."),
    ("SSS307", "contradictory", "two names for one property",
     "A property stands under its own name and under an alias with another value; its own name wins."),
    ("SSS308", "invalid", "identifier used twice",
     "Identifiers are unique within their scope, but for records of one job: of its runs, which differ in StartTime, "
     "and of a run while it goes on, which differ in State or Delivered/Duration. Give one of the two another Id."),
    ("SSS309", "invalid", "reference and definition in one",
     "An element with only text is a reference, one with elements a definition; both or neither is an error."),
    ("SSS310", "repaired", "name in another case", "XML names are case-sensitive; the specification's is taken."),
    ("SSS311", "invalid", "File missing or ambiguous",
     "`#id` in Executable or InputFile names a File that comes with the document; it is missing or stands there twice. "
     "Of a job that is over a missing one is only a warning: its records may go without the files that it ran."),
    ("SSS312", "exact", "kept as Extension", "A name without an equivalent in 3.1.0 is kept as an Extension."),
    ("SSS313", "contradictory", "alias in a strict profile",
     "The profile knows only the names of release 3.1.0."),
    # meaning
    ("SSS401", "invalid", "brackets do not balance",
     "The `group` attributes of one Requested close more than they open, or leave brackets open."),
    ("SSS402", "repaired", "brackets mended",
     "The published elaborate example closes before it opens. All signs of the block were turned, or brackets were "
     "added at its ends."),
    ("SSS403", "invalid", "preference without a weight", "A preference of zero ranks nothing."),
    ("SSS404", "contradictory", "preferences of both signs",
     "Positive alternatives are taken as required, negative ones as wishes."),
    ("SSS405", "invalid", "order asked of what has none",
     "LT, GT, LE and GE need a value that is a number or a time."),
    ("SSS406", "invalid", "pattern not understood",
     "The pattern is malformed or uses a feature that is not there: patterns are matched in a time that is linear in "
     "the text, because they come from strangers, and look-ahead, look-behind and back references cannot be."),
    ("SSS407", "invalid", "node set malformed", "A Range is a prefix with a bracket list such as `n[01-04,7]`."),
    ("SSS408", "invalid", "geometry malformed", "A Geometry is a list of task numbers a node: `{1,4}{2}{3,5}`."),
    ("SSS409", "approximated", "geometry with a gap", "Task numbers of a Geometry are not contiguous."),
    ("SSS410", "invalid", "dependencies form a cycle",
     "The jobs of a group form a directed acyclic graph; a job that depends on itself can never run."),
    ("SSS411", "site-dependent", "dependency on a job that is not here",
     "The job that is named is not part of the document; only the resource manager can know it."),
    ("SSS412", "contradictory", "times out of order",
     "A job ended before it started or was submitted, or started before submission. Clocks were set, or a time is "
     "wrong."),
    ("SSS413", "contradictory", "code without OnExit", "`code` counts only with condition OnExit."),
    ("SSS417", "invalid", "not the name of a variable", "Names of variables match [A-Za-z_][A-Za-z0-9_]*."),
    ("SSS418", "contradictory", "result in defaults",
     "Defaults hold a property of one job's life (Id, State, times ...); it is not inherited."),
    ("SSS420", "approximated", "state under another word",
     "The State of a job is not one of the five words of the specification (Idle, Hold, Running, Suspended, Completed) "
     "but one that other systems use. It is taken for what the message says; the document keeps its own word."),
    ("SSS421", "contradictory", "delimiter without List",
     "`delimiter` parts only the members of aggregation List, and an empty one parts nothing."),
    ("SSS422", "site-dependent", "event that the specification does not name",
     "NotificationList is a comma list of JobStart, JobEnd, All and None. Only the resource manager can know another "
     "word; events of its own go into Extension type=\"Scheduler\" name=\"MailEvents\"."),
    ("SSS424", "site-dependent", "state that nobody knows",
     "The State is none of the words of the specification (of a job Idle, Hold, Running, Suspended, Completed; of a "
     "group NotQueued, Unstarted, Active, Completed) and no word of another system for one of them. The list is open, "
     "so it is kept; what depends on the state takes the job for one that waits."),
    ("SSS425", "site-dependent", "executable that would have to be fetched",
     "Executable is a URI. The specification allows that, but nothing is fetched here: only the place where the job "
     "runs can know what to do with it."),
    ("SSS426", "invalid", "failure policy or sweep malformed",
     "An Extension of type Scheduler with the name Retry, OnFailure or Sweep is not in the grammar that "
     "docs/failures.md describes. The message names the clause and its column. Nothing runs under a policy that was "
     "understood in part."),
    ("SSS427", "invalid", "no such job",
     "`merge` puts what is known of a returned job into the job of the same Id. A job without Id, or with one that the "
     "group does not have or has several times, is not put anywhere."),
    ("SSS428", "invalid", "patch does not fit",
     "An edit of a patch names a place, what stands there, and what stands there afterwards. In this document "
     "something else stands there, so nothing of the patch is applied. The message names the edit and what was "
     "expected."),
    # records
    ("SSS540", "invalid", "record rejected",
     "This record of an accounting log is not taken; the message begins with the reason, which the counts name too. It "
     "concerns one record, so the others go on; `--strict` makes it exit status 1."),
    ("SSS541", "contradictory", "evidence of a record disagrees",
     "Several fields of a record tell the same amount and differ: counts at all, times by more than 2 s and 1 %. The "
     "first one named is taken. docs/records.md has the order of evidence of each format."),
    ("SSS542", "repaired", "record repaired",
     "The record was understood although its form is not quite the format's: bytes of another encoding, a delimiter "
     "inside a name, a last line without its end."),
    ("SSS543", "contradictory", "times of a record out of order",
     "The job of a record ended before it started, or started before it was submitted. Clocks were set, or the record "
     "is wrong; the times are kept as they are."),
    ("SSS544", "site-dependent", "record leaves something open",
     "The record does not state something that is needed, or the release that wrote it states it wrongly: the machine, "
     "which of two equal hours at the end of summer time, the moment from which times count. The message says what was "
     "taken; an option of the format (`--option machine=NAME`) states it."),
    ("SSS545", "dropped", "part of a record without a place",
     "The record states something for which the job object has no place. The rest of the record is used."),
    ("SSS546", "dropped", "job left out of the records",
     "A usage record must state an amount or a time that this job does not have; a job that never ran has no usage. "
     "No record is written for it."),
    # running
    ("SSS601", "repaired", "results of an earlier run left out",
     "The document already had results (State, times, Delivered ...); they are written anew."),
    ("SSS602", "dropped", "not honoured by the executor",
     "The executor has no way to do what the property asks for. The policy decides whether the job runs without it "
     "(`--policy warn`) or not at all; another executor may have a way."),
    ("SSS603", "refused", "executable would have to be fetched",
     "The Executable is a URI, and sssjob fetches nothing. Put the program where the job runs, and name its path."),
    ("SSS604", "approximated", "more asked than there is",
     "The job asks for more than this machine has, and runs with what there is."),
    ("SSS605", "invalid", "cannot be run",
     "The document lacks something that a run needs, or states something that contradicts it; the message says what."),
    ("SSS606", "contradictory", "facts disagree",
     "Two sources state different values of one delivered fact. The message names both. `--prefer` of `sssjob merge` "
     "says whose word counts."),
    ("SSS607", "contradictory", "jobs write the same file",
     "Several jobs, or elements of an array, name one file for a stream, and each of them empties it when it starts: "
     "of what those before it wrote nothing is left, and those that run at the same time write over each other. Tokens "
     "keep the files apart (`{jobid}`, `{name}`, `{index}`), or `redirectList='Append'` lets each add to it."),
    ("SSS610", "refused", "the job can never start as it is",
     "The resource manager holds a job in the queue for a reason that no waiting takes away: a time limit above that "
     "of the partition, more nodes than there are, a condition that no node meets, a dependency that cannot come true. "
     "Cancel it and submit another one, or have it changed. Nothing ends it of itself."),
    ("SSS620", "contradictory", "sources disagree on what was delivered",
     "Two sources of a run (accounting, measurement, exit file, status stream) state different values: times more "
     "than 2 s apart, durations more than 2 s and 1 %, amounts more than 1 %, counts and names at all. The first one "
     "named is the more trusted and counts. `sssjob status --sources` shows both."),
    ("SSS621", "contradictory", "sources disagree on how a job ended",
     "Two sources of a run state different states, exit codes or signals. An end that was known when the job ended "
     "stays when accounting, asked late, says otherwise. The exit code of the script that started the program "
     "counts before that of accounting. `sssjob status --sources` shows both."),
    ("SSS622", "contradictory", "records of another job with the same native id left out",
     "Native ids come again: counters are set back, and accounting keeps what was called so years ago. Rows of the "
     "queue and records that do not bear the job's tag, or where nothing tells tags are of another user, name or time "
     "of submission, count for nothing; nor does what may be about either of two jobs. The message gives the reason."),
)

RULES: Final[dict[str, Rule]] = dict(sorted(
    [(row[0], Rule(*row)) for row in _OF_JOBS] + [(row[0], Rule(row[0], row[1], "", *row[2:])) for row in _OTHERS]))
