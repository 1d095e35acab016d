"""The key of the monitor that opens the profiles, and the keys of their screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from locktop.tui.action_types import Action
from locktop.tui.extension_parts import MonitorKey, View
from locktop.tui.extensions.profiles.screen_actions import SCREEN_ACTIONS

if TYPE_CHECKING:
    from locktop.tui.screens.view_host import ViewHost


def _view(host: ViewHost) -> View:
    from locktop.tui.extensions.profiles.view import ProfilesView

    return ProfilesView(host)


MONITOR_KEY = MonitorKey(
    Action("view('profiles')", "profiles that the program makes of its own code"),
    ("P",),
    _view,
    (SCREEN_ACTIONS,),
    {
        "show_profile": Action("show_profile", "the buckets; beside A: compare", "show"),
        "choose_profile": Action("choose_profile", "choose profile A, to compare with", "A"),
        "save_profile": Action("save('json')", "save this profile, for `locktop profile`", "save"),
        "save_profile_text": Action("save('text')", "save the buckets as text"),
    },
    {
        "show_profile": ("enter",),
        "choose_profile": ("m", "space"),
        "save_profile": ("w",),
        "save_profile_text": ("W",),
    },
)
