"""Figures as a person reads them, three digits."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """Return a time: ``850 ns``, ``1.23 ms``, ``12.3 s``, ``3 h 05 min``."""
    if seconds <= 0:
        return "0"
    if seconds >= 3600:
        return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60):02d} min"
    if seconds >= 600:
        return f"{int(seconds // 60)} min {int(seconds % 60):02d} s"
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= factor * 0.9995:
            return f"{_three_digits(seconds / factor)} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def lasting(seconds: float, is_lower_bound: bool) -> str:
    """Return how long something has lasted: ``1.23 s``, ``at least 1.23 s``."""
    return f"at least {duration(seconds)}" if is_lower_bound else duration(seconds)


def bytes_(count: int) -> str:
    """Return an amount of memory: ``512 B``, ``1.23 KiB``, ``45.6 MiB``."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 999.5:
            return f"{count} B" if unit == "B" else f"{_three_digits(amount)} {unit}"
        amount /= 1024
    return f"{_three_digits(amount)} TiB"


def _three_digits(value: float) -> str:
    if value < 9.995:
        return f"{value:.2f}"
    return f"{value:.1f}" if value < 99.95 else f"{value:.0f}"
