"""Fixtures for the tests of symbols."""

from __future__ import annotations

from pathlib import Path

import pytest
from unit.builders.elf_program import Built


@pytest.fixture
def built(tmp_path: Path) -> Built:
    return Built(tmp_path)
