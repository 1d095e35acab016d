"""Watching without a screen: scan policy, alerts, and the commands and snapshots of alerts."""

from __future__ import annotations

from locktop.collector.extension.parts import Extension

EXTENSION = Extension("watch")
