"""The command ``locktop``, whose action to quit waits for the file ``may-quit`` to exist.

Random keys may choose that action in the list of all actions.
"""

from __future__ import annotations

import sys
from pathlib import Path

from locktop.tui.app import LocktopApp
from locktop.tui.cli import main

MAY_QUIT = Path("may-quit")
_quit = LocktopApp.action_quit


async def _quit_if_allowed(app: LocktopApp) -> None:
    if MAY_QUIT.exists():
        await _quit(app)


if __name__ == "__main__":
    LocktopApp.action_quit = _quit_if_allowed  # type: ignore[method-assign, assignment]
    sys.exit(main())
