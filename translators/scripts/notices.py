"""Mail at the events of a job, and the address that gets it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from sssjob.request.asked import Entry
from sssjob.translators.scripts.asking import Asking
from sssjob.translators.scripts.common import SCHEDULER
from sssjob.translators.scripts.raw import Option
from sssjob.translators.scripts.reading import Reading
from sssjob.translators.scripts.rows import APPROXIMATED

__all__ = ["MAIL", "OF_MAIL", "mail", "read_mail"]

#: Where the writer of this module looks.
OF_MAIL: Final = ("NotificationList", SCHEDULER.format("MailEvents"), SCHEDULER.format("MailUser"))
#: Event of ours -> word of the job object; others go to Extension MailEvents.
MAIL: Final = {"begin": "JobStart", "end": "JobEnd", "all": "All", "none": "None"}
_EVENTS: Final = {v: k for k, v in MAIL.items()}


def read_mail(reading: Reading, events: list[str], to: Option | None, option: Option | None) -> None:
    """Events by our names and an address; an address without events is kept as Extension MailUser."""
    events_read = [MAIL[e] for e in MAIL if e in events]
    others = [e for e in events if e not in MAIL]
    address = to.value if to is not None else None
    if events_read and option is not None:
        more = {"uri": address} if address else {}
        reading.put("NotificationList", ",".join(events_read), option, **more)
    if others and option is not None:
        reading.put("Extension[name=MailEvents,type=Scheduler]", ",".join(others), option)
    if address and to is not None and not events_read:
        reading.put("Extension[name=MailUser,type=Scheduler]", address, to)


def mail(asking: Asking, words: Mapping[str, str], near: Mapping[str, str]) -> tuple[list[str], str | None]:
    """Words of the target for the events, and the address, unless it is one for events of which none is carried. near:
    event -> one that is close to it."""
    words_written: list[str] = []
    listed = asking.one("NotificationList", carried=("uri",))
    events = [] if listed is None else [_EVENTS.get(w.strip(), w.strip()) for w in listed.text.split(",") if w.strip()]
    other = asking.extension("MailEvents")
    named = [] if other is None else other.text.split(",")
    for entry, names in ((listed, events), (other, named)):
        for name in names:
            if entry is None:
                continue
            if name in words:
                words_written.append(words[name])
            elif name == "all":
                words_written += [words[n] for n in ("begin", "end", "abort") if n in words]
                asking.note(APPROXIMATED, entry, f"all events are {', '.join(words_written)}", "info")
            elif near.get(name) in words:
                words_written.append(words[near[name]])
                asking.note(APPROXIMATED, entry, f"mail at {name}: {near[name]} is close to it")
            elif name == "none":
                asking.note(APPROXIMATED, entry, "no mail is sent where no option asks for it", "info")
            else:
                asking.dropped(entry, f"no mail at {name}")
    user = asking.extension("MailUser")
    address = None if listed is None or "uri" not in listed.attributes or not words_written else _address(
        asking, listed, listed.attributes["uri"], "NotificationList/@uri")
    if user is not None:
        address = address or _address(asking, user, user.text, "Extension MailUser")
    return list(dict.fromkeys(words_written)), address


_URI: Final = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):(?://)?)?([^/?#]*)(.*)", re.ASCII | re.DOTALL)
#: Schemes whose authority is an address of mail; it is the first one where none is named.
_OF_MAIL: Final = ("smtp", "mailto", "smtps")


def _address(asking: Asking, entry: Entry, uri: str, subject: str) -> str | None:
    """The address in ``[scheme://]authority``; None, with a finding, where that is no address of mail."""
    match = _URI.fullmatch(uri.strip())
    assert match is not None
    scheme, authority, rest = (match[1] or "smtp").lower(), match[2].strip(), match[3]
    if scheme in _OF_MAIL and authority and rest in ("", "/"):
        return authority
    if authority or rest:
        asking.dropped(entry, f"{uri[:80]} is no address of mail, and {asking.dialect.title} notifies by mail alone",
                       subject)
    return None
