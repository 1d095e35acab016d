"""Histograms in the document of a snapshot (snapshot_document.py)."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from locktop.collector.model.histograms import PlainHistogram, bucket_of
from locktop.collector.render.documents.snapshot_fields import Count, Number, meaning

#: Of a time in seconds, a bound is off by a rounding error at most.
_ROUNDING = 1 + 1e-9


class HistogramEntry(Struct, kw_only=True, gc=False):
    """How many waits or holds had which length. Buckets without a count are left out."""

    from_s: Annotated[
        list[Annotated[Number, Meta(ge=0)]],
        meaning("The lower bound of each bucket in seconds, rising."),
    ]
    counts: Annotated[list[Count], meaning("The number of waits or holds in each bucket.")]
    hz: Annotated[
        Number, meaning("Ticks of a second. The bounds of a bucket are whole numbers of ticks.")
    ]
    left_out: Annotated[Count, meaning("Waits or holds that found no room in a bucket.")] = 0

    @property
    def buckets(self) -> tuple[int, ...]:
        """The numbers of the buckets."""
        return tuple([bucket_of(int(lower * self.hz * _ROUNDING + 0.5)) for lower in self.from_s])

    def check(self) -> None:
        """Raise ValueError if these fields are no histogram."""
        PlainHistogram(
            buckets=self.buckets, counts=tuple(self.counts), hz=self.hz, left_out=self.left_out
        ).check()
