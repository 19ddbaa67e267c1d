"""The IRI Facility API: how its JobSpec differs from PSI/J's, which it is made from.

Both have the same members. A facility counts whole seconds, gives a job the whole nodes where nothing else is said, and
means its own time limit where none is stated; PSI/J shares nodes and means ten minutes. Source: the contract of the DOE
IRI Facility API as its reference server has it, August 2026.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["UNSAID_S", "facility_members"]

#: Seconds that PSI/J means where a JobSpec does not state a duration.
UNSAID_S: Final = 600
_SECONDS: Final = re.compile(r"([0-9]+)(?:\.0*)?(?: s)?", re.ASCII)


def facility_members(members: Mapping[str, Any]) -> dict[str, Any]:
    """A JobSpec as a facility takes it, with everything said that is another thing there where it is left out.

    members: the JobSpec as PSI/J's JSON has it, with durations as ``600`` or ``"600 s"``. Raises ValueError for what
    has no place in the form: files that are staged, a part of a second.
    """
    form = {name: value for name, value in members.items() if name not in ("__version", *_STAGING)}
    if any(members.get(name) for name in _STAGING[:-1]):
        raise ValueError("a facility does not stage files: stage_in, stage_out and cleanup have to be empty")
    if "resources" in form:
        resources = {name: value for name, value in form["resources"].items() if name != "__version"}
        form["resources"] = {"exclusive_node_use": False} | resources
    attributes = dict(form.get("attributes", {}))
    duration, project = attributes.pop("duration", UNSAID_S), attributes.pop("project_name", None)
    if project is not None:             # the older name of the same
        attributes["account"] = project
    if duration is not None:
        seconds = _SECONDS.fullmatch(str(duration))
        if seconds is None:
            raise ValueError(f"a facility counts whole seconds, and the duration is {duration}")
        attributes["duration"] = int(seconds[1])
    if custom := attributes.pop("custom_attributes", None):
        attributes["custom_attributes"] = {name: str(value) for name, value in custom.items()}
    return form | {"attributes": attributes}


_STAGING: Final = ("stage_in", "stage_out", "cleanup", "cleanup_flags")
