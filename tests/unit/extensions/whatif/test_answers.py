"""The span of a recording that a replay predicts from."""

from __future__ import annotations

import pytest
from unit.builders.time_lines import FixedPast, at, relay

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.whatif.answers import span_until

#: Ten minutes after the begin, 20 seconds with a snapshot in each half second.
PAST = relay(20)


@pytest.mark.parametrize(
    ("moment_s", "span_s"),
    [
        (15.0, (5.0, 15.0)),
        (20.0, (10.0, 20.0)),
        (25.0, (10.0, 20.0)),  # behind the end
        (10.0, (0.0, 10.0)),
        (3.0, (0.0, 10.0)),  # too near to the begin
        (-5.0, (0.0, 10.0)),
    ],
)
def test_the_span_ends_at_the_moment(moment_s: float, span_s: tuple[float, float]) -> None:
    from_ns, to_ns = span_until(PAST, at(moment_s * 1000), 10.0)
    assert (from_ns, to_ns) == tuple(at(one * 1000) for one in span_s)


def test_a_short_recording_is_taken_whole() -> None:
    times_ns = relay(4).times_ns()
    assert span_until(relay(4), times_ns[3], 10.0) == (times_ns[0], times_ns[-1])


def test_a_recording_without_a_snapshot_is_refused() -> None:
    with pytest.raises(LocktopError, match="no snapshot"):
        span_until(FixedPast({}), 0, 10.0)
