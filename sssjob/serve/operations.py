"""What can be asked over HTTP: the table of operations, each with its parameters, its body and what does it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from starlette.requests import Request

from sssjob.errors import SSSJobError
from sssjob.findings import Policy, escape
from sssjob.limits import LIMITS
from sssjob.run.listing import COLUMNS, Filter
from sssjob.run.signals import signal_name
from sssjob.serve.access import User
from sssjob.serve.desk import Desk, Order, Submitted
from sssjob.xml._faults import members_once, no_constant, parse_fault

__all__ = ["OPERATIONS", "Answer", "Call", "Operation", "Parameter", "RequestError"]

Answer = tuple[int, dict[str, Any] | list[dict[str, Any]] | str]
_MOST: Final = 10_000           # jobs of one page
_TYPES: Final = ("application/xml", "text/xml", "application/json", "text/plain", "application/octet-stream")
_UNSTATED: Final = "application/x-www-form-urlencoded"     # what curl says of a body whose type nobody stated
_KEY: Final = re.compile("[!-~]{1,255}")
_WHOLE: Final = re.compile("[0-9]{1,15}")


class RequestError(SSSJobError, ValueError):
    """A request that is wrong before anything is done. status: of HTTP; closes: whether nothing more is to be read from
    its connection, where a second request could hide in its body."""

    def __init__(self, status: int, message: str, *, closes: bool = False) -> None:
        self.status, self.closes = status, closes
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter. kind: text, whole (a number from 0) or truth (true, false); choices: what a text may be; most: of a
    whole number; format: of a text, as OpenAPI names it, which who takes it checks."""

    name: str
    meaning: str
    where: Literal["query", "header", "path"] = "query"
    kind: Literal["text", "whole", "truth"] = "text"
    choices: tuple[str, ...] = ()
    most: int = 10**15 - 1
    format: str = ""

    def check(self, text: str) -> str:
        """The value, if it may be one. Raises RequestError."""
        if len(text) > LIMITS.identifier:
            raise RequestError(400, f"{self.name} is longer than the limit identifier ({LIMITS.identifier})")
        if self.kind == "whole" and not (_WHOLE.fullmatch(text) and int(text) <= self.most):
            raise RequestError(400, f"{self.name}={escape(text, 40)!r} is no whole number from 0 to {self.most}")
        choices = ("true", "false") if self.kind == "truth" else self.choices
        if choices and text not in choices:
            raise RequestError(400, f"{self.name}={escape(text, 40)!r} is not known (known: {', '.join(choices)})")
        if self.name == "Idempotency-Key" and not _KEY.fullmatch(text):
            raise RequestError(400, "Idempotency-Key is not of 1 to 255 visible ASCII characters")
        return text


@dataclass(frozen=True, slots=True)
class Call:
    """One request. values: of the parameters that were stated."""

    user: User
    values: Mapping[str, str]
    body: bytes = b""

    @property
    def subject(self) -> str | None:
        """What it is about, for the log."""
        return self.values.get("id") or self.values.get("Idempotency-Key")

    def stated(self, name: str) -> bool:
        """Whether a parameter was stated."""
        return name in self.values

    def text(self, name: str, default: str = "") -> str:
        """The text of a parameter."""
        return self.values.get(name, default)

    def whole(self, name: str, default: int = 0) -> int:
        """The number of a parameter."""
        return int(self.values[name]) if name in self.values else default

    def policy(self) -> Policy | None:
        """The awarenessPolicy that was stated."""
        return Policy.of(self.values["policy"]) if "policy" in self.values else None

    def json_object(self) -> dict[str, Any]:
        """The JSON object that the body is. Raises RequestError."""
        try:
            value = json.loads(self.body.decode("utf-8"), object_pairs_hook=members_once, parse_constant=no_constant)
        except (ValueError, RecursionError) as error:
            raise RequestError(400, f"the body: {escape(parse_fault(error), 100)}") from None
        if not isinstance(value, dict):
            raise RequestError(400, "the body is no JSON object")
        return value

    def json(self, **members: type[Any]) -> dict[str, Any]:
        """The members of a JSON object, which has exactly these. Raises RequestError."""
        value = self.json_object()
        if value.keys() != members.keys():
            raise RequestError(400, f"the body is no JSON object with the members {', '.join(members)}")
        for name, type_ in members.items():
            if not isinstance(value[name], type_):
                raise RequestError(400, f"{name} is no {type_.__name__}")
        return value


