"""A misuse of a lock in a sentence."""

from __future__ import annotations

from collections.abc import Callable

from locktop.collector.model import Misuse, MisuseKind

_DID = {
    MisuseKind.RELEASED_OTHERS: "released it while {other} held it",
    MisuseKind.RELEASED_FREE: "released it while no thread held it",
    MisuseKind.TAKEN_AGAIN: "requested the lock while it held it, and the lock is not recursive",
    MisuseKind.DESTROYED_HELD: "destroyed it while {other} held it",
    MisuseKind.DESTROYED_WAITED: "destroyed it while a thread waited for it",
    MisuseKind.TWO_MUTEXES: "waited with another mutex than other threads at that time: {other}",
    MisuseKind.WAITED_UNHELD: "waited for a condition with it while {other} held it",
    MisuseKind.KEPT_AT_END: "ended while it held the lock",
    MisuseKind.HELD_AT_FORK: "waits for it for good: {other} of the parent process held it at the"
    " fork, and no thread of this process releases it",
}


def misuse_sentence(
    misuse: Misuse, thread: Callable[[int], str], lock: Callable[[int], str]
) -> str:
    """Return the sentence; ``thread`` and ``lock`` return names by tid and by id."""
    if misuse.kind is MisuseKind.TWO_MUTEXES:
        other = lock(misuse.other)
    elif misuse.other == misuse.tid:
        other = "it"
    else:
        nobody = "no thread" if misuse.kind is MisuseKind.WAITED_UNHELD else "a thread"
        other = thread(misuse.other) if misuse.other else nobody
    prefix = "at least " if misuse.kind is MisuseKind.RELEASED_OTHERS else ""
    again = f", {prefix}{misuse.count} times" if misuse.count > 1 else ""
    return f"{thread(misuse.tid)} {_DID[misuse.kind].format(other=other)}{again}"
