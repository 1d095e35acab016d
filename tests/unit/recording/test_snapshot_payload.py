"""Payloads of snapshots: from locktop itself, and from a stranger."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace
from unit.builders import predicted, scenarios
from unit.builders.self_profiles import self_profile
from unit.render.documents.test_snapshot_codec import full

from locktop.collector.errors import LocktopError
from locktop.collector.model import LazyBlame, PackedBlame, PlainHistogram, Snapshot
from locktop.collector.recording import frame_format, snapshot_payload
from locktop.collector.recording.recorded_blame import RecordedBlame
from locktop.collector.render.documents import snapshot_codec

_ROW = (1, 7, 2_000)  # origin, tid, ticks
_ROWS = PackedBlame(
    origins=((0, 0), (0x40, 3)),
    rows=b"".join(
        (0).to_bytes(4, "little")
        + origin.to_bytes(4, "little")
        + tid.to_bytes(4, "little")
        + bytes(4)
        + ticks.to_bytes(8, "little")
        for origin, tid, ticks in (_ROW, (0, 0, 500))
    ),
    hz=1000.0,
    unheld_s=0.5,
    behind_s=2.0,
)


def with_rows(rows: PackedBlame) -> Snapshot:
    """A snapshot whose first lock has blame in rows."""
    made = scenarios.deadlock()
    first, *others = made.locks
    return replace(made, locks=(replace(first, blame=RecordedBlame(rows)), *others))


def test_a_snapshot_with_a_value_in_every_part_comes_back() -> None:
    made = full()
    assert snapshot_payload.decode(snapshot_payload.encode(made)) == made


def test_the_section_of_a_session_part_lies_beside_the_fields_as_in_old_recordings() -> None:
    profiles = (self_profile({4: 3}, "one"), self_profile({}, "two", 2))
    made = replace(scenarios.normal(), sections={"profiles": profiles, "whatif": predicted.FOUND})
    payload = snapshot_payload.encode(made)
    recorded, _ = msgspec.msgpack.decode(payload, strict=False)
    assert [profile["name"] for profile in recorded["profiles"]] == ["one", "two"]
    assert recorded["sections"].keys() == {"whatif"}
    assert snapshot_payload.decode(payload) == made
    older = msgspec.msgpack.encode(({**recorded, "profiles": [], "sections": {}}, {}))
    assert snapshot_payload.decode(older) == scenarios.normal()


def test_old_recordings_have_a_part_of_a_section_in_each_lock() -> None:
    made = full()
    recorded, blame = msgspec.msgpack.decode(snapshot_payload.encode(made), strict=False)
    by_id = recorded["inside"].pop("locks")
    assert by_id
    for lock in recorded["locks"]:
        lock["inside"] = by_id.get(lock["id"])
    older = msgspec.msgpack.encode((recorded, blame))
    assert snapshot_payload.decode(older) == made
    for lock in recorded["locks"]:
        lock["inside"] = {"samples": "many"}
    with pytest.raises(LocktopError, match="a recorded snapshot is damaged"):
        snapshot_payload.decode(msgspec.msgpack.encode((recorded, blame)))


def test_an_own_payload_is_read_as_one_of_a_stranger() -> None:
    for made in (full(), with_rows(_ROWS)):
        payload = snapshot_payload.encode(made)
        own, checked = snapshot_payload.decode_own(payload), snapshot_payload.decode(payload)
        assert snapshot_payload.encode(own) == snapshot_payload.encode(checked) == payload


@pytest.mark.parametrize(("field", "id_"), [("threads", "tid"), ("locks", "id")])
def test_a_crowd_that_differs_in_ids_alone_comes_back(field: str, id_: str) -> None:
    """The near miss of a stranger's few bytes that promise much."""
    made = scenarios.normal()
    last = getattr(made, field)[-1]
    crowd = tuple(replace(last, **{id_: 10_000 + number}) for number in range(20_000))
    payload = snapshot_payload.encode(replace(made, **{field: crowd}))
    stored = frame_format.packed(payload)
    assert len(payload) > 200 * len(stored)
    found = snapshot_payload.decode(frame_format.unpack(stored, len(payload)))
    assert len(getattr(found, field)) == len(crowd)


