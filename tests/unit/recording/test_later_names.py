"""The search for names in later snapshots."""

from __future__ import annotations

from msgspec.structs import replace
from unit.builders import records

from locktop.collector.errors import LocktopError
from locktop.collector.model import Frame, Notable, NotableKind, Snapshot
from locktop.collector.recording.later_names import LaterNames, TimedScan

_UNNAMED = Frame(0x7000, "", None, None, "store", 0x1000)
_NAMED = replace(_UNNAMED, function="cache_get", file="cache.c", line=5)


class Kept:
    """A snapshot each second, and how often each was read."""

    def __init__(self, *snapshots: Snapshot) -> None:
        self.snapshots = list(snapshots)
        self.reads: list[int] = []
        self.newest: TimedScan | None = None
        self.names = LaterNames(lambda: range(len(self.snapshots)), self._read, lambda: self.newest)

    def _read(self, second: int) -> Snapshot:
        self.reads.append(second)
        if self.snapshots[second].notes:
            raise LocktopError("damaged")
        return self.snapshots[second]

    def frame(self, second: int) -> Frame:
        """Return the frame of a second with the names that are known."""
        return self.names.apply(self.snapshots[second], second).stacks[3][0]

    def lock_name(self, second: int) -> str:
        """Return the name of the lock of a second, as far as it is known."""
        return self.names.apply(self.snapshots[second], second).locks[0].name


def with_lock(name: str) -> Snapshot:
    """Return a snapshot with a lock; without a name it goes by its address."""
    lock = records.lock(7, name)
    lock = lock if name else replace(lock, name=f"mutex {lock.address:#x}")
    return replace(records.snapshot((), (lock,)), stacks={}, sites={})


def snapshot(frame: Frame | None = None, **more: object) -> Snapshot:
    """Return a snapshot with one stack."""
    made = records.snapshot((), ())
    return replace(made, stacks={3: (frame,)} if frame else {}, sites={}, **more)


def test_the_newest_snapshot_is_read_first() -> None:
    kept = Kept(*[snapshot(_UNNAMED)] * 9, snapshot(_NAMED))
    assert kept.frame(0) == _NAMED
    assert kept.reads == [9]
    assert kept.frame(5) == _NAMED
    assert kept.reads == [9]


def test_a_stack_that_is_gone_since_is_found_soon_after_the_moment() -> None:
    kept = Kept(snapshot(_UNNAMED), snapshot(_UNNAMED, names_left=1), snapshot(_NAMED), snapshot())
    assert kept.frame(0) == _NAMED


def test_a_moment_seen_again_searches_new_snapshots_alone() -> None:
    kept = Kept(snapshot(_UNNAMED), *[snapshot()] * 3)
    assert kept.frame(0) == _UNNAMED
    kept.reads.clear()
    assert kept.frame(0) == _UNNAMED
    assert kept.reads == []
    kept.snapshots += [snapshot(_NAMED), snapshot()]
    assert kept.frame(0) == _NAMED
    assert sorted(kept.reads) == [4, 5]


def test_a_name_is_not_sought_behind_an_unloaded_library() -> None:
    kept = Kept(snapshot(_UNNAMED), snapshot(), snapshot(_NAMED, unloads=1), snapshot(_NAMED))
    assert kept.frame(0) == _NAMED  # the newest has all libraries of that time
    other = Kept(snapshot(_UNNAMED), snapshot(), *[snapshot(_NAMED, unloads=1)] * 2)
    assert other.frame(0) == _UNNAMED


def test_a_scan_that_is_not_kept_gives_names_once_it_is_later() -> None:
    kept = Kept(snapshot(_UNNAMED))
    assert kept.frame(0) == _UNNAMED
    kept.newest = TimedScan(0, snapshot(_UNNAMED))
    assert kept.frame(0) == _UNNAMED  # the same scan says nothing about what comes later
    kept.newest = TimedScan(1, snapshot(_NAMED))
    assert kept.frame(0) == _NAMED


def test_a_name_that_never_comes_is_sought_once() -> None:
    kept = Kept(*[snapshot(_UNNAMED) for _ in range(3)])
    kept.frame(0)
    count = len(kept.reads)
    for second in (0, 1, 2):
        kept.frame(second)
    assert len(kept.reads) == count
    gone = Kept(snapshot(_UNNAMED), *[snapshot() for _ in range(50)])
    gone.frame(0)
    count = len(gone.reads)
    gone.frame(0)
    assert len(gone.reads) == count < 50


