"""Why a process hangs: its chain of waits to the root, also across processes."""

from __future__ import annotations

from locktop.collector.extension.parts import Extension

EXTENSION = Extension("why")
