"""Predictions in the document of a snapshot, the same object as that of ``locktop whatif``.

json_document.py makes the object. The properties give a reader the fields of the model.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from locktop.collector.extensions.whatif.model import (
    MAX_PARTS,
    Change,
    ChangeKind,
    ThroughputUnit,
    UnitKind,
    WhatIfRefusal,
)
from locktop.collector.render.documents.snapshot_fields import Count, LockId, Number, Tid, meaning


class ThroughputEntry(Struct, kw_only=True, gc=False):
    """The throughput: rounds, acquisitions or marks a second."""

    per_s: Annotated[Number, meaning("How many a second.")]
    kind: Annotated[UnitKind, meaning("What is counted: own rounds, a lock, or marks.")] = (
        UnitKind.ROUNDS
    )
    lock: Annotated[
        LockId | None, meaning("The lock whose acquisitions are counted; null: not a lock.")
    ] = None
    mark: Annotated[str | None, meaning("The text of the marks; null: not marks.")] = None
    unit: Annotated[str, meaning("What is counted, in words.")] = ""


class ChangeEntry(Struct, kw_only=True, gc=False):
    """A change of a lock, of a group of threads, or of the CPUs."""

    kind: Annotated[ChangeKind, meaning("The type of the change.")]
    amount: Annotated[
        Number, meaning("The factor of the holds, the share that reads, or the new number.")
    ]
    lock: Annotated[LockId | None, meaning("The lock that changes; null: none.")] = None
    name: Annotated[str | None, meaning("The name of this lock.")] = None
    group: Annotated[str | None, meaning("The name of the threads that change.")] = None
    text: Annotated[str, meaning("The change in words.")] = ""

    @property
    def change(self) -> Change:
        """The change, as the model has it."""
        return Change(
            kind=self.kind, amount=self.amount, lock=self.lock or 0, group=self.group or ""
        )


class PredictionEntry(ChangeEntry, kw_only=True, gc=False):
    """The throughput after a change, as a multiple of the throughput now."""

    ratio: Annotated[Number, meaning("The predicted multiple; 1: no gain.")]
    low: Annotated[Number, meaning("The lower end of the interval of 90 %.")]
    high: Annotated[Number, meaning("The upper end of this interval.")]
    bound: Annotated[Number, meaning("The multiple that the measured times allow at most.")]


class RefusedChangeEntry(ChangeEntry, kw_only=True, gc=False):
    """A change without a prediction."""

    reason: Annotated[WhatIfRefusal, meaning("Why the change has no prediction.")]
    sentence: Annotated[str, meaning("The reason `refusal` as a sentence.")] = ""


class LockPressureEntry(Struct, kw_only=True, gc=False):
    """How much of the threads' time a lock takes."""

    lock: Annotated[LockId, meaning("The id of the lock.")]
    name: Annotated[str, meaning("The name of the lock.")] = ""
    wait_share: Annotated[Number, meaning("Of all threads' time: waits for the lock.")]
    wait_shares: Annotated[
        list[Number], Meta(max_length=MAX_PARTS), meaning("The same in each part of the span.")
    ]
    path_share: Annotated[Number, meaning("Of the critical path: holds of the lock.")]


class WhatIfEntry(
    Struct,
    kw_only=True,
    gc=False,
    rename={"span_s": "duration_s"},
):
    """The predicted gain of changes of the locks (docs/whatif.md)."""

    format: Annotated[Literal["locktop.whatif"], meaning("The name of the format.")]
    version: Annotated[Literal[1], meaning("The version of the format.")]
    pid: Annotated[Tid, meaning("The process id.")] = 0
    comm: Annotated[str, meaning("The name of the process.")] = ""
    taken_at: Annotated[str, meaning("The end of the recorded span, ISO 8601 in UTC.")] = ""
    span_s: Annotated[Number, meaning("Seconds of the recorded span.")]
    parts: Annotated[Count, Meta(le=MAX_PARTS), meaning("Parts of the span that locktop replayed.")]
    throughput: Annotated[ThroughputEntry, meaning("The recorded throughput.")]
    replayed: Annotated[
        Number, meaning("The replayed throughput without a change, as a multiple of the recorded.")
    ]
    refusal: Annotated[
        WhatIfRefusal | None, meaning("Why no change has a prediction; null: some have one.")
    ] = None
    changed_at: Annotated[
        str, meaning("When the throughput changed, for the refusal `phases`; else empty.")
    ] = ""
    stuck: Annotated[
        str, meaning("Threads that waited for all of the span, for `few rounds`; else empty.")
    ] = ""
    why: Annotated[str | None, meaning("The same as a sentence.")] = None
    cpus: Annotated[Count, meaning("CPUs that the process may use.")]
    cpus_used: Annotated[Number, meaning("CPUs that the process used.")]
    recording_cost: Annotated[
        Number | None, meaning("The throughput at the level all, as a multiple of that before.")
    ] = None
    predictions: Annotated[
        list[PredictionEntry], meaning("The predictions, the largest gain first.")
    ] = []
    refused: Annotated[
        list[RefusedChangeEntry], meaning("The changes without a prediction, if they were tried.")
    ] = []
    pressure: Annotated[list[LockPressureEntry], meaning("The locks, the most waiting first.")] = []
    notes: Annotated[list[str], meaning("What limits the predictions.")] = []

    @property
    def rounds_per_s(self) -> float:
        """The throughput, as the model has it."""
        return self.throughput.per_s

    @property
    def unit(self) -> ThroughputUnit:
        """The unit, as the model has it. Older documents have no kind."""
        throughput = self.throughput
        kind = UnitKind.LOCK if throughput.lock else throughput.kind
        return ThroughputUnit(kind=kind, lock=throughput.lock or 0, mark=throughput.mark or "")

    @property
    def names(self) -> dict[int, str]:
        """The names of the locks by id."""
        names = {share.lock: share.name for share in self.pressure if share.name}
        for changes in (self.predictions, self.refused):
            names |= {change.lock: change.name for change in changes if change.lock and change.name}
        return names
