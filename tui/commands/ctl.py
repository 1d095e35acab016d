"""``locktop ctl``: how much the library does in a running process."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from typing import TYPE_CHECKING

from locktop.collector.errors import LocktopError
from locktop.collector.sources import levels
from locktop.tui.commands.options import add_pid
from locktop.tui.extension import screen_extensions

if TYPE_CHECKING:
    from pathlib import Path

    from locktop.collector.model import Snapshot

_SWITCHES = {
    extension.name: extension.control_switch
    for extension in screen_extensions()
    if extension.control_switch is not None
}


def _about_switches() -> str:
    return "".join(f"{switch.about}\n\n" for switch in _SWITCHES.values())


NAME = "ctl"
GROUP = "control"
HELP = "how much the library does in a process; measure from zero"
DESCRIPTION = f"""\
Prints the level at which the library works in a process, or sets it while the process runs. The
figures are the cost of a lock and an unlock without contention on our machine, compared with a
program without the library. `locktop bench` measures your machine.

{levels.description()}

After a change from dormant, locks that are held already stay unknown until they are taken again.

{_about_switches()}\
--start begins a session: from then on the screen shows figures from zero. `locktop snapshot
--session` has the figures of the session, also after --stop."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_pid(parser)
    parser.add_argument("--level", choices=levels.NAMES, help="the level from now on")
    for name, switch in _SWITCHES.items():
        parser.add_argument(f"--{name}", choices=("on", "off"), help=switch.help)
    session = parser.add_mutually_exclusive_group()
    session.add_argument("--start", action="store_true", help="begin a session")
    session.add_argument("--stop", action="store_true", help="end the session")
    session.add_argument("--reset", action="store_true", help="begin the session anew")


def execute(arguments: argparse.Namespace) -> int:
    """Set the level, begin or end the session, or print the level."""
    wanted: str | None = arguments.level
    if wanted is not None:
        before = levels.set_level(arguments.pid, wanted)
        print(f"{before.process}: {before.level} -> {wanted}")
    switched = {name: value for name in _SWITCHES if (value := getattr(arguments, name))}
    for name, value in switched.items():
        print(_SWITCHES[name].switch(arguments.pid, value == "on"))
    if arguments.start or arguments.stop or arguments.reset:
        print(_session(arguments))
    elif wanted is None and not switched:
        reading = levels.read_level(arguments.pid)
        print(f"{reading.process}: {reading.level}")
    return 0


def _session(arguments: argparse.Namespace) -> str:
    """Begin or end the session; return what was done."""
    from locktop.collector.recording import sessions
    from locktop.collector.render.words.units import duration
    from locktop.collector.sources.attach import attach

    path = sessions.path_of(arguments.pid)
    with closing(attach(arguments.pid, only_exact=True)) as source:
        snapshot = source.scan(resolve=arguments.stop)
    who = f"{snapshot.process.pid} ({snapshot.process.comm})"
    if arguments.stop:
        session = sessions.stop(path, snapshot)
        lasted = duration(snapshot.duration_s - session.baseline.duration_s)
        return f"{who}: session ended after {lasted}"
    how = " anew" if arguments.reset else _unless_one_goes_on(path, snapshot, who)
    sessions.start(path, snapshot)
    return f"{who}: session begins{how}"


def _unless_one_goes_on(path: Path, snapshot: Snapshot, who: str) -> str:
    """Return what there is to say of the session before. Raises LocktopError if it goes on."""
    from locktop.collector.recording import sessions

    try:
        before = sessions.load(path)
    except LocktopError as error:
        print(f"locktop: {error}; the new session replaces that file", file=sys.stderr)
        return ""
    if before is None or before.end is not None:
        return ""
    if not before.is_of(snapshot):
        return "; the session before ended when the process executed another program"
    raise LocktopError(f"a session of {who} goes on; --reset begins it anew")
