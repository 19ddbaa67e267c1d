"""A server in front of the journal and the ledger, for programs on other machines: documents over HTTP and SSSRMAP.

``desk`` does what is asked, whoever asks in whatever form; ``web`` is HTTP with JSON and XML. ``access`` tells users
apart. Needs the extra ``serve``, but for ``access`` and ``desk``.
"""
