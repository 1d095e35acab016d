"""The rate limit counts in any stretch of time."""

from __future__ import annotations

from locktop.collector.analysis.rate_limit import RateLimit


def test_a_rate_limit_holds_in_any_interval() -> None:
    limit = RateLimit(2, 10.0)
    assert [limit.allows(at) for at in (0.0, 6.0, 9.0, 10.0, 15.0, 16.0)] == [
        True,
        True,
        False,
        True,
        False,
        True,
    ]
    assert not limit.has_room(19.0)
    assert limit.has_room(20.0)
