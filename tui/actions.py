"""The actions of the screen, each named once. keymap.py has their keys."""

from __future__ import annotations

from msgspec import Struct


class Action(Struct, frozen=True):
    """One action of the screen."""

    textual_action: str  # the name by which Textual runs it
    help: str  # what the help says
    label: str = ""  # in the line of keys, "" = not there


ACTIONS: dict[str, Action] = {
    "help": Action("help", "this help", "help"),
    "quit": Action("app.quit", "quit; asks before what `locktop run` started ends", "quit"),
    "next_panel": Action("panel(1)", "next panel: locks, threads, details", "panel"),
    "previous_panel": Action("panel(-1)", "previous panel"),
    "details": Action(
        "details", "details of the row; there: on to the holder, to its lock", "open"
    ),
    "zoom": Action("zoom", "the details on the whole screen, and back", "zoom"),
    "back": Action("back", "back: from the details, from a filter", "back"),
    "deadlock": Action(
        "deadlock", "the deadlock with its stacks; again: potential ones", "deadlock"
    ),
    "sort": Action("sort", "sort by the next column", "sort"),
    "reverse": Action("reverse", "reverse the order", "reverse"),
    "filter": Action("filter", "show only rows with these words", "filter"),
    "columns": Action("choose('columns')", "choose the columns of this list, and keep them"),
    "views": Action("choose('views')", "saved views: take one, or save this filter"),
    "idle": Action("idle", "show or hide rows that only wait for work", "idle"),
    "callers": Action("callers", "where the waiting comes from: callers", "callers"),
    "inside": Action("view('inside')", "what runs inside the chosen lock, by samples", "inside"),
    "calls": Action("view('calls')", "function calls of an instrumented program", "calls"),
    "timeline": Action("timeline", "what each thread did when, and who woke whom", "time line"),
    "heat_map": Action("heat_map", "when the waiting was: choose spans, compare them"),
    "profiles": Action("view('profiles')", "profiles that the program makes of its own code"),
    "level": Action("level", "how much the library does in the program", "level"),
    "start_session": Action("session('start')", "measure from zero: begin a session", "zero"),
    "stop_session": Action("session('stop')", "end the session: figures since the start"),
    "pause": Action("pause", "hold the screen still; in the past: play", "pause"),
    "save": Action("save('json')", "save the snapshot as JSON in this directory", "save"),
    "save_text": Action("save('text')", "save the snapshot as a text report"),
    "save_past": Action("save_past", "save the last minutes, for `locktop replay`"),
    "faster": Action("rate(1)", "more snapshots a second; in the past: play faster"),
    "slower": Action("rate(-1)", "fewer snapshots a second; in the past: play slower"),
    "theme": Action("app.next_theme", "next theme", "theme"),
    "up": Action("move(-1)", "up"),
    "down": Action("move(1)", "down"),
    "page_up": Action("page(-1)", "a page up"),
    "page_down": Action("page(1)", "a page down"),
    "step_back": Action("step(-1)", "the past: one snapshot back", "past"),
    "step_forth": Action("step(1)", "one snapshot forth", "forth"),
    "jump_back": Action("jump(-1)", "to the alert or mark before", "alert before"),
    "jump_forth": Action("jump(1)", "to the next alert or mark", "next"),
    "mark": Action("mark", "mark this moment, for { and }", "mark"),
    "compare": Action("compare", "the waits since the last mark minus those before it"),
    "choose_time": Action("choose_time", "go to a time: 12:03:04, -35s, +10m or 50%", "time"),
    "start": Action("start", "to the first row, and stay on the first row"),
    "end": Action("end", "to the last row"),
    "oldest": Action("oldest", "to the first row; in the past: to the oldest moment"),
    "newest": Action("newest", "to the last row; in the past: to now", "now"),
    "walk": Action("walk", "callers and callees of this function; there: walk on", "function"),
    "expand": Action("open", "open a group of rows (▸), or go into it", "expand"),
    "collapse": Action("close", "close the group (▾), or go out of it"),
    "open": Action("open", "open the branch, or go into it", "open"),
    "close": Action("close", "close the branch, or go out of it", "close"),
    "weight": Action("weight", "weigh by time, count or blame", "weight"),
    "view_overview": Action("app.go('overview')", "view: health, worst lock, longest chain"),
    "view_locks": Action("app.go('locks')", "view: locks"),
    "view_threads": Action("app.go('threads')", "view: threads"),
    "view_blocking": Action("app.go('blocking')", "view: root holders, and who waits behind them"),
    "view_deadlocks": Action("app.go('deadlocks')", "view: deadlocks, also potential ones"),
    "view_callers": Action("app.go('callers')", "view: where the waiting comes from"),
    "view_details": Action("app.go('details')", "view: details of the chosen row"),
    "view_timeline": Action("app.go('timeline')", "view: what each thread did when"),
    "view_history": Action("app.go('history')", "view: when the waiting was"),
    "view_inside": Action("app.go('inside')", "view: what runs inside the chosen lock"),
    "earlier": Action("cell(-1)", "a cell to the left"),
    "later": Action("cell(1)", "a cell to the right", "move"),
    "pan_earlier": Action("pan(-1)", "half a screen to the left"),
    "pan_later": Action("pan(1)", "half a screen to the right"),
    "zoom_in": Action("zoom(1)", "zoom in, around the cursor", "in"),
    "zoom_out": Action("zoom(-1)", "zoom out", "out"),
    "whole": Action("whole", "all that is kept", "all"),
    "first_time": Action("edge(-1)", "to the oldest moment"),
    "last_time": Action("edge(1)", "to now, and stay there"),
    "next_event": Action("event(1)", "next begin or end of a wait of this thread", "event"),
    "previous_event": Action("event(-1)", "the begin or end before"),
    "woken_by": Action("woken_by", "to the thread that released the lock", "who woke it"),
    "woke": Action("woke", "to the thread that got the lock after this one", "woke whom"),
    "notable_before": Action("notable(-1)", "to the alert or mark before"),
    "notable_after": Action("notable(1)", "to the next alert or mark", "alert"),
    "letters": Action("letters", "letters of the locks, or shares of the time", "locks"),
    "to_moment": Action("to_moment", "show this moment on the monitor", "this moment"),
    "rows": Action("rows", "a row for each lock, or for each thread", "rows"),
    "offsets": Action("offsets", "parts of a second as rows: of this lock, of all", "seconds"),
    "choose_span": Action("choose_span", "begin of a span; again: its end", "span"),
    "span_callers": Action("span_callers", "the callers of the chosen span", "callers"),
    "show_profile": Action("show_profile", "the buckets; beside A: compare", "show"),
    "choose_profile": Action("choose_profile", "choose profile A, to compare with", "A"),
    "save_profile": Action("save('json')", "save this profile, for `locktop profile`", "save"),
    "save_profile_text": Action("save('text')", "save the buckets as text"),
    "span_difference": Action("span_difference", "the second span minus the first", "compare"),
}
