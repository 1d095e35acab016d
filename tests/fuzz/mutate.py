"""Damage to files on purpose: the same seed does the same damage again."""

from __future__ import annotations

import random
from collections.abc import Sequence

_EDGES = (0, 1, 0x7F, 0xFF, 0xFFFF, 0x7FFF_FFFF, 0xFFFF_FFFF, 1 << 40, (1 << 63) - 1, (1 << 64) - 1)


def damaged(data: bytes, seed: int, ranges: Sequence[tuple[int, int]] = ()) -> bytes:
    """Return ``data`` with some damage.

    Bytes change, numbers are at their limits, and parts are cut off, doubled or swapped. Most of
    the damage is within ``ranges`` (offset, size), if there are any.
    """
    chance = random.Random(seed)
    damaged = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        start, size = chance.choice(ranges) if ranges and chance.random() < 0.9 else (0, len(data))
        if start < len(damaged) and size > 0:
            at = start + chance.randrange(min(size, len(damaged) - start))
            _damage(damaged, at, chance)
    return bytes(damaged)


def _damage(data: bytearray, at: int, chance: random.Random) -> None:
    kind = chance.randrange(12)
    width = chance.choice((1, 2, 4, 8))
    if kind < 4:
        data[at] = chance.randrange(256)
    elif kind < 5:
        data[at] ^= 1 << chance.randrange(8)
    elif kind < 9:  # a number; numbers of ELF lie at multiples of their size
        at -= at % width
        value = chance.choice(
            (*_EDGES, len(data), chance.getrandbits(64), _number(data, at, width) + 1)
        )
        data[at : at + width] = (value % (1 << 8 * width)).to_bytes(width, "little")
    elif kind < 10:
        size = chance.randrange(1, 64)
        other = chance.randrange(len(data))
        data[at : at + size] = data[other : other + size].ljust(len(data[at : at + size]), b"\0")
    elif kind < 11:
        data[at : at + chance.randrange(1, 256)] = b""
    else:
        del data[at:]
        data.append(0)


def _number(data: bytearray, at: int, width: int) -> int:
    return int.from_bytes(data[at : at + width], "little")


_STRANGE = (
    b"-1", b"0", b"18446744073709551615", b"18446744073709551616", b"9" * 60,
    b"-9223372036854775809", b"0x", b"0x-5", b"0x1_0", b"0xffffffffffffffff",
    b"0x10000000000000000", b"", b" ", b"\n", b"\0", b")", b"(", b") S 1 (", b"\x1b[31m",
    b"\xff\xfe", b"running", b"1e9", b"nan", b"\xd9\xa1",
)  # fmt: skip


def garbled(text: bytes, seed: int) -> bytes:
    """Return a line of /proc with some damage.

    Words are no numbers, too large, doubled or left out; characters are of any sort; the end is
    missing.
    """
    chance = random.Random(seed)
    words = text.split(b" ")
    for _ in range(chance.choice((1, 1, 2, 4))):
        at, kind = chance.randrange(len(words)), chance.randrange(8)
        if kind < 4:
            number = b"%d" % chance.getrandbits(chance.choice((8, 70)))
            words[at] = chance.choice((*_STRANGE, number))
        elif kind < 5:
            words.insert(at, words[chance.randrange(len(words))])
        elif kind < 6 and len(words) > 1:
            del words[at]
        elif kind < 7:
            words[at] += chance.randbytes(chance.randrange(1, 9))
        else:
            words = words[: at + 1]
            words[at] = words[at][: chance.randrange(len(words[at]) + 1)]
    return b" ".join(words)
