"""All threads with their stacks, those with equal stacks as one group."""

from __future__ import annotations

from locktop.collector.extension.parts import Extension

# A snapshot has a field `stacks`, so the extension has another name than its folder.
EXTENSION = Extension("all_stacks")
