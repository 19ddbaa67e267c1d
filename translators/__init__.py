"""Translators: text of other systems to job objects and back, one module a format.

Third parties register a ``Translator`` under the entry-point group ``sssjob.translators``.
"""

from sssjob.translators.base import Kind, ReadContext, Translator, WriteContext
from sssjob.translators.registry import get, names

__all__ = ["Kind", "ReadContext", "Translator", "WriteContext", "get", "names"]