@dataclass(frozen=True, slots=True)
class Operation:
    """Something that can be asked. pool: which threads do it; takes: types of its body, none: it has no body; answers:
    status -> what that says; style: whose form errors have; needs_body: whether one that it takes has to be there;
    is_public: whether who has no token may ask it too, where the server is public; about_jobs: whether it tells how
    jobs stand, which is asked anew soon then;
    function: None where the server itself does it, or it is an order; order: what a call submits, by the executors that
    there are; taken: the answer when that was done."""

    name: str
    method: str
    path: str
    summary: str
    function: Callable[[Desk, Call], Answer] | None = None
    parameters: tuple[Parameter, ...] = ()
    takes: tuple[str, ...] = ()
    answers: Mapping[int, str] = field(default_factory=lambda: {200: "done"})
    pool: str = "read"
    style: Literal["own", "iri"] = "own"
    needs_body: bool = True
    order: Callable[[Sequence[str], Call], Order] | None = None
    taken: Callable[[Submitted], Answer] | None = None
    is_public: bool = False
    about_jobs: bool = False

    def arguments(self, request: Request) -> dict[str, str]:
        """The values of its parameters. Raises RequestError, also for parameters that it does not have."""
        by_name = {parameter.name: parameter for parameter in self.parameters}
        values: dict[str, str] = {}
        for name, text in request.query_params.multi_items():
            if name not in by_name or by_name[name].where != "query":
                names = [p.name for p in self.parameters if p.where == "query"]
                raise RequestError(400, f"unknown parameter {escape(name, 40)!r} (known: {', '.join(names) or 'none'})")
            if name in values:
                raise RequestError(400, f"{name} is stated twice")
            values[name] = by_name[name].check(text)
        for parameter in self.parameters:
            if parameter.where == "path":
                values[parameter.name] = parameter.check(str(request.path_params[parameter.name]))
            elif parameter.where == "header" and parameter.name in request.headers:
                if len(request.headers.getlist(parameter.name)) > 1:
                    raise RequestError(400, f"{parameter.name} is stated twice")
                values[parameter.name] = parameter.check(request.headers[parameter.name])
        return values

    def check_type(self, stated: str | None, has_body: bool) -> None:
        """Raise RequestError for a body of another type than it takes, or where it takes none."""
        if not self.takes:
            if has_body:
                raise RequestError(400, f"{self.method} {self.path} takes no body")
            return
        type_ = (stated or self.takes[0]).partition(";")[0].strip().lower()
        if type_ not in (*self.takes, _UNSTATED):
            raise RequestError(415, f"a body of type {escape(type_, 60)} is not taken (taken: {', '.join(self.takes)})")
        if not has_body and self.needs_body:
            raise RequestError(400, "there is no body")


def _order(_: Sequence[str], call: Call) -> Order:
    return Order(call.user, call.body, call.text("from", "auto"), call.values.get("executor"),
                 call.values.get("Idempotency-Key"), call.policy(), call.text("wait", "true") == "true")


def _submitted(submitted: Submitted) -> Answer:
    return 201 if submitted.fresh else 200, submitted.record()


def _jobs(desk: Desk, call: Call) -> Answer:
    chosen = Filter(ended=call.text("ended") == "true", name=call.values.get("name"), sort=call.text("sort", "key"),
                    states=[call.text("state")] if call.stated("state") else (), group=call.values.get("group"))
    return 200, desk.jobs(call.user, chosen, call.whole("offset"), call.whole("limit", 1000))


def _job(desk: Desk, call: Call) -> Answer:
    form = call.text("as", "json")
    if form in ("xml", "annotated"):
        return 200, desk.document(call.user, call.text("id"), annotated=form == "annotated")
    if form == "sources":
        return 200, desk.sources(call.user, call.text("id"))
    return 200, desk.status(call.user, call.text("id"))


def _wish(wish: str) -> Callable[[Desk, Call], Answer]:
    def function(desk: Desk, call: Call) -> Answer:
        """Ask for it for the job that the path names."""
        wished = f"signal {signal_name(call.text('signal'))}" if wish == "signal" else wish
        return 200, desk.wish(call.user, wished, call.text("id"))

    return function


def _change(desk: Desk, call: Call) -> Answer:
    return 200, desk.change(call.user, call.body, call.text("from", "auto"), call.text("id"))


def _convert(desk: Desk, call: Call) -> Answer:
    return 200, desk.convert(call.body, call.text("from", "auto"), call.text("to", "sss"), call.policy())


def _match(desk: Desk, call: Call) -> Answer:
    members = call.json(request=str, offers=list)
    if not all(isinstance(offer, str) for offer in members["offers"]):
        raise RequestError(400, "offers is no list of texts")
    return 200, desk.match(members["request"], members["offers"])


def _text(body: bytes) -> str:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        raise RequestError(400, "the body is not in UTF-8") from None


_NO_LEDGER: Final = "the server has no ledger"
_ID: Final = Parameter("id", "the Id of a job or group, its native id, or @3.1 as the journal calls it", "path")
_AS: Final = Parameter("as", "JSON (default); the document as XML, or annotated with the source of each fact; every "
                             "fact with its source", choices=("json", "xml", "annotated", "sources"))
