"""Rules that classify waits as idle or contended, and that name the types of futexes.

The rules are data and have an order: the first rule that matches a wait decides. docs/idle.md
describes the format. The shipped rules are in idle.rules beside this file.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from functools import cache, reduce
from operator import or_
from pathlib import Path

from msgspec import Struct, field

from locktop.collector.model import CONTENTION_KINDS, Frame, Kind

_SHIPPED = Path(__file__).with_name("idle.rules")
_KEYS = ("kind", "function", "innermost", "thread", "lock", "type", "waker")
_NEITHER = "neither"
_FOR_ALL = "for-all"
_VERDICTS = {"idle": True, "contended": False, _NEITHER: False}
_REASON = " -- "
#: The cache of functions is emptied when it has so many entries.
MAX_CACHED = 100_000

#: Returns something true if a name matches.
_Matcher = Callable[[str], object]


class Waker(StrEnum):
    """The relation of a futex to the thread that wakes its waiters."""

    UNKNOWN = ""
    HOLDER = "holder"  # the lock, since the last wake
    #: The same, and each thread that waited and got the lock wakes at its release.
    EVERY_HOLDER = "every-holder"


class IdleRule(Struct, frozen=True):
    """One rule. A wait matches if it meets all conditions, and one of ``functions``."""

    idle: bool
    name: str
    reason: str = ""
    kinds: frozenset[Kind] = frozenset(Kind)
    functions: tuple[str, ...] = ()  # globs, each perhaps with @ and a glob of file or module
    innermost: int = 0  # how many of the innermost frames count, 0 = all
    thread: str = ""  # a glob, "" = any
    lock: str = ""  # a glob, "" = any
    held: bool = False  # the lock has a known holder, or is a semaphore used as a lock
    several: bool = False  # two or more threads wait for the semaphore at once
    for_all: bool = False  # the verdict on one wait for a semaphore holds for its other waits too
    type: str = ""  # the type of a futex that is waited for there: "Rust Mutex"
    only_type: bool = False  # the rule names a type and has no verdict
    waker: Waker = Waker.UNKNOWN  # of a futex of this type

    @property
    def needs_more_than_stack(self) -> bool:
        """Whether the rule has conditions that the stack alone does not decide."""
        return bool(self.thread or self.lock or self.held or self.several)

    @property
    def knows_kind_alone(self) -> bool:
        """Whether the rule knows nothing of a wait but its kind, so not what the wait is for."""
        return not self.functions and not self.needs_more_than_stack


def parse(text: str, origin: str) -> tuple[IdleRule, ...]:
    """Return the rules in a text.

    Raises:
        ValueError: A rule is malformed; the message names ``origin`` and the line.
    """
    rules = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            try:
                rules.append(_rule(line))
            except ValueError as error:
                raise ValueError(f"{origin}, line {number}: {error}") from None
    return tuple(rules)


def matching(glob: str) -> IdleRule:
    """Return the rule of the option ``--idle-matching``.

    Args:
        glob: A glob of functions whose waits are idle; after a ``!``, contended.

    Raises:
        ValueError: The glob is empty.
    """
    functions = glob.removeprefix("!")
    if not functions.strip():
        raise ValueError("--idle-matching needs a function, such as 'pool::*' or '!take_turn'")
    return IdleRule(functions == glob, f"--idle-matching {glob}", functions=(functions,))


@cache
def shipped() -> tuple[IdleRule, ...]:
    """Return the shipped rules."""
    return parse(_SHIPPED.read_text("utf-8"), str(_SHIPPED))


def _rule(line: str) -> IdleRule:
    line, _, reason = line.partition(_REASON)
    words = shlex.split(line) if "'" in line or '"' in line else line.split()
    if words[0] not in _VERDICTS:
        raise ValueError(f"{words[0]!r} is neither idle nor contended")
    if len(words) < 2 or "=" in words[1]:
        raise ValueError("the rule needs a name after its first word")
    conditions = _Conditions()
    for word in words[2:]:
        conditions.add(word)
    if not conditions.type and words[0] == _NEITHER:
        raise ValueError("a rule that says neither needs type=")
    if conditions.waker and not conditions.type:
        raise ValueError("a rule with waker= needs type=")
    return IdleRule(
        idle=_VERDICTS[words[0]],
        name=words[1],
        reason=reason.strip(),
        kinds=frozenset(conditions.kinds or Kind),
        functions=tuple(conditions.functions),
        innermost=conditions.innermost,
        thread=conditions.thread,
        lock=conditions.lock,
        held=conditions.held,
        several=conditions.several,
        for_all=conditions.for_all,
        type=conditions.type,
        only_type=words[0] == _NEITHER,
        waker=conditions.waker,
    )


class _Conditions(Struct):
    """The conditions of a rule, collected word by word from its line."""

    kinds: list[Kind] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    innermost: int = 0
    thread: str = ""
    lock: str = ""
    held: bool = False
    several: bool = False
    for_all: bool = False
    type: str = ""
    waker: Waker = Waker.UNKNOWN

    def add(self, word: str) -> None:
        key, equals, value = word.partition("=")
        if word == "held":
            self.held = True
        elif word == "several":
            self.several = True
        elif word == _FOR_ALL:
            self.for_all = True
        elif key not in _KEYS or not equals:
            raise ValueError(
                f"{word!r} is no condition; there are kind=, function=, innermost=, thread=, lock=,"
                f" held, several, {_FOR_ALL}, type= and waker="
            )
        elif not value:
            raise ValueError(f"{key}= needs a value")
        elif key == "kind":
            self.kinds += [_kind(name) for name in value.split(",")]
        elif key == "function":
            self.functions.append(value)
        elif key == "innermost":
            self.innermost = _count(value)
        elif key == "thread":
            self.thread = value
        elif key == "type":
            self.type = value
        elif key == "waker":
            self.waker = _waker(value)
        else:
            self.lock = value


def _kind(word: str) -> Kind:
    try:
        return Kind(word)
    except ValueError:
        raise ValueError(f"{word!r} is no kind; there are {', '.join(Kind)}") from None


def _waker(word: str) -> Waker:
    try:
        return Waker(word)
    except ValueError:
        raise ValueError(f"waker={word} is neither holder nor every-holder") from None


def _count(word: str) -> int:
    if not word.isdecimal() or not 0 < int(word) < 1000:
        raise ValueError(f"innermost={word} is not a number of frames")
    return int(word)


class Rules:
    """An ordered set of rules, prepared for fast matching."""

    def __init__(self, own: Iterable[IdleRule] = ()) -> None:
        """``own``: the user's rules, which come before the shipped rules."""
        self._globs: dict[str, int] = {}  # globs of functions, with one bit each
        self._matchers: list[tuple[_Matcher, _Matcher | None]] = []  # of each glob
        self._bits: dict[tuple[str, str | None, str], int] = {}  # by function, file, module
        self._of_kind: dict[Kind, list[tuple[IdleRule, int]]] = {kind: [] for kind in Kind}
        self._wakers: dict[str, Waker] = {}  # by type of futex
        for rule in (*own, *shipped(), *_FALLBACKS):
            bits = sum({self._bit(glob) for glob in rule.functions})
            for kind in rule.kinds:
                self._of_kind[kind].append((rule, bits))
            if rule.type:
                self._wakers.setdefault(rule.type, rule.waker)

    def candidates(self, kind: Kind, frames: Sequence[Frame]) -> tuple[IdleRule, ...]:
        """Return the rules that a wait may match, in order.

        Args:
            kind: The kind of the wait.
            frames: The stack of the wait, innermost first.

        Returns:
            At least one rule. The last rule matches whatever the thread and the lock are.
        """
        rules = []
        for rule in self._matching_stack(kind, frames):
            if rule.only_type:
                continue
            rules.append(rule)
            if not rule.needs_more_than_stack:
                break
        return tuple(rules)

    def type(self, frames: Sequence[Frame]) -> str:
        """Return the type of a futex by the stack of a waiter; "" if no rule names a type.

        The verdicts do not matter: a rule of the user may come before the rule with the type.
        """
        rules = self._matching_stack(Kind.FUTEX, frames) if frames else ()
        return next((rule.type for rule in rules if rule.type), "")

    def waker(self, type_: str) -> Waker:
        """Return what a thread that wakes the waiters of a futex of this type had of it. The first
        rule with the type decides."""
        return self._wakers.get(type_, Waker.UNKNOWN)

    def _matching_stack(self, kind: Kind, frames: Sequence[Frame]) -> Iterator[IdleRule]:
        """Yield the rules whose functions are in the stack, in order."""
        bits_of_frames = [self._bits_of(frame) for frame in frames]
        anywhere = reduce(or_, bits_of_frames, 0)
        for rule, bits in self._of_kind[kind]:
            if bits and not bits & anywhere:
                continue
            if rule.innermost and not any(
                bits & frame_bits for frame_bits in bits_of_frames[: rule.innermost]
            ):
                continue
            yield rule

    def _bit(self, glob: str) -> int:
        if glob not in self._globs:
            self._globs[glob] = 1 << len(self._globs)
            function, _, where = glob.partition("@")
            self._matchers.append(
                (_function_matcher(function), _glob_matcher(where) if where else None)
            )
        return self._globs[glob]

    def _bits_of(self, frame: Frame) -> int:
        key = frame.function, frame.file, frame.module
        bits = self._bits.get(key)
        if bits is None:
            if len(self._bits) >= MAX_CACHED:
                self._bits.clear()
            bits = self._bits[key] = sum(
                1 << number
                for number, (function, where) in enumerate(self._matchers)
                if function(frame.function) and (where is None or _is_in(frame, where))
            )
        return bits


