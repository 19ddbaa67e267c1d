"""Formats of one job each, or of documents: SSS job objects, PSI/J, Flux jobspec, JSDL."""
