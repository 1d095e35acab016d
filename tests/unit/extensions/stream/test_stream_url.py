"""Addresses of streams: what is read, and one line for each mistake."""

from __future__ import annotations

import pytest

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.stream import stream_url
from locktop.collector.extensions.stream.stream_url import StreamUrl, Transport


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("udp://[::1]:9999", StreamUrl(Transport.UDP, "::1", 9999)),
        ("udp://example.org:1", StreamUrl(Transport.UDP, "example.org", 1)),
        ("tcp://10.0.0.1:65535/", StreamUrl(Transport.TCP, "10.0.0.1", 65535)),
        ("unix:///run/a b/s", StreamUrl(Transport.UNIX, path="/run/a b/s")),
    ],
)
def test_addresses_are_read_and_written(text: str, expected: StreamUrl) -> None:
    found = stream_url.parse(text)
    assert found == expected
    assert str(found) == text.rstrip("/")


def test_a_listener_without_a_host_listens_on_this_machine() -> None:
    found = stream_url.parse("tcp://:0", listens=True)
    assert (found.host, found.port) == ("127.0.0.1", 0)
    assert all(endpoint.is_loopback for endpoint in stream_url.resolve(found))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no address of a stream; udp://HOST:PORT"),
        ("localhost:7000", "no address of a stream"),
        ("http://localhost:7000", "no address of a stream"),
        ("tcp://localhost", "needs a host and a port: tcp://HOST:PORT"),
        ("udp://::1:9999", "an IPv6 address needs brackets"),
        ("udp://:9999", "names no host"),
        ("udp://a:0", "a number from 1 to 65535"),
        ("udp://a:65536", "a number from 1 to 65535"),
        ("tcp://a:70x", "needs a host and a port"),
        ("tcp://a:7000/path", "needs a host and a port"),
        ("unix://relative", "the whole path"),
        ("unix:///", "the whole path"),
        ("unix:///" + "x" * 107, "at most 107 bytes"),
    ],
)
def test_a_wrong_address_is_one_line_that_says_what_to_do(text: str, words: str) -> None:
    with pytest.raises(LocktopError) as caught:
        stream_url.parse(text)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("::ffff:127.0.0.1", True),
     ("0.0.0.0", False), ("::", False), ("10.0.0.1", False), ("::ffff:10.0.0.1", False)],
)  # fmt: skip
def test_loopback_is_decided_by_the_resolved_address(host: str, expected: bool) -> None:
    (found, *_) = stream_url.resolve(StreamUrl(Transport.UDP, host, 1))
    assert found.is_loopback is expected


def test_both_ends_prefer_the_same_address_of_a_name() -> None:
    found = stream_url.resolve(StreamUrl(Transport.UDP, "localhost", 1))
    assert found[0].address[0] == "127.0.0.1"


def test_an_unknown_host_is_one_line() -> None:
    with pytest.raises(LocktopError, match="the host is not found"):
        stream_url.resolve(StreamUrl(Transport.TCP, "no.such.host.invalid", 1))
    with pytest.raises(LocktopError, match="the host is not found"):
        stream_url.resolve(StreamUrl(Transport.TCP, "a" * 300, 1))
