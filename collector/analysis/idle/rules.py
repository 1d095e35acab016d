"""Rules that tell waits for work from contention, and what futexes are: data, in order, the first
that fits counts.

docs/idle.md has the format; those that come with locktop are in idle.rules beside this file.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, reduce
from operator import or_
from pathlib import Path

from locktop.collector.errors import LocktopError
from locktop.collector.model import CONTENTION_KINDS, Frame, Kind

_SHIPPED = Path(__file__).with_name("idle.rules")
_KEYS = ("kind", "function", "innermost", "thread", "lock", "type")
_NEITHER = "neither"
_FOR_ALL = "for-all"
_VERDICTS = {"idle": True, "contended": False, _NEITHER: False}
_REASON = " -- "
#: Functions are looked at again when so many are known.
_MAX_KEPT = 100_000

_Found = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: all that is given has to fit; of several functions one."""

    idle: bool
    name: str
    reason: str = ""
    kinds: frozenset[Kind] = frozenset(Kind)
    functions: tuple[str, ...] = ()  # globs, each perhaps with @ and a glob of file or module
    innermost: int = 0  # only so many frames are looked at, 0 = all
    thread: str = ""  # a glob, "" = any
    lock: str = ""  # a glob, "" = any
    held: bool = False  # somebody is known to hold it, or it is a semaphore used as a lock
    for_all: bool = False  # what it says of one wait for a semaphore goes for the others, too
    type: str = ""  # what is waited for there, where that is a futex: "Rust Mutex"
    only_type: bool = False  # it says that and no more: there is no verdict

    @property
    def asks_more(self) -> bool:
        """Whether it asks for more than a stack."""
        return bool(self.thread or self.lock or self.held)


def parse(text: str, origin: str) -> tuple[Rule, ...]:
    """Return the rules in a text. Raises LocktopError, which names ``origin`` and the line."""
    rules = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            try:
                rules.append(_rule(line))
            except ValueError as error:
                raise LocktopError(f"{origin}, line {number}: {error}") from None
    return tuple(rules)


def matching(glob: str) -> Rule:
    """Return the rule of ``--idle-matching``: a glob of functions, after a ``!`` of contended
    ones. Raises LocktopError where it is empty."""
    functions = glob.removeprefix("!")
    if not functions.strip():
        raise LocktopError("--idle-matching needs a function, such as 'pool::*' or '!take_turn'")
    return Rule(functions == glob, f"--idle-matching {glob}", functions=(functions,))


@cache
def shipped() -> tuple[Rule, ...]:
    """Return the rules that come with locktop."""
    return parse(_SHIPPED.read_text("utf-8"), str(_SHIPPED))


def _rule(line: str) -> Rule:
    line, _, reason = line.partition(_REASON)
    words = shlex.split(line) if "'" in line or '"' in line else line.split()
    if words[0] not in _VERDICTS:
        raise ValueError(f"{words[0]!r} is neither idle nor contended")
    if len(words) < 2 or "=" in words[1]:
        raise ValueError("the rule needs a name after its first word")
    given = _Given()
    for word in words[2:]:
        given.take(word)
    if not given.type and words[0] == _NEITHER:
        raise ValueError("a rule that says neither needs type=")
    return Rule(
        _VERDICTS[words[0]], words[1], reason.strip(), frozenset(given.kinds or Kind),
        tuple(given.functions), given.innermost, given.thread, given.lock, given.held,
        given.for_all, given.type, words[0] == _NEITHER,
    )  # fmt: skip


@dataclass(slots=True)
class _Given:
    """The conditions of a line, word by word."""

    kinds: list[Kind] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    innermost: int = 0
    thread: str = ""
    lock: str = ""
    held: bool = False
    for_all: bool = False
    type: str = ""

    def take(self, word: str) -> None:
        key, equals, value = word.partition("=")
        if word == "held":
            self.held = True
        elif word == _FOR_ALL:
            self.for_all = True
        elif key not in _KEYS or not equals:
            raise ValueError(
                f"{word!r} is no condition; there are kind=, function=, innermost=, thread=, lock=,"
                f" held, {_FOR_ALL}, and type="
            )
        elif not value:
            raise ValueError(f"{key}= needs a value")
        elif key == "kind":
            self.kinds += [_kind(one) for one in value.split(",")]
        elif key == "function":
            self.functions.append(value)
        elif key == "innermost":
            self.innermost = _count(value)
        elif key == "thread":
            self.thread = value
        elif key == "type":
            self.type = value
        else:
            self.lock = value


