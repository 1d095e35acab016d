"""Waits, locks and threads in the formats of other tools."""

from __future__ import annotations

from locktop.collector.extension.parts import Extension

EXTENSION = Extension("export")
