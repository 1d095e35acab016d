"""The parser of a command: a help that fits, and errors that name the nearest word."""

from __future__ import annotations

import argparse
import shutil
import textwrap
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from locktop.tui.terminal.lost_output import complain

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

    from locktop.tui.extension_parts import Command

#: Columns of a help, at most.
MAX_WIDTH = 80
#: A help with more options than these leaves out those of hidden groups.
MAX_OPTIONS = 10
#: The groups of commands, each with its title in `locktop --help`. A command names its group.
COMMAND_GROUPS = {
    "look": "look at a process",
    "keep": "keep what was seen",
    "hand over": "hand over to others",
    "control": "control the library, and measure",
}

COMMON, FURTHER, MOMENTS = "common options", "further options", "moments of a recording"
#: The titles of groups that a help of many options leaves out.
_HIDDEN = (FURTHER, MOMENTS, COMMON)
_HELPS = ("help", "help_all")
_COMMANDS_WIDTH = 10

_Parsed = TypeVar("_Parsed")


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Wraps paragraphs at the width of the terminal. An indented one is a table, and stays."""

    def __init__(self, prog: str, max_help_position: int = 24) -> None:
        width = min(MAX_WIDTH, shutil.get_terminal_size().columns)
        super().__init__(prog, max_help_position=max_help_position, width=width)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n\n".join(
            part if part.startswith(" ") else "\n".join(self._split_lines(part, width))
            for part in text.strip("\n").split("\n\n")
        )

    def _split_lines(self, text: str, width: int) -> list[str]:
        # An option such as --stop-threads stays whole.
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


class CommandParser(argparse.ArgumentParser):
    """The parser of ``locktop``, or of one command, whose options are declared at its first use."""

    def __init__(
        self, *, declare: Callable[[CommandParser], None] | None = None, **settings: Any
    ) -> None:
        """Args:
        declare: declares the arguments.
        settings: those of argparse.
        """
        super().__init__(**{"formatter_class": _Formatter, **settings})
        self._declare = declare
        #: The options of hidden groups that the help has in any case, as named in the result.
        self.featured: Collection[str] = ()
        self._hidden_groups: dict[str, argparse._ArgumentGroup] = {}
        self.add_argument(
            "--help-all", action=_HelpAll, nargs=0, default=argparse.SUPPRESS, help="all options"
        )

    def hidden_group(self, title: str) -> argparse._ArgumentGroup:
        """Return the group with this title, made at its first use."""
        if title not in self._hidden_groups:
            self._hidden_groups[title] = self.add_argument_group(title)
        return self._hidden_groups[title]

    def declare(self) -> None:
        """Declare the arguments, unless they are."""
        declare, self._declare = self._declare, None
        if declare is not None:
            declare(self)

    def parse_known_args(  # type: ignore[override]  # overloads
        self, args: Sequence[str] | None = None, namespace: _Parsed | None = None
    ) -> tuple[_Parsed | argparse.Namespace, list[str]]:
        """See argparse, which calls this for the given command alone."""
        self.declare()
        return super().parse_known_args(args, namespace)

    def all_parsers(self) -> Iterator[CommandParser]:
        """Yield this parser and those of all commands, with their arguments declared."""
        self.declare()
        yield self
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                for parser in action.choices.values():
                    yield from parser.all_parsers()

    # Help

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Print the help. argparse would ignore an error of the output."""
        print(self.format_help(), end="", file=file)

    def format_help(self, has_all: bool = False) -> str:
        """Return the help, with the options that matter or with all."""
        self.declare()
        left_out = [] if has_all else self._left_out()
        formatter = self._get_formatter()
        visible = [action for action in self._actions if self._is_visible(action, left_out)]
        formatter.add_usage(self.usage, visible, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        for title, actions in self._sections():
            formatter.start_section(title)
            formatter.add_arguments([action for action in actions if action in visible])
            formatter.end_section()
        self.add_sections(formatter)
        if left_out:
            names = ", ".join(action.option_strings[-1] for action in left_out)
            formatter.add_text(f"{len(left_out)} more options (`{self.prog} --help-all`): {names}")
        formatter.add_text(self.epilog)
        return formatter.format_help()

    def add_sections(self, formatter: argparse.HelpFormatter) -> None:
        """Add what stands behind the options."""

    def _sections(self) -> Iterator[tuple[str | None, list[argparse.Action]]]:
        """Yield the groups with their titles, the hidden ones last."""
        for group in sorted(self._action_groups, key=lambda group: group.title in _HIDDEN):
            yield group.title, group._group_actions

    def _left_out(self) -> list[argparse.Action]:
        options = [a for a in self._actions if a.option_strings and a.dest not in _HELPS]
        if len(options) <= MAX_OPTIONS:
            return []
        return [
            action
            for title, actions in self._sections()
            for action in actions
            if title in _HIDDEN and action.dest not in self.featured
        ]

    def _is_visible(self, action: argparse.Action, left_out: list[argparse.Action]) -> bool:
        if action.dest == "help_all" and not left_out:
            return False
        return action not in left_out

    # Errors

    def error(self, message: str) -> NoReturn:
        # A list says itself what to do.
        see = "" if "\n" in message else f"; see `{self.prog} --help`"
        self.exit(complain(f"{message}{see}"))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Name the nearest choice for a value that is none."""
        if action.choices is None or value in action.choices:
            return
        from locktop.collector.render.words.nearest import not_a_choice, not_a_command

        if isinstance(action, argparse._SubParsersAction):
            raise argparse.ArgumentError(None, not_a_command(value, action.choices))
        raise argparse.ArgumentError(action, not_a_choice(value, list(action.choices)))


class RootParser(CommandParser):
    """The parser of ``locktop``, whose help lists the commands in groups."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._commands: list[Command] = []
        self._parsers = self.add_subparsers(
            metavar="COMMAND", help=argparse.SUPPRESS, parser_class=CommandParser
        )

    def add_command(self, command: Command) -> None:
        """Add a command."""

        def declare(parser: CommandParser) -> None:
            command.add_arguments(parser)
            parser.set_defaults(execute=command.execute)

        self._commands.append(command)
        self._parsers.add_parser(command.NAME, description=command.DESCRIPTION, declare=declare)

    def add_sections(self, formatter: argparse.HelpFormatter) -> None:
        """Add the commands by their groups."""
        for name, title in COMMAND_GROUPS.items():
            lines = [
                f"  {command.NAME:<{_COMMANDS_WIDTH}} {command.HELP}"
                for command in self._commands
                if group_of(command) == name
            ]
            formatter.start_section(title)
            formatter.add_text("\n".join(lines))
            formatter.end_section()


class _HelpAll(argparse.Action):
    """Prints all options of a command."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> NoReturn:
        assert isinstance(parser, CommandParser)
        print(parser.format_help(has_all=True), end="")
        parser.exit()


def group_of(command: Command) -> str:
    """Return the group of a command in the help. A command of an extension may name none."""
    group = getattr(command, "GROUP", "")
    return group if group in COMMAND_GROUPS else "look"


def group(parser: argparse.ArgumentParser, title: str) -> argparse._ActionsContainer:
    """Return the group of options with this title, which a help of many options leaves out."""
    return parser.hidden_group(title) if isinstance(parser, CommandParser) else parser