def choose(
    candidates: Sequence[IdleRule],
    lock: str,
    thread: str | None,
    held: bool,
    several: bool = False,
) -> IdleRule:
    """Return the first of ``candidates`` that a wait matches.

    Args:
        candidates: Rules whose functions match already, see ``Rules.candidates``.
        lock: The name of the lock.
        thread: The name of the thread; None for a sum over the waits of many threads.
        held: See ``IdleRule.held``.
        several: See ``IdleRule.several``.
    """
    for rule in candidates:
        if (rule.held and not held) or (rule.several and not several):
            continue
        if rule.lock and not _glob_matcher(rule.lock)(lock):
            continue
        if rule.thread and (thread is None or not _glob_matcher(rule.thread)(thread)):
            continue
        return rule
    return candidates[-1]


#: Each wait matches one of these rules, whatever the files have.
_FALLBACKS = (
    IdleRule(False, "held", "another thread holds the lock", CONTENTION_KINDS),
    IdleRule(
        True,
        "signalled",
        "no thread holds it: another thread signals",
        frozenset(Kind) - CONTENTION_KINDS,
    ),
)


@cache
def names_by_kind_alone() -> frozenset[str]:
    """Return the names of the built-in rules that know nothing of a wait but its kind."""
    return frozenset(rule.name for rule in (*shipped(), *_FALLBACKS) if rule.knows_kind_alone)


@cache
def _glob_matcher(glob: str) -> _Matcher:
    """Return a matcher for a glob: ``*`` is any text, ``?`` is any character. Brackets stand for
    themselves, because names of functions have brackets."""
    parts = [{"*": ".*", "?": "."}.get(character, re.escape(character)) for character in glob]
    return re.compile("".join(parts), re.DOTALL).fullmatch


def _is_in(frame: Frame, where: _Matcher) -> bool:
    """Return whether a frame is in a module or file; a file matches with and without directory."""
    file = frame.file or ""
    return any(where(name) for name in (frame.module, file, file.rpartition("/")[2]) if name)


def _function_matcher(glob: str) -> _Matcher:
    """Return a matcher for functions, which match with and without their arguments. The empty glob
    matches a function without a name too."""
    if not glob:
        return lambda name: True
    matches, matches_call = _glob_matcher(glob), _glob_matcher(glob + "(*")
    return lambda name: bool(name) and (matches(name) or matches_call(name))
