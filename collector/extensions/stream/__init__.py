"""Snapshots from one machine to the screen of another: UDP, TCP with TLS, and unix sockets."""

from __future__ import annotations

from locktop.collector.extension.parts import Extension

EXTENSION = Extension("stream")
