"""What pages refer to is there: files, their headings, options of commands."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from tests.commands import commands

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
#: Pages that name options of sssjob's commands alone; the others name those of resource managers and benchmarks too.
OF_COMMANDS = ("account", "centre", "charging", "cli", "config", "decisions", "exchange", "facts", "failures",
               "flux-exec", "journal", "ledger", "mjf", "sites")
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)")


def anchors(page: Path) -> set[str]:
    """The names of a page's headings as they are rendered, and those that it sets itself."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings} | set(
        re.findall(r'<a id="([^"]+)"', text))


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    wrong = []
    for name, anchor in LINK.findall(text):
        target = (page.parent / name) if name else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            wrong.append(f"{name}#{anchor}" if anchor else name)
    assert wrong == []


@pytest.mark.parametrize("page", OF_COMMANDS)
def test_options_are_there(page: str) -> None:
    options = {spelling for _, command in commands() for option in command.params if isinstance(option, click.Option)
               for spelling in (*option.opts, *option.secondary_opts)} | {"--help", "--version"}
    text = (ROOT / "docs" / f"{page}.md").read_text()
    assert [option for option in re.findall(r"`(--[a-z][a-z0-9-]+)", text) if option not in options] == []