_FROM: Final = Parameter("from", "the format of the body (default: auto, the one that is recognised)")
_POLICY: Final = Parameter("policy", "the outermost awarenessPolicy", choices=("Reject", "Warn", "Ignore"))
_STATES: Final = {"cancel": "Ask for the end of jobs, and wait a little for it.",
                  "hold": "Ask that jobs are not started.", "release": "Ask that held jobs may start.",
                  "suspend": "Ask that the processes of running jobs are stopped.",
                  "resume": "Ask that suspended jobs go on.",
                  "rerun": "Ask that running jobs are put back into the queue.",
                  "signal": "Ask that the processes of running jobs are sent a signal."}
_SIGNAL: Final = Parameter("signal", "its name, as USR1", "path")
_FOUND: Final = {200: "how the jobs stand", 403: "the user may not", 404: "no job of this name that the user sees"}

#: Everything that can be asked, in the order of the description.
OPERATIONS: Final = (
    Operation("submit", "POST", "/v1/jobs", "Submit the jobs of a document in any format.", None,
              (_FROM, _POLICY, Parameter("executor", "what to run with (default: the server's first)"),
               Parameter("Idempotency-Key", "names the request: sent again, it submits nothing new", "header"),
               Parameter("wait", "false: answer when the jobs are in the journal; true (default): when the resource "
                                 "manager has taken or refused them", kind="truth")),
              _TYPES, {201: "submitted", 200: "this key submitted it before", 403: "the user may not",
                       409: "the key was used for another document", 422: "findings reject the document"},
              order=_order, taken=_submitted),
    Operation("jobs", "GET", "/v1/jobs", "The jobs that the user sees.", _jobs,
              (Parameter("ended", "those too that have ended", kind="truth"),
               Parameter("state", "a State, or an outcome"), Parameter("name", "a pattern of Ids or Names"),
               Parameter("group", "the Id of a group, or @3"),
               Parameter("sort", "by what, with - from the last to the first",
                         choices=tuple(sign + name for name in COLUMNS for sign in ("", "-"))),
               Parameter("offset", "how many are left out", kind="whole"),
               Parameter("limit", "how many are answered at most", kind="whole", most=_MOST)),
              answers={200: "a page of jobs, and how many there are in all"}, about_jobs=True),
    Operation("job", "GET", "/v1/jobs/{id}", "How a job stands, as the journal knows it.", _job,
              (_ID, _AS), answers=_FOUND, about_jobs=True),
    *(Operation(wish, "POST", f"/v1/jobs/{{id}}/{wish}{'/{signal}' * (wish == 'signal')}", summary, _wish(wish),
                (_ID, _SIGNAL) if wish == "signal" else (_ID,), answers=_FOUND, pool="change")
      for wish, summary in _STATES.items()),
    Operation("change", "POST", "/v1/jobs/{id}/change",
              "Ask that jobs are changed; the body is one Job, which holds what is to be otherwise.", _change,
              (_ID, _FROM), _TYPES, {**_FOUND, 400: "that is never changed", 422: "findings reject it"}, "change"),
    Operation("events", "GET", "/v1/events", "What happens to the jobs that the user sees, as server-sent events.",
              None, (Parameter("since", "events after this number (default: from now on)", kind="whole"),
                         Parameter("Last-Event-ID", "the same, as clients say it that connect again", "header",
                                   "whole")), answers={200: "the stream"}),
    Operation("query", "POST", "/v1/query", "The objects that a query selects.",
              lambda desk, call: (200, desk.query(call.user, _text(call.body))), (), ("text/plain",),
              {200: "the objects", 403: "the user may not", 501: _NO_LEDGER}, "query"),
    Operation("convert", "POST", "/v1/convert", "A document in another format.", _convert,
              (_FROM, Parameter("to", "the format (default: sss)"), _POLICY), _TYPES,
              {200: "the text, with findings", 422: "findings reject it"}, "convert"),
    Operation("match", "POST", "/v1/match", "Whether offers meet what a document requests.", _match, (),
              ("application/json",), {200: "a verdict for each offer, with reasons", 422: "findings reject it"},
              "convert"),
    Operation("quote", "POST", "/v1/quote", "What each job of a document would cost.",
              lambda desk, call: (200, desk.quote(call.body, call.text("from", "auto"))), (_FROM,), _TYPES,
              {200: "the quotes", 422: "findings reject it", 501: "the server has no rates"}, "convert"),
    Operation("balance", "GET", "/v1/balance", "The accounts of the ledger as they stand.",
              lambda desk, call: (200, desk.balance(call.user, call.values.get("account"))),
              (Parameter("account", "only this one"),), answers={200: "the accounts", 403: "the user may not",
                                                                   501: _NO_LEDGER}, pool="query"),
    Operation("openapi", "GET", "/openapi.json", "This description."),
)
