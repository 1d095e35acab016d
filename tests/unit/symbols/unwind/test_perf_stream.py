"""Which CPUs a stream of samples covers."""

from __future__ import annotations

import pytest

from locktop.collector.symbols.unwind.perf_stream import cpu_numbers


def test_a_list_of_cpus_has_single_ones_and_ranges() -> None:
    assert cpu_numbers("0\n") == (0,)
    assert cpu_numbers("0-2,5,7-8\n") == (0, 1, 2, 5, 7, 8)


@pytest.mark.parametrize("text", ["", "\n", "all", "-1"])
def test_a_text_that_is_no_list_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="int"):
        cpu_numbers(text)
