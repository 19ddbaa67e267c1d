"""The demands of RFC 32 and of what flux-core makes of it, each with the test that shows it.

The table in docs/flux-exec.md is made from ``DEMANDS``: ``python -m tests.fluxexec.test_texts`` writes it. Every SHALL
and MUST of the published text of 2022 has to stand here.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "flux-exec.md"
BEGIN, END = "<!-- demands: python -m tests.fluxexec.test_texts -->\n", "<!-- end of demands -->\n"


@dataclass(frozen=True)
class Demand:
    """text: RFC 32 of 2022 (says is a piece of it, verbatim), RFC 32 of 2026, or flux-core 0.88 (says is ours)."""

    text: str
    says: str
    tests: str          # module.function, separated by blanks


D22, D26, CORE = "2022", "2026", "flux-core"
DEMANDS = [Demand(*row) for row in (
    (D22, "Support partial release of allocated resources to the scheduler", "service.test_partial_release"),
    (D22, "Support execution service reload",
     "runner.test_reload_in_this_process runner.test_reload_by_another_process interleavings.Together"),
    (D22, "Support execution service override by the Flux simulator", "runner.test_override_by_the_simulator"),
    (D22, "The job ID MUST appear in the <service>.start request and response message payloads",
     "manager.test_start_requests_carry_what_they_must service.test_normal"),
    (D22, "There SHALL NOT be more than one <service>.start request in flight for each job",
     "manager.test_one_request_a_job interleavings.Alone"),
    (D22, "The errnum field in <service>.start response messages MUST be set to zero, even if the response indicates "
     "an error", "service.test_a_job_that_cannot_be_started"),
    (D22, "The job manager SHALL treat a conventional Flux error response to <service>.start with a nonzero errnum "
     "field as an execution service fatality, and SHALL not send further requests",
     "manager.test_end_of_the_service interleavings.Alone"),
    (D22, "The Flux execution service SHALL register a service name with the job manager on initialization",
     "service.test_hello_names_the_service"),
    (D22, "whose request payload SHALL be a JSON object containing with one REQUIRED key",
     "service.test_hello_names_the_service manager.test_hello_needs_a_name"),
    (D22, "the job manager SHALL allow the new one to override it", "manager.test_an_idle_service_is_overridden"),
    (D22, "The response payload SHALL be empty on success", "manager.test_an_idle_service_is_overridden"),
    (D22, "The job manager SHALL issue a failure response if any jobs have an outstanding start request",
     "manager.test_hello_while_a_start_is_outstanding"),
    (D22, "The execution service SHALL treat a failure response to exec-hello as fatal",
     "service.test_a_refused_hello_is_fatal"),
    (D22, "the job manager SHALL send <service>.start requests for any jobs that have been allocated resources",
     "manager.test_start_requests_carry_what_they_must"),
    (D22, "The request payload SHALL be a JSON object containing the following REQUIRED keys",
     "manager.test_start_requests_carry_what_they_must service.test_a_request_that_cannot_be_understood"),
    (D22, "The response payload SHALL be a JSON object containing the following REQUIRED keys",
     "service.test_normal manager.test_malformed_is_ignored"),
    (D22, "a human readable description of the exception which the job manager SHALL include in the exception context",
     "manager.test_exceptions"),
    (D22, "the numerically greatest wait status returned by the set of job shells",
     "service.test_the_greatest_wait_status"),
    (D22, "An exception response MAY be sent at any point", "interleavings.Alone"),
    (D22, "start and/or finish responses MAY be omitted depending on when a fatal exception occurs",
     "service.test_cancel_before_start together.test_rules_of_a_stream"),
    (D22, "The execution service MUST always send a release response with final set to True",
     "service.test_no_forbidden_response_whatever_happens interleavings.Together"),
    (D22, "The final release response SHALL be the last response sent by the execution service for a given job ID",
     "service.test_no_forbidden_response_whatever_happens interleavings.Together"),
    (D26, "a start request has R", "manager.test_start_requests_carry_what_they_must manager.test_rfc32_2022"),
    (D26, "reattached takes the place of start for a job whose shells were running", "service.test_reload"),
    (D26, "a job that is not found is failed, and its ranks released", "service.test_what_is_not_found"),
    (D26, "a hello takes over while starts are outstanding, and jobs are sent again with reattach",
     "manager.test_hello_while_a_start_is_outstanding interleavings.Together"),
    (D26, "the wait_status of a fatal exception takes the place of the shells'", "service.test_wait_status_override"),
    (D26, "an expiration request is answered, and moves the end of the job",
     "service.test_expiration_request manager.test_expiration_is_told_and_a_refusal_noted"),
    (CORE, "events and final records of recorded sequences are the manager's", "manager.test_recorded"),
    (CORE, "what is malformed, unknown or late has no effect",
     "manager.test_malformed_is_ignored manager.test_answers_to_nothing_are_ignored interleavings.Alone"),
    (CORE, "the first fatal exception decides; finish 0 after it is no success", "manager.test_exceptions "
     "manager.test_finish executor.test_final_statuses"),
    (CORE, "a final release in RUN makes it send the start again", "interleavings.Alone"),
    (CORE, "ranks are freed by the final release alone",
     "manager.test_partial_release_frees_nothing_before_the_final_one"),
    (CORE, "every exception has a note", "service.test_a_job_that_cannot_be_started check.test_rules"),
    (CORE, "a second start without reattach is logged and dropped", "service.test_second_start_is_dropped"),
    (CORE, "the name is added and the event subscribed before hello, at a broker",
     "service.test_a_broker_is_told_the_name_and_the_events_first broker.test_a_whole_job"),
    (CORE, "responses copy routes and tag of the request", "broker.test_response_copies_the_routes"),
    (CORE, "SIGTERM first, SIGKILL with longer and longer pauses, and an end to that",
     "service.test_kill_when_asking_does_not_help"),
)]


@pytest.mark.parametrize("demand", DEMANDS, ids=lambda demand: f"{demand.text}: {demand.says[:50]}")
def test_there_is_a_test(demand: Demand) -> None:
    for name in demand.tests.split():
        module, _, test = name.partition(".")
        assert callable(getattr(import_module(f"tests.fluxexec.test_{module}"), test))


def published() -> str | None:
    folder = os.environ.get("SSSJOB_SAMPLES")
    path = Path(folder) / "specs" / "seeds" / "flux-rfc32-exec-protocol-v1.txt" if folder else None
    return path.read_text(encoding="utf-8") if path is not None and path.is_file() else None


@pytest.mark.skipif(published() is None, reason="SSSJOB_SAMPLES names no folder that holds RFC 32 of 2022")
def test_every_shall_and_must_of_the_text_is_cited() -> None:
    text = " ".join((published() or "").split())
    text = text[text.index("Background"):]
    cited = []
    for says in (demand.says for demand in DEMANDS if demand.text == D22):
        at = text.find(says)
        assert at >= 0, says
        while at >= 0:
            cited.append((at, at + len(says)))
            at = text.find(says, at + 1)
    words = [m for m in re.finditer(r"\b(MUST|SHALL|REQUIRED|SHOULD)\b", text)]
    assert len(words) > 15
    assert [text[max(0, m.start() - 60):m.end() + 60] for m in words
            if not any(start <= m.start() < end for start, end in cited)] == []


def page() -> str:
    rows = []
    for demand in DEMANDS:
        tests = ", ".join(f"`{name.partition('.')[2]}`" for name in demand.tests.split())
        rows.append(f"| {demand.text} | {demand.says.replace('<', '&lt;').replace('>', '&gt;')} | {tests} |\n")
    return "".join(["| text | says | test |\n|---|---|---|\n", *rows])


def test_the_page_lists_every_demand() -> None:
    assert PAGE.read_text().partition(BEGIN)[2].partition(END)[0] == page()


if __name__ == "__main__":
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}{page()}{END}{rest.partition(END)[2]}")
