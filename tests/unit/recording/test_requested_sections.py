"""Function calls in recordings: when a snapshot has them, and where a reader finds them."""

from __future__ import annotations

from msgspec.structs import replace
from unit.builders.function_calls import snapshot, thread_tree

from locktop.collector.extensions.calls.model import calls_of
from locktop.collector.model import Snapshot
from locktop.collector.recording import snapshot_payload
from locktop.collector.recording.history import History
from locktop.collector.recording.requested_sections import (
    MomentsWithSection,
    RequestedSections,
    section_at,
)

_S = 1_000_000_000


class _Process:
    """A process whose tree has a number of nodes."""

    def __init__(self, nodes: int) -> None:
        tree = thread_tree(1)
        self._tree = replace(tree, nodes=tree.nodes[:1] * nodes)
        self.wanted = False

    def want_section(self, name: str, wanted: bool) -> None:
        self.wanted = wanted

    def scan(self, resolve: bool = False) -> Snapshot:
        return replace(snapshot(self._tree) if self.wanted else snapshot(), threads=())


def test_a_large_tree_is_read_rarely_and_the_last_scan_has_it() -> None:
    clock = [0.0]
    calls = RequestedSections(_Process(nodes=10_000), lambda: clock[0])
    with_calls = []
    for half in range(50):
        clock[0] = half / 2
        if calls_of(calls.scan(resolve=False)):
            with_calls.append(clock[0])
    assert with_calls == [0.0, 10.0, 20.0]
    assert calls_of(calls.scan(resolve=True))


def test_the_screen_may_want_each_tree() -> None:
    calls = RequestedSections(_Process(nodes=10_000), lambda: 0.0)
    assert calls_of(calls.scan(resolve=False))
    assert not calls_of(calls.scan(resolve=False))
    calls.want_section("calls", True)
    assert calls_of(calls.scan(resolve=False))


def _history() -> History:
    history = History()
    for second in range(1, 5):
        trees = (thread_tree(1, float(second)),) if second in (1, 3) else ()
        made = snapshot(*trees)
        process = replace(made.process, rss_bytes=second, cpu_share=second / 10)
        history.add(replace(made, process=process), second * _S)
    return history


def test_a_moment_has_the_newest_calls_before_it() -> None:
    history = _history()
    for second, scale in ((1, 1.0), (2, 1.0), (3, 3.0), (4, 3.0)):
        (found,) = calls_of(section_at(history, second * _S, "calls"))
        assert found == thread_tree(1, scale)
    moments = MomentsWithSection(history, "calls")
    assert calls_of(moments.snapshot_at(2 * _S))
    assert list(moments.times_ns()) == list(history.times_ns())
    assert moments.notables() == history.notables()
    assert list(moments.records(0, 9 * _S)) == []


def test_calls_of_long_ago_are_those_of_another_time() -> None:
    history = _history()
    history.add(snapshot(), 100 * _S)
    assert calls_of(section_at(history, 100 * _S, "calls")) == ()


def test_a_payload_keeps_calls_also_if_its_texts_are_cleaned() -> None:
    made = snapshot(thread_tree(1))
    assert calls_of(snapshot_payload.decode(snapshot_payload.encode(made))) == calls_of(made)
    odd = replace(made, notes=("a\x1bb",))
    found = snapshot_payload.decode(snapshot_payload.encode(odd))
    assert calls_of(found) == calls_of(made)
    assert "\x1b" not in found.notes[0]
