"""The part of a session that samples what runs inside locks, from start() to end()."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.inside.model import NAME, RATE, InsideStack
from locktop.collector.model import Draft, Frame
from locktop.collector.shm.clock import clock_pair
from locktop.collector.shm.control import WantedHolds
from locktop.collector.shm.reader import Reading
from locktop.collector.shm.ring_drain import RingDrain
from locktop.collector.sources.preload.session_part import SessionContext, SessionPart

if TYPE_CHECKING:
    from locktop.collector.extensions.inside.inside_profiler import InsideProfiler


class InsideSampler(SessionPart):
    """Samples the holders of one program. See SessionPart."""

    def __init__(self, context: SessionContext) -> None:
        self._context = context
        self._profiler: InsideProfiler | None = None

    def start(
        self,
        drain: RingDrain,
        is_first_program: bool,
        locks: Collection[int] | None = None,
        rate: float = RATE,
    ) -> None:
        """Sample anew. The target gets no signal.

        Args:
            drain: see SessionPart.
            is_first_program: see SessionPart. Ids of locks are those of the first program.
            locks: ids of the locks that matter; None: all.
            rate: samples in a second of a thread.
        """
        # Here: the modules of the unwinder take some 50 ms.
        from locktop.collector.extensions.inside.holder_sampler import HolderSampler
        from locktop.collector.extensions.inside.inside_profiler import InsideProfiler

        self.end()
        context = self._context
        try:
            sampler = HolderSampler(context.pid, context.own_pid, context.resolver, rate)
        except LookupError as error:
            drain.close()
            raise LocktopError(f"what runs inside locks is not known here: {error}") from None
        self._profiler = InsideProfiler(
            sampler,
            drain,
            WantedHolds(context.memory, context.clock),
            context.clock.kind,
            locks if is_first_program else None,
        )

    def end(self) -> None:
        if self._profiler is not None:
            self._profiler.close()
            self._profiler = None

    def frames(self, stack: int) -> tuple[Frame, ...]:
        return self._profiler.frames(stack) if self._profiler is not None else ()

    def complete(self, draft: Draft, reading: Reading, is_last: bool) -> bool:
        if self._profiler is None:
            return False
        clock = self._context.clock
        ticks, ns = clock_pair(clock.kind)
        ago_s = clock.seconds(ticks - reading.now)
        profile = self._profiler.profile(draft, ns - round(ago_s * 1e9), is_last)
        draft.sections = {**draft.sections, NAME: profile}
        self._add_stacks(draft, [stack for lock in profile.locks.values() for stack in lock.stacks])
        return True

    def _add_stacks(self, draft: Draft, entries: Collection[InsideStack]) -> None:
        """Fill in the frames of the stacks and call sites to which the section refers."""
        stacks = {entry.stack for entry in entries} - {0, *draft.stacks}
        sites = {entry.site for entry in entries} - {0, *draft.sites}
        site = self._context.resolver.site
        draft.stacks = {**draft.stacks, **{stack: self.frames(stack) for stack in sorted(stacks)}}
        draft.sites = {**draft.sites, **{address: site(address) for address in sorted(sites)}}
