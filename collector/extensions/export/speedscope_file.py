"""A profile for speedscope (speedscope.app): its JSON schema, file-format-schema.json.

One profile of each thread, and one of all together. The last frame of a stack is the lock.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from locktop.collector.extensions.export.frame_words import NO_STACK, function_name
from locktop.collector.render.files import encoded

if TYPE_CHECKING:
    from locktop.collector.extensions.export.export_input import ExportInput
    from locktop.collector.extensions.export.wait_samples import WaitSample

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def render(export_input: ExportInput) -> Iterator[bytes]:
    """Yield the file. Raises LocktopError if the waits cannot be read."""
    frames = _Frames()
    by_thread: dict[str, list[WaitSample]] = {}
    for sample in export_input.samples:
        if sample.thread:
            by_thread.setdefault(sample.thread, []).append(sample)
    what = f"{export_input.weight} of all threads"
    profiles = [_profile(what, export_input.samples, frames)]
    profiles += [_profile(name, samples, frames) for name, samples in by_thread.items()]
    document = {
        "$schema": _SCHEMA,
        "exporter": "locktop",
        "name": export_input.title,
        "activeProfileIndex": 0,
        "shared": {"frames": frames.entries},
        "profiles": profiles,
    }
    yield encoded(json.dumps(document, ensure_ascii=False) + "\n")


def _profile(name: str, samples: Sequence[WaitSample], frames: _Frames) -> dict[str, Any]:
    return {
        "type": "sampled",
        "name": name,
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": sum(sample.ns for sample in samples),
        "samples": [frames.stack(sample) for sample in samples],
        "weights": [sample.ns for sample in samples],
    }


class _Frames:
    """The table of frames, each once."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self._numbers: dict[tuple[str, str, int], int] = {}

    def stack(self, sample: WaitSample) -> list[int]:
        """Return the numbers of a stack's frames, the outermost first, then the lock."""
        numbers = [
            self._number(function_name(frame), frame.path, frame.line or 0)
            for frame in reversed(sample.frames)
        ] or [self._number(NO_STACK, "", 0)]
        return [*numbers, self._number(f"{sample.kind} {sample.lock}", "", 0)]

    def _number(self, name: str, path: str, line: int) -> int:
        key = name, path, line
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.entries)
            entry: dict[str, Any] = {"name": name}
            entry |= {"file": path} if path else {}
            entry |= {"line": line} if line else {}
            self.entries.append(entry)
        return number
