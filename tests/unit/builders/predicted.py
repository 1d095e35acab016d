"""Predictions made by hand, of a snapshot."""

from __future__ import annotations

from unit.builders import scenarios

from locktop.collector.extensions.whatif.model import (
    Change,
    ChangeKind,
    LockPressureShare,
    Prediction,
    ThroughputUnit,
    UnitKind,
    WhatIf,
)

SNAPSHOT = scenarios.normal()
LOCK = SNAPSHOT.locks[0]
FOUND = WhatIf(
    span_s=10.0,
    parts=8,
    rounds_per_s=5821.0,
    unit=ThroughputUnit(kind=UnitKind.ROUNDS),
    replayed=1.01,
    refusal=None,
    predictions=(
        Prediction(Change(ChangeKind.SPLIT, 8.0, LOCK.id), 3.5, 3.17, 3.78, 3.9),
        Prediction(Change(ChangeKind.HOLD, 0.5, LOCK.id), 1.95, 1.81, 2.05, 2.05),
        Prediction(Change(ChangeKind.THREADS, 4.0, group="worker"), 0.91, 0.89, 0.94, 0.95),
    ),
    pressure=(LockPressureShare(LOCK.id, 0.7, (0.7,) * 8, 0.5),),
    cpus=2,
    cpus_used=0.12,
    taken_at="2026-11-21T09:59:00.000Z",
    names={LOCK.id: LOCK.name},
)
