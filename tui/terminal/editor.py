"""The command that opens a line of a file in the user's editor."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

#: Without a setting of the user.
_USUAL = "vi"
#: The editors that want the line behind the file: ``FILE:LINE``.
_COLON = ("hx", "helix", "subl", "sublime_text", "zed")
#: The editors of the family of VS Code: ``-g FILE:LINE``.
_GOTO = ("code", "code-insiders", "code-oss", "codium", "vscodium", "cursor")


def editor_command(environ: Mapping[str, str], file: Path, line: int) -> list[str]:
    """Return the command and its arguments; an empty list if no editor can be found.

    Vim, Neovim, nano, Emacs, micro, Kakoune and less take ``+LINE FILE``. So do most others, and
    an unknown editor gets that form.

    Args:
        environ: has VISUAL or EDITOR, which may have arguments.
        file: an absolute path.
        line: from 1; 0 for no line.
    """
    wanted = environ.get("VISUAL") or environ.get("EDITOR") or _USUAL
    try:
        command = shlex.split(wanted)
    except ValueError:  # a quote without its end
        command = [wanted]
    if not command or shutil.which(command[0], path=environ.get("PATH")) is None:
        return []
    if not line:
        return [*command, str(file)]
    name = Path(command[0]).name
    if name in _GOTO:
        return [*command, "-g", f"{file}:{line}"]
    if name in _COLON:
        return [*command, f"{file}:{line}"]
    return [*command, f"+{line}", str(file)]
