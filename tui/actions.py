"""What can be done on the screen, each thing named once. Keys are in keymap.py."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that can be done."""

    textual_action: str  # the name by which Textual runs it
    help: str  # what the help says
    label: str = ""  # in the line of keys, "" = not there


ACTIONS: dict[str, Action] = {
    "help": Action("help", "this help", "help"),
    "quit": Action("app.quit", "quit; what `locktop run` started ends too", "quit"),
    "next_panel": Action("panel(1)", "next panel: locks, threads, details", "panel"),
    "previous_panel": Action("panel(-1)", "previous panel"),
    "details": Action("details", "details of the chosen one; again: the whole screen", "open"),
    "back": Action("back", "back: from the details, from a filter", "back"),
    "deadlock": Action(
        "deadlock", "the deadlock with its stacks; again: potential ones", "deadlock"
    ),
    "sort": Action("sort", "sort by the next column", "sort"),
    "reverse": Action("reverse", "turn the order around", "reverse"),
    "filter": Action("filter", "show only what has these words in it", "filter"),
    "idle": Action("idle", "show or hide what only waits for work", "idle"),
    "callers": Action("callers", "where the waiting comes from: callers", "callers"),
    "level": Action("level", "how much the library does in the program", "level"),
    "pause": Action("pause", "hold the picture still; the counting goes on", "pause"),
    "save": Action("save('json')", "save the picture as JSON in this directory", "save"),
    "save_text": Action("save('text')", "save the picture as text, for a ticket"),
    "faster": Action("rate(1)", "more pictures a second"),
    "slower": Action("rate(-1)", "fewer pictures a second"),
    "theme": Action("app.next_theme", "next theme", "theme"),
    "up": Action("move(-1)", "up"),
    "down": Action("move(1)", "down"),
    "page_up": Action("page(-1)", "a page up"),
    "page_down": Action("page(1)", "a page down"),
    "start": Action("start", "to the first one, and stay on whatever is first"),
    "end": Action("end", "to the last one"),
    "walk": Action("walk", "callers and callees of this one; there: walk on", "function"),
    "expand": Action("open", "open a group of rows (▸), or go into it", "expand"),
    "collapse": Action("close", "close the group (▾), or go out of it"),
    "open": Action("open", "open the branch, or go into it", "open"),
    "close": Action("close", "close the branch, or go out of it", "close"),
    "weight": Action("weight", "weigh by time, count or blame", "weight"),
}
