"""Reads snapshots that were saved (snapshot_writer.py): JSON or msgpack, every field checked.

A file may be a stranger's: its texts are made harmless, and whatever is not as it should be is one
line that names the field.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from locktop.collector.analysis.idle.classifier import Classifier
from locktop.collector.analysis.idle.rules import Rules
from locktop.collector.errors import LocktopError
from locktop.collector.export.snapshot_writer import FORMAT, VERSION
from locktop.collector.model import (
    CONTENTION_KINDS,
    ActivityState,
    Blame,
    BlockReason,
    Confidence,
    Counter,
    Counters,
    Deadlock,
    DeadlockEdge,
    Event,
    Frame,
    Held,
    Kind,
    Lock,
    Mark,
    Misuse,
    MisuseKind,
    OrderCycle,
    OrderEdge,
    Pattern,
    PatternName,
    Process,
    Snapshot,
    Switches,
    Thread,
    ThreadActivity,
    ThreadState,
    TimeSplit,
    UnobservedWait,
    Wait,
    WaitStack,
)
from locktop.collector.sanitize import clean

#: Frames of one stack, far more than are ever recorded.
_DEEPEST = 4096
#: Ids, counters and addresses are of 64 bits.
_LARGEST = 1 << 64

T = TypeVar("T")


def parse(data: bytes, name: str, rules: Rules | None = None) -> Snapshot:
    """Return the snapshot in ``data``, its waits told apart by ``rules``, without them by those
    that come with locktop. Raises LocktopError, which calls the file ``name``."""
    try:
        return Classifier(rules).classify(_snapshot(_Fields(_document(data), "")))
    except _WrongError as error:
        raise LocktopError(f"{name} is no snapshot of locktop: {error}") from None


def is_one(data: bytes) -> bool:
    """Whether a file looks like a snapshot, as JSON or msgpack, and not like a text."""
    return _is_json(data) or _is_msgpack(data)


def _is_json(data: bytes) -> bool:
    return data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{"


def _is_msgpack(data: bytes) -> bool:
    # A map: that of a whole snapshot has over 15 keys; a text may begin with the byte of a small.
    return data[:1] in (b"\xde", b"\xdf") and not data.startswith(b"\xdf\xbb")


class _WrongError(Exception):
    """What is wrong, and where in the document."""


def _document(data: bytes) -> object:
    try:
        if _is_msgpack(data):
            import msgpack

            return msgpack.unpackb(data, strict_map_key=True)
        import json

        return json.loads(data.decode("utf-8-sig"), parse_constant=_no_number)
    except _WrongError:
        raise
    # Of both libraries, and of a text that is nested too deep or has a number too long.
    except (ValueError, RecursionError, TypeError) as error:
        raise _WrongError(f"it cannot be read: {error or type(error).__name__}") from None
    except Exception as error:  # msgpack's own have no common base but this
        raise _WrongError(f"it cannot be read: {type(error).__name__}") from None


def _no_number(text: str) -> float:
    raise _WrongError(f"{text} is no number")


class _Fields:
    """An object of the document, asked field by field; ``where`` is its place."""

    def __init__(self, found: object, where: str) -> None:
        if not isinstance(found, dict):
            raise _WrongError(f"{where or 'the whole'} is not an object")
        self._found = found
        self.where = where

    def _at(self, key: str) -> str:
        return f"{self.where}.{key}" if self.where else key

    def _get(self, key: str, default: object) -> object:
        found = self._found.get(key, default)
        if found is _NEEDED:
            raise _WrongError(f"{self._at(key)} is missing")
        return default if found is None and default is not _NEEDED else found  # not known

    def _wrong(self, key: str, wanted: str) -> _WrongError:
        return _WrongError(f"{self._at(key)} is not {wanted}")

    def text(self, key: str, default: object = "") -> str:
        found = self._get(key, default)
        if not isinstance(found, str):
            raise self._wrong(key, "a text")
        return clean(found)

    def text_or_none(self, key: str) -> str | None:
        return None if self._found.get(key) is None else self.text(key)

    def flag(self, key: str, default: object = False) -> bool:
        found = self._get(key, default)
        if not isinstance(found, bool):
            raise self._wrong(key, "true or false")
        return found

    def flag_or_none(self, key: str) -> bool | None:
        return None if self._found.get(key) is None else self.flag(key)

    def integer(self, key: str, default: object = 0) -> int:
        return self._integer(key, self._get(key, default))

    def _integer(self, key: str, found: object) -> int:
        if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found < _LARGEST:
            raise self._wrong(key, "a whole number")
        return found

    def integer_or_none(self, key: str) -> int | None:
        return None if self._found.get(key) is None else self.integer(key)

    def number(self, key: str, default: object = 0.0) -> float:
        return self._number(key, self._get(key, default))

    def _number(self, key: str, found: object) -> float:
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise self._wrong(key, "a number")
        if abs(found) > 1e18 or math.isnan(found):
            raise self._wrong(key, "a number that can be")
        return float(found)

    def share(self, key: str) -> float:
        found = self.number(key)
        if not 0.0 <= found <= 1.0:
            raise self._wrong(key, "a share")
        return found

    def number_or_none(self, key: str) -> float | None:
        return None if self._found.get(key) is None else self.number(key)

    def address(self, key: str, default: object = "0x0") -> int:
        return self._address(key, self._get(key, default))

    def _address(self, key: str, found: object) -> int:
        try:
            value = int(found, 16) if isinstance(found, str) else -1
        except ValueError:
            value = -1
        if not 0 <= value < _LARGEST:
            raise self._wrong(key, "an address")
        return value

    def one_of(self, key: str, words: Callable[[str], T], default: object = None) -> T:
        found = self._get(key, _NEEDED if default is None else default)
        try:
            return words(found) if isinstance(found, str) else words("")
        except ValueError:
            raise self._wrong(key, "a word that is known") from None

    def integers(self, key: str) -> tuple[int, ...]:
        return tuple(self._integer(key, one) for one in self._list(key))

    def texts(self, key: str) -> tuple[str, ...]:
        found = self._list(key)
        if not all(isinstance(one, str) for one in found):
            raise self._wrong(key, "a list of texts")
        return tuple(clean(str(one)) for one in found)

    def _list(self, key: str, default: object = None) -> list[Any]:
        found = self._get(key, [] if default is None else default)
        if not isinstance(found, list):
            raise self._wrong(key, "a list")
        return found

    def all(self, key: str, read: Callable[[_Fields], T], default: object = None) -> tuple[T, ...]:
        return tuple(
            read(_Fields(one, f"{self._at(key)}[{n}]"))
            for n, one in enumerate(self._list(key, default))
        )

    def object(self, key: str) -> _Fields:
        return _Fields(self._get(key, _NEEDED), self._at(key))

    def object_or_none(self, key: str) -> _Fields | None:
        return None if self._found.get(key) is None else self.object(key)

    def mapping(self, key: str) -> dict[Any, Any]:
        found = self._get(key, {})
        if not isinstance(found, dict):
            raise self._wrong(key, "an object")
        return found

    def by_kind(self, key: str) -> dict[Kind, float]:
        try:
            return {
                Kind(kind): self._number(key, value) for kind, value in self.mapping(key).items()
            }
        except ValueError:
            raise self._wrong(key, "of kinds that are known") from None

    def stacks(self, key: str) -> dict[int, tuple[Frame, ...]]:
        read: dict[int, tuple[Frame, ...]] = {}
        for name, frames in self.mapping(key).items():
            if not (isinstance(name, str) and name.isdecimal() and len(name) < 20):
                raise self._wrong(key, "by numbers of stacks")
            where = f"{self._at(key)}.{name}"
            if not isinstance(frames, list) or len(frames) > _DEEPEST:
                raise _WrongError(f"{where} is not a list of frames")
            read[int(name)] = tuple(
                _frame(_Fields(frame, f"{where}[{n}]")) for n, frame in enumerate(frames)
            )
        return read

    def sites(self, key: str) -> dict[int, Frame]:
        return {
            self._address(key, name): _frame(_Fields(frame, f"{self._at(key)}.{name}"))
            for name, frame in self.mapping(key).items()
        }


_NEEDED = object()


def _snapshot(top: _Fields) -> Snapshot:
    if top.text("format") != FORMAT:
        raise _WrongError(f"its format is not {FORMAT}")
    version = top.integer("version", _NEEDED)
    if version != VERSION:
        raise _WrongError(f"its version is {version}, known is {VERSION}")
    duration_s = top.number("duration_s", _NEEDED)
    return Snapshot(
        taken_at=top.text("taken_at"),
        host=top.text("host"),
        source=top.text("source"),
        duration_s=duration_s,
        interval_s=duration_s,  # shares were saved with the figures, rates were not
        process=_process(top.object("process")),
        threads=top.all("threads", _thread, _NEEDED),
        locks=top.all("locks", _lock, _NEEDED),
        deadlocks=top.all("deadlocks", _deadlock),
        lock_order=top.all("lock_order", _order),
        lock_order_suppressed=top.integer("lock_order_suppressed"),
        lock_order_unproven=top.integer("lock_order_unproven"),
        stacks=top.stacks("stacks"),
        sites=top.sites("sites"),
        events=top.all("events", _event),
        marks=top.all("marks", _mark),
        misuses=top.all("misuses", _misuse),
        patterns=top.all("patterns", _pattern),
        lost_events=top.integer("lost_events"),
        unobserved_waiters=top.integers("unseen_waiters"),
        unobserved_waits=top.all("unseen", _unseen),
        locks_left_out=top.integer("locks_left_out"),
        ended=top.flag("ended"),
        level=top.text("level", "contended"),
        complete=top.flag("complete", True),
        notes=top.texts("notes"),
    )


def _process(one: _Fields) -> Process:
    return Process(
        one.integer("pid", _NEEDED), one.text("comm"), one.texts("cmdline"), one.text("exe"),
        one.text("started_at"), one.number("cpu_share"), one.integer("rss_bytes"),
        one.integer("cpus"),
    )  # fmt: skip


def _thread(one: _Fields) -> Thread:
    wait = one.object_or_none("waiting_for")
    return Thread(
        tid=one.integer("tid", _NEEDED),
        name=one.text("name"),
        alive=one.flag("alive", True),
        state=one.one_of("state", ThreadState),
        waiting_for=_wait(wait) if wait is not None else None,
        holds=one.all("held", _held),
        wait_s=one.by_kind("wait_s"),
        cpu_s=one.number("cpu_s"),
        acquisitions=one.integer("acquisitions"),
        contended=one.integer("contended"),
        wait_share=one.number("wait_share"),
        idle_share=one.number("idle_share"),
        cpu_share=one.number("cpu_share"),
        time=_time(time) if (time := one.object_or_none("time")) else None,
        switches=_switches(found) if (found := one.object_or_none("switches")) else None,
        counters=_counters(counted) if (counted := one.object_or_none("counters")) else None,
        now=_now(now) if (now := one.object_or_none("now")) else None,
    )


def _time(one: _Fields) -> TimeSplit:
    return TimeSplit(
        one.share("cpu"), one.share("runnable"), one.share("contended"), one.share("idle"),
        one.share("disk"), one.share("other"),
        tuple(name for name in one.texts("unknown") if name in TimeSplit.__struct_fields__[:-1]),
    )  # fmt: skip


def _switches(one: _Fields) -> Switches:
    return Switches(
        one.integer("voluntary", _NEEDED), one.integer("involuntary", _NEEDED),
        one.integer_or_none("migrations"),
    )  # fmt: skip


def _counters(one: _Fields) -> Counters:
    return Counters(one.number("for_s"), one.all("counters", _counter))


def _counter(one: _Fields) -> Counter:
    return Counter(
        one.text("name", _NEEDED), one.text("unit"), one.number_or_none("total"),
        one.number("per_s"), one.text("why"),
    )  # fmt: skip


def _wait(one: _Fields) -> Wait:
    kind = one.one_of("kind", Kind)
    return Wait(
        lock=one.integer("lock", _NEEDED),
        kind=kind,
        duration_s=one.number("since_s"),
        holders=one.integers("holders"),
        stack=one.integer("stack"),
        site=one.address("site"),
        seq=0,
        timed=one.flag("timed"),
        shared=one.flag("shared"),
        idle=one.flag("idle", kind not in CONTENTION_KINDS),
        is_lower_bound=one.flag("at_least"),
    )


def _unseen(one: _Fields) -> UnobservedWait:
    return UnobservedWait(
        one.integer("tid", _NEEDED), one.address("address"), one.text("name"),
        one.number_or_none("since_s"), one.integer("stack"), one.text("type"),
        one.flag_or_none("idle"), one.text("why"),
    )  # fmt: skip


def _held(one: _Fields) -> Held:
    return Held(
        one.integer("lock", _NEEDED), one.address("site"), one.number_or_none("since_s"),
        one.integer("depth"), one.flag("shared"),
    )  # fmt: skip


def _lock(one: _Fields) -> Lock:
    kind = one.one_of("kind", Kind)
    return Lock(
        id=one.integer("id", _NEEDED),
        address=one.address("address"),
        kind=kind,
        name=one.text("name", _NEEDED),
        acquisitions=one.integer("acquisitions"),
        contended=one.integer("contended"),
        trylock_failed=one.integer("trylock_failed"),
        wait_s=one.number("wait_s", _NEEDED),
        wait_max_s=one.number("wait_max_s"),
        wait_error_s=one.number("wait_error_s"),
        hold_s=one.number("hold_s"),
        hold_timed=one.integer("hold_timed"),
        hold_max_s=one.number("hold_max_s"),
        holders=one.integers("holders"),
        waiters=one.integers("waiters"),
        wait_stacks=one.all("wait_stacks", _wait_stack),
        blame=one.all("blame", _blame),
        signals=one.integer("signals"),
        unheard=one.integer("unheard"),
        destroyed=one.flag("destroyed"),
        recursive=one.flag("recursive"),
        writers_first=one.flag("writers_first"),
        foreign_releases=one.flag("foreign_releases"),
        used_as_lock=one.flag("used_as_lock"),
        idle=one.flag("idle", kind not in CONTENTION_KINDS),
        idle_s=one.number("idle_s"),
        holder_activity=_now(now) if (now := one.object_or_none("holder_now")) else None,
        type=one.text("type"),
    )


def _now(one: _Fields) -> ThreadActivity:
    return ThreadActivity(
        one.integer("tid", _NEEDED), one.one_of("doing", ActivityState, ActivityState.UNKNOWN),
        one.text("call"), one.text("what"), one.number("for_s"), one.integer("stack"),
        one.number("stack_age_s"),
        one.number_or_none("cpu"), one.flag("at_least"),
    )  # fmt: skip


def _wait_stack(one: _Fields) -> WaitStack:
    return WaitStack(
        one.integer("stack", _NEEDED), one.integer("count", _NEEDED), one.number("wait_s", _NEEDED),
        one.flag("idle"),
    )  # fmt: skip


def _blame(one: _Fields) -> Blame:
    return Blame(
        one.integer("tid", _NEEDED), one.address("site"), one.number("wait_s", _NEEDED),
        one.integer("through"),
    )  # fmt: skip


def _deadlock(one: _Fields) -> Deadlock:
    return Deadlock(
        one.flag("certain"), one.number("since_s"), one.all("cycle", _edge), one.text("doubt"),
        one.integers("stuck"), one.flag("at_least"),
    )  # fmt: skip


def _edge(one: _Fields) -> DeadlockEdge:
    # "behind" is all that older ones say.
    how = (
        BlockReason.BEHIND
        if one.flag("behind")
        else one.one_of("how", BlockReason, BlockReason.HELD)
    )
    return DeadlockEdge(
        one.integer("tid", _NEEDED), one.integer("waits_for", _NEEDED), one.integer("held_by"),
        one.integer("stack"), one.address("site"), how, one.integer("pid"),
    )  # fmt: skip


def _order(one: _Fields) -> OrderCycle:
    return OrderCycle(
        one.integers("locks"), one.all("edges", _order_edge),
        one.one_of("confidence", Confidence, "high"), one.text("why"), one.texts("classes"),
    )  # fmt: skip


def _order_edge(one: _Fields) -> OrderEdge:
    return OrderEdge(
        one.integer("from", _NEEDED), one.integer("to", _NEEDED), one.integer("tid"),
        one.integer("stack"), one.address("from_site"), one.flag("shared"),
        one.flag("from_shared"),
    )  # fmt: skip


def _frame(one: _Fields) -> Frame:
    return Frame(
        one.address("address"), one.text("function"), one.text_or_none("file"),
        one.integer_or_none("line"), one.text("module"), one.address("offset"),
        one.flag("inlined"),
    )  # fmt: skip


def _event(one: _Fields) -> Event:
    return Event(
        tid=one.integer("tid", _NEEDED),
        lock=one.integer("lock", _NEEDED),
        kind=one.one_of("kind", Kind),
        ago_s=one.number("ago_s"),
        wait_s=one.number("wait_s"),
        hold_s=one.number_or_none("hold_s"),
        stack=one.integer("stack"),
        holder=one.integer("holder"),
        site=one.address("site"),
        timed_out=one.flag("timed_out"),
    )


def _mark(one: _Fields) -> Mark:
    return Mark(one.integer("tid", _NEEDED), one.number("ago_s"), one.text("text"))


def _misuse(one: _Fields) -> Misuse:
    return Misuse(
        one.one_of("kind", MisuseKind), one.integer("lock", _NEEDED), one.integer("tid"),
        one.integer("other"), one.integer("stack"), one.integer("count"), one.number("ago_s"),
    )  # fmt: skip


def _pattern(one: _Fields) -> Pattern:
    return Pattern(
        one.one_of("name", PatternName), one.integer_or_none("lock") or 0, one.integers("tids"),
        one.text("evidence"), one.text("advice"),
    )  # fmt: skip
