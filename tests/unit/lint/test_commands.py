"""The lint finds commands, options and make targets that do not exist."""

from __future__ import annotations

from lint.commands import unknown_commands, unknown_targets


def test_unknown_commands_are_found() -> None:
    text = (
        "See `locktop snapshot --quiet` and `locktop look -p 1`.\n\n    X=1 locktop --level all\n"
    )
    assert [*unknown_commands(text)] == [
        (1, "no such option: --quiet"),
        (1, "no such command: look"),
        (3, "no such option: --level"),
    ]


def test_known_commands_pass() -> None:
    text = "`locktop snapshot -p PID [-d SECONDS]`, `locktop -p 1`, `locktop run -- ls --color`\n\n"
    text += '    (eval "$(locktop env --level all)"; exec ./server --port 1)\n'
    text += "    locktop check -p PID | dot -Tsvg\n"
    assert [*unknown_commands(text)] == []


def test_targets_are_checked() -> None:
    text = "`make test`, `make coffee`, make tea"
    assert [*unknown_targets(text)] == [(1, "no such target of make: coffee")]
