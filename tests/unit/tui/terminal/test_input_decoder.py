"""The input decoder: bytes that are no UTF-8, and mouse reports in the form of X10."""

from __future__ import annotations

import pytest

from locktop.tui.terminal.input_decoder import InputDecoder


def test_text_and_keys_pass() -> None:
    decoder = InputDecoder()
    assert decoder.decode("qä→\x1b[A\x1b[<0;3;4M".encode()) == "qä→\x1b[A\x1b[<0;3;4M"


def test_a_character_may_come_in_parts() -> None:
    decoder = InputDecoder()
    assert [decoder.decode(bytes([byte])) for byte in "→".encode()] == ["", "", "→"]


@pytest.mark.parametrize("byte", [0x80, 0xE9, 0xFC, 0xFF])
def test_a_byte_of_another_encoding_takes_no_key_with_it(byte: int) -> None:
    decoder = InputDecoder()
    assert decoder.decode(bytes([byte])) + decoder.decode(b"q") == "\ufffdq"


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        (b"\x1b[M !!", "\x1b[<0;1;1M"),
        (b"\x1b[M#\xc3\xa9", "\x1b[<0;163;137m"),  # together the last two bytes are UTF-8
        (b"\x1b[M@qq", "\x1b[<32;81;81M"),
        (b"\x1b[MCqq", "\x1b[<35;81;81M"),
        (b"\x1b[M`q\xff", "\x1b[<64;81;223M"),
        (b"\x1b[M \x00\x00", "\x1b[<0;1;1M"),
    ],
)
def test_a_mouse_report_is_no_key(report: bytes, expected: str) -> None:
    assert InputDecoder().decode(b"a" + report + b"q") == f"a{expected}q"


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_mouse_report_may_come_in_parts(cut: int) -> None:
    decoder = InputDecoder()
    data = b"\x1b[M\xe9qq\x1b[M #\xe9"
    text = decoder.decode(data[:cut]) + decoder.decode(data[cut:]) + decoder.decode(b"q")
    assert text == "\x1b[<201;81;81M\x1b[<0;3;201Mq"


def test_an_escape_is_a_key_at_once() -> None:
    decoder = InputDecoder()
    assert [decoder.decode(data) for data in (b"\x1b", b"\x1b", b"[", b"B")] == [
        "\x1b", "\x1b", "[", "B",
    ]  # fmt: skip