def test_blame_in_rows_comes_back_as_rows() -> None:
    found = snapshot_payload.decode(snapshot_payload.encode(with_rows(_ROWS))).locks[0].blame
    assert isinstance(found, LazyBlame)
    assert [(one.tid, one.site, one.through, one.wait_s) for one in found] == [
        (7, 0x40, 3, 2.0),
        (0, 0, 0, 0.5),
    ]
    assert (found.unheld_s, found.behind_s, len(found)) == (0.5, 2.0, 2)


@pytest.mark.parametrize(
    "rows",
    [
        msgspec.structs.replace(_ROWS, rows=_ROWS.rows[:-1]),
        msgspec.structs.replace(_ROWS, rows=b""),
        msgspec.structs.replace(_ROWS, origins=((0, 0),)),
        msgspec.structs.replace(_ROWS, hz=0.0),
    ],
)
def test_rows_that_are_no_blame_are_refused(rows: PackedBlame) -> None:
    with pytest.raises(LocktopError, match="damaged"):
        snapshot_payload.decode(snapshot_payload.encode(with_rows(rows)))


def test_what_is_no_histogram_is_refused() -> None:
    made = full()
    damaged = PlainHistogram((5, 5), (1, 1), 1e9)
    for name in ("wait_histogram", "hold_histogram"):
        lock = replace(made.locks[0], **{name: damaged})
        with pytest.raises(LocktopError, match="damaged: a histogram with wrong buckets"):
            snapshot_payload.decode(snapshot_payload.encode(replace(made, locks=(lock,))))
    thread = replace(made.threads[0], wait_histogram=damaged)
    with pytest.raises(LocktopError, match="damaged: a histogram with wrong buckets"):
        snapshot_payload.decode(snapshot_payload.encode(replace(made, threads=(thread,))))


@pytest.mark.parametrize("text", ["\x1b[2J", "a\nb", "\u202eevil", "\x9b31m", "\x7f"])
def test_control_characters_of_a_stranger_do_not_come_through(text: str) -> None:
    made = replace(scenarios.deadlock(), host=text)
    found = snapshot_payload.decode(snapshot_payload.encode(made))
    assert found.host != text
    assert found.host.isprintable()
    assert replace(found, host=text) == made


def test_a_small_fraction_is_no_reason_for_a_thorough_check() -> None:
    made = replace(scenarios.deadlock(), duration_s=0.000012345678901234567)
    assert snapshot_payload.is_harmless(made, snapshot_payload.encode(made))
    assert snapshot_payload.decode(snapshot_payload.encode(made)) == made


def test_a_backslash_is_no_control_character() -> None:
    made = replace(scenarios.deadlock(), host='a\\b"c')
    assert snapshot_payload.decode(snapshot_payload.encode(made)) == made


@pytest.mark.parametrize("figure", [float("nan"), float("inf"), -float("inf"), 1e300])
def test_impossible_numbers_are_refused(figure: float) -> None:
    made = replace(scenarios.deadlock(), duration_s=figure)
    with pytest.raises(LocktopError, match="out of range"):
        snapshot_payload.decode(snapshot_payload.encode(made))


def test_a_deadlock_without_a_thread_is_refused() -> None:
    made = scenarios.deadlock()
    empty = replace(made, deadlocks=(replace(made.deadlocks[0], cycle=()),))
    with pytest.raises(LocktopError, match="length >= 1"):
        snapshot_payload.decode(snapshot_payload.encode(empty))
    with pytest.raises(LocktopError, match="length >= 1"):
        snapshot_codec.parse(snapshot_codec.encode(empty), "x")


def test_negative_integers_are_refused() -> None:
    made = replace(scenarios.deadlock(), names_left=-1)
    with pytest.raises(LocktopError, match="out of range"):
        snapshot_payload.decode(snapshot_payload.encode(made))


@pytest.mark.parametrize("payload", [b"", b"\xc1", b"\x92\x80\x80", b"\x90" * 100_000])
def test_bytes_that_are_no_snapshot_are_refused(payload: bytes) -> None:
    with pytest.raises(LocktopError, match="damaged"):
        snapshot_payload.decode(payload)
