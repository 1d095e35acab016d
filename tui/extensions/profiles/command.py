"""``locktop profile``: the profiles that a program makes of its own code."""

from __future__ import annotations

import argparse
import os
from contextlib import closing
from typing import TYPE_CHECKING

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.profiles.formats import PROFILE_FORMATS, PROFILE_LIST_FORMATS
from locktop.tui.commands import options, recorded
from locktop.tui.commands.output import add_format, add_output, destination, text_width, write

if TYPE_CHECKING:
    from locktop.collector.extensions.profiles.kept_profile import KeptProfile
    from locktop.collector.extensions.profiles.model import SelfProfile
    from locktop.collector.model import Snapshot

NAME = "profile"
GROUP = "look"
HELP = "profiles that a program makes of its own code"
DESCRIPTION = """\
Shows the profiles that a program makes of its own code through locktop.h (docs/profile.md).

  locktop profile list -p PID         all profiles of a process
  locktop profile show -p PID NAME    one: counts, plot, instructions, lines
  locktop profile show -p PID A B     two profiles of one region side by side
  locktop profile save -p PID NAME -o FILE
  locktop profile show FILE [FILE]    saved ones

NAME is the name that the program gave, or the number of the list. --format json writes JSON, and
--force replaces FILE."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.set_defaults(at=None, begin=None, end=None)
    parts = parser.add_subparsers(metavar="list|save|show", required=True)
    listing = parts.add_parser("list", help="all profiles of a process or of a snapshot")
    options.add_pid_or(listing)
    listing.add_argument("file", nargs="?", metavar="FILE", help="or a snapshot, or a recording")
    saving = parts.add_parser("save", help="save a profile with its code, for `show`")
    options.add_pid(saving)
    saving.add_argument("profile", metavar="NAME", help="its name or its number")
    showing = parts.add_parser("show", help="one profile, or two beside each other")
    options.add_pid_or(showing)
    showing.add_argument(
        "profiles",
        nargs="+",
        metavar="PROFILE",
        help="with -p a name or a number; else a saved profile, or SNAPSHOT:NAME",
    )
    for part, run in ((listing, _list), (saving, _save), (showing, _show)):
        add_output(part)
        part.set_defaults(part=run)
        if part is not saving:
            formats = PROFILE_LIST_FORMATS if part is listing else PROFILE_FORMATS
            add_format(part, formats, formats.default)


def execute(arguments: argparse.Namespace) -> int:
    """Do one of the parts."""
    status: int = arguments.part(arguments)
    return status


def _list(arguments: argparse.Namespace) -> int:
    from locktop.collector.extensions.profiles.model import profiles_of

    if (arguments.pid is None) == (arguments.file is None):
        raise LocktopError("profile list needs one of -p PID and FILE")
    path = destination(arguments)
    if arguments.pid is not None:
        profiles = profiles_of(_scan_profiles(arguments.pid, arguments))
    else:
        profiles = _profiles_of(arguments.file, arguments)
    write(PROFILE_LIST_FORMATS.render(arguments.format, profiles, text_width()), path, arguments)
    return 0


def _save(arguments: argparse.Namespace) -> int:
    from locktop.collector.extensions.profiles import saved_profile

    if arguments.output is None:
        raise LocktopError("profile save needs -o FILE; - is the standard output")
    path = destination(arguments)
    kept = _live(_scan_profiles(arguments.pid, arguments), arguments.profile)
    write(saved_profile.encode(kept), path, arguments)
    return 0


def _show(arguments: argparse.Namespace) -> int:
    from locktop.collector.extensions.profiles.profile_listing import listing

    names = arguments.profiles
    if len(names) > 2:
        raise LocktopError("profile show takes one profile, or two to compare")
    path = destination(arguments)
    if arguments.pid is not None:
        snapshot = _scan_profiles(arguments.pid, arguments)
        result = listing([_live(snapshot, name) for name in names])
    else:
        result = listing([_kept_profile(name, arguments) for name in names])
    write(PROFILE_FORMATS.render(arguments.format, result, text_width()), path, arguments)
    return 0


def _scan_profiles(pid: int, arguments: argparse.Namespace) -> Snapshot:
    with closing(options.attached(pid, arguments)) as source:
        return source.scan(resolve=True)


def _live(snapshot: Snapshot, name: str) -> KeptProfile:
    from locktop.collector.extensions.profiles.kept_profile import profile_named
    from locktop.collector.extensions.profiles.model import profiles_of
    from locktop.collector.extensions.profiles.profiled_code import profile_with_code

    process = snapshot.process
    profile = profile_named(profiles_of(snapshot), name, f"{process.comm} {process.pid}")
    return profile_with_code(snapshot, profile)


def _kept_profile(text: str, arguments: argparse.Namespace) -> KeptProfile:
    """Return a saved profile, or the profile of a snapshot: SNAPSHOT:NAME."""
    from locktop.collector.extensions.profiles import saved_profile
    from locktop.collector.extensions.profiles.kept_profile import profile_named
    from locktop.collector.extensions.profiles.model import profiles_of
    from locktop.collector.extensions.profiles.profiled_code import profile_without_code

    path, colon, name = text.rpartition(":")
    if not colon or os.path.lexists(text):
        path, name = text, ""
    if not recorded.is_recording(path):
        data = saved_profile.read_file(path)
        is_snapshot = b'"locktop.snapshot"' in data[:200]
        if saved_profile.is_saved_profile(data) or not (name or is_snapshot):
            return saved_profile.parse(data, path)
    if not name:
        what = "is no profile of locktop; of a snapshot name a profile"
        raise LocktopError(f"{path} {what}, {path}:NAME")
    snapshot = _snapshot_of(path, arguments)
    return profile_without_code(snapshot, profile_named(profiles_of(snapshot), name, path))


def _profiles_of(path: str, arguments: argparse.Namespace) -> tuple[SelfProfile, ...]:
    from locktop.collector.extensions.profiles import saved_profile
    from locktop.collector.extensions.profiles.model import profiles_of

    if not recorded.is_recording(path):
        data = saved_profile.read_file(path)
        if saved_profile.is_saved_profile(data):
            return (saved_profile.parse(data, path).profile,)
    return profiles_of(_snapshot_of(path, arguments))


def _snapshot_of(path: str, arguments: argparse.Namespace) -> Snapshot:
    arguments.file = path
    return recorded.scanned(arguments).snapshot
