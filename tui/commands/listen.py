"""``locktop listen``: the screen for a process that `locktop stream` watches elsewhere."""

from __future__ import annotations

import argparse
import gc
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING

from locktop.tui.commands import options, stream_options
from locktop.tui.commands.options import add_screen, no_terminal

if TYPE_CHECKING:
    from locktop.collector.model import Snapshot
    from locktop.collector.stream.listener import Listener

NAME = "listen"
HELP = "the screen for a process that `locktop stream` watches elsewhere"
DESCRIPTION = """\
Listens at URL and shows the first process that `locktop stream` sends there. When the stream ends,
the screen keeps the last snapshot and waits for the next stream. URL is one of these:

  unix:///PATH      a new socket, which only you and root can use
  tcp://HOST:PORT   TLS with certificates on both sides (--cert, --key, --ca)
  udp://HOST:PORT   datagrams; not encrypted

Without HOST, as in tcp://:7000, the command listens at 127.0.0.1. With port 0 the system chooses a
port. docs/stream.md says how to make certificates."""

#: With --once: how long to wait for the names of functions after the first snapshot, seconds.
_NAMES_S = 10.0
_POLL_S = 0.1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("url", metavar="URL", help="where to listen")
    parser.add_argument(
        "--once",
        action="store_true",
        help="print the first snapshot as JSON, without a screen, and end",
    )
    stream_options.add_security(parser)
    add_screen(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Show what arrives, or print the first snapshot."""
    from locktop.collector.errors import LocktopError
    from locktop.collector.stream import stream_url
    from locktop.collector.stream.listener import Listener

    url = stream_url.parse(arguments.url, listens=True)
    if not arguments.once and no_terminal():
        raise LocktopError(f"the screen needs a terminal; {no_terminal()} use `--once`")
    # The app has handlers of its own; these remove the file of a socket in any case.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    listener = Listener(url, stream_options.files(arguments), arguments.plain)
    try:
        stream_options.warn_of_udp(url)
        _say(f"listening at {listener.url}")
        return _print_first(listener) if arguments.once else _show(listener, arguments)
    finally:
        listener.stop()


def _end(number: int, _: object) -> None:
    raise SystemExit(128 + number)


def _show(listener: Listener, arguments: argparse.Namespace) -> int:
    gc.disable()  # as in attach.py
    from locktop.tui.app import LocktopApp
    from locktop.tui.listen_feed import ListenFeed
    from locktop.tui.themed_app import run_app

    history = options.history(arguments)
    feed = ListenFeed(listener, history)
    app = LocktopApp(feed, arguments.theme, rate=arguments.rate, moments=history)
    return run_app(app)


def _print_first(listener: Listener) -> int:
    from locktop.collector.export import rendered_files

    arrived: list[Snapshot] = []
    changed = threading.Event()

    def take(snapshot: Snapshot) -> None:
        arrived[:] = [snapshot]
        changed.set()

    listener.start(take, _say)
    while not changed.wait(_POLL_S):  # a signal ends the command between two waits
        pass
    until = time.monotonic() + _NAMES_S
    while arrived[0].names_left and not arrived[0].ended and time.monotonic() < until:
        time.sleep(_POLL_S)
    sys.stdout.buffer.write(rendered_files.snapshot_file(arrived[0], "json", None, 100, False))
    sys.stdout.buffer.flush()
    return 0


def _say(text: str) -> None:
    print(f"locktop: {text}", file=sys.stderr, flush=True)
