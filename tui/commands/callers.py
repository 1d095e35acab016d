"""``locktop callers``: where the waits come from, as a call tree of a process or of a file."""

from __future__ import annotations

import argparse
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

from locktop.collector.errors import LocktopError
from locktop.collector.render.formats import CALL_TREE_FORMATS, OutputFormat
from locktop.tui.commands import recorded
from locktop.tui.commands.options import (
    add_scan_options,
    add_screen,
    attached,
    has_terminal,
    input_options,
    rules,
)
from locktop.tui.commands.output import (
    add_format,
    add_output,
    announced,
    destination,
    text_width,
    write,
)
from locktop.tui.extension import command_modes

if TYPE_CHECKING:
    from locktop.collector.model import Snapshot
    from locktop.collector.render.profiles.profile import Profile
    from locktop.collector.sources.attach import Source

NAME = "callers"
GROUP = "look"
HELP = "where the waits come from: callers and callees"
DESCRIPTION: str  # by __getattr__()
_DESCRIPTION = """\
Shows where the waits come from: as a tree from the entry of each thread to the locks, or with
--function as the callers and callees of one function.

FILE is a recording, a saved snapshot (JSON or msgpack), or a caller/callee summary report of the
profiler of Visual Studio (CSV). Of a recording the command shows the waits up to its end or up to
--at T, or with --from T and --to T those of that span. With --session it shows the waits of the
session of a process.

{modes}On a terminal the tree opens on the screen, unless {options} or -o is given.
Elsewhere the command prints text."""

#: Seconds of further scans of a Python program, whose functions are read in samples, and seconds
#: before each scan.
_MORE_S, _PAUSE_S = 1.0, 0.08


def __getattr__(name: str) -> str:
    """Return DESCRIPTION. A fault of an extension belongs to the use of the command line."""
    if name != "DESCRIPTION":
        raise AttributeError(name)
    modes = command_modes(NAME)
    return _DESCRIPTION.format(
        modes="".join(f"{mode.DESCRIPTION}\n\n" for mode in modes),
        options=", ".join(["--format", "--function", *(mode.OPTION for mode in modes)]),
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    recorded.add_file(parser, "or a recording, or a saved file")
    parser.add_argument(
        "--weight",
        metavar="NAME",
        help="wait (time, the default), count or blame; for a report one of its columns",
    )
    parser.add_argument(
        "--idle", action="store_true", help="also waits for work: conditions, semaphores, joins"
    )
    parser.add_argument(
        "--function", metavar="NAME", help="callers and callees of this function; a part will do"
    )
    for mode in command_modes(NAME):
        mode.add_arguments(parser)
    add_format(parser, CALL_TREE_FORMATS, None)
    recorded.add_session(parser, "the waits of the session")
    add_scan_options(parser)
    add_output(parser)
    add_screen(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Show the call tree, or write it."""
    recorded.check_use(arguments, NAME)
    if arguments.file is not None:
        recorded.refuse_core(arguments.file)
    for mode in command_modes(NAME):
        if (status := mode.execute(arguments)) is not None:
            return status
    explicit = (arguments.format, arguments.output, arguments.function)
    if all(option is None for option in explicit) and has_terminal():
        return _show(arguments)
    return _write(arguments)


def _show(arguments: argparse.Namespace) -> int:
    from locktop.collector.render.profiles import profile

    if arguments.file is None and not arguments.session:
        from locktop.tui.commands.attach import watch

        weight = profile.weight_of(profile.SNAPSHOT_WEIGHTS, arguments.weight)
        return watch(attached(arguments.pid, arguments), arguments, (weight.name, arguments.idle))
    call_profile = _profile(arguments)
    weight = profile.weight_of(call_profile.weights, arguments.weight)
    from locktop.tui.app import CallTreeApp
    from locktop.tui.themed_app import run_app

    app = CallTreeApp(
        call_profile,
        arguments.theme,
        weight=weight,
        idle=arguments.idle,
        input_options=input_options(arguments),
    )
    return run_app(app)


def _write(arguments: argparse.Namespace) -> int:
    path = destination(arguments)
    form = CALL_TREE_FORMATS[arguments.format or CALL_TREE_FORMATS.default]
    data = _render(_profile(arguments), form, arguments)
    write(announced(data, form, arguments), path, arguments)
    return 0


def _profile(arguments: argparse.Namespace) -> Profile:
    from locktop.collector.render.profiles import profile

    if arguments.file is not None:
        return _read_profile(arguments)
    if arguments.session:
        return profile.SnapshotProfile(recorded.session_span(arguments).figures())
    with closing(attached(arguments.pid, arguments)) as source:
        return profile.SnapshotProfile(_scan_functions(source))


def _scan_functions(source: Source) -> Snapshot:
    """Return a snapshot with all names, after some scans for the Python functions of past waits."""
    from locktop.collector.render.profiles.profile import may_learn_functions

    snapshot = source.scan(resolve=True)
    end = time.monotonic() + _MORE_S
    while time.monotonic() < end and may_learn_functions(snapshot):
        time.sleep(_PAUSE_S)
        snapshot = source.scan()
    return source.scan(resolve=True) if snapshot.names_left else snapshot


def _read_profile(arguments: argparse.Namespace) -> Profile:
    from locktop.collector.render.open_profile import open_profile
    from locktop.collector.render.profiles import profile

    if not recorded.is_recording(arguments.file):
        return open_profile(arguments.file, rules(arguments))
    return profile.SnapshotProfile(recorded.scanned(arguments).figures())


def _render(call_profile: Profile, form: OutputFormat[Any], arguments: argparse.Namespace) -> bytes:
    from locktop.collector.render.profiles.profile import step_named, weight_of

    weight = weight_of(call_profile.weights, arguments.weight)
    name = arguments.function
    step = step_named(call_profile.tree(weight.name), name) if name is not None else None
    if form.name == "csv" and call_profile.estimate:
        raise LocktopError(f"{arguments.file} is such a report already")
    return form.render(call_profile, weight, arguments.idle, step, text_width())
