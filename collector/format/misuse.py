"""A misuse of a lock in a sentence."""

from __future__ import annotations

from collections.abc import Callable

from locktop.collector.model import Misuse, MisuseKind

_DID = {
    MisuseKind.RELEASED_OTHERS: "gave it back while {other} had it",
    MisuseKind.RELEASED_FREE: "gave it back while nobody had it",
    MisuseKind.TAKEN_AGAIN: "asked for it while it had it itself, and it is not recursive",
    MisuseKind.DESTROYED_HELD: "destroyed it while {other} had it",
    MisuseKind.DESTROYED_WAITED: "destroyed it while it was waited for",
    MisuseKind.TWO_MUTEXES: "waited for it with another mutex than others at that time: {other}",
    MisuseKind.WAITED_UNHELD: "waited for a condition with it and did not hold it: {other} had it",
    MisuseKind.KEPT_AT_END: "ended and still had it",
    MisuseKind.HELD_AT_FORK: "waits for it for good: {other} of the parent process had it when"
    " that forked this one, and nobody gives it back here",
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
        nobody = "nobody" if misuse.kind is MisuseKind.WAITED_UNHELD else "somebody"
        other = thread(misuse.other) if misuse.other else nobody
    least = "at least " if misuse.kind is MisuseKind.RELEASED_OTHERS else ""
    again = f", {least}{misuse.count} times" if misuse.count > 1 else ""
    return f"{thread(misuse.tid)} {_DID[misuse.kind].format(other=other)}{again}"
