"""Status codes of SSSRMAP and what they mean: one table.

A code is three digits; its first two name the class, which is why old clients exit with the code divided by ten.
Source: SSSRMAP message format 3.0.4, "Error Reporting", as Gold 2.2 and Maui 3.3 spell it on the wire.
"""

from __future__ import annotations

from typing import Final, Literal

__all__ = ["CODES", "Outcome", "meaning_of", "outcome_of"]

Outcome = Literal["Success", "Warning", "Failure"]

#: Code -> what it means. 0xx are successes, 1xx warnings, all others failures.
CODES: Final[dict[str, str]] = {
    "000": "success",
    "010": "success: help was asked for and is returned",
    "080": "success, and what the server keeps in memory about its objects is out of date",
    "100": "warning",
    "144": "warning: the action would bypass accounting and was not done",
    "146": "warning: the result was cut short; ask with chunking",
    "200": "network or wire protocol failure",
    "212": "host name that is not valid or not known",
    "214": "port that is not valid",
    "216": "no socket could be made",
    "218": "the address could not be bound",
    "220": "connection failure",
    "222": "no connection",
    "224": "the message could not be sent",
    "226": "no message could be received",
    "230": "connection refused",
    "232": "timed out",
    "240": "framing failure",
    "242": "malformed frame: method, URI, content type, transfer encoding, root element or Body",
    "243": "empty connection",
    "244": "size of the payload is wrong",
    "246": "input ended before the message did",
    "300": "message format error",
    "311": "no object is named",
    "312": "no action or no actor is named",
    "313": "action not supported",
    "314": "required data or argument missing or not valid",
    "315": "this kind of object does not know this action",
    "316": "unknown attribute in Set",
    "317": "value of the wrong type",
    "318": "Get, Set or Where that is not allowed here, or not known",
    "321": "response without a status or code",
    "400": "security failure",
    "422": "signature problem at the client",
    "424": "the message could not be authenticated",
    "432": "encryption failed",
    "434": "decryption failed",
    "436": "nothing to encrypt",
    "442": "client authentication failure",
    "444": "the actor may not do this",
    "500": "event failure",
    "700": "server error",
    "710": "element not supported",
    "720": "the server failed while it did what was asked",
    "730": "no database connection",
    "740": "refused by a rule of the business",
    "782": "insufficient funds",
    "800": "client error",
    "820": "internal client error",
    "830": "client resource unavailable",
    "840": "client policy failure",
    "900": "miscellaneous failure",
    "999": "unknown failure",
}


def outcome_of(code: str) -> Outcome:
    """Success, Warning or Failure, as the first digit of a code says; what is no code is a Failure."""
    return "Success" if code[:1] == "0" else "Warning" if code[:1] == "1" else "Failure"


def meaning_of(code: str) -> str:
    """What a code means; of one that is not in the table, what its class means."""
    return CODES.get(code) or CODES.get(f"{code[:2]}0") or CODES.get(f"{code[:1]}00") or CODES["999"]