def _kind(word: str) -> Kind:
    try:
        return Kind(word)
    except ValueError:
        raise ValueError(f"{word!r} is no kind; there are {', '.join(Kind)}") from None


def _count(word: str) -> int:
    if not word.isdecimal() or not 0 < int(word) < 1000:
        raise ValueError(f"innermost={word} is not a number of frames")
    return int(word)


class Rules:
    """Rules made ready: first those given, then those that come with locktop."""

    def __init__(self, own: Iterable[Rule] = ()) -> None:
        self._globs: dict[str, int] = {}  # of functions, by their bit
        self._tests: list[tuple[_Found, _Found | None]] = []  # of each of these
        self._bits: dict[tuple[str, str | None, str], int] = {}  # by function, file, module
        self._of_kind: dict[Kind, list[tuple[Rule, int]]] = {kind: [] for kind in Kind}
        for rule in (*own, *shipped(), *_LAST):
            bits = sum({self._bit(glob) for glob in rule.functions})
            for kind in rule.kinds:
                self._of_kind[kind].append((rule, bits))

    def candidates(self, kind: Kind, frames: Sequence[Frame]) -> tuple[Rule, ...]:
        """Return the rules that a wait of this kind in this stack (innermost first) may fit, in
        order, the last being one that it fits whatever its thread and its lock."""
        found = []
        for rule in self._fitting(kind, frames):
            if rule.only_type:
                continue
            found.append(rule)
            if not rule.asks_more:
                break
        return tuple(found)

    def type(self, frames: Sequence[Frame]) -> str:
        """Return what a futex is, by the functions of one that waits for it; "" where they do not
        tell. Whatever the verdict: a rule of the user's own may come before the one that tells."""
        fitting = self._fitting(Kind.FUTEX, frames) if frames else ()
        return next((rule.type for rule in fitting if rule.type), "")

    def _fitting(self, kind: Kind, frames: Sequence[Frame]) -> Iterator[Rule]:
        """Those whose functions are there, in order."""
        seen = [self._bits_of(frame) for frame in frames]
        anywhere = reduce(or_, seen, 0)
        for rule, bits in self._of_kind[kind]:
            if bits and not bits & anywhere:
                continue
            if rule.innermost and not any(bits & one for one in seen[: rule.innermost]):
                continue
            yield rule

    def _bit(self, glob: str) -> int:
        if glob not in self._globs:
            self._globs[glob] = 1 << len(self._globs)
            function, _, where = glob.partition("@")
            self._tests.append((_function_test(function), _test(where) if where else None))
        return self._globs[glob]

    def _bits_of(self, frame: Frame) -> int:
        key = frame.function, frame.file, frame.module
        bits = self._bits.get(key)
        if bits is None:
            if len(self._bits) >= _MAX_KEPT:
                self._bits.clear()
            bits = self._bits[key] = sum(
                1 << number
                for number, (function, where) in enumerate(self._tests)
                if function(frame.function) and (where is None or _is_in(frame, where))
            )
        return bits


def choose(candidates: Sequence[Rule], lock: str, thread: str | None, held: bool) -> Rule:
    """Return the first of ``candidates`` that a wait fits, by the name of its lock and of its
    thread; ``thread`` is None for a sum over the waits of many. ``held``: see Rule."""
    for rule in candidates:
        if rule.held and not held:
            continue
        if rule.lock and not _test(rule.lock)(lock):
            continue
        if rule.thread and (thread is None or not _test(rule.thread)(thread)):
            continue
        return rule
    return candidates[-1]


#: Whatever is in a file, each wait fits one of these.
_LAST = (
    Rule(False, "held", "somebody holds what is waited for", CONTENTION_KINDS),
    Rule(
        True, "signalled", "nobody holds it: somebody signals", frozenset(Kind) - CONTENTION_KINDS
    ),
)


@cache
def _test(glob: str) -> _Found:
    """``*`` stands for any text and ``?`` for any character; brackets are what they are, for names
    have them too."""
    parts = [{"*": ".*", "?": "."}.get(one, re.escape(one)) for one in glob]
    return re.compile("".join(parts), re.DOTALL).fullmatch


def _is_in(frame: Frame, where: _Found) -> bool:
    """A file fits with and without its directory."""
    file = frame.file or ""
    return any(where(one) for one in (frame.module, file, file.rpartition("/")[2]) if one)


def _function_test(glob: str) -> _Found:
    """A function fits with and without its arguments; without a glob one without a name too."""
    if not glob:
        return lambda name: True
    whole, bare = _test(glob), _test(glob + "(*")
    return lambda name: bool(name) and (whole(name) or bare(name))
