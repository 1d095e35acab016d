"""The process picker: a list of processes with a filter, those with stuck threads first."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from locktop.collector.errors import LocktopError
from locktop.collector.sources.discover import Candidate
from locktop.collector.sources.stuck_survey import StuckThreads, survey
from locktop.tui.bindings import bindings
from locktop.tui.input_options import DEFAULT_INPUT, InputOptions
from locktop.tui.screen_actions import PICKER
from locktop.tui.terminal.driver import Meter
from locktop.tui.themed_app import ThemedApp, run_app
from locktop.tui.views.cells import duration, fit_right
from locktop.tui.views.sorting import matches
from locktop.tui.views.styled_line import Line, make_line
from locktop.tui.views.table import Cell, Column, lay_out
from locktop.tui.widgets.one_list_screen import OneListScreen

if TYPE_CHECKING:
    from locktop.collector.sources.attach import Source

Lister = Callable[[], Sequence[Candidate]]
Attach = Callable[[int], "Source"]
Survey = Callable[[int], StuckThreads | None]

#: Seconds for the survey of all processes. Those that come later stay without figures.
_SURVEY_S = 3.0

_NOT_STUCK = StuckThreads(0, 0.0)


class ProcessPickerScreen(OneListScreen):
    """The processes that can be watched, then the others with the reason why they cannot."""

    SCREEN = PICKER
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(*PICKER.actions)]

    def __init__(self, lister: Lister, attach: Attach, survey: Survey) -> None:
        super().__init__("processes")
        self._lister = lister
        self._open_source = attach
        self._survey = survey
        self._candidates: dict[int, Candidate] = {}
        self._stuck: dict[int, StuckThreads] = {}  # by pid

    def on_mount(self) -> None:
        """Scan for processes."""
        self.action_rescan()

    def action_rescan(self) -> None:
        """Scan for processes again."""
        self._candidates = {candidate.pid: candidate for candidate in self._lister()}
        self._stuck = {}
        self.apply_filter()
        self.start(self._survey_processes, "survey")

    async def _survey_processes(self) -> None:
        until = time.monotonic() + _SURVEY_S
        ready = [candidate for candidate in self._candidates.values() if candidate.preloaded]
        # A process of many threads is the likeliest one to be stuck.
        for pid in [
            candidate.pid for candidate in sorted(ready, key=lambda candidate: -candidate.threads)
        ]:
            if time.monotonic() > until:
                return
            stuck = await asyncio.to_thread(self._survey, pid)
            if stuck is not None:
                self._stuck[pid] = stuck
                self.apply_filter()

    def apply_filter(self) -> None:
        width = self.size.width
        ready = sum(candidate.preloaded for candidate in self._candidates.values())
        self.first_line.show((make_line((" locktop", "strong"), "  which process?"),))
        self.headline_lines.show(_advice(ready))
        self.show_keys()
        visible = [
            pid for pid, c in self._candidates.items() if matches(_words(c), self.filter_words)
        ]
        visible.sort(key=self._rank)
        table = lay_out(self._columns, width)
        said = f"{ready} of {len(self._candidates)} run with the library"
        if self.filter_words:
            said += f", with “{self.filter_words}”"
        self._list.set_heads("Processes", said, table.heading())
        self._list.show(visible, lambda pid: table.line(self._candidates[pid]))

    def _rank(self, pid: int) -> tuple[object, ...]:
        """A sort key. Sorting is stable: equal ones stay in the order of the lister."""
        stuck = self._stuck.get(pid, _NOT_STUCK)
        return not self._candidates[pid].preloaded, stuck.rank

    @cached_property
    def _columns(self) -> tuple[Column[Candidate], ...]:
        return (
            Column("PID", 7, lambda c: (str(c.pid), _style(c)), fitting=fit_right),
            Column("USER", 9, lambda c: (c.user, _style(c)), from_width=100),
            Column(
                "THREADS",
                7,
                lambda c: (str(c.threads), _style(c)),
                fitting=fit_right,
                from_width=100,
            ),
            Column("WAITING", 7, self._waiting, fitting=fit_right),
            Column("LONGEST", 7, self._longest, fitting=fit_right),
            Column("NAME", 12, lambda c: (c.comm, "strong" if c.preloaded else "dim")),
            Column("COMMAND", 14, lambda c: (c.cmdline, _style(c)), grow=2),
            Column("", 16, self._state, grow=3),
        )

    def _waiting(self, candidate: Candidate) -> Cell:
        stuck = self._stuck.get(candidate.pid)
        if stuck is None:
            return "-", "dim"
        return str(stuck.waiting), "waiting" if stuck.waiting else "dim"

    def _longest(self, candidate: Candidate) -> Cell:
        stuck = self._stuck.get(candidate.pid)
        if stuck is None or not stuck.waiting:
            return "-", "dim"
        return duration(stuck.longest_s), "waiting"

    def _state(self, candidate: Candidate) -> Cell:
        stuck = self._stuck.get(candidate.pid, _NOT_STUCK)
        if stuck.deadlock:
            return ("DEADLOCK" if stuck.deadlock == "certain" else "possible deadlock"), "stuck"
        return _why(candidate)

    def action_everything(self) -> None:
        """Clear the filter."""
        self.filter.value = ""
        self.filter.close()

    def action_pick(self) -> None:
        """Choose the process under the cursor, or show why it cannot be watched."""
        current = self._list.current
        if current is None:
            return
        candidate = self._candidates[current]
        try:
            self.app.exit(self._open_source(candidate.pid))
        except LocktopError as error:
            self.show_error(error)
            self.action_rescan()


class PickerApp(ThemedApp["Source"]):
    """Lets the user choose a process; the result is a source for it."""

    TITLE = "locktop"

    def __init__(
        self,
        lister: Lister,
        attach: Attach,
        theme: str | None = None,
        survey: Survey = survey,
        input_options: InputOptions = DEFAULT_INPUT,
    ) -> None:
        super().__init__(theme, Meter(), os.environ, input_options)
        self._picker = ProcessPickerScreen(lister, attach, survey)

    def get_default_screen(self) -> ProcessPickerScreen:
        """The list is the only screen."""
        return self._picker


def pick(
    theme: str | None, attach: Attach, input_options: InputOptions
) -> tuple[Source | None, int]:
    """Let the user pick a process; return its source, None without a choice, and the status."""
    from locktop.collector.sources.discover import candidates

    app = PickerApp(candidates, attach, theme, input_options=input_options)
    status = run_app(app)
    return app.return_value, status


def _advice(ready: int) -> tuple[Line, ...]:
    """The advice above the list: three lines if no process runs with the library, else one."""
    if ready:
        text = " Those that run with the library come first, and of these the stuck ones."
        return (make_line((text, "dim")),)
    return (
        make_line((" No process runs with the library. ", "waiting"), "Start one with it:"),
        make_line(
            ("     locktop run -- COMMAND", "strong"),
            "   or   ",
            ('eval "$(locktop env)"; COMMAND', "strong"),
        ),
        make_line(" ", ("Enter", "key"), " watches one without it, by samples, and shows less."),
    )


def _words(candidate: Candidate) -> str:
    return f"{candidate.pid} {candidate.user} {candidate.comm} {candidate.cmdline}"


def _style(candidate: Candidate) -> str:
    return "text" if candidate.preloaded else "dim"


def _why(candidate: Candidate) -> Cell:
    # The column is narrow. Enter shows the whole reason.
    why = candidate.why.removeprefix("it ").removeprefix("is ")
    return ("ready", "running") if candidate.preloaded else (why, "dim")
