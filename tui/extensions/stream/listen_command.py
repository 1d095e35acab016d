"""``locktop listen``: the screen for a process that `locktop stream` watches elsewhere."""

from __future__ import annotations

import argparse
import gc
import math
import sys
import time
from typing import TYPE_CHECKING

from locktop.collector.errors import LocktopError
from locktop.tui.commands import options
from locktop.tui.commands.options import add_screen, no_terminal, screen_start
from locktop.tui.extensions.stream import stream_options
from locktop.tui.terminal.end_signals import EndSignals

if TYPE_CHECKING:
    from locktop.collector.extensions.stream.listener import Listener
    from locktop.collector.model import Snapshot

NAME = "listen"
GROUP = "hand over"
HELP = "the screen for a process that `locktop stream` sends"
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
    from locktop.collector.extensions.stream import stream_url
    from locktop.collector.extensions.stream.listener import Listener

    url = stream_url.parse(arguments.url, listens=True)
    if not arguments.once and no_terminal():
        raise LocktopError(f"the screen needs a terminal; {no_terminal()} use `--once`")
    with EndSignals() as signals:
        listener = Listener(url, stream_options.files(arguments), arguments.plain)
        try:
            stream_options.warn_of_udp(url)
            _say(f"listening at {listener.url}")
            if not arguments.once:
                return _show(listener, arguments, signals)
            return _print_first(listener, signals)
        finally:
            listener.stop()


def _show(listener: Listener, arguments: argparse.Namespace, signals: EndSignals) -> int:
    gc.disable()  # as in attach.py
    from locktop.tui.app import LocktopApp
    from locktop.tui.extensions.stream.listen_feed import ListenFeed
    from locktop.tui.themed_app import run_app

    history = options.history(arguments)
    feed = ListenFeed(listener, history)
    app = LocktopApp(
        feed,
        arguments.theme,
        rate=arguments.rate,
        moments=history,
        start=screen_start(arguments),
        input_options=options.input_options(arguments),
    )
    return run_app(app, signals=signals)


def _print_first(listener: Listener, signals: EndSignals) -> int:
    """Print the first snapshot, unless a signal ends the command before."""
    from locktop.collector.extensions.stream.stream_sender import Outbox

    outbox, newest, until = Outbox(), None, math.inf
    listener.start(outbox.put, _say)
    while signals.first is None:
        scan = outbox.take(_POLL_S)
        newest = scan.snapshot if scan is not None else newest
        if newest is None:
            continue
        until = min(until, time.monotonic() + _NAMES_S)
        if newest.names_left and not newest.ended and time.monotonic() < until:
            continue
        if _print(newest):
            return 0
        newest = None
    return 128 + signals.first


def _print(snapshot: Snapshot) -> bool:
    """Print a snapshot; return False for one that no process can have."""
    from locktop.collector.render.formats import SNAPSHOT_FORMATS

    try:
        page = SNAPSHOT_FORMATS.render("json", snapshot)
    except LocktopError as error:
        _say(f"left out: {error}")
        return False
    sys.stdout.buffer.write(page)
    sys.stdout.buffer.flush()
    return True


def _say(text: str) -> None:
    print(f"locktop: {text}", file=sys.stderr, flush=True)
