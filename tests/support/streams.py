"""Both ends of a stream in a test: a listener, raw peers, and `locktop stream` as users run it."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import trustme

from locktop.collector.extensions.stream import stream_url
from locktop.collector.extensions.stream.destinations import StreamDestination, destination_of
from locktop.collector.extensions.stream.listener import Listener
from locktop.collector.extensions.stream.stream_frames import FramePacker, end_frame
from locktop.collector.extensions.stream.stream_security import TlsFiles
from locktop.collector.model import Snapshot
from support import tool
from support.eventually import PATIENCE_S


class Ear:
    """A listener that keeps all that it publishes."""

    def __init__(self, url: str, files: TlsFiles | None = None, plain: bool = True) -> None:
        self.lines: list[str] = []
        self.snapshots: list[Snapshot] = []
        self._changed = threading.Condition()
        plain = plain and files is None
        self.listener = Listener(stream_url.parse(url, listens=True), files, plain)
        self.url = str(self.listener.url)
        self.listener.start(self._take, self._line)

    def _take(self, snapshot: Snapshot) -> None:
        with self._changed:
            self.snapshots.append(snapshot)
            self._changed.notify_all()

    def _line(self, text: str) -> None:
        with self._changed:
            self.lines.append(text)
            self._changed.notify_all()

    def wait(self, reached: Callable[[Ear], bool], what: str) -> None:
        """Wait until ``reached`` is true of this listener."""
        until = time.monotonic() + PATIENCE_S
        with self._changed:
            while not reached(self):
                left = until - time.monotonic()
                assert left > 0, f"never: {what}; {self.lines}, {len(self.snapshots)} snapshots"
                self._changed.wait(min(left, 0.2))

    def wait_line(self, *words: str) -> None:
        """Wait for a line with these words."""
        self.wait(
            lambda ear: any(all(word in line for word in words) for line in ear.lines), str(words)
        )

    def wait_snapshots(self, count: int) -> None:
        """Wait until there are so many snapshots."""
        self.wait(lambda ear: len(ear.snapshots) >= count, f"{count} snapshots")

    def __enter__(self) -> Ear:
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.stop()


class Mouth:
    """Sends snapshots of a test."""

    def __init__(self, url: str, files: TlsFiles | None = None) -> None:
        self.destination: StreamDestination = destination_of(
            stream_url.parse(url), files, files is None, 1200
        )
        self.destination.open()
        self.packer = FramePacker(self.destination.key_every_s)

    def say(self, *snapshots: Snapshot) -> None:
        """Send snapshots."""
        for snapshot in snapshots:
            self.destination.send(self.packer.frame(snapshot))

    def end(self, reason: str = "the test ended") -> None:
        """Send the end of the stream, and disconnect."""
        self.destination.send(end_frame(reason))
        self.destination.close()


@contextmanager
def streaming(pid: int, url: str, *options: str | int) -> Iterator[subprocess.Popen[str]]:
    """Run `locktop stream` until the end of the block."""
    process = tool.start("stream", "-p", pid, "--to", url, *options)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


class Authority:
    """A certificate authority, and certificates for this machine that it signed."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self._directory = directory
        self._authority = trustme.CA()
        self.path = directory / "ca.pem"
        self._authority.cert_pem.write_to_path(str(self.path))

    def files(
        self,
        name: str,
        ca: Path | None = None,
        host: str = "127.0.0.1",
        until: datetime | None = None,
    ) -> TlsFiles:
        """Return the files of one side.

        Args:
            name: of the files.
            ca: the authority that this side trusts.
            host: what the certificate names.
            until: the end of its validity; None: in many years.
        """
        issued = self._authority.issue_cert(host, not_after=until)
        cert, key = (self._directory / f"{name}.{end}" for end in ("pem", "key"))
        cert.write_bytes(b"".join(part.bytes() for part in issued.cert_chain_pems))
        issued.private_key_pem.write_to_path(str(key))
        return TlsFiles(cert=cert, key=key, ca=ca or self.path)


def options(files: TlsFiles) -> tuple[str, ...]:
    """Return the options of the commands for these files."""
    return "--cert", str(files.cert), "--key", str(files.key), "--ca", str(files.ca)
