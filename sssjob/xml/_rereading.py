"""What is wrong with a document that was made or changed by hand: its text is handed to the reader, whose findings
these are. So a document is judged by one set of rules, however it came to be."""

from __future__ import annotations

from collections import Counter

from sssjob.document.model import Document
from sssjob.errors import RejectedError
from sssjob.findings import Finding, Findings, Policy


def reread(document: Document, text: str, findings: Findings, policy: Policy | None = None,
           profile: str = "liberal") -> None:
    """Record what the reader says of the text that was written of a document, without what it said of the document
    itself when that was read. Nothing where more was found then than is kept: nobody can say what is new.

    policy: instead of the one that the document was read with.
    """
    if document.findings is not None and document.findings.overflow:
        return
    from sssjob.xml.reader import read_document

    try:
        again = read_document(text, profile=profile, policy=policy or document.policy).findings
        all_told = list(again or ())
    except RejectedError as error:
        all_told = list(error.findings)
    already_told = Counter(map(_said, document.findings or ()))
    new = []
    for finding in all_told:
        if already_told[_said(finding)] > 0:
            already_told[_said(finding)] -= 1
        else:
            new.append(finding)
    record(new, findings)


def record(new: list[Finding], findings: Findings) -> None:
    """Record findings of ``reread``: their paths are those of the document, their lines those of a text nobody saw."""
    for f in new:
        findings.add(f.rule, f.subject, f.message, severity=f.severity, path=f.path, hint=f.hint)


def _said(finding: Finding) -> tuple[str, str, str]:
    return finding.rule, finding.subject, finding.message
