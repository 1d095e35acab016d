"""Mutual TLS: both sides show a certificate that the other side's authority signed."""

from __future__ import annotations

import re
import socket
import ssl
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace
from support.documents import ROOT, code_lines
from support.streams import Authority, Ear, Mouth, options, streaming
from support.targets import StartTarget
from unit.builders import scenarios

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.stream import connection_receiver
from locktop.collector.extensions.stream.stream_security import TlsFiles

HERE = "tcp://127.0.0.1:0"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


@pytest.fixture
def stranger(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "stranger")


def test_a_process_is_displayed_over_tls(start_target: StartTarget, authority: Authority) -> None:
    target = start_target("ring_of_three")
    target.expect("ready")
    own = authority.files("sender")
    with (
        Ear(HERE, authority.files("listener")) as ear,
        streaming(target.pid, ear.url, *options(own)),
    ):
        ear.wait_snapshots(2)
        assert ear.snapshots[-1].process.pid == target.pid


def test_the_connection_is_encrypted_with_a_new_version(authority: Authority) -> None:
    with Ear(HERE, authority.files("listener")) as ear:
        own = authority.files("peer")
        context = ssl.create_default_context(cafile=str(authority.path))
        context.load_cert_chain(own.cert, own.key)
        host, _, port = ear.url.removeprefix("tcp://").partition(":")
        with (
            socket.create_connection((host, int(port))) as plain,
            context.wrap_socket(plain, server_hostname=host) as peer,
        ):
            assert peer.version() == "TLSv1.3"
            assert peer.recv(12).startswith(b"LOCKTOP\n")


def test_a_sender_without_a_certificate_is_refused(authority: Authority) -> None:
    with Ear(HERE, authority.files("listener")) as ear:
        with pytest.raises(LocktopError) as caught:
            Mouth(ear.url)  # plain TCP
        assert "--cert" in str(caught.value)
        context = ssl.create_default_context(cafile=str(authority.path))
        host, _, port = ear.url.removeprefix("tcp://").partition(":")
        with (
            socket.create_connection((host, int(port))) as plain,
            context.wrap_socket(plain, server_hostname=host) as peer,
            pytest.raises(OSError, match="certificate"),
        ):
            peer.recv(12)
        ear.wait_line("no certificate was shown")
        assert ear.snapshots == []
        is_taken(ear, authority)


def test_a_certificate_of_another_authority_is_refused(
    authority: Authority, stranger: Authority
) -> None:
    with Ear(HERE, authority.files("listener")) as ear:
        with pytest.raises(LocktopError, match="this side's certificate is refused"):
            Mouth(ear.url, stranger.files("peer", ca=authority.path))
        ear.wait_line("its certificate is refused")
        with pytest.raises(LocktopError, match="its certificate is refused: "):
            Mouth(ear.url, authority.files("peer", ca=stranger.path))
        assert ear.snapshots == []
        is_taken(ear, authority)


def test_an_expired_certificate_is_refused_on_both_sides(authority: Authority) -> None:
    expired = datetime(2021, 1, 1, tzinfo=UTC)
    with Ear(HERE, authority.files("listener")) as ear:
        with pytest.raises(LocktopError, match="this side's certificate is refused: it has exp"):
            Mouth(ear.url, authority.files("peer", until=expired))
        ear.wait_line("its certificate is refused: certificate has expired")
        is_taken(ear, authority)
    with Ear(HERE, authority.files("listener", until=expired)) as ear:
        with pytest.raises(LocktopError, match="its certificate is refused: certificate has exp"):
            Mouth(ear.url, authority.files("peer"))
        ear.wait_line("this side's certificate is refused: it has expired")
        assert len(ear.lines) == 1


def test_a_peer_without_tls_is_one_line(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_receiver, "GREETING_S", 0.2)
    with Ear(HERE, authority.files("listener")) as ear:
        with pytest.raises(LocktopError, match="does it need --cert"):
            Mouth(ear.url)  # waits for the greeting until the listener gives up
        ear.wait_line("was dropped: it took too long")
        monkeypatch.undo()
        is_taken(ear, authority)
        assert len(ear.lines) == 1


def test_a_listener_that_goes_is_one_plain_line(authority: Authority) -> None:
    with Ear(HERE, authority.files("listener")) as ear:
        mouth = Mouth(ear.url, authority.files("sender"))
        mouth.say(scenarios.normal())
        ear.wait_snapshots(1)
    with pytest.raises(LocktopError) as caught:
        mouth.say(*[scenarios.normal()] * 1000)
    assert "_ssl.c" not in str(caught.value)
    assert "violation" not in str(caught.value)


def test_a_listener_with_another_name_is_refused(authority: Authority) -> None:
    with (
        Ear(HERE, authority.files("listener", host="elsewhere.example")) as ear,
        pytest.raises(LocktopError, match="certificate is refused"),
    ):
        Mouth(ear.url, authority.files("sender"))


def test_a_listener_without_tls_is_refused(authority: Authority) -> None:
    with Ear(HERE) as ear, pytest.raises(LocktopError, match="does not use TLS"):
        Mouth(ear.url, authority.files("sender"))


def test_the_commands_of_the_document_make_the_certificates(
    need: Callable[..., Path], tmp_path: Path
) -> None:
    need("openssl")
    text = (ROOT / "docs/stream.md").read_text()
    lines = [line.text.strip() for line in code_lines(text)]
    script = "\n".join(lines).replace("IP:192.0.2.7", "IP:127.0.0.1")
    commands = re.findall(r"^openssl (?:.*\\\n)*.*$", script, re.MULTILINE)
    assert len(commands) == 4
    for command in commands:
        subprocess.run(command, shell=True, cwd=tmp_path, check=True, capture_output=True)
    authority = tmp_path / "ca.pem"
    sides = [
        TlsFiles(cert=tmp_path / f"{one}.pem", key=tmp_path / f"{one}.key", ca=authority)
        for one in ("listener", "sender")
    ]
    with Ear(HERE, sides[0]) as ear:
        mouth = Mouth(ear.url, sides[1])
        mouth.say(scenarios.normal())
        ear.wait_snapshots(1)
        mouth.end()


def is_taken(ear: Ear, authority: Authority) -> None:
    """Check that a right sender still reaches the listener."""
    mouth = Mouth(ear.url, authority.files("right"))
    mouth.say(scenarios.normal())
    ear.wait_snapshots(1)
    assert ear.snapshots[0] == replace(scenarios.normal())
    mouth.end()
