"""What condor_submit refuses. Sources: submit_utils.cpp of HTCondor; condor_submit(1); the 23.0 bindings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from sssjob.lrm.acceptance import Judge, Refusal, at_least, bounded

__all__ = ["JUDGE"]


def _group(value: str) -> str:
    """The name of a group; a placeholder of a template may have blanks."""
    return "holds a blank" if any(map(str.isspace, value)) and "{" not in value else ""


def _together(options: Mapping[str, str]) -> Iterator[Refusal]:
    if not any(options.get(name, "").strip() for name in ("executable", "docker_image", "container_image", "shell")):
        yield Refusal("executable", "neither an executable nor a container is named", missing=True)


JUDGE: Final = Judge("condor_submit", {"accounting_group": _group, "machine_count": at_least(1),
                                       "max_retries": at_least(0), "priority": bounded(-2**31, 2**31 - 1)}, _together)
