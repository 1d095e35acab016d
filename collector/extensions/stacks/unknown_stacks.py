"""Why the stack of a thread is not known."""

from __future__ import annotations

from locktop.collector.model import ActivityState, Snapshot, Thread, ThreadActivity, Wait
from locktop.collector.render.words.source_location import short_location
from locktop.collector.sources.probes.followed_thread import MAX_QUERIED
from locktop.collector.sources.probes.holder_activity import RUNNING_UNKNOWN

#: A longer wait, in seconds, lasts through a scan.
BRIEF_S = 1.0
_NO_STACK_LEVELS = ("dormant", "counting")
_NOT_QUERIED = "this snapshot has the stacks of waits for locks alone"
_TOO_MANY = f"a scan queries the {MAX_QUERIED:,} threads that used the most CPU time"
_WENT_ON = "it went on while it was read"
_BRIEF = "its wait was too short, or the scan had no time left"
_NOT_RECORDED = "locktop has no stack of its wait"
_ENDED = "the thread has ended"
_STOPPED = "a signal or a debugger has stopped it"
_NO_CPU = "it runs, and got no CPU while locktop took samples"
_NO_CALL = "the kernel does not show its system call"
_NOT_UNWOUND = "it could not be followed from outside"


class UnknownStacks:
    """The reasons in one snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        """``snapshot``: the scan."""
        self._snapshot = snapshot
        without_wait = [
            thread
            for thread in snapshot.threads
            if thread.alive and thread.waiting_for is None and not thread.pid
        ]
        queried = sum(thread.now is not None for thread in without_wait)
        # A scan for the screen queries some threads alone, one with all names all of them.
        self._queried_all = 2 * min(queried, MAX_QUERIED) > min(len(without_wait), MAX_QUERIED)
        self._too_many = sum(thread.alive for thread in snapshot.threads) > MAX_QUERIED
        self._refusal = next(
            (
                f"it runs, and {note.removeprefix(f'{RUNNING_UNKNOWN}: ')}"
                for note in snapshot.notes
                if note.startswith(RUNNING_UNKNOWN)
            ),
            _NO_CPU,
        )

    def reason(self, thread: Thread) -> str:
        """Return why the stack of a thread is not known, as a clause."""
        if not thread.alive:
            return _ENDED
        if thread.waiting_for is not None:
            return self._reason_of_wait(thread.waiting_for)
        if thread.now is not None:
            return self._reason_of_activity(thread.now)
        if not self._queried_all:
            return _NOT_QUERIED
        return _TOO_MANY if self._too_many else _WENT_ON

    def _reason_of_wait(self, wait: Wait) -> str:
        snapshot = self._snapshot
        if snapshot.level in _NO_STACK_LEVELS:
            reason = f"the library keeps no stacks at the level {snapshot.level}"
        else:
            reason = _BRIEF if wait.duration_s < BRIEF_S else _NOT_RECORDED
        frame = snapshot.sites.get(wait.site)
        return f"{reason}; called in {short_location(frame)}" if frame is not None else reason

    def _reason_of_activity(self, now: ThreadActivity) -> str:
        if now.doing is ActivityState.RUNNING:
            return self._refusal
        if now.doing is ActivityState.STOPPED:
            return _STOPPED
        if now.doing is ActivityState.ENDED:
            return _ENDED
        if not now.call:
            return _NO_CALL
        return _NOT_UNWOUND if now.duration_s else _WENT_ON
