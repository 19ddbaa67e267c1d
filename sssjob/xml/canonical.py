"""The canonical form of a document: one text for all documents that say the same in the same order, and its digest.

Names are those of 3.1.0, values have their strict spelling, attributes are sorted, ``op``, ``conj`` and ``group`` are
left out where they say their default, and no white space stands between elements (XML Canonicalization 1.0 without
comments). The order of elements stays: it is data here. Nothing is computed: ``1 GB`` and ``1024 MB`` are two texts
(``sssjob diff`` compares meanings).
"""

from __future__ import annotations

import hashlib
from typing import Any

from lxml import etree

from sssjob.document.model import Container, Document
from sssjob.document.vocabulary import SILENT
from sssjob.findings import Findings, Policy
from sssjob.xml.writer import write_document
from sssjob.xml.xmlio import parse_tree

__all__ = ["canonical", "canonical_tree", "digest"]

def canonical(document: Document | Container) -> bytes:
    """The canonical form, in UTF-8 without a declaration. Raises RejectedError for what cannot be written."""
    return etree.tostring(canonical_tree(document), method="c14n", with_comments=False)


def digest(document: Document | Container) -> str:
    """SHA-256 of the canonical form, in hexadecimal digits."""
    return hashlib.sha256(canonical(document)).hexdigest()


def canonical_tree(document: Document | Container) -> Any:
    """The document as a tree of lxml, without white space between elements and attributes that say their default."""
    findings = Findings()
    text = write_document(document, profile="3.1", findings=findings, policy=Policy.IGNORE)
    findings.raise_if_rejected()
    root = parse_tree(text.encode(), findings=findings, repairs=False)
    for element in root.iter(etree.Element):
        for name, value in SILENT:
            if element.get(name) == value:
                del element.attrib[name]
    return root
