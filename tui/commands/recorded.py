"""A FILE in place of a process: a snapshot, or a recording with --at, --from and --to."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import closing, contextmanager
from itertools import islice
from typing import TYPE_CHECKING

from locktop.collector.errors import LocktopError
from locktop.tui.commands import options
from locktop.tui.commands.command_parser import MOMENTS, group

if TYPE_CHECKING:
    from collections.abc import Iterator

    from locktop.collector.model import Snapshot
    from locktop.collector.recording.chosen_moment import Span
    from locktop.collector.recording.moments import Moments
    from locktop.collector.recording.segments import OpenedRecording
    from locktop.collector.sources.attach import Source

#: Files of a directory that are tried.
_MAX_PARTS = 100
_TIMES = ("at", "begin", "end")


#: The help of FILE, for a command that takes a core too.
FILE_OR_CORE = "or a recording, a saved snapshot or a core dump"

_AT = "of a recording: the newest snapshot at T (default the last)"


def add_file(
    parser: argparse.ArgumentParser, says: str, at_text: str = _AT, end_option: str = "--to"
) -> None:
    """Declare -p PID or FILE, and the times of a recording.

    Args:
        parser: of the command.
        says: the help of FILE.
        at_text: the help of --at, without the forms of T.
        end_option: the name of the option for the end of a span.
    """
    add_moment(parser, says, at_text)
    says = "of a recording: the figures"
    add_span(parser, f"{says} from T on", f"{says} up to T", end_option)


def add_moment(parser: argparse.ArgumentParser, says: str, at_text: str = _AT) -> None:
    """Declare -p PID or FILE, and --at. See add_file()."""
    options.add_pid_or(parser)
    parser.add_argument("file", nargs="?", metavar="FILE", help=says)
    group(parser, MOMENTS).add_argument(
        "--at",
        metavar="T",
        help=f"{at_text}. T is 12:03:04, -35s (before the end), +10m (after the begin), alert:2,"
        " mark:1 or an ISO 8601 time",
    )
    parser.set_defaults(announced="", begin=None, end=None, end_option="--to")
    # Without this argparse takes -35s for an option.
    parser._negative_number_matcher = options.BEFORE_THE_END


def add_span(
    parser: argparse.ArgumentParser, from_help: str, to_help: str, end_option: str = "--to"
) -> None:
    """Declare --from and the option for the end of the span."""
    moments = group(parser, MOMENTS)
    moments.add_argument("--from", dest="begin", metavar="T", help=from_help)
    moments.add_argument(end_option, dest="end", metavar="T", help=to_help)
    parser.set_defaults(announced="", end_option=end_option)
    # Without this argparse takes -35s for an option.
    parser._negative_number_matcher = options.BEFORE_THE_END


def add_session(parser: argparse.ArgumentParser, says: str) -> None:
    """Declare --session; ``says``: what the command shows of the session."""
    parser.add_argument(
        "--session",
        action="store_true",
        help=f"{says} that `locktop ctl --start` or key R began",
    )


def check_use(arguments: argparse.Namespace, name: str) -> None:
    """Raise LocktopError unless there is one of -p PID and FILE, with options that fit."""
    if (arguments.pid is None) == (arguments.file is None):
        raise LocktopError(f"{name} needs one of -p PID and FILE; see `locktop {name} --help`")
    given = [name for name in _TIMES if getattr(arguments, name) is not None]
    if given and arguments.file is not None:
        _check_opens(arguments.file)
    if given and (arguments.file is None or not is_recording(arguments.file)):
        raise LocktopError(f"--at, --from and {arguments.end_option} need a recording")
    if "at" in given and len(given) > 1:
        span = f"--from and {arguments.end_option} are a span"
        raise LocktopError(f"--at is one moment, {span}; give one of both")
    has_duration = bool(getattr(arguments, "duration", None))
    if getattr(arguments, "session", False) and (arguments.file is not None or has_duration):
        raise LocktopError("--session needs -p PID, without -d")
    if arguments.file is not None and has_duration:
        raise LocktopError(f"-d needs -p PID; a recording has --from and {arguments.end_option}")


def _check_opens(path: str) -> None:
    """Raise LocktopError if FILE cannot be opened."""
    from locktop.collector.render.input_file import open_input

    if not os.path.isdir(path):
        open_input(path).close()


def has_span(arguments: argparse.Namespace) -> bool:
    """Return whether the user asks for the figures of a span."""
    return arguments.begin is not None or arguments.end is not None


def is_recording(path: str) -> bool:
    """Return whether a file begins as a recording does, or a directory has such a file."""
    try:
        if os.path.isdir(path):
            with os.scandir(path) as entries:
                return any(
                    _begins_as_recording(entry.path) for entry in islice(entries, _MAX_PARTS)
                )
        return _begins_as_recording(path)
    except OSError:
        return False  # whoever reads the file says why


def _begins_as_recording(path: str) -> bool:
    from locktop.collector.recording.frame_format import MAGIC
    from locktop.collector.render.input_file import open_input

    try:
        with open_input(path) as file:
            return file.read(len(MAGIC)) == MAGIC
    except LocktopError:
        return False  # another file of the directory may do so


def is_core(path: str) -> bool:
    """Return whether a file begins as a core does. Programs do, too; core_source() tells them."""
    from locktop.collector.render.input_file import open_input
    from locktop.collector.sources.attach import begins_as_core

    if os.path.isdir(path):
        return False
    with open_input(path) as file:
        return begins_as_core(file)


def is_core_file(path: str) -> bool:
    """Return whether there is such a file, and it begins as a core does."""
    return os.path.isfile(path) and is_core(path)


def refuse_core(path: str) -> None:
    """Raise LocktopError for a core, in a command that needs the figures of some time."""
    if is_core_file(path):
        raise LocktopError(f"{path}: a core has no time; use check, why, stacks or snapshot")


def core_source(arguments: argparse.Namespace) -> Source:
    """Return the source for FILE, a core. Raises LocktopError if locktop cannot read it."""
    from locktop.collector.sources.attach import open_core

    return open_core(str(arguments.file), options.rules(arguments))


def scanned(arguments: argparse.Namespace, with_section: str = "") -> Span:
    """Return the snapshot of FILE, or the two snapshots of a span.

    Args:
        arguments: those of the command line.
        with_section: a snapshot of a recording has the newest part of this section on request.

    Raises:
        LocktopError: FILE cannot be read, is no snapshot and no recording, or the times do not fit.
    """
    from locktop.collector.recording import chosen_moment
    from locktop.collector.recording.requested_sections import MomentsWithSection

    if is_core(arguments.file):
        with closing(core_source(arguments)) as source:
            return chosen_moment.Span(source.scan(resolve=True))
    if not is_recording(arguments.file):
        from locktop.collector.render.open_profile import open_snapshot

        return chosen_moment.Span(open_snapshot(arguments.file, options.rules(arguments)))
    with opened(arguments.file) as recording:
        moments = MomentsWithSection(recording, with_section) if with_section else recording
        return recorded_span(moments, arguments)


def recorded_span(moments: Moments, arguments: argparse.Namespace) -> Span:
    """Return the snapshot of an open recording, or the two snapshots of a span. See scanned()."""
    from locktop.collector.recording import chosen_moment

    announce(moments, arguments)
    if not has_span(arguments):
        snapshot = chosen_moment.snapshot_at(moments, arguments.at)
        return chosen_moment.Span(_classify(snapshot, arguments))
    span = chosen_moment.span_between(moments, arguments.begin, arguments.end)
    before = _classify(span.before, arguments) if span.before is not None else None
    return chosen_moment.Span(_classify(span.snapshot, arguments), before)


def announce(moments: Moments, arguments: argparse.Namespace) -> None:
    """Let the command tell first what happened at the alert or mark of --at; see write()."""
    from locktop.collector.recording import chosen_moment

    arguments.announced = chosen_moment.announcement(moments, arguments.at)


def session_span(arguments: argparse.Namespace) -> Span:
    """Return the snapshots at both ends of the session of -p PID, or of now if it goes on.

    Raises:
        LocktopError: there is no session, or locktop cannot read the process.
    """
    from locktop.collector.recording import sessions
    from locktop.collector.recording.chosen_moment import Span

    session = sessions.load(sessions.path_of(arguments.pid))
    if session is not None and session.end is not None:
        return Span(session.end, session.baseline)
    with closing(options.attached(arguments.pid, arguments)) as source:
        snapshot = source.scan(resolve=True)
    if snapshot.is_sampled:
        raise LocktopError("without the library a session is on one screen only: key R there")
    if session is None or not session.is_of(snapshot):
        raise LocktopError(
            f"there is no session; `locktop ctl -p {arguments.pid} --start` begins one"
        )
    return Span(snapshot, session.baseline)


def snapshots(arguments: argparse.Namespace) -> Iterator[Snapshot]:
    """Yield the snapshots of FILE: all of the span, or the one at the moment."""
    if not has_span(arguments):
        yield scanned(arguments).snapshot
        return
    from locktop.collector.recording import chosen_moment

    with opened(arguments.file) as recording:
        for time_ns in chosen_moment.times_between(recording, arguments.begin, arguments.end):
            yield _classify(recording.snapshot_at(time_ns), arguments)


@contextmanager
def opened(path: str) -> Iterator[OpenedRecording]:
    """Open a recording; tell of its damage if the rest could be read."""
    from pathlib import Path

    from locktop.collector.recording.segments import open_recording

    with closing(open_recording(Path(path))) as recording:
        if not recording.times_ns():
            damage = f": {recording.damage}" if recording.damage else ""
            raise LocktopError(f"{path}: there is no snapshot in it{damage}")
        try:
            yield recording
        except GeneratorExit:  # the caller needs no further snapshot
            _tell_damage(path, recording)
            raise
    _tell_damage(path, recording)


def _tell_damage(path: str, recording: OpenedRecording) -> None:
    if recording.damage:
        print(f"locktop: {path}: {recording.damage}", file=sys.stderr)


def _classify(snapshot: Snapshot, arguments: argparse.Namespace) -> Snapshot:
    """Return a recorded snapshot. The recorder has classified its waits; --idle-matching does so
    anew."""
    if not arguments.idle_matching:
        return snapshot
    from locktop.collector.recording import chosen_moment

    return chosen_moment.classified(snapshot, options.rules(arguments))
