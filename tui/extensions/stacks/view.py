"""The view of all stacks: what the key of the monitor opens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from locktop.collector.extensions.stacks import groups, reading
from locktop.collector.model import Lock, Snapshot
from locktop.tui.daemon_work import run_in_daemon
from locktop.tui.screens.view_host import ViewHost

if TYPE_CHECKING:
    from locktop.collector.extensions.stacks.model import AllStacks
    from locktop.tui.extensions.stacks.screen import StacksScreen

_READING = "Reading the stacks of all threads ..."
#: A first reading may wait for names of functions.
_READING_S = 60.0


class StacksView:
    """Reads all stacks, and opens their screen. See View."""

    def __init__(self, host: ViewHost) -> None:
        """``host``: the monitor."""
        self._host = host
        self._is_reading = False
        self._screen: StacksScreen | None = None

    def open(self, snapshot: Snapshot, lock: Lock | None) -> None:
        if self._is_live(snapshot):
            self._read_again()
        else:
            self._show(groups.find(snapshot), is_live=False)

    def tick(self) -> None:
        pass

    def annotate(self, snapshot: Snapshot) -> Snapshot:
        return snapshot

    def _is_live(self, snapshot: Snapshot) -> bool:
        """Return whether the process can be read: it runs here, and the screen shows now."""
        host = self._host
        return host.feed.source is not None and not host.past.is_active and not snapshot.ended

    def _read_again(self) -> None:
        if not self._is_reading:
            self._is_reading = True
            self._host.top().show_message(_READING, seconds=_READING_S)
            self._host.monitor.start(self._read, "all stacks")

    async def _read(self) -> None:
        source = self._host.feed.source
        assert source is not None
        try:
            stacks = await run_in_daemon(lambda: reading.read(source), "all stacks")
        except Exception as error:
            self._host.top().show_error(error, prefix="No stacks: ")
            return
        finally:
            self._is_reading = False
        self._show(stacks, is_live=True)

    def _show(self, stacks: AllStacks, is_live: bool) -> None:
        from locktop.tui.extensions.stacks.screen import StacksScreen

        host, top = self._host, self._host.top()
        if self._screen is not None and top is self._screen:
            self._screen.show_stacks(stacks)
        elif top is host.monitor:
            screen = StacksScreen(stacks, self._read_again if is_live else None)
            host.show(screen, self._forget_screen)
            self._screen = screen

    def _forget_screen(self) -> None:
        self._screen = None
