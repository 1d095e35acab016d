"""The chains of `locktop why` as a graph: names are text, and a guess is said to be one."""

from __future__ import annotations

from pathlib import Path
from subprocess import run

from support.requirements import command

from locktop.collector.extensions.why import graph_document
from locktop.collector.extensions.why.model import (
    Awaited,
    Chain,
    ChainStep,
    HostThread,
    WaitGroup,
    WhyAnswer,
    WhyVerdict,
)

_HOSTILE = '<b>"&lt;\\N\x1b[2J' + "n" * 4096


def _answer(role: str, verdict: WhyVerdict) -> WhyAnswer:
    first, second = (HostThread(tid=tid, pid=10, name=_HOSTILE, state="S") for tid in (11, 12))
    awaited = Awaited(
        does=f"waits for {_HOSTILE}", role=role, providers=frozenset({12}), pids=(10,)
    )
    steps = (ChainStep(first, awaited), ChainStep(second, None))
    chain = Chain(pid=10, verdict=verdict, steps=steps)
    return WhyAnswer(
        chains=(chain,),
        scanned=1,
        names={10: "svc 10"},
        thread_names={},
        waits=(WaitGroup((first,), awaited),),
    )


def test_an_arrow_says_whether_the_holder_is_certain() -> None:
    for role, verdict, heading in (
        ("likely holder", WhyVerdict.POSSIBLE, "possible deadlock: svc 10"),
        ("holder", WhyVerdict.WAITS, "no deadlock: svc 10"),
    ):
        graph = graph_document.render(_answer(role, verdict))
        assert f'label="{heading}"' in graph
        assert f'label="{role}"' in graph


def test_names_are_text(tmp_path: Path) -> None:
    path = tmp_path / "why.dot"
    path.write_text(graph_document.render(_answer("holder", WhyVerdict.WAITS)))
    assert "\x1b" not in path.read_text()
    dot = command("dot", "graphviz")
    drawn = run([dot, "-Tsvg", path], capture_output=True, text=True, check=True)
    assert drawn.stderr == ""
    assert "&lt;b&gt;&quot;&amp;lt;\\N" in drawn.stdout
