"""Formats that describe jobs without a script: the SSS job object itself, PSI/J, Flux jobspec and JSDL."""
