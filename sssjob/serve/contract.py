"""The description of the HTTP face in OpenAPI 3.1, made from the table of operations."""

from __future__ import annotations

from typing import Any, Final

from sssjob.serve.iri import IRI_OPERATIONS, schemas
from sssjob.serve.operations import OPERATIONS, Operation, Parameter
from sssjob.version import __version__

__all__ = ["EVERYTHING", "contract"]

#: All operations, in the order of the description.
EVERYTHING: Final = (*OPERATIONS, *IRI_OPERATIONS)

_PROBLEM: Final = {"$ref": "#/components/schemas/Problem"}
#: Every operation may be refused so -> what that says.
_REFUSALS: Final = {400: "the request is wrong", 401: "no token, or one of nobody", 408: "the body is too slow",
                    413: "the body is too long", 415: "the body is of a type that is not taken",
                    429: "too many requests", 503: "the journal cannot be used now"}
_FINDING: Final = {
    "type": "object", "required": ["rule", "severity", "message"],
    "properties": {name: {"type": type_} for name, type_ in (
        ("rule", "string"), ("severity", "string"), ("message", "string"), ("subject", "string"), ("path", "string"),
        ("hint", "string"), ("consequence", "string"), ("line", "integer"), ("column", "integer"))}}


def contract() -> dict[str, Any]:
    """The whole description, as a JSON object."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in EVERYTHING:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "sssjob", "version": __version__,
                 "description": "Jobs as one document, submitted, followed, converted, matched and priced."},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {
                **schemas(),
                "Finding": _FINDING,
                "Details": {"type": "object", "required": ["type", "status", "instance"], "properties": {
                    "type": {"type": "string"}, "status": {"type": "integer"}, "title": {"type": "string"},
                    "detail": {"type": "string"}, "instance": {"type": "string"}}},
                "Problem": {"type": "object", "required": ["status", "message", "findings"], "properties": {
                    "status": {"type": "integer"}, "message": {"type": "string"},
                    "findings": {"type": "array", "items": {"$ref": "#/components/schemas/Finding"}}}}}}}


def _operation(operation: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {"operationId": operation.name, "summary": operation.summary,
                                 "responses": _responses(operation)}
    if operation.parameters:
        described["parameters"] = [_parameter(parameter) for parameter in operation.parameters]
    if operation.takes:
        described["requestBody"] = {"required": operation.needs_body, "content": {
            type_: {"schema": _body(operation) if type_ == "application/json" else {"type": "string"}}
            for type_ in operation.takes}}
    return described


def _body(operation: Operation) -> dict[str, Any]:
    if operation.style == "iri" and operation.needs_body:
        return {"$ref": "#/components/schemas/JobSpec"}
    if operation.name != "match":
        return {"type": "object"}
    return {"type": "object", "additionalProperties": False, "required": ["request", "offers"], "properties": {
        "request": {"type": "string"}, "offers": {"type": "array", "items": {"type": "string"}}}}


def _parameter(parameter: Parameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": {"text": "string", "whole": "integer", "truth": "boolean"}[parameter.kind]}
    if parameter.kind == "whole":
        schema |= {"minimum": 0, "maximum": parameter.most}
    if parameter.format:
        schema["format"] = parameter.format
    if parameter.choices:
        schema["enum"] = list(parameter.choices)
    return {"name": parameter.name, "in": parameter.where, "required": parameter.where == "path",
            "description": parameter.meaning, "schema": schema}


def _responses(operation: Operation) -> dict[str, Any]:
    type_ = "text/event-stream" if operation.name == "events" else "application/json"
    content: dict[str, Any] = {type_: {}}
    if operation.name == "job":
        content["application/xml"] = {}
    problem = {"content": {"application/json": {"schema": _PROBLEM}} if operation.style == "own" else
               {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Details"}}}}
    responses: dict[str, Any] = {str(status): {"description": meaning} | (
        {} if status == 204 else {"content": content} if status < 300 else problem)
        for status, meaning in (_REFUSALS | dict(operation.answers)).items()}
    responses["401"] = {"description": _REFUSALS[401]}      # without a body
    return dict(sorted(responses.items()))
