"""What is wrong with a document that was made or changed by hand."""

from __future__ import annotations

from sssjob.document.model import Document
from sssjob.findings import Findings
from sssjob.xml._in_order import in_order
from sssjob.xml._rereading import record, reread


def tell_made(document: Document, findings: Findings, profile: str = "liberal") -> None:
    """Record what is wrong with what was made or changed by hand, without what was found when the document was read."""
    if in_order(document):
        return
    from sssjob.xml.writer import text_of

    written = Findings()
    text = text_of(document, written)
    if written.rejected:                # what XML cannot hold cannot be read again
        record([f for f in written if f.rejects], findings)
    else:
        reread(document, text, findings, profile=profile)
