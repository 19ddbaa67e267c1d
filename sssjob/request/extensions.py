"""What Extensions of a job or a task group count: chunks of equal resources, processors and tasks beside each GPU."""

from __future__ import annotations

from typing import Any

from sssjob.document.element import Property
from sssjob.document.inherit import View
from sssjob.findings import escape
from sssjob.lrm.usage import whole

__all__ = ["chunks_of", "counts_chunks", "fault_of_chunks", "of_each_gpu"]


def chunks_of(view: View[Any]) -> Property | None:
    """The Extension that says how many chunks of equal resources a job or a task group asks for; None where there is
    none, or where it says no number of them."""
    for extension in view.get("Extension"):
        if counts_chunks(extension):
            return extension if whole(extension.text) else None
    return None


def of_each_gpu(view: View[Any], name: str) -> int | None:
    """How many processors (``CpusPerGPU``) or tasks (``TasksPerGPU``) a job or a task group asks for beside each GPU,
    by the Extension of that name, which is Slurm's ``--cpus-per-gpu`` or ``--ntasks-per-gpu``; None where it says no
    number of them."""
    for extension in view.get("Extension"):
        if extension.attributes.get("name") == name and extension.attributes.get("type") == "Scheduler":
            return whole(extension.text) or None
    return None


def counts_chunks(p: Property) -> bool:
    """Whether a property is the Extension that says how many chunks there are."""
    return p.tag == "Extension" and p.attributes.get("name") == "ChunkCount" and p.attributes.get("type") == "Scheduler"


def fault_of_chunks(p: Property) -> str | None:
    """Why an Extension that should say how many chunks there are says no number of them; None where it does, or is
    about something else."""
    if not counts_chunks(p) or whole(p.text):
        return None
    return f"ChunkCount: {escape(p.text, 80)!r} is no number of things that can be asked for"
