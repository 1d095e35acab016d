"""``locktop callers``: where the waits come from, as a call tree of a process or of a file."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from locktop.collector.render.formats import CALL_TREE_FORMATS, INSIDE_FORMATS, OutputFormat
from locktop.tui.commands import recorded
from locktop.tui.commands.inside_profile import add_frequency, check_samples, profiled
from locktop.tui.commands.options import (
    add_scan_options,
    add_screen,
    attached,
    has_terminal,
    input_options,
    rules,
    seconds,
)
from locktop.tui.commands.output import (
    add_format,
    add_output,
    announced,
    destination,
    text_width,
    write,
)

if TYPE_CHECKING:
    from locktop.collector.model import Snapshot
    from locktop.collector.render.profiles.profile import Profile
    from locktop.collector.sources.attach import Source

NAME = "callers"
HELP = "where the waits come from: callers and callees"
DESCRIPTION = """\
Shows where the waits come from: as a tree from the entry of each thread to the locks, or with
--function as the callers and callees of one function.

FILE is a recording, a saved snapshot (JSON or msgpack), or a caller/callee summary report of the
profiler of Visual Studio (CSV). Of a recording the command shows the waits up to its end or up to
--at T, or with --from T and --to T those of that span. With --session it shows the waits of the
session of a process.

With --inside LOCK the command shows what runs inside a lock: which functions make its holds long.
It samples the threads that hold the lock for the time of -d. LOCK is a name, a part of one, an
address (0x...) or an id.

On a terminal the tree opens on the screen, unless --format, --function, --inside or -o is given.
Elsewhere the command prints text."""

#: Seconds of sampling for --inside.
_DURATION_S = 5.0
#: Seconds of further scans of a Python program, whose functions are read in samples, and seconds
#: before each scan.
_MORE_S, _PAUSE_S = 1.0, 0.08


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
    parser.add_argument(
        "--inside", metavar="LOCK", help="the functions that run while threads hold this lock"
    )
    parser.add_argument(
        "-d",
        "--duration",
        type=seconds,
        metavar="SECONDS",
        help="with --inside: how long to sample (default 5)",
    )
    add_frequency(parser)
    add_format(parser, CALL_TREE_FORMATS, None)
    recorded.add_session(parser, "the waits of the session")
    add_scan_options(parser)
    add_output(parser)
    add_screen(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Show the call tree, or write it."""
    recorded.check_use(arguments, NAME)
    check_samples(arguments, {"hz": "--hz", "duration": "-d"})
    if arguments.inside is not None:
        return _write_inside(arguments)
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


def _write_inside(arguments: argparse.Namespace) -> int:
    from locktop.collector.errors import LocktopError
    from locktop.collector.render.profiles.inside_tree import lock_named

    name = arguments.format or INSIDE_FORMATS.default
    if name not in INSIDE_FORMATS.names or arguments.function is not None:
        names = " or ".join(INSIDE_FORMATS.names)
        raise LocktopError(f"--inside goes with --format {names}, and without --function")
    path = destination(arguments)
    snapshot = _sample_holders(arguments) if arguments.file is None else _read_snapshot(arguments)
    lock = lock_named(snapshot.locks, arguments.inside)
    data = INSIDE_FORMATS.render(name, snapshot, lock, text_width())
    write(announced(data, INSIDE_FORMATS[name], arguments), path, arguments)
    return 0


def _sample_holders(arguments: argparse.Namespace) -> Snapshot:
    """Return the snapshot of a process after samples of the lock's holders."""
    from locktop.collector.render.profiles.inside_tree import lock_named

    source = attached(arguments.pid, arguments)
    try:
        first = source.scan(resolve=True)
        if first.is_sampled:
            source.start_part("inside")  # raises the reason
        lock = lock_named(first.locks, arguments.inside)
        sampled = profiled(source, arguments.duration or _DURATION_S, arguments.hz, {lock.id})
        arguments.inside = str(lock.id)  # its name may have become another one
        return sampled
    finally:
        source.close()


def _read_snapshot(arguments: argparse.Namespace) -> Snapshot:
    from locktop.collector.errors import LocktopError

    snapshot = recorded.scanned(arguments).snapshot
    if snapshot.inside is None:
        raise LocktopError(
            f"{arguments.file} has no samples; `locktop snapshot -p PID -d 5 --inside` takes them"
        )
    return snapshot


def _profile(arguments: argparse.Namespace) -> Profile:
    from locktop.collector.render.profiles import profile

    if arguments.file is not None:
        return _read_profile(arguments)
    if arguments.session:
        return profile.SnapshotProfile(recorded.session_span(arguments).figures())
    source = attached(arguments.pid, arguments)
    try:
        return profile.SnapshotProfile(_scan_functions(source))
    finally:
        source.close()


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
    from locktop.collector.errors import LocktopError
    from locktop.collector.render.profiles.profile import step_named, weight_of

    weight = weight_of(call_profile.weights, arguments.weight)
    name = arguments.function
    step = step_named(call_profile.tree(weight.name), name) if name is not None else None
    if form.name == "csv" and call_profile.estimate:
        raise LocktopError(f"{arguments.file} is such a report already")
    return form.render(call_profile, weight, arguments.idle, step, text_width())
