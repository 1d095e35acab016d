"""``locktop stream``: the snapshots of a process to a screen elsewhere."""

from __future__ import annotations

import argparse
import signal
import sys
from typing import TYPE_CHECKING

from locktop.tui.commands import options
from locktop.tui.commands.options import add_pid, add_scan_options, add_suppressions, attached
from locktop.tui.extensions.stream import stream_options

if TYPE_CHECKING:
    from locktop.collector.extensions.stream.stream_sender import Outbox
    from locktop.collector.model import Snapshot
    from locktop.collector.recording.second_signal import SecondSignal

NAME = "stream"
GROUP = "hand over"
HELP = "send what the screen would show to `locktop listen`"
DESCRIPTION = """\
Scans a process and sends each snapshot to a listener, which shows the screen. Start the listener
first, except for UDP. URL is one of these:

  unix:///PATH      a socket of this machine, or of another one by an SSH tunnel
  tcp://HOST:PORT   TLS with certificates on both sides (--cert, --key, --ca)
  udp://HOST:PORT   datagrams; not encrypted, but the listener may come and go

The command goes on until the process ends, or SIGTERM or SIGINT. SIGUSR2 saves a snapshot (JSON) in
the working directory. docs/stream.md says how to make certificates. exit status: 0; 2 the process
cannot be watched or the listener not reached."""

_SMALLEST, _LARGEST = 200, 60_000


def _datagram_size(text: str) -> int:
    """Bytes of a datagram."""
    number = int(text) if text.isdecimal() and len(text) < 6 else 0
    if not _SMALLEST <= number <= _LARGEST:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of bytes from {_SMALLEST} to {_LARGEST}"
        )
    return number


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_pid(parser)
    parser.add_argument("--to", required=True, metavar="URL", help="where a listener is")
    parser.add_argument(
        "--rate",
        type=options.rate,
        default=argparse.SUPPRESS,
        metavar="N",
        help="snapshots a second (default 2)",
    )
    parser.add_argument(
        "--datagram",
        type=_datagram_size,
        default=1200,
        metavar="BYTES",
        help="size of a datagram of UDP at most (default 1200, which every network carries whole)",
    )
    stream_options.add_security(parser)
    add_scan_options(parser)
    add_suppressions(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Send snapshots until the process ends or a signal arrives."""
    from locktop.collector.config import suppressions
    from locktop.collector.extensions.stream import stream_url
    from locktop.collector.extensions.stream.destinations import destination_of
    from locktop.collector.extensions.stream.scan_outlet import ScanOutlet
    from locktop.collector.extensions.stream.stream_sender import Outbox, StreamSender
    from locktop.collector.recording.second_signal import SecondSignal
    from locktop.collector.render.snapshot_signal import SnapshotSignal
    from locktop.collector.sources.poller import Poller

    url = stream_url.parse(arguments.to)
    destination = destination_of(
        url, stream_options.files(arguments), arguments.plain, arguments.datagram
    )
    left_out = options.suppressions(arguments)
    source = attached(arguments.pid, arguments)
    outbox = Outbox()
    outlet = ScanOutlet(source, outbox, _say)
    try:
        stream_options.warn_of_udp(url)
        sender = StreamSender(outbox, destination, _say)
        sender.open()
        second = SecondSignal()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, lambda *_: _stop(outbox, second))
        _say(f"streaming process {arguments.pid} to {url}")
        on_demand = SnapshotSignal(lambda: None)  # the next scan comes soon in any case
        on_demand.install()

        def publish(snapshot: Snapshot) -> None:
            allowed = suppressions.apply(snapshot, left_out)
            outlet.put(allowed)
            if line := on_demand.save(allowed):
                _say(line)

        poller = Poller(source, 1.0 / arguments.rate, publish)
        poller.start()
        try:
            sender.run()
        finally:
            poller.stop()
    finally:
        outlet.close()
        source.close()
    _say(
        f"sent {sender.sent_frames:,} snapshots, {sender.sent_records:,} ring records,"
        f" {sender.sent_bytes:,} bytes"
    )
    return 0


def _stop(outbox: Outbox, second: SecondSignal) -> None:
    """End after the frame that is being sent; the second signal does not wait for a slow peer."""
    if second.arrives():
        raise KeyboardInterrupt
    outbox.stop()


def _say(text: str) -> None:
    print(f"locktop: {text}", file=sys.stderr, flush=True)
