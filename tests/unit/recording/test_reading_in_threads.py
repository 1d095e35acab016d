"""The monitor and the time line read one past at the same time, each in a thread of its own."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from unit.recording.test_recording import scans, write

from locktop.collector.recording.recording import Recording


class ReadByOthers(Recording):
    """A recording of which other threads read snapshots between any two looks at the last one."""

    _chosen = random.Random(7)
    _last_ones: Sequence[tuple[int, bytes]] = ()

    @property
    def _last(self) -> tuple[int, bytes] | None:
        return self._chosen.choice(self._last_ones) if self._last_ones else None

    @_last.setter
    def _last(self, value: tuple[int, bytes] | None) -> None:
        assert value is None or value[1]


def test_another_thread_may_read_between_any_two_steps(tmp_path: Path) -> None:
    made = scans(100)
    path = write(tmp_path / "r", made)
    plain, recording = Recording(path), ReadByOthers(path)
    recording._last_ones = [(number, plain._payload(number)) for number in (2, 20, 21, 80, 81)]
    for number in (3, 4, 22, 23, 81, 82, 83, 90) * 20:
        assert recording.at(recording.times_ns()[number]) == made[number]
    plain.close()
    recording.close()