def test_a_lock_that_is_named_some_scans_after_all_functions_gets_its_name() -> None:
    """A name may follow from other names, and each scan requests the next one of them."""
    kept = Kept(*[with_lock("")] * 4)
    for second in (3, 4, 5):
        kept.newest = TimedScan(second, with_lock(""))
        assert kept.lock_name(0).startswith("mutex 0x")
    kept.newest = TimedScan(10, with_lock("g_cache"))
    assert kept.lock_name(0) == "g_cache"


def test_damage_behind_a_moment_leaves_the_moment_readable() -> None:
    kept = Kept(snapshot(_UNNAMED), snapshot(notes=("damaged",)), snapshot(_NAMED))
    assert kept.frame(0) == _NAMED
    last = Kept(snapshot(_UNNAMED), snapshot(_NAMED), snapshot(notes=("damaged",)))
    assert last.frame(0) == _UNNAMED


def test_the_text_of_an_alert_gets_the_name_of_its_lock() -> None:
    first = with_lock("")
    text = f"worker waited 1.3 s for {first.locks[0].name}, held by main"
    alert = Notable(time_ns=0, kind=NotableKind.WAIT, text=text, tid=2, lock=7)
    mark = Notable(time_ns=0, kind=NotableKind.MARK, text=text)
    kept = Kept(first, first, with_lock("g_cache"))
    named, same = kept.names.reword([alert, mark])
    assert named.text == "worker waited 1.3 s for g_cache, held by main"
    assert same == mark
    count = len(kept.reads)
    assert kept.names.reword([alert])[0] == named
    assert len(kept.reads) == count


def test_the_text_of_an_alert_may_have_a_part_of_the_name_that_its_moment_lacks() -> None:
    first = with_lock("")
    address = f"{first.locks[0].address:#x}"
    text = f"waits for work waited 1.3 s for mutex in cache_get {address}, and 2 more"
    alert = Notable(time_ns=0, kind=NotableKind.WAIT, text=text, tid=2, lock=7)
    kept = Kept(first, first, with_lock("mutex made in cache_get (cache.c:5)"))
    (named,) = kept.names.reword([alert])
    lock = "mutex made in cache_get (cache.c:5)"
    assert named.text == f"waits for work waited 1.3 s for {lock}, and 2 more"


def test_the_text_of_an_alert_is_read_again_when_there_is_a_newer_scan() -> None:
    first = with_lock("")
    text = f"worker waited 1.3 s for {first.locks[0].name}"
    alert = Notable(time_ns=0, kind=NotableKind.WAIT, text=text, tid=2, lock=7)
    kept = Kept(first)
    kept.newest = TimedScan(1, replace(first, names_left=3))
    assert kept.names.reword([alert]) == [alert]
    count = len(kept.reads)
    assert kept.names.reword([alert]) == [alert]
    assert len(kept.reads) == count
    kept.newest = TimedScan(2, with_lock("g_cache"))
    assert kept.names.reword([alert])[0].text.endswith(" for g_cache")


def test_tries_for_an_alert_whose_lock_never_gets_a_name_become_rare() -> None:
    first = with_lock("")
    text = f"worker waited 1.3 s for {first.locks[0].name}"
    alert = Notable(time_ns=0, kind=NotableKind.WAIT, text=text, tid=2, lock=7)
    kept = Kept(first)
    tries = 0
    for second in range(1, 129):
        kept.reads.clear()
        kept.newest = TimedScan(second * 1_000_000_000, first)
        assert kept.names.reword([alert]) == [alert]
        tries += bool(kept.reads)
    assert tries == 8  # after 1, 2, 3, 5, 9, 17, 33 and 65 seconds


def test_a_wait_from_long_before_the_first_scan_gets_the_name_of_its_lock() -> None:
    first = with_lock("")
    text = f"worker waited 1.3 s for {first.locks[0].name}"
    hour_ns = 3600 * 1_000_000_000
    alert = Notable(time_ns=0, kind=NotableKind.WAIT, text=text, tid=2, lock=7)
    kept = Kept(first)
    kept.newest = TimedScan(hour_ns, replace(first, names_left=3))
    assert kept.names.reword([alert]) == [alert]
    kept.newest = TimedScan(hour_ns + 1, with_lock("g_cache"))
    assert kept.names.reword([alert])[0].text.endswith(" for g_cache")


def test_names_that_come_after_many_snapshots_are_not_given_up() -> None:
    kept = Kept(*[snapshot(_UNNAMED, names_left=1)] * 30)
    assert kept.frame(0) == _UNNAMED
    kept.newest = TimedScan(30, snapshot(_NAMED))
    assert kept.frame(0) == _NAMED
