"""Certificates, and the rules where a stream may go without encryption."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.stream.stream_url import Endpoint, StreamUrl, Transport

_TUNNEL = "or use an SSH tunnel (docs/stream.md)"


class TlsFiles(Struct, frozen=True):
    """The files of one side, in PEM format."""

    cert: Path  # the certificate that this side shows
    key: Path  # its private key
    ca: Path  # the authority that must have signed the other side's certificate


def tls_files(cert: Path | None, key: Path | None, ca: Path | None) -> TlsFiles | None:
    """Return the files; None if the user gave none. Raises LocktopError if one is missing."""
    given = {"--cert": cert, "--key": key, "--ca": ca}
    missing = [option for option, path in given.items() if path is None]
    if len(missing) == len(given):
        return None
    if cert is None or key is None or ca is None:
        raise LocktopError(f"mutual TLS needs --cert, --key and --ca; {missing[0]} is missing")
    return TlsFiles(cert=cert, key=key, ca=ca)


def check_allowed(
    url: StreamUrl, endpoints: Sequence[Endpoint], files: TlsFiles | None, plain: bool
) -> None:
    """Raise LocktopError if a stream to or from these addresses would be unsafe.

    Args:
        url: the address as given.
        endpoints: the addresses of its host; none for a unix socket.
        files: the files for TLS, None for none.
        plain: whether the user allows a stream without encryption.
    """
    if files is not None and url.transport is not Transport.TCP:
        raise LocktopError(f"{url}: --cert, --key and --ca are for tcp:// alone")
    if files is not None and plain:
        raise LocktopError("--plain and certificates exclude each other")
    is_here = all(endpoint.is_loopback for endpoint in endpoints)
    if url.transport is Transport.UDP and not is_here and not plain:
        raise LocktopError(
            f"{url}: UDP is not encrypted and others can forge it; allow that with --plain,"
            f" {_TUNNEL}"
        )
    if url.transport is Transport.TCP and files is None:
        if not is_here:
            raise LocktopError(
                f"{url}: TCP to another machine needs --cert, --key and --ca, {_TUNNEL}"
            )
        if not plain:
            raise LocktopError(
                f"{url}: give --cert, --key and --ca, or --plain for TCP without encryption"
                " on this machine"
            )


def listener_context(files: TlsFiles) -> ssl.SSLContext:
    """Return the settings of the side that listens. Raises LocktopError."""
    return _load_files(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), files)


def sender_context(files: TlsFiles) -> ssl.SSLContext:
    """Return the settings of the side that connects, which also checks the name of the host.

    Raises:
        LocktopError: a file cannot be read, or fits no other.
    """
    return _load_files(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), files)


def _load_files(context: ssl.SSLContext, files: TlsFiles) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_REQUIRED
    try:
        # Never ask for a password: without a terminal the question would wait for ever.
        context.load_cert_chain(files.cert, files.key, password=_no_password)
    except (OSError, ValueError) as error:
        raise LocktopError(f"--cert {files.cert}, --key {files.key}: {_reason(error)}") from None
    try:
        context.load_verify_locations(files.ca)
    except (OSError, ValueError) as error:
        raise LocktopError(f"--ca {files.ca}: {_reason(error)}") from None
    return context


def _no_password() -> str:
    raise ValueError("the key has a password; locktop needs a key without one")


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        reason = (error.reason or "").replace("_", " ").lower()
        return reason or "not a file in PEM format"
    return (getattr(error, "strerror", None) or str(error)).lower()


def handshake_error(error: Exception) -> str:
    """Return why a TLS connection failed, in words that name the remedy."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        reason = (error.reason or "").upper()
        if "PEER_DID_NOT_RETURN" in reason or "CERTIFICATE_REQUIRED" in reason:
            return "no certificate was shown"
        if "CERTIFICATE_EXPIRED" in reason:
            return "this side's certificate is refused: it has expired"
        if "UNKNOWN_CA" in reason or "BAD_CERTIFICATE" in reason:
            return "this side's certificate is refused: the other side's --ca did not sign it"
        if "WRONG_VERSION" in reason or "HTTP_REQUEST" in reason or "UNEXPECTED_EOF" in reason:
            return "the other side does not use TLS"
        if isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
            return "the other side closed the connection"
        return f"TLS failed: {reason.replace('_', ' ').lower() or error}"
    if isinstance(error, (BrokenPipeError, ConnectionResetError)):
        return "the other side closed the connection"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()
