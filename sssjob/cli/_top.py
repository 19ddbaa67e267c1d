"""The live view of ``sssjob top``, with textual, which is imported here and nowhere else."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, ClassVar, Final

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import DataTable, Footer, Label, Static
from textual.worker import get_current_worker

from sssjob.cli._top_tables import TITLES, cells, key_of, refreshed
from sssjob.cli.list_ import TITLES as JOB_TITLES
from sssjob.cli.list_ import job_cells
from sssjob.findings import escape

if TYPE_CHECKING:
    from sssjob.run.client import Client
    from sssjob.run.overview import Overview

_WISHES: Final = {"hold": "held", "release": "released", "cancel": "cancelled"}
_ANSWER_S: Final = 10.0
#: Columns of jobs in the order of the view: the first ones, and the beginning of why, are seen in 80 columns.
_FIRST: Final = ("id", "key", "native id", "state", "time", "why")
_ORDER: Final = sorted(range(len(JOB_TITLES)), key=lambda n: (*_FIRST, JOB_TITLES[n]).index(JOB_TITLES[n]))
_MOST: Final = 1_000            # jobs that are shown; to draw ten thousand takes seconds, in which no key counts


class _Question(ModalScreen[bool]):
    """A question that y answers, and any other key denies."""

    CSS = ("_Question { align: center middle; } "
           "#question { width: auto; height: auto; border: round $accent; padding: 1; }")
    BINDINGS: ClassVar[list[BindingType]] = [("y", "answer(True)", "yes"), ("n,escape,q", "answer(False)", "no")]

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def compose(self) -> ComposeResult:
        """The question in the middle."""
        yield Vertical(Label(Text(f"{self.text} (y/n)")), id="question")

    def action_answer(self, yes: bool) -> None:
        """Leave with the answer."""
        self.dismiss(yes)


class Top(App[None]):
    """The view. client: who is asked, in a thread of its own. interval: seconds between two looks."""

    CSS = "#groups { height: auto; max-height: 40%; } #jobs { height: 1fr; } #told { height: 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"), Binding("h", "wish('hold')", "hold"), Binding("r", "wish('release')", "release"),
        Binding("c", "wish('cancel')", "cancel"), Binding("tab", "focus_next", "groups/jobs")]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, client: Client, interval: float) -> None:
        super().__init__()
        self.client, self.interval = client, interval
        self.found: list[Overview] = []
        self._drawn: dict[str, dict[str, list[str]]] = {}       # what each table shows: key of a row -> its cells
        self._more = 0                                          # jobs that are not shown
        self.opened = ""        # the key of the group of which all jobs are shown; empty: those of all that go on
        self.wanted: list[tuple[str, str]] = []         # wish and key of a job, that nobody has asked for yet

    def compose(self) -> ComposeResult:
        """Groups above, jobs below, then what was told last."""
        yield DataTable(id="groups", cursor_type="row")
        yield DataTable(id="jobs", cursor_type="row")
        yield Static("", id="told", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Begin to look."""
        self.query_one("#groups", DataTable).add_columns(*TITLES)
        self.query_one("#jobs", DataTable).add_columns(*(JOB_TITLES[n] for n in _ORDER))
        self.query_one("#jobs").focus()
        self.run_worker(self.looking, thread=True, exclusive=True)

    def looking(self) -> None:
        """In a thread: carry out wishes and look, again and again."""
        worker = get_current_worker()
        while not worker.is_cancelled:
            while self.wanted:
                answer = self.asked(*self.wanted.pop(0))
                self.call_from_thread(self.tell, answer)
            begun = time.monotonic()
            overviews = refreshed(self.client)
            if worker.is_cancelled:
                return
            self.call_from_thread(self.show, overviews)
            now = time.monotonic()
            until = now + max(self.interval, now - begun)       # no more than half of the time is spent on looking
            while time.monotonic() < until and not (worker.is_cancelled or self.wanted):
                time.sleep(0.05)

    def asked(self, wish: str, key: str) -> str:
        """Ask for something; what became of it, in words."""
        keys = key.split()
        if wish == "cancel":
            jobs, done = self.client.cancel(keys, _ANSWER_S)
            answers = Counter(["cancelled" if done else "its end is asked for"])
        else:
            jobs = self.client.ask(wish, keys, _ANSWER_S)
            answers = Counter(job.answers.get(wish, "it has ended" if job.ended else "asked for, and not done yet")
                              or _WISHES[wish] for job in jobs)
        name = jobs[0].plan.label if len(jobs) == 1 else key
        return f"{name}: " + "; ".join(text if len(answers) == 1 else f"{text} ({number} of {len(jobs)} jobs)"
                                       for text, number in answers.most_common())

    def tell(self, text: str) -> None:
        """Show a line at the bottom."""
        self.query_one("#told", Static).update(escape(text, 200))

    def show(self, overviews: list[Overview]) -> None:
        """Show both tables as they are now; the cursors stay where they are."""
        self.found = overviews
        now = time.time()
        most = max(self.size.width * 3 // 10, 12)       # of a name; behind it stands how the job, or the group, goes on
        groups = {key_of(overview): _with_short_name(cells(overview), 1, most) for overview in overviews}
        if self.opened not in groups:
            self.opened = ""
        shown = [job for overview in overviews for job in overview.jobs
                 if key_of(overview) == self.opened or not (self.opened or job.row.outcome)]
        self._draw("#groups", groups)
        texts = {job.row.key: job_cells(job, now) for job in shown[:_MOST]}
        self._draw("#jobs", {key: _with_short_name([row[n] for n in _ORDER], 0, most) for key, row in texts.items()})
        more = max(len(shown) - _MOST, 0)
        if more and not self._more:         # once: an answer to a wish stays to be read
            self.tell(f"{more} more jobs are not shown here; `sssjob list` has them")
        self._more = more

    def _draw(self, name: str, rows: dict[str, list[str]]) -> None:
        """Have a table show these rows. Where they are the same ones, only cells that have changed are drawn."""
        table, before = self.query_one(name, DataTable), self._drawn.get(name, {})
        self._drawn[name] = rows
        if list(before) == list(rows):
            for key, texts in rows.items():
                for column, text, earlier in zip(table.columns, texts, before[key], strict=True):
                    if text != earlier:
                        table.update_cell(key, column, Text(escape(text)), update_width=True)
            return
        row = table.cursor_row
        table.clear()
        for key, texts in rows.items():
            table.add_row(*(Text(escape(text)) for text in texts), key=key)
        table.move_cursor(row=min(row, max(len(rows) - 1, 0)))

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Open the group under the cursor, or close the one that is open."""
        if event.data_table.id == "groups":
            key = str(event.row_key.value)
            self.opened = "" if self.opened == key else key
            self.show(self.found)

    def action_wish(self, wish: str) -> None:
        """Ask about the job, or the group, under the cursor."""
        focused = self.focused
        if not isinstance(focused, DataTable) or not focused.row_count:
            return
        key = str(focused.coordinate_to_cell_key(focused.cursor_coordinate).row_key.value)
        self.push_screen(_Question(f"Is {key} to be {_WISHES[wish]}?"),
                         lambda yes: self.wanted.append((wish, key)) if yes else None)


def _with_short_name(cells: list[str], column: int, most: int) -> list[str]:
    """The cells of a row, with the beginning and the end of a long name: many names differ in the end alone."""
    name = cells[column]
    if len(name) > most:
        cells[column] = f"{name[:most // 2]}…{name[1 - most + most // 2:]}"
    return cells


def live(client: Client, interval: float) -> int:
    """Show the view until q is pressed; the exit status."""
    Top(client, interval).run()
    return 0
