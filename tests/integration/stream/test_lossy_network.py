"""A network that loses and reorders datagrams: the loss is shown, and the picture comes again."""

from __future__ import annotations

import socket
import threading

from support.streams import Ear, streaming
from support.targets import StartTarget


class LossyRelay:
    """Passes datagrams on, but drops every 7th and swaps two neighbours now and then."""

    def __init__(self, to: tuple[str, int]) -> None:
        self._in = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._in.bind(("127.0.0.1", 0))
        self._in.settimeout(0.1)
        self._to = to
        self.port: int = self._in.getsockname()[1]
        self.dropped = 0
        self._stopping = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        kept: bytes | None = None
        count = 0
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
            while not self._stopping:
                try:
                    datagram = self._in.recv(65535)
                except TimeoutError:
                    continue
                count += 1
                if not count % 7:
                    self.dropped += 1
                elif not count % 5:
                    kept = datagram
                else:
                    out.sendto(datagram, self._to)
                    if kept is not None:
                        out.sendto(kept, self._to)
                        kept = None

    def stop(self) -> None:
        self._stopping = True
        self._thread.join()
        self._in.close()


def test_losses_are_notes_and_whole_snapshots_still_come(start_target: StartTarget) -> None:
    target = start_target("ring_of_three")
    target.expect("ready")
    with Ear("udp://127.0.0.1:0") as ear:
        relay = LossyRelay(("127.0.0.1", int(ear.url.rpartition(":")[2])))
        try:
            with streaming(target.pid, f"udp://127.0.0.1:{relay.port}", "--rate", "10"):
                ear.wait(lambda ear: "lost " in notes(ear), "a loss")
                ear.wait_snapshots(len(ear.snapshots) + 3)
                ear.wait(lambda ear: "another order" in notes(ear), "another order")
        finally:
            relay.stop()
        assert relay.dropped > 0
        assert {len(one.threads) for one in ear.snapshots} == {4}
        times = [one.duration_s for one in ear.snapshots]
        assert times == sorted(times)


def notes(ear: Ear) -> str:
    return " ".join(note for one in ear.snapshots for note in one.notes)
