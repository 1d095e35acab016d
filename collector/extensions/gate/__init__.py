"""Gate: whether a program holds its locks longer than another build of it, by interleaved runs."""

from __future__ import annotations

from locktop.collector.extension.parts import Extension

EXTENSION = Extension("gate")
