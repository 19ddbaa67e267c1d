"""What ``qsub -verify`` lists, and the same of a script of ours, both in one form: for the recorded readings and for
the real command."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sssjob.translators.scripts._sge_lines import words

FIELDS = {
    "-N": "job_name", "-q": "hard_queue_list", "-soft -q": "soft_queue_list", "-masterq": "master hard queue_list",
    "-M": "mail_list", "-m": "mail_options", "-p": "priority", "-A": "account", "-P": "project", "-ar": "ar_id",
    "-pe": "parallel environment", "-hold_jid": "jid_predecessor_list (req)", "-t": "job-array tasks",
    "-tc": "maximum concurrency", "-ckpt": "checkpoint_object", "-R": "reserve", "-r": "restart", "-js": "jobshare",
    "-a": "execution_time", "-dl": "deadline", "-i": "stdin_path_list", "-o": "stdout_path_list",
    "-e": "stderr_path_list", "-S": "shell_list", "-j": "merge", "-wd": "cwd"}
#: Fields that tell of the submission, or of the run in which they were listed.
IGNORED = ("context", "checkpoint_attr", "checkpoint_interval", "notify")
#: Said or not, the listing is the same.
DEFAULTS = (("jobshare", "0"), ("maximum concurrency", "0"), ("mail_options", "n"), ("merge", "n"), ("reserve", "n"))


def listing(text: str, script: str) -> dict[str, str]:
    """The fields of a listing that directives fill; in the middle of it stands the script."""
    wanted = {*FIELDS.values(), "hard resource_list", "soft resource_list", "env_list"}
    listing: dict[str, str] = {}
    before, _, after = text.partition("script_ptr:")
    for line in (before + after.replace(script.rstrip("\n"), "", 1)).split("\n"):
        name, colon, value = line.partition(":")
        if colon and name.strip() in wanted:
            listing.setdefault(name.strip(), value.strip())
    return listing


def canonical(reading: dict[str, str]) -> dict[str, object]:
    """Values in one form: sets where order says nothing, seconds and bytes for times and sizes."""
    made: dict[str, object] = {}
    for name, value in reading.items():
        if name in IGNORED or not value or (name, value) in DEFAULTS:
            continue
        if name.endswith("resource_list"):
            made[name] = {"h" if k == "hostname" else k: _amount(k, v) for k, _, v in (
                p.partition("=") for p in value.split(",") if p)}
        elif name.endswith(("queue_list", "list (req)")):
            made[name] = sorted(filter(None, re.split(r"[,\s]+", value)))
        elif name.endswith("path_list"):
            made[name] = value.replace("NONE:", "").partition(",")[0]     # the listing shows one of several
        elif name == "shell_list":
            made[name] = value.replace("NONE:", "")
        elif name == "mail_list":
            made[name] = value.replace("@NONE", "")
        elif name == "mail_options":
            made[name] = sorted(value)
        elif name == "parallel environment":
            pe, text = value.replace(" range:", "").split(" ", 1)
            made[name] = pe, sorted(_span(part) for part in text.split(","))
        elif name == "job-array tasks":
            made[name] = _tasks(value)
        elif name == "env_list":
            made[name] = "all" if value.startswith("(whole") else {
                k: v for k, _, v in (p.partition("=") for p in value.split(",")) if k != "TERM"}
        elif name in ("execution_time", "deadline"):
            made[name] = True
        else:
            made[name] = value
    return {k: v for k, v in made.items() if v not in ({}, [])}


def _tasks(value: str) -> tuple[int, int, int]:
    first, last, step = re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", value).groups()  # type: ignore[union-attr]
    return int(first), int(last or first), int(step or 1)


def _span(part: str) -> tuple[int, int]:
    first, dash, last = part.partition("-")
    ends = sorted((int(first or 1), int(last or 9999999) if dash else int(first or 1)))
    return ends[0], ends[1]


def _amount(name: str, value: str) -> object:
    if name in ("h_rt", "h_cpu"):
        if value.count(":") == 2:
            return sum(int(f or 0) * factor for f, factor in zip(value.split(":"), (3600, 60, 1), strict=True))
        return int(value, 0) if re.fullmatch(r"0x[0-9a-f]+|[1-9]\d*|0", value) else value
    if name in ("h_vmem", "mem_free", "m_mem_free") and (match := re.fullmatch(r"([\d.]+)([kKmMgG]?)", value)):
        power = " kmg".index(match[2].lower() or " ")
        return int(float(match[1]) * (1000 if match[2].islower() else 1024) ** power)
    return {"TRUE": "true"}.get(value, value or "true")


def said(lines: Iterable[str]) -> dict[str, str]:
    """The fields that the directives of a script of ours fill."""
    made: dict[str, str] = {}
    for line in lines:
        found, _ = words(line, 1, 2)
        name, value = found[0].text, " ".join(w.text for w in found[1:])
        if name == "-soft":
            name, value = f"-soft {found[1].text}", " ".join(w.text for w in found[2:])
        if name in ("-l", "-soft -l"):
            field = "soft resource_list" if name.startswith("-soft") else "hard resource_list"
            made[field] = ",".join(filter(None, (made.get(field, ""), value)))
        elif name == "-cwd":
            made["cwd"] = "."
        elif name == "-V":
            made["env_list"] = "(whole submission environment)"
        elif name == "-v":
            made["env_list"] = made.get("env_list") or ",".join(
                part if "=" in part else f"{part}=NONE" for part in value.split(","))
        elif name in FIELDS:
            made[FIELDS[name]] = value
    return made
