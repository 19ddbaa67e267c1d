"""The ground floor: what resource managers say and how they spell it, one module a manager.

Native states and exit words, grammars (sizes, clocks, lists of hosts, sets of numbers), environment variables, and
readers of machine output. Script dialects, executors and accounting readers take these facts from here. Nothing in
this room knows a document; it imports nothing of sssjob but ``errors`` and ``limits``.
"""
