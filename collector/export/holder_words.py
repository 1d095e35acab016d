"""What the holder of a lock does now, in words."""

from __future__ import annotations

from locktop.collector.export.units import duration
from locktop.collector.model import Doing, HolderNow

_PLAIN = {
    Doing.RUNNING: "running",
    Doing.STOPPED: "stopped",
    Doing.ENDED: "ended, and it never gave it back",
}


def doing(now: HolderNow | None, tid: int) -> str:
    """Return what the thread does, to stand after "now": "in write(7 -> /var/lib/x/wal) for 1.3 s";
    "" where ``now`` is another one's, and where it waits, of which more is said elsewhere."""
    if now is None or now.tid != tid:
        return ""
    if now.doing is Doing.RUNNING and now.cpu is not None:
        return f"running ({now.cpu:.0%} of a CPU)"
    if now.doing is not Doing.BLOCKED:
        return _PLAIN.get(now.doing, "")
    # What one look saw may have begun at any time before.
    since = f" for {duration(now.for_s)}" if now.for_s else ""
    return f"in {now.what}{since}" if now.what else f"asleep in the kernel{since}"
