"""The profiles that a program makes of its own code: one by bucket, or two beside each other."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import ClassVar

from msgspec.structs import replace
from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.profiles.formats import PROFILE_FORMATS
from locktop.collector.extensions.profiles.kept_profile import KeptProfile
from locktop.collector.extensions.profiles.model import NAME, SelfProfile, profiles_of
from locktop.collector.extensions.profiles.profile_listing import Listing, listing
from locktop.collector.extensions.profiles.words import profile_name
from locktop.collector.model import Snapshot
from locktop.collector.render import files
from locktop.tui.bindings import bindings
from locktop.tui.extensions.profiles.columns import listing_lines, profile_columns
from locktop.tui.extensions.profiles.screen_actions import SCREEN_ACTIONS
from locktop.tui.views.styled_line import cut, make_line
from locktop.tui.views.table import lay_out
from locktop.tui.widgets.details import Details
from locktop.tui.widgets.one_list_screen import OneListScreen
from locktop.tui.widgets.scroll_panel import ScrollPanel

_ERROR_S = 15.0


class ProfilesScreen(OneListScreen):
    """A list of profiles over the buckets of the chosen ones."""

    SCREEN = SCREEN_ACTIONS
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(*SCREEN_ACTIONS.actions)]
    view_name = NAME

    def __init__(self, snapshot: Snapshot, *, reads_code: bool) -> None:
        """Make the screen.

        Args:
            snapshot: the one to begin with.
            reads_code: whether the process runs here, so that its code can be read.
        """
        super().__init__(NAME)
        self._snapshot = snapshot
        self._reads_code = reads_code
        self._first: int | None = None  # the number of profile A of a contrast
        self._visible: tuple[KeptProfile, ...] = ()
        self._buckets = Details(id="buckets")

    def compose_body(self) -> ComposeResult:
        """The list over the buckets."""
        self._list.styles.height, self._buckets.styles.height = "2fr", "5fr"
        with Container():
            yield self._list
            yield self._buckets

    def focused_panel(self) -> ScrollPanel:
        return self._buckets if self.focused is self._buckets else self._list

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Show a newer snapshot of the same process: the counts go on."""
        self._snapshot = snapshot
        newer = {_key(profile): profile for profile in profiles_of(snapshot)}
        self._visible = tuple(
            replace(kept, profile=newer.get(_key(kept.profile), kept.profile))
            for kept in self._visible
        )
        if self.is_mounted and self.is_current:
            self.apply_filter()

    def apply_filter(self) -> None:
        width = self.size.width
        process = self._snapshot.process
        self.show_keys()
        title = make_line((f" {process.comm} {process.pid}  profiles of its own code", "strong"))
        self.status_row.show((cut(title, width),))
        self.headline_lines.show((cut(make_line((f" {self._says()}", "label")), width),))
        words = self.filter_words.lower()
        visible = {
            profile.number: profile
            for profile in profiles_of(self._snapshot)
            if words in profile_name(profile).lower() or words in profile.source
        }
        table = lay_out(profile_columns(), self._list.size.width)
        self._list.set_heads("Profiles", "", table.heading())
        self._list.show(
            list(visible),
            lambda number: table.line(
                visible[number], ("A" if number == self._first else " ", "title")
            ),
        )
        self._draw_buckets()

    def _says(self) -> str:
        first = self._profile(self._first)
        if first is None:
            return "Enter shows a profile; m chooses A, and Enter on another one compares"
        return f"A is {profile_name(first)}; Enter on another profile compares"

    def _profile(self, number: int | None) -> SelfProfile | None:
        return next(
            (profile for profile in profiles_of(self._snapshot) if profile.number == number), None
        )

    def _draw_buckets(self) -> None:
        listing = self._listing()
        title = " and ".join(profile_name(kept.profile) for kept in self._visible)
        self._buckets.set_heads("Buckets", title)
        width = max(40, self._buckets.size.width - 1)
        subject = tuple(_key(kept.profile) for kept in self._visible)
        self._buckets.show(subject, listing_lines(listing, width) if listing is not None else ())

    def _listing(self) -> Listing | None:
        if not self._visible:
            return None
        try:
            return listing(self._visible)
        except LocktopError as error:
            self.show_message(str(error), style="waiting", seconds=_ERROR_S)
            self._visible = ()
            return None

    @work(exclusive=True, group="profile")
    async def _show(self, profiles: tuple[SelfProfile, ...]) -> None:
        """Read the code of the profiles, which may take some seconds, and show them."""
        self.show_message("Reading the code and its source lines ...", seconds=1.0)
        is_here = self._is_here()
        try:
            kept_profiles = [
                await asyncio.to_thread(_keep_profile, self._snapshot, profile, is_here)
                for profile in profiles
            ]
        except LocktopError as error:
            self.show_message(str(error), style="waiting", seconds=_ERROR_S)
            return
        self._visible = tuple(kept_profiles)
        self.apply_filter()

    def _is_here(self) -> bool:
        """Return whether the code of the process can be read."""
        return self._reads_code and not self._snapshot.ended

    # Actions, as named in actions.py

    def action_show_profile(self) -> None:
        """Show the profile under the cursor, beside A if one was chosen."""
        current = self._profile(self._list.current)
        first = self._profile(self._first)
        if current is None:
            return
        pair = first is not None and first.number != current.number
        self._show((first, current) if pair and first is not None else (current,))

    def action_choose_profile(self) -> None:
        """Choose the profile under the cursor as A, or choose none."""
        current = self._list.current
        self._first = None if current == self._first else current
        self.apply_filter()

    def action_save(self, form: str) -> None:
        """Save the profile under the cursor with its code, or the buckets as text."""
        if form == "text":
            if listing := self._listing():
                names = [kept.profile for kept in listing.profiles]
                self.save(partial(_save_text, listing, self._file_name(*names)))
            else:
                self.show_message("Not saved: Enter shows the buckets of a profile first")
        elif current := self._profile(self._list.current):
            name = self._file_name(current)
            self.save(partial(_save_profile, self._snapshot, current, self._is_here(), name))

    def _file_name(self, *profiles: SelfProfile) -> str:
        process = self._snapshot.process
        names = "-".join(profile_name(profile) for profile in profiles)
        return files.plain_name(f"locktop-profile-{process.comm}-{process.pid}-{names}")

    def action_panel(self, step: int) -> None:
        """Go to the other panel."""
        self.set_focus(self._list if self.focused is self._buckets else self._buckets)
        self.call_after_refresh(self.apply_filter)

    def action_help(self) -> None:
        """Show the keys."""
        self.show_help(only_keys=True)

    def action_back(self) -> None:
        """Close the filter, clear it, or leave the screen."""
        if self.has_class("filtering"):
            self.filter.value = ""
            self.filter.close()
        elif self.filter_words:
            self.filter.value = ""
        elif self.focused is self._buckets:
            self.action_panel(-1)
        else:
            self.dismiss()


def _keep_profile(snapshot: Snapshot, profile: SelfProfile, is_here: bool) -> KeptProfile:
    """Return a profile with its code, if the process runs here. Raises LocktopError."""
    # Here, for the first screen must not wait for this import.
    from locktop.collector.extensions.profiles import profiled_code

    read = profiled_code.profile_with_code if is_here else profiled_code.profile_without_code
    return read(snapshot, profile)


def _save_profile(snapshot: Snapshot, profile: SelfProfile, is_here: bool, name: str) -> Path:
    from locktop.collector.extensions.profiles import saved_profile

    data = saved_profile.encode(_keep_profile(snapshot, profile, is_here))
    return files.save_new(name, ".json", data)


def _save_text(listing: Listing, name: str) -> Path:
    text = PROFILE_FORMATS["text"]
    return files.save_new(name, text.suffix, text.render(listing))


def _key(profile: SelfProfile) -> tuple[object, ...]:
    """Return what stays the same of a profile while its counts go on."""
    return profile.number, profile.name, profile.regions, profile.bucket_size
