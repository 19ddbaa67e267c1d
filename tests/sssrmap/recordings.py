"""What was recorded from a running Gold and a running Maui, cut into messages."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

FIXTURES: Final = Path(__file__).parents[1] / "fixtures"
GOLD: Final = FIXTURES / "gold-2.2"
MAUI: Final = FIXTURES / "maui-3.3"

_MESSAGE: Final = re.compile(r"(?:<\?xml[^>]*\?>\s*)?<(?:\w+:)?\w*Envelope.*?</(?:\w+:)?\w*Envelope>", re.S)


def exchanges() -> dict[str, dict[str, Any]]:
    """Id of an exchange with Gold -> the exchange."""
    recorded = [*json.loads((GOLD / "exchanges.json").read_text())["cases"],
                *json.loads((GOLD / "client-requests.json").read_text())["cases"]]
    return {case["id"]: case for case in recorded}


def messages() -> dict[str, str]:
    """Name -> each message that is whole: ``query-01 request``, ``chunk-01 response 2``."""
    texts: dict[str, str] = {}
    for name, case in exchanges().items():
        texts |= _named(f"{name} request", case["request"]) | _named(f"{name} response", case["response"] or "")
    for case in json.loads((GOLD / "client-reads-reply.json").read_text())["cases"]:
        texts |= _named(f"{case['id']} reply", case["reply"])
    for number, text in enumerate(json.loads((MAUI / "requests.json").read_text())["requests"], 1):
        texts |= _named(f"maui-{number} request", text)
    return texts


def _named(name: str, text: str) -> dict[str, str]:
    matches = _MESSAGE.findall(text)
    return {name if len(matches) == 1 else f"{name} {number}": one for number, one in enumerate(matches, 1)}
