"""The parts that an extension of the screen may bring, as types."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from locktop.collector.model import Lock, Snapshot
from locktop.collector.sources.attach import Source
from locktop.tui.action_types import Action, ScreenActions


class Command(Protocol):
    """A command of the command line: a module with these names."""

    NAME: str
    GROUP: str  # its part of `locktop --help`: "look", "keep", "hand over" or "control"
    HELP: str  # its line there
    DESCRIPTION: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""

    def execute(self, arguments: argparse.Namespace) -> int:
        """Run the command; return the exit status. May raise LocktopError."""


class CommandMode(Protocol):
    """An option with which a command of others does other work: a module with these names."""

    OPTION: str
    DESCRIPTION: str  # a paragraph for the description of the command

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the option, and those that need it."""

    def execute(self, arguments: argparse.Namespace) -> int | None:
        """Run the command; return the exit status, or None without the option.

        May raise LocktopError.
        """


class SnapshotSource(Protocol):
    """The work of an option of ``locktop snapshot``: a module has these functions."""

    def check(self, arguments: argparse.Namespace) -> None:
        """Raise LocktopError if other options do not go with this one."""

    def from_process(self, source: Source, arguments: argparse.Namespace) -> Snapshot:
        """Return a snapshot of a process with the section of the extension."""

    def from_recording(self, snapshot: Snapshot, arguments: argparse.Namespace) -> Snapshot:
        """Return the snapshot of a recording with the section of the extension."""


class View(Protocol):
    """A view that a key of the monitor opens. The first press of the key makes it, once."""

    def open(self, snapshot: Snapshot, lock: Lock | None) -> None:
        """Open the view of a snapshot; ``lock``: the chosen one, None for none."""

    def tick(self) -> None:
        """Called at each scan from then on, also while the screen stands still."""

    def annotate(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot to save or to copy, with the section of the extension."""


class StepElsewhere(NamedTuple):
    """A step of the wait of a thread, on its way to or in another process."""

    pid: int
    text: str  # "the only reader is convert 4802: waits for the end of ..."


class MonitorKey(NamedTuple):
    """A key of the monitor that opens a view. The action has the name of the extension."""

    action: Action
    keys: tuple[str, ...]  # as in keymap.toml
    #: Makes the view for a ViewHost (screens/view_host.py).
    make: Callable[[Any], View]
    #: The screens that the view opens, with the names of their actions.
    screens: tuple[ScreenActions, ...] = ()
    #: The actions of these screens that are not in actions.ACTIONS, and their keys.
    actions: Mapping[str, Action] = {}
    keys_of_actions: Mapping[str, tuple[str, ...]] = {}
