"""Options of both ends of a stream."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from locktop.collector.extensions.stream.stream_security import TlsFiles
    from locktop.collector.extensions.stream.stream_url import StreamUrl


def add_security(parser: argparse.ArgumentParser) -> None:
    """Declare --cert, --key, --ca and --plain."""
    parser.add_argument(
        "--cert", type=Path, metavar="FILE", help="TLS: the certificate of this side"
    )
    parser.add_argument("--key", type=Path, metavar="FILE", help="TLS: the key of the certificate")
    parser.add_argument(
        "--ca",
        type=Path,
        metavar="FILE",
        help="TLS: who signed the certificate of the other side; without it a peer is refused",
    )
    parser.add_argument(
        "--plain",
        action="store_true",
        help="allow TCP without TLS on this machine, and UDP to other machines",
    )


def files(arguments: argparse.Namespace) -> TlsFiles | None:
    """The files for TLS, None without. Raises LocktopError."""
    from locktop.collector.extensions.stream.stream_security import tls_files

    return tls_files(arguments.cert, arguments.key, arguments.ca)


def warn_of_udp(url: StreamUrl) -> None:
    """Say once that UDP is readable."""
    from locktop.collector.extensions.stream.stream_url import Transport

    if url.transport is Transport.UDP:
        print(
            "locktop: UDP is not encrypted: others on the way can read and forge the stream",
            file=sys.stderr,
            flush=True,
        )
