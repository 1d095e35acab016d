"""Rules that are malformed, and the limits of their conditions."""

from __future__ import annotations

import pytest
from unit.builders.idle_verdicts import frames, verdict

from locktop.collector.analysis.idle import rules
from locktop.collector.analysis.idle.rules import IdleRule, Rules, choose, matching, parse
from locktop.collector.model import Frame, Kind


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("busy x", "'busy' is neither idle nor contended"),
        ("idle", "needs a name after its first word"),
        ("idle kind=mutex", "needs a name after its first word"),
        ("neither x function=a", "needs type="),
        ("idle x speed=3", "'speed=3' is no condition"),
        ("idle x kind", "'kind' is no condition"),
        ("idle x kind=", "kind= needs a value"),
        ("idle x kind=mutex,door", "'door' is no kind"),
        ("idle x innermost=0", "is not a number of frames"),
        ("idle x innermost=1000", "is not a number of frames"),
        ("idle x innermost=two", "is not a number of frames"),
    ],
)
def test_a_malformed_rule_is_an_error_with_its_line(line: str, says: str) -> None:
    with pytest.raises(ValueError, match=f"^my.rules, line 3: .*{says}"):
        parse(f"# comment\n\n{line}\n", "my.rules")


def test_comments_and_empty_lines_are_no_rules() -> None:
    (rule,) = parse("\n  # idle a\n   \nidle b\n", "x")
    assert rule.name == "b"


def test_a_rule_has_all_its_conditions() -> None:
    (rule,) = parse(
        "contended x kind=sem,cond function=a function=b innermost=999 thread=t lock=l held"
        " several for-all type=y -- because of it",
        "x",
    )
    assert rule == IdleRule(
        idle=False, name="x", reason="because of it", kinds=frozenset({Kind.SEM, Kind.COND}),
        functions=("a", "b"), innermost=999, thread="t", lock="l", held=True, several=True,
        for_all=True, type="y",
    )  # fmt: skip
    (rule,) = parse("idle x", "x")
    assert rule == IdleRule(idle=True, name="x")
    (rule,) = parse("neither x type=y", "x")
    assert (rule.idle, rule.only_type) == (False, True)
    (rule,) = parse("idle x innermost=1", "x")
    assert rule.innermost == 1


@pytest.mark.parametrize(
    "fields", [{"thread": "t"}, {"lock": "l"}, {"held": True}, {"several": True}]
)
def test_a_rule_may_need_more_than_the_stack(fields: dict[str, object]) -> None:
    assert not IdleRule(idle=True, name="x", functions=("f",)).needs_more_than_stack
    assert IdleRule(idle=True, name="x", **fields).needs_more_than_stack  # type: ignore[arg-type]


def test_the_option_for_idle_functions_is_a_rule() -> None:
    idle = matching("pool::*")
    assert (idle.idle, idle.functions, idle.name) == (True, ("pool::*",), "--idle-matching pool::*")
    contended = matching("!turn")
    assert (contended.idle, contended.functions) == (False, ("turn",))
    for glob in ("", "!", " "):
        with pytest.raises(ValueError, match="needs a function"):
            matching(glob)


def test_candidates_end_with_the_first_rule_that_needs_only_the_stack() -> None:
    own = parse("idle a lock=l\nidle b function=f\nidle c\nidle d", "x")
    names = [rule.name for rule in Rules(own).candidates(Kind.MUTEX, frames("f"))]
    assert names == ["a", "b"]
    assert [rule.name for rule in Rules(own).candidates(Kind.MUTEX, ())] == ["a", "c"]


def test_a_sum_over_many_threads_matches_no_thread() -> None:
    own = parse("idle a thread=t\ncontended b", "x")
    assert choose(own, "", "t", False).name == "a"
    assert choose(own, "", "u", False).name == "b"
    assert choose(own, "", None, False).name == "b"
    assert choose(own[:1], "", None, False).name == "a"


def test_a_rule_for_several_waiters_needs_two() -> None:
    own = parse("contended a several\nidle b", "x")
    assert choose(own, "l", "t", False, several=True).name == "a"
    assert choose(own, "l", "t", False).name == "b"


def test_a_rule_for_held_locks_needs_a_holder() -> None:
    own = parse("contended a held\nidle b lock=l\nidle c", "x")
    assert choose(own, "l", "t", True).name == "a"
    assert choose(own, "l", "t", False).name == "b"
    assert choose(own, "m", "t", False).name == "c"


def test_a_file_matches_with_and_without_its_folder() -> None:
    own = Rules(parse("contended x kind=cond function=f@a.c", "x"))

    def says(module: str, file: str | None) -> str:
        return verdict(own, Kind.COND, Frame(1, "f", file, 1, module, 0))

    assert says("app", "/src/a.c") == says("app", "a.c") == says("a.c", None) == "contended x"
    assert says("app", "/src/b.c") == says("app", None) == "idle condition"


def test_the_cache_of_functions_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MAX_CACHED", 2)
    own = Rules(parse("contended x kind=cond function=f*", "x"))
    for _ in range(2):
        for name in ("f1", "g", "f2", "f3", "h"):
            expected = "contended x" if name.startswith("f") else "idle condition"
            assert verdict(own, Kind.COND, *frames(name)) == expected
