"""The real app with one snapshot on the terminal that starts it, also that of tmux or screen.

If TEST_SOURCE is set, each frame of each stack is in that file. With TEST_MOUSE the mouse is on.
"""

from __future__ import annotations

import os
import sys

from msgspec.structs import replace
from support.feed import HandFeed
from unit.builders import scenarios

from locktop.collector.model import Snapshot
from locktop.tui.app import LocktopApp
from locktop.tui.input_options import InputOptions
from locktop.tui.themed_app import run_app


def in_file(snapshot: Snapshot, file: str) -> Snapshot:
    """The snapshot with that file in each frame that has any."""
    stacks = {
        id_: tuple(replace(frame, file=file if frame.file else None) for frame in stack)
        for id_, stack in snapshot.stacks.items()
    }
    sites = {
        site: replace(frame, file=file if frame.file else None)
        for site, frame in snapshot.sites.items()
    }
    return replace(snapshot, stacks=stacks, sites=sites)


def main() -> None:
    snapshot = scenarios.normal()
    if "TEST_SOURCE" in os.environ:
        snapshot = in_file(snapshot, os.environ["TEST_SOURCE"])
    options = InputOptions(mouse="TEST_MOUSE" in os.environ)
    app = LocktopApp(HandFeed(snapshot), "night", input_options=options)
    sys.exit(run_app(app))


main()
