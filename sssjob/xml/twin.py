"""The JSON twin of a job object (format ``sss-json``): the same content, lossless both ways.

The shape, in the order of the document::

    {"Job": {"Id": "PBS.1", "Hold": ["User"], "Charge": {"value": 12.75, "units": "USD"},
             "Requested": [{"Processors": {"value": 8, "op": "GE"}}, {"Duration": 3600}]},
     "File": [{"id": "Script", "text": "echo hello"}]}

* A property is its value: a string, a number with exactly the digits of the document, true or false. With attributes
  it is an object of ``value`` and the attributes (an attribute that is itself called value is ``@value``).
* A container is an object; its own attributes are ``@awarenessPolicy``, ``@export``. What may stand more than once is
  a list there. A reference (``<Job>job123</Job>``) is a string.
* Where an object could not keep the order, a container is a list of objects with one member each, attributes first:
  always for Requested, whose order is an expression; elsewhere when equal names do not stand together or something
  stands more often than it may. Both forms are read everywhere, except that a list under Job, TaskGroup or Task in an
  object is a list of them.
* Names are those of 3.1.0 whatever the document called them; where it used others, ``#spelling`` beside the root says
  which: ``{"Job/Id": "JobId"}`` for every Id of a Job, or by the pointer of one (``"/Job/Hold/0"``).
* Elements of another vocabulary stand under ``#raw`` as ``{tag, attributes, text, children}``; so does an SSSRMAP
  message around the jobs.

Reading makes the XML that the text stands for and hands it to the reader, so names, types, limits and policies hold
in the same way; the paths of findings are JSON pointers.
"""

from sssjob.xml._twin_reading import from_json
from sssjob.xml._twin_writing import ROOTS, repeating, to_json

__all__ = ["ROOTS", "from_json", "repeating", "to_json"]
