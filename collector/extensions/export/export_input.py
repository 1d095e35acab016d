"""The input of the formats: the state of a process, its waits by stack, or each single wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

from locktop.collector.extensions.export.trace_parts import TracePart
from locktop.collector.extensions.export.wait_samples import (
    SampleWeight,
    WaitSample,
    samples_of_blame,
    samples_of_counters,
    samples_of_parts,
)
from locktop.collector.model import Snapshot


class ExportInput:
    """The input of all formats. Each format takes from it what the format can say.

    Args:
        snapshot: the last scan, with the figures of the span alone if there is a span.
        parts: yields the single waits in parts; may raise LocktopError.
        is_recorded: the single waits are those of a recording: profiles are made of them, so that
            they have threads. Otherwise profiles are made of the counters.
        weight: whose stacks a profile has.
        duration_ns: the length of the span; None: the snapshot tells.
        build_ids: of the modules whose files are here, by the names of the modules, as hex digits.
        with_idle: profiles and tables have waits for work, too. Traces always have them.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        parts: Callable[[], Iterator[TracePart]],
        *,
        is_recorded: bool = False,
        weight: SampleWeight = SampleWeight.WAIT,
        with_idle: bool = False,
        build_ids: Mapping[str, str] | None = None,
        duration_ns: int | None = None,
    ) -> None:
        self.snapshot = snapshot
        self.parts = parts
        self.weight = weight
        self.with_idle = with_idle
        self.build_ids = build_ids or {}
        if duration_ns is None:
            duration_ns = round(snapshot.duration_s * 1e9)
        self.duration_ns = duration_ns
        self._is_recorded = is_recorded

    @property
    def title(self) -> str:
        """The process, its host and the time."""
        process = self.snapshot.process
        return f"{process.comm} {process.pid} on {self.snapshot.host}, {self.snapshot.taken_at}"

    @cached_property
    def samples(self) -> Sequence[WaitSample]:
        """The waits summed up by stack, the longest first. May raise LocktopError."""
        if self.weight is SampleWeight.BLAME:
            return samples_of_blame(self.snapshot, self.with_idle)
        if self._is_recorded:
            return samples_of_parts(self.parts(), self.with_idle)
        return samples_of_counters(self.snapshot, self.with_idle)
