"""Which streams are allowed, and which files make them so."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.stream import stream_security, stream_url
from locktop.collector.extensions.stream.stream_security import TlsFiles

FILES = TlsFiles(cert=Path("c"), key=Path("k"), ca=Path("a"))


@pytest.mark.parametrize(
    ("url", "files", "plain", "words"),
    [
        ("udp://127.0.0.1:1", None, False, ""),
        ("udp://[::1]:1", None, False, ""),
        ("udp://192.0.2.1:1", None, False, "allow that with --plain"),
        ("udp://0.0.0.0:1", None, False, "allow that with --plain"),
        ("udp://192.0.2.1:1", None, True, ""),
        ("udp://127.0.0.1:1", FILES, False, "for tcp:// alone"),
        ("unix:///a", None, False, ""),
        ("unix:///a", FILES, False, "for tcp:// alone"),
        ("tcp://127.0.0.1:1", None, False, "or --plain"),
        ("tcp://127.0.0.1:1", None, True, ""),
        ("tcp://192.0.2.1:1", None, True, "needs --cert, --key and --ca, or use an SSH tunnel"),
        ("tcp://0.0.0.0:1", None, True, "needs --cert, --key and --ca"),
        ("tcp://192.0.2.1:1", FILES, False, ""),
        ("tcp://127.0.0.1:1", FILES, True, "exclude each other"),
    ],
)
def test_what_may_go_where(url: str, files: TlsFiles | None, plain: bool, words: str) -> None:
    parsed = stream_url.parse(url)
    endpoints = [] if parsed.path else stream_url.resolve(parsed)
    if not words:
        stream_security.check_allowed(parsed, endpoints, files, plain)
        return
    with pytest.raises(LocktopError) as caught:
        stream_security.check_allowed(parsed, endpoints, files, plain)
    assert words in str(caught.value)


def test_all_three_files_or_none() -> None:
    a = Path("a")
    assert stream_security.tls_files(None, None, None) is None
    assert stream_security.tls_files(a, a, a) is not None
    with pytest.raises(LocktopError, match="--key is missing"):
        stream_security.tls_files(a, None, a)
    with pytest.raises(LocktopError, match="--cert is missing"):
        stream_security.tls_files(None, None, a)


def test_a_wrong_file_is_named(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no certificate")
    with pytest.raises(LocktopError, match=f"--cert {text}"):
        stream_security.listener_context(TlsFiles(cert=text, key=text, ca=text))
    with pytest.raises(LocktopError, match="no such file"):
        stream_security.sender_context(
            TlsFiles(cert=tmp_path / "none", key=tmp_path / "none", ca=text)
        )


def test_a_failure_of_tls_has_its_reason_or_else_its_text() -> None:
    error = ssl.SSLError(1, "the text of OpenSSL")
    error.reason = ""
    assert stream_security.handshake_error(error).startswith("TLS failed: ")
    assert "the text of OpenSSL" in stream_security.handshake_error(error)
    error.reason = "NO_SHARED_CIPHER"
    assert stream_security.handshake_error(error) == "TLS failed: no shared cipher"
