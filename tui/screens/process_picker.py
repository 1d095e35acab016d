"""The process picker: a list of processes with a filter, those with stuck threads first."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from locktop.collector.errors import LocktopError
from locktop.collector.sources.discover import Candidate
from locktop.collector.sources.stuck_survey import StuckThreads, SurveyStep, rank, survey_all
from locktop.tui.bindings import bindings
from locktop.tui.input_options import DEFAULT_INPUT, InputOptions
from locktop.tui.screen_actions import PICKER
from locktop.tui.terminal.driver import Meter
from locktop.tui.themed_app import ThemedApp, run_app
from locktop.tui.views.cells import fit_right, lasting
from locktop.tui.views.sorting import matches
from locktop.tui.views.styled_line import Line, make_line
from locktop.tui.views.table import Cell, Column, lay_out
from locktop.tui.widgets.one_list_screen import OneListScreen

if TYPE_CHECKING:
    from locktop.collector.sources.attach import Source

Lister = Callable[[], Sequence[Candidate]]
Attach = Callable[[int], "Source"]
Survey = Callable[[Sequence[Candidate]], Iterator[SurveyStep]]


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
        self._surveyed: set[int] = set()  # the pids that the survey has come to

    def on_mount(self) -> None:
        """Scan for processes."""
        self.action_rescan()

    def action_rescan(self) -> None:
        """Scan for processes again."""
        before = self._candidates
        self._candidates = {candidate.pid: candidate for candidate in self._lister()}
        self._stuck = {
            pid: stuck
            for pid, stuck in self._stuck.items()
            if pid in self._candidates and self._candidates[pid].cmdline == before[pid].cmdline
        }
        self._surveyed = set()
        self.apply_filter()
        self.start(self._survey_processes, "survey")

    async def _survey_processes(self) -> None:
        steps = self._survey(list(self._candidates.values()))
        while (step := await asyncio.to_thread(next, steps, None)) is not None:
            self._surveyed.add(step.pid)
            self._take_over(step)
            self.apply_filter()
            await asyncio.sleep(step.pause_s)
        self._surveyed = set(self._candidates)
        self.apply_filter()

    def _take_over(self, step: SurveyStep) -> None:
        """Keep what a step tells, unless the survey before knows more than a glance."""
        former = self._stuck.get(step.pid)
        if not step.is_last and (step.stuck is None or (former and former.may_be_stuck)):
            return
        self._stuck.pop(step.pid, None)
        if step.stuck is not None:
            self._stuck[step.pid] = step.stuck

    def apply_filter(self) -> None:
        width = self.size.width
        ready = sum(candidate.preloaded for candidate in self._candidates.values())
        self.status_row.show((make_line((" locktop", "strong"), "  which process?"),))
        self.headline_lines.show(_advice(ready))
        self.show_keys()
        visible = [
            pid for pid, c in self._candidates.items() if matches(_words(c), self.filter_words)
        ]
        visible.sort(key=self._rank)
        table = lay_out(self._columns, width)
        said = f"{ready} of {len(self._candidates)} run with the library"
        if len(self._surveyed) < len(self._candidates):
            said += f", {len(self._surveyed)} scanned so far"
        if self.filter_words:
            said += f", with “{self.filter_words}”"
        self._list.set_heads("Processes", said, table.heading())
        self._list.show(visible, lambda pid: table.line(self._candidates[pid]))

    def _rank(self, pid: int) -> tuple[object, ...]:
        """A sort key. Sorting is stable: equal ones stay in the order of the lister."""
        return rank(self._candidates[pid], self._stuck.get(pid))

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
            Column("LONGEST", 7, self._longest, fitting=fit_right, from_width=50),
            Column("NAME", 12, lambda c: (c.comm, "strong" if c.preloaded else "dim")),
            Column("COMMAND", 14, lambda c: (c.command, _style(c)), grow=2, from_width=60),
            Column("STATE", 16, self._state, grow=3),
        )

    def _waiting(self, candidate: Candidate) -> Cell:
        stuck = self._stuck.get(candidate.pid)
        if stuck is None:
            return "-", "dim"
        return str(stuck.waiting), "waiting" if stuck.waiting else "dim"

    def _longest(self, candidate: Candidate) -> Cell:
        stuck = self._stuck.get(candidate.pid)
        if stuck is None or not stuck.longest_s:
            return "-", "dim"
        return lasting(stuck.longest_s, stuck.is_lower_bound), "waiting"

    def _state(self, candidate: Candidate) -> Cell:
        stuck = self._stuck.get(candidate.pid)
        if stuck is None or not stuck.state:
            return _why(candidate)
        return stuck.state, "stuck" if stuck.deadlock else "waiting"

    def action_help(self) -> None:
        """Show the keys of this screen."""
        self.show_help(only_keys=True)

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
        survey: Survey = survey_all,
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
        text = " Stuck ones come first, then those with the library; those of one thread last."
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
