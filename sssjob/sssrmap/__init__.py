"""SSSRMAP, the messages in which the job object travels: a typed model, its reader and its writer.

Source: SSSRMAP message format 3.0.4 and wire protocol 3.0.4, as Gold 2.2 and Maui 3.3 speak them.
"""

from sssjob.sssrmap.model import (
    SAFE,
    Count,
    Data,
    Envelope,
    File,
    Foreign,
    Get,
    MessageError,
    Object,
    Option,
    Request,
    Response,
    Set,
    Signature,
    Status,
    Token,
    Where,
)
from sssjob.sssrmap.reader import read_message, status_of
from sssjob.sssrmap.writer import write_message

__all__ = ["SAFE", "Count", "Data", "Envelope", "File", "Foreign", "Get", "MessageError", "Object", "Option", "Request",
           "Response", "Set", "Signature", "Status", "Token", "Where", "read_message", "status_of", "write_message"]
