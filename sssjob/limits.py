"""Named limits for everything that is read.

One frozen object holds every number; a caller raises one with ``dataclasses.replace(LIMITS, text=...)``. Hitting a
limit is a rejecting finding (or a ``LimitError``) that names the field below. Source of the defaults: the project's
threat list (README, "Bad input").
"""

from __future__ import annotations

from dataclasses import dataclass, fields

__all__ = ["LIMITS", "Limits"]

MIB = 1 << 20


@dataclass(frozen=True, slots=True, repr=False)
class Limits:
    """Sizes in bytes (``*_bytes``, ``text``), times in seconds (``*_seconds``), all others are counts."""

    document_bytes: int = 512 * MIB          # a document read whole
    spool_bytes: int = 64 << 30              # a pipe that is kept on the disk because it is read more than once
    document_elements: int = 20_000_000      # elements of a document read whole
    whole_bytes: int = 4 * MIB               # a JobGroup read whole; larger ones are read part by part
    part_bytes: int = 80_000                 # one such part, at least
    child_bytes: int = 64 * MIB              # one child of the root, read as a stream
    child_elements: int = 2_000_000          # elements of one such child
    depth: int = 100                         # nesting of elements, JSON or brackets of text
    attributes: int = 256                    # attributes of one element
    text: int = 10 * MIB                     # one text node
    identifier: int = 1_024                  # characters of an identifier
    nodes: int = 1_000_000                   # members of a node set once expanded
    pattern_seconds: float = 1.0             # one match of a pattern
    query_seconds: float = 10.0              # one evaluation of a query (per Job when streamed)
    group_depth: int = 64                    # open brackets of group=
    message_bytes: int = 64 * MIB            # an SSSRMAP message, with what it carries
    message_seconds: float = 60.0            # to receive one message, or one piece of an answer
    head_bytes: int = 16 << 10               # request or status line of HTTP, with all headers
    chunks: int = 10_000                     # HTTP chunks of one message
    body_bytes: int = 16 * MIB               # a body that a server is sent
    answer_bytes: int = 64 * MIB             # objects that a server answers one query with
    conditions: int = 10_000                 # parts of one request: conditions, properties, options
    combinations: int = 200_000              # of several objects, that one query selects
    files: int = 1_000                       # File objects beside a document
    files_bytes: int = 64 * MIB              # the content of all of these
    script_bytes: int = 10 * MIB             # a batch script
    yaml_bytes: int = MIB                    # YAML, whose parser is slow
    toml_bytes: int = MIB                    # TOML: a profile, rates
    shell_bytes: int = MIB                   # a script body whose shell is parsed
    shell_broken_bytes: int = 64 << 10       # a body of which parts do not parse
    shell_seconds: float = 1.0               # of the processor, to parse one body
    shell_uses: int = 2_000                  # names of a resource manager in one body
    shell_words: int = 1_000                 # words of one command that are looked at
    directive: int = 64 << 10                # characters of a directive whose words shlex has to find
    findings: int = 1_000                    # findings kept for one document
    array_elements: int = 10_000             # elements of one array of jobs
    retries: int = 100                       # further attempts of one job
    sweep_jobs: int = 10_000                 # jobs that a sweep makes of one
    count: int = 10**9                       # processors, nodes or tasks that a job may ask for
    amount_bytes: int = 1 << 70              # memory, disk or swap that a job may ask for
    seconds: int = 10**11                    # Duration that a job may ask for
    moment: int = 253_402_214_400            # 9999-12-31 UTC, after which no calendar goes in every zone
    digits: int = 64                         # digits of one number
    hook_seconds: float = 60.0               # a command of --on-end
    hook_post_seconds: float = 10.0          # without an answer, when --on-end posts to a URL
    recognise_bytes: int = 64 << 10          # the beginning of a text, by which documents and records are recognised

    def __repr__(self) -> str:
        """Only what differs from the defaults: signatures that ``help()`` prints would be longer than all else."""
        changed = [f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if getattr(self, f.name) != f.default]
        return f"Limits({', '.join(changed)})"


LIMITS = Limits()
