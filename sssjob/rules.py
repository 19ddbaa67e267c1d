"""The rules behind findings: one row each, with a stable id. ``sssjob explain SSS123`` and the rules page of the
reference print them. Numbers: 1xx reading, 2xx values, 3xx structure, 4xx meaning, 5xx translation, 6xx running."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["RULES", "Kind", "Rule"]

Kind = Literal[
    "unknown", "dropped", "approximated", "site-dependent", "invented", "contradictory", "repaired", "dead",
    "template", "refused", "limit", "invalid", "exact",
]


@dataclass(frozen=True, slots=True)
class Rule:
    """id, kind, a title of a few words, and a page: what it means, why, what to do."""

    id: str
    kind: Kind
    title: str
    text: str

    @property
    def governed(self) -> bool:
        """Whether awarenessPolicy decides what happens."""
        return self.kind in ("unknown", "dropped")

    @property
    def severity(self) -> Literal["error", "warning", "info"]:
        """The severity without a policy."""
        if self.kind in ("invalid", "limit", "refused") or self.governed:
            return "error"
        return "info" if self.kind == "exact" else "warning"


_ROWS: Final[tuple[tuple[str, Kind, str, str], ...]] = (
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
    ("SSS113", "unknown", "comment or instruction inside a document",
     "A processing instruction is not part of the job object model."),
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
    ("SSS208", "invalid", "attribute missing", "The specification demands this attribute."),
    ("SSS209", "repaired", "invisible or control characters",
     "A name or identifier holds characters that do not show; they may make two names look alike."),
    ("SSS210", "invalid", "policy not known",
     "awarenessPolicy is Reject, Warn or Ignore; with another value Reject holds."),
    # structure
    ("SSS301", "unknown", "element not known", "The specification has no such element. awarenessPolicy decides."),
    ("SSS302", "unknown", "attribute not known", "The specification has no such attribute here."),
    ("SSS303", "unknown", "element in a place where it may not stand",
     "The element is known, but not in this container. It is treated as an unsupported one."),
    ("SSS304", "contradictory", "more than one where one may stand",
     "The specification allows one. All are kept; the first is used, containers are merged in order."),
    ("SSS305", "invalid", "required element missing", "The specification demands this element."),
    ("SSS306", "repaired", "older or foreign name",
     "The element stands under a name of an older release or of another system. It is read as the name of 3.1.0."),
    ("SSS307", "contradictory", "two names for one property",
     "A property stands under its own name and under an alias with another value; its own name wins."),
    ("SSS308", "invalid", "identifier used twice", "Identifiers are unique within their scope."),
    ("SSS309", "invalid", "reference and definition in one",
     "An element with only text is a reference, one with elements a definition; both or neither is an error."),
    ("SSS310", "repaired", "name in another case", "XML names are case-sensitive; the specification's is taken."),
    ("SSS311", "invalid", "File missing or ambiguous",
     "`#id` in Executable names a File that comes with the document; it is missing or stands there twice."),
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
    ("SSS406", "invalid", "pattern not understood", "The pattern is malformed or uses a feature that is not there."),
    ("SSS407", "invalid", "node set malformed", "A Range is a prefix with a bracket list such as `n[01-04,7]`."),
    ("SSS408", "invalid", "geometry malformed", "A Geometry is a list of task numbers a node: `{1,4}{2}{3,5}`."),
    ("SSS409", "approximated", "geometry with a gap", "Task numbers of a Geometry are not contiguous."),
    ("SSS410", "invalid", "dependencies form a cycle", "The jobs of a group form a directed acyclic graph."),
    ("SSS411", "site-dependent", "dependency on a job that is not here",
     "The job that is named is not part of the document; only the resource manager can know it."),
    ("SSS412", "contradictory", "times out of order", "A job ended before it started, or started before submission."),
    ("SSS413", "contradictory", "code without OnExit", "`code` counts only with condition OnExit."),
    ("SSS414", "contradictory", "task parameters contradict each other",
     "Processors, NodeCount, TaskCount and TaskDistribution cannot all hold."),
    ("SSS415", "contradictory", "variable set twice", "The last value of the variable counts."),
    ("SSS416", "contradictory", "both streams merged", "OutputFile and ErrorFile both say Merge; the second counts."),
    ("SSS417", "invalid", "not the name of a variable", "Names of variables match [A-Za-z_][A-Za-z0-9_]*."),
    ("SSS418", "contradictory", "result in defaults",
     "Defaults hold a property of one job's life (Id, State, times ...); it is not inherited."),
    ("SSS419", "contradictory", "amount in two units", "The amounts cannot be compared."),
    ("SSS420", "approximated", "state under another word",
     "The State of a job is not one of the five words of the specification (Idle, Hold, Running, Suspended, Completed) "
     "but one that other systems use. It is taken for what the message says; the document keeps its own word."),
    ("SSS421", "contradictory", "delimiter without List", "`delimiter` parts only the members of aggregation List."),
    ("SSS422", "site-dependent", "event that the specification does not name",
     "NotificationList is a comma list of JobStart, JobEnd, All and None. Only the resource manager can know another "
     "word; events of its own go into Extension type=\"Scheduler\" name=\"MailEvents\"."),
    # translation
    ("SSS501", "dropped", "not expressible in the target", "The target has no place for this property."),
    ("SSS502", "approximated", "approximated in the target", "The target says something close to it."),
    ("SSS503", "invented", "not in the source", "The target needs a value that the source does not state."),
    ("SSS504", "site-dependent", "depends on the site", "Only the site can say what this means."),
    ("SSS505", "refused", "refused by the target", "The target would refuse this."),
    # running
    ("SSS601", "repaired", "results of an earlier run left out",
     "The document already had results (State, times, Delivered ...); they are written anew."),
    ("SSS602", "dropped", "not honoured by the executor", "The executor cannot do what the property asks for."),
    ("SSS603", "refused", "executable would have to be fetched", "Nothing is fetched unless asked for explicitly."),
    ("SSS604", "approximated", "more asked than there is", "The job runs with what the machine has."),
    ("SSS605", "invalid", "cannot be run", "The document lacks something that a run needs."),
    ("SSS606", "contradictory", "facts disagree", "Two sources state different values of one delivered fact."),
)

RULES: Final[dict[str, Rule]] = {row[0]: Rule(*row) for row in _ROWS}
