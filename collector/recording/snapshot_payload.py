"""One snapshot as bytes: all of the model, so that a screen draws it as it drew the live one.

A payload is a msgpack array of two elements. The first is the ``Snapshot``, a map by the names of
its fields; structs inside are maps, too. The second maps the id of a lock to its ``PackedBlame``.
Thus the blame of a crowd of threads stays in rows, which keeps writing and reading cheap.

The map has the sections of extensions under the key of their field. Some sections are beside the
fields instead, as in the files of before there were extensions.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Struct, defstruct
from msgspec.structs import replace

from locktop.collector.errors import LocktopError
from locktop.collector.extension.discovery import extensions, sections
from locktop.collector.model import LazyBlame, PackedBlame, PackedHistogram, Snapshot
from locktop.collector.native import lib
from locktop.collector.recording.recorded_blame import RecordedBlame
from locktop.collector.sanitize import clean

#: The largest id or counter has 64 bits. No figure of a model comes near the second.
_MAX_INTEGER, _MAX_NUMBER = (1 << 64) - 1, 1e18
#: The estimated memory of a decoded payload: so much for each of its bytes, and so much for any
#: payload. Real snapshots take up to 5 bytes for each byte. A row of tiny lists takes 30.
_MAX_MEMORY_PER_BYTE, _MAX_MEMORY_OF_SMALL = 8, 1 << 20
#: In JSON: a number that may be too large begins with 20 digits, or has an exponent of two digits.
#: No integer of a model is negative. Small fractions have many digits, so the first digits count.
_STRANGE = re.compile(rb"[\":,\[]\d{20}|\d[eE]\+?\d\d|[:,\[]-\d+[,\]}]")
#: In msgpack: how a float begins that is infinite or no number.
_NO_NUMBER = re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]|\xca[\x7f\xff][\x80-\xff]")


#: The sections that are beside the fields of the snapshot.
_BESIDE = tuple(extension.name for extension in extensions() if extension.is_recorded_as_field)

if TYPE_CHECKING:
    _RecordedSnapshot = Snapshot
else:
    _RecordedSnapshot = defstruct(
        "_RecordedSnapshot",
        [(name, Any, UNSET) for name in _BESIDE],
        bases=(Snapshot,),
        frozen=True,
        gc=False,
    )


class _Payload(Struct, array_like=True, frozen=True):
    snapshot: _RecordedSnapshot
    blame: dict[int, PackedBlame]


def _encode_blame(value: object) -> Any:
    """Encode blame in rows as no blame: the rows are in the second part."""
    if isinstance(value, LazyBlame):
        return ()
    if isinstance(value, PackedHistogram):
        return value.unpack()
    raise NotImplementedError(type(value).__name__)


_ENCODER = msgspec.msgpack.Encoder(enc_hook=_encode_blame)
_DECODER = msgspec.msgpack.Decoder(_Payload)
_JSON = msgspec.json.Encoder(enc_hook=_encode_blame)


def encode(snapshot: Snapshot) -> bytes:
    """Return the payload of ``snapshot``."""
    rows = {
        lock.id: lock.blame.packed() for lock in snapshot.locks if isinstance(lock.blame, LazyBlame)
    }
    return _ENCODER.encode(_Payload(snapshot=_to_recorded(snapshot), blame=rows))


def _to_recorded(snapshot: Snapshot) -> _RecordedSnapshot:
    """Return a snapshot with its sections at their places in a payload."""
    fields = {name: getattr(snapshot, name) for name in Snapshot.__struct_fields__}
    others = dict(snapshot.sections)
    beside = {name: others.pop(name) for name in _BESIDE if name in others}
    return _RecordedSnapshot(**{**fields, "sections": others, **beside})


def decode(payload: bytes) -> Snapshot:
    """Return the snapshot of a payload, which may come from a stranger.

    Raises:
        LocktopError: the payload is no snapshot.
    """
    try:
        _check_memory(payload)
        decoded = _DECODER.decode(payload)
        for packed in decoded.blame.values():
            RecordedBlame.check(packed)
        _check_histograms(decoded.snapshot)
        _gather_lock_parts(decoded.snapshot, payload)
        recorded = decoded.snapshot if is_harmless(decoded.snapshot, payload) else _check(decoded)
        snapshot = _snapshot(recorded)
    except (msgspec.MsgspecError, ValueError, RecursionError, MemoryError) as error:
        reason = str(error) or type(error).__name__
        raise LocktopError(f"a recorded snapshot is damaged: {reason}") from None
    return _add_blame(snapshot, decoded.blame)


def decode_own(payload: bytes) -> Snapshot:
    """Return the snapshot of a payload that this process has made of a harmless snapshot.

    The checks of ``decode`` would take most of the time.
    """
    decoded = _DECODER.decode(payload)
    return _add_blame(_snapshot(decoded.snapshot), decoded.blame)


def _snapshot(recorded: _RecordedSnapshot) -> Snapshot:
    """Return the snapshot with the sections of the extensions that there still are."""
    fields = {name: getattr(recorded, name) for name in Snapshot.__struct_fields__}
    beside = {name: part for name in _BESIDE if (part := getattr(recorded, name))}
    if parts := {**fields["sections"], **beside}:
        registered = sections()
        fields["sections"] = {
            name: msgspec.convert(part, registered[name].model)
            for name, part in parts.items()
            if name in registered
        }
    return Snapshot(**fields)


def _gather_lock_parts(recorded: _RecordedSnapshot, payload: bytes) -> None:
    """Fill in what older recordings have in each lock, and a section has by lock id today."""
    for name in _BESIDE:
        part, section = getattr(recorded, name), sections().get(name)
        if section is None or section.lock_key is None:
            continue
        if isinstance(part, dict) and "locks" not in part:
            fields, _ = msgspec.msgpack.decode(payload)
            part["locks"] = {lock["id"]: lock[name] for lock in fields["locks"] if lock.get(name)}


def _add_blame(snapshot: Snapshot, rows: dict[int, PackedBlame]) -> Snapshot:
    if not rows:
        return snapshot
    locks = [
        replace(lock, blame=RecordedBlame(rows[lock.id])) if lock.id in rows else lock
        for lock in snapshot.locks
    ]
    return replace(snapshot, locks=tuple(locks))


def _check_memory(payload: bytes) -> None:
    """Raise ValueError for a payload that would take far more memory than a real one.

    A few bytes that are packed well may promise millions of tiny objects.
    """
    limit = _MAX_MEMORY_OF_SMALL + _MAX_MEMORY_PER_BYTE * len(payload)
    if lib.lt_unpacked_memory(payload, len(payload), limit) > limit:
        raise ValueError("it has more parts than a snapshot, or is cut off")


def _check_histograms(snapshot: Snapshot) -> None:
    """Raise ValueError for a histogram that is none."""
    for lock in snapshot.locks:
        if lock.wait_histogram is not None:
            lock.wait_histogram.check()
        if lock.hold_histogram is not None:
            lock.hold_histogram.check()
    for thread in snapshot.threads:
        if thread.wait_histogram is not None:
            thread.wait_histogram.check()


def is_harmless(snapshot: Snapshot, payload: bytes) -> bool:
    """Return whether all texts and numbers are harmless for sure; a look at JSON is cheap.

    JSON has a backslash before each control character, and before few others.
    """
    if _NO_NUMBER.search(payload):
        return False
    text = _JSON.encode(snapshot)
    return b"\\" not in text and not _STRANGE.search(text) and text.decode().isprintable()


def _check(decoded: _Payload) -> _RecordedSnapshot:
    """Return the snapshot with clean texts. Raises ValueError for an impossible number."""
    return msgspec.convert(
        _clean(msgspec.to_builtins(decoded.snapshot, enc_hook=_encode_blame)), _RecordedSnapshot
    )


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {_clean(key): _clean(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(part) for part in value]
    if isinstance(value, float) and not abs(value) <= _MAX_NUMBER:
        raise ValueError("a number out of range")
    if isinstance(value, int) and not 0 <= value <= _MAX_INTEGER:
        raise ValueError("a number out of range")
    return value
