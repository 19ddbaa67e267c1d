"""What ``convert`` and other commands learn about a site: its profile, and the ids that jobs got there."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from sssjob.cli._complete import files
from sssjob.cli._files import read_bytes
from sssjob.errors import AccessError, SSSJobError, UsageError
from sssjob.findings import escape

if TYPE_CHECKING:
    from sssjob.conversion.site import Site

#: An id as dependencies can name it.
_ID: Final = re.compile(r"(?!-)[^\s@:,?+\"'\\]{1,1024}")


class IdMapError(SSSJobError, ValueError):
    """A list of ids that is wrong; the message names the line or the key."""


def site_option(function: Callable[..., int]) -> Callable[..., int]:
    """``--site FILE``."""
    return click.option("--site", "site_file", metavar="FILE", shell_complete=files,
                        help="What only the site knows, a TOML file, or its name in the configuration: names, "
                             "time zone, units, parallel environments ...")(function)


def load_site(name: str | None) -> tuple[Site | None, str]:
    """The site of a file, or of a name in the folder of the configuration, with its path; None without one. Raises
    SiteError, AccessError, UsageError."""
    if name is None:
        return None, ""
    from sssjob.conversion.settings import site_file
    from sssjob.conversion.site import read_site

    path = site_file(name)
    if path == name and os.sep not in name and "." not in name and name != "-" and not os.path.exists(name):
        named = ", ".join(profiles())
        raise UsageError(f"there is no site {escape(name)!r}, nor a file of that name (known: {named or 'none'})")
    return read_site(read_bytes(path), escape(path)), escape(path)


def profiles() -> dict[str, tuple[str, Site | SSSJobError]]:
    """The profiles beside the configuration, by name: the path, and the profile or what is wrong with it. The rates of
    sites lie there too."""
    from sssjob.conversion.settings import site_files
    from sssjob.conversion.site import SiteError

    read: dict[str, tuple[str, Site | SSSJobError]] = {}
    for name, path in site_files().items():
        try:
            read[name] = path, load_site(path)[0] or UsageError(f"{path}: no profile")
        except (SiteError, AccessError) as error:
            read[name] = path, error
    rates = {os.path.join(os.path.dirname(path), site.rates) for path, site in read.values()
             if not isinstance(site, SSSJobError) and site.rates is not None}
    return {name: (path, site) for name, (path, site) in read.items() if path not in rates or not isinstance(
        site, SSSJobError)}


def load_ids(name: str | None) -> Mapping[str, str]:
    """Old id -> new id, from a JSON object (a whole number is its digits) or from CSV of two columns.

    Raises IdMapError, AccessError.
    """
    if name is None:
        return {}
    shown = escape(name)
    try:
        text = read_bytes(name).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise IdMapError(f"{shown}: not UTF-8") from None
    new_ids: dict[str, str] = {}
    for where, old, new in _object(text, shown) if text.lstrip().startswith("{") else _rows(text, shown):
        old = old[7:-1] if old.startswith("@JOBID:") and old.endswith("@") else old
        for ident in (old, new):
            if not _ID.fullmatch(ident):
                raise IdMapError(f"{shown}:{where}: {escape(ident, 80)!r} is no id of a job")
        if new_ids.setdefault(old, new) != new:
            raise IdMapError(f"{shown}:{where}: {escape(old, 80)} has two new ids, {new_ids[old]} and "
                             f"{escape(new, 80)}")
    return new_ids


def _object(text: str, shown: str) -> Iterator[tuple[str, str, str]]:
    from sssjob.xml._faults import parse_fault

    try:
        pairs = json.loads(text, object_pairs_hook=list, parse_int=str)
    except (ValueError, RecursionError) as error:
        raise IdMapError(f"{shown}: {escape(parse_fault(error))}") from None
    for old, new in pairs:
        if not isinstance(new, str):
            raise IdMapError(f"{shown}: {escape(old, 80)}: an id is a text or a whole number")
        yield escape(old, 80), old, new


def _rows(text: str, shown: str) -> Iterator[tuple[int, str, str]]:
    import csv

    reader: Any = csv.reader(io.StringIO(text), strict=True)
    try:
        for row in reader:
            if not row or row == ["old", "new"] or row[0].startswith("#"):
                continue
            if len(row) != 2:
                raise IdMapError(f"{shown}:{reader.line_num}: a line is OLD,NEW and not of {len(row)} fields")
            yield reader.line_num, row[0].strip(), row[1].strip()
    except csv.Error as error:
        raise IdMapError(f"{shown}:{reader.line_num}: not CSV: {error}") from None
