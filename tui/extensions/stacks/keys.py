"""The key of the monitor that reads all stacks, and the keys of their screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from locktop.tui.action_types import Action
from locktop.tui.extension_parts import MonitorKey, View
from locktop.tui.extensions.stacks.screen_actions import SCREEN_ACTIONS

if TYPE_CHECKING:
    from locktop.tui.screens.view_host import ViewHost


def _view(host: ViewHost) -> View:
    from locktop.tui.extensions.stacks.view import StacksView

    return StacksView(host)


MONITOR_KEY = MonitorKey(
    Action("view('all_stacks')", "all stacks now: every thread with its stack"),
    ("a",),
    _view,
    (SCREEN_ACTIONS,),
    {
        "show_stack": Action("show_stack", "the stack of the row on the whole screen", "stack"),
        "read_stacks": Action("read_stacks", "read all stacks again", "again"),
        "save_stacks": Action("save('json')", "save all stacks as JSON"),
        "save_stacks_text": Action("save('text')", "save all stacks as text", "save"),
        "copy_stacks": Action("copy_stacks", "copy all stacks as text", "copy all"),
    },
    {
        "show_stack": ("enter",),
        "read_stacks": ("a",),
        "save_stacks": ("w",),
        "save_stacks_text": ("W",),
        "copy_stacks": ("Y",),
    },
)
