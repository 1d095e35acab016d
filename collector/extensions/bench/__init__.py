"""Measures the cost of the library on this machine, with the benchmark program."""

from __future__ import annotations

from locktop.collector.extension.parts import Extension

EXTENSION = Extension("bench")
